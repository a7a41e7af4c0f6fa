//! Imports within a crate run one way: its modules form no circle.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Layers of the preload library, the lowest first.
const LAYERS: [&str; 3] = ["os", "engine", "policy"];

/// A module by its path in the crate: empty for the root.
type Module = Vec<String>;
type Imports = BTreeMap<Module, BTreeSet<Module>>;

/// The text of each module in the files of a folder.
fn read(folder: &Path, module: &[String], found: &mut BTreeMap<Module, String>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy();
        let mut own = module.to_vec();
        if !["lib", "main", "mod"].contains(&&*name) {
            own.push(name.into_owned());
        }
        if path.is_dir() {
            read(&path, &own, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(&path).expect("a text");
            found.entry(own).or_default().push_str(&code(&text));
        }
    }
}

/// The code without comments and without its unit tests, which come last.
fn code(text: &str) -> String {
    let lines = text.lines().take_while(|line| *line != "#[cfg(test)]");
    let lines = lines.map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// The paths that begin at `text`, behind `before`: several where it names a group. What is left of the text.
fn paths<'a>(text: &'a str, before: &[String], found: &mut Vec<Module>) -> &'a str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        while !rest.trim_start().starts_with('}') && !rest.trim_start().is_empty() {
            rest = paths(rest, before, found).trim_start();
            rest = rest.strip_prefix(',').unwrap_or(rest);
        }
        return rest.trim_start().strip_prefix('}').unwrap_or_default();
    }
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    let (name, rest) = text.split_at(end.unwrap_or(text.len()));
    let path = [before, &[name.to_owned()]].concat();
    match rest.strip_prefix("::") {
        Some(rest) => paths(rest, &path, found),
        None => {
            found.push(path);
            // Past `*` and `as other`.
            let end = rest.find([',', '}', ';', '\n', '(', ')']);
            &rest[end.unwrap_or(rest.len())..]
        }
    }
}

/// Which modules of the crate in `folder` each one names.
fn imports(folder: &Path) -> Imports {
    let mut modules = BTreeMap::new();
    read(&folder.join("src"), &[], &mut modules);
    let mut all = Imports::new();
    for (module, text) in &modules {
        let mut found = Vec::new();
        for start in ["crate::", "super::", "self::"] {
            for (at, _) in text.match_indices(start) {
                let before = text[..at].chars().next_back();
                if !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':' || c == '$')
                {
                    paths(&text[at..], &[], &mut found);
                }
            }
        }
        let named = found.iter().filter_map(|path| {
            let mut base = match path[0].as_str() {
                "crate" => Vec::new(),
                _ => module.clone(),
            };
            for name in path
                .iter()
                .filter(|name| *name != "crate" && *name != "self")
            {
                if name == "super" {
                    base.pop();
                } else {
                    base.push(name.clone());
                }
            }
            // The longest beginning that is a module: the rest is an item of it.
            (0..=base.len())
                .rev()
                .map(|n| base[..n].to_vec())
                .find(|m| modules.contains_key(m))
        });
        all.insert(module.clone(), named.filter(|m| m != module).collect());
    }
    all
}

/// All that a module reaches.
fn reached(imports: &Imports, from: &Module) -> BTreeSet<Module> {
    let mut found = BTreeSet::new();
    let mut next: Vec<&Module> = imports[from].iter().collect();
    while let Some(module) = next.pop() {
        if found.insert(module.clone()) {
            next.extend(&imports[module]);
        }
    }
    found
}

/// The circles of a crate: the names of their modules.
fn circles(imports: &Imports) -> BTreeSet<String> {
    let reached: BTreeMap<_, _> = imports.keys().map(|m| (m, reached(imports, m))).collect();
    let circle = |module: &Module| {
        let back = |m: &&Module| reached[*m].contains(module);
        let circle: Vec<String> = reached[module]
            .iter()
            .filter(back)
            .map(|m| m.join("::"))
            .collect();
        circle.join(" ")
    };
    imports
        .keys()
        .filter(|m| reached[*m].contains(*m))
        .map(circle)
        .collect()
}

/// The crates in a folder and below: path and imports.
fn crates_in(folder: &Path, found: &mut Vec<(String, Imports)>) {
    if folder.join("Cargo.toml").is_file() && folder.join("src").is_dir() {
        found.push((folder.to_string_lossy().into_owned(), imports(folder)));
    }
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let name = entry.file_name();
        let ours = !["target", "src", ".git"].iter().any(|n| name == **n);
        if ours && entry.path().is_dir() {
            crates_in(&entry.path(), found);
        }
    }
}

fn crates() -> Vec<(String, Imports)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the workspace");
    let mut found = Vec::new();
    crates_in(root, &mut found);
    found
}

#[test]
fn modules_form_no_circle() {
    let all = crates();
    assert!(all.len() > 20, "the crates are not found");
    let mut found = Vec::new();
    for (name, imports) in &all {
        for circle in circles(imports) {
            found.push(format!("{name}: {circle}"));
        }
    }
    assert!(
        found.is_empty(),
        "modules import each other:\n{}",
        found.join("\n")
    );
}

#[test]
fn the_preload_library_has_layers() {
    let all = crates();
    let (_, imports) = all
        .iter()
        .find(|(name, _)| name.ends_with("cere-capture/preload"))
        .expect("the preload library");
    let layer = |module: &Module| {
        LAYERS
            .iter()
            .position(|l| module.first().is_some_and(|m| m == l))
    };
    for (module, named) in imports {
        for other in named {
            let downwards = layer(other) <= layer(module);
            assert!(
                downwards,
                "{} imports {}",
                module.join("::"),
                other.join("::")
            );
        }
    }
}

#[test]
fn circles_are_found() {
    let text =
        "use crate::b::{self, c::{D, E}, F as G};\nlet x = super::b::f(1);\nself::x();\n$crate::y";
    let mut found = Vec::new();
    paths(
        text.strip_prefix("use ").expect("an import"),
        &[],
        &mut found,
    );
    let found: Vec<String> = found.iter().map(|p| p.join("::")).collect();
    assert_eq!(
        found,
        [
            "crate::b::self",
            "crate::b::c::D",
            "crate::b::c::E",
            "crate::b::F"
        ]
    );
    let module = |name: &str| vec![name.to_owned()];
    let edge = |from: &str, to: &[&str]| (module(from), to.iter().map(|m| module(m)).collect());
    let imports = Imports::from([
        edge("a", &["b"]),
        edge("b", &["c"]),
        edge("c", &["b"]),
        edge("d", &["a"]),
    ]);
    assert_eq!(circles(&imports), BTreeSet::from(["b c".to_owned()]));
}

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

/// The code without comments and without its unit tests: a module at the end, or the line that names one.
fn code(text: &str) -> String {
    let mut lines = text.lines();
    let mut code = Vec::new();
    while let Some(line) = lines.next() {
        if line != "#[cfg(test)]" {
            code.push(line.split("//").next().unwrap_or_default());
        } else if !lines.next().is_some_and(|tests| tests.ends_with(';')) {
            break;
        }
    }
    code.join("\n")
}

/// A path in the code, and the name that an import gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Named {
    path: Module,
    name: String,
}

/// The paths that begin at `text`, behind `before`: several where it names a group. What is left of the text.
fn paths<'a>(text: &'a str, before: &[String], found: &mut Vec<Named>) -> &'a str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        while !rest.trim_start().starts_with('}') && !rest.trim_start().is_empty() {
            rest = paths(rest, before, found).trim_start();
            rest = rest.strip_prefix(',').unwrap_or(rest);
        }
        return rest.trim_start().strip_prefix('}').unwrap_or_default();
    }
    let (name, rest) = word(text);
    let path = [before, &[name.to_owned()]].concat();
    if let Some(rest) = rest.strip_prefix("::") {
        return paths(rest, &path, found);
    }
    let other = rest.strip_prefix(" as ").map(|rest| word(rest).0);
    let own = match name {
        "self" => before.last().map_or("", String::as_str),
        name => name,
    };
    let name = other.unwrap_or(own).to_owned();
    found.push(Named { path, name });
    // Past `*` and `as other`.
    let end = rest.find([',', '}', ';', '\n', '(', ')']);
    &rest[end.unwrap_or(rest.len())..]
}

/// The word that a text begins with, and what follows it.
fn word(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    text.split_at(end.unwrap_or(text.len()))
}

/// Where `start` begins a path in `text`.
fn beginnings<'a>(text: &'a str, start: &'a str) -> impl Iterator<Item = usize> + 'a {
    let inner = |c: char| c.is_alphanumeric() || ['_', ':', '$'].contains(&c);
    let begins = move |at: &usize| !text[..*at].chars().next_back().is_some_and(inner);
    text.match_indices(start).map(|(at, _)| at).filter(begins)
}

/// The modules of a crate: their texts, and what each imports by which name.
struct Crate {
    texts: BTreeMap<Module, String>,
    imported: BTreeMap<Module, BTreeMap<String, Module>>,
}

impl Crate {
    fn of(texts: BTreeMap<Module, String>) -> Self {
        let mut all = Self {
            texts,
            imported: BTreeMap::new(),
        };
        for (module, text) in &all.texts {
            let mut found = Vec::new();
            for at in beginnings(text, "use ") {
                paths(&text[at + 4..], &[], &mut found);
            }
            let own = found
                .into_iter()
                .filter_map(|n| Some((n.name, all.absolute(module, &n.path)?)));
            let own = own.collect();
            all.imported.insert(module.clone(), own);
        }
        all
    }

    /// The path from the crate's root of one in `module`; none if it leads to another crate.
    fn absolute(&self, module: &Module, path: &[String]) -> Option<Module> {
        let mut base = match path[0].as_str() {
            "crate" => Vec::new(),
            "super" | "self" => module.clone(),
            name => {
                let child = [&module[..], &[name.to_owned()]].concat();
                self.texts.get(&child)?;
                module.clone()
            }
        };
        for name in path {
            match name.as_str() {
                "super" => drop(base.pop()),
                "crate" | "self" => {}
                name => base.push(name.to_owned()),
            }
        }
        Some(base)
    }

    /// The module in which what lies at a path is defined: modules that only import it for others are passed.
    fn home(&self, path: &[String], steps: usize) -> Module {
        let mut beginnings = (0..=path.len()).rev().map(|n| path.split_at(n));
        let longest = beginnings.find(|(module, _)| self.texts.contains_key(*module));
        let (module, rest) = longest.expect("the root");
        let imported = rest
            .first()
            .and_then(|name| self.imported[module].get(name));
        match imported.filter(|_| steps > 0) {
            Some(other) => self.home(&[other, &rest[1..]].concat(), steps - 1),
            None => module.to_owned(),
        }
    }

    /// Which modules each one names: by `crate`, `super` or `self`, or as its own child.
    fn imports(&self) -> Imports {
        let mut all = Imports::new();
        for (module, text) in &self.texts {
            let children = self
                .texts
                .keys()
                .filter(|m| m.split_last().is_some_and(|(_, m)| m == module));
            let children = children
                .filter_map(|m| m.last())
                .map(|name| format!("{name}::"));
            let starts = ["crate::", "super::", "self::"].map(str::to_owned);
            let mut found = Vec::new();
            for start in starts.into_iter().chain(children) {
                for at in beginnings(text, &start) {
                    paths(&text[at..], &[], &mut found);
                }
            }
            let absolute = found
                .iter()
                .filter_map(|named| self.absolute(module, &named.path));
            let named = absolute.map(|path| self.home(&path, 4));
            all.insert(module.clone(), named.filter(|m| m != module).collect());
        }
        all
    }
}

/// Which modules of the crate in `folder` each one names.
fn imports(folder: &Path) -> Imports {
    let mut modules = BTreeMap::new();
    read(&folder.join("src"), &[], &mut modules);
    Crate::of(modules).imports()
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
            .map(|m| match m.is_empty() {
                true => "(root)".to_owned(),
                false => m.join("::"),
            })
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
            let circle = format!("{name}: {circle}");
            found.push(circle);
        }
    }
    assert!(
        found.is_empty(),
        "modules import each other:\n{}",
        found.join("\n")
    );
}

/// What asks for the architecture, or writes its machine code: in one crate, and in those that are for x86-64 alone.
#[test]
fn architectures_are_known_in_one_crate() {
    const ASKS: [&str; 7] = [
        "target_arch",
        "asm!",
        "core::arch::",
        "std::arch::",
        "is_x86_feature_detected",
        "REG_RIP",
        "gregs",
    ];
    const KNOW: [&str; 4] = [
        "crates/arch",
        "cere-capture",
        "cere-pass",
        "crates/count/counted",
    ];
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the workspace");
    let mut seen = 0;
    let mut found = Vec::new();
    for (name, _) in crates() {
        let inside = Path::new(&name).strip_prefix(root).expect("in it");
        if KNOW.iter().any(|known| inside.starts_with(known)) {
            continue;
        }
        let mut texts = BTreeMap::new();
        read(&Path::new(&name).join("src"), &[], &mut texts);
        seen += texts.len();
        for (module, text) in texts {
            let asked = ASKS.iter().filter(|asks| text.contains(**asks));
            found.extend(asked.map(|asks| format!("{name} {}: {asks}", module.join("::"))));
        }
    }
    assert!(seen > 300, "the modules are not found: {seen}");
    assert!(
        found.is_empty(),
        "not behind cere-arch:\n{}",
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

/// A crate of modules by their names, an empty one the root, and their texts.
fn made(texts: &[(&str, &str)]) -> Imports {
    let module = |name: &str| name.split_terminator("::").map(str::to_owned).collect();
    let texts = texts.iter().map(|(name, text)| (module(name), code(text)));
    Crate::of(texts.collect()).imports()
}

#[test]
fn every_form_of_an_import_is_seen() {
    let modules = [("b", ""), ("b::c", ""), ("d", "")];
    for (module, text, expected) in [
        ("a", "use crate::b::{self, c::{D, E}, F as G};", "b b::c"),
        ("a", "let x = super::b::f(1); // crate::d", "b"),
        ("a", "$crate::b::f!()", ""),
        ("a", "use {crate::d, super::b::c::*};", "b::c d"),
        ("", "use d::X;", "d"),
        (
            "",
            "mod d;\npub use b::c::{X, Y};\n#[cfg(test)]\nmod tests;\nd::f();",
            "b::c d",
        ),
        (
            "",
            "use other::b::X;\n#[cfg(test)]\nmod tests {\n    use super::d;",
            "",
        ),
        ("a", "use self::e::X;", "a::e"),
        ("a", "fn f(e: e::X) {}", "a::e"),
        ("a::e", "use super::super::d;", "d"),
    ] {
        let mut texts = modules.to_vec();
        texts.extend([("a::e", ""), ("a", ""), (module, text)]);
        if !module.is_empty() {
            texts.push(("", ""));
        }
        let imports = made(&texts);
        let module: Module = module.split_terminator("::").map(str::to_owned).collect();
        let found: Vec<String> = imports[&module].iter().map(|m| m.join("::")).collect();
        assert_eq!(found.join(" "), expected, "{text}");
    }
}

#[test]
fn circles_are_found() {
    let among = |texts: &[(&str, &str)]| circles(&made(texts)).into_iter().collect::<Vec<_>>();
    let of_four = [
        ("", ""),
        ("a", "use crate::b;"),
        ("b", "use crate::c;"),
        ("c", "use crate::b;"),
        ("d", "use crate::a;"),
    ];
    assert_eq!(among(&of_four), ["b c"]);
    let through_the_root = [("", "use a::f;\npub struct X;"), ("a", "use crate::X;")];
    assert_eq!(among(&through_the_root), ["(root) a"]);
    // The root hands on what lies in another module.
    let handed_on = [
        ("", "use a::f;\npub use b::X;"),
        ("a", "use crate::X;"),
        ("b", ""),
    ];
    assert_eq!(among(&handed_on), [""; 0]);
}

//! Other compilers' front ends: they write bitcode that is not optimised, and clang makes the code of it.

use super::tools::compiler;
use anyhow::{Context, Result};
use cere_catalogue::bail;
use cere_format::build::Language;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names the C or C++ compiler whose front end a build is to use: `cere instrument --compiler`.
pub const ENV_FRONT: &str = "CERE_FRONT";

/// Compilers of C that are known under another name than clang, with those of C++.
const PAIRS: [(&str, &str); 3] = [
    ("icx", "icpx"),
    ("armclang", "armclang++"),
    ("clang", "clang++"),
];

/// The front end that the build is to use for a language; none: CERE's own.
pub fn of_environment(language: Language) -> Result<Option<PathBuf>> {
    let named = std::env::var(ENV_FRONT).unwrap_or_default();
    if named.is_empty() || !matches!(language, Language::C | Language::Cxx) {
        return Ok(None);
    }
    find(&named, language).map(Some)
}

/// The file of the front end that is called `named`, as the user says it for C or for C++.
pub fn find(named: &str, language: Language) -> Result<PathBuf> {
    let path = Path::new(named);
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or(named);
    let name = in_language(name, language);
    if path.components().count() == 1 {
        return compiler(&name);
    }
    let file = std::path::absolute(path.with_file_name(&name))?;
    if !file.is_file() {
        bail!(E8005, "there is no compiler {}", file.display());
    }
    Ok(file)
}

/// The name of a compiler of C or C++ for one of these languages: `clang-16`, `clang++-16`.
fn in_language(name: &str, language: Language) -> String {
    for (c, cxx) in PAIRS {
        let rest = name.strip_prefix(cxx).or(name.strip_prefix(c));
        if let Some(rest) = rest {
            let own = if language == Language::Cxx { cxx } else { c };
            return format!("{own}{rest}");
        }
    }
    name.to_owned()
}

/// What the compiler calls itself; an error if it is none of LLVM's, or newer than what reads its bitcode.
pub fn check(named: &str) -> Result<String> {
    let file = find(named, Language::C)?;
    find(named, Language::Cxx)?;
    let output = Command::new(&file).arg("--version").output();
    let output = output.with_context(|| format!("cannot run {}", file.display()))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let first = said.lines().next().unwrap_or("").to_owned();
    let macros = Command::new(&file)
        .args(["-dM", "-E", "-x", "c", "/dev/null"])
        .output()
        .with_context(|| format!("cannot run {}", file.display()))?;
    let macros = String::from_utf8_lossy(&macros.stdout).into_owned();
    let version = macros.lines().find_map(|line| {
        line.strip_prefix("#define __clang_major__ ")?
            .parse::<u32>()
            .ok()
    });
    match version {
        None => bail!(
            E1025,
            "--compiler {named}: {} is not made of clang ({first}), so it writes no bitcode that clang 22 reads",
            file.display()
        ),
        Some(version) if version > 22 => bail!(
            E1025,
            "--compiler {named}: {} is clang {version}, whose bitcode clang 22 does not read: name an older one",
            file.display()
        ),
        Some(_) => Ok(first),
    }
}

/// A compile to `output` that writes bitcode to another file: not optimised, with the names and the lines of the source.
pub fn to_bitcode(line: &[String], bitcode: &Path, output: &Path) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = line.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "-o" => drop(rest.next()),
            "-S" => words.push("-c".to_owned()),
            _ => words.push(word.clone()),
        }
    }
    let has = |names: &[&str]| {
        line.iter()
            .any(|w| names.iter().any(|name| w.starts_with(name)))
    };
    if has(&["-MD", "-MMD"]) {
        if !has(&["-MF"]) {
            words.extend([
                "-MF".to_owned(),
                output.with_extension("d").display().to_string(),
            ]);
        }
        if !has(&["-MT", "-MQ"]) {
            words.extend(["-MT".to_owned(), output.display().to_string()]);
        }
    }
    if !has(&["-g"]) {
        words.push("-gline-tables-only".to_owned());
    }
    let fixed = [
        "-fno-discard-value-names",
        "-emit-llvm",
        "-Xclang",
        "-disable-llvm-passes",
        "-o",
    ];
    words.extend(fixed.map(str::to_owned));
    words.push(bitcode.display().to_string());
    words
}

/// The arguments of clang that make `output` of bitcode; `plugin`: through the pass.
pub fn of_bitcode(
    codegen: &[String],
    plugin: Option<&Path>,
    bitcode: &Path,
    output: &Path,
) -> Vec<String> {
    let mut line = codegen.to_vec();
    line.extend(
        [
            "-w",
            "-Wno-unused-command-line-argument",
            "-fno-discard-value-names",
        ]
        .map(str::to_owned),
    );
    line.extend(plugin.map(|plugin| format!("-fpass-plugin={}", plugin.display())));
    line.extend(["-x", "ir", "-c"].map(str::to_owned));
    line.push(bitcode.display().to_string());
    line.extend(["-o".to_owned(), output.display().to_string()]);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_by_language() {
        for (name, c, cxx) in [
            ("clang-16", "clang-16", "clang++-16"),
            ("clang++-16", "clang-16", "clang++-16"),
            ("icx", "icx", "icpx"),
            ("icpx", "icx", "icpx"),
            ("armclang", "armclang", "armclang++"),
        ] {
            assert_eq!(in_language(name, Language::C), c);
            assert_eq!(in_language(name, Language::Cxx), cxx);
        }
    }

    #[test]
    fn dependencies_are_the_objects() {
        let line: Vec<String> = "-O2 -MMD -c a.c -o d/a.o"
            .split(' ')
            .map(str::to_owned)
            .collect();
        let line = to_bitcode(&line, Path::new("s/front.bc"), Path::new("d/a.o")).join(" ");
        assert!(
            line.starts_with("-O2 -MMD -c a.c -MF d/a.d -MT d/a.o -gline-tables-only"),
            "{line}"
        );
        assert!(line.ends_with("-o s/front.bc"), "{line}");
    }
}

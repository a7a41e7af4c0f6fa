//! Options that GCC's drivers accept and LLVM's refuse: dropped with a warning, or translated.
//!
//! `gcc-flags.txt` lists, without `-` and `no-`, the `-f` and `-m` options of GCC 12 that clang 22 or flang 22 refuses or
//! ignores. A flag on the list is dropped only if the compiler at hand does say so.

use super::arguments::takes_value;
use anyhow::{Context, Result};
use cere_format::build::Language;
use std::collections::HashSet;
use std::path::Path;
use std::process::Command;

const KNOWN: &str = include_str!("gcc-flags.txt");

/// Options of gfortran's driver other than `-f`, `-m`, `-W` that flang refuses.
const NOT_FLANG: &[&str] = &[
    "-ansi",
    "-pipe",
    "-MD",
    "-MMD",
    "-MP",
    "-MG",
    "-static-libgcc",
    "-static-libgfortran",
    "-static-libquadmath",
    "-static-libstdc++",
];

/// Arguments that the compiler accepts, and messages about the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adapted {
    /// The accepted arguments.
    pub arguments: Vec<String>,
    /// One sentence for each change.
    pub warnings: Vec<String>,
}

/// The option without `-`, `no-` and a value, if it is on the list of GCC's own.
fn listed(argument: &str) -> bool {
    let Some(kind) = argument.strip_prefix('-').and_then(|a| a.chars().next()) else {
        return false;
    };
    if !matches!(kind, 'f' | 'm') {
        return false;
    }
    let name = &argument[2..];
    let name = format!("{kind}{}", name.strip_prefix("no-").unwrap_or(name));
    KNOWN
        .split_whitespace()
        .any(|known| known == name || known.ends_with(['=', '-']) && name.starts_with(known))
}

/// Those of `flags` that `compiler` refuses or ignores.
fn refused(flags: &[&String], compiler: &Path, language: Language) -> Result<HashSet<String>> {
    let form = language.facts().form;
    let output = Command::new(compiler)
        .args(["-###", "-c", "-x", form, "/dev/null"])
        .args(flags)
        .output()
        .with_context(|| format!("cannot run {}", compiler.display()))?;
    Ok(refusals(&String::from_utf8_lossy(&output.stderr)))
}

/// The flags that a driver's messages name as unknown or not supported.
fn refusals(text: &str) -> HashSet<String> {
    let complaint = |line: &&str| {
        [
            "unknown argument",
            "unsupported",
            "not supported",
            "unused during compilation",
        ]
        .iter()
        .any(|words| line.contains(words))
            && (line.contains("error:") || line.contains("warning:"))
    };
    text.lines()
        .filter(complaint)
        .filter_map(|line| line.split('\'').nth(1))
        .map(str::to_owned)
        .collect()
}

/// The options of flang's front end for an x86 feature such as `-mfma`, which its driver refuses.
fn feature(argument: &str) -> Option<Vec<String>> {
    let name = argument.strip_prefix("-m")?;
    let (sign, name) = match name.strip_prefix("no-") {
        Some(name) => ('-', name),
        None => ('+', name),
    };
    let families = [
        "sse", "ssse", "avx", "fma", "bmi", "lzcnt", "popcnt", "f16c", "aes",
    ];
    if !families.iter().any(|family| name.starts_with(family)) || name.contains("=") {
        return None;
    }
    let words = [
        "-Xflang",
        "-target-feature",
        "-Xflang",
        &format!("{sign}{name}"),
    ];
    Some(words.map(str::to_owned).to_vec())
}

/// Changes `arguments` so that `compiler` accepts them if GCC would.
pub fn adapt(arguments: &[String], compiler: &Path, language: Language) -> Result<Adapted> {
    let fortran = language == Language::Fortran;
    let mut words = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut group = vec![argument.clone()];
        if takes_value(argument) {
            group.extend(rest.next().cloned());
        }
        words.push(group);
    }
    let suspects: Vec<&String> = words
        .iter()
        .filter(|group| group.len() == 1 && listed(&group[0]))
        .map(|group| &group[0])
        .collect();
    let refused = if suspects.is_empty() {
        HashSet::new()
    } else {
        refused(&suspects, compiler, language)?
    };
    let mut adapted = Adapted {
        arguments: Vec::new(),
        warnings: Vec::new(),
    };
    let mut without_lto = false;
    for group in words {
        let argument = group[0].as_str();
        let lto = argument == "-flto" || argument.starts_with("-flto=");
        without_lto |= lto;
        let warnings = argument.starts_with("-W")
            && !["-Wl,", "-Wa,", "-Wp,"]
                .iter()
                .any(|p| argument.starts_with(p));
        let dependencies = matches!(argument, "-MF" | "-MT" | "-MQ");
        let replaced = match argument {
            "-Os" | "-Oz" if fortran => Some(vec!["-O2".to_owned()]),
            a if fortran && a.starts_with("-ggdb") => Some(vec!["-g".to_owned()]),
            a if fortran && refused.contains(a) => feature(a),
            _ => None,
        };
        let dropped = lto
            || refused.contains(argument)
            || fortran && argument.starts_with("-std=") && argument != "-std=f2018"
            || fortran && (warnings || dependencies || NOT_FLANG.contains(&argument));
        let name = compiler.file_name().unwrap_or_default().to_string_lossy();
        match replaced {
            Some(words) => {
                adapted
                    .warnings
                    .push(format!("{argument} is {} for {name}", words.join(" ")));
                adapted.arguments.extend(words);
            }
            None if lto => adapted.warnings.push(format!(
                "{argument} is dropped: regions are taken from whole objects"
            )),
            None if dropped => adapted
                .warnings
                .push(format!("{argument} is dropped: {name} does not support it")),
            None => adapted.arguments.extend(group),
        }
    }
    if without_lto {
        // These are errors without -flto.
        adapted.arguments.retain(|a| {
            !matches!(
                a.as_str(),
                "-fwhole-program-vtables" | "-fvirtual-function-elimination" | "-fsplit-lto-unit"
            )
        });
    }
    Ok(adapted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    fn adapted(line: &str, compiler: &str, language: Language) -> (String, usize) {
        let adapted = adapt(&words(line), Path::new(compiler), language).unwrap();
        (adapted.arguments.join(" "), adapted.warnings.len())
    }

    #[test]
    fn names_on_the_list() {
        assert!(listed("-fno-ipa-cp") && listed("-fipa-cp") && listed("-fcheck=all"));
        assert!(!listed("-fPIC") && !listed("-O2") && !listed("-") && !listed("main.c"));
    }

    #[test]
    fn messages() {
        let text = "clang: error: unknown argument: '-fa'; did you mean '-fb'?\n\
                    clang: warning: optimization flag '-fc' is not supported [-Wx]\n \"/usr/bin/clang\" 'x'\n";
        assert_eq!(
            refusals(text),
            HashSet::from(["-fa".to_owned(), "-fc".to_owned()])
        );
    }

    #[test]
    fn flags_of_gcc_are_dropped() {
        let given =
            "-O2 -fno-var-tracking-assignments -flto=auto -fPIC -fno-ipa-cp -D -flto -c a.c";
        let (line, warnings) = adapted(given, "clang-22", Language::C);
        assert_eq!(line, "-O2 -fPIC -D -flto -c a.c");
        assert_eq!(warnings, 3);
    }

    #[test]
    fn unknown_to_both_stays() {
        let given = "-fno-such-thing -c a.c";
        assert_eq!(
            adapted(given, "clang-22", Language::C),
            (given.to_owned(), 0)
        );
    }

    #[test]
    fn flags_of_gfortran() {
        let given = "-Os -mfma -fcheck=all -std=legacy -Wall -MF x.d -Wl,-O1 -fPIC -c a.f";
        let (line, warnings) = adapted(given, "flang-22", Language::Fortran);
        assert_eq!(
            line,
            "-O2 -Xflang -target-feature -Xflang +fma -Wl,-O1 -fPIC -c a.f"
        );
        assert_eq!(warnings, 6);
    }
}

//! What other flags change in kept IR. The front end has run; what it writes into attributes of functions and into
//! floating-point instructions is found by compiling a probe under both sets of flags and comparing.

use crate::ReplayError;
use crate::command::tool_with_input;
use crate::compile::CLANG;
use cere_format::build::{Language, Retarget, TargetAttributes};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

const PROBE: &str = "double f(double a, double b) { return a * b; }\n";
/// Flags followed by a value of their own.
const WITH_VALUE: [&str; 5] = ["-mllvm", "-Xclang", "-target", "-Xassembler", "--param"];
/// Attributes without a value that compile flags decide and code generation heeds.
const ENUMS: [&str; 8] = [
    "noinline",
    "optsize",
    "minsize",
    "noredzone",
    "noimplicitfloat",
    "ssp",
    "sspstrong",
    "sspreq",
];
/// String attributes that say something of one function alone.
const OWN: [&str; 1] = ["min-legal-vector-width"];
/// Fast-math flags as IR spells them, with their bits in LLVM's C API.
const FAST: [(&str, u32); 8] = [
    ("fast", 127),
    ("reassoc", 1),
    ("nnan", 2),
    ("ninf", 4),
    ("nsz", 8),
    ("arcp", 16),
    ("contract", 32),
    ("afn", 64),
];
/// Beginnings of flags that a replay cannot follow, with the reason.
const REFUSED: [(&str, &str); 21] = [
    ("-flto", "a replay's objects are machine code"),
    ("-fsanitize", "sanitizers need the front end and a runtime"),
    ("-fprofile", "profiles are instrumented by the front end"),
    ("-fcoverage", "coverage is instrumented by the front end"),
    ("-fopenmp", "OpenMP is lowered by the front end"),
    ("-fwrapv", "the front end has decided it"),
    ("-ftrapv", "the front end has decided it"),
    ("-fexceptions", "the front end has decided it"),
    ("-fno-exceptions", "the front end has decided it"),
    ("-fsigned-char", "the front end has decided it"),
    ("-funsigned-char", "the front end has decided it"),
    ("-fplugin", "plugins of the front end see no IR"),
    ("-std=", "the front end has run"),
    ("-D", "the preprocessor has run"),
    ("-U", "the preprocessor has run"),
    ("-I", "the preprocessor has run"),
    ("-include", "the preprocessor has run"),
    ("-l", "the libraries are the captured program's"),
    ("-L", "the libraries are the captured program's"),
    ("-emit", "a replay needs an object"),
    ("-x", "a replay compiles IR"),
];

/// Refuses flags that would be without effect or break the build of a replay.
pub fn check(flags: &[String]) -> Result<(), ReplayError> {
    let refuse = |flag: &str, reason: &str| {
        Err(ReplayError::Flag {
            flag: flag.to_owned(),
            reason: reason.to_owned(),
        })
    };
    let mut value = false;
    for flag in flags {
        if std::mem::replace(&mut value, WITH_VALUE.contains(&flag.as_str())) {
            continue;
        }
        if !flag.starts_with('-') || flag == "-" {
            return refuse(flag, "a flag starts with a dash");
        }
        if [
            "-c",
            "-S",
            "-E",
            "-o",
            "-###",
            "-fsyntax-only",
            "-M",
            "-MD",
            "-MMD",
        ]
        .contains(&flag.as_str())
        {
            return refuse(flag, "the replay decides what the compiler writes");
        }
        if let Some((_, reason)) = REFUSED.iter().find(|(start, _)| flag.starts_with(start)) {
            return refuse(flag, reason);
        }
    }
    Ok(())
}

/// What the front end put on the probe.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    strings: BTreeMap<String, String>,
    enums: BTreeSet<String>,
    fast: u32,
}

fn see(ir: &str) -> Seen {
    let mut seen = Seen::default();
    let braces = ir.lines().find_map(|l| {
        let (_, rest) = l.split_once("attributes #0 = {")?;
        rest.rsplit_once('}').map(|(inside, _)| inside)
    });
    // Quotes delimit names and values; what stands outside them are enum attributes and equal signs.
    let parts: Vec<&str> = braces.unwrap_or("").split('"').collect();
    let mut name: Option<&str> = None;
    for (i, part) in parts.iter().enumerate() {
        if i % 2 == 1 {
            match name.take() {
                Some(n) => {
                    seen.strings.insert(n.to_owned(), (*part).to_owned());
                }
                None if parts.get(i + 1).is_some_and(|after| after.starts_with('=')) => {
                    name = Some(part);
                }
                // An attribute without a value: LLVM cannot tell it from a value that is not empty.
                None => {
                    seen.strings.insert((*part).to_owned(), "true".to_owned());
                }
            }
        } else {
            seen.enums
                .extend(part.split_whitespace().map(str::to_owned));
        }
    }
    if let Some((_, rest)) = ir.split_once(" = fmul ") {
        for word in rest.split_whitespace() {
            match FAST.iter().find(|f| f.0 == word) {
                Some((_, bit)) => seen.fast |= bit,
                None => break,
            }
        }
    }
    seen
}

fn difference(before: &Seen, after: &Seen) -> Retarget {
    let mut retarget = Retarget::default();
    let get = |seen: &Seen, name: &str| seen.strings.get(name).cloned().unwrap_or_default();
    let names: BTreeSet<&String> = before.strings.keys().chain(after.strings.keys()).collect();
    let target = ["target-cpu", "tune-cpu", "target-features"];
    if target.iter().any(|n| get(before, n) != get(after, n)) {
        retarget.target = Some(TargetAttributes {
            cpu: get(after, "target-cpu"),
            tune: get(after, "tune-cpu"),
            features: get(after, "target-features"),
        });
    }
    for name in names {
        let value = get(after, name);
        let known = target.contains(&name.as_str()) || OWN.contains(&name.as_str());
        if !known && value != get(before, name) {
            retarget.attributes.push((name.clone(), value));
        }
    }
    for name in ENUMS {
        let there = after.enums.contains(name);
        if there != before.enums.contains(name) {
            retarget.enum_attributes.push((name.to_owned(), there));
        }
    }
    if before.fast != after.fast {
        retarget.fast_flags = Some(after.fast);
        retarget.fast_math = after.fast == 127;
    }
    if before.enums.contains("optsize") != after.enums.contains("optsize")
        || before.enums.contains("minsize") != after.enums.contains("minsize")
    {
        let size = match (
            after.enums.contains("optsize"),
            after.enums.contains("minsize"),
        ) {
            (_, true) => "z",
            (true, _) => "s",
            _ => "",
        };
        retarget.size = Some(size.to_owned());
    }
    retarget
}

fn probe(flags: &[String], what: &str) -> Result<Seen, ReplayError> {
    let mut command = Command::new(CLANG);
    command
        .args(flags)
        .args([
            "-w",
            "-Wno-unused-command-line-argument",
            "-x",
            "c",
            "-S",
            "-emit-llvm",
        ])
        .args(["-Xclang", "-disable-llvm-passes", "-o", "-", "-"]);
    tool_with_input(&mut command, what, PROBE).map(|ir| see(&ir))
}

/// What `flags` after `original` change in the attributes of kept IR. For Fortran the probe, which is C, sees
/// only those original flags that both compilers know.
pub fn retarget(
    original: &[String],
    language: Language,
    flags: &[String],
) -> Result<Retarget, ReplayError> {
    if flags.is_empty() {
        return Ok(Retarget::default());
    }
    let common =
        |f: &&String| ["-O", "-m"].iter().any(|start| f.starts_with(start)) || *f == "-ffast-math";
    let before: Vec<String> = match language {
        Language::Fortran => original.iter().filter(common).cloned().collect(),
        Language::C | Language::Cxx => original.to_vec(),
    };
    let after: Vec<String> = before.iter().chain(flags).cloned().collect();
    let (before, after) = std::thread::scope(|scope| {
        let other = scope.spawn(|| probe(&before, "the original flags"));
        let after = probe(&after, &format!("the flags {}", flags.join(" ")));
        (other.join(), after)
    });
    let after = after?;
    let before = before.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    let mut retarget = difference(&before, &after);
    for flag in flags {
        match flag.as_str() {
            "-fno-strict-aliasing" => retarget.no_strict_aliasing = true,
            "-fstrict-aliasing" => retarget.no_strict_aliasing = false,
            _ => {}
        }
    }
    Ok(retarget)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn of(original: &str, added: &str) -> Retarget {
        retarget(&flags(original), Language::C, &flags(added)).unwrap()
    }

    #[test]
    fn the_target_changes() {
        let target = of("-O2", "-march=x86-64-v3").target.unwrap();
        assert_eq!(target.cpu, "x86-64-v3");
        assert!(target.features.contains("+avx2"));
        assert_eq!(of("-O2", "-O3"), Retarget::default());
    }

    #[test]
    fn sizes_inlining_and_frames() {
        assert_eq!(of("-O2", "-Oz").size.as_deref(), Some("z"));
        assert_eq!(of("-Os", "-O2").size.as_deref(), Some(""));
        let raised = of("-O0", "-O2");
        assert!(
            raised
                .enum_attributes
                .contains(&("noinline".to_owned(), false))
        );
        let none = of("-O2", "-fno-inline");
        assert!(
            none.enum_attributes
                .contains(&("noinline".to_owned(), true))
        );
        let frames = of("-O2", "-fno-omit-frame-pointer").attributes;
        assert_eq!(frames, [("frame-pointer".to_owned(), "all".to_owned())]);
    }

    #[test]
    fn parts_of_fast_math() {
        assert_eq!(of("-O2", "-ffast-math").fast_flags, Some(127));
        assert_eq!(of("-O2", "-freciprocal-math").fast_flags, Some(16));
        assert_eq!(of("-O2 -ffast-math", "-fno-fast-math").fast_flags, Some(0));
        assert_eq!(
            of("-O2", "-fno-jump-tables").attributes[0].0,
            "no-jump-tables"
        );
    }

    #[test]
    fn flags_that_change_nothing_are_refused() {
        for bad in ["-flto", "-DX=1", "x.c", "-fwrapv", "-o"] {
            let error = check(&flags(bad)).unwrap_err().to_string();
            assert!(error.contains(bad), "{error}");
        }
        check(&flags("-O3 -mllvm -force-vector-width=2 -march=native")).unwrap();
    }
}

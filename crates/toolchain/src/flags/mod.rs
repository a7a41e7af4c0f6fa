//! Changes in kept IR under other flags. The front end has run already. Its effects on attributes of functions and on
//! floating-point instructions are found by compiling a probe under both sets of flags and comparing.

mod probe;
mod refused;
mod words;

use crate::command::{Line, told};
use crate::error::CompileError;
use crate::unit::{CLANG, FLANG};
use cere_format::build::{Language, Retarget};
use cere_sandbox::Sandbox;
use cere_system::events::Events;
use probe::{beyond, difference, probe, said};
use refused::WITH_VALUE;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

pub use refused::check;
pub use words::{Unreadable, split};

/// Precedes each option of the back end, which the front end does not read.
const BACK_END: &str = "-mllvm";
/// Flags that affect the optimiser alone.
const UNSEEN: [&str; 6] = [
    "-fvectorize",
    "-fno-vectorize",
    "-fslp-vectorize",
    "-fno-slp-vectorize",
    "-funroll-loops",
    "-fno-unroll-loops",
];

/// The effect of the user's flags on a unit.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// Whether they may give other code than the unit's own flags.
    pub other: bool,
    /// Changes in its IR.
    pub retarget: Retarget,
    /// The flags for the unit's compiler, in flang's spelling for flang.
    pub flags: Vec<String>,
}

/// Earlier answers of compilers, by compiler and flags.
type Asked = BTreeMap<(String, Vec<String>), Option<Vec<u8>>>;
static ASKED: Mutex<Asked> = Mutex::new(BTreeMap::new());

/// The options that the driver passes to the compiler proper under `flags`. `None` if the driver refuses them; the compile
/// will report that.
fn asked(compiler: &str, flags: &[String], sandbox: &Sandbox) -> Option<Vec<u8>> {
    let known = || ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (compiler.to_owned(), flags.to_vec());
    if let Some(found) = known().get(&key) {
        return found.clone();
    }
    let line = Line::new(compiler).confined(sandbox).args(flags).args([
        "-w",
        "-x",
        "ir",
        "-c",
        "/dev/null",
        "-o",
        "/dev/null",
        "-###",
    ]);
    let found = told(&line);
    known().insert(key, found.clone());
    found
}

/// Fails if clang does not take these flags, or its back end has no such option.
pub fn known(flags: &[String]) -> Result<(), CompileError> {
    let what = format!("the flags {}", flags.join(" "));
    probe(flags, &what, &Sandbox::none()).map(drop)
}

/// Single flags, each with its value.
fn groups(flags: &[String]) -> Vec<&[String]> {
    let mut groups = Vec::new();
    let mut rest = flags;
    while let Some(first) = rest.first() {
        let size = if WITH_VALUE.contains(&first.as_str()) {
            2
        } else {
            1
        };
        let (group, after) = rest.split_at(size.min(rest.len()));
        groups.push(group);
        rest = after;
    }
    groups
}

/// `flags` in flang's spelling. A flag that flang does not know is dropped if the IR carries its effect, and refused otherwise.
fn in_fortran(flags: &[String], sandbox: &Sandbox) -> Result<Vec<String>, CompileError> {
    let mut known = Vec::new();
    for group in groups(flags) {
        match group[0].as_str() {
            "-Os" | "-Oz" => known.push("-O2".to_owned()),
            "-Og" => known.push("-O1".to_owned()),
            _ if asked(FLANG, group, sandbox).is_some() => known.extend(group.iter().cloned()),
            "-fno-strict-aliasing" | "-fstrict-aliasing" => {}
            _ if probe(group, "a flag", sandbox)? != probe(&[], "no flags", sandbox)? => {}
            _ => {
                return Err(CompileError::Flag {
                    flag: group.join(" "),
                    reason: "flang does not know it, and it changes nothing that the code generator reads".to_owned(),
                });
            }
        }
    }
    Ok(known)
}

/// The changes by `flags` after `original` for `compiler`. `original` may come from a stranger, hence the sandbox. What clang warns
/// of in flags is given once, as a search compiles with them many times.
pub fn change(
    original: &[String],
    language: Language,
    compiler: &str,
    flags: &[String],
    sandbox: &Sandbox,
    events: &Events,
) -> Result<Change, CompileError> {
    if flags.is_empty() {
        return Ok(Change::default());
    }
    // Options of the back end that the build does not have always change the code. A search tries many, so this saves probes.
    let known = groups(original);
    let others = groups(flags)
        .into_iter()
        .any(|g| g[0] == BACK_END && !known.contains(&g));
    if !others {
        let after = [original, flags].concat();
        let before = asked(compiler, original, sandbox);
        if before.is_some() && before == asked(compiler, &after, sandbox) {
            return Ok(Change::default());
        }
    }
    Ok(Change {
        other: true,
        retarget: retarget(original, language, flags, sandbox, events)?,
        flags: match compiler {
            FLANG => in_fortran(flags, sandbox)?,
            _ => flags.to_vec(),
        },
    })
}

/// The changes by `flags` after `original` in the attributes of kept IR. For Fortran the probe, which is C, gets only those
/// original flags that both compilers know.
fn retarget(
    original: &[String],
    language: Language,
    flags: &[String],
    sandbox: &Sandbox,
    events: &Events,
) -> Result<Retarget, CompileError> {
    let probe = |flags: &[String], what: &str| probe(flags, what, sandbox);
    let common =
        |f: &&String| ["-O", "-m"].iter().any(|start| f.starts_with(start)) || *f == "-ffast-math";
    let before: Vec<String> = match language {
        Language::Fortran => original.iter().filter(common).cloned().collect(),
        _ => original.to_vec(),
    };
    let with = |more: &[String]| [&before[..], more].concat();
    let seen: Vec<String> = groups(flags)
        .into_iter()
        .filter(|g| g[0] != BACK_END && !UNSEEN.contains(&g[0].as_str()))
        .flatten()
        .cloned()
        .collect();
    // Changes of the front end by optimisation levels do not concern the code generator.
    let level = flags.iter().rfind(|f| f.starts_with("-O")).cloned();
    let level = level.map(|l| if l == "-Ofast" { "-O3".to_owned() } else { l });
    let (before_seen, base, after) = std::thread::scope(|scope| {
        let base = level.map(|l| scope.spawn(|| probe(&with(&[l]), "the original flags")));
        let before = scope.spawn(|| probe(&before, "the original flags"));
        let after = probe(&with(&seen), &format!("the flags {}", flags.join(" ")));
        (before.join(), base.map(|b| b.join()), after)
    });
    let join = |result: std::thread::Result<_>| {
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    };
    let (after, before_seen) = (after?, join(before_seen)?);
    let base = base.map_or_else(|| Ok(before_seen.clone()), join)?;
    let known = said(&before);
    for warning in said(&with(&seen)) {
        if !known.contains(&warning) {
            events.warning_once(&format!("{CLANG}: {warning}"));
        }
    }
    if let Some(reason) = beyond(&base, &after) {
        // The first flag that has this effect alone, if any.
        let alone = |flag: &&String| {
            let seen = probe(&with(&[(*flag).clone()]), "a flag");
            !flag.starts_with("-O") && seen.is_ok_and(|s| beyond(&before_seen, &s).is_some())
        };
        let culprit = seen.iter().find(alone).cloned();
        return Err(CompileError::Flag {
            flag: culprit.unwrap_or_else(|| flags.join(" ")),
            reason,
        });
    }
    let mut retarget = difference(&before_seen, &after);
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
    use super::probe::CONTRACT;
    use super::*;

    fn flags(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn of(original: &str, added: &str) -> Retarget {
        retarget(
            &flags(original),
            Language::C,
            &flags(added),
            &Sandbox::new(),
            &Events::ignored(),
        )
        .unwrap()
    }

    #[test]
    fn the_target_changes() {
        let target = of("-O2", "-march=x86-64-v3").target.unwrap();
        assert_eq!(target.cpu, "x86-64-v3");
        assert!(target.features.contains("+avx2"));
        assert_eq!(of("-O2", "-O3"), Retarget::default());
    }

    #[test]
    fn flags_of_the_build_itself_change_nothing() {
        let other = |original: &str, added: &str| {
            let change = change(
                &flags(original),
                Language::C,
                CLANG,
                &flags(added),
                &Sandbox::new(),
                &Events::ignored(),
            );
            change.unwrap().other
        };
        assert!(!other("-O2 -march=native", "-O2"));
        assert!(!other("-O3", ""));
        assert!(other("-O2", "-O3"));
        assert!(other("-O2", "-mllvm -force-vector-width=2"));
    }

    #[test]
    fn words_that_flang_does_not_know() {
        let known = in_fortran(
            &flags("-Os -mavx2 -mfma -fno-strict-aliasing -ffast-math"),
            &Sandbox::new(),
        )
        .unwrap();
        assert_eq!(known, flags("-O2 -ffast-math"));
        let error = in_fortran(&flags("-O3 -fno-semantic-words"), &Sandbox::new()).unwrap_err();
        assert!(error.to_string().contains("-fno-semantic-words"), "{error}");
        let change = change(
            &flags("-O2"),
            Language::Fortran,
            FLANG,
            &flags("-Os -mavx2"),
            &Sandbox::new(),
            &Events::ignored(),
        )
        .unwrap();
        assert!(change.retarget.target.unwrap().features.contains("+avx2"));
        assert_eq!(
            change.retarget.enum_attributes,
            [("optsize".to_owned(), true)]
        );
    }

    #[test]
    fn sizes_inlining_and_frames() {
        let sizes = |from: &str, to: &str| of(from, to).enum_attributes;
        let attribute = |name: &str, there: bool| (name.to_owned(), there);
        assert_eq!(
            sizes("-O2", "-Oz"),
            [attribute("optsize", true), attribute("minsize", true)]
        );
        assert_eq!(sizes("-Os", "-O2"), [attribute("optsize", false)]);
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
        let fast = of("-O2", "-ffast-math");
        assert_eq!(fast.fast_flags, Some(127));
        assert!(fast.no_math_errno && !fast.split_contractions);
        assert_eq!(of("-O0", "-Ofast").fast_flags, Some(127));
        assert_eq!(of("-O2", "-freciprocal-math").fast_flags, Some(16));
        assert_eq!(
            of("-O2 -freciprocal-math", "-fno-reciprocal-math").fast_flags,
            Some(0)
        );
        assert!(of("-O2", "-fno-math-errno").no_math_errno);
        assert!(of("-O2", "-ffp-contract=off").split_contractions);
        assert_eq!(of("-O2", "-ffp-contract=fast").fast_flags, Some(CONTRACT));
        assert_eq!(
            of("-O2", "-fno-jump-tables").attributes[0].0,
            "no-jump-tables"
        );
    }

    #[test]
    fn what_the_front_end_has_done_cannot_be_undone() {
        let refused = |original: &str, added: &str, culprit: &str| {
            let error = retarget(
                &flags(original),
                Language::C,
                &flags(added),
                &Sandbox::new(),
                &Events::ignored(),
            )
            .unwrap_err();
            let text = error.to_string();
            assert!(text.contains(culprit), "{added}: {text}");
        };
        for flag in [
            "-frounding-math",
            "-ftrapping-math",
            "-ffp-model=strict",
            "-fno-strict-overflow",
            "-ftrivial-auto-var-init=zero",
            "-fno-delete-null-pointer-checks",
            "-fshort-enums",
            "-fcf-protection",
            "-mlong-double-64",
            "-funsigned-char",
        ] {
            refused(
                "-O2",
                &format!("-O3 -march=native {flag} -funroll-loops"),
                flag,
            );
        }
        refused("-O2 -ffast-math", "-fno-fast-math", "-fno-fast-math");
        refused("-O2 -fno-math-errno", "-fmath-errno", "-fmath-errno");
        refused(
            "-O2 -ffp-contract=off",
            "-ffp-contract=on",
            "-ffp-contract=on",
        );
        for flag in [
            "-fno-builtin",
            "-mno-red-zone",
            "-fstack-protector-all",
            "-funroll-loops",
            "-fno-vectorize",
            "-g",
            "-mcmodel=large",
            "-fno-strict-aliasing",
            "-Os",
            "-O0",
            "-fomit-frame-pointer",
            "-mprefer-vector-width=512",
        ] {
            of("-O2", flag);
        }
    }
}

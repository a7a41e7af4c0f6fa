//! What other flags change in kept IR. The front end has run; what it writes into attributes of functions and into
//! floating-point instructions is found by compiling a probe under both sets of flags and comparing.

use crate::ReplayError;
use crate::command::tool_with_input;
use crate::compile::{CLANG, FLANG};
use cere_format::build::{Language, Retarget, TargetAttributes};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// One thing that flags decide in the front end in each function; the first one's attributes count for all.
const PROBE: &str = "\
double sqrt(double);
enum shape { A, B };
struct s { int a; enum shape b; char c; };
void use(double *);
double f(double a, double b) { return a * b; }
double contracted(double a, double b, double c) { return a * b + c; }
double root(double a) { return sqrt(a); }
int sum(const int *p, int n) { int s = 0; for (int i = 0; i < n; i++) s += p[i + 1]; return s; }
int null(int *p) { int x = *p; return p ? x : 0; }
double local(int n) { double v[4]; use(v); return v[n]; }
int size(void) { return sizeof(enum shape) + 64 * sizeof(long double) + 4096 * sizeof(struct s); }
float single(float a, int b) { return (float)(a / b) < 1 ? a : -a; }
int narrow(char c, unsigned n) { return c >> (n & 7); }
";
/// Functions of the probe whose change a replay can follow, in part: see [`follow`].
const CONTRACTED: &str = "contracted";
const ROOT: &str = "root";
/// Module flags that code generation takes from its own flags, or that only concern functions it makes up.
const MODULE_FLAGS: [&str; 6] = [
    "Code Model",
    "Debug Info Version",
    "Dwarf Version",
    "Large Data Threshold",
    "frame-pointer",
    "uwtable",
];
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
const CONTRACT: u32 = 32;
/// No NaNs, no infinities.
const FINITE: u32 = 6;
const DECIDED: &str = "the front end has decided it";
const PREPROCESSED: &str = "the preprocessor has run";
const WRITES: &str = "the replay decides what the compiler reads and writes";
const LINKED: &str = "the captured program is linked, and a replay links in its own way";
const PLACED: &str = "the captured program's addresses decide how code reaches them";
const HOOKS: &str = "the captured program has no state for the functions that it would call";
const TARGET: &str = "the captured memory is that of its own target";
/// Flags that a replay cannot follow, with the reason.
const REFUSED: [(&str, &str); 27] = [
    ("-c", WRITES),
    ("-S", WRITES),
    ("-E", WRITES),
    ("-###", WRITES),
    ("-fsyntax-only", WRITES),
    ("-help", WRITES),
    ("-V", WRITES),
    ("-H", WRITES),
    ("-static", LINKED),
    ("-static-pie", LINKED),
    ("-shared", LINKED),
    ("-pie", LINKED),
    ("-no-pie", LINKED),
    ("-rdynamic", LINKED),
    ("-s", LINKED),
    ("-r", LINKED),
    ("-fpic", PLACED),
    ("-fpie", PLACED),
    ("-fPIC", PLACED),
    ("-fPIE", PLACED),
    ("-pg", HOOKS),
    ("-m16", TARGET),
    ("-m32", TARGET),
    ("-mx32", TARGET),
    ("-target", TARGET),
    ("-fcommon", DECIDED),
    ("-fno-common", DECIDED),
];
/// Beginnings of flags that a replay cannot follow, with the reason.
const REFUSED_STARTS: [(&str, &str); 58] = [
    ("-flto", "a replay's objects are machine code"),
    ("-fsanitize", "sanitizers need the front end and a runtime"),
    ("-fprofile", "profiles are instrumented by the front end"),
    ("-fcoverage", "coverage is instrumented by the front end"),
    ("-fopenmp", "OpenMP is lowered by the front end"),
    ("-finstrument-functions", HOOKS),
    ("-fxray", HOOKS),
    ("-fno-pic", PLACED),
    ("-fno-pie", PLACED),
    ("-fno-PIC", PLACED),
    ("-fno-PIE", PLACED),
    ("-fwrapv", DECIDED),
    ("-fno-wrapv", DECIDED),
    ("-ftrapv", DECIDED),
    ("-fexceptions", DECIDED),
    ("-fno-exceptions", DECIDED),
    ("-frtti", DECIDED),
    ("-fno-rtti", DECIDED),
    ("-fthreadsafe-statics", DECIDED),
    ("-fno-threadsafe-statics", DECIDED),
    ("-fvisibility", DECIDED),
    ("-fshort-", DECIDED),
    ("-fpack-struct", DECIDED),
    ("-fsigned-char", DECIDED),
    ("-fno-signed-char", DECIDED),
    ("-funsigned-char", DECIDED),
    ("-fno-unsigned-char", DECIDED),
    ("-std=", DECIDED),
    ("--std=", DECIDED),
    ("-fplugin", "plugins of the front end see no IR"),
    ("-D", PREPROCESSED),
    ("-U", PREPROCESSED),
    ("-I", PREPROCESSED),
    ("-include", PREPROCESSED),
    ("-imacros", PREPROCESSED),
    ("-isystem", PREPROCESSED),
    ("-iquote", PREPROCESSED),
    ("-idirafter", PREPROCESSED),
    ("-nostdinc", PREPROCESSED),
    ("-l", "the libraries are the captured program's"),
    ("-L", "the libraries are the captured program's"),
    ("-static-lib", LINKED),
    ("-nostd", LINKED),
    ("-nostart", LINKED),
    ("-nodefault", LINKED),
    ("-fuse-ld", LINKED),
    ("-Wl,", LINKED),
    ("-Xlinker", LINKED),
    ("--target", TARGET),
    ("-emit", "a replay needs an object"),
    ("-x", "a replay compiles IR"),
    ("-M", WRITES),
    ("-o", WRITES),
    ("-save-temps", WRITES),
    ("--save-temps", WRITES),
    ("-dump", WRITES),
    ("-print", WRITES),
    ("--", WRITES),
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
        let whole = REFUSED.iter().find(|(refused, _)| flag == refused);
        let begun = || {
            REFUSED_STARTS
                .iter()
                .find(|(start, _)| flag.starts_with(start))
        };
        let parameter = flag == "--param" || flag.starts_with("--param=");
        if let Some((_, reason)) = whole.or_else(begun).filter(|_| !parameter) {
            return refuse(flag, reason);
        }
    }
    Ok(())
}

/// What the front end put on the probe.
#[derive(Debug, Clone, Default, PartialEq)]
struct Seen {
    strings: BTreeMap<String, String>,
    enums: BTreeSet<String>,
    fast: u32,
    /// Body of each function but for what is carried otherwise.
    bodies: BTreeMap<String, String>,
    /// Module flags with their values.
    module: BTreeMap<String, String>,
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
    bodies(ir, &mut seen);
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

/// A line of a body without metadata, attribute groups, fast-math flags and what follows from them.
fn bare(line: &str) -> String {
    let mut parts = line.trim().split(", !");
    let mut text = parts.next().unwrap_or("").replace(" {", "");
    if text.starts_with("#dbg") {
        return String::new();
    }
    if let Some((before, _)) = text.split_once(" !dbg") {
        text.truncate(before.len());
    }
    if parts.any(|p| p.starts_with("llvm.loop")) {
        text.push_str(", loop");
    }
    for class in ["nofpclass(nan inf) ", "nofpclass(nan) ", "nofpclass(inf) "] {
        text = text.replace(class, "");
    }
    let word = |w: &&str| !FAST.iter().any(|f| f.0 == *w) && !w.starts_with('#');
    let words: Vec<&str> = text.split_whitespace().filter(word).collect();
    words.join(" ")
}

fn bodies(ir: &str, seen: &mut Seen) {
    let mut inside: Option<(String, String)> = None;
    for line in ir.lines() {
        if let Some(rest) = line.strip_prefix("define ") {
            let name = rest.split_once('@').and_then(|r| r.1.split_once('('));
            let name = name.map_or("", |n| n.0).to_owned();
            inside = Some((name, bare(line)));
        } else if line == "}" {
            seen.bodies.extend(inside.take());
        } else if let Some((_, body)) = &mut inside {
            let line = bare(line);
            if !line.is_empty() {
                body.push('\n');
                body.push_str(&line);
            }
        } else if let Some((_, rest)) = line.split_once(" = !{i32 ")
            && let Some((_, rest)) = rest.split_once(", !\"")
            && let Some((name, value)) = rest.split_once("\", ")
        {
            seen.module.insert(name.to_owned(), value.to_owned());
        }
    }
}

/// What the front end did under other flags that no change of the IR can make good; `base` has the same `-O`.
fn beyond(base: &Seen, after: &Seen) -> Option<String> {
    let with = |seen: &Seen, name: &str, text: &str| {
        let body = seen.bodies.get(name);
        body.is_some_and(|b| b.contains(text))
    };
    let contract = after.fast & CONTRACT != 0;
    let finite = |seen: &Seen| seen.fast & FINITE;
    if finite(base) & !finite(after) != 0 {
        return Some("that values are finite has been written into the code".to_owned());
    }
    let followed = |name: &str| match name {
        CONTRACTED => with(base, name, "fmuladd") && (contract || with(after, name, "fmul double")),
        ROOT => with(base, name, "@sqrt(") && with(after, name, "@llvm.sqrt."),
        _ => false,
    };
    let lost = after
        .bodies
        .iter()
        .filter(|(name, body)| base.bodies.get(*name) != Some(body) && !followed(name));
    let mut lost: Vec<&str> = lost.map(|(name, _)| name.as_str()).collect();
    // What changes other functions too has another reason than these have.
    lost.sort_by_key(|name| [CONTRACTED, ROOT].contains(name));
    match lost.first() {
        Some(&CONTRACTED) => return Some("which operations may be contracted is lost".to_owned()),
        Some(&ROOT) => {
            return Some("that mathematical functions set errno has been left out".to_owned());
        }
        Some(_) => return Some(DECIDED.to_owned()),
        None => {}
    }
    let modules = base.module.keys().chain(after.module.keys());
    let mut modules = modules.filter(|n| base.module.get(*n) != after.module.get(*n));
    let carried = |n: &&String| MODULE_FLAGS.contains(&n.as_str());
    if let Some(name) = modules.find(|n| !carried(n)) {
        return Some(format!("the front end has decided the module's {name:?}"));
    }
    let mut enums = base.enums.symmetric_difference(&after.enums);
    let name = enums.find(|n| !ENUMS.contains(&n.as_str()))?;
    Some(format!("the front end has decided the functions' {name:?}"))
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
    }
    let has = |seen: &Seen, name: &str, text: &str| {
        let body = seen.bodies.get(name);
        body.is_some_and(|b| b.contains(text))
    };
    retarget.no_math_errno = has(before, ROOT, "@sqrt(") && has(after, ROOT, "@llvm.sqrt.");
    retarget.split_contractions = has(before, CONTRACTED, "fmuladd")
        && !has(after, CONTRACTED, "fmuladd")
        && after.fast & CONTRACT == 0;
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

/// What flags of the user's mean for a unit.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// Whether they ask for other code than the unit's own flags.
    pub other: bool,
    /// What they change in its IR.
    pub retarget: Retarget,
    /// What the unit's compiler is told of them: all, but for flang's own spelling.
    pub flags: Vec<String>,
}

/// What the compiler proper is asked for under `flags`; none if the driver refuses them, which the compile will tell.
fn asked(compiler: &str, flags: &[String]) -> Option<Vec<u8>> {
    let mut command = Command::new(compiler);
    command.args(flags).args([
        "-w",
        "-x",
        "ir",
        "-c",
        "/dev/null",
        "-o",
        "/dev/null",
        "-###",
    ]);
    let output = command.output().ok()?;
    output.status.success().then_some(output.stderr)
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

/// `flags` in flang's words. What it does not know is left out where the IR carries it, and refused elsewhere.
fn in_fortran(flags: &[String]) -> Result<Vec<String>, ReplayError> {
    let mut known = Vec::new();
    for group in groups(flags) {
        match group[0].as_str() {
            "-Os" | "-Oz" => known.push("-O2".to_owned()),
            "-Og" => known.push("-O1".to_owned()),
            _ if asked(FLANG, group).is_some() => known.extend(group.iter().cloned()),
            "-fno-strict-aliasing" | "-fstrict-aliasing" => {}
            _ if probe(group, "a flag")? != probe(&[], "no flags")? => {}
            _ => {
                return Err(ReplayError::Flag {
                    flag: group.join(" "),
                    reason: "flang does not know it, and it changes nothing that the code generator reads".to_owned(),
                });
            }
        }
    }
    Ok(known)
}

/// What `flags` after `original` change for `compiler`.
pub fn change(
    original: &[String],
    language: Language,
    compiler: &str,
    flags: &[String],
) -> Result<Change, ReplayError> {
    if flags.is_empty() {
        return Ok(Change::default());
    }
    let after = [original, flags].concat();
    let before = asked(compiler, original);
    if before.is_some() && before == asked(compiler, &after) {
        return Ok(Change::default());
    }
    Ok(Change {
        other: true,
        retarget: retarget(original, language, flags)?,
        flags: match compiler {
            FLANG => in_fortran(flags)?,
            _ => flags.to_vec(),
        },
    })
}

/// What `flags` after `original` change in the attributes of kept IR. For Fortran the probe, which is C, sees
/// only those original flags that both compilers know.
fn retarget(
    original: &[String],
    language: Language,
    flags: &[String],
) -> Result<Retarget, ReplayError> {
    let common =
        |f: &&String| ["-O", "-m"].iter().any(|start| f.starts_with(start)) || *f == "-ffast-math";
    let before: Vec<String> = match language {
        Language::Fortran => original.iter().filter(common).cloned().collect(),
        Language::C | Language::Cxx => original.to_vec(),
    };
    let with = |more: &[String]| [&before[..], more].concat();
    // What levels of optimisation change in the front end is no concern of the code generator's.
    let level = flags.iter().rfind(|f| f.starts_with("-O")).cloned();
    let level = level.map(|l| if l == "-Ofast" { "-O3".to_owned() } else { l });
    let (before_seen, base, after) = std::thread::scope(|scope| {
        let base = level.map(|l| scope.spawn(|| probe(&with(&[l]), "the original flags")));
        let before = scope.spawn(|| probe(&before, "the original flags"));
        let after = probe(&with(flags), &format!("the flags {}", flags.join(" ")));
        (before.join(), base.map(|b| b.join()), after)
    });
    let join = |result: std::thread::Result<_>| {
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    };
    let (after, before_seen) = (after?, join(before_seen)?);
    let base = base.map_or_else(|| Ok(before_seen.clone()), join)?;
    if let Some(reason) = beyond(&base, &after) {
        // The first one that does it alone, if one does.
        let alone = |flag: &&String| {
            let seen = probe(&with(&[(*flag).clone()]), "a flag");
            !flag.starts_with("-O") && seen.is_ok_and(|s| beyond(&before_seen, &s).is_some())
        };
        let culprit = flags.iter().find(alone).cloned();
        return Err(ReplayError::Flag {
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
    fn flags_of_the_build_itself_change_nothing() {
        let other = |original: &str, added: &str| {
            let change = change(&flags(original), Language::C, CLANG, &flags(added));
            change.unwrap().other
        };
        assert!(!other("-O2 -march=native", "-O2"));
        assert!(!other("-O3", ""));
        assert!(other("-O2", "-O3"));
        assert!(other("-O2", "-mllvm -force-vector-width=2"));
    }

    #[test]
    fn words_that_flang_does_not_know() {
        let known =
            in_fortran(&flags("-Os -mavx2 -mfma -fno-strict-aliasing -ffast-math")).unwrap();
        assert_eq!(known, flags("-O2 -ffast-math"));
        let error = in_fortran(&flags("-O3 -fno-semantic-words")).unwrap_err();
        assert!(error.to_string().contains("-fno-semantic-words"), "{error}");
        let change = change(
            &flags("-O2"),
            Language::Fortran,
            FLANG,
            &flags("-Os -mavx2"),
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
            let error = retarget(&flags(original), Language::C, &flags(added)).unwrap_err();
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

    #[test]
    fn flags_that_change_nothing_are_refused() {
        for bad in [
            "-flto",
            "-DX=1",
            "x.c",
            "-fwrapv",
            "-o",
            "-static",
            "-fPIE",
            "-finstrument-functions",
            "--version",
            "-m32",
        ] {
            let error = check(&flags(bad)).unwrap_err().to_string();
            assert!(error.contains(bad), "{error}");
        }
        let good = "-O3 -mllvm -force-vector-width=2 -march=native -fslp-vectorize -mcmodel=large -g -Wall";
        check(&flags(good)).unwrap();
    }
}

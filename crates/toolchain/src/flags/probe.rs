//! Effects of flags on a probe: attributes of functions, floating-point instructions, bodies, module flags.

use super::refused::DECIDED;
use crate::command::{Line, run_with_input};
use crate::error::CompileError;
use crate::unit::CLANG;
use cere_format::build::{Retarget, TargetAttributes};
use cere_sandbox::{Sandbox, files};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

/// The probe: each function shows one effect of flags in the front end. The attributes of the first one count for all.
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
/// Functions of the probe whose change a replay can follow in part: see [`beyond`].
const CONTRACTED: &str = "contracted";
const ROOT: &str = "root";
/// Module flags that code generation takes from its own flags, or that concern only functions that it creates.
const MODULE_FLAGS: [&str; 6] = [
    "Code Model",
    "Debug Info Version",
    "Dwarf Version",
    "Large Data Threshold",
    "frame-pointer",
    "uwtable",
];
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
/// String attributes that concern one function alone.
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
pub(super) const CONTRACT: u32 = 32;
/// No NaNs, no infinities.
const FINITE: u32 = 6;
/// The output of the front end for the probe.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Seen {
    strings: BTreeMap<String, String>,
    enums: BTreeSet<String>,
    fast: u32,
    /// Body of each function, without the parts that are compared otherwise.
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

/// The effects of other flags in the front end that no change of the IR can reproduce; `base` has the same `-O`.
pub(super) fn beyond(base: &Seen, after: &Seen) -> Option<String> {
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
    // If other functions change too, the cause is another one.
    lost.sort_by_key(|name| [CONTRACTED, ROOT].contains(name));
    match lost.first() {
        Some(&CONTRACTED) => return Some("which operations may be contracted is lost".to_owned()),
        Some(&ROOT) => {
            return Some(
                "the build's code does not set errno in mathematical functions".to_owned(),
            );
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
    // Without the length of vectors that differ in it code is made for any.
    let free = |n: &str| ENUMS.contains(&n) || n.starts_with("vscale_range(");
    let name = enums.find(|n| !free(n))?;
    Some(format!("the front end has decided the functions' {name:?}"))
}

/// The changes that turn IR made under the flags of `before` into that of `after`.
pub(super) fn difference(before: &Seen, after: &Seen) -> Retarget {
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

/// A probe, with what clang said of its flags.
type Probed = (Seen, Vec<String>);

/// Cached probes by flags: a search uses the same flags many times.
static KNOWN: Mutex<BTreeMap<Vec<String>, Probed>> = Mutex::new(BTreeMap::new());

/// Compiles the probe under `flags`, called `what` in errors.
pub(super) fn probe(flags: &[String], what: &str, sandbox: &Sandbox) -> Result<Seen, CompileError> {
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((seen, _)) = known().get(flags) {
        return Ok(seen.clone());
    }
    let mut line = Line::new(CLANG)
        .confined(sandbox)
        .args(flags)
        .args([
            "-Wno-unused-command-line-argument",
            "-fno-color-diagnostics",
            "-x",
            "c",
            "-S",
            "-emit-llvm",
        ])
        .args(["-Xclang", "-disable-llvm-passes", "-o", "-", "-"]);
    for file in files::profiles(flags)
        .into_iter()
        .chain(files::named(flags))
    {
        line = line.reads(&file);
    }
    let (ir, said) = run_with_input(&line, what, PROBE)?;
    let seen = see(&ir);
    let warnings = said.lines().filter_map(warning).map(str::to_owned);
    known().insert(flags.to_vec(), (seen.clone(), warnings.collect()));
    Ok(seen)
}

/// A warning about the flags, not about the probe's source.
fn warning(line: &str) -> Option<&str> {
    let (before, warning) = line.split_once("warning: ")?;
    let driver = before.strip_suffix(": ").unwrap_or(before);
    (!driver.contains(':')).then_some(warning)
}

/// What clang said of flags that were probed.
pub(super) fn said(flags: &[String]) -> Vec<String> {
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known
        .get(flags)
        .map_or_else(Vec::new, |(_, said)| said.clone())
}

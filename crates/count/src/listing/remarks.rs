//! What the optimiser says of code, in plain words.

use super::record::{At, Entry};
use cere_format::untrusted::visible;
use cere_replay::names::demangle;
use serde::{Deserialize, Serialize};

/// What became of something that the optimiser could do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It was done.
    Done,
    /// It was not done.
    Missed,
}

/// A remark in plain words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remark {
    /// The pass that made it, as LLVM calls it.
    pub pass: String,
    /// Whether it was done.
    pub outcome: Outcome,
    /// Its function.
    pub function: String,
    /// File; none where the code has no lines.
    pub file: Option<String>,
    /// Line.
    pub line: Option<u32>,
    /// What was done, or not, and why.
    pub text: String,
    /// The compiler's own words.
    pub compiler: String,
}

/// Why loops are not vectorised: a part of the remark's name or text, and what it means.
const REASONS: &[(&str, &str)] = &[
    (
        "CantReorderFPOps",
        "floating-point sums and products have to keep their order; -fassociative-math (in -ffast-math) lets the compiler reorder \
         them, and results then round otherwise",
    ),
    (
        "prevents store-to-load forwarding",
        "an iteration reads what one shortly before it wrote, and wide accesses would wait for that store",
    ),
    (
        "Unsafe indirect dependence",
        "it writes by an index from memory, and two iterations may meet the same element",
    ),
    (
        "Unknown data dependence",
        "whether iterations reach the same memory is not known before it runs",
    ),
    (
        "Backward loop carried data dependence",
        "an iteration needs what an earlier one wrote",
    ),
    (
        "UnsafeDep",
        "iterations may depend on one another through memory",
    ),
    (
        "CantIdentifyArrayBounds",
        "how far an access reaches is not known, so that no check can show that arrays do not overlap; restrict promises it",
    ),
    (
        "CantReorderMemOps",
        "too many checks would be needed to show that its arrays do not overlap; restrict promises it",
    ),
    (
        "TooManyMemoryRuntimeChecks",
        "too many checks would be needed to show that its arrays do not overlap; restrict promises it",
    ),
    (
        "CantCheckMemDepsAtRunTime",
        "no check can show that its arrays do not overlap; restrict promises it",
    ),
    (
        "CantVectorizeLibcall",
        "it calls a function that has no vector version (inlining it, or -fveclib=libmvec for mathematics, may help)",
    ),
    (
        "CantVectorizeIntrinsic",
        "it calls an intrinsic that has no vector version",
    ),
    (
        "CantVectorizeStoreToLoopInvariantAddress",
        "iterations write to one and the same address",
    ),
    (
        "CantVectorizeInstruction",
        "it has an instruction without a vector version",
    ),
    (
        "NonReductionValueUsedOutsideLoop",
        "a value that goes from one iteration to the next is no sum, product, minimum or other reduction that the compiler knows",
    ),
    (
        "PotentiallyFaultingLoad",
        "it may end early, and reading ahead of that could leave the memory that is there",
    ),
    (
        "early exit",
        "it may end early, at a place that is only known when it is reached",
    ),
    (
        "uncountable",
        "the number of its iterations is not known when it begins",
    ),
    (
        "UnsupportedUncountableLoop",
        "the number of its iterations is not known when it begins",
    ),
    (
        "CantComputeNumberOfIterations",
        "the number of its iterations is not known when it begins",
    ),
    (
        "NoInductionVariable",
        "it has no variable that grows evenly",
    ),
    (
        "NoIntegerInductionVariable",
        "it has no integer variable that grows evenly",
    ),
    (
        "CFGNotUnderstood",
        "its control flow is no simple loop: it has several ends, or jumps",
    ),
    (
        "NoCFGForSelect",
        "a branch in it cannot become a choice between values (a switch, or an access that only one side may make)",
    ),
    (
        "explicitly request it",
        "below -O2 only those loops are that ask for it by a pragma",
    ),
    (
        "AllDisabled",
        "it was vectorised before, or flags or a pragma forbid it",
    ),
    ("NotInnerMostLoop", "another loop is inside it"),
    (
        "VectorizationNotBeneficial",
        "the compiler's cost model expects no gain",
    ),
    ("LowTripCount", "it has too few iterations"),
    (
        "OptForSize",
        "it would grow, and the flags ask for small code",
    ),
    (
        "UnknownLoopCountComplexCFG",
        "the number of its iterations is not known when it begins",
    ),
];

/// Remarks that say nothing beside others.
const SILENT: &[&str] = &["InterleavingNotBeneficial", "InterleavingAvoided"];

/// Why a loop was not vectorised.
fn reason(entry: &Entry) -> String {
    let text = entry.text();
    let fits = |part: &str| entry.name.contains(part) || text.contains(part);
    let known = REASONS.iter().find(|(part, _)| fits(part));
    known.map_or_else(|| own_words(&text), |(_, words)| (*words).to_owned())
}

/// The compiler's first line, without what each begins with.
fn own_words(text: &str) -> String {
    let text = text.strip_prefix("loop not vectorized: ").unwrap_or(text);
    let first = text.lines().find(|line| !line.trim().is_empty());
    first.unwrap_or("the compiler gives no reason").to_owned()
}

/// `4`, or `?`.
fn number<'a>(entry: &'a Entry, key: &str) -> &'a str {
    entry.piece(key).unwrap_or("?")
}

/// What was done, in plain words; none if it is not worth a line.
fn done(entry: &Entry) -> Option<String> {
    let interleaved = |entry: &Entry| match number(entry, "InterleaveCount") {
        "1" | "?" => String::new(),
        count => format!(", {count} such vectors in each iteration"),
    };
    Some(match (entry.pass.as_str(), entry.name.as_str()) {
        ("loop-vectorize", "Vectorized") => format!(
            "vectorised: {} elements at once{}",
            number(entry, "VectorizationFactor"),
            interleaved(entry)
        ),
        ("loop-vectorize", "Interleaved") => format!(
            "not vectorised, but {} iterations at once overlap",
            number(entry, "InterleaveCount")
        ),
        ("slp-vectorizer", _) => {
            "neighbouring operations of straight code were joined to vectors".to_owned()
        }
        ("loop-unroll", "FullyUnrolled") => {
            format!(
                "unrolled completely: {} iterations",
                number(entry, "UnrollCount")
            )
        }
        ("loop-unroll", _) => format!(
            "unrolled: {} iterations in each",
            number(entry, "UnrollCount")
        ),
        ("loop-idiom", _) => {
            let function = entry.piece("NewFunction").unwrap_or("a library function");
            format!("replaced by a call of {function}")
        }
        ("loop-distribute", _) => "split into several loops".to_owned(),
        _ => return None,
    })
}

/// What was not done, and why; none if it is not worth a line.
fn missed(entry: &Entry) -> Option<String> {
    let callee = || demangle(entry.piece("Callee").unwrap_or("a function"));
    Some(match (entry.pass.as_str(), entry.name.as_str()) {
        ("inline", "NoDefinition") => {
            format!("{} is not inlined: its code is in another file", callee())
        }
        ("inline", "TooCostly") => format!(
            "{} is not inlined: it is too large (cost {}, limit {})",
            callee(),
            number(entry, "Cost"),
            number(entry, "Threshold")
        ),
        ("inline", _) => {
            let reason = entry.piece("Reason").map(|why| format!(": {why}"));
            format!("{} is not inlined{}", callee(), reason.unwrap_or_default())
        }
        ("licm", "LoadWithLoopInvariantAddressInvalidated") => {
            "a value is read again in each iteration, as something in the loop may change it; a local copy, or restrict, avoids that"
                .to_owned()
        }
        ("licm", "LoadWithLoopInvariantAddressCondExecuted") => {
            "a value is read again in each iteration, as it is only read under a condition".to_owned()
        }
        ("gvn", "LoadClobbered") => {
            "a value is read from memory again, as something between may have changed it".to_owned()
        }
        ("regalloc", "LoopSpillReloadCopies" | "SpillReloadCopies") => spilled(entry)?,
        _ => return None,
    })
}

/// What lack of registers costs; none if only copies are left.
fn spilled(entry: &Entry) -> Option<String> {
    let [spills, reloads] = ["NumSpills", "NumReloads"].map(|key| entry.piece(key));
    let parts = [(spills, "store"), (reloads, "load")];
    let parts: Vec<String> = (parts.into_iter())
        .filter_map(|(number, what)| {
            let number = number?;
            let many = if number == "1" { "" } else { "s" };
            Some(format!("{number} {what}{many}"))
        })
        .collect();
    let place = match entry.name.starts_with("Loop") {
        true => "loop",
        false => "function",
    };
    (!parts.is_empty()).then(|| {
        format!(
            "registers are short: {} of spilled values in the {place}",
            parts.join(" and ")
        )
    })
}

/// Whether an entry says nothing: a sum of what others say, or what has no place and no meaning without one.
fn is_idle(entries: &[Entry], entry: &Entry) -> bool {
    let needs_place = matches!(entry.pass.as_str(), "licm" | "gvn");
    let of_loop = |e: &Entry| e.name == "LoopSpillReloadCopies" && e.function == entry.function;
    SILENT.iter().any(|name| entry.name.starts_with(name))
        || needs_place && entry.at.is_none()
        || entry.name == "SpillReloadCopies" && entries.iter().any(of_loop)
}

/// Turns the entries of `function`s that are wanted into remarks, each once. `name` gives the name for people, or none for
/// functions that are not wanted.
pub fn remarks(entries: &[Entry], name: impl Fn(&str) -> Option<String>) -> Vec<Remark> {
    let mut found: Vec<Remark> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let Some(function) = name(&entry.function) else {
            continue;
        };
        let Some((outcome, at, text)) = one(entries, index) else {
            continue;
        };
        let remark = Remark {
            pass: visible(&entry.pass),
            outcome,
            function,
            file: at.map(|at| visible(&at.file)),
            line: at.map(|at| at.line),
            text: visible(&text),
            compiler: visible(entry.text().replace('\n', " ").trim()),
        };
        let same = |other: &Remark| {
            (&other.function, &other.file, other.line, &other.text)
                == (&remark.function, &remark.file, remark.line, &remark.text)
        };
        if !found.iter().any(same) {
            found.push(remark);
        }
    }
    found
}

/// What the entry at `index` says, and where.
fn one(entries: &[Entry], index: usize) -> Option<(Outcome, Option<&At>, String)> {
    let entry = &entries[index];
    let own = entry.at.as_ref();
    let vectoriser = entry.pass == "loop-vectorize";
    if is_idle(entries, entry) {
        return None;
    }
    if entry.kind == "Passed" {
        return Some((Outcome::Done, own, done(entry)?));
    }
    if vectoriser && entry.name == "MissedDetails" {
        // The reasons stand before it.
        let reasoned = index.checked_sub(1).is_some_and(|before| {
            let before = &entries[before];
            before.pass == entry.pass
                && before.kind.starts_with("Analysis")
                && before.function == entry.function
        });
        let text = "not vectorised: the compiler gives no reason".to_owned();
        return (!reasoned).then_some((Outcome::Missed, own, text));
    }
    if vectoriser {
        // The line of the loop is that of the remark that ends its reasons; the reason's own is within it.
        let mut later = entries[index + 1..].iter();
        let end = later.find(|e| e.pass != entry.pass || !e.kind.starts_with("Analysis"));
        let end = end.filter(|e| e.name == "MissedDetails" && e.function == entry.function);
        let at = end.and_then(|e| e.at.as_ref()).or(own);
        return Some((Outcome::Missed, at, because(entry, at)));
    }
    Some((Outcome::Missed, own, missed(entry)?))
}

/// Why a loop at `at` is not vectorised, and the line that is to blame.
fn because(entry: &Entry, at: Option<&At>) -> String {
    let line = |other: Option<&At>| other.map(|other| other.line);
    let mut lines: Vec<u32> = line(entry.at.as_ref())
        .into_iter()
        .chain(line(entry.other()))
        .collect();
    lines.dedup();
    lines.retain(|own| line(at) != Some(*own));
    let lines: Vec<String> = lines.iter().map(u32::to_string).collect();
    let place = match &lines[..] {
        [] => String::new(),
        [one] => format!(" (line {one})"),
        several => format!(" (lines {})", several.join(" and ")),
    };
    format!("not vectorised: {}{place}", reason(entry))
}

#[cfg(test)]
mod tests {
    use super::super::record::entries;
    use super::{Outcome, remarks};

    fn entry(kind: &str, pass: &str, name: &str, line: u32, pieces: &str) -> String {
        format!(
            "--- !{kind}\nPass: {pass}\nName: {name}\nDebugLoc: {{ File: a.c, Line: {line}, Column: 3 }}\nFunction: f\nArgs:\n{pieces}...\n"
        )
    }

    fn texts(text: &str) -> Vec<(Outcome, Option<u32>, String)> {
        let found = remarks(&entries(text), |name| (name == "f").then(|| "f".to_owned()));
        found
            .into_iter()
            .map(|r| (r.outcome, r.line, r.text))
            .collect()
    }

    #[test]
    fn a_vectorised_loop() {
        let pieces = "  - VectorizationFactor: '4'\n  - InterleaveCount: '2'\n";
        let text = entry("Passed", "loop-vectorize", "Vectorized", 8, pieces);
        let words = "vectorised: 4 elements at once, 2 such vectors in each iteration".to_owned();
        assert_eq!(texts(&text.repeat(2)), [(Outcome::Done, Some(8), words)]);
        assert_eq!(texts(&text.replace("Function: f", "Function: g")), []);
    }

    #[test]
    fn a_reason_stands_at_its_loop() {
        let why = entry(
            "AnalysisFPCommute",
            "loop-vectorize",
            "CantReorderFPOps",
            5,
            "  - String: x\n",
        );
        let end = entry(
            "Missed",
            "loop-vectorize",
            "MissedDetails",
            4,
            "  - String: loop not vectorized\n",
        );
        let found = texts(&(why.clone() + &end));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].0, found[0].1), (Outcome::Missed, Some(4)));
        assert!(found[0].2.contains("keep their order") && found[0].2.ends_with("(line 5)"));
        assert!(texts(&end)[0].2.ends_with("the compiler gives no reason"));
        assert_eq!(texts(&why)[0].1, Some(5));
    }

    #[test]
    fn unknown_reasons_are_the_compilers_words() {
        let pieces = "  - String: 'loop not vectorized: '\n  - String: the moon is full\n";
        let text = entry("Analysis", "loop-vectorize", "Moon", 5, pieces);
        assert_eq!(texts(&text)[0].2, "not vectorised: the moon is full");
    }

    #[test]
    fn other_passes() {
        for (pass, name, pieces, words) in [
            (
                "inline",
                "NoDefinition",
                "  - Callee: ext\n",
                "ext is not inlined: its code is in another file",
            ),
            (
                "regalloc",
                "LoopSpillReloadCopies",
                "  - NumSpills: '3'\n  - String: x\n  - NumReloads: '5'\n",
                "registers are short: 3 stores and 5 loads of spilled values in the loop",
            ),
        ] {
            let text = entry("Missed", pass, name, 2, pieces);
            assert_eq!(texts(&text), [(Outcome::Missed, Some(2), words.to_owned())]);
        }
        let copies = entry(
            "Missed",
            "regalloc",
            "SpillReloadCopies",
            2,
            "  - NumVRCopies: '3'\n",
        );
        assert_eq!(texts(&copies), []);
        let unrolled = entry(
            "Passed",
            "loop-unroll",
            "PartialUnrolled",
            2,
            "  - UnrollCount: '4'\n",
        );
        assert_eq!(texts(&unrolled)[0].2, "unrolled: 4 iterations in each");
    }
}

//! What a reduction keeps of a codelet under flags.

use serde::Serialize;

/// What is to be kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Keeps {
    /// The result differs from that of the references.
    Different,
    /// The time is that of the first reference, so many times at least; none: as most of what is measured first.
    Slow(Option<f64>),
}

/// How a run of a candidate ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// In this state, each time.
    State(u64),
    /// It was ended by a signal, or by an access outside of what was captured.
    Failed,
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::State(state) => write!(f, "state {state:016x}"),
            Self::Failed => f.write_str("fails"),
        }
    }
}

/// What no flags are called.
pub const BUILD: &str = "the build's flags";

/// Words of IR that stand for any value, or for what never happens: a candidate with more of them may differ by right.
const ANY: [&str; 3] = ["undef", "poison", "unreachable"];
/// Words that promise what the optimiser may rely on.
const PROMISES: [&str; 7] = [
    "nsw", "nuw", "exact", "inbounds", "nneg", "disjoint", "samesign",
];

/// How many words of IR stand for any value.
pub fn any_values(ir: &str) -> usize {
    let code = ir
        .lines()
        .filter(|l| !l.starts_with('!') && !l.starts_with("attributes"));
    let words = code.flat_map(|l| l.split(|c: char| !c.is_alphanumeric() && c != '_'));
    words.filter(|word| ANY.contains(word)).count()
}

/// IR without promises about its arithmetic.
pub fn without_promises(ir: &str) -> String {
    let strip = |line: &str| {
        let words = line.split(' ').filter(|word| !PROMISES.contains(word));
        words.collect::<Vec<_>>().join(" ")
    };
    ir.lines().map(|line| strip(line) + "\n").collect()
}

/// Instructions of IR, about: lines of bodies that are not labels, comments or records of variables.
pub fn instructions(ir: &str) -> usize {
    let body =
        |line: &&str| line.starts_with("  ") && !line.trim_start().starts_with([';', '#', ']']);
    ir.lines().filter(body).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const IR: &str = "@undef = global i32 0\ndefine void @f(ptr %p) {\n  %a = add nsw i32 poison, 1 ; poison\n\
                      2:\n  store i32 %a, ptr %p\n  unreachable\n}\n!0 = !{!\"undef\"}\n";

    #[test]
    fn words_of_ir() {
        assert_eq!(any_values(IR), 4);
        assert_eq!(instructions(IR), 3);
        assert!(without_promises(IR).contains("%a = add i32 poison, 1"));
    }
}

//! Outcomes of programs and their codelets.

use anyhow::Result;

/// The outcome of a comparison or a codelet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// The instrumented program prints what the plain one prints.
    SameOutput,
    /// It prints something else.
    OtherOutput,
    /// The plain program runs too long.
    TooLong,
    /// A region ran and gave no codelet.
    Refused,
    /// The replay ended in the captured state.
    Exact,
    /// All compared bytes are the same, but some that the region wrote were excluded.
    Partly,
    /// It differs in floating-point words, within the tolerance.
    Tolerance,
    /// It differs.
    Different,
    /// It differs, as the plain program built with these flags does.
    Changed,
    /// It ends in the captured state, but the plain program built with these flags computes something else there.
    WrongExact,
    /// The replay failed, or compared nothing.
    Unchecked,
}

impl Outcome {
    /// Whether CERE computed something other than the program.
    pub fn is_wrong(self) -> bool {
        matches!(self, Self::OtherOutput | Self::Different | Self::WrongExact)
    }

    /// Whether the outcome needs no attention.
    pub fn is_right(self) -> bool {
        matches!(
            self,
            Self::SameOutput | Self::Exact | Self::TooLong | Self::Changed
        )
    }

    /// That of a verdict.
    pub fn of(verdict: &str) -> Result<Self> {
        Ok(match verdict {
            "exact" => Self::Exact,
            "partly" => Self::Partly,
            "tolerance" => Self::Tolerance,
            "different" => Self::Different,
            "unchecked" => Self::Unchecked,
            other => anyhow::bail!("the verdict {other} has no class here"),
        })
    }
}

/// One outcome.
#[derive(Debug)]
pub struct Finding {
    /// Of which program.
    pub seed: u64,
    /// The program's level.
    pub level: String,
    /// Region or codelet; empty for a program.
    pub of: String,
    /// Flags of the replay; `None` if it is not a replay.
    pub flags: Option<String>,
    /// The outcome.
    pub outcome: Outcome,
    /// The message or reason.
    pub reason: String,
    /// Whether the program says that it may be so.
    pub allowed: bool,
}

impl Finding {
    /// Whether it needs no attention.
    pub fn is_right(&self) -> bool {
        self.allowed || self.outcome.is_right()
    }

    /// The reason without words of this program alone: words with digits, paths.
    pub fn cause(&self) -> String {
        let particular = |word: &str| {
            word.contains(|c: char| c.is_ascii_digit()) || word.contains('/') || word.contains('@')
        };
        let first = self.reason.lines().next().unwrap_or("");
        let words = first.split_whitespace();
        let words: Vec<&str> = words.map(|w| if particular(w) { "#" } else { w }).collect();
        words.join(" ")
    }

    /// In a line.
    pub fn shown(&self) -> String {
        let flags = match &self.flags {
            None => String::new(),
            Some(flags) => format!(" under {flags:?}"),
        };
        format!(
            "seed {} {} {}{flags}: {:?}: {}",
            self.seed, self.level, self.of, self.outcome, self.reason
        )
    }
}

//! `--flags`, and what else commands that replay named codelets share.

use super::common::Common;
use super::team::TeamOptions;
use super::timing::Timing;
use anyhow::Result;
use cere_catalogue::ensure;
use cere_measure::Settings;
use cere_toolchain::flags::{Unreadable, split};
use std::str::FromStr;

/// The value of `--flags`: flags of a compiler, as one text that is split as a shell does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Flags {
    pub text: String,
    pub words: Vec<String>,
}

impl FromStr for Flags {
    type Err = Unreadable;

    fn from_str(text: &str) -> Result<Self, Unreadable> {
        Ok(Self {
            words: split(text)?,
            text: text.to_owned(),
        })
    }
}

/// What codelets are compiled with and how they run.
#[derive(Debug, Clone, clap::Args)]
pub struct Replaying {
    /// Compiler flags after those of the build
    #[arg(
        long,
        value_name = "FLAGS",
        default_value = "",
        allow_hyphen_values = true
    )]
    pub flags: Flags,
    #[command(flatten)]
    timing: Timing,
    #[command(flatten)]
    team: TeamOptions,
}

impl Replaying {
    /// A replay at these flags.
    pub fn settings(&self) -> Result<Settings> {
        Ok(Settings {
            flags: self.flags.words.clone(),
            ..self.timing.settings(self.team.team()?)?
        })
    }
}

/// Options of the commands that count, codelet by codelet.
#[derive(Debug, Clone, clap::Args)]
pub struct Counting {
    #[command(flatten)]
    pub common: Common,
    /// Seed of the physical addresses, and of random replacement
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Write one row a codelet as CSV (RFC 4180) to stdout
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    #[command(flatten)]
    pub replays: Replaying,
}

impl Counting {
    /// Whether JSON is asked for, and whether CSV.
    pub fn form(&self) -> (bool, bool) {
        (self.common.json, self.csv)
    }
}

/// The value of `--passes`.
pub fn pipeline(text: &str) -> Result<String> {
    let text = text.trim();
    ensure!(
        !text.is_empty(),
        E8003,
        "an opt pipeline is needed, e.g. 'default<O3>'"
    );
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use crate::Cli;
    use clap::Parser;

    #[test]
    fn an_open_quotation_mark_is_an_error_of_its_option() {
        let ends = [
            "asm x --against '",
            "count x --flags '",
            "metrics x --flags '",
            "replay x --flags '",
            "measure x -o y --flags '",
            "roofline x --flags '",
            "roofline --kernel x --sizes 1 --build-flags '",
        ];
        for end in ends {
            let words = std::iter::once("cere").chain(end.split(' '));
            let error = Cli::try_parse_from(words).err().expect(end).to_string();
            let option = end.rsplit(' ').nth(1).expect("an option");
            assert!(
                error.contains(option) && error.contains("missing closing quote"),
                "{error}"
            );
        }
    }
}

//! What a command needs and another one makes, where it is not there: an error that names the command to type, and that
//! the command line can offer to run.

use crate::state;
use cere_catalogue::Code;
use cere_format::profile::Stdin;
use cere_format::store::Store;
use std::path::PathBuf;

/// An error that another command of CERE would mend.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Missing {
    message: String,
    /// What would make it, if the program to run is known.
    pub maker: Option<Maker>,
}

/// A command of CERE that makes what is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Maker {
    /// The arguments of `cere`: subcommand, patterns, `--`, the program and its arguments.
    pub arguments: Vec<String>,
    /// Where the program is run.
    pub directory: PathBuf,
    /// The store.
    pub store: PathBuf,
    /// Whether the program needs nothing on its standard input, so that it can be run at once.
    pub runs_alone: bool,
}

impl Maker {
    /// `subcommand` on `patterns`, with the program that the store's profile is of.
    fn of(store: &Store, subcommand: &str, patterns: &[&str]) -> Option<Self> {
        let profile = state::profile(store).ok()?;
        let own = std::iter::once(subcommand)
            .chain(patterns.iter().copied())
            .chain(["--"])
            .map(str::to_owned);
        Some(Self {
            arguments: own.chain(profile.command).collect(),
            directory: profile.directory,
            store: store.root().to_owned(),
            runs_alone: profile.input.stdin == Stdin::Nothing,
        })
    }

    /// What a user would type, here.
    pub fn line(&self) -> String {
        let mut line = String::new();
        let here = std::env::current_dir();
        if here.is_ok_and(|here| here != self.directory) {
            line += &format!("cd {} && ", quoted(&self.directory.to_string_lossy()));
        }
        line += "cere ";
        let (subcommand, rest) = match self.arguments.split_first() {
            Some((subcommand, rest)) => (subcommand.as_str(), rest),
            None => ("", &[][..]),
        };
        line += subcommand;
        if self.store != self.directory.join(".cere") {
            line += &format!(" --store {}", quoted(&self.store.to_string_lossy()));
        }
        for word in rest {
            line += &format!(" {}", quoted(word));
        }
        line
    }
}

fn quoted(word: &str) -> String {
    shell_words::quote(word).into_owned()
}

/// The error of the kind `code` that codelets of `patterns` (none: of all regions that matter) are missing. `message` gets
/// the command to type.
pub fn codelets(
    store: &Store,
    code: Code,
    patterns: &[&str],
    message: impl FnOnce(&str) -> String,
) -> anyhow::Error {
    let all: String = patterns.iter().map(|p| format!("'{p}' ")).collect();
    let usual = format!("cere capture {all}-- PROGRAM ARGUMENTS");
    missing(code, Maker::of(store, "capture", patterns), &usual, message)
}

/// The error that the store's profile cannot be used; likewise.
pub fn profile(store: &Store, code: Code, message: impl FnOnce(&str) -> String) -> anyhow::Error {
    let usual = "cere profile -- PROGRAM ARGUMENTS";
    missing(code, Maker::of(store, "profile", &[]), usual, message)
}

/// What would mend `error`, or an error above which it stands.
pub fn maker(error: &anyhow::Error) -> Option<&Maker> {
    let found = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<Missing>());
    found?.maker.as_ref()
}

fn missing(
    code: Code,
    maker: Option<Maker>,
    usual: &str,
    message: impl FnOnce(&str) -> String,
) -> anyhow::Error {
    let line = maker.as_ref().map_or_else(|| usual.to_owned(), Maker::line);
    let message = message(&line);
    let above = message.clone();
    cere_catalogue::caused(code, above, Missing { message, maker })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cere_catalogue::codes;

    #[test]
    fn commands_to_type() {
        let here = std::env::current_dir().unwrap();
        let mut maker = Maker {
            arguments: ["capture", "f@*", "--", "./app", "a b"]
                .map(str::to_owned)
                .to_vec(),
            store: here.join(".cere"),
            directory: here,
            runs_alone: true,
        };
        assert_eq!(maker.line(), "cere capture 'f@*' -- ./app 'a b'");
        maker.directory = "/else where".into();
        maker.store = "/s".into();
        assert_eq!(
            maker.line(),
            "cd '/else where' && cere capture --store /s 'f@*' -- ./app 'a b'"
        );
    }

    #[test]
    fn without_a_profile_the_program_is_not_known() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path());
        let error = codelets(&store, codes::E5001, &["f@*"], |line| {
            format!("none: `{line}`")
        });
        assert_eq!(
            error.to_string(),
            "none: `cere capture 'f@*' -- PROGRAM ARGUMENTS`"
        );
        assert_eq!(cere_catalogue::of(&error), Some(codes::E5001));
        assert_eq!(maker(&error), None);
    }
}

//! Programs that csmith generates. They have no undefined behaviour, so the instrumented build has to print what the plain one
//! prints, and every replay has to be exact under every flag.

use crate::outcome::{Finding, Outcome};
use crate::subject::{COMMAND_SECONDS, Subject, keep, limited};
use crate::tools::succeed;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Levels that programs are built at.
pub const LEVELS: [&str; 4] = ["-O0", "-O1", "-O2", "-O3"];
/// Flags that each codelet is replayed under.
pub const FLAGS: [&str; 4] = ["", "-O0", "-O1", "-O3 -march=native"];
/// A set of options for csmith.
#[derive(Debug)]
pub struct Set {
    /// Its name.
    pub name: &'static str,
    /// Options after those of all sets.
    options: &'static [&'static str],
    /// Whether it is C++.
    cpp: bool,
}

/// Keeps programs to a few hundred lines.
const SIZE: [&str; 8] = [
    "--max-funcs",
    "4",
    "--max-block-depth",
    "4",
    "--max-block-size",
    "4",
    "--max-expr-complexity",
    "6",
];

/// The sets, the first for `make test`.
pub const SETS: &[Set] = &[
    set("base", &[]),
    set("large", &["--max-funcs", "10", "--max-block-depth", "5"]),
    set("small", &["--max-funcs", "2", "--max-block-depth", "3"]),
    set(
        "arrays",
        &["--max-array-dim", "3", "--max-array-len-per-dim", "40"],
    ),
    set("builtins", &["--builtins"]),
    set("float", &["--float", "--strict-float"]),
    set(
        "quiet",
        &["--no-volatiles", "--no-bitfields", "--no-packed-struct"],
    ),
    set("pointers", &["--max-pointer-depth", "5"]),
    Set {
        cpp: true,
        ..set("cpp", &["--lang-cpp", "--cpp11"])
    },
];

const fn set(name: &'static str, options: &'static [&'static str]) -> Set {
    Set {
        name,
        options,
        cpp: false,
    }
}

/// A program of csmith, in a directory of its own.
pub struct Program<'a> {
    /// Seed.
    pub seed: u64,
    /// Options.
    pub set: &'static Set,
    /// Codelets that are replayed, at most.
    pub codelets: usize,
    /// Scratch directory.
    pub directory: &'a Path,
}

impl Program<'_> {
    /// Generates it; builds it at `levels`, compares what it prints; captures and replays at the level that the seed chooses.
    pub fn study(&self, levels: &[&'static str]) -> Result<Vec<Finding>> {
        self.generate()?;
        let mut findings = Vec::new();
        for level in levels {
            let subject = self.subject(level);
            let Some(expected) = subject.plain("")? else {
                findings.push(subject.finding(Outcome::TooLong, String::new()));
                return Ok(findings);
            };
            findings.push(subject.compare(&expected)?);
            let same = findings.last().is_some_and(Finding::is_right);
            if *level == self.level() && same {
                let codelets = subject.capture(&expected, &mut findings)?;
                keep(&codelets, self.codelets, rank)?;
                for flags in FLAGS {
                    findings.extend(subject.replay(flags)?);
                }
            }
        }
        Ok(findings)
    }

    /// The level that it is captured at.
    pub fn level(&self) -> &'static str {
        LEVELS[(self.seed % 4) as usize]
    }

    /// With an argument, every other four seeds, a program prints the checksum after each variable.
    fn argument(&self) -> Option<&'static str> {
        (self.seed / 4 % 2 == 1).then_some("1")
    }

    fn source(&self) -> PathBuf {
        let name = if self.set.cpp { "p.cpp" } else { "p.c" };
        self.directory.join(name)
    }

    fn generate(&self) -> Result<()> {
        let mut command = Command::new("csmith");
        command
            .args(["--seed", &self.seed.to_string()])
            .args(SIZE)
            .args(self.set.options)
            .arg("-o")
            .arg(self.source())
            .current_dir(self.directory);
        succeed(&mut limited(&command, COMMAND_SECONDS))
            .context("csmith (Debian: csmith, libcsmith-dev)")?;
        Ok(())
    }

    fn subject(&self, level: &str) -> Subject<'_> {
        let (compiler, source) = (if self.set.cpp { "$CXX" } else { "$CC" }, self.source());
        Subject {
            seed: self.seed,
            flags: level.to_owned(),
            script: format!(
                "{compiler} $FLAGS -w -I/usr/include/csmith {} -o program -lm",
                source.display()
            ),
            runs: vec![vec!["1"], self.argument().into_iter().collect()],
            directory: self.directory,
        }
    }
}

/// A program's own codelets come first, then those of its `main`, then the library's, which all programs have.
fn rank(name: &str) -> usize {
    match name {
        _ if name.starts_with("func_") => 0,
        _ if name.starts_with("main@") => 1,
        _ => 2,
    }
}

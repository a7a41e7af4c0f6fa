//! Compares plain, instrumented and armed builds of programs.

use crate::tools::{cere, output, succeed};
use anyhow::{Context, Result};
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// The levels that each program is built at.
pub const LEVELS: [&str; 4] = ["-O0", "-O1", "-O2", "-O3"];
/// Time limit of a generated program in seconds.
const LIMIT: &str = "60";

/// Compares programs.
pub struct Comparison {
    /// Holds the object that arms every probe of the program that it is linked to.
    shared: TempDir,
}

impl Comparison {
    /// Compiles what all programs share.
    pub fn new() -> Result<Self> {
        let shared = tempfile::tempdir()?;
        let arm = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cere-pass/tests/programs/arm.c");
        let mut command = Command::new("clang-22");
        command.current_dir(&shared);
        succeed(command.args(["-O1", "-c", "-o", "arm.o"]).arg(arm))?;
        Ok(Self { shared })
    }

    /// Builds the program `source` in `directory` with the pass at every level and runs each build dormant and armed. Returns one
    /// line for each run that differs from the plain program.
    pub fn wrong(&self, directory: &Path, source: &Path) -> Result<Vec<String>> {
        let arm = self.shared.path().join("arm.o");
        let lines = LEVELS.iter().enumerate().map(|(number, level)| {
            let (arm, source) = (arm.display(), source.display());
            format!("clang++ -w -fuse-ld=lld {level} {source} {arm} -o instrumented{number}")
        });
        let lines: Vec<String> = lines.collect();
        let mut instrument = cere(directory);
        instrument.args(["instrument", "--all-loops", "--", "sh", "-ec"]);
        succeed(instrument.arg(lines.join("\n")))?;

        // A program behaves the same at all levels. If not, the plain build of the level decides.
        let expected = plain(directory, source, LEVELS[0])?;
        let mut wrong = Vec::new();
        for (number, level) in LEVELS.iter().enumerate() {
            for armed in [false, true] {
                let found = run(&directory.join(format!("instrumented{number}")), armed)?;
                if difference(&expected, &found).is_none() {
                    continue;
                }
                if let Some(how) = difference(&plain(directory, source, level)?, &found) {
                    let state = if armed { "armed" } else { "dormant" };
                    wrong.push(format!("{} {level}, {state}: {how}", source.display()));
                }
            }
        }
        Ok(wrong)
    }
}

/// What the plain build of this level does.
fn plain(directory: &Path, source: &Path, level: &str) -> Result<Output> {
    let mut command = Command::new("clang++-22");
    command.current_dir(directory);
    command.args(["-w", "-fuse-ld=lld", level, "-o", "plain"]);
    succeed(command.arg(source))?;
    run(&directory.join("plain"), false)
}

fn run(program: &Path, armed: bool) -> Result<Output> {
    let mut command = Command::new("timeout");
    command.arg(LIMIT).arg(program);
    if armed {
        command.env("ARM", "1");
    }
    output(&mut command).with_context(|| format!("running {}", program.display()))
}

/// The first difference of two runs.
fn difference(expected: &Output, found: &Output) -> Option<String> {
    let text = |run: &Output| String::from_utf8_lossy(&run.stdout).into_owned();
    let (wanted, printed) = (text(expected), text(found));
    if wanted != printed {
        let mut pairs = wanted.lines().zip(printed.lines());
        return Some(match pairs.find(|(a, b)| a != b) {
            Some((wanted, printed)) => format!("prints {printed:?} instead of {wanted:?}"),
            None => format!(
                "prints {} lines instead of {} and ends with {}",
                printed.lines().count(),
                wanted.lines().count(),
                found.status
            ),
        });
    }
    (expected.status != found.status)
        .then(|| format!("ends with {} instead of {}", found.status, expected.status))
}

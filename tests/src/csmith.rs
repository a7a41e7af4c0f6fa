//! Programs that csmith generates. They have no undefined behaviour, so the instrumented build has to print what the plain one
//! prints, and every replay has to be exact under every flag.

use crate::study::{array, same, string};
use crate::tools::{cere, json, output, succeed, text};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Levels that programs are built at.
pub const LEVELS: [&str; 4] = ["-O0", "-O1", "-O2", "-O3"];
/// Flags that each codelet is replayed under.
pub const FLAGS: [&str; 4] = ["", "-O0", "-O1", "-O3 -march=native"];
/// Seconds that a program may run; csmith's may run forever.
const PROGRAM_SECONDS: u32 = 5;
/// Time limit of a command in seconds, which only a command that hangs reaches.
const COMMAND_SECONDS: u32 = 300;

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
    Set {
        name: "base",
        options: &[],
        cpp: false,
    },
    Set {
        name: "large",
        options: &["--max-funcs", "10", "--max-block-depth", "5"],
        cpp: false,
    },
    Set {
        name: "small",
        options: &["--max-funcs", "2", "--max-block-depth", "3"],
        cpp: false,
    },
    Set {
        name: "arrays",
        options: &["--max-array-dim", "3", "--max-array-len-per-dim", "40"],
        cpp: false,
    },
    Set {
        name: "builtins",
        options: &["--builtins"],
        cpp: false,
    },
    Set {
        name: "float",
        options: &["--float", "--strict-float"],
        cpp: false,
    },
    Set {
        name: "quiet",
        options: &["--no-volatiles", "--no-bitfields", "--no-packed-struct"],
        cpp: false,
    },
    Set {
        name: "pointers",
        options: &["--max-pointer-depth", "5"],
        cpp: false,
    },
    Set {
        name: "cpp",
        options: &["--lang-cpp", "--cpp11"],
        cpp: true,
    },
];

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
    /// The replay failed, or compared nothing.
    Unchecked,
}

impl Outcome {
    /// Whether CERE computed something other than the program.
    pub fn is_wrong(self) -> bool {
        matches!(self, Self::OtherOutput | Self::Different)
    }

    /// Whether the outcome needs no attention.
    pub fn is_right(self) -> bool {
        matches!(self, Self::SameOutput | Self::Exact | Self::TooLong)
    }

    fn of(verdict: &str) -> Result<Self> {
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
    pub level: &'static str,
    /// Region or codelet; empty for a program.
    pub of: String,
    /// Flags of the replay; `None` if it is not a replay.
    pub flags: Option<&'static str>,
    /// The outcome.
    pub outcome: Outcome,
    /// The message or reason.
    pub reason: String,
}

impl Finding {
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
        let flags = self
            .flags
            .map_or(String::new(), |f| format!(" under {f:?}"));
        format!(
            "seed {} {} {}{flags}: {:?}: {}",
            self.seed, self.level, self.of, self.outcome, self.reason
        )
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

/// `command`, killed after so many seconds.
fn limited(command: &Command, seconds: u32) -> Command {
    let mut limited = Command::new("timeout");
    limited
        .args(["-s", "KILL", &seconds.to_string()])
        .arg(command.get_program())
        .args(command.get_args())
        .stdin(std::process::Stdio::null());
    if let Some(directory) = command.get_current_dir() {
        limited.current_dir(directory);
    }
    limited
}

impl Program<'_> {
    /// Generates it; builds it at `levels`, compares what it prints; captures and replays at the level that the seed chooses.
    pub fn study(&self, levels: &[&'static str]) -> Result<Vec<Finding>> {
        self.generate()?;
        let mut findings = Vec::new();
        for level in levels {
            let Some(expected) = self.plain(level)? else {
                findings.push(self.finding(level, Outcome::TooLong, String::new()));
                return Ok(findings);
            };
            let (outcome, reason) = match self.compare(level, &expected) {
                Ok(()) => (Outcome::SameOutput, String::new()),
                Err(error) => (Outcome::OtherOutput, format!("{error:#}")),
            };
            findings.push(self.finding(level, outcome, reason));
            if *level == self.level() && outcome == Outcome::SameOutput {
                self.codelets(&expected, &mut findings)?;
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

    fn finding(&self, level: &'static str, outcome: Outcome, reason: String) -> Finding {
        Finding {
            seed: self.seed,
            level,
            of: String::new(),
            flags: None,
            outcome,
            reason,
        }
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

    fn script(&self, level: &str) -> String {
        let (compiler, source) = (if self.set.cpp { "$CXX" } else { "$CC" }, self.source());
        format!(
            "{compiler} {level} -w -I/usr/include/csmith {} -o program -lm",
            source.display()
        )
    }

    /// The outputs of the plain program: with all checksums, and as it is captured. `None` if it runs too long.
    fn plain(&self, level: &str) -> Result<Option<Runs>> {
        let directory = self.directory.join(format!("plain{level}"));
        std::fs::create_dir_all(&directory)?;
        let mut command = Command::new("sh");
        command
            .args(["-ec", &self.script(level)])
            .env("CC", "clang-22")
            .env("CXX", "clang++-22")
            .current_dir(&directory);
        succeed(&mut command)?;
        let runs = self.runs(&directory)?;
        Ok((!runs.killed()).then_some(runs))
    }

    fn runs(&self, directory: &Path) -> Result<Runs> {
        let run = |argument: Option<&str>| {
            let mut command = Command::new("./program");
            command.args(argument).current_dir(directory);
            output(&mut limited(&command, PROGRAM_SECONDS))
        };
        Ok(Runs {
            all: run(Some("1"))?,
            captured: run(self.argument())?,
        })
    }

    fn compare(&self, level: &str, expected: &Runs) -> Result<()> {
        let directory = self.instrumented(level);
        std::fs::create_dir_all(&directory)?;
        let mut command = cere(&directory);
        let script = self.script(level);
        command.args(["instrument", "--all-loops", "--", "sh", "-ec", &script]);
        succeed(&mut limited(&command, COMMAND_SECONDS))?;
        let found = self.runs(&directory)?;
        same(&expected.all, &found.all, "the instrumented program")?;
        same(
            &expected.captured,
            &found.captured,
            "the instrumented program",
        )
    }

    fn instrumented(&self, level: &str) -> PathBuf {
        self.directory.join(format!("instrumented{level}"))
    }

    /// Captures all regions and replays some.
    fn codelets(&self, expected: &Runs, findings: &mut Vec<Finding>) -> Result<()> {
        let directory = self.instrumented(self.level());
        let mut command = cere(&directory);
        command
            .args(["capture", "--json", "*", "--invocation", "1", "--runs", "1"])
            .args(["--", "./program"])
            .args(self.argument());
        let (captured, run) = json(&mut limited(&command, COMMAND_SECONDS))?;
        // With --json the program's output goes to standard error, among the command's own lines.
        let shown = String::from_utf8_lossy(&run.stderr);
        let printed = String::from_utf8_lossy(&expected.captured.stdout);
        if !printed.lines().all(|line| shown.contains(line)) {
            let reason = format!("the captured run printed something else\n{}", text(&run));
            findings.push(self.finding(self.level(), Outcome::OtherOutput, reason));
        }
        for skipped in array(&captured["skipped"], "skipped")? {
            let reason = string(skipped, "reason")?;
            if !reason.contains("never ran") {
                findings.push(Finding {
                    of: string(skipped, "region")?.to_owned(),
                    ..self.finding(self.level(), Outcome::Refused, reason.to_owned())
                });
            }
        }
        self.keep_some(array(&captured["codelets"], "codelets")?)?;
        for flags in FLAGS {
            self.replay(&directory, flags, findings)?;
        }
        Ok(())
    }

    /// Leaves the codelets that are replayed: the program's own first, then those of its `main`, then the library's, which
    /// all programs have.
    fn keep_some(&self, codelets: &[Value]) -> Result<()> {
        let mut named = Vec::new();
        for codelet in codelets {
            let name = string(codelet, "name")?;
            let rank = match name {
                _ if name.starts_with("func_") => 0,
                _ if name.starts_with("main@") => 1,
                _ => 2,
            };
            named.push((rank, name, string(codelet, "file")?));
        }
        named.sort();
        for (_, _, file) in named.iter().skip(self.codelets) {
            std::fs::remove_file(file).with_context(|| format!("cannot remove {file}"))?;
        }
        Ok(())
    }

    fn replay(
        &self,
        directory: &Path,
        flags: &'static str,
        findings: &mut Vec<Finding>,
    ) -> Result<()> {
        let mut command = cere(directory);
        command
            .args(["replay", "--json", "--reps", "1", "*", "--flags", flags])
            .args(["--warmup", "working-set", "--timeout", "60"]);
        let (results, run) = json(&mut limited(&command, COMMAND_SECONDS))?;
        let results = match &results {
            Value::Array(all) => all.clone(),
            one => vec![one.clone()],
        };
        ensure!(!results.is_empty(), "no replays: {}", text(&run));
        for result in results {
            findings.push(Finding {
                of: string(&result, "codelet")?.to_owned(),
                flags: Some(flags),
                ..self.finding(
                    self.level(),
                    Outcome::of(string(&result, "verdict")?)?,
                    string(&result, "reason")?.to_owned(),
                )
            });
        }
        Ok(())
    }
}

/// Runs of one build.
struct Runs {
    /// With all checksums printed.
    all: Output,
    /// As it is captured.
    captured: Output,
}

impl Runs {
    fn killed(&self) -> bool {
        [&self.all, &self.captured]
            .iter()
            .any(|run| run.status.code().is_none())
    }
}

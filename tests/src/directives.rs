//! The directives in the comments of a test program. A line holds one, after `//@ ` (`!@ ` in Fortran):
//!
//! | directive | meaning | default |
//! |---|---|---|
//! | `levels: -O0 ; -O2 -g` | flags of the builds, separated by `;` | [`LEVELS`] |
//! | `files: b.c c.s` | more sources, from the program's directory | none |
//! | `build: shell commands` | instead of the default compile and link; may use `$CC $CXX $FC $FLAGS $DIR`; makes `./program` | |
//! | `args: 1 2` | arguments of the program | none |
//! | `env: A=b` | environment of the program | none |
//! | `teams: 1 2` | all of it once with each of these numbers of OpenMP threads | not set |
//! | `status: 3` | exit status of the program | 0 |
//! | `capture: GLOB` | regions to capture; may be given several times | all that ran |
//! | `invocation: 1,3` | invocations to capture | 1 |
//! | `refused: GLOB ~ text` | the capture of these regions is refused with a reason that contains `text` | |
//! | `loop-refused: GLOB ~ text` | these loops are not outlined, with that reason | |
//! | `short-loops: refused` | loops that are too short for a probe stay in place; all are outlined if it is missing | |
//! | `functions: GLOB` | these functions are regions as a whole; may be given several times | none |
//! | `regions: 3` | number of outlined regions | not checked |
//! | `codelets: 3` | minimum number of codelets | 1 |
//! | `other-code: GLOB ~ why` | the machine code of these is not identical, for this reason | |
//! | `threads: 1 2 8` | every codelet is also replayed with these numbers of threads, and exact | none |
//! | `flags: -O0 ; -Os` | every codelet is also replayed under these flags, and exact | none |
//! | `unflipped: why` | no bits are flipped in its codelets' states at exit, for this reason | |
//! | `under: FLAGS ~ GLOB ~ VERDICT ~ text` | under these flags, these codelets may have that verdict (`unchecked` if refused), with `text` in the reason; FLAGS `build` means the build's own | |

use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};

/// Builds that a program without `levels` gets.
pub const LEVELS: [&str; 3] = ["-O0 -g", "-O2", "-O3 -g"];

/// Stands in `under` for the flags of the build itself.
pub const BUILD: &str = "build";

/// A glob for regions and a text.
#[derive(Debug, Clone)]
pub struct Expectation {
    /// Regions.
    pub glob: String,
    /// A part of the reason.
    pub text: String,
}

/// A verdict that a replay under other flags may have.
#[derive(Debug, Clone)]
pub struct Under {
    /// The flags.
    pub flags: String,
    /// Codelets.
    pub glob: String,
    /// The verdict as JSON spells it.
    pub verdict: String,
    /// A part of the reason.
    pub text: String,
}

/// The directives of a program.
#[derive(Debug, Clone, Default)]
pub struct Directives {
    /// Flags of each build.
    pub levels: Vec<String>,
    /// Further sources.
    pub files: Vec<String>,
    /// Shell commands that build.
    pub build: Option<String>,
    /// Arguments.
    pub args: Vec<String>,
    /// Environment.
    pub env: Vec<(String, String)>,
    /// Numbers of OpenMP threads that it is captured with.
    pub teams: Vec<u32>,
    /// Exit status.
    pub status: i32,
    /// Globs of regions to capture.
    pub capture: Vec<String>,
    /// Invocations.
    pub invocation: Option<String>,
    /// Captures that are refused.
    pub refused: Vec<Expectation>,
    /// Loops that are refused.
    pub loop_refused: Vec<Expectation>,
    /// Whether loops that are too short for a probe stay in place.
    pub short_loops: bool,
    /// Names and globs of functions that are regions as a whole.
    pub functions: Vec<String>,
    /// Number of outlined regions.
    pub regions: Option<usize>,
    /// Minimum number of codelets.
    pub codelets: usize,
    /// Codelets whose code differs.
    pub other_code: Vec<Expectation>,
    /// Further numbers of threads of replays.
    pub threads: Vec<u32>,
    /// Further flags of replays.
    pub flags: Vec<String>,
    /// Verdicts that replays under them may have.
    pub under: Vec<Under>,
    /// Why no bits are flipped in states at exit, if none are.
    pub unflipped: Option<String>,
}

impl Directives {
    /// Reads those of the program at `path`.
    pub fn read(path: &Path) -> Result<Self> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        let mut found = Self {
            codelets: 1,
            ..Self::default()
        };
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            let Some(rest) = line
                .strip_prefix("//@ ")
                .or_else(|| line.strip_prefix("!@ "))
            else {
                continue;
            };
            found
                .add(rest)
                .with_context(|| format!("{}:{}", path.display(), number + 1))?;
        }
        if found.levels.is_empty() {
            found.levels = LEVELS.map(str::to_owned).to_vec();
        }
        Ok(found)
    }

    fn add(&mut self, directive: &str) -> Result<()> {
        let (name, value) = directive
            .split_once(':')
            .with_context(|| format!("not a directive: {directive}"))?;
        let value = value.trim();
        let words = || value.split_whitespace().map(str::to_owned);
        match name {
            "levels" => self
                .levels
                .extend(value.split(';').map(|l| l.trim().to_owned())),
            "files" => self.files.extend(words()),
            "build" => self.build = Some(value.to_owned()),
            "args" => self.args.extend(words()),
            "env" => {
                let (key, value) = value.split_once('=').context("env wants A=b")?;
                self.env.push((key.to_owned(), value.to_owned()));
            }
            "status" => self.status = value.parse()?,
            "capture" => self.capture.push(value.to_owned()),
            "invocation" => self.invocation = Some(value.to_owned()),
            "refused" => self.refused.push(expectation(value)?),
            "loop-refused" => self.loop_refused.push(expectation(value)?),
            "short-loops" if value == "refused" => self.short_loops = true,
            "functions" => self.functions.push(value.to_owned()),
            "regions" => self.regions = Some(value.parse()?),
            "codelets" => self.codelets = value.parse()?,
            "threads" => self.threads = numbers(value)?,
            "teams" => self.teams = numbers(value)?,
            "other-code" => self.other_code.push(expectation(value)?),
            "flags" => self
                .flags
                .extend(value.split(';').map(|f| f.trim().to_owned())),
            "under" => self.under.push(under(value)?),
            "unflipped" => self.unflipped = Some(value.to_owned()),
            other => bail!("unknown directive {other}"),
        }
        Ok(())
    }
}

fn numbers(value: &str) -> Result<Vec<u32>> {
    let words = value.split_whitespace();
    Ok(words.map(str::parse).collect::<Result<_, _>>()?)
}

fn expectation(value: &str) -> Result<Expectation> {
    let (glob, text) = value.split_once('~').context("wants GLOB ~ text")?;
    Ok(Expectation {
        glob: glob.trim().to_owned(),
        text: text.trim().to_owned(),
    })
}

fn under(value: &str) -> Result<Under> {
    let parts: Vec<&str> = value.split('~').map(str::trim).collect();
    let [flags, glob, verdict, text] = parts[..] else {
        bail!("wants FLAGS ~ GLOB ~ VERDICT ~ text");
    };
    ensure!(
        ["exact", "partly", "tolerance", "different", "unchecked"].contains(&verdict),
        "no verdict: {verdict}"
    );
    let owned = str::to_owned;
    Ok(Under {
        flags: owned(flags),
        glob: owned(glob),
        verdict: owned(verdict),
        text: owned(text),
    })
}

/// Whether `name` matches `glob` (`*` stands for anything).
pub fn matches(glob: &str, name: &str) -> bool {
    match glob.split_once('*') {
        None => glob == name,
        Some((head, tail)) => name.strip_prefix(head).is_some_and(|rest| {
            rest.char_indices()
                .map(|(i, _)| i)
                .chain([rest.len()])
                .any(|i| matches(tail, &rest[i..]))
        }),
    }
}

/// The programs of a directory, sorted. Files in its subdirectories are parts of programs.
pub fn programs(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let extension = path
            .extension()
            .and_then(|e| e.to_str())
            .unwrap_or_default();
        if ["c", "cpp", "f90", "f"].contains(&extension) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs() {
        assert!(matches("f@a.c:*", "f@a.c:12"));
        assert!(matches("*", "anything"));
        assert!(!matches("f@*", "g@a.c:1"));
        assert!(matches("*a*c", "xaybc"));
    }

    #[test]
    fn an_unknown_directive_is_an_error() {
        assert!(Directives::default().add("levle: -O2").is_err());
    }
}

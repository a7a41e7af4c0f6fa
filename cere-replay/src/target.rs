//! Another architecture than that of the capture, and what was found there.

use cere_arch::target::{Facts, Target};
use cere_format::replay::Verdict;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Where to replay, when that is not the architecture of the capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cross {
    /// The architecture that the code is made for.
    pub target: Target,
    /// What runs its programs; none: this machine does.
    pub emulator: Option<Emulator>,
    /// Directories of the target's libraries, before the usual ones.
    pub libraries: Vec<PathBuf>,
    /// Whether operations stay apart as captured.
    pub split: bool,
}

/// A program that runs those of another architecture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emulator {
    /// The program, which takes `-L ROOT`.
    pub program: PathBuf,
    /// What it takes before that.
    pub arguments: Vec<String>,
    /// The directory that stands for `/` when the target's loader and libraries are looked for.
    pub root: PathBuf,
}

/// What is to be known of a replay on another architecture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crossed {
    /// The target, as GNU names it.
    pub target: String,
    /// The architecture of the capture.
    pub from: String,
    /// The emulator's name; then there are no times.
    pub emulator: Option<String>,
    /// The verdict on the code as the target's compiler makes it, which may contract operations; none if it is the same code.
    pub contracted: Option<Verdict>,
    /// Why, for people.
    pub contracted_reason: Option<String>,
}

/// Beginnings of flags of a build that say what processor it is for, and of those that the front end alone reads.
const OF_PROCESSOR: [&str; 6] = [
    "-m",
    "--target",
    "-fcf-protection",
    "-fveclib",
    "-fstack-clash-protection",
    "-fno-plt",
];

impl Cross {
    /// On this machine, with its own libraries.
    #[must_use]
    pub fn here() -> Self {
        Self {
            target: cere_arch::HERE,
            emulator: None,
            libraries: Vec::new(),
            split: true,
        }
    }

    /// What is known of the target.
    pub(crate) fn facts(&self) -> &'static Facts {
        self.target.facts()
    }

    /// A unit's code generation flags for the target: the build's, but for those of its processor.
    pub(crate) fn codegen(&self, flags: &[String]) -> Vec<String> {
        let mut kept = Vec::new();
        let mut rest = flags.iter();
        while let Some(flag) = rest.next() {
            match flag.as_str() {
                "-target" => drop(rest.next()),
                // The back end's own options, with their values.
                "-mllvm" | "-Xclang" => {
                    let value = rest.next();
                    let of_target = |v: &&String| v.contains("x86") || v.starts_with("-target");
                    if let Some(value) = value.filter(|v| !of_target(v)) {
                        kept.extend([flag.clone(), value.clone()]);
                    }
                }
                text if text.starts_with("-mllvm=") && !text.contains("x86") => {
                    kept.push(flag.clone());
                }
                text if OF_PROCESSOR.iter().any(|start| text.starts_with(start)) => {}
                _ => kept.push(flag.clone()),
            }
        }
        kept.push(self.flag());
        kept.extend(self.facts().flags.iter().map(|f| (*f).to_owned()));
        kept
    }

    /// The flag that names the target to a compiler.
    pub(crate) fn flag(&self) -> String {
        format!("--target={}", self.facts().triple)
    }

    /// Directories where the target's libraries are looked for.
    pub(crate) fn directories(&self) -> Vec<PathBuf> {
        let own = self.libraries.iter().cloned();
        let root = self.emulator.iter().map(|e| e.root.join("lib"));
        own.chain(root).chain(self.target.directories()).collect()
    }
}

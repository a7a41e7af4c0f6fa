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
    /// The verdict on the code as the target's compiler makes it, which may contract operations; none if it is the same code. The
    /// times are of that code if its result is the original's within the tolerance, else of the one with operations apart.
    pub contracted: Option<Verdict>,
    /// Why, for people.
    pub contracted_reason: Option<String>,
}

impl Crossed {
    /// The verdict on the code as the target's compiler makes it, and why, if the times are of that code.
    #[must_use]
    pub fn of_timed(&self) -> Option<(Verdict, &str)> {
        let verdict = self.contracted.filter(|verdict| verdict.is_right())?;
        Some((
            verdict,
            self.contracted_reason.as_deref().unwrap_or_default(),
        ))
    }
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

/// Beginnings of options of the front end itself that name a processor in a value.
const PROCESSOR_NAMED: [&str; 3] = ["-target-", "-tune-cpu", "-triple"];

/// What is kept of an option of the front end itself, whose `-Xclang` was read; a value comes behind another `-Xclang`.
fn of_front_end(rest: &mut std::slice::Iter<String>) -> Vec<String> {
    const AGAIN: &str = "-Xclang";
    let Some(option) = rest.next() else {
        return Vec::new();
    };
    let names = PROCESSOR_NAMED
        .iter()
        .any(|start| option.starts_with(start));
    let has_value = option == "-mllvm" || names && !option.contains('=');
    let value = match rest.as_slice() {
        [again, value, ..] if has_value && again == AGAIN => {
            rest.nth(1);
            Some(value)
        }
        _ => None,
    };
    let of_processor = match value {
        Some(value) if option == "-mllvm" => value.contains("x86"),
        _ => names || option.starts_with("-m"),
    };
    let words = std::iter::once(option)
        .chain(value)
        .filter(|_| !of_processor);
    words
        .flat_map(|word| [AGAIN.to_owned(), word.clone()])
        .collect()
}

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
                "-mllvm" => {
                    if let Some(value) = rest.next().filter(|value| !value.contains("x86")) {
                        kept.extend([flag.clone(), value.clone()]);
                    }
                }
                "-Xclang" => kept.extend(of_front_end(&mut rest)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_s_flags_go_with_their_values() {
        let flags = "-O2 -march=native -Xclang -target-feature -Xclang +avx2 -Xclang -triple -Xclang x86_64-pc-linux-gnu -mllvm -x86-x \
                     -Xclang -mllvm -Xclang -x86-y -Xclang -mllvm -Xclang -slp-threshold=5 -Xclang -disable-O0-optnone -mllvm -unroll-count=2 \
                     -Xclang -mprefer-vector-width=256 -fno-builtin";
        let flags: Vec<String> = flags.split_whitespace().map(str::to_owned).collect();
        let cross = Cross {
            target: Target::Aarch64,
            ..Cross::here()
        };
        let kept = cross.codegen(&flags).join(" ");
        assert!(
            kept.starts_with(
                "-O2 -Xclang -mllvm -Xclang -slp-threshold=5 -Xclang -disable-O0-optnone -mllvm -unroll-count=2 -fno-builtin --target=aarch64"
            ),
            "{kept}"
        );
    }
}

//! Replays on another architecture than the one of the capture: kept IR is made that of the target ([`CrossPlan`]), compiled and
//! linked for it, and run there: on such a machine, or by an emulator, which has no time to tell.
//!
//! The captured processor computed a product and a sum apart, unless it was built for one that contracts them; other compilers
//! contract what the source allows. So code is made twice: with the operations as captured, for the verdict, and as the target's
//! compiler makes it, for the time.

use crate::{Options, Replay, ReplayError, judge, objects, run};
use cere_arch::target::{Facts, Target};
use cere_format::abi::{INVOKE_SYMBOL_PREFIX, OUTLINED_SYMBOL_PREFIX};
use cere_format::build::{BUILD_VERSION, CrossPlan, ENV_CROSS};
use cere_format::package::{Manifest, PackageUnit};
use cere_format::replay::Verdict;
use cere_toolchain::command::{Line, hash, run as run_line};
use cere_toolchain::unit::{OPT, tools};
use cere_toolchain::{CompileError, cached, io, stamp};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

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

/// The IR of a unit for the target, from the cache.
pub(crate) fn ir(
    ir: &Path,
    manifest: &Manifest,
    unit: &PackageUnit,
    cross: &Cross,
    options: &Options,
) -> Result<PathBuf, ReplayError> {
    let with_ir = manifest
        .functions
        .iter()
        .filter(|f| f.ir && !f.other_image)
        .map(|f| f.name.clone());
    let region = manifest.region.index;
    let own = [INVOKE_SYMBOL_PREFIX, OUTLINED_SYMBOL_PREFIX];
    let plan = CrossPlan {
        version: BUILD_VERSION,
        triple: cross.facts().triple.to_owned(),
        layout: cross.facts().layout.to_owned(),
        trap: cross.facts().trap.to_owned(),
        split: cross.split,
        with_ir: with_ir.collect(),
        roots: own.iter().map(|p| format!("{p}{region}")).collect(),
    };
    let text = serde_json::to_vec(&plan).map_err(ReplayError::Json)?;
    let content = std::fs::read(ir).map_err(io("read", ir))?;
    let key = hash(&[&content, &stamp(&options.plugin)?, &text, &tools(&[])?]);
    let made = cached::get(&options.cache, &format!("{key}.cross.bc"), |made| {
        let file = made.with_file_name("cross.json");
        std::fs::write(&file, &text).map_err(io("write", &file))?;
        let line = Line::new(OPT)
            .confined(&options.settings.sandbox)
            .variable(ENV_CROSS, &file)
            .reads(&options.plugin)
            .arg(format!("-load-pass-plugin={}", options.plugin.display()))
            .arg("-passes=cere-cross")
            .path(ir)
            .arg("-o")
            .output(made);
        run_line(&line, &unit.source).map(drop)
    });
    made.map_err(|error| refused(error, manifest, cross))
}

/// The pass's word that a function cannot run on the target is an answer, not a compiler's failure.
fn refused(error: CompileError, manifest: &Manifest, cross: &Cross) -> ReplayError {
    let marker = format!(" cannot run on {}: ", cross.facts().triple);
    let why = match &error {
        CompileError::Compile { message, .. } => message
            .lines()
            .find_map(|line| line.split_once(&marker))
            .map(|(_, why)| why.to_owned()),
        _ => None,
    };
    match why {
        Some(why) => ReplayError::Crossing {
            codelet: manifest.name.clone(),
            target: cross.target.to_string(),
            why,
        },
        None => error.into(),
    }
}

/// Builds for the target and runs there, with operations as captured and as the target's compiler makes them.
pub(crate) fn replay(
    package: &Path,
    manifest: &Manifest,
    cross: &Cross,
    options: &Options,
) -> Result<Replay, ReplayError> {
    fits(manifest, cross, options)?;
    let with = |split: bool| {
        let mut options = options.clone();
        options.settings.cross = Some(Cross {
            split,
            ..cross.clone()
        });
        options
    };
    let (apart, together) = (with(true), with(false));
    let compiled = [&apart, &together].map(|options| objects::compile(package, manifest, options));
    let [first, second] = compiled;
    let (first, second) = (first?, second?);
    let same = first.code()? == second.code()?;
    let built = first.link(package, manifest, &apart)?;
    let mut judged = run::run(package, manifest, &built, &apart)?;
    judge(package, manifest, &built, &mut judged, &apart)?;
    let mut crossed = Crossed {
        target: cross.target.to_string(),
        from: manifest.machine.architecture.clone(),
        emulator: cross.emulator.as_ref().map(|e| {
            let name = e.program.file_name().unwrap_or(e.program.as_os_str());
            name.to_string_lossy().into_owned()
        }),
        contracted: None,
        contracted_reason: None,
    };
    let untimed = cross.emulator.is_some();
    if same {
        judged.crossed = Some(crossed);
        return Ok(told(judged, untimed));
    }
    let built = second.link(package, manifest, &together)?;
    let mut timed = run::run(package, manifest, &built, &together)?;
    judge(package, manifest, &built, &mut timed, &together)?;
    crossed.contracted = Some(timed.verdict);
    crossed.contracted_reason = Some(timed.reason);
    let replay = Replay {
        verdict: judged.verdict,
        reason: judged.reason,
        comparison: judged.comparison,
        left: judged.left,
        repeatable: judged.repeatable,
        crossed: Some(crossed),
        ..timed
    };
    Ok(told(replay, untimed))
}

/// What may be said of a replay: of the emulator's time nothing.
fn told(replay: Replay, untimed: bool) -> Replay {
    match untimed {
        false => replay,
        true => Replay {
            cycles: Vec::new(),
            cycles_min: 0,
            cycles_median: 0,
            seconds_min: 0.0,
            seconds_median: 0.0,
            seconds_low: 0.0,
            seconds_high: 0.0,
            confidence: 0.0,
            spread: 0.0,
            ..replay
        },
    }
}

/// Refuses what cannot be replayed on the target whatever its code is.
fn fits(manifest: &Manifest, cross: &Cross, options: &Options) -> Result<(), ReplayError> {
    let refuse = |why: &str| {
        Err(ReplayError::Crossing {
            codelet: manifest.name.clone(),
            target: cross.target.to_string(),
            why: why.to_owned(),
        })
    };
    if options.settings.sandbox.is_sealed() {
        return refuse(
            "nobody has read its code, and what it may do is not watched on another architecture: replay it where it was captured",
        );
    }
    let Some(emulator) = &cross.emulator else {
        return Ok(());
    };
    let loader = cross.facts().loader.trim_start_matches('/');
    if !emulator.root.join(loader).exists() {
        return Err(ReplayError::NoSystem {
            target: cross.target.to_string(),
            root: emulator.root.clone(),
            loader: cross.facts().loader.to_owned(),
        });
    }
    Ok(())
}

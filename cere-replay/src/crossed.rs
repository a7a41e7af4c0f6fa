//! Replays on another architecture than the one of the capture: kept IR is made that of the target ([`CrossPlan`]), compiled and
//! linked for it, and run there: on such a machine, or by an emulator, which has no time to tell.
//!
//! The captured processor computed a product and a sum apart, unless it was built for one that contracts them; other compilers
//! contract what the source allows. So code is made twice: with the operations as captured, for the verdict, and as the target's
//! compiler makes it, for the time. If that one's result is not the original's, the time is that of the first.

use crate::target::{Cross, Crossed};
use crate::{Options, Replay, ReplayError, judge, objects, run};
use cere_format::package::Manifest;
use std::path::Path;

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
        options.keep = None;
        options.settings.cross = Some(Cross {
            split,
            ..cross.clone()
        });
        options
    };
    let (apart, mut together) = (with(true), with(false));
    let kept = Options {
        keep: options.keep.clone(),
        ..apart.clone()
    };
    together.keep = options.keep.clone();
    let compiled = [&apart, &together].map(|options| objects::compile(package, manifest, options));
    let [first, second] = compiled;
    let (first, second) = (first?, second?);
    let same = first.code()? == second.code()?;
    // What is kept is the code that would be timed.
    let built = first.link(package, manifest, if same { &kept } else { &apart })?;
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
    if !timed.verdict.is_right() {
        if kept.keep.is_some() {
            first.link(package, manifest, &kept)?;
        }
        judged.crossed = Some(crossed);
        return Ok(told(judged, untimed));
    }
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

//! The plan of a replay, which its executable reads.

use crate::{Options, ReplayError};
use cere_format::machine;
use cere_format::package::Manifest;
use cere_format::replay::{REPLAY_VERSION, Repetitions, ReplayPlan, Unset, Warmup};
use std::path::PathBuf;

/// Runs in an emulator: as many as show whether all end alike.
const EMULATED: u32 = 3;

/// The warm-up that a replay of this package uses with a team of so many threads (none: as when it was captured), and a
/// sentence if it is another than by default. What the trace of one thread leaves to several is not known: there a run over
/// itself leaves to each what it uses.
pub fn warmup(
    manifest: &Manifest,
    wanted: Option<Warmup>,
    team: Option<u32>,
) -> Result<(Warmup, Option<String>), ReplayError> {
    match (wanted, &manifest.trace) {
        (None, _) if threads(manifest, team).is_some_and(|n| n > 1) && of_one(manifest) => {
            Ok((Warmup::WorkingSet, None))
        }
        (Some(Warmup::PageTrace), None) => Err(ReplayError::NoTrace(manifest.name.clone())),
        (Some(wanted), _) => Ok((wanted, None)),
        (None, None) => Ok((
            Warmup::WorkingSet,
            Some(
                "the package has no page trace: warmed up by a run over itself (working-set)"
                    .to_owned(),
            ),
        )),
        (None, Some(trace)) if trace.pages == 0 && trace.cut.is_some() => Ok((
            Warmup::WorkingSet,
            trace.cut.as_ref().map(|why| {
                format!(
                    "the page trace is empty ({why}): warmed up by a run over itself (working-set)"
                )
            }),
        )),
        (None, Some(trace)) => Ok((
            Warmup::PageTrace,
            trace
                .cut
                .as_ref()
                .map(|why| format!("the page trace has a gap: {why}")),
        )),
    }
}

/// Whether it was captured with one thread.
fn of_one(manifest: &Manifest) -> bool {
    manifest.openmp.as_ref().is_none_or(|o| o.threads == 1)
}

/// Threads of a team in a replay: as asked for, else as when the codelet was captured; none without OpenMP.
pub fn threads(manifest: &Manifest, wanted: Option<u32>) -> Option<u32> {
    let captured = manifest.openmp.as_ref()?.threads;
    Some(wanted.unwrap_or(captured))
}

/// The plan, with `package` and `outcome` as the executable is to see them.
pub fn plan(
    package: PathBuf,
    outcome: PathBuf,
    warmup: Warmup,
    manifest: &Manifest,
    options: &Options,
) -> ReplayPlan {
    // What emulators lack, or do not tell.
    let emulated = options
        .settings
        .cross
        .as_ref()
        .is_some_and(|cross| cross.emulator.is_some());
    ReplayPlan {
        version: REPLAY_VERSION,
        package,
        outcome,
        warmup,
        survival_ns: None,
        operands: Vec::new(),
        caches: machine::corrections().to_vec(),
        repetitions: match emulated {
            true => Repetitions::exactly(EMULATED),
            false => options.settings.repetitions,
        },
        compare: options.settings.compare,
        threads: threads(manifest, options.settings.team.threads),
        insist: options.settings.team.threads.is_some(),
        kept: false,
        stores: None,
        guard: options.settings.sandbox.guard().filter(|_| !emulated),
        sealed: options.settings.sandbox.is_sealed(),
        count: None,
        counters: Vec::new(),
        energy: None,
        unset: Unset::default(),
        untrained: false,
        report: false,
        memory: options.memory.clone(),
    }
}

//! Whether what differs is rounding.

use crate::{Built, Code, Options, Replay, ReplayError, objects, plan, run, unset};
use cere_format::package::Manifest;
use cere_format::replay::{Comparison, Repetitions, Warmup};
use std::path::Path;
use std::time::Duration;

/// Seconds of repetitions with reported stores, where threads make the differences vary.
const TYPED_SECONDS: f64 = 5.0;

/// The time limit of a run of code that reports its stores: so many seconds, and so many times the region's time.
const TYPED_LIMIT: (f64, f64) = (60.0, 60.0);

/// How long such a run may take of a region of `seconds`.
fn typed_limit(seconds: f64, options: &Options) -> Duration {
    let limit = TYPED_LIMIT.0 + TYPED_LIMIT.1 * seconds;
    let limit = Duration::try_from_secs_f64(limit.ceil()).unwrap_or(Duration::MAX);
    options
        .settings
        .timeout
        .map_or(limit, |most| limit.min(most))
}

/// Whether the state that a replay ended in can be the original's but for rounding within the tolerance; [`judge`] finds out
/// whether it is.
pub fn may_be_rounding(replay: &Replay, options: &Options) -> bool {
    let within = |c: &Comparison| options.settings.tolerance.holds(c);
    run::may_be_floating(replay, false) && replay.comparison.as_ref().is_some_and(within)
}

/// Decides, with code that reports its stores, whether what differs is rounding, if it can be.
pub fn judge(
    package: &Path,
    manifest: &Manifest,
    built: &Built,
    replay: &mut Replay,
    options: &Options,
) -> Result<(), ReplayError> {
    judge_rounding(package, manifest, built, replay, options)?;
    unset::judge(package, manifest, built, replay, options)?;
    run::has_enough(replay, options)
}

fn judge_rounding(
    package: &Path,
    manifest: &Manifest,
    built: &Built,
    replay: &mut Replay,
    options: &Options,
) -> Result<(), ReplayError> {
    // The code in vivo computes what was computed in vivo: whatever differs has another cause than rounding.
    let captured = manifest.openmp.as_ref().is_some_and(|o| o.threads > 1);
    let several =
        captured || plan::threads(manifest, options.settings.team.threads).is_some_and(|n| n > 1);
    if !(built.other_code || several) || !run::may_be_floating(replay, several) {
        return Ok(());
    }
    // Of threads that run at the same time what differs is not the same in each run, and may not differ in a few.
    let together = plan::threads(manifest, options.settings.team.threads).is_some_and(|n| n > 1);
    let many = (2.0 * TYPED_SECONDS / replay.seconds_median.max(1e-9)).clamp(10.0, 500.0) as u32;
    let runs = match together || !replay.repeatable {
        true => &[10, many][..],
        false => &[1],
    };
    let warmup = match several {
        true => Warmup::WorkingSet,
        false => Warmup::Cold,
    };
    let limit = typed_limit(replay.seconds_median, options);
    let mut once = Options {
        keep: None,
        ..options.clone()
    };
    once.settings.warmup = Some(warmup);
    once.settings.operands.clear();
    once.settings.energy = None;
    once.settings.timeout = Some(limit);
    // A short run needs no message.
    if replay.seconds_median > 0.1 {
        options.events.note(format!(
            "{}: words differ that may be floating-point: running code that reports its stores to find out, {} s at most",
            replay.codelet,
            limit.as_secs()
        ));
    }
    let built =
        objects::objects(package, manifest, Code::Typed, &once)?.link(package, manifest, &once)?;
    for runs in runs {
        once.settings.repetitions = Repetitions {
            seconds: TYPED_SECONDS,
            ..Repetitions::exactly(*runs)
        };
        let reported = match run::run(package, manifest, &built, &once) {
            Ok(replay) => replay.comparison,
            Err(ReplayError::Late { seconds, .. }) => {
                run::undecided(replay, seconds);
                break;
            }
            Err(other) => return Err(other),
        };
        let differs = reported.as_ref().is_some_and(|c| c.different_words > 0);
        run::judge_again(replay, reported, options, several);
        if differs {
            break;
        }
    }
    Ok(())
}

//! The time of a codelet: replays of it, on the reference and on every other machine.

use crate::subset::measurement::Round;
use anyhow::{Context, Result};
use cere_catalogue::bail;
use cere_measure::{Replays, Settings, fast_seconds};
use cere_replay::{Built, Replay};
use cere_store::state;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Where the code of a replay comes from.
#[derive(Debug, Clone, Copy)]
pub enum Code<'a> {
    /// Compiled here.
    Compiled,
    /// Linked on another machine.
    Prebuilt(&'a Built),
}

/// One round of the codelet in `file`. `in_turns`: the code as built is replayed before it. A result that is not the original's is
/// an error, as its time is that of something else; rounding, within the tolerances, is not: libraries choose their code by the
/// processor.
pub fn round(
    replays: &Replays,
    settings: &Settings,
    file: &Path,
    code: Code,
    in_turns: bool,
) -> Result<Round> {
    let built = match in_turns {
        false => None,
        true => {
            let as_built = Settings {
                flags: Vec::new(),
                passes: None,
                ..settings.clone()
            };
            Some(seconds(&once(replays, &as_built, file, code)?)?)
        }
    };
    Ok(Round {
        seconds: seconds(&once(replays, settings, file, code)?)?,
        built,
    })
}

fn once(replays: &Replays, settings: &Settings, file: &Path, code: Code) -> Result<Replay> {
    match code {
        Code::Compiled => Ok(replays.replay_unrecorded(settings, file, None)?.0?),
        Code::Prebuilt(built) => replays.replay_built(settings, file, built),
    }
}

fn seconds(replay: &Replay) -> Result<f64> {
    if !replay.verdict.is_right() {
        bail!(
            E6325,
            "the replay's result is {}: {}",
            replay.verdict.name(),
            replay.reason
        );
    }
    let seconds = fast_seconds(replay);
    if seconds <= 0.0 {
        bail!(
            E6403,
            "its invocations are too short to be timed one by one"
        );
    }
    Ok(seconds)
}

/// Reference times kept in a store's cache.
#[derive(Serialize, Deserialize)]
struct Kept {
    seconds: Vec<f64>,
}

/// The rounds on this machine that `cache` has of a codelet.
pub fn kept(cache: &Path, key: &str) -> Vec<f64> {
    state::read_json::<Kept>(&path(cache, key)).map_or(Vec::new(), |kept| kept.seconds)
}

/// Keeps them.
pub fn keep(cache: &Path, key: &str, seconds: &[f64]) -> Result<()> {
    let kept = Kept {
        seconds: seconds.to_vec(),
    };
    state::write_json(&path(cache, key), &kept).context("the times cannot be kept")
}

/// What identifies the times of a codelet here.
pub fn key(settings: &Settings, sha256: &str) -> String {
    state::hash(&format!(
        "{}\0{sha256}\0{:?}\0{:?}\0{:?}\0{:?}\0{}",
        env!("CARGO_PKG_VERSION"),
        settings.flags,
        settings.warmup,
        settings.repetitions,
        settings.team,
        cere_store::results::this_machine().id
    ))
}

fn path(cache: &Path, key: &str) -> PathBuf {
    cache.join("times").join(format!("{key}.json"))
}

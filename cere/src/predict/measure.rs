//! The program run with each number of threads.

use super::model::{Plan, Prediction};
use crate::check::InVivo;
use crate::profile::middle;
use crate::progress;
use crate::replay::Placement;
use anyhow::{Context, Result};
use cere_format::profile::{Profile, RegionKey};
use cere_format::store::Store;

/// Runs with each number of threads, in alternation; the middle one counts.
const RUNS: usize = 3;

/// Adds what runs of the program take.
pub fn add(
    prediction: &mut Prediction,
    store: &Store,
    profile: &Profile,
    plan: &Plan,
    place: &Placement,
) -> Result<()> {
    let mut program =
        InVivo::open(store, profile, &[]).context("the program cannot be measured")?;
    let keys: Vec<RegionKey> = plan.regions.iter().map(|r| r.key.clone()).collect();
    let bar = progress::bar("measuring", (RUNS * prediction.runs.len()) as u64);
    let mut found: Vec<Vec<Profile>> = vec![Vec::new(); prediction.runs.len()];
    for _ in 0..RUNS {
        for (run, found) in prediction.runs.iter().zip(&mut found) {
            bar.set_message(format!("{} threads", run.threads));
            let mut environment = place.team(None)?.environment;
            environment.push(("OMP_NUM_THREADS".into(), run.threads.to_string()));
            found.push(program.run_with(&keys, &environment)?);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    for (run, found) in prediction.runs.iter_mut().zip(found) {
        let inside = |p: &Profile| -> f64 { p.regions.iter().map(|r| r.inclusive_seconds).sum() };
        run.measured_seconds = middle(found.iter().map(|p| p.seconds));
        run.measured_sequential = middle(found.iter().map(|p| p.seconds - inside(p)));
        for (region, key) in run.regions.iter_mut().zip(&keys) {
            let of = |p: &Profile| {
                let found = p.regions.iter().find(|r| r.key == *key);
                found.map(|r| r.inclusive_seconds)
            };
            region.measured_seconds = middle(found.iter().filter_map(of));
        }
    }
    Ok(())
}

//! Odd programs, made of the features in `tests/odd/`: a few as tests, or as many as wanted, with a table by cause:
//!
//!     CERE_ODD=1-1000 [CERE_ODD_SECONDS=3600] [CERE_ODD_KEEP=DIR] cargo test --release -p cere-tests --test odd
//!
//! `CERE_ODD_ONLY=tls,dlopen` takes these features alone, `CERE_ODD_WITHOUT=tls,dlopen` all others.

use anyhow::{Context, Result, ensure};
use cere_tests::campaign::{Campaign, trial};
use cere_tests::generated::feature::{Feature, features};
use cere_tests::generated::verdicts::study;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Seeds of the tests: the first ones but 8, whose coroutine other flags shape otherwise, and 10, with stacks of its own
/// (docs/design/limits.md).
const SEEDS: [u64; 8] = [1, 2, 3, 4, 5, 6, 7, 9];

fn chosen() -> Result<Vec<Feature>> {
    let mut all = features(&Path::new(env!("CARGO_MANIFEST_DIR")).join("odd"))?;
    let list = |variable| -> Result<Option<Vec<String>>> {
        let Ok(text) = std::env::var(variable) else {
            return Ok(None);
        };
        let names: Vec<String> = text.split(',').map(str::to_owned).collect();
        for name in &names {
            let known = all.iter().any(|f| f.name == *name);
            ensure!(known, "{variable}: there is no tests/odd/{name}.*");
        }
        Ok(Some(names))
    };
    let (only, without) = (list("CERE_ODD_ONLY")?, list("CERE_ODD_WITHOUT")?);
    if let Some(only) = only {
        all.retain(|f| only.contains(&f.name));
    }
    if let Some(without) = without {
        all.retain(|f| !without.contains(&f.name));
    }
    Ok(all)
}

fn main() -> Result<()> {
    let features = Arc::new(chosen()?);
    let Ok(seeds) = std::env::var("CERE_ODD") else {
        let one = |seed| {
            let features = Arc::clone(&features);
            trial(seed, move |seed, directory| {
                study(seed, &features, directory)
            })
        };
        libtest_mimic::run(&cere_tests::arguments(), SEEDS.map(one).into()).exit()
    };
    let seconds = std::env::var("CERE_ODD_SECONDS").ok();
    let seconds = seconds.map(|s| s.parse().context("CERE_ODD_SECONDS is a number of seconds"));
    let campaign = Campaign {
        seeds: &seeds,
        what: "odd",
        keep: std::env::var_os("CERE_ODD_KEEP").map(PathBuf::from),
        limit: seconds.transpose()?.map(Duration::from_secs),
    };
    campaign.run(|seed, directory| study(seed, &features, directory))
}

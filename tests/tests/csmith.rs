//! Programs of csmith: 40 as tests, or as many as wanted, with a table by cause:
//!
//!     CERE_CSMITH=1-1000 [CERE_CSMITH_SET=base] [CERE_CSMITH_KEEP=DIR] cargo test --release -p cere-tests --test csmith

use anyhow::{Context, Result};
use cere_tests::campaign::{Campaign, trial};
use cere_tests::csmith::{LEVELS, Program, SETS};
use std::path::PathBuf;

/// Seeds of the tests: the first 40.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=40;

fn main() -> Result<()> {
    let Ok(seeds) = std::env::var("CERE_CSMITH") else {
        let study = |seed, directory: &_| {
            let program = Program {
                seed,
                set: &SETS[0],
                codelets: 5,
                directory,
            };
            program.study(&[program.level()])
        };
        let trials = SEEDS.map(|seed| trial(seed, study)).collect();
        libtest_mimic::run(&cere_tests::arguments(), trials).exit()
    };
    let name = std::env::var("CERE_CSMITH_SET").unwrap_or_else(|_| "base".into());
    let names: Vec<&str> = SETS.iter().map(|s| s.name).collect();
    let set = SETS.iter().find(|s| s.name == name);
    let set = set.with_context(|| format!("CERE_CSMITH_SET is one of {}", names.join(", ")))?;
    let campaign = Campaign {
        seeds: &seeds,
        what: set.name,
        keep: std::env::var_os("CERE_CSMITH_KEEP").map(PathBuf::from),
        limit: None,
    };
    campaign.run(|seed, directory| {
        let program = Program {
            seed,
            set,
            codelets: 10,
            directory,
        };
        program.study(&LEVELS)
    })
}

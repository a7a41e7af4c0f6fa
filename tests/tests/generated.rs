//! Programs made from a seed do the same plainly, with the pass, and with every probe armed, at all levels. More of them:
//! `target/release/cere-campaign FIRST LAST`.

use cere_tests::generated::{compare::Comparison, exceptions};
use libtest_mimic::{Failed, Trial};
use std::sync::Arc;

/// Each with so many functions that compiling takes longer than all that is done once a program.
const SEEDS: [u64; 5] = [3, 11, 14, 16, 20];
const FUNCTIONS: usize = 10;

fn main() -> anyhow::Result<()> {
    let arguments = cere_tests::arguments();
    let comparison = Arc::new(Comparison::new()?);
    let trial = |seed: u64| {
        let comparison = Arc::clone(&comparison);
        Trial::test(format!("exceptions {seed}"), move || {
            let place = tempfile::tempdir()?;
            let source = place.path().join(format!("seed{seed}.cpp"));
            std::fs::write(&source, exceptions::program(seed, FUNCTIONS))?;
            match comparison.wrong(place.path(), &source) {
                Ok(wrong) if wrong.is_empty() => Ok(()),
                Ok(wrong) => {
                    let kept = place.keep();
                    Err(Failed::from(format!(
                        "{}\nkept in {}",
                        wrong.join("\n"),
                        kept.display()
                    )))
                }
                Err(error) => Err(Failed::from(format!("{error:#}"))),
            }
        })
    };
    libtest_mimic::run(&arguments, SEEDS.map(trial).into()).exit()
}

//! `cere-campaign FIRST LAST [DIRECTORY]`: compares the generated programs of these seeds with their plain builds and counts the wrong
//! ones. With a directory it writes the programs there and nothing else.

use anyhow::{Context, Result};
use cere_tests::generated::{compare::Comparison, exceptions};
use std::path::Path;

/// Functions of a program.
const FUNCTIONS: usize = 4;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| -> Result<u64> {
        let word = arguments
            .get(at)
            .context("usage: cere-campaign FIRST LAST [DIRECTORY]")?;
        word.parse().with_context(|| format!("{word} is no number"))
    };
    let comparison = Comparison::new()?;
    let (mut programs, mut wrong) = (0, 0);
    for seed in number(0)?..=number(1)? {
        let text = exceptions::program(seed, FUNCTIONS);
        if let Some(directory) = arguments.get(2) {
            std::fs::write(Path::new(directory).join(format!("seed{seed}.cpp")), text)?;
            continue;
        }
        let place = tempfile::tempdir()?;
        let source = place.path().join(format!("seed{seed}.cpp"));
        std::fs::write(&source, text)?;
        let found = comparison.wrong(place.path(), &source)?;
        programs += 1;
        wrong += usize::from(!found.is_empty());
        for line in &found {
            println!("{line}");
        }
    }
    println!("{programs} programs, {wrong} wrong");
    Ok(())
}

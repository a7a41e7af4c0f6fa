//! Programs of csmith: 40 as tests, or as many as wanted, with a table by cause:
//!
//!     CERE_CSMITH=1-1000 [CERE_CSMITH_SET=base] [CERE_CSMITH_KEEP=DIR] cargo test --release -p cere-tests --test csmith

use anyhow::{Context, Result};
use cere_tests::csmith::{FLAGS, Finding, LEVELS, Outcome, Program, SETS, Set};
use libtest_mimic::{Arguments, Failed, Trial};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Seeds of the tests: the first 40.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=40;

fn main() -> Result<()> {
    match std::env::var("CERE_CSMITH") {
        Ok(seeds) => campaign(&seeds),
        Err(_) => {
            let arguments = Arguments::from_args();
            let trials = SEEDS.map(trial).collect();
            libtest_mimic::run(&arguments, trials).exit()
        }
    }
}

fn trial(seed: u64) -> Trial {
    let set = &SETS[0];
    Trial::test(format!("seed {seed}"), move || {
        let directory = tempfile::tempdir()?;
        let program = Program {
            seed,
            set,
            codelets: 5,
            directory: directory.path(),
        };
        let findings = program.study(&[program.level()]);
        let failed = match findings {
            Err(error) => format!("{error:#}"),
            Ok(findings) => {
                let bad = findings.iter().filter(|f| !f.outcome.is_right());
                let bad: Vec<String> = bad.map(Finding::shown).collect();
                bad.join("\n")
            }
        };
        if failed.is_empty() {
            return Ok(());
        }
        let kept = directory.keep();
        Err(Failed::from(format!(
            "{failed}\nkept in {}",
            kept.display()
        )))
    })
}

/// Studies the programs of a range of seeds, one after the other.
fn campaign(seeds: &str) -> Result<()> {
    let name = std::env::var("CERE_CSMITH_SET").unwrap_or_else(|_| "base".into());
    let names: Vec<&str> = SETS.iter().map(|s| s.name).collect();
    let set = SETS.iter().find(|s| s.name == name);
    let set = set.with_context(|| format!("CERE_CSMITH_SET is one of {}", names.join(", ")))?;
    let (first, last) = seeds.split_once('-').unwrap_or((seeds, seeds));
    let wanted = || "CERE_CSMITH is a range of seeds, e.g. 1-1000";
    let (first, last): (u64, u64) = (
        first.parse().with_context(wanted)?,
        last.parse().with_context(wanted)?,
    );
    let keep = std::env::var_os("CERE_CSMITH_KEEP").map(PathBuf::from);
    let mut table = Table::default();
    for seed in first..=last {
        match studied(seed, set, keep.as_ref()) {
            Ok(findings) => table.add(&findings),
            Err(error) => {
                println!("seed {seed}: {error:#}");
                table.broken += 1;
            }
        }
        if seed % 50 == 0 {
            eprintln!("{seed}: {} programs, {} wrong", table.programs, table.wrong);
        }
    }
    table.print(set);
    Ok(())
}

fn studied(seed: u64, set: &'static Set, keep: Option<&PathBuf>) -> Result<Vec<Finding>> {
    let scratch = tempfile::tempdir()?;
    let directory = match keep {
        Some(keep) => keep.join(format!("{}-{seed}", set.name)),
        None => scratch.path().to_owned(),
    };
    std::fs::create_dir_all(&directory)?;
    let program = Program {
        seed,
        set,
        codelets: 10,
        directory: &directory,
    };
    program.study(&LEVELS)
}

/// The outcomes of a campaign.
#[derive(Default)]
struct Table {
    programs: usize,
    /// Programs whose study ended in an error.
    broken: usize,
    wrong: usize,
    codelets: usize,
    /// By flags of replays, `None` for what is no replay.
    outcomes: BTreeMap<(Option<&'static str>, Outcome), usize>,
    /// By cause.
    causes: BTreeMap<(Outcome, String), (usize, String)>,
}

impl Table {
    fn add(&mut self, findings: &[Finding]) {
        self.programs += 1;
        for finding in findings {
            let outcome = finding.outcome;
            *self.outcomes.entry((finding.flags, outcome)).or_default() += 1;
            self.wrong += usize::from(outcome.is_wrong());
            self.codelets += usize::from(finding.flags == Some(FLAGS[0]));
            if !outcome.is_right() {
                println!("{}", finding.shown());
                let example = format!("seed {} {}", finding.seed, finding.of);
                let cause = self.causes.entry((outcome, finding.cause()));
                cause.or_insert((0, example)).0 += 1;
            }
        }
    }

    fn print(&self, set: &Set) {
        let (programs, codelets) = (self.programs, self.codelets);
        println!(
            "\n{programs} programs ({}), {codelets} codelets, {} studies failed\n",
            set.name, self.broken
        );
        println!("| flags | outcome | number |\n|---|---|--:|");
        for ((flags, outcome), number) in &self.outcomes {
            let flags = match flags {
                None => "(programs)",
                Some("") => "(the build's)",
                Some(flags) => flags,
            };
            println!("| {flags} | {outcome:?} | {number} |");
        }
        println!("\n| outcome | cause | number | e.g. |\n|---|---|--:|---|");
        for ((outcome, cause), (number, example)) in &self.causes {
            println!("| {outcome:?} | {cause} | {number} | {example} |");
        }
    }
}

//! Studies of programs made from seeds: as tests, or of a range of seeds with a table by cause.

use crate::outcome::{Finding, Outcome};
use anyhow::{Context, Result};
use libtest_mimic::{Failed, Trial};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A test: the study of this seed finds nothing that needs attention. It keeps its directory if it fails.
pub fn trial(
    seed: u64,
    study: impl Fn(u64, &Path) -> Result<Vec<Finding>> + Send + 'static,
) -> Trial {
    Trial::test(format!("seed {seed}"), move || {
        let directory = tempfile::tempdir()?;
        let failed = match study(seed, directory.path()) {
            Err(error) => format!("{error:#}"),
            Ok(findings) => {
                let bad = findings.iter().filter(|f| !f.is_right());
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

/// Seeds that are studied one after the other.
#[derive(Debug)]
pub struct Campaign<'a> {
    /// A range, e.g. `1-1000`.
    pub seeds: &'a str,
    /// Of what.
    pub what: &'a str,
    /// Where every program is kept.
    pub keep: Option<PathBuf>,
    /// No study begins later than so long after the first.
    pub limit: Option<Duration>,
}

impl Campaign<'_> {
    /// Runs it and prints a table by cause.
    pub fn run(&self, study: impl Fn(u64, &Path) -> Result<Vec<Finding>>) -> Result<()> {
        let (first, last) = self
            .seeds
            .split_once('-')
            .unwrap_or((self.seeds, self.seeds));
        let wanted = || format!("{:?} is no range of seeds, such as 1-1000", self.seeds);
        let (first, last): (u64, u64) = (
            first.parse().with_context(wanted)?,
            last.parse().with_context(wanted)?,
        );
        let began = Instant::now();
        let mut table = Table::default();
        for seed in first..=last {
            if self.limit.is_some_and(|limit| began.elapsed() > limit) {
                println!("the time is up before seed {seed}");
                break;
            }
            let scratch = tempfile::tempdir()?;
            let directory = match &self.keep {
                Some(keep) => keep.join(format!("{}-{seed}", self.what)),
                None => scratch.path().to_owned(),
            };
            std::fs::create_dir_all(&directory)?;
            match study(seed, &directory) {
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
        table.print(self.what);
        Ok(())
    }
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
    outcomes: BTreeMap<(Option<String>, Outcome), usize>,
    /// By cause.
    causes: BTreeMap<(Outcome, String), (usize, String)>,
}

impl Table {
    fn add(&mut self, findings: &[Finding]) {
        self.programs += 1;
        for finding in findings {
            let outcome = finding.outcome;
            let flags = finding.flags.clone();
            *self.outcomes.entry((flags, outcome)).or_default() += 1;
            self.wrong += usize::from(outcome.is_wrong());
            self.codelets += usize::from(finding.flags.as_deref() == Some(""));
            if !finding.is_right() {
                println!("{}", finding.shown());
                let example = format!("seed {} {}", finding.seed, finding.of);
                let cause = self.causes.entry((outcome, finding.cause()));
                cause.or_insert((0, example)).0 += 1;
            }
        }
    }

    fn print(&self, what: &str) {
        let (programs, codelets) = (self.programs, self.codelets);
        println!(
            "\n{programs} programs ({what}), {codelets} codelets, {} studies failed, {} wrong outcomes\n",
            self.broken, self.wrong
        );
        println!("| flags | outcome | number |\n|---|---|--:|");
        for ((flags, outcome), number) in &self.outcomes {
            let flags = match flags.as_deref() {
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

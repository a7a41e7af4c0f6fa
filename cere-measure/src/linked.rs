//! Regions in the linked program: their times in the plain and in another build, in alternation.

use crate::region_seconds;
use anyhow::Result;
use cere_build::image::Program;
use cere_console::progress;
use cere_format::profile::{Profile, RegionKey};
use cere_format::store::Store;
use cere_run::input::Input;
use cere_run::launch::Output;
use cere_run::profile;
use cere_run::profile::Run;
use std::path::Path;

/// How regions are timed in a build.
pub struct Linked<'a> {
    /// Knows the regions; the caller holds its lock.
    pub store: &'a Store,
    /// Program and arguments as given.
    pub command: &'a [String],
    /// What it reads.
    pub input: Input,
    /// Seconds that a run may take.
    pub timeout: Option<f64>,
}

impl Linked<'_> {
    /// Seconds of each of `regions` in the builds `plain` and `other`, each invocation with the least of `rounds` runs.
    pub fn compare(
        &mut self,
        plain: &Path,
        other: &Path,
        regions: &[RegionKey],
        rounds: u32,
    ) -> Result<Vec<(Option<f64>, Option<f64>)>> {
        let programs = [self.open(plain)?, self.open(other)?];
        let mut runs: [Vec<Profile>; 2] = Default::default();
        let bar = progress::bar("timing regions", u64::from(rounds) * 2);
        for _ in 0..rounds {
            for (program, runs) in programs.iter().zip(&mut runs) {
                let mut feed = self.input.again()?;
                let run = Run {
                    store: self.store,
                    program,
                    command: self.command,
                    timeout: self.timeout,
                    output: Output::Dropped,
                    trace: &[],
                    only: Some(regions),
                    environment: &[],
                };
                runs.push(profile::collect(&run, feed.stdin.take())?.profile);
                bar.inc(1);
            }
        }
        bar.finish_and_clear();
        let of = |runs: &[Profile], key| region_seconds(runs, key);
        let both = |key| (of(&runs[0], key), of(&runs[1], key));
        Ok(regions.iter().map(both).collect())
    }

    fn open(&self, path: &Path) -> Result<Program> {
        Program::open(&path.to_string_lossy(), self.store)
    }
}

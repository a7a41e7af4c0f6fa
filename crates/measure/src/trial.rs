//! Runs of the program in several builds, in turns: time, and whether the output is the plain build's.

use crate::decide::{Answer, Rule};
use crate::output::{self, Varying};
use crate::{Bench, Turns};
use anyhow::{Context, Result, bail};
use cere_capture::input::Input;
use cere_format::store::Store;
use cere_store::build::image::Program;
use cere_store::build::start::Start;
use cere_system::events::{Events, Progress};
use cere_system::process::supervise;
use cere_timing::stats::median;
use cere_timing::stats::{Gain, Series, gain};
use std::fs::File;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};

/// A build of the program.
#[derive(Debug, Clone)]
pub struct Build {
    /// Its name in messages.
    pub name: String,
    /// Its file.
    pub path: PathBuf,
}

/// Results of builds run in turns; the plain build has index 0.
#[derive(Debug, Clone)]
pub struct Runs {
    /// Seconds of the plain build's runs.
    pub plain: Vec<f64>,
    /// For each build the times of its runs over the plain build's at that moment; empty for the plain build.
    pub ratios: Vec<Vec<f64>>,
    /// How a build's output differed from the plain build's, if it did.
    pub differs: Vec<Option<String>>,
}

impl Runs {
    /// Of the times in `series` and of how each build's output differed, if it did.
    pub fn of(series: &Series, differs: Vec<Option<String>>) -> Self {
        let ratios = (0..differs.len()).map(|place| series.part_ratios(place, 0));
        Self {
            plain: series.times(0, 0),
            ratios: ratios.collect(),
            differs,
        }
    }

    /// Seconds of the build at `place`: the median ratio times the plain build's median; NaN if it was not run.
    pub fn seconds(&self, place: usize) -> f64 {
        let plain = median(&self.plain).unwrap_or(f64::NAN);
        match place {
            0 => plain,
            _ => plain * median(&self.ratios[place]).unwrap_or(f64::NAN),
        }
    }

    /// Time of the build with index `place` over the plain build's, with its interval; `None` if it was not run.
    pub fn gain(&self, place: usize) -> Option<Gain> {
        gain(&self.ratios[place])
    }

    /// Time of the build with index `place` over that of `other` in the same rounds.
    pub fn ratios_over(&self, place: usize, other: usize) -> Vec<f64> {
        let pairs = self.ratios[place].iter().zip(&self.ratios[other]);
        pairs.map(|(own, other)| own / other).collect()
    }

    /// Whether the output of the build with index `place` is the plain build's.
    pub fn is_right(&self, place: usize) -> bool {
        self.differs[place].is_none()
    }
}

/// Builds that are run between two runs of the plain one.
const PAIR: usize = 2;

/// How the program is run.
pub struct Trial<'a> {
    /// The store of the program.
    pub store: &'a Store,
    /// The program.
    pub program: &'a Program,
    /// Program and arguments as given.
    pub command: &'a [String],
    /// The program's standard input.
    pub input: Input,
    /// Seconds that a run may take.
    pub timeout: Option<f64>,
    /// Lines of the output that contain one of these are not compared.
    pub ignored: &'a [String],
    /// Largest accepted relative error of a number in the output.
    pub tolerance: f64,
    events: Events,
    /// Outputs of the plain build so far.
    plain: Vec<Vec<u8>>,
    status: Option<ExitStatus>,
}

impl<'a> Trial<'a> {
    /// A trial without runs.
    pub fn new(
        store: &'a Store,
        program: &'a Program,
        command: &'a [String],
        timeout: Option<f64>,
        ignored: &'a [String],
        tolerance: f64,
        events: &Events,
    ) -> Result<Self> {
        Ok(Self {
            store,
            program,
            command,
            input: Input::open(events)?,
            timeout,
            ignored,
            tolerance,
            events: events.clone(),
            plain: Vec::new(),
            status: None,
        })
    }

    /// Runs `builds`, the plain one first, in turns, `rounds` times each.
    pub fn run(&mut self, builds: &[Build], rounds: u32) -> Result<Runs> {
        let all: Vec<usize> = (1..builds.len()).collect();
        let mut runs = self.start(builds, rounds);
        for _ in 0..rounds {
            runs.round(&all)?;
        }
        finish(runs)
    }

    /// The same, until `rule` decides whether the build with index 1 is faster than the plain one.
    pub fn decide(&mut self, builds: &[Build], rule: &Rule) -> Result<(Runs, Answer)> {
        let all: Vec<usize> = (1..builds.len()).collect();
        let rounds = rule.looks.first().copied().unwrap_or(1);
        let mut runs = self.start(builds, rounds as u32);
        let events = runs.bench.trial.events.clone();
        let answer = runs.decide(&all, rule, |rounds| {
            events.note(format!(
                "{rounds} runs are inconclusive about the hybrid's gain: adding runs"
            ));
        })?;
        Ok((finish(runs)?, answer))
    }

    fn start<'t>(&'t mut self, builds: &'t [Build], rounds: u32) -> Turns<Running<'t, 'a>> {
        let each = (builds.len() + builds.len().div_ceil(PAIR)) as u64;
        let running = Running {
            outputs: vec![Vec::new(); builds.len()],
            progress: self.events.steps("running", u64::from(rounds) * each),
            trial: self,
            builds,
            before: None,
        };
        Turns::new(running, PAIR)
    }

    /// The words of the plain build's output that differ from run to run.
    pub fn varying(&self) -> Result<Varying> {
        output::find_varying_words(&self.plain, self.ignored).map_err(|why| {
            anyhow::anyhow!(
                "the output of {} differs from run to run ({why}), so the output of another build cannot be checked: \
                 exclude such lines with --ignore TEXT, or have the program print none",
                self.command[0]
            )
        })
    }

    fn check_status(&mut self, status: ExitStatus) -> Result<()> {
        match self.status.replace(status) {
            None if !status.success() => bail!(
                "{} {}: give it a run that succeeds",
                self.command[0],
                describe_status(status)
            ),
            Some(before) if before != status => bail!(
                "{} {} in one run and {} in another: it does not do the same each time",
                self.command[0],
                describe_status(before),
                describe_status(status)
            ),
            _ => Ok(()),
        }
    }

    fn run_once(&mut self, build: &Build) -> Result<(f64, ExitStatus, Vec<u8>)> {
        let mut feed = self.input.for_next_run()?;
        let mut file = tempfile::tempfile().context("cannot keep the program's output")?;
        let own: File = file
            .try_clone()
            .context("cannot keep the program's output")?;
        let mut started = Start {
            program: self.program,
            words: self.command,
            library: None,
            library_of_build: false,
            build: Some(&build.path),
            rank: None,
        }
        .command(self.store)?;
        let command = &mut started.command;
        command.stdout(own).stderr(Stdio::null());
        if let Some(stdin) = feed.stdin.take() {
            command.stdin(stdin);
        }
        let ended = supervise::run(command, &self.command[0], self.timeout)?;
        if let Some(late) = ended.late {
            bail!("the {} build: {late}", build.name);
        }
        if let Some(told) = ended.told {
            bail!(told);
        }
        started.check(ended.status)?;
        let mut output = Vec::new();
        use std::io::{Read, Seek};
        file.rewind()
            .and_then(|()| file.read_to_end(&mut output))
            .context("cannot read the program's output again")?;
        Ok((ended.seconds, ended.status, output))
    }
}

/// Builds that are run in turns.
struct Running<'t, 'a> {
    trial: &'t mut Trial<'a>,
    builds: &'t [Build],
    /// Of each build but the plain one.
    outputs: Vec<Vec<Vec<u8>>>,
    progress: Progress,
    /// Seconds of the last run.
    before: Option<f64>,
}

impl Bench for Running<'_, '_> {
    type Error = anyhow::Error;

    fn sample(&mut self, subject: usize) -> Result<Result<Vec<f64>, String>> {
        let build = &self.builds[subject];
        self.progress.at(&build.name);
        let what = format!("running {}", self.trial.command[0]);
        let run = self.trial.events.run(what, self.before);
        let (seconds, status, output) = self.trial.run_once(build)?;
        drop(run);
        self.before = Some(seconds);
        self.progress.step();
        if subject == 0 {
            self.trial.check_status(status)?;
            self.trial.plain.push(output);
        } else if self.trial.status == Some(status) {
            self.outputs[subject].push(output);
        } else {
            let plain = self.trial.status.map(describe_status).unwrap_or_default();
            let own = describe_status(status);
            return Ok(Err(format!("it {own}, and the plain build {plain}")));
        }
        Ok(Ok(vec![seconds]))
    }
}

/// The results, compared with all outputs of the plain build.
fn finish(turns: Turns<Running>) -> Result<Runs> {
    let Running {
        trial,
        builds,
        outputs,
        ..
    } = &turns.bench;
    let varying = trial.varying()?;
    let differs = (0..builds.len()).map(|place| {
        let outputs = outputs[place].iter();
        let mut other = outputs.filter_map(|o| varying.difference(o, trial.tolerance));
        let failed = turns.failure(place).map(str::to_owned);
        failed.or_else(|| other.next())
    });
    Ok(Runs::of(turns.series(), differs.collect()))
}

fn describe_status(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with status {code}"),
        (_, Some(signal)) => format!("was ended by signal {signal}"),
        _ => "failed".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_are_compared_at_the_plain_builds_speed() {
        let runs = Runs {
            plain: vec![1.0, 3.0, 2.0],
            ratios: vec![vec![], vec![0.5, 0.6, 0.4], vec![0.25, 0.6, 0.8]],
            differs: vec![None, None, Some("a word".into())],
        };
        assert_eq!((runs.seconds(0), runs.seconds(1)), (2.0, 1.0));
        assert_eq!(runs.ratios_over(2, 1), [0.5, 1.0, 2.0]);
        assert!(runs.is_right(1) && !runs.is_right(2));
        assert_eq!(runs.gain(1).map(|g| (g.low, g.high)), Some((0.4, 0.6)));
        assert!(runs.gain(0).is_none());
    }
}

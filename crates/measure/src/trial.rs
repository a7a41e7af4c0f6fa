//! Runs of the program in several builds, in turns: time, and whether the output is the plain build's.

use crate::decide::{Answer, Rule};
use crate::output::{self, Order, Printed, Varying};
use crate::{Bench, Turns};
use anyhow::{Context, Result};
use cere_capture::input::Input;
use cere_catalogue::bail;
use cere_format::store::Store;
use cere_store::build::image::Program;
use cere_store::build::start::{Ran, Start};
use cere_system::events::{Events, Progress};
use cere_system::process::supervise;
use cere_timing::stats::median;
use cere_timing::stats::{Gain, Series, gain};
use std::fmt;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::PathBuf;
use std::process::ExitStatus;

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
    /// Outputs of the plain build so far, equal ones once.
    plain: Vec<Printed>,
    status: Option<ExitStatus>,
    /// Whether it is known if there are ranks.
    looked: bool,
    ranks: Option<Ranks>,
    /// How the processes of each rank end in the plain build: [`RanRank::ended`].
    ends: Vec<Vec<i32>>,
}

/// The ranks in which builds run, every one in each run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranks {
    /// Their names, in their order.
    pub names: Vec<String>,
    /// Ranks that run other programs, which stay as they are.
    pub others: Vec<String>,
    /// Whether the output of each is compared by itself; else lines may come in any order.
    pub apart: bool,
}

impl fmt::Display for Ranks {
    /// What a build has to do in them, a line each.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(
            f,
            "a build is right only if it runs in each of {} ranks, ends there like the plain build, and prints the same, compared {}",
            self.names.len(),
            match self.apart {
                true => "rank by rank",
                false =>
                    "in any order of its lines: what the ranks print does not come through as it is, so it cannot be told apart",
            }
        )?;
        if self.others.is_empty() {
            return Ok(());
        }
        write!(
            f,
            "\nnot verified, and as it was built: what runs in rank {}, where the program was not seen (another one runs there, or LD_PRELOAD \
             is not passed on)",
            self.others.join(", ")
        )
    }
}

/// A run of a build.
struct Ended {
    seconds: f64,
    status: ExitStatus,
    printed: Printed,
    ran: Ran,
    /// What was said of its failure.
    complaint: String,
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
            looked: false,
            ranks: None,
            ends: Vec::new(),
        })
    }

    /// Runs `builds`, the plain one first, in turns, `rounds` times each.
    pub fn run(&mut self, builds: &[Build], rounds: u32) -> Result<Runs> {
        let all: Vec<usize> = (1..builds.len()).collect();
        let mut runs = self.start(builds, rounds)?;
        for _ in 0..rounds {
            runs.round(&all)?;
        }
        finish(runs)
    }

    /// The same, until `rule` decides whether the build with index 1 is faster than the plain one.
    pub fn decide(&mut self, builds: &[Build], rule: &Rule) -> Result<(Runs, Answer)> {
        let all: Vec<usize> = (1..builds.len()).collect();
        let rounds = rule.looks.first().copied().unwrap_or(1);
        let mut runs = self.start(builds, rounds as u32)?;
        let events = runs.bench.trial.events.clone();
        let answer = runs.decide(&all, rule, |rounds| {
            events.note(format!(
                "{rounds} runs are inconclusive about the hybrid's gain: adding runs"
            ));
        })?;
        Ok((finish(runs)?, answer))
    }

    /// The ranks, if builds ran in several.
    pub fn ranks(&self) -> Option<&Ranks> {
        self.ranks.as_ref()
    }

    fn start<'t>(&'t mut self, builds: &'t [Build], rounds: u32) -> Result<Turns<Running<'t, 'a>>> {
        if let (Some(plain), false, false) = (builds.first(), self.looked, self.program.is_direct())
        {
            self.look_for_ranks(plain)?;
        }
        let each = (builds.len() + builds.len().div_ceil(PAIR)) as u64;
        let running = Running {
            outputs: vec![Vec::new(); builds.len()],
            progress: self.events.steps("running", u64::from(rounds) * each),
            trial: self,
            builds,
            before: None,
        };
        Ok(Turns::new(running, PAIR))
    }

    /// Finds out by two runs of the plain build whether there are ranks, and whether each can print apart: not if a script between the
    /// ranks and this command makes something of what they print.
    fn look_for_ranks(&mut self, plain: &Build) -> Result<()> {
        self.looked = true;
        let run = self.events.run("looking for ranks", None);
        let together = self.run_once(plain)?;
        drop(run);
        self.check_status(together.status)?;
        let Ran { ranks, others } = together.ran;
        if ranks.len() + others.len() < 2 {
            return Ok(());
        }
        let (names, ends) = ranks.into_iter().map(|r| (r.rank, r.ended)).unzip();
        self.ends = ends;
        self.ranks = Some(Ranks {
            names,
            others,
            apart: true,
        });
        let what = "looking whether ranks print apart";
        let run = self.events.run(what, Some(together.seconds));
        let apart = self.run_once(plain)?;
        drop(run);
        if let Some(ranks) = &mut self.ranks {
            let as_much = output::as_much(&together.printed, &apart.printed, self.ignored);
            ranks.apart = as_much && together.status == apart.status;
        }
        Ok(())
    }

    /// Which order of lines counts in what is not printed apart.
    fn order(&self) -> Order {
        match &self.ranks {
            Some(_) => Order::Any,
            None => Order::Printed,
        }
    }

    /// What a run did otherwise than the plain build in one of the ranks, if there is such a rank.
    fn other_in_rank(&self, ran: &Ran) -> Option<String> {
        let ranks = self.ranks.as_ref()?.names.iter().zip(&self.ends);
        let others = ranks.filter_map(|(rank, ends)| {
            let Some(found) = ran.ranks.iter().find(|r| r.rank == *rank) else {
                return Some((false, format!("it did not run in rank {rank}")));
            };
            let why = format!(
                "in rank {rank} it {}, and the plain build {}",
                describe_ends(&found.ended),
                describe_ends(ends)
            );
            (found.ended != *ends).then(|| (found.failed(), why))
        });
        // A launcher ends the others of a rank that failed.
        let first = others.min_by_key(|(failed, _)| !failed);
        first.map(|(_, why)| why)
    }

    /// The words of the plain build's output that differ from run to run.
    pub fn varying(&self) -> Result<Varying> {
        output::find_varying_words(&self.plain, self.ignored, self.order()).map_err(|why| {
            cere_catalogue::anyhow!(
                E6511, "the output of {} differs from run to run ({why}), so the output of another build cannot be checked: \
                 exclude such lines with --ignore TEXT, or have the program print none",
                self.command[0]
            )
        })
    }

    fn check_status(&mut self, status: ExitStatus) -> Result<()> {
        match self.status.replace(status) {
            None if !status.success() => bail!(
                E6517,
                "{} {}: give it a run that succeeds",
                self.command[0],
                describe_status(status)
            ),
            Some(before) if before != status => bail!(
                E6517,
                "{} {} in one run and {} in another: it does not do the same each time",
                self.command[0],
                describe_status(before),
                describe_status(status)
            ),
            _ => Ok(()),
        }
    }

    fn run_once(&mut self, build: &Build) -> Result<Ended> {
        let mut feed = self.input.for_next_run()?;
        let mut started = Start {
            program: self.program,
            words: self.command,
            library: None,
            library_of_build: false,
            build: Some(&build.path),
            rank: None,
            apart: self.ranks.as_ref().is_some_and(|ranks| ranks.apart),
        }
        .command(self.store)?;
        let command = &mut started.command;
        let (mut printed, mut complaints) = (Kept::new()?, Kept::new()?);
        command.stdout(printed.end()?).stderr(complaints.end()?);
        if let Some(stdin) = feed.stdin.take() {
            command.stdin(stdin);
        }
        let ended = supervise::run(command, &self.command[0], self.timeout)?;
        if let Some(late) = ended.late {
            bail!(E4016, "the {} build: {late}", build.name);
        }
        if let Some(told) = ended.told {
            bail!(told);
        }
        let mut ran = started.check(ended.status)?;
        let own = printed.text()?;
        let complaint = match ended.status.success() {
            true => String::new(),
            // MPICH complains on its standard output.
            false => last_words(&[&*own, &*complaints.text()?].concat(), &ran),
        };
        let own = [(String::new(), own)];
        let ranks = ran.ranks.iter_mut();
        let ranks = ranks.map(|r| (r.rank.clone(), std::mem::take(&mut r.printed)));
        Ok(Ended {
            seconds: ended.seconds,
            status: ended.status,
            printed: own
                .into_iter()
                .chain(ranks)
                .filter(|(_, text)| !text.is_empty())
                .collect(),
            complaint,
            ran,
        })
    }
}

/// A file that a run writes and that is read afterwards.
struct Kept(File);

impl Kept {
    fn new() -> Result<Self> {
        let file = tempfile::tempfile().context("cannot keep the program's output")?;
        Ok(Self(file))
    }

    /// For the program.
    fn end(&self) -> Result<File> {
        self.0
            .try_clone()
            .context("cannot keep the program's output")
    }

    fn text(&mut self) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        self.0
            .rewind()
            .and_then(|()| self.0.read_to_end(&mut text))
            .context("cannot read the program's output again")?;
        Ok(text)
    }
}

/// Lines that tell why a run failed.
const LAST: usize = 4;

/// The ranks of those that `ran` that called `exit` with another status than 0, else what launchers say in `text` of the process that
/// failed, with its rank, else the last lines.
fn last_words(text: &[u8], ran: &Ran) -> String {
    let failed = ran.ranks.iter().filter(|r| r.failed());
    let failed: Vec<String> = failed
        .map(|r| format!("rank {} {}", r.rank, describe_ends(&r.ended)))
        .collect();
    if !failed.is_empty() {
        return failed.join(", ");
    }
    let mut text = String::from_utf8_lossy(text).into_owned();
    for rank in &ran.ranks {
        for process in &rank.processes {
            let id = format!("PID {process} ");
            text = text.replace(&id, &format!("{id}(rank {}) ", rank.rank));
        }
    }
    let lines = text.lines().map(|line| line.trim_matches(['=', ' ', '-']));
    let lines: Vec<&str> = lines
        .filter(|line| line.contains(char::is_alphabetic))
        .collect();
    let named = lines.iter().position(|line| line.contains(" (rank "));
    let first = named.unwrap_or_else(|| lines.len().saturating_sub(LAST));
    let said: Vec<&str> = lines.into_iter().skip(first).take(LAST).collect();
    let said = said.join("; ");
    match named {
        Some(_) => format!("{said} (9 and 15 are what launchers end the other ranks with)"),
        None => said,
    }
}

/// Builds that are run in turns.
struct Running<'t, 'a> {
    trial: &'t mut Trial<'a>,
    builds: &'t [Build],
    /// Of each build but the plain one, equal ones once.
    outputs: Vec<Vec<Printed>>,
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
        let ended = self.trial.run_once(build)?;
        drop(run);
        let (seconds, status) = (ended.seconds, ended.status);
        self.before = Some(seconds);
        self.progress.step();
        let other = self.trial.other_in_rank(&ended.ran);
        if subject == 0 {
            self.trial.check_status(status)?;
            if let Some(why) = other {
                bail!(
                    E6517,
                    "the plain build of {} does not do the same each time: {why}",
                    self.trial.command[0]
                );
            }
            keep(&mut self.trial.plain, ended.printed);
            return Ok(Ok(vec![seconds]));
        }
        if self.trial.status != Some(status) {
            let plain = self.trial.status.map(describe_status).unwrap_or_default();
            let mut why = format!(
                "it {}, and the plain build {plain}",
                describe_status(status)
            );
            if !ended.complaint.is_empty() {
                why = format!("{why}: {}", ended.complaint);
            }
            return Ok(Err(why));
        }
        if let Some(why) = other {
            return Ok(Err(why));
        }
        keep(&mut self.outputs[subject], ended.printed);
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
        let new = outputs.filter(|o| !trial.plain.contains(o));
        let mut other = new.filter_map(|o| varying.difference(o, trial.tolerance));
        let failed = turns.failure(place).map(str::to_owned);
        failed.or_else(|| other.next())
    });
    Ok(Runs::of(turns.series(), differs.collect()))
}

/// Adds an output that is not among `kept` yet: large ones are mostly the same in each run.
fn keep(kept: &mut Vec<Printed>, output: Printed) {
    if !kept.contains(&output) {
        kept.push(output);
    }
}

/// The statuses with which a rank's processes called `exit`.
fn describe_ends(statuses: &[i32]) -> String {
    let statuses: Vec<String> = statuses.iter().map(i32::to_string).collect();
    match &statuses[..] {
        [] => "did not call exit".to_owned(),
        [one] => format!("ended with status {one}"),
        _ => format!("ended with statuses {}", statuses.join(", ")),
    }
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

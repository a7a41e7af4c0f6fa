//! Runs of the program in several builds, in alternation: time, and whether the output is the plain build's.

use super::output::{self, Varying};
use anyhow::{Context, Result, bail};
use cere_console::progress;
use cere_process::supervise;
use cere_run::input::Input;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};

/// A build of the program.
#[derive(Debug, Clone)]
pub struct Build {
    /// What people call it.
    pub name: String,
    /// Its file.
    pub path: PathBuf,
}

/// What the runs of a build showed.
#[derive(Debug, Clone, Default)]
pub struct Shown {
    /// Seconds of each run; of another build than the plain one, at the speed that the machine had for the middle of the
    /// plain build's runs.
    pub seconds: Vec<f64>,
    /// How an output differed from the plain build's, if one did.
    pub differs: Option<String>,
}

impl Shown {
    /// The middle of its times.
    pub fn median(&self) -> f64 {
        middle(&self.seconds)
    }

    /// Where the middle of more of its times lies, and the probability that it does: 0.95 or more, but of fewer than 6
    /// runs. None of no run.
    pub fn range(&self) -> Option<(f64, f64, f64)> {
        let mut seconds = self.seconds.clone();
        seconds.sort_by(f64::total_cmp);
        let (least, most, ranks) = cere_stats::interval(&seconds, 0.95)?;
        Some((least, most, ranks.level))
    }

    /// Whether it may be as fast as a build that takes `seconds`, for all that is known.
    pub fn may_take(&self, seconds: f64) -> bool {
        self.range()
            .is_none_or(|(least, most, _)| least <= seconds && seconds <= most)
    }

    /// Makes all times this much longer.
    fn scale(&mut self, by: f64) {
        self.seconds.iter_mut().for_each(|s| *s *= by);
    }
}

/// Joins `more`, further runs of the first of some builds, to what is `shown` of all of them; the plain one comes first in both.
pub fn join(shown: &mut [Shown], more: Vec<Shown>) {
    let mut more = more.into_iter();
    let (Some((plain, others)), Some(again)) = (shown.split_first_mut(), more.next()) else {
        return;
    };
    // Times of other builds are at the speed that the plain build's middle had.
    let (before, then) = (plain.median(), again.median());
    plain.seconds.extend(again.seconds);
    let usual = plain.median();
    others.iter_mut().for_each(|own| own.scale(usual / before));
    for (own, mut more) in others.iter_mut().zip(more) {
        more.scale(usual / then);
        own.seconds.append(&mut more.seconds);
        own.differs = own.differs.take().or(more.differs);
    }
}

/// The median of `values`; NaN of none.
fn middle(values: &[f64]) -> f64 {
    cere_stats::middle(values).unwrap_or(f64::NAN)
}

/// Builds that are run between two runs of the plain one.
const PAIR: usize = 2;

/// The places of builds in the order of their runs: the plain one (place 0) before every [`PAIR`] others, and at the end.
fn order(builds: usize, rounds: u32) -> Vec<usize> {
    let others: Vec<usize> = (1..builds).collect();
    let mut order = Vec::new();
    for _ in 0..rounds {
        for some in others.chunks(PAIR) {
            order.push(0);
            order.extend(some);
        }
    }
    order.push(0);
    order
}

/// `timed` runs, in their order, of builds by their places: those of others than the plain build (place 0), which runs
/// first and last, times the middle of its times over its time then. A machine that others share changes its speed for
/// seconds or minutes.
fn at_one_speed(timed: &[(usize, f64)]) -> Vec<(usize, f64)> {
    let plain: Vec<f64> = timed.iter().filter(|t| t.0 == 0).map(|t| t.1).collect();
    let usual = middle(&plain);
    let is_plain = |at: &usize| timed[*at].0 == 0;
    let scaled = timed.iter().enumerate().map(|(at, &(place, seconds))| {
        let before = (0..at).rev().find(is_plain);
        let after = (at..timed.len()).find(is_plain);
        match (before, after) {
            (Some(before), Some(after)) if place != 0 => {
                let part = (at - before) as f64 / (after - before) as f64;
                let then = timed[before].1 + part * (timed[after].1 - timed[before].1);
                (place, seconds * usual / then)
            }
            _ => (place, seconds),
        }
    });
    scaled.collect()
}

/// How the program is run.
pub struct Trial<'a> {
    /// Program and arguments as given.
    pub command: &'a [String],
    /// What it reads.
    pub input: Input,
    /// Seconds that a run may take.
    pub timeout: Option<f64>,
    /// Lines that hold one of these are not compared.
    pub ignored: &'a [String],
    /// Largest relative error of a number that is still the same.
    pub tolerance: f64,
    /// Outputs of the plain build so far.
    plain: Vec<Vec<u8>>,
    status: Option<ExitStatus>,
}

impl<'a> Trial<'a> {
    /// None run yet.
    pub fn new(
        command: &'a [String],
        timeout: Option<f64>,
        ignored: &'a [String],
        tolerance: f64,
    ) -> Result<Self> {
        Ok(Self {
            command,
            input: Input::open()?,
            timeout,
            ignored,
            tolerance,
            plain: Vec::new(),
            status: None,
        })
    }

    /// Runs `builds`, the plain one first, so many times each, in turn, and the plain one more often: before and after every
    /// [`PAIR`] others, which are told at the speed that the machine had for it.
    pub fn run(&mut self, builds: &[Build], rounds: u32) -> Result<Vec<Shown>> {
        let order = order(builds.len(), rounds);
        let bar = progress::bar("running", order.len() as u64);
        let mut shown = vec![Shown::default(); builds.len()];
        let mut outputs: Vec<Vec<Vec<u8>>> = vec![Vec::new(); builds.len()];
        let mut timed = Vec::new();
        for place in order {
            bar.set_message(builds[place].name.clone());
            if shown[place].differs.is_none() {
                let before = timed.last().map(|(_, seconds)| *seconds);
                let spinner = progress::run(format!("running {}", self.command[0]), before);
                let (seconds, status, output) = self.once(&builds[place])?;
                spinner.finish_and_clear();
                if place == 0 {
                    self.settle(status)?;
                }
                if self.status == Some(status) {
                    timed.push((place, seconds));
                    match place {
                        0 => self.plain.push(output),
                        _ => outputs[place].push(output),
                    }
                } else {
                    let plain = self.status.map(told).unwrap_or_default();
                    shown[place].differs =
                        Some(format!("it {}, and the plain build {plain}", told(status)));
                }
            }
            bar.inc(1);
        }
        bar.finish_and_clear();
        for (place, seconds) in at_one_speed(&timed) {
            shown[place].seconds.push(seconds);
        }
        let varying = self.varying()?;
        for (shown, outputs) in shown.iter_mut().zip(outputs) {
            let differs = outputs
                .iter()
                .find_map(|o| varying.differs(o, self.tolerance));
            shown.differs = shown.differs.take().or(differs);
        }
        Ok(shown)
    }

    /// What of the plain build's output differs from run to run.
    pub fn varying(&self) -> Result<Varying> {
        output::varying(&self.plain, self.ignored).map_err(|why| {
            anyhow::anyhow!(
                "the output of {} differs from run to run ({why}), so nobody can tell whether another build's is right: \
                 leave such lines out by --ignore TEXT, or have the program print none",
                self.command[0]
            )
        })
    }

    fn settle(&mut self, status: ExitStatus) -> Result<()> {
        match self.status.replace(status) {
            None if !status.success() => bail!(
                "{} {}: give it a run that succeeds",
                self.command[0],
                told(status)
            ),
            Some(before) if before != status => bail!(
                "{} {} in one run and {} in another: it does not do the same each time",
                self.command[0],
                told(before),
                told(status)
            ),
            _ => Ok(()),
        }
    }

    fn once(&mut self, build: &Build) -> Result<(f64, ExitStatus, Vec<u8>)> {
        let mut feed = self.input.again()?;
        let mut file = tempfile::tempfile().context("cannot keep the program's output")?;
        let own: File = file
            .try_clone()
            .context("cannot keep the program's output")?;
        let mut command = Command::new(&build.path);
        command
            .arg0(&self.command[0])
            .args(&self.command[1..])
            .stdout(own)
            .stderr(Stdio::null());
        if let Some(stdin) = feed.stdin.take() {
            command.stdin(stdin);
        }
        let ended = supervise::run(&mut command, &self.command[0], self.timeout)?;
        if let Some(late) = ended.late {
            bail!("the {} build: {late}", build.name);
        }
        if let Some(told) = ended.told {
            bail!(told);
        }
        let mut output = Vec::new();
        use std::io::{Read, Seek};
        file.rewind()
            .and_then(|()| file.read_to_end(&mut output))
            .context("cannot read the program's output again")?;
        Ok((ended.seconds, ended.status, output))
    }
}

fn told(status: ExitStatus) -> String {
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
    fn a_machine_that_slows_down_tells_the_same() {
        // Every run takes 10 % longer than the one before; builds 1 and 2 take half and twice as long as the plain one.
        let places = order(3, 2);
        assert_eq!(places, [0, 1, 2, 0, 1, 2, 0]);
        let own = [1.0, 0.5, 2.0];
        let timed: Vec<(usize, f64)> = places
            .iter()
            .enumerate()
            .map(|(at, place)| (*place, own[*place] * (1.0 + 0.1 * at as f64)))
            .collect();
        let told = at_one_speed(&timed);
        for (place, seconds) in told.iter().filter(|t| t.0 != 0) {
            // The middle of the plain build's runs.
            assert!((seconds / own[*place] - 1.3).abs() < 1e-9, "{told:?}");
        }
        let plain: Vec<&f64> = told.iter().filter(|t| t.0 == 0).map(|t| &t.1).collect();
        assert_eq!(plain, [&1.0, &1.3, &1.6]);
    }

    fn shown(seconds: &[f64]) -> Shown {
        Shown {
            seconds: seconds.to_vec(),
            differs: None,
        }
    }

    #[test]
    fn runs_at_another_speed_are_joined_at_one() {
        let mut first = [shown(&[1.0, 1.0, 1.0]), shown(&[0.9, 0.8]), shown(&[0.7])];
        join(
            &mut first,
            vec![shown(&[3.0, 3.0, 3.0]), shown(&[2.4, 2.1])],
        );
        // The plain build's middle is 2 now.
        assert_eq!(first[0].seconds, [1.0, 1.0, 1.0, 3.0, 3.0, 3.0]);
        let near = |a: &f64, b: &f64| (a - b).abs() < 1e-9;
        let expected = [1.8, 1.6, 1.6, 1.4];
        assert!(
            first[1]
                .seconds
                .iter()
                .zip(&expected)
                .all(|(a, b)| near(a, b)),
            "{first:?}"
        );
        // What was not run again is at that speed as well.
        assert_eq!(first[2].seconds, [1.4]);
    }

    #[test]
    fn what_is_known_of_a_build() {
        let some = shown(&[1.0, 1.2, 1.1, 1.3, 0.9, 1.4, 1.5]);
        let (least, most, level) = some.range().expect("a range");
        assert_eq!((least, most), (0.9, 1.5));
        assert!(level > 0.95);
        assert!(shown(&[1.0, 2.0]).range().is_some_and(|r| r.2 == 0.5));
        assert!(some.may_take(0.9) && some.may_take(1.2));
        assert!(!some.may_take(0.8) && !some.may_take(1.6));
        assert!(shown(&[]).may_take(1.0));
    }
}

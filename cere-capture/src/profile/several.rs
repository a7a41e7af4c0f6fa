//! A profile of one run, or of several.

use super::collect::{Collected, Run, collect};
use super::merge::merge;
use super::ranks::Which;
use super::{probes, short};
use crate::classes;
use crate::energy::Metered;
use crate::input::Input;
use crate::launch::Output;
use crate::selection::Selection;
use anyhow::Result;
use cere_catalogue::bail;
use cere_format::profile::{Profile, RegionKey};
use cere_format::store::Store;
use cere_store::build::image::Program;
use cere_store::state;
use cere_system::console::print;
use cere_system::events::Events;

/// Seconds above which as few runs as possible are made: a capture is to take four of them as a whole.
const LONG: f64 = 0.5;

/// Mean number of classes of a region above which they are likely to be noise.
const MANY: usize = 2;

/// Number of runs for reliable times on a busy machine: 3. For a program of more than half a second 1, or 2 if its regions seem to have many
/// classes: a second run shows which of these are noise, and each class would be captured and replayed under all flags.
pub fn sufficient_runs(profile: &Profile) -> u32 {
    sufficient_runs_and_note(profile).0
}

/// Likewise, with a note for the user.
fn sufficient_runs_and_note(profile: &Profile) -> (u32, Option<String>) {
    if profile.seconds < LONG {
        return (3, None);
    }
    match many_classes(profile) {
        None => (1, None),
        Some((classes, regions)) => (
            2,
            Some(format!(
                "the invocations of {regions} regions fall into {classes} classes by their times: a second run shows which of them are noise"
            )),
        ),
    }
}

/// Number of classes of the regions that matter and number of these regions, if there are many classes.
fn many_classes(profile: &Profile) -> Option<(usize, usize)> {
    let kept = Selection::of(profile).ok()?.kept;
    let regions = kept.iter().map(|kept| &profile.regions[kept.region]);
    let classes: Vec<usize> = regions
        .filter_map(|region| Some(classes::of(region).ok()?.classes.len()))
        .collect();
    let all = classes.iter().sum();
    (all > MANY * classes.len()).then_some((all, classes.len()))
}

/// What to profile.
pub struct Command<'a> {
    /// The store for the profile; the caller holds its lock.
    pub store: &'a Store,
    /// The program.
    pub program: &'a Program,
    /// Program and arguments as given.
    pub words: &'a [String],
    /// End a run after this many seconds.
    pub timeout: Option<f64>,
    /// Further invocations whose times are kept for every region.
    pub trace: &'a [u64],
    /// The process that the profile is of.
    pub which: Which,
    /// The exit status of a run that was captured: another end is no run like it.
    pub captured: Option<u8>,
    /// Measures the energy of the runs whose regions are all timed.
    pub energy: Option<&'a Metered>,
    /// What is done.
    pub events: &'a Events,
}

impl Command<'_> {
    /// Profiles `runs` runs, or [`sufficient_runs`] for `None`, and stores the profile. The output of the first run goes to
    /// `output`, that of the others nowhere. If probes take much of the run, as many runs without probes follow, unless a single
    /// run was asked for.
    pub fn profile(
        &self,
        runs: Option<u32>,
        output: Output,
        input: &mut Input,
    ) -> Result<Collected> {
        let mut collected = self.times(runs, output, input)?;
        if !collected.cut {
            let note = short::record(self.store, &collected.profile)?;
            collected.notes.extend(note);
        }
        Ok(collected)
    }

    fn times(&self, runs: Option<u32>, output: Output, input: &mut Input) -> Result<Collected> {
        let mut first = self.profile_once(output, input, None, &self.which)?;
        if let Some(captured) = self.captured.filter(|captured| *captured != first.code) {
            bail!(
                E3018,
                "{} ended with status {}, the captured run with {captured}: does it need its first state again?",
                self.words[0],
                first.code
            );
        }
        // Who stops a run that nobody sees wants no captures after it.
        if let (Some(stopped), Output::Dropped) = (&first.stopped, output) {
            bail!("{stopped}: no profile is kept of this run; the same command begins it again");
        }
        state::write_json(&self.store.profile(), &first.profile)?;
        // Another run would be cut elsewhere.
        if runs == Some(1) || first.cut {
            first.notes.extend(probes::warning(&first.profile));
            return Ok(first);
        }
        let (wanted, why) = match runs {
            Some(runs) => (runs, None),
            None => sufficient_runs_and_note(&first.profile),
        };
        if let Some(why) = why {
            self.events.note(why);
        }
        let rarest = probes::least_entered_region(&first.profile);
        if wanted < 2 && rarest.is_none() {
            return Ok(first);
        }
        let mut profiles = vec![first.profile.clone()];
        let mut bare = Vec::new();
        for number in 1..=wanted {
            if number > 1 {
                self.events.note(format!(
                    "run {number} of {wanted} for the times in vivo, without output"
                ));
                match self.another(input, None, &first) {
                    Ok(profile) => profiles.push(profile),
                    Err(why) => {
                        first.profile.alone = Some(format!("run {number} {why}"));
                        break;
                    }
                }
            }
            if let Some(key) = &rarest {
                self.events.note(format!(
                    "run {number} of {wanted} for what the probes cost, without most of them and without output"
                ));
                let only = std::slice::from_ref(key);
                match self.another(input, Some(only), &first) {
                    Ok(profile) => bare.push(profile),
                    Err(why) => {
                        first.profile.alone = Some(format!("a further run {why}"));
                        break;
                    }
                }
            }
        }
        if let Some(why) = &first.profile.alone {
            first.notes.push(format!(
                "{why}: it is not merged, and no more runs are made; the times are those of {}. Does the program need its first state again? Named regions with --invocation are captured in the first run",
                match profiles.len() {
                    1 => "one run".to_owned(),
                    runs => format!("{runs} runs"),
                }
            ));
        }
        if let Some((mut merged, note)) = merge(profiles) {
            merged.ended = first.profile.ended.take().or(merged.ended);
            merged.alone = first.profile.alone.take();
            first.notes.extend(note);
            if rarest.is_some() && !bare.is_empty() {
                let note = probes::subtract_probes(&mut merged, &bare, wanted as usize);
                first.notes.extend(note);
            }
            state::write_json(&self.store.profile(), &merged)?;
            first.profile = merged;
        }
        Ok(first)
    }

    /// One more run like the `first`, without output; the error says in what it was not.
    fn another(
        &self,
        input: &mut Input,
        only: Option<&[RegionKey]>,
        first: &Collected,
    ) -> Result<Profile, String> {
        let which = Which::Same(first.profile.process.clone());
        match self.profile_once(Output::Dropped, input, only, &which) {
            Err(error) => Err(format!("failed ({})", print::error(&error))),
            Ok(run) if run.cut => Err("was cut short".to_owned()),
            Ok(run) if run.code != first.code => Err(format!(
                "ended with status {}, the first one with {}",
                run.code, first.code
            )),
            Ok(run) => Ok(run.profile),
        }
    }

    /// A run that times `only` these regions; `None` for all.
    fn profile_once(
        &self,
        output: Output,
        input: &mut Input,
        only: Option<&[RegionKey]>,
        which: &Which,
    ) -> Result<Collected> {
        let mut feed = input.for_next_run()?;
        let run = Run {
            store: self.store,
            program: self.program,
            build: None,
            which,
            command: self.words,
            timeout: self.timeout,
            output,
            trace: self.trace,
            only,
            environment: &[],
            energy: self.energy.filter(|_| only.is_none()),
            events: self.events,
        };
        collect(&run, feed.stdin.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cere_testing::profile as fixture;

    #[test]
    fn what_takes_long_runs_again_where_times_are_scattered() {
        let mut profile = fixture::profile(&[("f", None, 0.6, 1e8), ("g", None, 0.4, 1e8)]);
        let times = |region: &mut cere_format::profile::RegionProfile, of: fn(u64) -> u64| {
            region.trace.first = (1..=100).map(of).collect();
            region.invocations = 100;
        };
        let even = |_| 1_000_000;
        let scattered = |i| 1_000_000 + 50_000 * (i * 37 % 100);
        for region in &mut profile.regions {
            times(region, even);
        }
        profile.seconds = 0.4;
        assert_eq!(sufficient_runs(&profile), 3);
        profile.seconds = 0.6;
        assert_eq!(sufficient_runs(&profile), 1);
        times(&mut profile.regions[0], scattered);
        assert_eq!(sufficient_runs(&profile), 2);
        // Known to be noise.
        profile.regions[0].noise = 1.0;
        assert_eq!(sufficient_runs(&profile), 1);
    }
}

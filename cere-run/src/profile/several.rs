//! A profile of one run, or of several.

use super::collect::{Collected, Run, collect};
use super::merge::merge;
use super::probes;
use crate::classes;
use crate::input::Input;
use crate::launch::Output;
use crate::selection::Selection;
use anyhow::Result;
use cere_build::image::Program;
use cere_console::note;
use cere_format::profile::{Profile, RegionKey};
use cere_format::store::Store;
use cere_store::state;

/// Seconds from which on a program takes long: each of its runs is one to think twice about.
const LONG: f64 = 20.0;

/// Classes of a region, in the mean, from which on they are likely to be noise.
const MANY: usize = 2;

/// Runs for times that can be believed on a machine where other things happen: 3. Of a program that takes long 1, and 2
/// where a second one tells which of the many classes that regions seem to have are noise: each would be captured, and
/// replayed under all flags.
pub fn enough(profile: &Profile) -> u32 {
    advised(profile).0
}

/// Likewise, with what to tell people of them.
fn advised(profile: &Profile) -> (u32, Option<String>) {
    if profile.seconds < LONG {
        return (3, None);
    }
    match scattered(profile) {
        None => (1, None),
        Some((classes, regions)) => (
            2,
            Some(format!(
                "the invocations of {regions} regions fall into {classes} classes by their times: a second run shows which of them are noise"
            )),
        ),
    }
}

/// Classes of the regions worth a codelet and the number of these regions, if that is many classes.
fn scattered(profile: &Profile) -> Option<(usize, usize)> {
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
    /// Store that the profile is kept in; the caller holds its lock.
    pub store: &'a Store,
    /// The program.
    pub program: &'a Program,
    /// Program and arguments as given.
    pub words: &'a [String],
    /// End a run after this many seconds.
    pub timeout: Option<f64>,
    /// Invocations whose times are kept of every region beyond those that are kept anyway.
    pub trace: &'a [u64],
}

impl Command<'_> {
    /// Profiles `runs` runs, or, if none is said, [`enough`], and keeps the profile in the store. The first run's output
    /// goes to `output`, that of the others nowhere. Unless a single run was asked for, there are as many more without
    /// probes where these take much of the run.
    pub fn profile(
        &self,
        runs: Option<u32>,
        output: Output,
        input: &mut Input,
    ) -> Result<Collected> {
        let mut first = self.once(output, input, None)?;
        state::write_json(&self.store.profile(), &first.profile)?;
        // A program that fails is not run for it again.
        if runs == Some(1) || first.code != 0 {
            first.notes.extend(probes::warning(&first.profile));
            return Ok(first);
        }
        let (wanted, why) = match runs {
            Some(runs) => (runs, None),
            None => advised(&first.profile),
        };
        if let Some(why) = why {
            note!("{why}");
        }
        let rarest = probes::rarest(&first.profile);
        if wanted < 2 && rarest.is_none() {
            return Ok(first);
        }
        let mut profiles = vec![first.profile.clone()];
        let mut bare = Vec::new();
        for number in 1..=wanted {
            if number > 1 {
                note!("run {number} of {wanted} for the times in vivo, without output");
                profiles.push(self.once(Output::Dropped, input, None)?.profile);
            }
            if let Some(key) = &rarest {
                note!(
                    "run {number} of {wanted} for what the probes cost, without most of them and without output"
                );
                let only = std::slice::from_ref(key);
                let run = self.once(Output::Dropped, input, Some(only))?;
                bare.extend((run.code == 0).then_some(run.profile));
            }
        }
        if let Some((mut merged, note)) = merge(profiles) {
            first.notes.extend(note);
            if rarest.is_some() {
                let note = probes::settle(&mut merged, &bare, wanted as usize);
                first.notes.extend(note);
            }
            state::write_json(&self.store.profile(), &merged)?;
            first.profile = merged;
        }
        Ok(first)
    }

    /// A run in which `only` these regions are timed; none: all.
    fn once(
        &self,
        output: Output,
        input: &mut Input,
        only: Option<&[RegionKey]>,
    ) -> Result<Collected> {
        let mut feed = input.again()?;
        let run = Run {
            store: self.store,
            program: self.program,
            command: self.words,
            timeout: self.timeout,
            output,
            trace: self.trace,
            only,
            environment: &[],
        };
        collect(&run, feed.stdin.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cere_fuzz::profile as fixture;

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
        assert_eq!(enough(&profile), 3);
        profile.seconds = 30.0;
        for region in &mut profile.regions {
            region.inclusive_seconds *= 30.0;
            region.self_seconds *= 30.0;
        }
        for node in &mut profile.tree {
            node.inclusive_seconds *= 30.0;
            node.self_seconds *= 30.0;
        }
        assert_eq!(enough(&profile), 1);
        times(&mut profile.regions[0], scattered);
        assert_eq!(enough(&profile), 2);
        // Known to be noise.
        profile.regions[0].noise = 1.0;
        assert_eq!(enough(&profile), 1);
    }
}

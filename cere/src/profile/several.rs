//! A profile of one run, or of several.

use super::collect::{Collected, Run, collect};
use super::merge::merge;
use super::probes;
use crate::image::Program;
use crate::input::Input;
use crate::launch::Output;
use crate::state;
use anyhow::Result;
use cere_format::profile::RegionKey;
use cere_format::store::Store;

/// Runs for times that can be believed on a machine where other things happen: 3, or 1 of a program that takes long.
pub fn enough(seconds: f64) -> u32 {
    if seconds < 20.0 { 3 } else { 1 }
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
        let wanted = runs.unwrap_or(enough(first.profile.seconds));
        let rarest = probes::rarest(&first.profile);
        if wanted < 2 && rarest.is_none() {
            return Ok(first);
        }
        let mut profiles = vec![first.profile.clone()];
        let mut bare = Vec::new();
        for number in 1..=wanted {
            if number > 1 {
                eprintln!("cere: run {number} of {wanted} for the times in vivo, without output");
                profiles.push(self.once(Output::Dropped, input, None)?.profile);
            }
            if let Some(key) = &rarest {
                eprintln!(
                    "cere: run {number} of {wanted} for what the probes cost, without most of them and without output"
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

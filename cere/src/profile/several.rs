//! A profile of one run, or of several.

use super::collect::{Collected, Run, collect};
use super::merge::merge;
use crate::image::Program;
use crate::input::Input;
use crate::launch::Output;
use crate::state;
use anyhow::Result;
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
    /// goes to `output`, that of the others nowhere.
    pub fn profile(
        &self,
        runs: Option<u32>,
        output: Output,
        input: &mut Input,
    ) -> Result<Collected> {
        let mut first = self.once(output, input)?;
        state::write_json(&self.store.profile(), &first.profile)?;
        let wanted = runs.unwrap_or(enough(first.profile.seconds));
        // A program that fails is not run for it again.
        if wanted < 2 || first.code != 0 {
            return Ok(first);
        }
        let mut profiles = vec![first.profile.clone()];
        for number in 2..=wanted {
            eprintln!("cere: run {number} of {wanted} for the times in vivo, without output");
            profiles.push(self.once(Output::Dropped, input)?.profile);
        }
        if let Some((merged, note)) = merge(profiles) {
            state::write_json(&self.store.profile(), &merged)?;
            first.profile = merged;
            first.notes.extend(note);
        }
        Ok(first)
    }

    fn once(&self, output: Output, input: &mut Input) -> Result<Collected> {
        let mut feed = input.again()?;
        let run = Run {
            store: self.store,
            program: self.program,
            command: self.words,
            timeout: self.timeout,
            output,
            trace: self.trace,
            only: None,
            environment: &[],
        };
        collect(&run, feed.stdin.take())
    }
}

//! Captures: runs of the program that yield codelets.

mod choose;
mod invocations;
mod missing;
mod others;
mod pack;
mod runs;
mod times;
mod traces;

pub use choose::Skipped;
pub use invocations::parse as parse_invocations;
pub use missing::Refused;
pub use traces::Tracing;

use crate::input::Input;
use crate::launch::{Beside, Finished, Launch, Output};
use crate::{profile, reads};
use anyhow::Result;
use cere_format::capture::{RunMode, Wanted};
use cere_format::package::CapturedRun;
use cere_format::profile::{Elsewhere, PROFILE_VERSION, Profile, RegionKey};
use cere_format::store::Store;
use cere_store::build::image::Program;
use cere_store::codelets::Listed;
use cere_store::names::{self, Named};
use cere_store::state;
use cere_system::console::{note, print, warning};
use choose::{Choice, Wish};
use others::Others;
use pack::Packing;
use runs::Runs;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::atomic::AtomicBool;

/// What to capture, and how.
pub struct Request<'a> {
    /// The store; its lock is taken.
    pub store: &'a Store,
    /// Program and arguments as given.
    pub command: &'a [String],
    /// Names, globs or unique prefixes of regions; empty for those that matter.
    pub patterns: &'a [String],
    /// Invocations, rising, from 1; `None` for the representatives.
    pub invocations: Option<Vec<u64>>,
    /// Whether to skip what the store has and what could not be captured before.
    pub missing: bool,
    /// How pages are traced before captured invocations; `None` for no traces.
    pub tracing: Option<Tracing>,
    /// Seconds after which a run is killed.
    pub timeout: Option<f64>,
    /// Runs for the times in vivo; `None` for the number of [`profile::sufficient_runs`].
    pub runs: Option<u32>,
    /// Where the output of the first run goes.
    pub output: Output,
}

/// The result of a capture.
pub struct Taken {
    /// New codelets.
    pub codelets: Vec<Listed>,
    /// Regions and invocations without one, and why.
    pub skipped: Vec<Skipped>,
    /// Codelets without a time in vivo, and why.
    pub untimed: Vec<String>,
    /// What became of other codelets.
    pub notes: Vec<String>,
    /// How it ended.
    pub end: End,
}

/// How a capture ended.
pub enum End {
    /// The store has all codelets that can be had.
    Complete,
    /// No region matters.
    Nothing {
        /// Number of regions that ran in threads other than the first alone, which are not captured.
        elsewhere: usize,
    },
    /// The program ran.
    Ran {
        /// How its first run ended.
        status: ExitStatus,
        /// Why not all needed runs came to their end, if so.
        cut: Option<String>,
        /// Whether a capture that should have become a codelet was lost.
        lost: bool,
    },
}

struct Session<'a> {
    request: &'a Request<'a>,
    program: Program,
    input: Input,
}

/// Captures. The error says why the program was not run.
pub fn take(request: &Request) -> Result<Taken> {
    let store = request.store;
    let program = Program::open(&request.command[0], store)?;
    let all = names::named(&state::current_units(store)?);
    let named = match request.patterns {
        [] => None,
        patterns => Some(choose::by_pattern(&all, patterns, program.units.as_ref())?),
    };
    let wish = Wish {
        named,
        list: request.invocations.clone(),
    };
    let _lock = state::lock(store)?;
    let here = std::env::current_dir()?;
    let captured = CapturedRun::of(
        request.command,
        &here,
        &program.hash,
        &reads::of(request.command),
    );
    let mut profile = fitting_profile(store, &program, request.command, &all);
    if let Some(stored) = &profile
        && (!stored.was_cut()
            && stored.runs
                < request
                    .runs
                    .unwrap_or_else(|| profile::sufficient_runs(stored))
            || !times::all_known(stored, &wish.choices(profile.as_ref())?.0))
    {
        profile = None;
    }
    let mut session = Session {
        request,
        input: Input::open()?,
        program,
    };
    if profile.is_none() && !wish.needs_no_profile() {
        note!(
            "the store has no sufficient profile of this command with what it reads now: profiling first, without its output"
        );
        profile = Some(session.profile(wish.list.as_deref().unwrap_or(&[]))?);
    }
    let (mut choices, mut skipped) = wish.choices(profile.as_ref())?;
    let mut refused = Refused::of(store, &session.program, request.command);
    let ended = |skipped, end| Taken {
        codelets: Vec::new(),
        skipped,
        untimed: Vec::new(),
        notes: Vec::new(),
        end,
    };
    let same = |of: &CapturedRun| {
        let input = profile.as_ref().is_none_or(|profile| of.is_of(profile));
        of.is_command_of(&captured) && of.program == captured.program && input
    };
    if request.missing && !choices.is_empty() {
        skipped.append(&mut refused.leave_out(store, &same, &mut choices)?);
        if choices.is_empty() {
            return Ok(ended(skipped, End::Complete));
        }
    }
    if choices.is_empty() {
        let elsewhere = profile.as_ref().map_or(0, |profile| {
            let alone = |e: &&Elsewhere| profile.region(&e.key).is_none();
            profile.elsewhere.iter().filter(alone).count()
        });
        return Ok(ended(skipped, End::Nothing { elsewhere }));
    }
    let others = Others::than(&captured, store);
    let early = match &profile {
        Some(profile) => Some(Packing::of(store, &captured, &choices, Some(profile))?),
        None => None,
    };
    let runs = Runs::make(&choices, |choices, first| {
        session.capture(choices, first, profile.as_ref(), &all, early.as_ref())
    })?;
    let late;
    let packing = match early {
        Some(packing) => packing,
        None => {
            late = session.profile_after(&runs, wish.list.as_deref().unwrap_or(&[]));
            Packing::of(store, &captured, &choices, late.as_ref())?
        }
    };
    let mut outcome = packing.make_all(&runs)?;
    skipped.append(&mut outcome.skipped);
    refused.update(store, &outcome.codelets, &skipped)?;
    skipped.append(&mut outcome.postponed);
    Ok(Taken {
        codelets: outcome.codelets,
        skipped,
        untimed: outcome.untimed,
        notes: others.replaced(&captured),
        end: End::Ran {
            status: runs.first.status,
            cut: runs.cut,
            lost: outcome.lost,
        },
    })
}

/// The stored profile, if it belongs to this command and the command would read the same input now.
fn fitting_profile(
    store: &Store,
    program: &Program,
    command: &[String],
    all: &[Named],
) -> Option<Profile> {
    let profile: Profile = state::read_json(&store.profile()).ok()?;
    let here = std::env::current_dir().ok()?;
    let known = |r: &cere_format::profile::RegionProfile| all.iter().any(|n| n.key == r.key);
    let fits = profile.version == PROFILE_VERSION
        && profile.program == program.hash
        && profile.command == command
        && profile.directory == here
        && reads::would_read_same(&profile.input, &reads::of(command))
        && profile.regions.iter().all(known);
    fits.then_some(profile)
}

impl Session<'_> {
    fn profile(&mut self, invocations: &[u64]) -> Result<Profile> {
        let command = profile::Command {
            store: self.request.store,
            program: &self.program,
            words: self.request.command,
            timeout: self.request.timeout,
            trace: invocations,
        };
        let collected = command.profile(self.request.runs, Output::Dropped, &mut self.input)?;
        for text in &collected.notes {
            note!("profile: {text}");
        }
        Ok(collected.profile)
    }

    /// A profile after the captures of `runs`, for the times in vivo. If a capture ran out of time, that would too.
    fn profile_after(&mut self, runs: &Runs, invocations: &[u64]) -> Option<Profile> {
        if !runs.usable() || runs.cut.is_some() {
            return None;
        }
        note!("running once more, without output, for the times in vivo");
        self.profile(invocations)
            .inspect_err(|error| warning!("no times in vivo: {}", print::error(error)))
            .ok()
    }

    /// One run; only the output of the first one is shown. What it captures is packed meanwhile.
    fn capture(
        &mut self,
        choices: &[Choice],
        first: bool,
        profile: Option<&Profile>,
        all: &[Named],
        packing: Option<&Packing>,
    ) -> Result<Finished> {
        let tracing = &self.request.tracing;
        let name = |key: &RegionKey| {
            let named = all.iter().find(|n| n.key == *key);
            named.map_or_else(|| "a region".into(), |n| n.name.clone())
        };
        let numbers = |c: &Choice| -> Vec<u64> { c.invocations.iter().map(|(i, _)| *i).collect() };
        let wanted = choices
            .iter()
            .map(|c| Wanted {
                key: c.key.clone(),
                invocations: numbers(c),
                starts: match tracing {
                    Some(tracing) => tracing.starts(profile, &c.key, &numbers(c), name),
                    None => Vec::new(),
                },
            })
            .collect();
        let follow = packing.map(|packing| {
            move |directory: &Path, over: &AtomicBool| packing.follow(directory, over)
        });
        let mut feed = self.input.for_next_run()?;
        Launch {
            store: self.request.store,
            program: &self.program,
            command: self.request.command,
            mode: RunMode::Capture {
                wanted,
                trace: tracing.as_ref().map(Tracing::plan),
            },
            trace: &[],
            timeout: self.request.timeout,
            output: match first {
                true => self.request.output,
                false => Output::Dropped,
            },
            environment: &[],
            input: feed.stdin.take(),
            beside: follow.as_ref().map(|follow| follow as &Beside),
        }
        .run()
    }
}

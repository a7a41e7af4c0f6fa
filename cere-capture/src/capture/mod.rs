//! Captures: runs of the program that yield codelets.

mod choose;
mod forecast;
mod invocations;
mod missing;
mod others;
mod pack;
mod request;
mod runs;
mod threads;
mod times;
mod traces;
mod untimed;

pub use choose::Skipped;
pub use forecast::Forecast;
pub use invocations::parse as parse_invocations;
pub use missing::Refused;
pub use request::{End, Ranks, Request, Taken};
pub use traces::Tracing;

use crate::input::Input;
use crate::launch::{Beside, Finished, Launch, Output};
use crate::profile::{self, Which};
use crate::reads;
use anyhow::{Context, Result};
use cere_catalogue::{OrCoded, bail, codes};
use cere_format::capture::{RunMode, Wanted};
use cere_format::package::CapturedRun;
use cere_format::profile::{PROFILE_VERSION, Profile, RegionKey, RegionProfile, RunInput};
use cere_store::build::image::Program;
use cere_store::names::{self, Named};
use cere_store::state;
use cere_system::console::print;
use cere_system::process::supervise::shell_code;
use choose::{Choice, Wish};
use others::Others;
use pack::{Outcome, Packing};
use runs::Runs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

struct Session<'a> {
    request: &'a Request<'a>,
    /// The process that is captured.
    which: Which,
    /// Whether the names of codelets tell the rank.
    by_rank: bool,
    program: Program,
    /// The regions of the store.
    all: Vec<Named>,
    input: Input,
}

/// Captures. The error says why the program was not run.
pub fn take(request: &Request) -> Result<Taken> {
    Program::open(request.command, request.store)?;
    let _lock = state::lock(request.store)?;
    match &request.ranks {
        Ranks::Slowest => take_of(request, Which::Main, false),
        Ranks::These(ranks) => match &ranks[..] {
            [rank] => take_of(request, Which::Rank(rank.clone()), false),
            several => take_each(request, several),
        },
        Ranks::All => {
            let command = request.command;
            let mut session = Session::open(request, Which::Main, true)?;
            let profile = match session.fitting_profile() {
                Some(stored) => stored,
                None => session.profile(None)?,
            };
            let ranks: Vec<String> = profile.ranks.iter().map(|r| r.rank.clone()).collect();
            if ranks.is_empty() {
                bail!(
                    E3015,
                    "{} has no ranks, or only one: leave out --rank",
                    command[0]
                );
            }
            take_each(request, &ranks)
        }
    }
}

/// What a capture would do: profiles the program if the store has no sufficient profile. The error says why the program was not run.
pub fn forecast(request: &Request) -> Result<Forecast> {
    Program::open(request.command, request.store)?;
    let _lock = state::lock(request.store)?;
    let task = Task::of(request, Which::Main, false)?;
    let profile = task.profile.as_ref();
    let profile = profile.or_coded(
        codes::E3016,
        || "there is no profile, and named invocations need none: leave out --plan",
    )?;
    Ok(Forecast::of(profile, &task.choices))
}

/// What is to be captured of one process.
struct Task<'a> {
    session: Session<'a>,
    profile: Option<Profile>,
    captured: CapturedRun,
    choices: Vec<Choice>,
    skipped: Vec<Skipped>,
    refused: Refused,
    /// Whether nothing is left of what was to be captured, because the store has it or it could not be captured before.
    complete: bool,
}

impl<'a> Task<'a> {
    fn of(request: &'a Request, which: Which, by_rank: bool) -> Result<Self> {
        let store = request.store;
        let mut session = Session::open(request, which, by_rank)?;
        let units = session.program.image.as_ref().map(|image| &image.units);
        let named = match request.patterns {
            [] => None,
            patterns => Some(choose::by_pattern(&session.all, patterns, units)?),
        };
        let wish = Wish {
            named,
            list: request.invocations.clone(),
            thread: request.thread,
        };
        let reads = reads::of(request.command);
        let profile = session.profile_before(&wish)?;
        let captured = session.captured_run(profile.as_ref(), &reads)?;
        let (mut choices, mut skipped) = wish.choices(profile.as_ref())?;
        let refused = Refused::of(store, &captured.program, request.command);
        let asked = !choices.is_empty();
        if request.missing && asked {
            let same = |of: &CapturedRun| {
                let input = profile.as_ref().is_none_or(|profile| of.is_of(profile));
                of.is_command_of(&captured) && of.program == captured.program && input
            };
            skipped.append(&mut refused.leave_out(store, &same, &mut choices)?);
        }
        Ok(Self {
            complete: asked && choices.is_empty(),
            session,
            profile,
            captured,
            choices,
            skipped,
            refused,
        })
    }
}

/// Captures in each of `ranks`, with a profile of each.
fn take_each(request: &Request, ranks: &[String]) -> Result<Taken> {
    let mut all: Option<Taken> = None;
    for rank in ranks {
        request.events.note(format!("rank {rank}"));
        let taken = take_of(request, Which::Rank(rank.clone()), true)?;
        all = Some(match all {
            None => taken,
            Some(before) => before.and(taken),
        });
    }
    all.context("--rank names no rank")
}

fn take_of(request: &Request, which: Which, by_rank: bool) -> Result<Taken> {
    let store = request.store;
    let Task {
        mut session,
        profile,
        captured,
        choices,
        mut skipped,
        mut refused,
        complete,
    } = Task::of(request, which, by_rank)?;
    if complete {
        return Ok(Taken::nothing(skipped, End::Complete));
    }
    if choices.is_empty() {
        let elsewhere = profile.as_ref().map_or(0, |p| p.elsewhere().count());
        return Ok(Taken::nothing(skipped, End::Nothing { elsewhere }));
    }
    let others = Others::than(&captured, store);
    let (runs, mut outcome) = session.capture_all(&captured, &choices, profile.as_ref())?;
    session.hint_at_split(&mut outcome.skipped);
    skipped.append(&mut outcome.skipped);
    // What one thread does not do another may.
    let of_region = match request.thread {
        None => &skipped[..],
        Some(_) => &[],
    };
    refused.update(store, &outcome.codelets, of_region)?;
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

impl<'a> Session<'a> {
    fn open(request: &'a Request<'a>, which: Which, by_rank: bool) -> Result<Self> {
        let mut program = Program::open(request.command, request.store)?;
        if request.process_key.is_some() {
            program.process_key.clone_from(&request.process_key);
        }
        Ok(Self {
            request,
            which,
            by_rank,
            program,
            all: names::named(&state::current_units(request.store)?),
            input: Input::open(request.events)?,
        })
    }

    /// The run that is captured: a launcher's program and rank are those of `profile`.
    fn captured_run(&self, profile: Option<&Profile>, reads: &RunInput) -> Result<CapturedRun> {
        let program = match (profile, &self.program.image) {
            (Some(profile), _) => profile.program.clone(),
            (None, Some(image)) => image.hash.clone(),
            (None, None) => String::new(),
        };
        Ok(CapturedRun::of(
            self.request.command,
            &std::env::current_dir()?,
            &program,
            profile.and_then(|p| p.process.rank.as_deref()),
            reads,
        ))
    }

    /// A loop that communicates may have others inside that do not.
    fn hint_at_split(&self, skipped: &mut [Skipped]) {
        for one in skipped
            .iter_mut()
            .filter(|s| s.reason.starts_with("calls "))
        {
            let named = self.all.iter().find(|n| n.name == one.region);
            let inside = named.and_then(|n| n.region.inside).unwrap_or(0);
            let loops = match inside {
                0 => continue,
                1 => "a loop inside is no region".to_owned(),
                more => format!("{more} loops inside are no regions"),
            };
            one.reason += &format!(
                "; {loops}: `cere instrument --split '{}' -- BUILD` makes regions of them",
                one.region
            );
        }
    }

    /// The stored profile if that suffices for `wish`, else a new one; none if the wish needs none.
    fn profile_before(&mut self, wish: &Wish) -> Result<Option<Profile>> {
        if let Some(stored) = self.fitting_profile()
            && self.suffices(&stored, wish)?
        {
            return Ok(Some(stored));
        }
        // Nothing but a run shows which process of a launcher is meant.
        let known = self.program.is_direct() && matches!(self.which, Which::Main);
        if wish.needs_no_profile() && known {
            return Ok(None);
        }
        self.request.events.note(
            "the store has no sufficient profile of this command with what it reads now: profiling first, without its output",
        );
        self.profile(None).map(Some)
    }

    /// The stored profile, if it belongs to this command and the command would read the same input now.
    fn fitting_profile(&self) -> Option<Profile> {
        let profile: Profile = state::read_json(&self.request.store.profile()).ok()?;
        let here = std::env::current_dir().ok()?;
        let known = |r: &RegionProfile| self.all.iter().any(|n| n.key == r.key);
        let fits = profile.version == PROFILE_VERSION
            && self
                .program
                .image
                .as_ref()
                .is_some_and(|i| i.hash == profile.program)
            && self.is_process(&profile)
            && profile.process_key == self.program.process_key
            && profile.command == self.request.command
            && profile.directory == here
            && reads::would_read_same(&profile.input, &reads::of(self.request.command))
            && profile.regions.iter().all(known);
        fits.then_some(profile)
    }

    fn is_process(&self, profile: &Profile) -> bool {
        match &self.which {
            Which::Rank(rank) => profile.process.rank.as_ref() == Some(rank),
            _ => !profile.by_rank,
        }
    }

    /// Whether a profile is of enough runs and has the times of what is wanted.
    fn suffices(&self, stored: &Profile, wish: &Wish) -> Result<bool> {
        let runs = self.request.runs;
        let enough = || stored.runs >= runs.unwrap_or_else(|| profile::sufficient_runs(stored));
        Ok((stored.was_cut() || stored.alone.is_some() || enough())
            && times::all_known(stored, &wish.choices(Some(stored))?.0))
    }

    /// Runs the program for a profile, after a run that was `captured` and ended with this status.
    fn profile(&mut self, captured: Option<u8>) -> Result<Profile> {
        let events = self.request.events;
        let command = profile::Command {
            store: self.request.store,
            program: &self.program,
            words: self.request.command,
            timeout: self.request.timeout,
            trace: self.request.invocations.as_deref().unwrap_or(&[]),
            which: self.which.clone(),
            captured,
            energy: None,
            events,
        };
        let collected = command.profile(self.request.runs, Output::Dropped, &mut self.input)?;
        for text in &collected.notes {
            events.note(format!("profile: {text}"));
        }
        if self.program.image.is_none() {
            self.program = Program::open(self.request.command, self.request.store)?;
        }
        self.program
            .process_key
            .clone_from(&collected.profile.process_key);
        Ok(collected.profile)
    }

    /// The runs for `choices`, and their codelets. Without a profile there is one afterwards, for the times in vivo.
    fn capture_all(
        &mut self,
        captured: &CapturedRun,
        choices: &[Choice],
        profile: Option<&Profile>,
    ) -> Result<(Runs, Outcome)> {
        let (store, events) = (self.request.store, self.request.events);
        let by_rank = self.by_rank;
        let packing = |profile| Packing::of(store, captured, by_rank, choices, profile);
        let early = profile.map(|profile| packing(Some(profile))).transpose()?;
        let runs = Runs::make(choices, events, |choices, first| {
            self.capture(choices, first, profile, early.as_ref())
        })?;
        let outcome = match early {
            Some(early) => early.make_all(&runs, events)?,
            None => {
                let late = self.profile_after(&runs);
                packing(late.as_ref())?.make_all(&runs, events)?
            }
        };
        Ok((runs, outcome))
    }

    /// A profile after the captures of `runs`, for the times in vivo. If a capture ran out of time, that would too.
    fn profile_after(&mut self, runs: &Runs) -> Option<Profile> {
        if !runs.usable() || runs.cut.is_some() {
            return None;
        }
        let events = self.request.events;
        events.note("running once more, without output, for the times in vivo");
        let missing =
            |error: &_| events.warning(format!("no times in vivo: {}", print::error(error)));
        self.profile(Some(shell_code(runs.first.status)))
            .inspect_err(missing)
            .ok()
    }

    /// One run; only the output of the first one is shown. What it captures is packed meanwhile.
    fn capture(
        &mut self,
        choices: &[Choice],
        first: bool,
        profile: Option<&Profile>,
        packing: Option<&Packing>,
    ) -> Result<Finished> {
        let captures = choices.iter().map(|c| c.invocations.len()).sum();
        let tracing = self.request.tracing.clone();
        let tracing = tracing.map(|t| t.fitting(profile.map(|p| p.seconds), captures));
        let name = |key: &RegionKey| {
            let named = self.all.iter().find(|n| n.key == *key);
            named.map_or_else(|| "a region".into(), |n| n.name.clone())
        };
        // Also one that lacks what is wanted says how long a region takes.
        let stored = profile.is_none().then(|| self.fitting_profile()).flatten();
        let timed = profile.or(stored.as_ref());
        let numbers = |c: &Choice| -> Vec<u64> { c.invocations.iter().map(|(i, _)| *i).collect() };
        let wanted = choices
            .iter()
            .map(|c| Wanted {
                key: c.key.clone(),
                thread: c.thread,
                invocations: numbers(c),
                seconds: timed.and_then(|profile| times::longest(profile, &c.key)),
                starts: match &tracing {
                    // A page trace is of the first thread.
                    _ if c.thread != 0 => Vec::new(),
                    Some(tracing) => tracing.starts(profile, &c.key, &numbers(c), name),
                    None => Vec::new(),
                },
            })
            .collect();
        let follow = packing.map(|packing| {
            move |directory: &Path, over: &AtomicBool| packing.follow(directory, over)
        });
        let mut feed = self.input.for_next_run()?;
        let ranks = profile
            .and_then(|p| p.process.rank.clone())
            .map(|rank| vec![rank]);
        Launch {
            store: self.request.store,
            program: &self.program,
            build: None,
            command: self.request.command,
            mode: RunMode::Capture {
                wanted,
                trace: tracing.as_ref().map(Tracing::plan),
                ranks,
            },
            trace: &[],
            timeout: self.request.timeout,
            output: match first {
                true => self.request.output,
                false => Output::Dropped,
            },
            environment: &[],
            energy: None,
            events: self.request.events,
            input: feed.stdin.take(),
            beside: follow.as_ref().map(|follow| follow as &Beside),
        }
        .run()
    }
}

//! `cere capture [REGION...] -- CMD`: takes codelets out of a run.

mod choose;
mod invocations;
mod missing;
mod pack;
mod runs;
mod times;
mod traces;

use crate::image::Program;
use crate::input::Input;
use crate::launch::{Launch, Output};
use crate::names::{self, Named};
use crate::options::{self, Common};
use crate::supervise::shell_code;
use crate::{print, profile, reads, state};
use anyhow::{Result, bail};
use cere_format::capture::{RunMode, Wanted};
use cere_format::profile::{PROFILE_VERSION, Profile, RegionKey};
use cere_format::store::Store;
use choose::{Choice, Skipped, Wish};
use runs::Runs;
use traces::TraceOptions;

pub use missing::Refused;

/// Take codelets out of a run
#[derive(clap::Args)]
#[command(after_help = "\
Without REGION it takes every region with more than 1 % of the run time and 2000 or more cycles an invocation, by\n\
the profile of the same command; regions below that leave their time to those that call them. Without --invocation\n\
it takes the representatives of each region's invocations: those that take about the same time form a class, and\n\
one stands for all. Where there is no profile of the command the program runs for one first, without output; of named\n\
regions with --invocation the times in vivo are taken by runs after the capture.\n\
\n\
Regions that run inside captured ones are captured by further runs of the program, without its output, for inside a\n\
captured invocation memory is not allocated as in the program. So is what comes after one, if the program has taken more\n\
memory since. There are as many runs as captured invocations lie in one another, seldom more.\n\
\n\
Before a captured invocation the pages are traced that the program touches, so that a replay finds the caches as the\n\
program left them: the last pages touched stay open, what leaves them is logged. A trace begins at the later of the\n\
program's start and the earlier of two events: K invocations before, S seconds before.\n\
\n\
Ends with status 0 if the program did and every region that was named without a glob gave its codelets; regions\n\
that a glob or the profile chose may be skipped, with the reason, as long as there is a codelet. Ends with 1 if\n\
nothing was captured, a named region is missing, a capture was lost or the time was up. Else, if the program fails,\n\
it ends with the program's exit status (128 and the number of a signal). Codelets are kept in any case.\n\
\n\
Examples:\n\
\x20 cere capture -- ./app input\n\
\x20 cere capture 'solve@*' --invocation 1,12 -- ./app input")]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Names, globs or unique prefixes of regions; one that the build has twice means that of the program
    #[arg(value_name = "REGION")]
    patterns: Vec<String>,
    /// Invocations, from 1: `1,12` or `3-5`, instead of the representatives
    #[arg(long, value_name = "LIST")]
    invocation: Option<String>,
    /// Leave out what the store has, and what could not be captured before
    #[arg(long)]
    missing: bool,
    #[command(flatten, next_help_heading = "Page traces")]
    tracing: TraceOptions,
    /// Kill the program after this many seconds
    #[arg(long, value_name = "S", value_parser = options::seconds)]
    timeout: Option<f64>,
    /// Runs for the times in vivo, unless the store's profile is of so many [default: 3, of a program that takes
    /// longer than 20 s 1, or 2 if the times of one are scattered]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: Option<u32>,
    /// The program and its arguments
    #[arg(required = true, last = true)]
    command: Vec<String>,
}

impl Options {
    /// Runs that a profile of this command should be of.
    fn runs(&self, profile: &Profile) -> u32 {
        self.runs.unwrap_or_else(|| profile::enough(profile))
    }
}

struct Session<'a> {
    options: &'a Options,
    store: Store,
    program: Program,
    input: Input,
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    let list = options.invocation.as_deref();
    let list = list.map(invocations::parse).transpose()?;
    let store = options.common.store()?;
    let program = Program::open(&options.command[0], &store)?;
    let all = names::named(&state::current_units(&store)?);
    let named = match &options.patterns[..] {
        [] => None,
        patterns => Some(choose::by_pattern(&all, patterns, program.units.as_ref())?),
    };
    let wish = Wish { named, list };
    let _lock = state::lock(&store)?;
    let mut profile = fitting_profile(&store, &program, &options.command, &all);
    if let Some(stored) = &profile
        && (stored.runs < options.runs(stored)
            || !times::all_known(stored, &wish.choices(profile.as_ref())?.0))
    {
        profile = None;
    }
    let mut session = Session {
        options,
        input: Input::open()?,
        store,
        program,
    };
    if profile.is_none() && !wish.complete() {
        eprintln!(
            "cere: the store has no profile of this command, with what it reads now, that tells enough: running one first, without its output"
        );
        profile = Some(session.profile(wish.list.as_deref().unwrap_or(&[]))?);
    }
    let (mut choices, mut skipped) = wish.choices(profile.as_ref())?;
    let mut refused = Refused::of(&session.store, &session.program, &options.command);
    if options.missing && !choices.is_empty() {
        skipped.append(&mut refused.leave_out(&session.store, &mut choices)?);
        if choices.is_empty() {
            report(options, &[], &skipped)?;
            eprintln!("cere: the store has all codelets that can be had");
            return Ok(0);
        }
    }
    if choices.is_empty() {
        report(options, &[], &skipped)?;
        let threads = profile.as_ref().is_some_and(|p| p.other_threads > 0);
        bail!(
            "there is nothing to capture: no region passes{} (`cere profile` and `cere regions` list them; name one to take it anyway)",
            match threads {
                true => ", and those that ran in threads other than the first are not captured",
                false => "",
            }
        );
    }
    let runs = Runs::make(&choices, |choices, shown| {
        session.capture(choices, shown, profile.as_ref(), &all)
    })?;
    // What would not end in time for a capture would not for its times either.
    if profile.is_none() && runs.usable() && runs.cut.is_none() {
        eprintln!("cere: running once more, without output, for the times in vivo");
        match session.profile(wish.list.as_deref().unwrap_or(&[])) {
            Ok(ran) => profile = Some(ran),
            Err(error) => eprintln!("cere: warning: no times in vivo: {}", print::error(&error)),
        }
    }
    let mut outcome = pack::all(&session.store, &runs, &choices, profile.as_ref())?;
    skipped.append(&mut outcome.skipped);
    refused.update(&session.store, &outcome.codelets, &skipped)?;
    skipped.append(&mut outcome.postponed);
    report(options, &outcome.codelets, &skipped)?;
    for note in &outcome.untimed {
        eprintln!("cere: no time in vivo: {note}");
    }
    if let Some(cut) = runs.cut {
        bail!("{cut}; what was captured until then is kept");
    }
    let status = runs.first.status;
    let code = shell_code(status);
    if code != 0 {
        eprintln!("cere: {} ended with {status}", options.command[0]);
    }
    let missed = skipped.iter().filter(|s| s.named).count();
    if outcome.codelets.is_empty() {
        bail!("nothing was captured: see the reasons above");
    }
    if outcome.lost {
        bail!("some captures were lost: see the reasons above");
    }
    if missed > 0 {
        bail!("{missed} of the named regions were not captured: see the reasons above");
    }
    Ok(code)
}

/// The stored profile, if it is of this very command, which reads the same now.
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
        && reads::same(&profile.input, &reads::of(command))
        && profile.regions.iter().all(known);
    fits.then_some(profile)
}

impl Session<'_> {
    fn profile(&mut self, invocations: &[u64]) -> Result<Profile> {
        let command = profile::Command {
            store: &self.store,
            program: &self.program,
            words: &self.options.command,
            timeout: self.options.timeout,
            trace: invocations,
        };
        let collected = command.profile(self.options.runs, Output::Dropped, &mut self.input)?;
        for note in &collected.notes {
            eprintln!("cere: profile: {note}");
        }
        Ok(collected.profile)
    }

    /// One run; its output is `shown` or dropped.
    fn capture(
        &mut self,
        choices: &[Choice],
        shown: bool,
        profile: Option<&Profile>,
        all: &[Named],
    ) -> Result<crate::launch::Finished> {
        let tracing = &self.options.tracing;
        let trace = tracing.plan();
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
                starts: match trace {
                    Some(_) => tracing.starts(profile, &c.key, &numbers(c), name),
                    None => Vec::new(),
                },
            })
            .collect();
        let mut feed = self.input.again()?;
        Launch {
            store: &self.store,
            program: &self.program,
            command: &self.options.command,
            mode: RunMode::Capture { wanted, trace },
            trace: &[],
            timeout: self.options.timeout,
            output: match (shown, self.options.common.json) {
                (false, _) => Output::Dropped,
                (true, true) => Output::ToStderr,
                (true, false) => Output::Kept,
            },
            environment: &[],
            input: feed.stdin.take(),
        }
        .run()
    }
}

fn report(
    options: &Options,
    codelets: &[crate::codelets::Listed],
    skipped: &[Skipped],
) -> Result<()> {
    if options.common.json {
        print::json(&serde_json::json!({"codelets": codelets, "skipped": skipped}))?;
    } else if !codelets.is_empty() {
        print::out(&crate::codelets::table(codelets))?;
    }
    for s in skipped {
        eprintln!("cere: skipped: {}: {}", s.region, s.reason);
    }
    Ok(())
}

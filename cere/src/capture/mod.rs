//! `cere capture [REGION...] -- CMD`: takes codelets out of a run.

mod choose;
mod input;
mod invocations;
mod pack;
mod times;

use crate::image::Program;
use crate::launch::{Launch, Output};
use crate::names::{self, Named};
use crate::options::{self, Common};
use crate::supervise::shell_code;
use crate::{print, profile, state};
use anyhow::{Result, bail};
use cere_format::capture::{RunMode, Wanted};
use cere_format::profile::{PROFILE_VERSION, Profile};
use cere_format::store::Store;
use choose::{Choice, Skipped};
use input::Input;

/// Take codelets out of a run
#[derive(clap::Args)]
#[command(after_help = "\
Without REGION it takes the first invocation of every region with more than 1 % of the run time and\n\
2000 or more cycles an invocation, by the profile of the same command; where there is none, it runs one first.\n\
The times in vivo come from that profile too; where it did not keep those of the wanted invocations, it is run\n\
once more, without output. If the program fails, the codelets are kept all the same and the command ends with\n\
the program's exit status.\n\
\n\
Examples:\n\
\x20 cere capture -- ./app input\n\
\x20 cere capture 'solve@*' --invocation 1,12 -- ./app input")]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Names, globs or unique prefixes of regions
    #[arg(value_name = "REGION")]
    patterns: Vec<String>,
    /// Invocations, from 1: `1,12` or `3-5`
    #[arg(long, value_name = "LIST", default_value = "1")]
    invocation: String,
    /// Kill the program after this many seconds
    #[arg(long, value_name = "S", value_parser = options::seconds)]
    timeout: Option<f64>,
    /// The program and its arguments
    #[arg(required = true, last = true)]
    command: Vec<String>,
}

struct Session<'a> {
    options: &'a Options,
    store: Store,
    program: Program,
    input: Input,
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    let invocations = invocations::parse(&options.invocation)?;
    let store = options.common.store()?;
    let all = names::named(&state::current_units(&store)?);
    let by_name = if options.patterns.is_empty() {
        None
    } else {
        Some(choose::by_pattern(&all, &options.patterns)?)
    };
    let program = Program::open(&options.command[0], &store)?;
    let _lock = state::lock(&store)?;
    let stored = fitting_profile(&store, &program, &options.command, &all);
    let chosen = by_name.or_else(|| stored.as_ref().map(choose::by_profile));
    let mut profile = stored.filter(|p| {
        let choices = chosen.iter().flat_map(|(choices, _)| choices);
        times::all_known(p, choices, &invocations)
    });
    let input = match profile {
        Some(_) => Input::Passed,
        None => Input::open()?,
    };
    let mut session = Session {
        options,
        store,
        program,
        input,
    };
    let (choices, mut skipped) = match chosen {
        Some(found) => found,
        None => {
            eprintln!(
                "cere: the store has no profile of this command: running one first, without its output"
            );
            choose::by_profile(profile.insert(session.profile(&invocations)?))
        }
    };
    if choices.is_empty() {
        report(options, &[], &skipped)?;
        bail!(
            "there is nothing to capture: no region passes (`cere profile` and `cere regions` list them; name one to take it anyway)"
        );
    }
    let finished = session.capture(&choices, &invocations)?;
    let taken = pack::Run::read(finished.directory.path())?;
    // What would not end in time for a capture would not for its times either.
    if profile.is_none() && taken.usable() && finished.late.is_none() {
        eprintln!("cere: running once more, without output, for the times in vivo");
        match session.profile(&invocations) {
            Ok(timed) => profile = Some(timed),
            Err(error) => eprintln!("cere: warning: no times in vivo: {error:#}"),
        }
    }
    let mut outcome = pack::all(
        &session.store,
        &taken,
        &choices,
        &invocations,
        profile.as_ref(),
    )?;
    skipped.append(&mut outcome.skipped);
    report(options, &outcome.codelets, &skipped)?;
    for note in &outcome.untimed {
        eprintln!("cere: no time in vivo: {note}");
    }
    if let Some(late) = finished.late {
        bail!("{late}; what was captured until then is kept");
    }
    let code = shell_code(finished.status);
    if code != 0 {
        eprintln!(
            "cere: {} ended with {}",
            options.command[0], finished.status
        );
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

/// The stored profile, if it is of this very command.
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
        && profile.regions.iter().all(known);
    fits.then_some(profile)
}

impl Session<'_> {
    fn profile(&mut self, invocations: &[u64]) -> Result<Profile> {
        let input = self.input.again()?;
        let collected = profile::collect(
            &self.store,
            &self.program,
            &self.options.command,
            self.options.timeout,
            Output::Dropped,
            input,
            invocations,
        )?;
        Ok(collected.profile)
    }

    fn capture(
        &mut self,
        choices: &[Choice],
        invocations: &[u64],
    ) -> Result<crate::launch::Finished> {
        let wanted = choices
            .iter()
            .map(|c| Wanted {
                key: c.key.clone(),
                invocations: invocations.to_vec(),
            })
            .collect();
        Launch {
            store: &self.store,
            program: &self.program,
            command: &self.options.command,
            mode: RunMode::Capture { wanted },
            trace: &[],
            timeout: self.options.timeout,
            output: if self.options.common.json {
                Output::ToStderr
            } else {
                Output::Kept
            },
            input: self.input.again()?,
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

//! `cere capture [REGION...] -- CMD`: takes codelets out of a run.

use crate::options::ranks::RankOptions;
use crate::options::{self, Common};
use crate::show;
use anyhow::Result;
use cere_capture::capture::{
    End, Request, Skipped, Taken, Tracing, forecast, parse_invocations, take,
};
use cere_capture::launch::Output;
use cere_catalogue::{bail, said};
use cere_system::console::print::{self, tell};
use cere_system::console::{self, note, warning};
use cere_system::process::supervise::shell_code;

/// Take codelets out of a run
#[derive(clap::Args)]
#[command(after_help = "\
Without REGION, every region with more than 1 % of the run time and 2000 or more cycles an invocation is captured,\n\
according to the profile of the same command. Smaller regions leave their time to their callers. Without --invocation,\n\
invocations of about the same time form a class, and one representative of each class is captured. If the store has no\n\
profile of the command, the program first runs for one, without output. For named regions with --invocation, runs after\n\
the capture measure the times in vivo.\n\
\n\
Regions inside captured ones are captured by further runs of the program, without output, because memory is allocated\n\
differently inside a captured invocation. The same holds for what follows a captured invocation if blocks that it\n\
allocated are in use, or if the program has taken more memory since. The number of runs is that of the captured\n\
invocations that lie in one another, and one more for each whose blocks stay in use.\n\
\n\
A region that other threads alone enter is captured in the one with most time in it, while all others stand still. Which\n\
thread does what may be chance: the time in vivo is the median over all threads. Such codelets have the thread after the\n\
number of the invocation: NAME:12.t3 is the twelfth of the third thread.\n\
\n\
Before a captured invocation the pages that the program touches are traced, so that a replay finds the caches as the\n\
program left them. A trace begins at the earlier of two events, K invocations or S seconds before, but not before the\n\
program's start.\n\
\n\
Exit status: 0 if the program succeeded and every region that was named without a glob gave its codelets. Regions chosen\n\
by a glob or by the profile may be skipped, with the reason, as long as there is a codelet. 1 if nothing was captured, a\n\
named region is missing, a capture was lost or the time was up. Otherwise the status of the program that failed (128 plus\n\
the number of a signal), unless --ignore-status is given. Codelets are kept in any case.\n\
\n\
Examples:\n\
\x20 cere capture -- ./app input\n\
\x20 cere capture 'solve@*' --invocation 1,12 -- ./app input")]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Names, globs or unique prefixes of regions; a name that the build has twice means the program's own
    #[arg(value_name = "REGION")]
    patterns: Vec<String>,
    /// Invocations, from 1: `1,12` or `3-5`, instead of the representatives
    #[arg(long, value_name = "LIST")]
    invocation: Option<String>,
    /// The thread whose invocations are captured, by its number in the order of start, OpenMP's apart; 0: the first [default: the
    /// first one where it enters the region, else the one with most time in it]
    #[arg(long, value_name = "N")]
    thread: Option<u64>,
    /// Skip codelets that the store has, and what could not be captured before
    #[arg(long)]
    missing: bool,
    /// Kill the program after this many seconds
    #[arg(long, value_name = "S", value_parser = options::seconds)]
    timeout: Option<f64>,
    /// A status of the program other than 0 is a warning: it does not decide the status of this command
    #[arg(long)]
    ignore_status: bool,
    /// Runs for the times in vivo, unless the stored profile has as many [default: 3; for a program of more than 0.5 s 1, or 2
    /// if the times of one run scatter]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: Option<u32>,
    /// Say what would be captured, in how many runs, and how long that takes; only profiles the program, if need be
    #[arg(long, conflicts_with_all = ["invocation", "ranks", "process_key"])]
    plan: bool,
    #[command(flatten)]
    ranks: RankOptions,
    /// The program and its arguments
    #[arg(required = true, last = true)]
    command: Vec<String>,
    #[command(flatten, next_help_heading = "Page traces")]
    tracing: TraceOptions,
}

/// How pages are traced before the captured invocations
#[derive(clap::Args, Debug, Clone)]
struct TraceOptions {
    /// Pages that stay accessible while pages are traced; more if there are too many faults
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(8..=1 << 16))]
    trace_slots: u32,
    /// Maximum pages of a trace [default: as many as fill the largest cache twice]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 28))]
    trace_pages: Option<u64>,
    /// Number of invocations of the region before the captured one where its trace begins, at the latest
    #[arg(long, value_name = "K", default_value_t = 1)]
    trace_invocations: u64,
    /// Seconds before the captured invocation where its trace begins, at the latest, according to the profile [default: 0.05; less,
    /// from 0.02, if the traces of a run took more than half of it]
    #[arg(long, value_name = "S", value_parser = options::seconds)]
    trace_window: Option<f64>,
    /// Capture without page traces
    #[arg(long, conflicts_with_all = ["trace_slots", "trace_pages", "trace_invocations", "trace_window"])]
    no_trace: bool,
}

impl TraceOptions {
    fn tracing(&self) -> Option<Tracing> {
        (!self.no_trace).then_some(Tracing {
            slots: self.trace_slots,
            pages: self.trace_pages,
            invocations: self.trace_invocations,
            window: self.trace_window,
        })
    }
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    let list = options.invocation.as_deref();
    let request = Request {
        store: &options.common.store()?,
        command: &options.command,
        patterns: &options.patterns,
        invocations: list.map(parse_invocations).transpose()?,
        thread: options.thread,
        process_key: options.ranks.process_key.clone(),
        ranks: options.ranks.ranks.clone(),
        missing: options.missing,
        tracing: options.tracing.tracing(),
        timeout: options.timeout,
        runs: options.runs,
        output: match options.common.json {
            true => Output::ToStderr,
            false => Output::Kept,
        },
        events: &console::events(),
    };
    if options.plan {
        let plan = forecast(&request)?;
        match options.common.json {
            true => print::json(
                &serde_json::json!({"codelets": [], "skipped": [], "notes": [], "plan": plan}),
            )?,
            false => print::text(&show::codelets::plan(&plan))?,
        }
        return Ok(0);
    }
    let taken = take(&request)?;
    let notes = notes(&taken);
    report(options, &taken, &notes)?;
    let (status, cut, lost) = match &taken.end {
        End::Complete => {
            note!("the store has all codelets that can be had");
            return Ok(0);
        }
        End::Nothing { elsewhere: 0 } => bail!(
            E3004,
            "there is nothing to capture: no region passes (`cere profile` and `cere regions` list them; name one to take it anyway)"
        ),
        End::Nothing { elsewhere } => bail!(
            E3005,
            "there is nothing to capture: no region passes, and {elsewhere} ran in threads other than the program's first alone (`cere profile` lists them; name one to take it anyway)"
        ),
        End::Ran { status, cut, lost } => (*status, cut, *lost),
    };
    tell(&notes);
    if let Some(cut) = cut {
        bail!(E3009, "{cut}; what was captured until then is kept");
    }
    let code = shell_code(status);
    if let Some(ended) = ended(options, &taken) {
        warning!("{ended}");
    }
    let missed = taken.skipped.iter().filter(|s| s.named).count();
    if taken.codelets.is_empty() {
        bail!(E3006, "nothing was captured: see the reasons above");
    }
    if lost {
        bail!(E3007, "some captures were lost: see the reasons above");
    }
    if missed > 0 {
        bail!(
            E3008,
            "{missed} of the named regions were not captured: see the reasons above"
        );
    }
    Ok(if options.ignore_status { 0 } else { code })
}

/// How the program ended, if not with status 0.
fn ended(options: &Options, taken: &Taken) -> Option<String> {
    match &taken.end {
        End::Ran { status, .. } if !status.success() => Some(format!(
            "{} ended with {status}; what was captured until then is kept",
            options.command[0]
        )),
        _ => None,
    }
}

/// What a user should know of the new codelets.
fn notes(taken: &Taken) -> Vec<String> {
    let untimed = taken.untimed.iter();
    let untimed = untimed.map(|text| format!("no time in vivo: {text}"));
    taken.notes.iter().cloned().chain(untimed).collect()
}

/// A region without a codelet, with the code of the reason.
fn skipped_json(skipped: &Skipped) -> serde_json::Value {
    let code = said(&skipped.reason).map(|entry| entry.code.to_string());
    serde_json::json!({"region": skipped.region, "reason": skipped.reason, "code": code})
}

fn report(options: &Options, taken: &Taken, notes: &[String]) -> Result<()> {
    let (codelets, skipped) = (&taken.codelets, &taken.skipped);
    if options.common.json {
        let ended = ended(options, taken);
        let notes: Vec<&String> = ended.iter().chain(notes).collect();
        let skipped: Vec<_> = skipped.iter().map(skipped_json).collect();
        print::json(
            &serde_json::json!({"codelets": codelets, "skipped": skipped, "notes": notes, "plan": null}),
        )?;
    } else if !codelets.is_empty() {
        print::text(&show::codelets::table(codelets))?;
    }
    for s in skipped {
        note!("skipped: {}: {}", s.region, print::reason(&s.reason));
    }
    Ok(())
}

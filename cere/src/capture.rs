//! `cere capture [REGION...] -- CMD`: takes codelets out of a run.

use crate::options::{self, Common};
use crate::show;
use anyhow::{Result, bail};
use cere_console::{note, print};
use cere_process::supervise::shell_code;
use cere_run::capture::{End, Request, Taken, Tracing, parse_invocations, take};
use cere_run::launch::Output;

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

/// How pages are traced before the captured invocations
#[derive(clap::Args, Debug, Clone)]
struct TraceOptions {
    /// Pages that stay open while pages are traced, before faults get too many
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(8..=1 << 16))]
    trace_slots: u32,
    /// Most pages of a trace; by default as many as fill the largest cache twice
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 28))]
    trace_pages: Option<u64>,
    /// A trace begins so many invocations of its region earlier, or before that
    #[arg(long, value_name = "K", default_value_t = 1)]
    trace_invocations: u64,
    /// A trace begins so many seconds earlier, or before that, as far as the profile tells
    #[arg(long, value_name = "S", default_value_t = 0.05, value_parser = options::seconds)]
    trace_window: f64,
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
    let taken = take(&Request {
        store: &options.common.store()?,
        command: &options.command,
        patterns: &options.patterns,
        invocations: list.map(parse_invocations).transpose()?,
        missing: options.missing,
        tracing: options.tracing.tracing(),
        timeout: options.timeout,
        runs: options.runs,
        output: match options.common.json {
            true => Output::ToStderr,
            false => Output::Kept,
        },
    })?;
    report(options, &taken)?;
    let (status, cut, lost) = match taken.end {
        End::Complete => {
            note!("the store has all codelets that can be had");
            return Ok(0);
        }
        End::Nothing { other_threads } => bail!(
            "there is nothing to capture: no region passes{} (`cere profile` and `cere regions` list them; name one to take it anyway)",
            match other_threads {
                true => ", and those that ran in threads other than the first are not captured",
                false => "",
            }
        ),
        End::Ran { status, cut, lost } => (status, cut, lost),
    };
    for text in &taken.untimed {
        note!("no time in vivo: {text}");
    }
    if let Some(cut) = cut {
        bail!("{cut}; what was captured until then is kept");
    }
    let code = shell_code(status);
    if code != 0 {
        note!("{} ended with {status}", options.command[0]);
    }
    let missed = taken.skipped.iter().filter(|s| s.named).count();
    if taken.codelets.is_empty() {
        bail!("nothing was captured: see the reasons above");
    }
    if lost {
        bail!("some captures were lost: see the reasons above");
    }
    if missed > 0 {
        bail!("{missed} of the named regions were not captured: see the reasons above");
    }
    Ok(code)
}

fn report(options: &Options, taken: &Taken) -> Result<()> {
    let (codelets, skipped) = (&taken.codelets, &taken.skipped);
    if options.common.json {
        print::json(&serde_json::json!({"codelets": codelets, "skipped": skipped}))?;
    } else if !codelets.is_empty() {
        print::out(&show::codelets::table(codelets))?;
    }
    for s in skipped {
        note!("skipped: {}: {}", s.region, s.reason);
    }
    Ok(())
}

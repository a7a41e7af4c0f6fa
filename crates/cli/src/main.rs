//! The `cere` command: parses, runs, prints the error chain. Under a compiler's name it is that compiler's wrapper.
//!
//! | subcommand | what it does |
//! |---|---|
//! | `instrument` | runs a build with the wrappers ahead in PATH |
//! | `regions` | lists the regions of the current build |
//! | `profile` | times every region of a run |
//! | `capture` | takes codelets out of a run |
//! | `codelets` | lists the codelets in the store |
//! | `replay` | runs codelets alone: time and verdict |
//! | `try` | edited loops on captured data: verdict and time |
//! | `export` | a codelet as a folder that builds and runs without CERE |
//! | `reduce` | the least IR that flags compile wrongly, or slowly |
//! | `guard` | performance tests for CI: counts and times against a baseline in the repository |
//! | `compare` | two builds, states of the sources, sets of flags or machines, by region |
//! | `count` | exact counts of what codelets execute, and their memory traffic |
//! | `asm` | machine code beside its source: executions, remarks of the optimiser, bounds |
//! | `explain` | why a region takes its time; what a message means |
//! | `metrics` | metric vectors of codelets, for clustering |
//! | `roofline` | codelets on the machine's roof |
//! | `subset` | chooses few codelets that stand for many programs |
//! | `measure` | measures them on another machine |
//! | `select` | chooses the cheapest regions to replay that cover the run |
//! | `check` | compares replays with the run, region by region |
//! | `predict` | the run's time with other numbers of threads, under other flags, or on other machines |
//! | `tune` | searches compiler flags for each region, on its codelets |
//! | `hybrid` | links the binary in which each tuned region has its own flags |
//! | `study` | build, capture, check and report in one go |
//! | `results` | shows the records of replays |
//! | `report` | writes or serves one page: where the time goes, why, what helps |
//! | `machine` | measures the machine: caches, TLBs, operations, bandwidths, cores |
//! | `mcp` | a server for agents: they look at regions and try edits |
//! | `doctor` | whether this machine has what CERE needs, and how well it measures |
//! | `clean` | frees space: caches, and what belongs to older builds |
//! | `complete` | names for completions of shells (hidden) |
//! | `manual` | man pages and completions, for `make install` (hidden) |

mod ask;
mod asm;
mod capture;
mod check;
mod clean;
mod codelets;
mod compare;
mod complete;
mod count;
mod doctor;
#[cfg(test)]
mod documents;
mod each;
mod explain;
mod export;
mod functions;
mod guard;
mod health;
mod here;
mod hybrid;
mod instrument;
mod machine;
mod manual;
mod mcp;
mod measure;
mod metrics;
mod offer;
mod options;
mod predict;
mod profile;
mod reduce;
mod regions;
mod replay;
mod report;
mod results;
mod roofline;
mod select;
mod show;
mod split;
mod start;
mod study;
mod subset;
mod r#try;
mod tune;
mod watch;
mod work;

use cere_store::build::wrapper;
use cere_system::console::{color, print};
use clap::{ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::process::ExitCode;

/// Takes a program apart into codelets: hot loops that run alone.
#[derive(Parser)]
#[command(
    name = "cere",
    version,
    about,
    after_help = "\
`cere COMMAND --help` lists the options and gives examples. The commands keep their files in .cere/, or where --store says.

Example:
\x20 cere instrument -- make              # build, with any build tool
\x20 cere profile -- ./app input          # where the time goes, region by region
\x20 cere capture -- ./app input          # take the regions that matter
\x20 cere codelets                        # what is there now
\x20 cere replay 'solve@*'                # run alone: time, and is the result right?
\x20 cere replay 'solve@*' --flags \"-O2 -march=native\""
)]
struct Cli {
    #[command(flatten)]
    messages: options::Messages,
    #[command(flatten)]
    before: options::Before,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Instrument(instrument::Options),
    Regions(regions::Options),
    Profile(profile::Options),
    Capture(capture::Options),
    Codelets(codelets::Options),
    Replay(replay::Options),
    Try(r#try::Options),
    Export(export::Options),
    Reduce(reduce::Options),
    Guard(guard::Options),
    Compare(compare::Options),
    Complete(complete::Options),
    Count(count::Options),
    Asm(asm::Options),
    Explain(explain::Options),
    Metrics(metrics::Options),
    Roofline(roofline::Options),
    Subset(subset::Options),
    Measure(measure::Options),
    Select(select::Options),
    Check(check::Options),
    Predict(predict::Options),
    Tune(tune::Options),
    Hybrid(hybrid::Options),
    Study(study::Options),
    Results(results::Options),
    Report(report::Options),
    Machine(machine::Options),
    Mcp(mcp::Options),
    Doctor(doctor::Options),
    Clean(clean::Options),
    Manual(manual::Options),
    Work(work::Options),
}

fn main() -> ExitCode {
    let outcome = options::utf8::check().and_then(|()| match wrapper::tool_of_argv0() {
        Some(tool) => wrapper::run(tool),
        None if std::env::args_os().len() == 1 => start::run(&mut Cli::command()),
        None => parse().and_then(run),
    });
    let outcome = match outcome {
        Err(error) => offer::offer_to_make(&error).unwrap_or(Err(error)),
        done => done,
    };
    match outcome {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            print::failed(&error);
            ExitCode::FAILURE
        }
    }
}

/// Parses the command line.
fn parse() -> anyhow::Result<Cli> {
    // What clap writes follows the same conventions, but for FORCE_COLOR.
    let color = match color::is_forced() {
        true => ColorChoice::Always,
        false => ColorChoice::Auto,
    };
    let matches = Cli::command().color(color).get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let subcommands = Cli::command();
    let name = matches.subcommand_name().unwrap_or_default();
    if let Some(subcommand) = subcommands.find_subcommand(name) {
        cli.before.check(subcommand)?;
    }
    Ok(cli)
}

/// Runs the subcommand that was parsed.
fn run(cli: Cli) -> anyhow::Result<u8> {
    cli.messages.apply();
    let captures = matches!(
        cli.command,
        Command::Instrument(_)
            | Command::Profile(_)
            | Command::Capture(_)
            | Command::Study(_)
            | Command::Hybrid(_)
    );
    if captures {
        here::captures(cere_arch::HERE)?;
    }
    match cli.command {
        Command::Instrument(options) => instrument::run(&options),
        Command::Regions(options) => regions::run(&options),
        Command::Profile(options) => profile::run(&options),
        Command::Capture(options) => capture::run(&options),
        Command::Codelets(options) => codelets::run(&options),
        Command::Replay(options) => replay::run(&options),
        Command::Try(options) => r#try::run(&options),
        Command::Export(options) => export::run(&options),
        Command::Reduce(options) => reduce::run(&options),
        Command::Guard(options) => guard::run(&options),
        Command::Compare(options) => compare::run(&options),
        Command::Complete(options) => complete::run(&options, &Cli::command()),
        Command::Count(options) => count::run(&options),
        Command::Asm(options) => asm::run(&options),
        Command::Explain(options) => explain::run(&options),
        Command::Metrics(options) => metrics::run(&options),
        Command::Roofline(options) => roofline::run(&options),
        Command::Subset(options) => subset::run(&options),
        Command::Measure(options) => measure::run(&options),
        Command::Select(options) => select::run(&options),
        Command::Check(options) => check::run(&options),
        Command::Predict(options) => predict::run(&options),
        Command::Tune(options) => tune::run(&options),
        Command::Hybrid(options) => hybrid::run(&options),
        Command::Study(options) => study::run(&options),
        Command::Results(options) => results::run(&options),
        Command::Report(options) => report::run(&options),
        Command::Machine(options) => machine::run(&options),
        Command::Mcp(options) => mcp::run(&options),
        Command::Doctor(options) => doctor::run(&options),
        Command::Clean(options) => clean::run(&options),
        Command::Manual(options) => manual::run(&options, &Cli::command()),
        Command::Work(options) => work::run(&options),
    }
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::CommandFactory;

    /// The last paragraph of a help text: a heading, then lines to type.
    fn ends_with_an_example(help: &str) -> bool {
        let last = help.trim_end().rsplit("\n\n").next().unwrap_or_default();
        let mut lines = last.lines();
        lines.next().is_some_and(|l| l.starts_with("Example"))
            && lines.clone().next().is_some()
            && lines.all(|l| l.starts_with("  cere "))
    }

    #[test]
    fn every_help_ends_with_an_example() {
        let mut cli = Cli::command();
        cli.build();
        assert!(ends_with_an_example(&cli.render_long_help().to_string()));
        for command in cli.get_subcommands_mut() {
            let name = command.get_name().to_owned();
            let help = command.render_long_help().to_string();
            assert!(
                name == "help" || ends_with_an_example(&help),
                "{name}: {help}"
            );
            assert!(command.get_about().is_some(), "{name}");
        }
    }
}

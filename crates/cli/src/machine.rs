//! `cere machine`: measures the machine's caches, TLBs, operations, bandwidths, cores.

use crate::show;
use anyhow::{Context, Result};
use cere_catalogue::{OrCoded, codes, ensure};
use cere_format::machine::Machine;
use cere_machine::{blocking, whole};
use cere_system::console::{note, print, progress};
use std::path::PathBuf;

/// Measure this machine: caches, TLBs, operations, bandwidths, cores
#[derive(clap::Args)]
#[command(after_help = "\
Everything is measured from a program, without hardware counters, and has a confidence and a method: --json has them under\n\
`found`. What cannot be observed says so. A full measurement takes a minute, --quick ten seconds. The machine should do nothing\n\
else: what others do lowers the confidences, and values below 0.5 are not used by other commands.\n\
\n\
The result is kept in ~/.cache/cere/machines by the machine's identity: processor, caches, allowed processors, system. `cere\n\
roofline`, `cere doctor`, `cere count --geometry here`, replays' cache flushing and `cere tune` use it. --show prints it again.\n\
--blocking prints block sizes that follow from it, with what binds each, and flags for a compiler.\n\
\n\
Latencies are also in dependent integer additions: the clock's ticks are not the core's.\n\
\n\
Examples:\n\
\x20 cere machine\n\
\x20 cere machine --quick --json\n\
\x20 cere machine --show --page machine.html\n\
\x20 cere machine --blocking dgemm")]
pub struct Options {
    /// Measure in about ten seconds, with fewer points
    #[arg(long)]
    quick: bool,
    /// Seconds that it may take
    #[arg(long, value_name = "SECONDS", conflicts_with = "show", value_parser = seconds)]
    seconds: Option<f64>,
    /// Print the measurement that is kept, and measure nothing
    #[arg(long, conflicts_with = "quick")]
    show: bool,
    /// Print block sizes of a kernel from the measurement that is kept, and measure nothing
    #[arg(long, value_name = "KERNEL", conflicts_with_all = ["quick", "seconds", "page", "no_keep"])]
    blocking: Option<Kernel>,
    /// Write a page of plots: the curves with what was read off them
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Do not keep it in the user's cache
    #[arg(long, conflicts_with = "show")]
    no_keep: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A kernel whose block sizes are known.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Kernel {
    /// C += A B in f64
    Dgemm,
    /// 5 points in two dimensions, 7 in three
    Stencil,
}

fn seconds(text: &str) -> Result<f64> {
    let seconds = text
        .parse()
        .or_coded(codes::E8003, || "a number of seconds is needed")?;
    ensure!(
        (whole::LEAST..=3600.0).contains(&seconds),
        E8002,
        "from {} to 3600 seconds: less is too short for any probe",
        whole::LEAST
    );
    Ok(seconds)
}

impl Options {
    fn measured(&self) -> Result<Machine> {
        let kept = Machine::kept();
        if self.show || self.blocking.is_some() {
            return kept.context("this machine was not measured yet, or has other processors now: run `cere machine`");
        }
        let seconds = self.seconds.unwrap_or(if self.quick {
            whole::SECONDS.0
        } else {
            whole::SECONDS.1
        });
        let spinner = progress::spinner("measuring the machine".into());
        let told = |what: &str| spinner.set_message(format!("measuring: {what}"));
        let machine =
            whole::measure(self.quick, seconds, &told).context("the machine was not measured");
        spinner.finish_and_clear();
        let machine = machine?;
        // A quick measurement does not take the place of a full one.
        let better = kept.is_some_and(|kept| !kept.quick && machine.quick);
        if !self.no_keep && !better {
            match machine.keep() {
                Ok(path) => note!("kept in {}", path.display()),
                Err(error) => note!("not kept: {error}; other commands will not know it"),
            }
        } else if better && !self.no_keep {
            note!("not kept: a full measurement of this machine is there");
        }
        Ok(machine)
    }
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    let machine = options.measured()?;
    if let Some(kernel) = options.blocking {
        return print_blocking(options, &machine, kernel);
    }
    if let Some(path) = &options.page {
        let page = cere_report::machine::page(&machine)?;
        std::fs::write(path, page).with_context(|| format!("--page {}", path.display()))?;
    }
    match options.json {
        true => print::json(&machine)?,
        false => print::text(&show::machine::text(&machine))?,
    }
    Ok(0)
}

fn print_blocking(options: &Options, machine: &Machine, kernel: Kernel) -> Result<u8> {
    let parameters = blocking::Parameters::of(machine)?;
    let blocking = match kernel {
        Kernel::Dgemm => blocking::dgemm(&parameters),
        Kernel::Stencil => blocking::stencil(&parameters),
    };
    match options.json {
        true => print::json(&show::blocking::json(machine, &blocking))?,
        false => print::text(&show::blocking::text(machine, &blocking))?,
    }
    Ok(0)
}

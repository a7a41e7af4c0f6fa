//! `make bench`: what CERE costs, on the examples and the kernels of this directory, as Markdown tables on standard output.
//!
//! | part | question |
//! |---|---|
//! | [`dormant`] | what do outlining and dormant probes cost? |
//! | [`capture`] | what does a captured page cost, and a captured run? |
//! | [`study`] | how long does a study take? |
//! | [`codelets`] | how large are packages; are code and results the original's? |
//! | [`accuracy`] | how much of a run is accurately replayed, by how few replays? |
//! | [`turnaround`] | how long from other flags to a result? |
//! | [`aa`] | how often does a codelet look different from itself? |
//! | [`explain`] | are causes found, and does taking one out gain what was forecast? |
//! | [`kept`] | are replays that are forks of a kept state the same, and how much cheaper? |
//! | [`rank`] | would flags be found sooner if what counts or a model promise were timed first? |
//! | [`estimators`] | which estimator compares two subjects best? |
//! | [`searches`] | which search finds good flags with few evaluations? |
//! | [`machines`] | how far are predictions from few codelets off, on the machines in `machines/`? |
//! | [`memory`] | how many accesses a second does the simulator of caches take? |
//! | [`blocking`] | how near are block sizes made from the measured machine to the best? |
//! | [`clara`] | how long do many invocations take to cluster, in how much memory? |
//!
//! A and B always alternate within one run; the minimum over the rounds counts.

mod aa;
mod accuracy;
mod blocking;
mod capture;
mod clara;
mod codelets;
mod dormant;
mod estimators;
mod explain;
mod journal;
mod kept;
mod machines;
mod memory;
mod program;
mod rank;
mod searches;
mod study;
mod turnaround;

use anyhow::Result;
use clap::Parser;

/// Measures what CERE costs.
#[derive(Parser)]
struct Options {
    /// Rounds of each measurement
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Evaluate all variants of the search comparison, and nothing else
    #[arg(long)]
    record_searches: bool,
    /// Record a series of this machine's noise under this name, and nothing else
    #[arg(long, value_name = "NAME")]
    record_noise: Option<String>,
    /// A codelet for `kept`, instead of a kernel's
    #[arg(long, value_name = "FILE")]
    codelet: Vec<std::path::PathBuf>,
    /// Kernels for `explain`; all if none is named
    #[arg(long, value_name = "NAME")]
    kernel: Vec<String>,
    /// A store for `rank`, instead of the kernels'
    #[arg(long, value_name = "DIR")]
    store: Vec<std::path::PathBuf>,
    /// Parts: dormant, capture, study, codelets, accuracy, turnaround, machines, blocking, clara, memory, estimators, searches, aa, kept, explain, rank; all if none is named
    parts: Vec<String>,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let wanted = |part: &str| options.parts.is_empty() || options.parts.iter().any(|p| p == part);
    if let Some(name) = &options.record_noise {
        return estimators::record(name, &program::machine(), 60.0);
    }
    if options.record_searches {
        return searches::record(&program::machine());
    }
    println!("Machine: {}\n", program::machine());
    if wanted("dormant") {
        dormant::run(options.rounds)?;
    }
    if wanted("capture") {
        capture::run(options.rounds)?;
    }
    if wanted("study") {
        study::run(options.rounds.min(3))?;
    }
    if wanted("codelets") {
        codelets::run()?;
    }
    if wanted("accuracy") {
        accuracy::run()?;
    }
    if wanted("turnaround") {
        turnaround::run(options.rounds)?;
    }
    if wanted("machines") {
        machines::run()?;
    }
    if wanted("blocking") {
        blocking::run()?;
    }
    if wanted("clara") {
        clara::run()?;
    }
    if wanted("memory") {
        memory::run(options.rounds)?;
    }
    if wanted("estimators") {
        estimators::run()?;
    }
    if wanted("searches") {
        searches::run()?;
    }
    if wanted("aa") {
        aa::run()?;
    }
    if wanted("kept") {
        kept::run(&options.codelet)?;
    }
    if wanted("explain") {
        explain::run(&options.kernel)?;
    }
    if wanted("rank") {
        rank::run(&options.store)?;
    }
    Ok(())
}

//! The metric vector of a codelet.

use crate::Counts;
use crate::codelet::Counted;
use crate::counts::Simulation;
use crate::metrics::error::MetricsError;
use crate::metrics::footprint::LINE;
use crate::metrics::mix;
use crate::metrics::model::{self, PROCESSOR};
use crate::metrics::trace::{Sampling, Trace};
use crate::metrics::values::Values;
use cere_memory::Geometry;
use cere_replay::Options;
use cere_toolchain::io;
use std::path::Path;

/// What is measured.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The simulated caches.
    pub geometry: Geometry,
    /// Seed of the frames of pages, and of random replacement.
    pub seed: u64,
    /// Instructions and accesses whose order is looked at, at most: of longer codelets a sample.
    pub budget: u64,
}

/// The metrics of a codelet.
#[derive(Debug, Clone)]
pub struct Vector {
    /// The counts that they were made of, with the simulated caches.
    pub counts: Counts,
    /// Name of the model of a processor.
    pub model: &'static str,
    /// What was sampled.
    pub sampling: Sampling,
    /// The values.
    pub values: Values,
}

/// Measures the codelet in the unpacked package `package`: one run counts, two simulate the caches, one is looked at in its
/// order, and a model is asked about its code. The group `rate` needs [`Vector::time`].
///
/// # Errors
/// The codelet cannot be replayed; two runs of it differ; the geometry is not possible; a tool fails.
pub fn vector(
    package: &Path,
    settings: &Settings,
    options: &Options,
) -> Result<Vector, MetricsError> {
    let counted = Counted::new(package, options)?;
    let mut values = Values::default();
    mix::fill(&counted, &mut values);
    let counting = crate::Settings {
        seed: settings.seed,
        ..crate::Settings::default()
    };
    let simulation = counted.simulate(&settings.geometry, &counting)?;
    caches(&counted, &simulation, &mut values);
    let instructions = counted.tally.instructions(&counted.code);
    let lines = simulation.footprint_bytes / LINE;
    let sampling = Sampling::of(instructions, counted.accesses(), lines, settings.budget);
    let mut trace = counted.observe(|code| Trace::new(code, sampling))?;
    trace.fill(&mut values);
    let package = std::fs::canonicalize(package).map_err(io("open", package))?;
    let assembly = cere_replay::compile::assembly(&package, &counted.manifest, options)?;
    let scratch = tempfile::tempdir_in(&options.cache).map_err(io("write into", &options.cache))?;
    let sandbox = &options.settings.sandbox;
    let modelled = model::model(&counted, &assembly, scratch.path(), sandbox)?;
    modelled.fill(&counted, &mut values);
    values.missing_group("rate", "no time was measured");
    let mut counts = counted.counts;
    if counts.assembly > 0 {
        counts.notes.push(format!(
            "{} pieces of inline assembly ran: what they do is in no metric",
            counts.assembly
        ));
    }
    counts.simulation = Some(simulation);
    Ok(Vector {
        counts,
        model: PROCESSOR,
        sampling,
        values,
    })
}

/// Fewer lines of traffic have no shares: a line or two more, as pages happen to lie, would tell like loops apart.
const FEW: u64 = 64;

/// Sets a share of `bytes` of traffic.
fn traffic_share(values: &mut Values, name: &str, of: u64, bytes: u64, whose: &str) {
    match bytes < FEW * LINE {
        true => values.missing(
            name,
            &format!("the traffic of {whose} is below {FEW} lines"),
        ),
        false => values.set(name, of as f64 / bytes as f64),
    }
}

/// Writes the metrics of the group `cache`.
fn caches(counted: &Counted, simulation: &Simulation, values: &mut Values) {
    let instructions = counted.counts.instructions as f64;
    let none = "nothing was executed";
    for number in 1..=3 {
        let absent = format!("{} has no level {number}", simulation.geometry);
        let names = ["miss_rate", "misses", "write_back_share"].map(|n| format!("l{number}_{n}"));
        let Some(level) = simulation.levels.get(number - 1) else {
            names.iter().for_each(|name| values.missing(name, &absent));
            continue;
        };
        let before = number.checked_sub(2).map(|n| simulation.levels[n].bytes);
        let enough = before.is_none_or(|bytes| bytes >= FEW * LINE);
        match level.miss_rate.filter(|_| enough) {
            Some(rate) => values.set(&names[0], rate),
            None => values.missing(
                &names[0],
                &format!("fewer than {FEW} lines reach level {number}"),
            ),
        }
        values.ratio(&names[1], 1000.0 * level.misses as f64, instructions, none);
        let next = format!("level {number} with the next");
        traffic_share(values, &names[2], level.write_backs, level.bytes, &next);
    }
    let first = simulation.levels.first();
    let random = first.and_then(|level| level.bytes_random).unwrap_or(0);
    let own = first.map_or(0, |level| level.bytes);
    traffic_share(
        values,
        "l1_replacement",
        random,
        own,
        "level 1 with the next",
    );
    let (read, written) = (simulation.memory_read, simulation.memory_written);
    let traffic = read.saturating_add(written);
    values.ratio("memory_bytes", traffic as f64, instructions, none);
    let of = "the last level with memory";
    traffic_share(values, "memory_write_share", written, traffic, of);
    let quiet = "it exchanges nothing with memory";
    values.share("intensity", counted.counts.flops.total, traffic, quiet);
    let misses = simulation.tlb.misses.first().copied().unwrap_or(0);
    values.ratio("tlb_misses", 1000.0 * misses as f64, instructions, none);
    let walks = simulation.tlb.walks as f64;
    values.ratio("page_walks", 1000.0 * walks, instructions, none);
}

impl Vector {
    /// Writes the metrics of the group `rate`, of an invocation that takes `seconds`.
    pub fn time(&mut self, seconds: f64) {
        let none = "the replay took no time that can be measured";
        let values = &mut self.values;
        let counts = &self.counts;
        values.set("seconds", seconds);
        let nanoseconds = 1e9 * seconds;
        let instructions = counts.instructions as f64;
        values.ratio("ns_per_instruction", nanoseconds, instructions, none);
        values.ratio("mflops", 1e-6 * counts.flops.total as f64, seconds, none);
        let Some(simulation) = &counts.simulation else {
            return;
        };
        // The last level exchanges its lines with memory.
        let between = |at: usize| simulation.levels.get(at + 1).and(simulation.levels.get(at));
        let memory = simulation
            .memory_read
            .saturating_add(simulation.memory_written);
        for (name, bytes) in [
            ("l2_bandwidth", between(0).map(|level| level.bytes)),
            ("l3_bandwidth", between(1).map(|level| level.bytes)),
            ("memory_bandwidth", Some(memory)),
        ] {
            match bytes {
                Some(bytes) => values.ratio(name, 1e-6 * bytes as f64, seconds, none),
                None => values.missing(name, "the simulated caches have no such level"),
            }
        }
    }
}

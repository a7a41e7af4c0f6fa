//! What each cause costs, and which costs most.

use crate::facts::{Facts, Kind};
use cere_format::explain::{Cause, Way, WhatIf};
use cere_machine::roofs;

/// A cause with what it costs.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// The cause.
    pub cause: Cause,
    /// Share of the time that goes with it; none: not known.
    pub share: Option<f64>,
    /// The level of memory that is meant: `L2`, `memory`.
    pub level: Option<Level>,
}

/// A level of memory, and how busy it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// `L2`, `memory`.
    pub name: String,
    /// Bytes from and to it in an invocation.
    pub bytes: u64,
    /// Share of the bandwidth that was measured on this machine.
    pub share_of_roof: Option<f64>,
}

/// Share of a measured bandwidth from which on it is the limit.
const BUSY: f64 = 0.5;
/// Share of loads near the one before, from which on it is a stream, for which the processor fetches ahead as fast as it can.
const STREAM: f64 = 0.9;
/// Nanoseconds for a line from which on loads wait for one another, where the bandwidths were not measured.
const SLOW_LINE: f64 = 20.0;
/// The least share that is a cause.
const LEAST: f64 = 0.15;
/// Share of loads that read what was just stored, from which on stores matter to loads.
const FED: f64 = 0.2;
/// Bytes of an instruction, about.
const INSTRUCTION: f64 = 4.5;
/// Bytes of code above which it is not fetched as fast as it could be executed: the cache of decoded instructions holds 1500 to 4000 of
/// them.
const LARGE_CODE: f64 = 16_384.0;
/// Share of the time that a model explains, from which on it is right about what limits it.
const EXPLAINED: f64 = 0.6;
/// Share of slots that the front end leaves empty, from which on it is what holds up.
const STARVED: f64 = 0.4;
/// Share of cycles from which on a unit is busy.
const BUSY_UNIT: f64 = 0.8;

impl Facts {
    /// Share of the time that `kind` saves.
    #[must_use]
    pub fn gain(&self, kind: Kind) -> Option<f64> {
        let without = self.variant(kind)?.seconds;
        Some((1.0 - without / self.base.seconds).max(0.0))
    }

    /// Seconds of the model with all data in the first cache.
    #[must_use]
    pub fn modelled_seconds(&self) -> Option<f64> {
        let cycles = self.metric("model_cycles")? / f64::from(self.threads());
        Some(cycles * self.cycle)
    }

    /// Share of the time that wrong predictions take, by the model.
    #[must_use]
    pub fn branch_share(&self) -> f64 {
        let each = self.mispredicted / f64::from(self.threads());
        (each * self.wrong_branch / self.base.seconds).min(1.0)
    }

    /// Share of the time that goes if all data is in the first cache: by a replay, else by the model.
    #[must_use]
    pub fn memory_share(&self) -> Option<f64> {
        if let Some(gain) = self.gain(Kind::Compact) {
            return Some(gain);
        }
        if self.share("l1_misses") == 0.0 || !self.variants.contains_key(&Kind::Compact) {
            return None;
        }
        let computes = self.modelled_seconds()? / self.base.seconds;
        let others = self.branch_share() + self.gain(Kind::Present).unwrap_or(0.0);
        Some((1.0 - computes - others).max(0.0))
    }

    /// Share of the threads' time in which the slowest works and others have nothing to do.
    #[must_use]
    pub fn imbalance(&self) -> f64 {
        let most = self.work.iter().max().copied().unwrap_or(0) as f64;
        let mean = self.work.iter().sum::<u64>() as f64 / f64::from(self.threads());
        match self.threads() > 1 && most > 0.0 {
            true => 1.0 - mean / most,
            false => 0.0,
        }
    }

    /// The level of memory that is busiest, behind the first cache.
    #[must_use]
    pub fn busiest(&self) -> Option<Level> {
        let used = self.levels();
        let busy = |l: &Level| l.share_of_roof.unwrap_or(0.0);
        match used.iter().any(|l| l.share_of_roof.is_some()) {
            true => used.into_iter().max_by(|a, b| busy(a).total_cmp(&busy(b))),
            // The farthest.
            false => used.into_iter().next_back(),
        }
    }

    /// The levels behind the first cache that more than a few bytes come from or go to, nearest first.
    fn levels(&self) -> Vec<Level> {
        let Some(simulation) = &self.vector.counts.simulation else {
            return Vec::new();
        };
        let last = simulation.levels.len().saturating_sub(1);
        let (read, written) = (simulation.memory_read, simulation.memory_written);
        let levels = simulation.levels.iter().enumerate();
        let levels = levels.map(|(at, level)| match at == last {
            true => (roofs::MEMORY.to_owned(), read, read.saturating_add(written)),
            false => (roofs::level_name(at as u32 + 2), level.fills, level.bytes),
        });
        let few = LINE * self.vector.counts.instructions as f64 / FEW_LINES;
        let used = levels.filter(|(_, _, bytes)| *bytes as f64 > few.max(4096.0));
        used.map(|(name, read, bytes)| Level {
            share_of_roof: self.share_of_roof(&name, read, bytes),
            name,
            bytes,
        })
        .collect()
    }

    /// Share of what this machine moves to and from the level: of loads alone, or of both directions.
    fn share_of_roof(&self, level: &str, read: u64, all: u64) -> Option<f64> {
        let machine = self.machine.as_ref()?;
        let threads = self.threads();
        let roofs = roofs::of(machine, "f64", threads);
        let roof = roofs.iter().find(|r| r.level.as_deref() == Some(level));
        let of_both = all as f64 / roof?.bytes_per_second?;
        let of_loads = roofs::loads(machine, level, threads).map_or(0.0, |most| read as f64 / most);
        Some(of_both.max(of_loads) / self.base.seconds)
    }
}

/// Instructions for a line, from which on a level is not used.
const FEW_LINES: f64 = 15_000.0;
/// Bytes of a line.
const LINE: f64 = 64.0;

/// What each cause costs, those that are not there left out.
#[must_use]
pub fn costs(facts: &Facts) -> Vec<Cost> {
    let cost = |cause: Cause, share: Option<f64>| {
        let share = share.filter(|s| *s > 0.0)?;
        Some(Cost {
            cause,
            share: Some(share),
            level: None,
        })
    };
    let fed = facts.share("memory_dependence") > FED;
    let stores = match fed {
        true => Cause::Forwarding,
        false => Cause::Stores,
    };
    let all = [
        memory(facts),
        cost(Cause::Translations, facts.gain(Kind::Huge)),
        cost(Cause::PageFaults, facts.gain(Kind::Present)),
        cost(Cause::Chain, facts.gain(Kind::Chains)),
        cost(Cause::Divisions, facts.gain(Kind::Divisions)),
        cost(stores, facts.gain(Kind::Stores)),
        cost(Cause::Scalar, facts.gain(Kind::Vectors)),
        cost(Cause::Branches, Some(branches(facts))),
        cost(Cause::Imbalance, Some(facts.imbalance())),
        cost(Cause::Waiting, waiting(facts)),
    ];
    all.into_iter().flatten().collect()
}

/// What wrong predictions cost: by the counters, if there are any.
fn branches(facts: &Facts) -> f64 {
    let counted = facts.topdown.map(|t| t.bad_speculation);
    counted.unwrap_or_else(|| facts.branch_share())
}

/// What memory costs: bandwidth or latency.
fn memory(facts: &Facts) -> Option<Cost> {
    let share = facts.memory_share()?;
    let level = facts.busiest()?;
    let per_line = share * facts.base.seconds * 1e9 * LINE / level.bytes as f64;
    let busy = match level.share_of_roof {
        Some(of_roof) if facts.share("stride_load_512") >= STREAM => of_roof >= BUSY / 2.0,
        Some(of_roof) => of_roof >= BUSY,
        None => per_line < SLOW_LINE,
    };
    Some(Cost {
        cause: match busy {
            true => Cause::Bandwidth,
            false => Cause::Latency,
        },
        share: Some(share),
        level: Some(level),
    })
}

/// Share of the threads' time that is neither the work of one thread nor imbalance.
fn waiting(facts: &Facts) -> Option<f64> {
    let alone = facts.variant(Kind::Alone)?.seconds;
    let all = f64::from(facts.threads()) * facts.base.seconds;
    Some((1.0 - alone / all - facts.imbalance()).max(0.0))
}

/// The cause that costs most. One that comes with another counts less than that.
#[must_use]
pub fn largest(facts: &Facts, costs: &[Cost]) -> Cost {
    let share = |cause: Cause| {
        let found = costs.iter().find(|c| c.cause == cause);
        found.and_then(|c| c.share).unwrap_or(0.0)
    };
    let memory = share(Cause::Bandwidth).max(share(Cause::Latency));
    let weight = |cost: &Cost| {
        let own = cost.share.unwrap_or(0.0);
        match cost.cause {
            // Vectors take sums in another order, and have fewer stores and branches: what those cost is not theirs.
            Cause::Scalar => own - 0.4,
            // A division that the next iteration waits for.
            Cause::Chain if share(Cause::Divisions) > own - 0.1 => 0.0,
            // A store may be what touches a page first.
            Cause::Stores | Cause::Forwarding if share(Cause::PageFaults) > 0.5 * own => 0.0,
            // Without its stores a loop moves fewer bytes.
            Cause::Stores | Cause::Forwarding if memory > own - 0.1 => 0.0,
            // With other memory than the first cache, pages have to be translated as well.
            Cause::Latency | Cause::Bandwidth if share(Cause::Translations) > 0.75 * own => {
                0.5 * own
            }
            // Other threads wait for the bytes too.
            Cause::Waiting if memory > 0.3 => 0.0,
            _ => own,
        }
    };
    let enough = costs.iter().filter(|c| c.share.unwrap_or(0.0) >= LEAST);
    let best = enough.max_by(|a, b| weight(a).total_cmp(&weight(b)));
    best.cloned().unwrap_or_else(|| Cost {
        cause: rest(facts),
        share: None,
        level: None,
    })
}

/// What limits code that nothing above slows down.
fn rest(facts: &Facts) -> Cause {
    let computes = facts.modelled_seconds().unwrap_or(0.0) / facts.base.seconds;
    match () {
        () if is_long(facts) && computes < 1.0 => Cause::FrontEnd,
        () if facts.topdown.is_some_and(|t| t.front_end > STARVED) => Cause::FrontEnd,
        () if computes >= EXPLAINED && facts.share("model_port_most") >= BUSY_UNIT => Cause::Units,
        () if computes >= EXPLAINED => Cause::Instructions,
        () => Cause::Unknown,
    }
}

/// What would be with one thing otherwise.
#[must_use]
pub fn what_if(facts: &Facts) -> Vec<WhatIf> {
    let mut all: Vec<WhatIf> = facts
        .variants
        .iter()
        .map(|(kind, found)| {
            let (change, how) = changed(*kind);
            WhatIf {
                change: change.to_owned(),
                seconds: found.as_ref().ok().map(|t| t.seconds),
                interval: found.as_ref().ok().map(|t| t.interval),
                found: Way::Replayed,
                how: match found {
                    Ok(_) if *kind == Kind::Compact => format!(
                        "{how}: {:.0} % of the pages that it touches",
                        100.0 * facts.compacted
                    ),
                    Ok(_) => how.to_owned(),
                    Err(why) => why.clone(),
                },
            }
        })
        .collect();
    let mut modelled = |change: &str, seconds: Option<f64>, how: &str| {
        all.extend(seconds.map(|seconds| WhatIf {
            change: change.to_owned(),
            seconds: Some(seconds),
            interval: None,
            found: Way::Modelled,
            how: how.to_owned(),
        }));
    };
    let missing =
        facts.variant(Kind::Compact).is_none() && facts.variants.contains_key(&Kind::Compact);
    let l1 = facts.modelled_seconds().filter(|_| missing);
    modelled(
        "all data in L1",
        l1,
        "cycles of llvm-mca's model, which knows no caches",
    );
    let base = facts.base.seconds;
    let predicted = facts.branch_share();
    let right = (predicted > 0.01).then_some(base * (1.0 - predicted));
    modelled(
        "no wrong prediction of a branch",
        right,
        "a perceptron predictor on the counted run; each miss takes what was measured here",
    );
    let imbalance = facts.imbalance();
    let balanced = (imbalance > 0.01).then_some(base * (1.0 - imbalance));
    modelled(
        "perfectly balanced threads",
        balanced,
        "exact counts of each thread's instructions",
    );
    let waits = waiting(facts).filter(|share| *share > 0.01);
    let free = waits.map(|share| base * (1.0 - share));
    modelled(
        "threads that do not wait for one another",
        free,
        "the time of one thread, shared",
    );
    let fetched = facts.modelled_seconds().filter(|t| *t < base);
    let fetched = fetched.filter(|_| is_long(facts));
    let fed = facts.share("memory_dependence") > FED;
    let passed = facts.modelled_seconds().filter(|t| *t < base && fed);
    modelled(
        "no load waits for a store",
        passed,
        "cycles of llvm-mca's model, in which none does",
    );
    modelled(
        "instructions fetched without delay",
        fetched,
        "cycles of llvm-mca's model, which fetches at once",
    );
    all
}

/// Whether its code is too long for the cache of decoded instructions.
fn is_long(facts: &Facts) -> bool {
    facts.share("hot_instructions") * INSTRUCTION > LARGE_CODE
}

/// What a changed replay is, and what was done.
fn changed(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Compact => (
            "all data in L1",
            "the same code; pages of its data share a few frames",
        ),
        Kind::Present => (
            "memory touched before",
            "the same code; pages that were not there at entry are",
        ),
        Kind::Huge => (
            "memory in huge pages",
            "the same code; madvise(MADV_HUGEPAGE) on its memory",
        ),
        Kind::Chains => (
            "no iteration waits for the one before",
            "the same instructions, each with the first value",
        ),
        Kind::Divisions => (
            "multiplications for divisions",
            "divisions and roots replaced",
        ),
        Kind::Stores => ("no stores", "values are computed and not stored"),
        Kind::Vectors => (
            "vectors of full width",
            "-O3 -march=native -ffast-math, loops taken as free of dependences",
        ),
        Kind::Alone => ("one thread", "replayed with one thread"),
    }
}

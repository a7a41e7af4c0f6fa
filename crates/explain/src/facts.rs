//! All that is known of a codelet before its time is explained.

use crate::order::Order;
use crate::pages::Table;
use crate::variants::{Change, Subject, Timed};
use anyhow::{Result, bail};
use cere_arch::feature::{Feature, has};
use cere_count::codelet::Counted;
use cere_count::hardware::Kernel;
use cere_count::listing::remarks::Outcome;
use cere_count::listing::{HotLoop, Listing, Remark, listing};
use cere_count::metrics::vector::{self, Vector};
use cere_count::topdown::{Topdown, topdown};
use cere_format::build::Ablation;
use cere_format::machine::Machine;
use cere_format::package::Manifest;
use cere_format::replay::Verdict;
use cere_machine::operations;
use cere_machine::session::Session;
use cere_memory::Geometry;
use cere_replay::Options;
use cere_replay::compile::Lined;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

/// How a codelet is looked at.
pub struct Settings {
    /// The caches of the machine.
    pub geometry: Geometry,
    /// The measured machine; none: shares of its limits are not known.
    pub machine: Option<Machine>,
    /// Instructions and accesses whose order is looked at, at most.
    pub budget: u64,
    /// IR with the lines of the source.
    pub lined: Lined,
    /// When no other replay may begin; none: whenever.
    pub until: Option<Instant>,
}

impl Settings {
    /// Fails when the time is over.
    fn in_time(&self) -> Result<()> {
        match self.until.is_some_and(|until| Instant::now() >= until) {
            true => bail!("not tried: the time for it (--within) was over"),
            false => Ok(()),
        }
    }
}

/// A replay without something; why there is none.
pub type Variant = Result<Timed, String>;

/// What is known of a codelet.
pub struct Facts {
    /// Its manifest.
    pub manifest: Manifest,
    /// SHA-256 of its file.
    pub sha256: String,
    /// Flags after those of the build.
    pub flags: String,
    /// The processor.
    pub cpu: String,
    /// Its time, unchanged: the mean of a replay before and one after the changed ones.
    pub base: Timed,
    /// Seconds of a cycle of the processor: of a dependent addition.
    pub cycle: f64,
    /// Seconds that a wrong prediction of a branch takes.
    pub wrong_branch: f64,
    /// Where the processor's slots go, if its counters tell.
    pub topdown: Option<Topdown>,
    /// Metrics, with simulated caches.
    pub vector: Vector,
    /// Branches that a predictor gets wrong.
    pub mispredicted: f64,
    /// The longest chain of loads that need one another.
    pub load_chain: u64,
    /// Instructions of each thread.
    pub work: Vec<u64>,
    /// Pages that were not there at entry.
    pub absent: u64,
    /// Share of the touched pages whose data was compacted.
    pub compacted: f64,
    /// Replays without something, by what is otherwise.
    pub variants: BTreeMap<Kind, Variant>,
    /// The loop that executes most.
    pub hot_loop: Option<HotLoop>,
    /// Why the compiler made no vectors of that loop, in plain words.
    pub remark: Option<String>,
    /// The measured machine.
    pub machine: Option<Machine>,
    /// What was not looked at and why.
    pub notes: Vec<String>,
}

/// What is otherwise in a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// All data in the first cache.
    Compact,
    /// Pages are there.
    Present,
    /// Huge pages.
    Huge,
    /// No iteration waits for the one before.
    Chains,
    /// No divisions.
    Divisions,
    /// No stores.
    Stores,
    /// Full vectors.
    Vectors,
    /// One thread.
    Alone,
}

/// Seconds for the probes of the processor, at most.
const PROBES: f64 = 5.0;
/// Translations that miss for each 1000 instructions, from which on huge pages are tried.
const MANY_MISSES: f64 = 0.5;
/// Misses of the first cache for each 1000 instructions, from which on all data is put there.
const MANY_LINES: f64 = 0.5;
/// Share of instructions from which on a kind of them is taken out.
const MANY: f64 = 0.001;
/// Share of vectors in floating-point arithmetic below which more are tried.
const FEW_VECTORS: f64 = 0.95;

/// Looks at the codelet in the unpacked package `package`.
///
/// # Errors
/// It cannot be replayed or counted; its replay does not end as in vivo; a tool fails.
pub fn facts(
    package: &Path,
    (manifest, sha256): (Manifest, String),
    options: &Options,
    settings: &Settings,
) -> Result<Facts> {
    let replay = cere_replay::replay(package, options)?;
    if replay.verdict == Verdict::Different {
        bail!(
            "its replay ends in another state than the program ({}): what its time is made of would say nothing of the program",
            replay.reason
        );
    }
    if replay.cycles.is_empty() {
        bail!("its replay measured nothing");
    }
    settings.in_time()?;
    let counting = vector::Settings {
        geometry: settings.geometry.clone(),
        seed: 1,
        budget: settings.budget,
    };
    let vector = vector::vector(package, &counting, options)?;
    settings.in_time()?;
    let listed = listing(package, &settings.lined, "native", options)?;
    let counted = Counted::new(package, options)?;
    let order = counted.observe(Order::new)?;
    let table = Table::read(package, &manifest)?;
    let subject = Subject {
        package,
        counted: &counted,
        options,
    };
    let try_out = |change: Change| told(settings.in_time().and_then(|()| subject.time(&change)));
    let session = Session::new(true, PROBES, &|_| ());
    let mut found = Facts {
        base: Timed {
            seconds: replay.seconds_median,
            interval: (replay.seconds_low, replay.seconds_high),
        },
        cycle: 1e-9 * operations::add_nanoseconds(&session),
        wrong_branch: 1e-9 * operations::branch::wrong_nanoseconds(&session),
        topdown: topdown(&Kernel { package, options }).ok(),
        mispredicted: order.mispredicted(),
        load_chain: order.load_chain(),
        work: order.work(),
        absent: table.absent(),
        compacted: 0.0,
        variants: BTreeMap::new(),
        remark: remark(&listed),
        hot_loop: listed.hottest,
        machine: settings.machine.clone(),
        notes: replay.notes.clone(),
        flags: vector.counts.flags.clone(),
        cpu: cere_format::machine::Identity::here().cpu,
        vector,
        manifest,
        sha256,
    };
    if found.machine.is_none() {
        found.notes.push(
            "this machine was not measured: shares of its limits are not known; run `cere machine --quick`".to_owned(),
        );
    }
    found.compact(&try_out, &order, &table);
    found.change(&try_out);
    if settings.in_time().is_ok() {
        let again = crate::variants::time(package, options)?;
        found.base = mean(found.base, again);
    }
    Ok(found)
}

/// Replays a changed codelet, if there is time.
type TryOut<'a> = &'a dyn Fn(Change) -> Variant;

/// The mean of two times.
fn mean(a: Timed, b: Timed) -> Timed {
    Timed {
        seconds: (a.seconds + b.seconds) / 2.0,
        interval: (
            a.interval.0.min(b.interval.0),
            a.interval.1.max(b.interval.1),
        ),
    }
}

/// Why the compiler made no vectors of the loop that executes most.
fn remark(listing: &Listing) -> Option<String> {
    let hot = listing.hottest.as_ref()?;
    let vectors = |pass: &str| pass == "loop-vectorize";
    let missed =
        |r: &&Remark| vectors(&r.pass) && r.outcome == Outcome::Missed && r.file == hot.file;
    let all = listing.remarks.iter().filter(missed);
    let near = all.min_by_key(|r| r.line.unwrap_or(0).abs_diff(hot.line.unwrap_or(0)));
    near.map(|r| r.text.clone())
}

impl Facts {
    /// A metric, if it has a value.
    #[must_use]
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.vector.values.value(name)
    }

    /// A metric, or 0.
    #[must_use]
    pub fn share(&self, name: &str) -> f64 {
        self.metric(name).unwrap_or(0.0)
    }

    /// Threads that run it.
    #[must_use]
    pub fn threads(&self) -> u32 {
        self.vector.counts.threads.max(1)
    }

    /// The replay with `kind`, if there was one.
    #[must_use]
    pub fn variant(&self, kind: Kind) -> Option<Timed> {
        self.variants.get(&kind)?.as_ref().ok().copied()
    }

    /// Replays it with all data in the first cache.
    fn compact(&mut self, try_out: TryOut, order: &Order, table: &Table) {
        if self.share("l1_misses") < MANY_LINES {
            return;
        }
        let used = order.pages();
        let tries = table.compactable(&used, &self.manifest);
        let mut found: Variant = Err("no page of its data could stand for others".to_owned());
        for ranges in tries {
            let bytes: u64 = ranges.iter().map(|r| r.1 - r.0).sum();
            let all = used.len() as u64 * cere_format::PAGE;
            self.compacted = bytes as f64 / all.max(1) as f64;
            found = try_out(Change::Compact(ranges));
            if found.is_ok() {
                break;
            }
        }
        self.variants.insert(Kind::Compact, found);
    }

    /// Replays it without what else may cost time.
    fn change(&mut self, try_out: TryOut) {
        let values = &self.vector.values;
        let share = |name: &str| values.value(name).unwrap_or(0.0);
        let divisions = ["mix_float_div", "mix_float_sqrt", "mix_integer_div"].map(share);
        let misses = share("tlb_misses") > MANY_MISSES;
        let vectors = values
            .value("vector_ratio_float")
            .is_none_or(|r| r < FEW_VECTORS);
        let several = self.threads() > 1 && self.manifest.openmp.is_some();
        let narrow = self.is_narrow();
        let absent = self.absent > 0;
        let code = Change::Code;
        let divides = divisions.iter().sum::<f64>() > MANY;
        let stores = share("stores_per_instruction") > MANY;
        let mut add = |kind: Kind, wanted: bool, change: Change| {
            if wanted {
                self.variants.insert(kind, try_out(change));
            }
        };
        add(Kind::Present, absent, Change::Present);
        add(Kind::Huge, misses, Change::Huge);
        add(Kind::Alone, several, Change::Alone);
        add(Kind::Chains, true, code(Ablation::Chains));
        add(Kind::Divisions, divides, code(Ablation::Divisions));
        add(Kind::Stores, stores, code(Ablation::Stores));
        add(
            Kind::Vectors,
            vectors || narrow,
            code(Ablation::Dependences),
        );
    }

    /// Whether its vectors are narrower than the machine's.
    fn is_narrow(&self) -> bool {
        let widest = match () {
            () if has(Feature::Avx512f) => "vector_share_512",
            () if has(Feature::Avx) => "vector_share_256",
            () => return false,
        };
        self.share(widest) == 0.0
    }
}

/// An error as it is said.
fn told(outcome: Result<Timed>) -> Variant {
    outcome.map_err(|error| cere_system::console::print::error(&error))
}

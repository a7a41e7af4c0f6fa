//! The measured machine: what `cere machine` writes, and what every stage that needs a parameter of the machine reads.
//!
//! A value that could not be observed is `None` (`null`), and [`Machine::found`] says why.

use crate::{caches, proc, store};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::OnceLock;

/// Version of the document.
pub const MACHINE_VERSION: u32 = 1;

/// What was measured of a machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// [`MACHINE_VERSION`].
    pub version: u32,
    /// Which machine.
    pub identity: Identity,
    /// Whether it was measured in little time: fewer points and repetitions.
    pub quick: bool,
    /// Seconds that the measurement took.
    pub seconds: f64,
    /// Bytes that a miss brings in.
    pub line_bytes: Option<u64>,
    /// Bytes of a page of the TLB, for memory that asks for nothing.
    pub page_bytes: Option<u64>,
    /// Nanoseconds of a dependent integer addition: the unit of the figures in additions.
    pub add_ns: Option<f64>,
    /// Caches of data, the nearest first.
    pub caches: Vec<Cache>,
    /// Levels of data TLBs, the nearest first.
    pub tlb: Vec<Tlb>,
    /// Memory beyond the caches.
    pub memory: Memory,
    /// Cores and what they share.
    pub cores: Cores,
    /// Latencies and throughputs.
    pub operations: Vec<Operation>,
    /// Peaks of arithmetic, for rooflines.
    pub peaks: Vec<Peak>,
    /// Bandwidths, for rooflines.
    pub bandwidths: Vec<Bandwidth>,
    /// How each value was found.
    pub found: Vec<Found>,
    /// What a user should know of this measurement, one sentence each.
    pub notes: Vec<String>,
    /// The curves that values were read off.
    pub curves: Vec<Curve>,
}

/// What tells machines apart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Model name of the processor.
    pub cpu: String,
    /// Family, model, stepping.
    pub signature: String,
    /// Caches as the system describes them.
    pub caches: String,
    /// Whether a hypervisor is between.
    pub hypervisor: bool,
    /// Processors that the process may use.
    pub processors: usize,
    /// 16 hexadecimal digits over all this and the system's own id, which they do not show.
    pub id: String,
}

/// A cache of data.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Cache {
    /// 1 is the nearest.
    pub level: u32,
    /// `Data` or `Unified`.
    pub kind: String,
    /// Bytes that a program can use without loss.
    pub size_bytes: u64,
    /// Lines of a set; `None` where it cannot be observed.
    pub ways: Option<u32>,
    /// Cores that have it together, of those measured; `None` where it was not observed.
    pub shared_by: Option<Vec<Vec<u32>>>,
    /// Nanoseconds of a dependent load that hits.
    pub latency_ns: f64,
    /// Likewise, in dependent integer additions.
    pub latency_adds: f64,
    /// 0 to 1: see [`Found::confidence`]. Of the size.
    pub confidence: f64,
    /// Bytes that the system tells (sysfs); `None` where it tells none for this level.
    pub system_bytes: Option<u64>,
}

/// A level of TLBs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tlb {
    /// 1 is the nearest.
    pub level: u32,
    /// Pages that it holds.
    pub entries: u64,
    /// Nanoseconds that a miss in it adds.
    pub miss_ns: f64,
    /// 0 to 1.
    pub confidence: f64,
}

/// Memory beyond the caches.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// Nanoseconds of a dependent load.
    pub latency_ns: Option<f64>,
    /// Likewise, in dependent integer additions.
    pub latency_adds: Option<f64>,
    /// Whether the kernel gave huge pages.
    pub huge_pages: bool,
    /// Seconds to touch a fresh page first, by node of the memory.
    pub first_touch: Vec<FirstTouch>,
    /// Pairs of cores that hinder each other, by how much.
    pub contention: Vec<Contention>,
}

/// First touch of pages.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FirstTouch {
    /// Node of the core that touches.
    pub node: u32,
    /// Seconds per page of 4 KiB.
    pub seconds_per_page: f64,
    /// Likewise in a huge page of 2 MiB, per 4 KiB; `None` where there were none.
    pub huge_seconds_per_page: Option<f64>,
}

/// Cores whose bandwidth from memory suffers alike when two of them use it (Servet, III.C).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Contention {
    /// Bandwidth of one core of a pair over that of a core alone.
    pub share: f64,
    /// Cores connected by such pairs.
    pub groups: Vec<Vec<u32>>,
}

/// Cores.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Cores {
    /// Those measured.
    pub measured: Vec<u32>,
    /// Threads that compute in floating point without hindering each other (BlackjackBench 3.4).
    pub float_contexts: Option<u32>,
    /// Likewise in integers.
    pub integer_contexts: Option<u32>,
    /// Likewise with loads from the nearest cache.
    pub memory_contexts: Option<u32>,
    /// Integer variables that stay in registers (BlackjackBench 3.5).
    pub integer_registers: Option<u32>,
    /// Likewise of floating point, with the instructions every x86-64 has.
    pub float_registers: Option<u32>,
    /// Likewise with the widest instructions that the processor has.
    pub vector_registers: Option<u32>,
    /// Seconds that a thread runs when others wait.
    pub time_slot_seconds: Option<f64>,
    /// Layers of communication, the fastest first (Servet, III.D).
    pub layers: Vec<Layer>,
    /// Cores that are near to each other, the whole machine first (BlackjackBench 3.1.4).
    pub tree: Option<Locality>,
}

/// Pairs of cores that communicate alike.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Layer {
    /// By what: `cores` (a line that two threads write in turns) or `mpi`.
    pub by: String,
    /// Seconds of a message of [`Layer::bytes`], one way.
    pub latency_seconds: f64,
    /// Bytes of that message.
    pub bytes: u64,
    /// Bandwidth of long messages, bytes per second.
    pub bytes_per_second: f64,
    /// Latency of all pairs at once over that of one alone; `None` with one pair.
    pub slowdown: Option<f64>,
    /// The pairs.
    pub pairs: Vec<(u32, u32)>,
}

/// Cores that exchange blocks faster with each other than with others.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Locality {
    /// The cores.
    pub cores: Vec<u32>,
    /// Bytes of the block at which they were told apart; of the root the largest.
    pub block_bytes: u64,
    /// Bandwidth between them at that size, bytes per second.
    pub bytes_per_second: f64,
    /// Nearer groups within.
    pub within: Vec<Locality>,
}

/// An operation of the processor.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    /// `add`, `mul`, `fma`, `div`, `sqrt`, ...
    pub name: String,
    /// `i32`, `i64`, `f32`, `f64`.
    pub element: String,
    /// Bits of the register: the element's own for scalars, else 128, 256, 512.
    pub bits: u32,
    /// Dependent: time of one over that of an integer addition.
    pub latency_adds: f64,
    /// Nanoseconds of it.
    pub latency_ns: f64,
    /// Independent: operations in the time of an integer addition.
    pub per_add: f64,
    /// Operations in flight.
    pub in_flight: Option<u32>,
    /// 0 to 1.
    pub confidence: f64,
}

/// A peak of one core: floating-point operations per second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Peak {
    /// `add`, `mul`, `fma`, `fma+add`.
    pub name: String,
    /// `f32` or `f64`.
    pub element: String,
    /// Bits: the element's own for scalars.
    pub bits: u32,
    /// Cores that computed at once.
    pub cores: u32,
    /// All of them together.
    pub flops_per_second: f64,
    /// Independent streams that gave it.
    pub streams: u32,
}

/// A bandwidth.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Bandwidth {
    /// Cache level; 0 for memory.
    pub level: u32,
    /// `load`, `store`, `copy`, `triad`, `nt-store`, `random`.
    pub name: String,
    /// Cores that worked at once.
    pub cores: u32,
    /// Bytes that the program reads and writes, of all cores.
    pub bytes_per_second: f64,
    /// Bytes that memory or the cache moves for each of them: with write-allocate a store moves two. 1 for loads.
    pub moved: f64,
    /// Bytes of all arrays of a core.
    pub working_set: u64,
}

/// How a value was found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The value's path in the document: `line_bytes`, `caches[1].size_bytes`.
    pub what: String,
    /// 0 to 1: how much the evidence stands out of the noise, and whether independent methods agree. 0: not observed. Below 0.5 the
    /// value is not used by other commands.
    pub confidence: f64,
    /// The method, or why the value cannot be observed.
    pub how: String,
}

/// A measured curve.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// Title for people.
    pub name: String,
    /// Title of the first axis with its unit.
    pub x: String,
    /// Of the second.
    pub y: String,
    /// Points by rising x.
    pub points: Vec<(f64, f64)>,
    /// What was read off: x and a word.
    pub marks: Vec<(f64, String)>,
}

/// Share of a measured size by which what the system tells must differ to be taken for wrong.
const WRONG: f64 = 0.125;

/// A cache that the system describes wrongly, as it was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Correction {
    /// 1 is the nearest.
    pub level: u32,
    /// Bytes that can be used.
    pub bytes: u64,
    /// Bytes of a line; 0 if not measured.
    pub line: u32,
    /// Lines of a set; 0 if not measured.
    pub ways: u32,
}

/// `told` with `corrections`: sizes are replaced, levels that are missing added. What was not measured of a cache stays as told.
#[must_use]
pub fn corrected(mut told: Vec<caches::Cache>, corrections: &[Correction]) -> Vec<caches::Cache> {
    for correction in corrections {
        let known = told
            .iter_mut()
            .find(|cache| cache.level == correction.level);
        match known {
            Some(cache) => {
                let unit = u64::from(cache.line) * u64::from(cache.ways);
                cache.size = match unit {
                    0 => correction.bytes,
                    unit => (correction.bytes / unit).max(1) * unit,
                };
            }
            None => told.push(caches::Cache {
                level: correction.level,
                kind: "Unified".into(),
                size: correction.bytes,
                line: correction.line,
                ways: correction.ways,
                shared: String::new(),
            }),
        }
    }
    told.sort_by_key(|cache| cache.level);
    told
}

/// The caches of a processor that data goes through, nearest first: as the system describes them, but where [`Machine::kept`] knows
/// better.
#[must_use]
pub fn caches_of(processor: u32) -> Vec<caches::Cache> {
    corrected(caches::of(processor), corrections())
}

/// [`Machine::corrections`] of this machine, as it was known when the process first asked: each replay asks. None where it was not
/// measured.
#[must_use]
pub fn corrections() -> &'static [Correction] {
    static KNOWN: OnceLock<Vec<Correction>> = OnceLock::new();
    KNOWN.get_or_init(|| Machine::kept().map_or(Vec::new(), |machine| machine.corrections()))
}

/// Confidence from which other commands use a value.
pub const USABLE: f64 = 0.5;

impl Identity {
    /// Of this machine and process.
    #[must_use]
    pub fn here() -> Self {
        let information = proc::cpuinfo();
        let told = caches::of(0).into_iter();
        let told: Vec<String> = told
            .map(|c| format!("L{} {} {}", c.level, c.size, c.ways))
            .collect();
        let system = ["/etc/machine-id", "/proc/sys/kernel/hostname"].into_iter();
        let system = system
            .filter_map(|path| std::fs::read_to_string(path).ok())
            .find(|text| !text.trim().is_empty());
        let mut identity = Self {
            cpu: proc::processor(&information),
            signature: proc::signature(&information),
            caches: told.join(", "),
            hypervisor: proc::features(&information).any(|f| f == "hypervisor"),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            id: String::new(),
        };
        let text = format!("{identity:?}{}", system.unwrap_or_default().trim());
        identity.id = format!("{:016x}", xxhash_rust::xxh3::xxh3_64(text.as_bytes()));
        identity
    }
}

impl Machine {
    /// Where the measurement of a machine lies in the user's cache.
    #[must_use]
    pub fn path(identity: &Identity) -> Option<PathBuf> {
        let name = format!("{}.json", identity.id);
        Some(store::user_cache()?.join("machines").join(name))
    }

    /// The measurement of this machine in the user's cache; `None` if there is none that this version reads.
    #[must_use]
    pub fn kept() -> Option<Self> {
        let identity = Identity::here();
        let text = std::fs::read(Self::path(&identity)?).ok()?;
        let machine: Self = serde_json::from_slice(&text).ok()?;
        (machine.version == MACHINE_VERSION && machine.identity == identity).then_some(machine)
    }

    /// Puts it into the user's cache; where it lies. An error where there is no such directory or it cannot be written.
    pub fn keep(&self) -> std::io::Result<PathBuf> {
        let missing = || std::io::Error::other("neither XDG_CACHE_HOME nor HOME names a directory");
        let path = Self::path(&self.identity).ok_or_else(missing)?;
        let directory = path.parent().ok_or_else(missing)?;
        std::fs::create_dir_all(directory)?;
        // By rename: another process reads either document whole.
        let partial = path.with_extension(format!("{}.partial", std::process::id()));
        std::fs::write(&partial, serde_json::to_vec_pretty(self)?)?;
        std::fs::rename(&partial, &path)?;
        Ok(path)
    }

    /// The cache of a level whose size can be relied on.
    #[must_use]
    pub fn cache(&self, level: u32) -> Option<&Cache> {
        let known = self.caches.iter().find(|c| c.level == level)?;
        (known.confidence >= USABLE).then_some(known)
    }

    /// Caches that the system describes wrongly or not at all, as far as the measurement can be relied on.
    #[must_use]
    pub fn corrections(&self) -> Vec<Correction> {
        let wrong = |cache: &Cache| {
            let told = cache.system_bytes.map_or(0.0, |told| told as f64);
            let off = (cache.size_bytes as f64 - told).abs() > WRONG * cache.size_bytes as f64;
            cache.confidence >= USABLE && cache.size_bytes > 0 && off
        };
        let ways = |at: usize| {
            let sure = self.confidence(&format!("caches[{at}].ways")) >= USABLE;
            self.caches[at].ways.filter(|_| sure).unwrap_or(0)
        };
        let caches = self.caches.iter().enumerate();
        let wrong = caches.filter(|(_, cache)| wrong(cache));
        let correction = |(at, cache): (usize, &Cache)| Correction {
            level: cache.level,
            bytes: cache.size_bytes,
            line: self.line_bytes.map_or(0, |line| line as u32),
            ways: ways(at),
        };
        wrong.map(correction).collect()
    }

    /// The confidence of a value, by its path; 0 where it was not measured.
    #[must_use]
    pub fn confidence(&self, what: &str) -> f64 {
        let found = self.found.iter().find(|f| f.what == what);
        found.map_or(0.0, |f| f.confidence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities() {
        let here = Identity::here();
        assert_eq!(here, Identity::here());
        assert_eq!(here.id.len(), 16, "{here:?}");
    }

    #[test]
    fn what_the_system_tells_is_corrected() {
        let cache = |level, size_bytes, confidence, system_bytes| Cache {
            level,
            size_bytes,
            confidence,
            system_bytes,
            ways: Some(8),
            ..Cache::default()
        };
        let machine = Machine {
            line_bytes: Some(64),
            caches: vec![
                cache(1, 32 << 10, 0.9, Some(32 << 10)),
                cache(2, 1 << 20, 0.9, Some(2 << 20)),
                cache(3, 8 << 20, 0.3, Some(480 << 20)),
                cache(4, 64 << 20, 0.9, None),
            ],
            ..Machine::default()
        };
        let found = machine.corrections();
        let levels: Vec<u32> = found.iter().map(|c| c.level).collect();
        assert_eq!(levels, [2, 4]);
        assert!(
            found.iter().all(|c| c.ways == 0),
            "nothing says that the ways are sure"
        );
        let told = |level, size| caches::Cache {
            level,
            size,
            line: 64,
            ways: 12,
            ..caches::Cache::default()
        };
        let told = vec![told(1, 32 << 10), told(2, 2 << 20), told(3, 480 << 20)];
        let sizes: Vec<u64> = corrected(told, &found).iter().map(|c| c.size).collect();
        // Whole sets of the ways that the system tells.
        assert_eq!(
            sizes,
            [32 << 10, (1 << 20) / 768 * 768, 480 << 20, 64 << 20]
        );
        assert_eq!(corrected(Vec::new(), &found).len(), 2);
    }

    #[test]
    fn caches_below_confidence_are_not_given() {
        let cache = |level, confidence| Cache {
            level,
            confidence,
            ..Cache::default()
        };
        let machine = Machine {
            caches: vec![cache(1, 0.9), cache(2, 0.4)],
            ..Machine::default()
        };
        assert!(machine.cache(1).is_some());
        assert!(machine.cache(2).is_none() && machine.cache(3).is_none());
    }
}

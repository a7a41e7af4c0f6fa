//! The machine: processor, caches, frequency; memory and disk.

use crate::health::item::Item;
use cere_format::machine as measurement;
use cere_format::proc::{self, available, field};
use cere_format::store::Store;
use cere_store::state;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const PROCESSORS: &str = "/sys/devices/system/cpu";
/// Bytes of free disk below which captures may fail.
const SCARCE_DISK: u64 = 2 << 30;
/// Bytes of free memory below which replays may be disturbed.
const SCARCE_MEMORY: u64 = 1 << 30;
/// Mappings that a process may have by default: a capture makes many.
const MAPPINGS: u64 = 65530;

/// A cache of the first processor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cache {
    /// 1 for the nearest.
    pub level: u32,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: String,
    pub bytes: u64,
    /// Processors that share it, as the kernel lists them.
    pub shared: String,
}

/// The machine as the kernel describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: Option<String>,
    /// Number of cores.
    pub cores: Option<usize>,
    /// Hardware threads.
    pub threads: usize,
    /// Threads that this process may use, if fewer.
    pub allowed: Option<usize>,
    /// Caches, nearest first.
    pub caches: Vec<Cache>,
    /// The frequency governor.
    pub governor: Option<String>,
    /// Whether the processor may raise its frequency when few cores work.
    pub boost: Option<bool>,
    /// The hypervisor, if this is a virtual machine.
    pub hypervisor: Option<String>,
}

impl Machine {
    /// This machine.
    pub fn here() -> Self {
        Self::of(Path::new(PROCESSORS), &proc::cpuinfo())
    }

    /// Reads the kernel's directory of processors and the text of `/proc/cpuinfo`.
    fn of(processors: &Path, information: &str) -> Self {
        let threads = field(information, "processor").count();
        let allowed = std::thread::available_parallelism().map_or(threads, usize::from);
        let first = processors.join("cpu0");
        let virtual_machine = proc::features(information).any(|f| f == "hypervisor");
        let product = || read_line(Path::new("/sys/class/dmi/id/product_name"));
        Self {
            processor: Some(proc::processor(information)).filter(|name| !name.is_empty()),
            cores: cores(processors),
            threads,
            allowed: (allowed < threads).then_some(allowed),
            caches: caches(&first.join("cache")),
            governor: read_line(&first.join("cpufreq/scaling_governor")),
            boost: boost(processors),
            hypervisor: virtual_machine.then(|| product().unwrap_or_else(|| "unknown".into())),
        }
    }
}

/// The text of a file of one line.
fn read_line(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|t| !t.is_empty())
}

fn cores(processors: &Path) -> Option<usize> {
    let mut cores = BTreeSet::new();
    for entry in fs::read_dir(processors).ok()?.flatten() {
        let topology = entry.path().join("topology");
        if let Some(id) = read_line(&topology.join("core_id")) {
            cores.insert((read_line(&topology.join("physical_package_id")), id));
        }
    }
    (!cores.is_empty()).then_some(cores.len())
}

fn caches(directory: &Path) -> Vec<Cache> {
    let found = cere_format::caches::listed(directory).into_iter();
    let shown = found.map(|c| Cache {
        level: c.level,
        kind: c.kind,
        bytes: c.size,
        shared: c.shared,
    });
    shown.collect()
}

fn boost(processors: &Path) -> Option<bool> {
    let is = |path: &str, on: &str| read_line(&processors.join(path)).map(|text| text == on);
    is("cpufreq/boost", "1").or_else(|| is("intel_pstate/no_turbo", "0"))
}

/// Free memory, disk and mappings, and the frequency governor.
pub fn free_room(store: &Store) -> Vec<Item> {
    let mut items = vec![disk(store), memory(), mappings(), measured()];
    items.extend(governor(&Machine::here()));
    items
}

fn shown(bytes: u64) -> String {
    format!("{:.1} GiB free", bytes as f64 / (1u64 << 30) as f64)
}

fn disk(store: &Store) -> Item {
    const NAME: &str = "disk of the store";
    let there = store.root().ancestors().find(|path| path.is_dir());
    let remedy = "make room, or name a store on another disk with --store";
    match there.and_then(|path| Some((path, state::free_space(path)?))) {
        None => Item::limited(NAME, "its free room is not known", remedy),
        Some((at, free)) => {
            let found = format!("{} at {}", shown(free), at.display());
            match free {
                0 => Item::missing(NAME, found, remedy),
                SCARCE_DISK.. => Item::good(NAME, found),
                _ => Item::limited(
                    NAME,
                    format!("{found}: captures of large programs may not fit"),
                    remedy,
                ),
            }
        }
    }
}

fn memory() -> Item {
    const NAME: &str = "memory";
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let remedy = "end other programs, or take a machine with more memory";
    match available(&text) {
        None => Item::limited(NAME, "/proc/meminfo does not show the free memory", remedy),
        Some(free) if free >= SCARCE_MEMORY => Item::good(NAME, shown(free)),
        Some(free) => Item::limited(
            NAME,
            format!("{}: runs may be disturbed", shown(free)),
            remedy,
        ),
    }
}

/// What `cere machine` measured here, and where that differs from what the kernel describes.
pub fn measured() -> Item {
    of_measurement(measurement::Machine::kept().as_ref())
}

fn of_measurement(measured: Option<&measurement::Machine>) -> Item {
    const NAME: &str = "measured machine";
    let remedy = "run `cere machine` on a quiet machine: it takes a minute";
    let Some(machine) = measured else {
        return Item::limited(
            NAME,
            "caches are taken as the kernel describes them; `cere roofline` needs a measurement",
            remedy,
        )
        .mended_by("cere machine");
    };
    if machine
        .caches
        .iter()
        .all(|c| c.confidence < measurement::USABLE)
    {
        return Item::limited(
            NAME,
            "no cache was measured reliably: others were busy",
            remedy,
        );
    }
    let wrong = machine.corrections().into_iter();
    let wrong: Vec<String> = wrong
        .map(|c| format!("L{} has {} KiB", c.level, c.bytes >> 10))
        .collect();
    let found = match wrong.is_empty() {
        true => "its reliable values agree with what the kernel describes".into(),
        false => format!("the kernel is wrong, these count: {}", wrong.join(", ")),
    };
    Item::good(NAME, found)
}

fn mappings() -> Item {
    const NAME: &str = "mappings";
    match read_line(Path::new("/proc/sys/vm/max_map_count")).and_then(|t| t.parse::<u64>().ok()) {
        Some(few) if few < MAPPINGS => Item::limited(
            NAME,
            format!("a process may have {few}: captures of scattered memory may be refused"),
            format!("`sudo sysctl vm.max_map_count={MAPPINGS}`"),
        )
        .mended_as_root(&format!("sysctl vm.max_map_count={MAPPINGS}")),
        Some(count) => Item::good(NAME, format!("up to {count} a process")),
        None => Item::limited(
            NAME,
            "vm.max_map_count is not known",
            "see `sysctl vm.max_map_count`",
        ),
    }
}

/// Warns if the governor changes the frequency while programs run; nothing if no governor is visible.
fn governor(machine: &Machine) -> Option<Item> {
    const NAME: &str = "frequency governor";
    let governor = machine.governor.as_deref()?;
    Some(match governor {
        "performance" => Item::good(NAME, governor),
        _ => Item::limited(
            NAME,
            format!("{governor}: the frequency may change while programs are timed"),
            "`sudo cpupower frequency-set -g performance`",
        )
        .mended_as_root(&format!(
            "sh -c 'for governor in {PROCESSORS}/cpu*/cpufreq/scaling_governor; do echo performance > $governor; done'"
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::item::State;

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn a_machine_by_its_files() {
        let directory = tempfile::tempdir().unwrap();
        write(
            directory.path(),
            &[
                ("cpu0/topology/core_id", "0\n"),
                ("cpu1/topology/core_id", "0\n"),
                ("cpu0/cache/index3/level", "3\n"),
                ("cpu0/cache/index3/type", "Unified\n"),
                ("cpu0/cache/index3/size", "32768K\n"),
                ("cpu0/cache/index0/level", "1\n"),
                ("cpu0/cache/index0/type", "Data\n"),
                ("cpu0/cache/index0/size", "32K\n"),
                ("cpu0/cache/index0/shared_cpu_list", "0-1\n"),
                ("cpu0/cpufreq/scaling_governor", "powersave\n"),
                ("intel_pstate/no_turbo", "1\n"),
            ],
        );
        let text = "processor\t: 0\nmodel name\t: A 1\nflags\t: fpu hypervisor\n\nprocessor\t: 1\nmodel name\t: A 1\n";
        let machine = Machine::of(directory.path(), text);
        assert_eq!(machine.processor.as_deref(), Some("A 1"));
        assert_eq!((machine.cores, machine.threads), (Some(1), 2));
        let sizes: Vec<(u32, u64)> = machine.caches.iter().map(|c| (c.level, c.bytes)).collect();
        assert_eq!(sizes, [(1, 32 << 10), (3, 32 << 20)]);
        assert_eq!(machine.boost, Some(false));
        assert!(machine.hypervisor.is_some());
        assert_eq!(governor(&machine).unwrap().state, State::Limited);
        let empty = Machine::of(&directory.path().join("none"), "");
        assert_eq!(
            (empty.cores, empty.caches.len(), empty.governor),
            (None, 0, None)
        );
    }

    #[test]
    fn a_measurement_in_which_nothing_is_sure_agrees_with_nothing() {
        let cache = |confidence, size_bytes| measurement::Cache {
            level: 1,
            size_bytes,
            confidence,
            system_bytes: Some(32 << 10),
            ..measurement::Cache::default()
        };
        let item = |cache| {
            of_measurement(Some(&measurement::Machine {
                caches: vec![cache],
                ..measurement::Machine::default()
            }))
        };
        assert_eq!(item(cache(0.3, 48 << 10)).state, State::Limited);
        assert!(item(cache(0.9, 32 << 10)).found.contains("agree"));
        assert!(item(cache(0.9, 48 << 10)).found.contains("L1 has 48 KiB"));
        assert_eq!(of_measurement(None).state, State::Limited);
    }

    /// A store that does not exist yet will be on its parent's disk.
    #[test]
    fn room_for_a_store() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path().join("a/.cere"));
        assert!(
            disk(&store)
                .found
                .ends_with(&directory.path().display().to_string())
        );
    }
}

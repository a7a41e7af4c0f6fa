//! The shared file mapping that the preload library keeps a profile in, and its reader.
//!
//! One file `profile.<pid>.<number>` a process in the run's directory: a [`RawHeader`], then the tables of
//! regions, nodes and active entries, then one [`RawTrace`] a region. The file is sparse. Nothing in it needs
//! closing, so a crash or `_exit` loses at most the regions that were active.

use crate::profile::{PROFILE_VERSION, Profile, RegionKey, RegionProfile, Trace, TreeNode};
use std::mem::size_of;
use std::path::{Path, PathBuf};

/// First eight bytes of the mapping.
pub const RAW_MAGIC: u64 = u64::from_le_bytes(*b"CEREPRF1");
/// Version of the layout.
pub const RAW_VERSION: u32 = 1;
/// Prefix of the file's name.
pub const RAW_PREFIX: &str = "profile.";
/// Regions that fit; more are counted in [`RawHeader::regions_lost`].
pub const RAW_REGIONS: usize = 16384;
/// Nodes that fit; a region entered from a new chain beyond that is booked on its caller's node.
pub const RAW_NODES: usize = 1 << 18;
/// Depth of active regions that fits.
pub const RAW_DEPTH: usize = 4096;
/// Invocations of which every one is kept.
pub const TRACE_FIRST: usize = 4096;
/// File in the run's directory, if the command left one: a JSON array of rising invocation numbers to be kept of
/// every region, whatever the stride.
pub const TRACE_WANTED: &str = "invocations.json";
/// Kept later invocations; when full every second goes and the stride doubles, but for those
/// that [`TRACE_WANTED`] names; what does not fit then is not kept.
pub const TRACE_SAMPLED: usize = 4096;

/// Start of the mapping.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawHeader {
    /// [`RAW_MAGIC`].
    pub magic: u64,
    /// [`RAW_VERSION`].
    pub version: u32,
    /// Process id.
    pub pid: u32,
    /// Both clocks at the start.
    pub start_cycles: u64,
    /// See `start_cycles`.
    pub start_nanoseconds: u64,
    /// Both clocks at the end; zero if the program did not end in an orderly way.
    pub end_cycles: u64,
    /// See `end_cycles`.
    pub end_nanoseconds: u64,
    /// Counter at the last probe.
    pub last_cycles: u64,
    /// Frequency measured at the start, in Hz.
    pub tsc_hz: f64,
    /// Probe pair's cost inside a region, cycles.
    pub probe_inside: f64,
    /// Probe pair's cost on the caller, cycles.
    pub probe_outside: f64,
    /// Regions in use.
    pub regions: u64,
    /// Nodes in use; node 0 is the root.
    pub nodes: u64,
    /// Active entries.
    pub depth: u64,
    /// Probe pairs taken in the main thread.
    pub pairs: u64,
    /// Probe events in other threads, which are not timed.
    pub other_threads: u64,
    /// Invocations of regions that did not fit the table.
    pub regions_lost: u64,
    /// Regions left without a leave event (longjmp).
    pub abandoned: u64,
}

/// A region that ran.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawRegion {
    /// Its unit's id in ASCII.
    pub unit: [u8; 32],
    /// Its index in the unit.
    pub index: u32,
    /// Depth at which it is active now.
    pub active: u32,
    /// Times it was entered.
    pub invocations: u64,
    /// Times it was left with its time known.
    pub finished: u64,
    /// Inclusive cycles, recursion counted once.
    pub inclusive: u64,
    /// Self cycles.
    pub own: u64,
    /// Shortest finished invocation.
    pub min: u64,
    /// Longest finished invocation.
    pub max: u64,
    /// Sum over finished invocations, recursion counted every time.
    pub sum: u64,
}

/// A region under a chain of callers.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawNode {
    /// Region's index; `u32::MAX` for the root.
    pub region: u32,
    /// Calling node.
    pub parent: u32,
    /// First called node, 0 for none.
    pub child: u32,
    /// Next node of the same caller, 0 for none.
    pub sibling: u32,
    /// Depth at which it is active now.
    pub active: u32,
    /// Zero.
    pub reserved: u32,
    /// Times entered.
    pub invocations: u64,
    /// Inclusive cycles, recursion counted once.
    pub inclusive: u64,
    /// Self cycles.
    pub own: u64,
}

/// A region that is running.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawActive {
    /// Region's index.
    pub region: u32,
    /// Its node.
    pub node: u32,
    /// Stack pointer at its probe.
    pub stack: u64,
    /// Counter at entry.
    pub start: u64,
    /// Cycles of regions called so far.
    pub called: u64,
    /// Probe pairs inside so far.
    pub pairs: u64,
    /// Number of this invocation.
    pub invocation: u64,
}

/// Trace of one region.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawTrace {
    /// Distance of kept later invocations; 0 stands for 1.
    pub stride: u64,
    /// Kept later invocations.
    pub sampled: u64,
    /// Cycles of invocation i + 1; `u64::MAX` or 0: unknown.
    pub first: [u64; TRACE_FIRST],
    /// Invocation and cycles.
    pub later: [(u64, u64); TRACE_SAMPLED],
}

/// Offset of the regions.
pub const REGIONS_OFFSET: usize = 4096;
/// Offset of the nodes.
pub const NODES_OFFSET: usize = REGIONS_OFFSET + RAW_REGIONS * size_of::<RawRegion>();
/// Offset of the active entries.
pub const ACTIVE_OFFSET: usize = NODES_OFFSET + RAW_NODES * size_of::<RawNode>();
/// Offset of the traces.
pub const TRACES_OFFSET: usize =
    (ACTIVE_OFFSET + RAW_DEPTH * size_of::<RawActive>()).next_multiple_of(4096);
/// Size of the file.
pub const RAW_SIZE: usize = TRACES_OFFSET + RAW_REGIONS * size_of::<RawTrace>();

/// Why a raw profile could not be read.
#[derive(Debug, thiserror::Error)]
pub enum RawError {
    /// The file could not be read.
    #[error("cannot read the raw profile {path}")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It ends too early.
    #[error("the raw profile {path} is too short: {found} bytes at offset {offset}")]
    TooShort {
        /// Which.
        path: PathBuf,
        /// Where.
        offset: usize,
        /// Bytes found there.
        found: usize,
    },
    /// It is not one, or of another version.
    #[error(
        "{path} is not a raw profile of version {RAW_VERSION}: magic {magic:#x}, version {version}"
    )]
    Wrong {
        /// Which.
        path: PathBuf,
        /// First word.
        magic: u64,
        /// Version found.
        version: u32,
    },
    /// A count in it exceeds its table.
    #[error("the raw profile {path} claims {count} {what}, of which {limit} fit")]
    Count {
        /// Which.
        path: PathBuf,
        /// What is counted.
        what: &'static str,
        /// The count.
        count: u64,
        /// The limit.
        limit: usize,
    },
}

/// The raw profiles in a run's directory.
pub fn raw_files(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(RAW_PREFIX) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

struct Reader {
    file: std::fs::File,
    path: PathBuf,
}

impl Reader {
    fn words(&self, offset: usize, bytes: usize) -> Result<Vec<u8>, RawError> {
        use std::os::unix::fs::FileExt;
        let mut data = vec![0; bytes];
        let mut done = 0;
        while done < bytes {
            match self.file.read_at(&mut data[done..], (offset + done) as u64) {
                Ok(0) => {
                    return Err(RawError::TooShort {
                        path: self.path.clone(),
                        offset,
                        found: done,
                    });
                }
                Ok(n) => done += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(RawError::Read {
                        path: self.path.clone(),
                        source,
                    });
                }
            }
        }
        Ok(data)
    }

    fn count(&self, what: &'static str, count: u64, limit: usize) -> Result<usize, RawError> {
        match usize::try_from(count) {
            Ok(n) if n <= limit => Ok(n),
            _ => Err(RawError::Count {
                path: self.path.clone(),
                what,
                count,
                limit,
            }),
        }
    }
}

fn u64_at(data: &[u8], offset: usize) -> u64 {
    data.get(offset..offset + 8)
        .map_or(0, |b| u64::from_le_bytes(b.try_into().unwrap_or([0; 8])))
}

fn u32_at(data: &[u8], offset: usize) -> u32 {
    data.get(offset..offset + 4)
        .map_or(0, |b| u32::from_le_bytes(b.try_into().unwrap_or([0; 4])))
}

macro_rules! word {
    ($data:expr, $base:expr, $type:ty, $field:ident) => {
        u64_at($data, $base + std::mem::offset_of!($type, $field))
    };
}

/// Turns a raw profile into a [`Profile`]. `name` gives a region's display name.
pub fn read_raw(
    path: &Path,
    command: Vec<String>,
    directory: PathBuf,
    name: &mut dyn FnMut(&RegionKey) -> String,
) -> Result<Profile, RawError> {
    let file = std::fs::File::open(path).map_err(|source| RawError::Read {
        path: path.to_owned(),
        source,
    })?;
    let reader = Reader {
        file,
        path: path.to_owned(),
    };
    let header = reader.words(0, size_of::<RawHeader>())?;
    let magic = u64_at(&header, 0);
    let version = u32_at(&header, 8);
    if magic != RAW_MAGIC || version != RAW_VERSION {
        return Err(RawError::Wrong {
            path: path.to_owned(),
            magic,
            version,
        });
    }
    let count = reader.count(
        "regions",
        word!(&header, 0, RawHeader, regions),
        RAW_REGIONS,
    )?;
    let nodes = reader.count("nodes", word!(&header, 0, RawHeader, nodes), RAW_NODES)?;
    let start = word!(&header, 0, RawHeader, start_cycles);
    let end = match word!(&header, 0, RawHeader, end_cycles) {
        0 => word!(&header, 0, RawHeader, last_cycles).max(start),
        end => end,
    };
    let inside = f64::from_bits(word!(&header, 0, RawHeader, probe_inside));
    let outside = f64::from_bits(word!(&header, 0, RawHeader, probe_outside));
    let mut hz = f64::from_bits(word!(&header, 0, RawHeader, tsc_hz));
    let elapsed = word!(&header, 0, RawHeader, end_nanoseconds).saturating_sub(word!(
        &header,
        0,
        RawHeader,
        start_nanoseconds
    ));
    if elapsed > 50_000_000 && word!(&header, 0, RawHeader, end_cycles) > start {
        hz = (end - start) as f64 * 1e9 / elapsed as f64;
    }
    let pairs = word!(&header, 0, RawHeader, pairs) as f64;
    let total = (end.saturating_sub(start) as f64 - pairs * (inside + outside)).max(1.0);
    let seconds = |cycles: u64| cycles as f64 / hz;
    let table = reader.words(REGIONS_OFFSET, count * size_of::<RawRegion>())?;
    let own_sum: u64 = (0..count)
        .map(|slot| word!(&table, slot * size_of::<RawRegion>(), RawRegion, own))
        .sum();
    // The probe's cost is known to some cycles: regions shorter than it may add up to more than is left.
    let total = total.max(own_sum as f64);
    let mut regions = Vec::with_capacity(count);
    for slot in 0..count {
        let base = slot * size_of::<RawRegion>();
        let unit = table.get(base..base + 32).unwrap_or(&[]);
        let key = RegionKey {
            unit: String::from_utf8_lossy(unit).into_owned(),
            index: u32_at(&table, base + std::mem::offset_of!(RawRegion, index)),
        };
        let finished = word!(&table, base, RawRegion, finished);
        let invocations = word!(&table, base, RawRegion, invocations);
        let own = word!(&table, base, RawRegion, own);
        let at = TRACES_OFFSET + slot * size_of::<RawTrace>();
        let kept = (invocations as usize).min(TRACE_FIRST);
        let data = reader.words(at, 16 + TRACE_FIRST * 8)?;
        let later_count = reader.count("trace entries", u64_at(&data, 8), TRACE_SAMPLED)?;
        let later = reader.words(
            at + std::mem::offset_of!(RawTrace, later),
            later_count * size_of::<(u64, u64)>(),
        )?;
        let mut sampled: Vec<(u64, u64)> = (0..later_count)
            .map(|i| (u64_at(&later, i * 16), u64_at(&later, i * 16 + 8)))
            .collect();
        sampled.sort_unstable();
        regions.push(RegionProfile {
            name: name(&key),
            key,
            invocations,
            inclusive_seconds: seconds(word!(&table, base, RawRegion, inclusive)),
            self_seconds: seconds(own),
            share: own as f64 / total,
            cycles_min: if finished == 0 {
                0
            } else {
                word!(&table, base, RawRegion, min)
            },
            cycles_mean: word!(&table, base, RawRegion, sum) as f64 / finished.max(1) as f64,
            cycles_max: word!(&table, base, RawRegion, max),
            trace: Trace {
                first: (0..kept).map(|i| u64_at(&data, 16 + i * 8)).collect(),
                stride: u64_at(&data, 0).max(1),
                sampled,
            },
        });
    }
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|a, b| {
        regions[*b]
            .self_seconds
            .total_cmp(&regions[*a].self_seconds)
    });
    let mut place = vec![0; count];
    for (new, old) in order.iter().enumerate() {
        place[*old] = new;
    }
    let table = reader.words(NODES_OFFSET, nodes * size_of::<RawNode>())?;
    let mut tree = Vec::with_capacity(nodes);
    for node in 0..nodes {
        let base = node * size_of::<RawNode>();
        let parent = u32_at(&table, base + std::mem::offset_of!(RawNode, parent)) as usize;
        let region = u32_at(&table, base) as usize;
        let root = node == 0;
        tree.push(TreeNode {
            region: if root {
                None
            } else {
                place.get(region).copied()
            },
            parent: (!root).then_some(parent),
            invocations: if root {
                1
            } else {
                word!(&table, base, RawNode, invocations)
            },
            inclusive_seconds: if root {
                total / hz
            } else {
                seconds(word!(&table, base, RawNode, inclusive))
            },
            self_seconds: if root {
                (total - own_sum as f64).max(0.0) / hz
            } else {
                seconds(word!(&table, base, RawNode, own))
            },
        });
    }
    // For the same reason a region may seem shorter than those that it calls, which come after it.
    let mut called = vec![0.0f64; tree.len()];
    for node in (1..tree.len()).rev() {
        let place = &mut tree[node];
        place.inclusive_seconds = place
            .inclusive_seconds
            .max(place.self_seconds + called[node]);
        let inclusive = place.inclusive_seconds;
        if let Some(sum) = place.parent.and_then(|parent| called.get_mut(parent)) {
            *sum += inclusive;
        }
    }
    let mut sorted: Vec<Option<RegionProfile>> = regions.into_iter().map(Some).collect();
    let regions = order.iter().filter_map(|old| sorted[*old].take()).collect();
    Ok(Profile {
        version: PROFILE_VERSION,
        command,
        directory,
        program: String::new(),
        seconds: total / hz,
        coverage: (own_sum as f64 / total).min(1.0),
        tsc_hz: hz,
        probe_inside: inside,
        probe_outside: outside,
        regions,
        tree,
    })
}

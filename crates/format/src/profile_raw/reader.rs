//! Reads a raw profile.

use super::*;
use crate::FormatError;
use crate::error::check_version;
use crate::profile::{
    Elsewhere, PROFILE_VERSION, Passage, ProcessName, ProcessorTime, Profile, RegionKey,
    RegionProfile, RunInput, Trace, TreeNode,
};
use std::mem::offset_of;
use std::path::{Path, PathBuf};

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
    fn words(&self, offset: usize, bytes: usize) -> Result<Vec<u8>, FormatError> {
        use std::os::unix::fs::FileExt;
        let mut data = vec![0; bytes];
        let mut done = 0;
        while done < bytes {
            match self.file.read_at(&mut data[done..], (offset + done) as u64) {
                Ok(0) => {
                    return Err(FormatError::TooShort {
                        what: "the raw profile",
                        offset: offset as u64,
                        needed: bytes as u64,
                        available: done as u64,
                    });
                }
                Ok(n) => done += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(FormatError::io("read", &self.path)(e)),
            }
        }
        Ok(data)
    }

    fn count(&self, what: &'static str, count: u64, limit: usize) -> Result<usize, FormatError> {
        match usize::try_from(count) {
            Ok(n) if n <= limit => Ok(n),
            _ => Err(FormatError::Invalid {
                what: self.path.display().to_string(),
                field: what,
                value: count.to_string(),
                why: "its table holds fewer",
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
        u64_at($data, $base + offset_of!($type, $field))
    };
}

/// The run's cycles and what they are in seconds.
struct Clock {
    /// Of the counter when the profile began.
    start: u64,
    /// Cycles of the counter a second.
    hz: f64,
    /// Cycles of the run, without those of the probes.
    total: f64,
    /// Cycles of regions themselves.
    own: u64,
    /// Cycles of a probe inside what it measures, and outside.
    probe: (f64, f64),
}

impl Clock {
    /// `own`: cycles of regions themselves.
    fn read(header: &[u8], own: u64) -> Self {
        let start = word!(header, 0, RawHeader, start_cycles);
        let ended = word!(header, 0, RawHeader, end_cycles);
        let end = match ended {
            0 => word!(header, 0, RawHeader, last_cycles).max(start),
            end => end,
        };
        let inside = f64::from_bits(word!(header, 0, RawHeader, probe_inside));
        let outside = f64::from_bits(word!(header, 0, RawHeader, probe_outside));
        let mut hz = f64::from_bits(word!(header, 0, RawHeader, tsc_hz));
        let began = word!(header, 0, RawHeader, start_nanoseconds);
        let elapsed = word!(header, 0, RawHeader, end_nanoseconds).saturating_sub(began);
        if elapsed > 50_000_000 && ended > start {
            hz = (end - start) as f64 * 1e9 / elapsed as f64;
        }
        let pairs = word!(header, 0, RawHeader, pairs) as f64;
        let total = (end.saturating_sub(start) as f64 - pairs * (inside + outside)).max(1.0);
        Self {
            start,
            hz,
            // The probe's cost is known to a few cycles only: many short regions may add up to more than the remaining time.
            total: total.max(own as f64),
            own,
            probe: (inside, outside),
        }
    }

    fn seconds(&self, cycles: u64) -> f64 {
        cycles as f64 / self.hz
    }
}

/// Turns a raw profile into a [`Profile`]. `name` gives a region's display name.
pub fn read_raw(
    path: &Path,
    command: Vec<String>,
    directory: PathBuf,
    name: &mut dyn FnMut(&RegionKey) -> String,
) -> Result<Profile, FormatError> {
    let file = std::fs::File::open(path).map_err(FormatError::io("open", path))?;
    let reader = Reader {
        file,
        path: path.to_owned(),
    };
    let header = reader.words(0, size_of::<RawHeader>())?;
    check_header(&header)?;
    let count = reader.count(
        "regions",
        word!(&header, 0, RawHeader, regions),
        RAW_REGIONS,
    )?;
    let nodes = reader.count("nodes", word!(&header, 0, RawHeader, nodes), RAW_NODES)?;
    let passages = word!(&header, 0, RawHeader, passages);
    let passages = reader.count("passages", passages, RAW_PASSAGES)?;
    let table = reader.words(REGIONS_OFFSET, count * size_of::<RawRegion>())?;
    let own = |slot| word!(&table, slot * size_of::<RawRegion>(), RawRegion, own);
    let clock = Clock::read(&header, (0..count).map(own).fold(0, u64::saturating_add));
    let regions = (0..count).map(|slot| region(&reader, &table, slot, &clock, name));
    let (regions, place) = by_time(regions.collect::<Result<_, _>>()?);
    let tree = tree(&reader, nodes, &clock, &place)?;
    Ok(Profile {
        version: PROFILE_VERSION,
        command,
        directory,
        program: String::new(),
        runs: 1,
        ended: None,
        process: ProcessName::default(),
        input: RunInput::default(),
        seconds: clock.total / clock.hz,
        coverage: (clock.own as f64 / clock.total).min(1.0),
        tsc_hz: clock.hz,
        probe_inside: clock.probe.0,
        probe_outside: clock.probe.1,
        regions,
        tree,
        timeline: timeline(&reader, passages, &place, clock.start)?,
        other_threads: word!(&header, 0, RawHeader, other_threads),
        elsewhere: elsewhere(&reader, name)?,
        processor: processor(&header),
    })
}

fn check_header(header: &[u8]) -> Result<(), FormatError> {
    let magic = u64_at(header, 0);
    if magic != RAW_MAGIC {
        return Err(FormatError::WrongMagic {
            what: "a raw profile",
            found: magic.to_le_bytes().to_vec(),
            expected: RAW_MAGIC.to_le_bytes().to_vec(),
        });
    }
    check_version("the raw profile", u32_at(header, 8), RAW_VERSION)
}

fn region(
    reader: &Reader,
    table: &[u8],
    slot: usize,
    clock: &Clock,
    name: &mut dyn FnMut(&RegionKey) -> String,
) -> Result<RegionProfile, FormatError> {
    let base = slot * size_of::<RawRegion>();
    let unit = table.get(base..base + 32).unwrap_or(&[]);
    let key = RegionKey {
        unit: String::from_utf8_lossy(unit).into_owned(),
        index: u32_at(table, base + offset_of!(RawRegion, index)),
    };
    let finished = word!(table, base, RawRegion, finished);
    let invocations = word!(table, base, RawRegion, invocations);
    let own = word!(table, base, RawRegion, own);
    let room = u32_at(table, base + offset_of!(RawRegion, first_room));
    Ok(RegionProfile {
        name: name(&key),
        key,
        invocations,
        inclusive_seconds: clock.seconds(word!(table, base, RawRegion, inclusive)),
        self_seconds: clock.seconds(own),
        share: own as f64 / clock.total,
        cycles_min: match finished {
            0 => 0,
            _ => word!(table, base, RawRegion, min),
        },
        cycles_mean: word!(table, base, RawRegion, sum) as f64 / finished.max(1) as f64,
        cycles_max: word!(table, base, RawRegion, max),
        noise: 0.0,
        trace: trace(reader, slot, invocations.min(room.into()), clock.start)?,
    })
}

/// The regions by falling time, and the place of each slot's region among them.
fn by_time(regions: Vec<RegionProfile>) -> (Vec<RegionProfile>, Vec<usize>) {
    let mut slots: Vec<_> = regions.into_iter().enumerate().collect();
    slots.sort_by(|a, b| b.1.self_seconds.total_cmp(&a.1.self_seconds));
    let mut place = vec![0; slots.len()];
    for (new, (old, _)) in slots.iter().enumerate() {
        place[*old] = new;
    }
    (slots.into_iter().map(|slot| slot.1).collect(), place)
}

fn tree(
    reader: &Reader,
    nodes: usize,
    clock: &Clock,
    place: &[usize],
) -> Result<Vec<TreeNode>, FormatError> {
    let table = reader.words(NODES_OFFSET, nodes * size_of::<RawNode>())?;
    let root = TreeNode {
        region: None,
        parent: None,
        invocations: 1,
        inclusive_seconds: clock.total / clock.hz,
        self_seconds: (clock.total - clock.own as f64).max(0.0) / clock.hz,
    };
    let inner = |node: usize| {
        let base = node * size_of::<RawNode>();
        TreeNode {
            region: place.get(u32_at(&table, base) as usize).copied(),
            parent: Some(u32_at(&table, base + offset_of!(RawNode, parent)) as usize),
            invocations: word!(&table, base, RawNode, invocations),
            inclusive_seconds: clock.seconds(word!(&table, base, RawNode, inclusive)),
            self_seconds: clock.seconds(word!(&table, base, RawNode, own)),
        }
    };
    let root = (nodes > 0).then_some(root);
    let mut tree: Vec<TreeNode> = root.into_iter().chain((1..nodes).map(inner)).collect();
    // As for the total, a region may seem shorter than those that it calls, which come after it.
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
    Ok(tree)
}

/// The processor time, if the program ended in an orderly way.
fn processor(header: &[u8]) -> Option<ProcessorTime> {
    let seconds = |nanoseconds: u64| nanoseconds as f64 / 1e9;
    let all = word!(header, 0, RawHeader, processor);
    (all > 0).then(|| ProcessorTime {
        all: seconds(all),
        first: seconds(word!(header, 0, RawHeader, processor_first)),
        team: seconds(word!(header, 0, RawHeader, processor_team)),
    })
}

/// The regions that other threads entered. A region of several images counts once.
fn elsewhere(
    reader: &Reader,
    name: &mut dyn FnMut(&RegionKey) -> String,
) -> Result<Vec<Elsewhere>, FormatError> {
    let entry = size_of::<RawElsewhere>();
    let data = reader.words(ELSEWHERE_OFFSET, RAW_ELSEWHERE * entry)?;
    let mut found: Vec<Elsewhere> = Vec::new();
    for base in (0..data.len()).step_by(entry) {
        let unit = base + offset_of!(RawElsewhere, unit);
        let unit = data.get(unit..unit + 32).unwrap_or(&[]);
        let entries = word!(&data, base, RawElsewhere, entries);
        if entries == 0 || unit.iter().all(|byte| *byte == 0) {
            continue;
        }
        let key = RegionKey {
            unit: String::from_utf8_lossy(unit).into_owned(),
            index: u32_at(&data, base + offset_of!(RawElsewhere, index)),
        };
        match found.iter_mut().find(|e| e.key == key) {
            Some(known) => known.entries = known.entries.saturating_add(entries),
            None => found.push(Elsewhere {
                name: name(&key),
                key,
                entries,
            }),
        }
    }
    found.sort_by(|a, b| b.entries.cmp(&a.entries).then_with(|| a.name.cmp(&b.name)));
    Ok(found)
}

/// The trace of the region at `slot`, whose first `invocations` invocations may have been kept; the program began at counter
/// `origin`.
fn trace(
    reader: &Reader,
    slot: usize,
    invocations: u64,
    origin: u64,
) -> Result<Trace, FormatError> {
    let at = TRACES_OFFSET + slot * size_of::<RawTrace>();
    let kept = usize::try_from(invocations).map_or(TRACE_FIRST, |i| i.min(TRACE_FIRST));
    if kept == 0 {
        return Ok(Trace {
            stride: 1,
            ..Trace::default()
        });
    }
    let words = |offset: usize| -> Result<Vec<u64>, FormatError> {
        let data = reader.words(at + offset, kept * 8)?;
        Ok((0..kept).map(|i| u64_at(&data, i * 8)).collect())
    };
    let head = reader.words(at, offset_of!(RawTrace, first))?;
    let sampled = word!(&head, 0, RawTrace, sampled);
    let sampled = reader.count("trace entries", sampled, TRACE_SAMPLED)?;
    let entry = size_of::<RawLater>();
    let data = reader.words(at + offset_of!(RawTrace, later), sampled * entry)?;
    let mut later: Vec<[u64; 3]> = (0..sampled)
        .map(|i| {
            let base = i * entry;
            [
                word!(&data, base, RawLater, invocation),
                word!(&data, base, RawLater, cycles),
                word!(&data, base, RawLater, start),
            ]
        })
        .collect();
    later.sort_unstable();
    later.dedup_by_key(|l| l[0]);
    // Unknown starts stay 0.
    let since = |counter: u64| counter.saturating_sub(origin);
    Ok(Trace {
        first: words(offset_of!(RawTrace, first))?,
        stride: word!(&head, 0, RawTrace, stride).max(1),
        sampled: later.iter().map(|l| (l[0], l[1])).collect(),
        first_starts: words(offset_of!(RawTrace, first_starts))?
            .into_iter()
            .map(since)
            .collect(),
        sampled_starts: later.iter().map(|l| since(l[2])).collect(),
    })
}

/// The passages; `place` tells where the region of a slot went.
fn timeline(
    reader: &Reader,
    passages: usize,
    place: &[usize],
    origin: u64,
) -> Result<Vec<Passage>, FormatError> {
    let entry = size_of::<RawPassage>();
    let data = reader.words(PASSAGES_OFFSET, passages * entry)?;
    let passage = |i: usize| {
        let base = i * entry;
        Some(Passage {
            region: *place.get(u32_at(&data, base) as usize)?,
            invocation: word!(&data, base, RawPassage, invocation),
            start: word!(&data, base, RawPassage, start).saturating_sub(origin),
        })
    };
    let mut timeline: Vec<Passage> = (0..passages).filter_map(passage).collect();
    // A signal's handler may have left the thinning by longjmp: what was moved already then lies there twice.
    let mut next = 0;
    timeline.retain(|passage| {
        let rising = passage.start >= next;
        next = next.max(passage.start.saturating_add(1));
        rising
    });
    Ok(timeline)
}

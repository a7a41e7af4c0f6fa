//! Reads a raw profile.

use super::layout::*;
use super::source::{Clock, Reader, u32_at, u64_at, word};
use super::threads::{Thread, Threads, joined};
use crate::FormatError;
use crate::error::check_version;
use crate::profile::{
    OverThreads, PROFILE_VERSION, Passage, ProcessName, ProcessorTime, Profile, RegionKey,
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

/// Turns a raw profile into a [`Profile`]. `name` gives a region's display name.
pub fn read_raw(
    path: &Path,
    command: Vec<String>,
    directory: PathBuf,
    name: &mut dyn FnMut(&RegionKey) -> String,
) -> Result<Profile, FormatError> {
    let reader = Reader::open(path)?;
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
    let threads = Threads::read(&reader, &header, count)?;
    let first = threads.first();
    let own = first.times.iter().map(|times| times.own);
    let clock = Clock::read(&header, threads.last_cycles()).of_first(
        first.pairs,
        own.fold(0, u64::saturating_add),
        first.lost,
    );
    let regions = (0..count)
        .filter(|slot| first.times[*slot].invocations > 0)
        .map(|slot| Ok((slot, region(&reader, &threads, slot, &clock, name)?)));
    let (regions, place) = by_time(count, regions.collect::<Result<_, _>>()?);
    let tree = tree(&reader, nodes, &clock, &place)?;
    let (over_threads, profiles) = joined(&reader, &threads, &clock, name)?;
    Ok(Profile {
        version: PROFILE_VERSION,
        command,
        directory,
        program: String::new(),
        runs: 1,
        alone: None,
        launched: None,
        by_rank: false,
        process_key: None,
        ended: None,
        process: ProcessName::default(),
        input: RunInput::default(),
        seconds: clock.total / clock.hz,
        coverage: (clock.own as f64 / outside(first, &clock)).min(1.0),
        tsc_hz: clock.hz,
        probe_inside: clock.probe.0,
        probe_outside: clock.probe.1,
        tree,
        timeline: timeline(&reader, passages, &place, clock.start)?,
        mpi_seconds: clock.seconds(first.mpi),
        threads_lost: word!(&header, 0, RawHeader, threads_lost),
        processor: processor(&header, &over_threads, &regions),
        over_threads,
        threads: profiles,
        regions,
        ranks: Vec::new(),
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

/// Cycles of the run in which the first thread was not in MPI.
fn outside(first: &Thread, clock: &Clock) -> f64 {
    (clock.total - first.mpi as f64).max(1.0)
}

fn region(
    reader: &Reader,
    threads: &Threads,
    slot: usize,
    clock: &Clock,
    name: &mut dyn FnMut(&RegionKey) -> String,
) -> Result<RegionProfile, FormatError> {
    let (key, parallel) = threads.regions[slot].clone();
    let times = &threads.first().times[slot];
    let kept = times.invocations.min(times.first_room.into());
    Ok(RegionProfile {
        name: name(&key),
        key,
        invocations: times.invocations,
        inclusive_seconds: clock.seconds(times.inclusive),
        self_seconds: clock.seconds(times.own),
        share: times.own as f64 / outside(threads.first(), clock),
        parallel,
        waiting_seconds: clock.seconds(times.waiting(parallel)),
        mpi_seconds: clock.seconds(times.mpi),
        cycles_min: times.min,
        cycles_mean: times.mean(),
        cycles_max: times.max,
        noise: 0.0,
        trace: trace(reader, slot, kept, clock.start)?,
    })
}

/// The regions by falling time, and the place among them of each slot's region.
fn by_time(
    slots: usize,
    mut regions: Vec<(usize, RegionProfile)>,
) -> (Vec<RegionProfile>, Vec<usize>) {
    regions.sort_by(|a, b| b.1.self_seconds.total_cmp(&a.1.self_seconds));
    // Nothing of the first thread's names a slot that it has not entered.
    let mut place = vec![usize::MAX; slots];
    for (new, (old, _)) in regions.iter().enumerate() {
        place[*old] = new;
    }
    (regions.into_iter().map(|slot| slot.1).collect(), place)
}

/// The place of a slot's region, if it is known.
fn known(place: &[usize], slot: u32) -> Option<usize> {
    let place = place.get(slot as usize).copied();
    place.filter(|place| *place != usize::MAX)
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
            region: known(place, u32_at(&table, base)),
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

/// The processor time, if the program ended in an orderly way. Threads of teams are always in parallel regions, or wait for them.
fn processor(
    header: &[u8],
    over_threads: &[OverThreads],
    regions: &[RegionProfile],
) -> Option<ProcessorTime> {
    let seconds = |nanoseconds: u64| nanoseconds as f64 / 1e9;
    let all = seconds(word!(header, 0, RawHeader, processor));
    let first = seconds(word!(header, 0, RawHeader, processor_first));
    let team = seconds(word!(header, 0, RawHeader, processor_team));
    let work: f64 = over_threads.iter().map(OverThreads::work).sum();
    let of_first = regions.iter().map(|r| r.self_seconds - r.waiting_seconds);
    let of_first: f64 = of_first.sum();
    let of_team = match regions.iter().any(|r| r.parallel) {
        true => team,
        false => 0.0,
    };
    let covered = of_first.min(first) + of_team + (work - of_first).max(0.0);
    (all > 0.0).then(|| ProcessorTime {
        all,
        first,
        team,
        covered: covered.min(all),
    })
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
            region: known(place, u32_at(&data, base))?,
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

//! Reads the threads of a raw profile.

use super::layout::*;
use super::samples;
use super::source::{Clock, Reader, u32_at, word};
use crate::FormatError;
use crate::abi::KIND_PARALLEL;
use crate::profile::{OverThreads, RegionKey, ThreadProfile, ThreadRegion};
use std::collections::HashMap;
use std::mem::offset_of;

impl RawTimes {
    fn read(table: &[u8], slot: usize) -> Self {
        let base = slot * size_of::<RawTimes>();
        let half = |offset| u32_at(table, base + offset);
        Self {
            active: half(offset_of!(RawTimes, active)),
            users: half(offset_of!(RawTimes, users)),
            user: word!(table, base, RawTimes, user),
            invocations: word!(table, base, RawTimes, invocations),
            finished: word!(table, base, RawTimes, finished),
            inclusive: word!(table, base, RawTimes, inclusive),
            own: word!(table, base, RawTimes, own),
            min: word!(table, base, RawTimes, min),
            max: word!(table, base, RawTimes, max),
            sum: word!(table, base, RawTimes, sum),
            waited: word!(table, base, RawTimes, waited),
            mpi: word!(table, base, RawTimes, mpi),
            caller: word!(table, base, RawTimes, caller),
            first_room: half(offset_of!(RawTimes, first_room)),
            later_room: half(offset_of!(RawTimes, later_room)),
        }
    }

    /// Mean cycles of an invocation.
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.finished.max(1) as f64
    }

    /// Self cycles in which the thread was not on a processor. In a parallel region the team works meanwhile.
    pub fn waiting(&self, parallel: bool) -> u64 {
        match parallel {
            true => 0,
            false => self.waited.min(self.own),
        }
    }
}

/// A thread's block.
pub struct Thread {
    number: u64,
    users: u64,
    pub pairs: u64,
    /// Cycles lost while the processor time was read.
    pub lost: u64,
    last_cycles: u64,
    /// Nanoseconds on processors.
    processor: u64,
    pub mpi: u64,
    /// By the places of regions.
    pub times: Vec<RawTimes>,
}

/// What all threads have booked.
pub struct Threads {
    /// The regions, and whether they are parallel ones.
    pub regions: Vec<(RegionKey, bool)>,
    /// By their blocks; there is at least one.
    threads: Vec<Thread>,
}

impl Threads {
    /// The threads of a profile with `count` regions.
    pub fn read(reader: &Reader, header: &[u8], count: usize) -> Result<Self, FormatError> {
        let table = reader.words(REGIONS_OFFSET, count * size_of::<RawRegion>())?;
        let region = |slot: usize| {
            let base = slot * size_of::<RawRegion>();
            let unit = table.get(base..base + 32).unwrap_or(&[]);
            let key = RegionKey {
                unit: String::from_utf8_lossy(unit).into_owned(),
                index: u32_at(&table, base + offset_of!(RawRegion, index)),
            };
            let kind = u32_at(&table, base + offset_of!(RawRegion, kind));
            (key, kind == KIND_PARALLEL)
        };
        let threads = word!(header, 0, RawHeader, threads).max(1);
        let threads = reader.count("threads", threads, RAW_THREADS)?;
        let end = word!(header, 0, RawHeader, end_cycles);
        let probe = [
            word!(header, 0, RawHeader, probe_inside),
            word!(header, 0, RawHeader, probe_outside),
        ];
        let probe = probe.map(|cycles| f64::from_bits(cycles) as u64);
        let thread = |place| Thread::read(reader, place, count, (end, probe));
        Ok(Self {
            regions: (0..count).map(region).collect(),
            threads: (0..threads).map(thread).collect::<Result<_, _>>()?,
        })
    }

    /// The first thread.
    pub fn first(&self) -> &Thread {
        &self.threads[0]
    }

    /// The counter at the last probe.
    pub fn last_cycles(&self) -> u64 {
        let last = self.threads.iter().map(|thread| thread.last_cycles);
        last.max().unwrap_or(0)
    }
}

impl Thread {
    /// The thread whose block is the `place`-th. What is active in it ends with the program, when the counter was `end`; of the first
    /// thread the program has closed that itself.
    fn read(
        reader: &Reader,
        place: usize,
        count: usize,
        (end, probe): (u64, [u64; 2]),
    ) -> Result<Self, FormatError> {
        let block = THREADS_OFFSET + place * THREAD_SIZE;
        let state = reader.words(block, size_of::<RawThread>())?;
        let room = word!(&state, 0, RawThread, times_room).min(count as u64) as usize;
        let table = reader.words(block + TIMES_OFFSET, room * size_of::<RawTimes>())?;
        let mut times: Vec<RawTimes> = (0..room).map(|slot| RawTimes::read(&table, slot)).collect();
        times.resize(count, RawTimes::default());
        let earlier = word!(&state, 0, RawThread, processor);
        let mut thread = Thread {
            number: word!(&state, 0, RawThread, number),
            users: word!(&state, 0, RawThread, users),
            pairs: word!(&state, 0, RawThread, pairs),
            lost: word!(&state, 0, RawThread, lost),
            last_cycles: word!(&state, 0, RawThread, last_cycles),
            processor: earlier.saturating_add(word!(&state, 0, RawThread, processor_user)),
            mpi: word!(&state, 0, RawThread, mpi),
            times,
        };
        let depth = word!(&state, 0, RawThread, depth);
        let depth = reader.count("active regions", depth, RAW_DEPTH)?;
        if place > 0 && end > 0 {
            let depth = depth.min(THREAD_DEPTH);
            let data =
                reader.words(block + THREAD_ACTIVE_OFFSET, depth * size_of::<RawActive>())?;
            thread.close(&data, end, probe);
        }
        Ok(thread)
    }

    /// Books what is still active, as the library does when it is left.
    fn close(&mut self, data: &[u8], end: u64, [inside, outside]: [u64; 2]) {
        let entry = size_of::<RawActive>();
        let depth = data.len() / entry;
        let slot = |i: usize| u32_at(data, i * entry) as usize;
        let (mut called, mut pairs) = (0u64, 0u64);
        let end = end.saturating_sub(self.lost);
        for i in (0..depth).rev() {
            let base = i * entry;
            called = called.saturating_add(word!(data, base, RawActive, called));
            pairs = pairs.saturating_add(word!(data, base, RawActive, pairs));
            let cost = pairs.saturating_mul(inside.saturating_add(outside));
            let cycles = end.saturating_sub(word!(data, base, RawActive, start));
            let cycles = cycles.saturating_sub(cost.saturating_add(inside));
            let outermost = (0..i).all(|above| slot(above) != slot(i));
            if let Some(times) = self.times.get_mut(slot(i)) {
                times.own = times.own.saturating_add(cycles.saturating_sub(called));
                if outermost {
                    times.inclusive = times.inclusive.saturating_add(cycles);
                }
            }
            (called, pairs) = (cycles, pairs.saturating_add(1));
        }
    }
}

/// The regions over all threads, by falling work, and the threads that entered some. A region that has several places, of several
/// images, counts once.
pub fn joined(
    reader: &Reader,
    threads: &Threads,
    clock: &Clock,
    name: &mut dyn FnMut(&RegionKey) -> String,
) -> Result<(Vec<OverThreads>, Vec<ThreadProfile>), FormatError> {
    let mut all: Vec<OverThreads> = Vec::new();
    let mut known: HashMap<&RegionKey, usize> = HashMap::new();
    let entered = |slot: usize| {
        threads
            .threads
            .iter()
            .any(|t| t.times[slot].invocations > 0)
    };
    let mut places = vec![usize::MAX; threads.regions.len()];
    for (slot, (key, _)) in threads.regions.iter().enumerate() {
        if entered(slot) {
            places[slot] = *known.entry(key).or_insert_with(|| {
                all.push(OverThreads {
                    name: name(key),
                    key: key.clone(),
                    threads: 0,
                    invocations: 0,
                    self_seconds: 0.0,
                    inclusive_seconds: 0.0,
                    waiting_seconds: 0.0,
                    mpi_seconds: 0.0,
                    first_share: 0.0,
                    cycles: Vec::new(),
                });
                all.len() - 1
            });
        }
    }
    let mut profiles: Vec<ThreadProfile> = Vec::new();
    for (number, thread) in threads.threads.iter().enumerate() {
        let mut regions = Vec::new();
        for (slot, times) in thread.times.iter().enumerate() {
            if times.invocations == 0 {
                continue;
            }
            let caller = times.caller.checked_sub(CALLER_FIRST);
            let caller = caller.and_then(|slot| places.get(usize::try_from(slot).ok()?));
            let region = ThreadRegion {
                region: places[slot],
                caller: caller.copied().filter(|place| *place != usize::MAX),
                invocations: times.invocations,
                self_seconds: clock.seconds(times.own),
                inclusive_seconds: clock.seconds(times.inclusive),
                waiting_seconds: clock.seconds(times.waiting(threads.regions[slot].1)),
                cycles_min: times.min,
                cycles_mean: times.mean(),
                cycles_max: times.max,
            };
            let sum = &mut all[places[slot]];
            sum.threads += u64::from(times.users.max(1));
            sum.invocations = sum.invocations.saturating_add(times.invocations);
            sum.self_seconds += region.self_seconds;
            sum.inclusive_seconds += region.inclusive_seconds;
            sum.waiting_seconds += region.waiting_seconds;
            sum.mpi_seconds += clock.seconds(times.mpi);
            if number == 0 {
                sum.first_share += region.self_seconds;
            }
            regions.push(region);
        }
        if !regions.is_empty() || thread.mpi > 0 {
            profiles.push(ThreadProfile {
                number: thread.number,
                users: thread.users,
                processor_seconds: thread.processor as f64 / 1e9,
                mpi_seconds: clock.seconds(thread.mpi),
                regions,
            });
        }
    }
    profiles.sort_by_key(|thread| thread.number);
    let mut slots = vec![Vec::new(); all.len()];
    for (slot, place) in places.iter().enumerate() {
        let mut others = threads.threads.iter().skip(1);
        if others.any(|thread| thread.times[slot].finished > 0) {
            slots[*place].push(slot);
        }
    }
    for (sum, slots) in all.iter_mut().zip(slots) {
        if sum.self_seconds > 0.0 {
            sum.first_share /= sum.self_seconds;
        }
        sum.cycles = samples::quantiles(reader, &slots)?;
    }
    Ok(by_work(all, profiles))
}

fn by_work(
    all: Vec<OverThreads>,
    mut profiles: Vec<ThreadProfile>,
) -> (Vec<OverThreads>, Vec<ThreadProfile>) {
    let mut sorted: Vec<(usize, OverThreads)> = all.into_iter().enumerate().collect();
    sorted.sort_by(|a, b| b.1.work().total_cmp(&a.1.work()));
    let mut place = vec![0; sorted.len()];
    for (new, (old, _)) in sorted.iter().enumerate() {
        place[*old] = new;
    }
    for region in profiles.iter_mut().flat_map(|p| &mut p.regions) {
        region.region = place[region.region];
        region.caller = region.caller.map(|caller| place[caller]);
    }
    (sorted.into_iter().map(|r| r.1).collect(), profiles)
}

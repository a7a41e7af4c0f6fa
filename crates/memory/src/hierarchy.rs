//! The simulator.
//!
//! Lines have the number of their physical address over the line of the first level, the *unit*; a level with longer
//! lines drops the low bits. What happens to a line, in order:
//!
//! - a request goes outwards to the first level that has the line, or to memory; on its way back it is put into every
//!   level that missed, the farthest first, except victim levels. What a level evicts leaves as soon as the new line
//!   is in;
//! - an evicted line is first invalidated in nearer levels, if the level is inclusive; then it goes to the next level
//!   if that is a victim level, or if it is dirty;
//! - a dirty line that comes to a level which does not have it is put in there without a fetch, unless that level's
//!   lines are longer.

use crate::access::{Access, Kind};
use crate::cache::{self, Cache, DIRTY, EMPTY, FLAG_BITS, PREFETCHED, Tally, UNSEEN};
use crate::combining::{CHUNK, Combining, Written};
use crate::counters::{Footprint, LevelCounters, MemoryCounters, TlbCounters};
use crate::geometry::{Inclusion, MAX_LEVELS, PAGE};
use crate::options::Prefetcher;
use crate::pages::Pages;
use crate::sample::{self, Sample};
use crate::streams::Streams;
use crate::tlb::Tlb;
use crate::{Counters, Geometry, GeometryError, Options};

/// Pages of a footprint at most.
const MAX_FOOTPRINT: usize = 1 << 28;
/// Logarithm of a page's bytes.
const PAGE_SHIFT: u32 = PAGE.trailing_zeros();

/// Why a line is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    Load,
    Store,
    Prefetch,
    /// To complete a line of which only a part is written back.
    Complete,
}

/// What is the same for all copies of a level.
#[derive(Debug, Clone)]
struct Shape {
    name: String,
    line: u32,
    /// A unit's number shifted right by it is the line's.
    shift: u32,
    inclusion: Inclusion,
}

/// What one core has of its own beside caches.
struct Core {
    /// Key of the page looked up last, which the nearest TLB has as most recently used.
    latest: u64,
    tlbs: Box<[Tlb]>,
    combining: Combining,
    streams: Streams,
}

/// Traffic of memory.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Traffic {
    pub read: u64,
    pub prefetched: u64,
    /// Without what write-combining buffers wrote.
    pub written: u64,
    pub combined: Written,
}

/// Caches, TLBs and memory of one or several cores.
pub struct Hierarchy {
    /// Of the first level; of 64 bytes if there is none.
    unit_shift: u32,
    shapes: Box<[Shape]>,
    /// Levels that each core has of its own: the nearest.
    private: usize,
    /// Those of core 0, nearest first, then those of core 1, and so on; then the shared ones.
    caches: Box<[Cache]>,
    cores: Box<[Core]>,
    pages: Pages,
    memory: Traffic,
    prefetcher: Option<Prefetcher>,
    /// The unit of a demand that the prefetcher has to learn of when the access is over.
    trigger: Option<u64>,
    /// Open write-combining buffers of all cores may exist.
    combines: bool,
    sample: Option<Sample>,
    /// For warming: counters as they were, of caches and of TLBs.
    kept: (Box<[Tally]>, Box<[TlbCounters]>),
}

impl Hierarchy {
    /// Empty caches. Reserves all memory that the simulation will need.
    ///
    /// # Errors
    /// What [`Geometry::check`] refuses, and options that do not fit the geometry or lie outside their ranges.
    pub fn new(geometry: &Geometry, options: &Options) -> Result<Self, GeometryError> {
        geometry.check()?;
        options.check(geometry)?;
        let sample = match options.sampling {
            Some(of) => Some(Sample::new(geometry, of, options.seed)?),
            None => None,
        };
        let unit = geometry.levels.first().map_or(64, |l| l.line);
        let unit_shift = unit.trailing_zeros();
        let shapes = geometry.levels.iter().map(|l| Shape {
            name: l.name.clone(),
            line: l.line,
            shift: l.line.trailing_zeros() - unit_shift,
            inclusion: l.inclusion,
        });
        let shapes: Box<[Shape]> = shapes.collect();
        let private = geometry.levels.iter().take_while(|l| !l.shared).count();
        let (own, shared) = geometry.levels.split_at(private);
        let mut seeds = cache::Generator::new(options.seed);
        let caches: Box<[Cache]> = (0..options.cores)
            .flat_map(|_| own)
            .chain(shared)
            .map(|l| {
                let policy = options.replacement.unwrap_or(l.replacement);
                Cache::new(l.sets(), l.ways, policy, seeds.next())
            })
            .collect();
        let core = |_| {
            let tlbs = geometry.tlbs.iter().map(|t| Tlb::new(t.entries, t.ways));
            let streams = match options.prefetcher {
                Some(p) => {
                    let line = geometry.levels[p.level].line;
                    let shift = PAGE_SHIFT - line.trailing_zeros();
                    Streams::new(p.streams, p.distance, shift)
                }
                None => Streams::new(0, 0, 0),
            };
            Core {
                latest: u64::MAX,
                tlbs: tlbs.collect(),
                combining: Combining::new(options.combining),
                streams,
            }
        };
        let cores: Box<[Core]> = (0..options.cores).map(core).collect();
        let kept = (
            vec![Tally::default(); caches.len()].into(),
            vec![TlbCounters::default(); cores.len() * geometry.tlbs.len()].into(),
        );
        Ok(Self {
            unit_shift,
            private,
            shapes,
            caches,
            cores,
            pages: Pages::new(options, unit),
            memory: Traffic::default(),
            prefetcher: options.prefetcher,
            trigger: None,
            combines: false,
            sample,
            kept,
        })
    }

    /// One access by a core. Allocates nothing.
    ///
    /// # Panics
    /// If there is no such core.
    #[inline]
    pub fn access(&mut self, core: usize, access: Access) {
        let Access {
            address,
            size,
            kind,
        } = access;
        let last = address.wrapping_add(u64::from(size).wrapping_sub(1));
        let one_line = (address ^ last) >> self.unit_shift == 0;
        // A size of 0 makes `last` the byte before.
        if one_line
            && matches!(kind, Kind::Load | Kind::Store)
            && size != 0
            && !self.shapes.is_empty()
        {
            let page = self.look_up(core, address);
            let unit = self.unit(page, address);
            self.line(core, unit, kind == Kind::Store, page);
        } else {
            self.access_range(core, access);
        }
    }

    /// Accesses by a core, in order.
    ///
    /// # Panics
    /// If there is no such core.
    pub fn run(&mut self, core: usize, accesses: &[Access]) {
        for &access in accesses {
            self.access(core, access);
        }
    }

    /// Accesses that fill caches and TLBs like [`run`](Self::run), and that no counter and no footprint sees: the
    /// memory that a program touched before the part that is counted. A page of a trace is an access of 4096 bytes.
    /// Write-combining buffers are written out before and after.
    ///
    /// # Panics
    /// If there is no such core.
    pub fn warm(&mut self, core: usize, accesses: &[Access]) {
        self.fence_all();
        for (kept, cache) in self.kept.0.iter_mut().zip(&self.caches) {
            *kept = cache.tally;
        }
        let tlbs = self.cores.iter().flat_map(|c| &c.tlbs);
        for (kept, tlb) in self.kept.1.iter_mut().zip(tlbs) {
            *kept = tlb.tally;
        }
        let memory = self.memory;
        self.set_warming(true);
        self.run(core, accesses);
        self.fence_all();
        self.set_warming(false);
        self.memory = memory;
        for (kept, cache) in self.kept.0.iter().zip(&mut self.caches) {
            cache.tally = *kept;
        }
        let tlbs = self.cores.iter_mut().flat_map(|c| &mut c.tlbs);
        for (kept, tlb) in self.kept.1.iter().zip(tlbs) {
            tlb.tally = *kept;
        }
    }

    /// Whether touches go uncounted.
    fn set_warming(&mut self, on: bool) {
        self.pages.warming = on;
        if let Some(sample) = &mut self.sample {
            sample.warming = on;
        }
    }

    /// Cores, at least 1.
    pub fn cores(&self) -> usize {
        self.cores.len()
    }

    /// Writes out the write-combining buffers of a core, as a store fence does.
    ///
    /// # Panics
    /// If there is no such core.
    pub fn fence(&mut self, core: usize) {
        let combining = &mut self.cores[core].combining;
        combining.write_out(0..=u64::MAX, &mut self.memory.combined);
    }

    fn fence_all(&mut self) {
        for core in 0..self.cores.len() {
            self.fence(core);
        }
        self.combines = false;
    }

    /// Sets all counters and the footprint to zero and keeps what caches and TLBs hold. Bytes in write-combining
    /// buffers are written out before.
    pub fn reset_counters(&mut self) {
        self.fence_all();
        for cache in &mut self.caches {
            cache.tally = Tally::default();
        }
        for tlb in self.cores.iter_mut().flat_map(|c| &mut c.tlbs) {
            tlb.tally = TlbCounters::default();
        }
        for core in 0..self.cores.len() {
            if !self.shapes.is_empty() {
                let first = self.index(core, 0);
                self.caches[first].mark_unseen();
            }
        }
        self.memory = Traffic::default();
        self.pages.reset();
        if let Some(sample) = &mut self.sample {
            sample.reset();
        }
    }

    /// Makes room for as many more pages in the footprint: between batches, where allocating is allowed.
    ///
    /// # Errors
    /// [`GeometryError::Footprint`] if that exceeds 2^28 pages.
    pub fn reserve(&mut self, pages: usize) -> Result<(), GeometryError> {
        match self.pages.reserve(pages, MAX_FOOTPRINT) {
            true => Ok(()),
            false => Err(GeometryError::Footprint(pages)),
        }
    }

    /// Place of a core's copy of a level in `caches`.
    #[inline(always)]
    fn index(&self, core: usize, level: usize) -> usize {
        match level < self.private {
            true => core * self.private + level,
            false => self.cores.len() * self.private + level - self.private,
        }
    }

    /// The unit of an address in a page at hand.
    #[inline(always)]
    fn unit(&self, page: usize, address: u64) -> u64 {
        let inside = (address % PAGE) >> self.unit_shift;
        self.pages.get(page).frame << (PAGE_SHIFT - self.unit_shift) | inside
    }

    /// Looks an address's page up in the TLBs; returns its place among the pages at hand.
    #[inline(always)]
    fn look_up(&mut self, core: usize, address: u64) -> usize {
        let page = self.pages.at(address);
        let key = self.pages.get(page).key;
        let own = &mut self.cores[core];
        if let Some(first) = own.tlbs.first_mut() {
            if own.latest == key {
                first.tally.hits += 1;
            } else {
                own.look_up(key, self.pages.entry(page));
            }
        }
        page
    }

    /// A load or a store of a unit.
    #[inline(always)]
    fn line(&mut self, core: usize, unit: u64, store: bool, page: usize) {
        let mut missing = false;
        if self.sample.is_none() {
            let alone = self.cores.len() == 1;
            let first = self.index(core, 0);
            let cache = &mut self.caches[first];
            // Neither unseen nor prefetched: nothing but the dirty flag can change, and that only if no other core may
            // have the line.
            let wanted = unit << FLAG_BITS;
            let plain = |entry: u64| match store && !alone {
                true => entry == wanted | DIRTY,
                false => entry & !DIRTY == wanted,
            };
            let latest = cache.latest(unit);
            let entry = match plain(*latest) {
                true => Some(latest),
                false => cache.touch(unit),
            };
            missing = entry.is_none();
            if let Some(entry) = entry.filter(|e| plain(**e)) {
                match store {
                    true => {
                        *entry |= DIRTY;
                        cache.tally.store_hits += 1;
                    }
                    false => cache.tally.load_hits += 1,
                }
                return;
            }
        }
        let why = if store { Why::Store } else { Why::Load };
        self.ask(core, unit, why, page, missing);
    }

    /// Any access, page by page.
    #[inline(never)]
    fn access_range(&mut self, core: usize, access: Access) {
        let Access {
            address: mut at,
            size,
            kind,
        } = access;
        let Some(left) = u64::from(size).checked_sub(1) else {
            return;
        };
        let last = at.saturating_add(left);
        loop {
            let end = last.min(at | (PAGE - 1));
            let page = self.look_up(core, at);
            self.access_in_page(core, page, at, end, kind);
            if end == last {
                return;
            }
            at = end + 1;
        }
    }

    /// The bytes from `at` to `last`, of one page.
    fn access_in_page(&mut self, core: usize, page: usize, at: u64, last: u64, kind: Kind) {
        if kind == Kind::NonTemporal {
            return self.store_around(core, page, at, last);
        }
        if self.shapes.is_empty() {
            return self.access_memory(page, at, last, kind);
        }
        let (from, to) = (self.unit(page, at), self.unit(page, last));
        for unit in from..=to {
            match kind {
                Kind::Load => self.line(core, unit, false, page),
                Kind::Store => self.line(core, unit, true, page),
                Kind::ReadModifyWrite => {
                    self.line(core, unit, false, page);
                    self.line(core, unit, true, page);
                }
                Kind::Prefetch => self.ask(core, unit, Why::Prefetch, page, false),
                Kind::NonTemporal => {}
            }
        }
    }

    /// Bytes of one page, without any cache.
    fn access_memory(&mut self, page: usize, at: u64, last: u64, kind: Kind) {
        if kind == Kind::Prefetch {
            return;
        }
        let bytes = last - at + 1;
        let (from, to) = (self.unit(page, at), self.unit(page, last));
        if matches!(kind, Kind::Load | Kind::ReadModifyWrite) {
            self.memory.read = self.memory.read.saturating_add(bytes);
        }
        if matches!(kind, Kind::Store | Kind::ReadModifyWrite) {
            self.memory.written = self.memory.written.saturating_add(bytes);
        }
        self.write_out(from, to - from + 1);
        for unit in from..=to {
            self.note(page, unit);
        }
    }

    /// Notes a touched unit in the footprint.
    #[inline]
    fn note(&mut self, page: usize, unit: u64) {
        let inside = unit & ((1 << (PAGE_SHIFT - self.unit_shift)) - 1);
        self.pages.note_line(page, inside);
    }

    /// A request of a core, sampled and with what the prefetcher makes of it. `missing`: the first level is known not to
    /// have it.
    #[inline(never)]
    fn ask(&mut self, core: usize, unit: u64, why: Why, page: usize, missing: bool) {
        let Some(sample) = &mut self.sample else {
            return self.ask_all(core, unit, why, page, missing);
        };
        // A prefetch instruction touches nothing.
        let Some(group) = sample.group(unit, why != Why::Prefetch) else {
            if why != Why::Prefetch {
                self.pages.note_page(page);
            }
            return;
        };
        let before = self.totals();
        self.ask_all(core, unit, why, page, missing);
        self.count_group(group, before);
    }

    /// Adds what an access changed to its group.
    fn count_group(&mut self, group: usize, before: sample::Totals) {
        let after = self.totals();
        if let Some(sample) = &mut self.sample {
            sample.add(group, &before, &after);
        }
    }

    /// Of all levels and memory.
    fn totals(&self) -> sample::Totals {
        let mut totals = sample::Totals::default();
        for (index, cache) in self.caches.iter().enumerate() {
            let level = self.level_of(index);
            let t = &cache.tally;
            totals.misses[level] += t.load_misses + t.store_misses;
            totals.write_backs[level] += t.write_backs;
        }
        totals.read = self.memory.read;
        // Buffers leave later, in another group's turn: non-temporal bytes are added where they are stored.
        totals.written = self.memory.written;
        totals
    }

    /// The level of a place in `caches`.
    fn level_of(&self, index: usize) -> usize {
        match index.checked_sub(self.cores.len() * self.private) {
            Some(shared) => self.private + shared,
            None => index % self.private,
        }
    }

    #[inline]
    fn ask_all(&mut self, core: usize, unit: u64, why: Why, page: usize, missing: bool) {
        self.ask_first(core, unit, why, page, missing);
        if self.trigger.is_some() {
            self.prefetch(core);
        }
    }

    /// A request to the first level.
    #[inline]
    fn ask_first(&mut self, core: usize, unit: u64, why: Why, page: usize, missing: bool) {
        let several = self.cores.len() > 1 && self.private > 0;
        let store = why == Why::Store;
        let demand = why != Why::Prefetch;
        let warming = self.pages.warming;
        let first = self.index(core, 0);
        let cache = &mut self.caches[first];
        if !missing && let Some(entry) = cache.touch(unit) {
            let old = *entry;
            if !demand {
                return;
            }
            *entry &= !(PREFETCHED | UNSEEN);
            if store {
                *entry |= DIRTY;
            }
            if warming && old & (PREFETCHED | UNSEEN) != 0 {
                *entry |= UNSEEN;
            }
            match store {
                true => cache.tally.store_hits += 1,
                false => cache.tally.load_hits += 1,
            }
            if old & PREFETCHED != 0 {
                cache.tally.prefetch_hits += 1;
                self.trigger_at(0, unit);
            }
            if old & (PREFETCHED | UNSEEN) != 0 {
                self.note(page, unit);
            }
            // A dirty line is in no other core's caches.
            if store && several && old & DIRTY == 0 {
                self.invalidate_others(core, unit);
            }
            return;
        }
        if demand {
            match store {
                true => cache.tally.store_misses += 1,
                false => cache.tally.load_misses += 1,
            }
            self.note(page, unit);
            self.trigger_at(0, unit);
        }
        if store && several {
            self.invalidate_others(core, unit);
        }
        let dirty = self.fetch(core, 1, unit, why);
        let flags = if warming { UNSEEN } else { 0 };
        self.put(core, 0, unit, dirty || store, why, flags);
    }

    /// Remembers to train the prefetcher, if the level is its.
    #[inline]
    fn trigger_at(&mut self, level: usize, unit: u64) {
        if self.prefetcher.is_some_and(|p| p.level == level) {
            self.trigger = Some(unit);
        }
    }

    /// Brings a unit from a level, or from memory. Returns whether it comes dirty: from a victim level, which gives it
    /// up.
    fn fetch(&mut self, core: usize, level: usize, unit: u64, why: Why) -> bool {
        let may_be_dirty = self.cores.len() > 1 && matches!(why, Why::Load | Why::Prefetch);
        if level == self.private && level > 0 && may_be_dirty {
            self.clean_others(core, unit);
        }
        let Some(shape) = self.shapes.get(level) else {
            return self.read_memory(unit, why);
        };
        let line = unit >> shape.shift;
        let victim = shape.inclusion == Inclusion::Victim;
        let at = self.index(core, level);
        let cache = &mut self.caches[at];
        let demand = matches!(why, Why::Load | Why::Store);
        if let Some(entry) = cache.touch(line) {
            let old = *entry;
            if demand {
                *entry &= !PREFETCHED;
            }
            match why {
                Why::Load => cache.tally.load_hits += 1,
                Why::Store => cache.tally.store_hits += 1,
                Why::Prefetch | Why::Complete => {}
            }
            if demand && old & PREFETCHED != 0 {
                cache.tally.prefetch_hits += 1;
                self.trigger_at(level, unit);
            }
            if !victim {
                return false;
            }
            self.caches[at].remove(line);
            return old & DIRTY != 0;
        }
        match why {
            Why::Load => cache.tally.load_misses += 1,
            Why::Store => cache.tally.store_misses += 1,
            Why::Prefetch | Why::Complete => {}
        }
        if demand {
            self.trigger_at(level, unit);
        }
        let dirty = self.fetch(core, level + 1, unit, why);
        if victim {
            return dirty;
        }
        self.put(core, level, unit, dirty, why, 0);
        false
    }

    /// Reads the line of the last level from memory.
    #[inline]
    fn read_memory(&mut self, unit: u64, why: Why) -> bool {
        if let Some(last) = self.shapes.last() {
            let (shift, bytes) = (last.shift, u64::from(last.line));
            self.memory.read = self.memory.read.saturating_add(bytes);
            if why == Why::Prefetch {
                self.memory.prefetched = self.memory.prefetched.saturating_add(bytes);
            }
            if self.combines {
                self.write_out(unit >> shift << shift, 1 << shift);
            }
        }
        false
    }

    /// Writes out all buffers that hold bytes of these units.
    fn write_out(&mut self, unit: u64, count: u64) {
        if !self.combines {
            return;
        }
        let chunk = |unit: u64| match self.unit_shift.checked_sub(CHUNK.trailing_zeros()) {
            Some(more) => unit << more,
            None => unit >> (CHUNK.trailing_zeros() - self.unit_shift),
        };
        let last = match self.unit_shift > CHUNK.trailing_zeros() {
            true => chunk(unit + count) - 1,
            false => chunk(unit + count - 1),
        };
        let chunks = chunk(unit)..=last;
        for core in &mut self.cores {
            core.combining
                .write_out(chunks.clone(), &mut self.memory.combined);
        }
        self.combines = self.cores.iter().any(|c| !c.combining.is_empty());
    }

    /// Puts a unit's line into a level, which does not have it.
    #[inline]
    fn put(&mut self, core: usize, level: usize, unit: u64, dirty: bool, why: Why, flags: u64) {
        let at = self.index(core, level);
        let shift = self.shapes[level].shift;
        let cache = &mut self.caches[at];
        let mut flags = flags | (u64::from(dirty) * DIRTY);
        match why {
            Why::Prefetch => {
                cache.tally.prefetch_fills += 1;
                flags |= PREFETCHED;
            }
            _ => cache.tally.fills += 1,
        }
        let left = cache.insert(unit >> shift, flags);
        if left != EMPTY {
            let unit = left >> FLAG_BITS << shift;
            self.evict(core, level, unit, left & DIRTY != 0);
        }
    }

    /// A line that a level has given up, by its first unit.
    #[inline]
    fn evict(&mut self, core: usize, level: usize, unit: u64, mut dirty: bool) {
        if self.shapes[level].inclusion == Inclusion::Inclusive {
            dirty |= self.invalidate_nearer(core, level, unit);
        }
        if dirty {
            let at = self.index(core, level);
            self.caches[at].tally.write_backs += 1;
        }
        self.hand_on(core, level + 1, unit, dirty);
    }

    /// A line that the level before has given up, or that is written back, comes to a level, or to memory.
    fn hand_on(&mut self, core: usize, level: usize, unit: u64, dirty: bool) {
        let Some(shape) = self.shapes.get(level) else {
            if dirty {
                let bytes = self.shapes[level - 1].line.into();
                self.memory.written = self.memory.written.saturating_add(bytes);
            }
            return;
        };
        let victim = shape.inclusion == Inclusion::Victim;
        if !dirty && !victim {
            return;
        }
        let line = unit >> shape.shift;
        let longer = shape.shift != self.shapes[level - 1].shift;
        let at = self.index(core, level);
        if let Some(entry) = self.caches[at].touch(line) {
            *entry |= u64::from(dirty) * DIRTY;
            return;
        }
        let mut dirty = dirty;
        if longer {
            dirty |= self.fetch(core, level + 1, unit, Why::Complete);
        }
        self.put(core, level, unit, dirty, Why::Complete, 0);
    }

    /// Invalidates in nearer levels what an inclusive level evicts. Returns whether a copy was dirty.
    fn invalidate_nearer(&mut self, core: usize, level: usize, unit: u64) -> bool {
        let units = unit..=unit + (1 << self.shapes[level].shift) - 1;
        let mut dirty = false;
        let cores = match level < self.private {
            true => core..core + 1,
            false => 0..self.cores.len(),
        };
        for core in cores {
            for nearer in 0..level.min(self.private) {
                dirty |= self.remove(core, nearer, units.clone(), |t| &mut t.invalidations);
            }
        }
        for nearer in self.private..level {
            dirty |= self.remove(core, nearer, units.clone(), |t| &mut t.invalidations);
        }
        dirty
    }

    /// Takes all lines with some of these units out of a level and counts them. Returns whether one was dirty.
    fn remove(
        &mut self,
        core: usize,
        level: usize,
        units: std::ops::RangeInclusive<u64>,
        count: impl Fn(&mut Tally) -> &mut u64,
    ) -> bool {
        let shift = self.shapes[level].shift;
        let at = self.index(core, level);
        let cache = &mut self.caches[at];
        let mut dirty = false;
        for line in units.start() >> shift..=units.end() >> shift {
            let left = cache.remove(line);
            if left != EMPTY {
                *count(&mut cache.tally) += 1;
                if left & DIRTY != 0 {
                    cache.tally.write_backs += 1;
                    dirty = true;
                }
            }
        }
        dirty
    }

    /// The units that are kept coherent together with this one: the line of the last private level.
    fn coherent(&self, unit: u64) -> std::ops::RangeInclusive<u64> {
        let shift = self.shapes[self.private - 1].shift;
        let from = unit >> shift << shift;
        from..=from + (1 << shift) - 1
    }

    /// A core stores: the others lose their copies. Dirty ones are written back to the first shared level.
    #[cold]
    fn invalidate_others(&mut self, core: usize, unit: u64) {
        let units = self.coherent(unit);
        for other in (0..self.cores.len()).filter(|&c| c != core) {
            let mut dirty = false;
            for level in 0..self.private {
                dirty |= self.remove(other, level, units.clone(), |t| {
                    &mut t.coherence_invalidations
                });
            }
            if dirty {
                self.hand_on(other, self.private, *units.start(), true);
            }
        }
    }

    /// A core loads what none of its own levels has: a dirty copy of another core is written back to the first shared
    /// level, and stays.
    #[cold]
    fn clean_others(&mut self, core: usize, unit: u64) {
        let units = self.coherent(unit);
        for other in (0..self.cores.len()).filter(|&c| c != core) {
            let mut dirty = false;
            for level in 0..self.private {
                let shift = self.shapes[level].shift;
                let at = self.index(other, level);
                let cache = &mut self.caches[at];
                for line in units.start() >> shift..=units.end() >> shift {
                    if let Some(entry) = cache.find(line)
                        && *entry & DIRTY != 0
                    {
                        *entry &= !DIRTY;
                        cache.tally.write_backs += 1;
                        dirty = true;
                    }
                }
            }
            if dirty {
                self.hand_on(other, self.private, *units.start(), true);
            }
        }
    }

    /// Lets the prefetcher learn of the demand that triggered it, and fetch.
    #[cold]
    fn prefetch(&mut self, core: usize) {
        let (Some(unit), Some(prefetcher)) = (self.trigger.take(), self.prefetcher) else {
            return;
        };
        let level = prefetcher.level;
        let shift = self.shapes[level].shift;
        if !self.cores[core].streams.train(unit >> shift) {
            return;
        }
        for _ in 0..prefetcher.degree {
            let Some(line) = self.cores[core].streams.next() else {
                return;
            };
            let unit = line << shift;
            let at = self.index(core, level);
            if self.caches[at].find(line).is_none() {
                let dirty = self.fetch(core, level + 1, unit, Why::Prefetch);
                self.put(core, level, unit, dirty, Why::Prefetch, 0);
            }
        }
    }

    /// A non-temporal store of bytes of one page.
    fn store_around(&mut self, core: usize, page: usize, at: u64, last: u64) {
        let mut from = at;
        loop {
            let to = last.min(from | (CHUNK - 1));
            self.store_chunk(core, page, from, to);
            if to == last {
                return;
            }
            from = to + 1;
        }
    }

    /// A non-temporal store of bytes of one chunk.
    fn store_chunk(&mut self, core: usize, page: usize, from: u64, to: u64) {
        let (first, last) = (self.unit(page, from), self.unit(page, to));
        let mut group = None;
        if let Some(sample) = &mut self.sample {
            // Lines are not shorter than chunks then: it is one unit.
            group = sample.group(first, true);
            if group.is_none() {
                return self.pages.note_page(page);
            }
        }
        for unit in first..=last {
            self.note(page, unit);
        }
        let frame = self.pages.get(page).frame;
        let chunk = frame * (PAGE / CHUNK) + from % PAGE / CHUNK;
        let bytes = (u64::MAX >> (CHUNK - 1 - (to - from))) << (from % CHUNK);
        let before = group.map(|_| self.totals());
        // A cache has no line with bytes of an open buffer: whoever reads it from memory writes the buffer out.
        if !self.cores[core].combining.is_open(chunk) {
            self.invalidate_all(first, last);
        }
        self.combines = true;
        let combining = &mut self.cores[core].combining;
        combining.store(chunk, bytes, &mut self.memory.combined);
        if let (Some(group), Some(before)) = (group, before) {
            self.count_group(group, before);
            if let Some(sample) = &mut self.sample {
                sample.add_written(group, u64::from(bytes.count_ones()));
            }
        }
    }

    /// Takes units, up to the borders of the longest line, out of all caches. Memory gets a line if one was dirty.
    fn invalidate_all(&mut self, first: u64, last: u64) {
        let Some(longest) = self.shapes.last() else {
            return;
        };
        let (shift, bytes) = (longest.shift, u64::from(longest.line));
        for line in first >> shift..=last >> shift {
            let units = line << shift..=(line << shift) + (1 << shift) - 1;
            let mut dirty = false;
            for index in 0..self.caches.len() {
                let level = self.level_of(index);
                let core = if level < self.private {
                    index / self.private
                } else {
                    0
                };
                dirty |= self.remove(core, level, units.clone(), |t| {
                    &mut t.coherence_invalidations
                });
            }
            if dirty {
                self.memory.written = self.memory.written.saturating_add(bytes);
            }
        }
    }

    /// What was counted.
    pub fn counters(&self) -> Counters {
        let scale = |count: u64| match &self.sample {
            Some(sample) => sample.scale(count),
            None => count,
        };
        let mut levels = Vec::with_capacity(MAX_LEVELS);
        for (level, shape) in self.shapes.iter().enumerate() {
            let mut sum = Tally::default();
            for (_, cache) in
                (self.caches.iter().enumerate()).filter(|(index, _)| self.level_of(*index) == level)
            {
                sum.add(&cache.tally);
            }
            levels.push(LevelCounters {
                name: shape.name.clone(),
                line: shape.line,
                load_hits: scale(sum.load_hits),
                load_misses: scale(sum.load_misses),
                store_hits: scale(sum.store_hits),
                store_misses: scale(sum.store_misses),
                fills: scale(sum.fills),
                prefetch_fills: scale(sum.prefetch_fills),
                prefetch_hits: scale(sum.prefetch_hits),
                write_backs: scale(sum.write_backs),
                invalidations: scale(sum.invalidations),
                coherence_invalidations: scale(sum.coherence_invalidations),
            });
        }
        let waiting = self.cores.iter().map(|c| c.combining.waiting());
        let around = self.memory.combined.bytes.saturating_add(waiting.sum());
        let memory = MemoryCounters {
            bytes_read: scale(self.memory.read),
            bytes_prefetched: scale(self.memory.prefetched),
            bytes_written: scale(self.memory.written.saturating_add(around)),
            bytes_non_temporal: scale(around),
            combined_whole: scale(self.memory.combined.whole),
            combined_partial: scale(self.memory.combined.partial),
        };
        let tlbs: Vec<TlbCounters> = (0..self.cores[0].tlbs.len())
            .map(|level| {
                let of_level = self.cores.iter().map(|c| &c.tlbs[level].tally);
                of_level.fold(TlbCounters::default(), |sum, t| TlbCounters {
                    hits: sum.hits.saturating_add(t.hits),
                    misses: sum.misses.saturating_add(t.misses),
                })
            })
            .collect();
        let (lines, pages, complete) = self.pages.footprint();
        Counters {
            levels,
            memory,
            page_walks: tlbs.last().map_or(0, |t| t.misses),
            tlbs,
            footprint: Footprint {
                lines: scale(lines),
                line: 1 << self.unit_shift,
                pages,
                complete,
            },
            sampling: self.sample.as_ref().map(|s| s.errors(self.shapes.len())),
        }
    }
}

impl Core {
    /// Looks up a page that is not the latest; `entry` is where the nearest TLB may have it, and then where it has.
    #[inline]
    fn look_up(&mut self, key: u64, entry: &mut u32) {
        self.latest = key;
        let Some((first, rest)) = self.tlbs.split_first_mut() else {
            return;
        };
        if let Some(at) = first.look_up(key, *entry as usize) {
            *entry = at as u32;
            return;
        }
        for tlb in rest {
            if tlb.look_up(key, usize::MAX).is_some() {
                break;
            }
            tlb.insert(key);
        }
        *entry = first.insert(key) as u32;
    }
}

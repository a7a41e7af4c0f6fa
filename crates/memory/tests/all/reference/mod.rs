//! The model once more, slowly: every cache is a list of sets, every set a list of lines with the time of their last
//! use, and nothing is done for speed. Shares no code with the simulator but the types of its interface.

use cere_memory::counters::{Footprint, LevelCounters, MemoryCounters, TlbCounters};
use cere_memory::geometry::{Inclusion, Replacement};
use cere_memory::options::Frames;
use cere_memory::{Access, Counters, Geometry, Kind, Options};
use std::collections::BTreeSet;

/// SplitMix64, as published.
#[derive(Clone)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e3779b97f4a7c15);
        mix(self.0)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        ((self.next() as u128 * limit as u128) >> 64) as u64
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d049bb133111eb);
    z ^ (z >> 31)
}

#[derive(Clone)]
struct Line {
    number: u64,
    dirty: bool,
    prefetched: bool,
    used: u64,
}

#[derive(Clone)]
struct Cache {
    sets: Vec<Vec<Option<Line>>>,
    policy: Replacement,
    /// For each set, whether each node of the tree points right. Node 1 is the root, n has children 2n and 2n + 1.
    trees: Vec<Vec<bool>>,
    random: Random,
    now: u64,
    inclusion: Inclusion,
    counts: LevelCounters,
}

impl Cache {
    fn set(&self, number: u64) -> usize {
        (number % self.sets.len() as u64) as usize
    }

    fn way(&self, number: u64) -> Option<usize> {
        let lines = &self.sets[self.set(number)];
        lines
            .iter()
            .position(|l| l.as_ref().is_some_and(|l| l.number == number))
    }

    fn find(&mut self, number: u64) -> Option<&mut Line> {
        let (set, way) = (self.set(number), self.way(number)?);
        self.sets[set][way].as_mut()
    }

    fn touch(&mut self, number: u64) -> Option<&mut Line> {
        let (set, way) = (self.set(number), self.way(number)?);
        self.note(set, way);
        self.sets[set][way].as_mut()
    }

    fn note(&mut self, set: usize, way: usize) {
        self.now += 1;
        self.sets[set][way].as_mut().unwrap().used = self.now;
        if self.policy == Replacement::TreePlru {
            let mut node = way + self.sets[set].len();
            while node > 1 {
                let came_from_right = node % 2 == 1;
                node /= 2;
                self.trees[set][node] = !came_from_right;
            }
        }
    }

    /// Returns what left.
    fn insert(&mut self, number: u64, dirty: bool, prefetched: bool) -> Option<Line> {
        let set = self.set(number);
        let ways = self.sets[set].len();
        let empty = self.sets[set].iter().position(Option::is_none);
        let way = match (empty, self.policy) {
            (Some(way), _) => way,
            (None, Replacement::Lru) => (0..ways)
                .min_by_key(|&w| self.sets[set][w].as_ref().unwrap().used)
                .unwrap(),
            (None, Replacement::TreePlru) => {
                let mut node = 1;
                while node < ways {
                    node = 2 * node + self.trees[set][node] as usize;
                }
                node - ways
            }
            (None, Replacement::Random) => self.random.below(ways as u64) as usize,
        };
        let line = Line {
            number,
            dirty,
            prefetched,
            used: 0,
        };
        let left = self.sets[set][way].replace(line);
        self.note(set, way);
        left
    }

    fn remove(&mut self, number: u64) -> Option<Line> {
        let (set, way) = (self.set(number), self.way(number)?);
        self.sets[set][way].take()
    }
}

#[derive(Clone)]
struct Stream {
    page: u64,
    last: i128,
    ahead: i128,
    direction: i128,
}

#[derive(Clone)]
struct Core {
    tlbs: Vec<Cache>,
    /// Chunk and bytes, oldest first.
    buffers: Vec<(u128, [bool; 64])>,
    /// Most recently used first.
    streams: Vec<Stream>,
}

#[derive(Clone, Copy, PartialEq)]
enum Why {
    Load,
    Store,
    Prefetch,
    Complete,
}

pub struct Reference {
    geometry: Geometry,
    options: Options,
    private: usize,
    /// By core and level; shared levels are core 0's.
    caches: Vec<Vec<Cache>>,
    cores: Vec<Core>,
    memory: MemoryCounters,
    pages: BTreeSet<u64>,
    /// Addresses of lines.
    lines: BTreeSet<u64>,
    warming: bool,
    trained: Option<u128>,
}

impl Reference {
    pub fn new(geometry: &Geometry, options: &Options) -> Self {
        let private = geometry.levels.iter().filter(|l| !l.shared).count();
        let mut seeds = Random(options.seed);
        let make = |size: u64, line: u32, ways: u32, policy, inclusion, name: &str, seed| {
            let sets = (size / line as u64 / ways as u64) as usize;
            Cache {
                sets: vec![vec![None; ways as usize]; sets],
                policy,
                trees: vec![vec![false; ways as usize]; sets],
                random: Random(seed),
                now: 0,
                inclusion,
                counts: LevelCounters {
                    name: name.to_owned(),
                    line,
                    ..LevelCounters::default()
                },
            }
        };
        let mut caches = vec![Vec::new(); options.cores];
        for core in 0..options.cores + 1 {
            for (index, l) in geometry.levels.iter().enumerate() {
                if (index < private) == (core < options.cores) {
                    let policy = options.replacement.unwrap_or(l.replacement);
                    let seed = seeds.next();
                    let cache = make(l.size, l.line, l.ways, policy, l.inclusion, &l.name, seed);
                    caches[if core < options.cores { core } else { 0 }].push(cache);
                }
            }
        }
        let tlbs = geometry.tlbs.iter().map(|t| {
            let policy = Replacement::Lru;
            make(t.entries as u64, 1, t.ways, policy, Inclusion::None, "", 0)
        });
        let core = Core {
            tlbs: tlbs.collect(),
            buffers: Vec::new(),
            streams: Vec::new(),
        };
        Self {
            geometry: geometry.clone(),
            options: options.clone(),
            private,
            caches,
            cores: vec![core; options.cores],
            memory: MemoryCounters::default(),
            pages: BTreeSet::new(),
            lines: BTreeSet::new(),
            warming: false,
            trained: None,
        }
    }

    fn cache(&mut self, core: usize, level: usize) -> &mut Cache {
        &mut self.caches[if level < self.private { core } else { 0 }][level]
    }

    fn line_bytes(&self, level: usize) -> u128 {
        self.geometry.levels[level].line as u128
    }

    fn first_line(&self) -> u64 {
        self.geometry.levels.first().map_or(64, |l| l.line as u64)
    }

    fn last_line(&self) -> u128 {
        self.geometry.levels.last().map_or(64, |l| l.line as u128)
    }

    fn number(&self, level: usize, address: u128) -> u64 {
        (address / self.line_bytes(level)) as u64
    }

    /// Physical address, and whether the page is huge.
    fn translate(&self, address: u64) -> (u128, bool) {
        const HUGE: u64 = 2 << 20;
        let start = address / HUGE * HUGE;
        let covered = |from: u64, to: u128| {
            let mut at = from as u128;
            loop {
                let ranges = self.options.huge.iter();
                let next = ranges
                    .filter(|r| r.start as u128 <= at && (r.end as u128) > at)
                    .map(|r| r.end as u128)
                    .max();
                match next {
                    Some(end) if end >= to => return true,
                    Some(end) => at = end,
                    None => return false,
                }
            }
        };
        let huge = covered(start, start as u128 + HUGE as u128);
        if self.options.frames == Frames::Identity {
            return (address as u128, huge);
        }
        let seed = self.options.seed;
        let physical = match huge {
            false => (shuffle(address / 4096, 52, seed) as u128) * 4096 + (address % 4096) as u128,
            true => {
                let frame = shuffle(address / HUGE, 43, !seed) as u128;
                (1 << 64) + frame * HUGE as u128 + (address % HUGE) as u128
            }
        };
        (physical, huge)
    }

    pub fn access(&mut self, core: usize, access: Access) {
        let Access {
            address,
            size,
            kind,
        } = access;
        if size == 0 {
            return;
        }
        let end = (address as u128 + size as u128).min(1 << 64);
        // Pages, then lines (chunks of 64 bytes, for non-temporal stores) in them.
        for page in address / 4096..=((end - 1) / 4096) as u64 {
            let from = address.max(page * 4096);
            let to = end.min((page as u128 + 1) * 4096);
            let (_, huge) = self.translate(from);
            let number = if huge { from >> 21 } else { from >> 12 };
            self.look_up(core, number, huge);
            let step = match kind {
                Kind::NonTemporal => 64,
                _ => self.first_line(),
            };
            let mut at = from;
            while (at as u128) < to {
                let next = to.min((at as u128 / step as u128 + 1) * step as u128);
                let bytes = (next - at as u128) as u64;
                self.piece(core, at, bytes, kind);
                if next == 1 << 64 {
                    break;
                }
                at = next as u64;
            }
        }
    }

    /// Bytes of one line, or chunk.
    fn piece(&mut self, core: usize, address: u64, bytes: u64, kind: Kind) {
        if kind != Kind::Prefetch && !self.warming {
            self.pages.insert(address / 4096);
            let line = self.first_line();
            for at in address / line..=(address + (bytes - 1)) / line {
                self.lines.insert(at * line);
            }
        }
        let physical = self.translate(address).0;
        match kind {
            Kind::NonTemporal => self.store_around(core, physical, bytes),
            _ if self.geometry.levels.is_empty() => self.access_memory(physical, bytes, kind),
            Kind::Load => self.ask(core, physical, Why::Load),
            Kind::Store => self.ask(core, physical, Why::Store),
            Kind::Prefetch => self.ask(core, physical, Why::Prefetch),
            Kind::ReadModifyWrite => {
                self.ask(core, physical, Why::Load);
                self.ask(core, physical, Why::Store);
            }
        }
    }

    fn look_up(&mut self, core: usize, number: u64, huge: bool) {
        // A page's number picks the set, also where small and huge pages have the same one.
        let mut missed = Vec::new();
        for (index, tlb) in self.cores[core].tlbs.iter_mut().enumerate() {
            let sets = tlb.sets.len() as u64;
            let tag = tag(number, huge, sets);
            if tlb.touch(tag).is_some() {
                tlb.counts.load_hits += 1;
                break;
            }
            tlb.counts.load_misses += 1;
            missed.push((index, tag));
        }
        for (index, tag) in missed {
            self.cores[core].tlbs[index].insert(tag, false, false);
        }
    }

    fn access_memory(&mut self, physical: u128, bytes: u64, kind: Kind) {
        match kind {
            Kind::Load => self.memory.bytes_read += bytes,
            Kind::Store => self.memory.bytes_written += bytes,
            Kind::ReadModifyWrite => {
                self.memory.bytes_read += bytes;
                self.memory.bytes_written += bytes;
            }
            _ => return,
        }
        self.write_out_chunks(physical / 64, physical / 64);
    }

    fn several(&self) -> bool {
        self.options.cores > 1 && self.private > 0
    }

    fn ask(&mut self, core: usize, physical: u128, why: Why) {
        self.request(core, 0, physical, why);
        if let Some(trained) = self.trained.take() {
            self.prefetch(core, trained);
        }
    }

    /// A request to a level. Whether the line comes dirty from there.
    fn request(&mut self, core: usize, level: usize, physical: u128, why: Why) -> bool {
        if level == self.private && self.several() && (why == Why::Load || why == Why::Prefetch) {
            self.clean_others(core, physical);
        }
        if level == self.geometry.levels.len() {
            let line = self.last_line();
            self.memory.bytes_read += line as u64;
            if why == Why::Prefetch {
                self.memory.bytes_prefetched += line as u64;
            }
            let start = physical / line * line;
            self.write_out_chunks(start / 64, (start + line - 1) / 64);
            return false;
        }
        let demand = why == Why::Load || why == Why::Store;
        let number = self.number(level, physical);
        let cache = self.cache(core, level);
        let victim = cache.inclusion == Inclusion::Victim;
        if let Some(line) = cache.touch(number) {
            let first_use = demand && line.prefetched;
            line.prefetched &= !demand;
            let dirty = line.dirty;
            line.dirty |= level == 0 && why == Why::Store;
            cache.counts.load_hits += (why == Why::Load) as u64;
            cache.counts.store_hits += (why == Why::Store) as u64;
            if first_use {
                cache.counts.prefetch_hits += 1;
                self.train_at(level, physical);
            }
            if level == 0 && why == Why::Store && self.several() && !dirty {
                self.invalidate_others(core, physical);
            }
            if victim {
                self.cache(core, level).remove(number);
                return dirty;
            }
            return false;
        }
        cache.counts.load_misses += (why == Why::Load) as u64;
        cache.counts.store_misses += (why == Why::Store) as u64;
        if demand {
            self.train_at(level, physical);
        }
        if level == 0 && why == Why::Store && self.several() {
            self.invalidate_others(core, physical);
        }
        let dirty = self.request(core, level + 1, physical, why);
        if victim {
            return dirty;
        }
        let dirty = dirty || level == 0 && why == Why::Store;
        self.put(core, level, physical, dirty, why == Why::Prefetch);
        false
    }

    fn put(&mut self, core: usize, level: usize, physical: u128, dirty: bool, prefetch: bool) {
        let number = self.number(level, physical);
        let cache = self.cache(core, level);
        match prefetch {
            true => cache.counts.prefetch_fills += 1,
            false => cache.counts.fills += 1,
        }
        if let Some(left) = cache.insert(number, dirty, prefetch) {
            let address = left.number as u128 * self.line_bytes(level);
            let mut dirty = left.dirty;
            if self.cache(core, level).inclusion == Inclusion::Inclusive {
                for other in 0..self.options.cores {
                    for nearer in 0..level {
                        let reached = match (nearer < self.private, level < self.private) {
                            (true, true) => other == core,
                            (true, false) => true,
                            (false, _) => other == 0,
                        };
                        if reached {
                            let size = self.line_bytes(level);
                            let (copies, any) = self.take(other, nearer, address, size);
                            dirty |= any;
                            self.cache(other, nearer).counts.invalidations += copies;
                        }
                    }
                }
            }
            if dirty {
                self.cache(core, level).counts.write_backs += 1;
            }
            self.arrive(core, level + 1, address, dirty);
        }
    }

    /// A line that left the level before.
    fn arrive(&mut self, core: usize, level: usize, address: u128, mut dirty: bool) {
        if level == self.geometry.levels.len() {
            if dirty {
                self.memory.bytes_written += self.line_bytes(level - 1) as u64;
            }
            return;
        }
        let number = self.number(level, address);
        let cache = self.cache(core, level);
        if !dirty && cache.inclusion != Inclusion::Victim {
            return;
        }
        if let Some(line) = cache.touch(number) {
            line.dirty |= dirty;
            return;
        }
        if self.line_bytes(level) > self.line_bytes(level - 1) {
            dirty |= self.request(core, level + 1, address, Why::Complete);
        }
        self.put(core, level, address, dirty, false);
    }

    /// Takes what a level has of a range out: how many lines, whether one was dirty.
    fn take(&mut self, core: usize, level: usize, address: u128, size: u128) -> (u64, bool) {
        let line = self.line_bytes(level);
        let (mut copies, mut dirty) = (0, false);
        for number in address / line..=(address + size - 1) / line {
            let cache = self.cache(core, level);
            if let Some(left) = cache.remove(number as u64) {
                copies += 1;
                cache.counts.write_backs += left.dirty as u64;
                dirty |= left.dirty;
            }
        }
        (copies, dirty)
    }

    fn invalidate_others(&mut self, core: usize, physical: u128) {
        let size = self.line_bytes(self.private - 1);
        let address = physical / size * size;
        for other in (0..self.options.cores).filter(|&o| o != core) {
            let mut dirty = false;
            for level in 0..self.private {
                let (copies, any) = self.take(other, level, address, size);
                self.cache(other, level).counts.coherence_invalidations += copies;
                dirty |= any;
            }
            if dirty {
                self.arrive(other, self.private, address, true);
            }
        }
    }

    fn clean_others(&mut self, core: usize, physical: u128) {
        let size = self.line_bytes(self.private - 1);
        let address = physical / size * size;
        for other in (0..self.options.cores).filter(|&o| o != core) {
            let mut dirty = false;
            for level in 0..self.private {
                let line = self.line_bytes(level);
                for number in address / line..=(address + size - 1) / line {
                    let cache = self.cache(other, level);
                    if let Some(line) = cache.find(number as u64)
                        && line.dirty
                    {
                        line.dirty = false;
                        dirty = true;
                        cache.counts.write_backs += 1;
                    }
                }
            }
            if dirty {
                self.arrive(other, self.private, address, true);
            }
        }
    }

    fn train_at(&mut self, level: usize, physical: u128) {
        if self.options.prefetcher.is_some_and(|p| p.level == level) {
            self.trained = Some(physical);
        }
    }

    fn prefetch(&mut self, core: usize, physical: u128) {
        let p = self.options.prefetcher.unwrap();
        let size = self.line_bytes(p.level);
        let (line, page) = ((physical / size) as i128, (physical / 4096) as u64);
        let streams = &mut self.cores[core].streams;
        let Some(at) = streams.iter().position(|s| s.page == page) else {
            streams.insert(
                0,
                Stream {
                    page,
                    last: line,
                    ahead: line,
                    direction: 0,
                },
            );
            streams.truncate(p.streams);
            return;
        };
        let mut stream = streams.remove(at);
        let step = (line - stream.last).signum();
        let turned = stream.direction == -step;
        if step != 0 {
            stream.last = line;
            if stream.direction != step || (line - stream.ahead) * step > 0 {
                stream.ahead = line;
            }
            let known = stream.direction != 0;
            stream.direction = step;
            if !(known && turned) {
                for _ in 0..p.degree {
                    let next = stream.ahead + step;
                    let address = next * size as i128;
                    let same_page = address >= 0 && (address as u128 / 4096) as u64 == page;
                    if !same_page || (next - line).abs() > p.distance as i128 {
                        break;
                    }
                    stream.ahead = next;
                    if self.cache(core, p.level).find(next as u64).is_none() {
                        let address = address as u128;
                        let dirty = self.request(core, p.level + 1, address, Why::Prefetch);
                        self.put(core, p.level, address, dirty, true);
                    }
                }
            }
        }
        self.cores[core].streams.insert(0, stream);
    }

    fn store_around(&mut self, core: usize, physical: u128, bytes: u64) {
        let chunk = physical / 64;
        let buffers = &self.cores[core].buffers;
        if !buffers.iter().any(|b| b.0 == chunk) {
            let line = self.last_line();
            let mut address = physical / line * line;
            while address < physical + bytes as u128 {
                let mut dirty = false;
                for core in 0..self.options.cores {
                    for level in 0..self.geometry.levels.len() {
                        if level < self.private || core == 0 {
                            let (copies, any) = self.take(core, level, address, line);
                            self.cache(core, level).counts.coherence_invalidations += copies;
                            dirty |= any;
                        }
                    }
                }
                if dirty {
                    self.memory.bytes_written += line as u64;
                }
                address += line;
            }
            if self.cores[core].buffers.len() == self.options.combining {
                let oldest = self.cores[core].buffers.remove(0);
                self.write_out(oldest.1);
            }
            self.cores[core].buffers.push((chunk, [false; 64]));
        }
        let buffers = &mut self.cores[core].buffers;
        let at = buffers.iter().position(|b| b.0 == chunk).unwrap();
        let from = (physical % 64) as usize;
        buffers[at].1[from..from + bytes as usize].fill(true);
        if buffers[at].1.iter().all(|&b| b) {
            let full = buffers.remove(at);
            self.write_out(full.1);
        }
    }

    fn write_out(&mut self, bytes: [bool; 64]) {
        let count = bytes.iter().filter(|&&b| b).count() as u64;
        self.memory.bytes_written += count;
        self.memory.bytes_non_temporal += count;
        match count {
            64 => self.memory.combined_whole += 1,
            _ => self.memory.combined_partial += 1,
        }
    }

    fn write_out_chunks(&mut self, from: u128, to: u128) {
        for core in 0..self.options.cores {
            let (leave, stay) = (self.cores[core].buffers.drain(..))
                .partition::<Vec<_>, _>(|b| (from..=to).contains(&b.0));
            self.cores[core].buffers = stay;
            leave.iter().for_each(|b| self.write_out(b.1));
        }
    }

    pub fn fence(&mut self, core: usize) {
        for (_, bytes) in std::mem::take(&mut self.cores[core].buffers) {
            self.write_out(bytes);
        }
    }

    pub fn warm(&mut self, core: usize, accesses: &[Access]) {
        (0..self.options.cores).for_each(|c| self.fence(c));
        let memory = self.memory;
        let counts = self.all_counts();
        self.warming = true;
        accesses.iter().for_each(|&a| self.access(core, a));
        self.warming = false;
        (0..self.options.cores).for_each(|c| self.fence(c));
        self.memory = memory;
        self.set_counts(counts);
    }

    pub fn reset_counters(&mut self) {
        (0..self.options.cores).for_each(|c| self.fence(c));
        self.memory = MemoryCounters::default();
        self.pages.clear();
        self.lines.clear();
        let zeros = self.all_counts().into_iter().map(|c| LevelCounters {
            name: c.name,
            line: c.line,
            ..LevelCounters::default()
        });
        let zeros = zeros.collect();
        self.set_counts(zeros);
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Cache> {
        let caches = self.caches.iter_mut().flatten();
        caches.chain(self.cores.iter_mut().flat_map(|c| &mut c.tlbs))
    }

    fn all_counts(&mut self) -> Vec<LevelCounters> {
        self.all().map(|c| c.counts.clone()).collect()
    }

    fn set_counts(&mut self, counts: Vec<LevelCounters>) {
        self.all().zip(counts).for_each(|(c, n)| c.counts = n);
    }

    pub fn counters(&self) -> Counters {
        let levels = (0..self.geometry.levels.len()).map(|level| {
            let copies = if level < self.private {
                self.options.cores
            } else {
                1
            };
            let mut sum = LevelCounters {
                name: self.geometry.levels[level].name.clone(),
                line: self.geometry.levels[level].line,
                ..LevelCounters::default()
            };
            for core in 0..copies {
                let c = &self.caches[core][level].counts;
                sum.load_hits += c.load_hits;
                sum.load_misses += c.load_misses;
                sum.store_hits += c.store_hits;
                sum.store_misses += c.store_misses;
                sum.fills += c.fills;
                sum.prefetch_fills += c.prefetch_fills;
                sum.prefetch_hits += c.prefetch_hits;
                sum.write_backs += c.write_backs;
                sum.invalidations += c.invalidations;
                sum.coherence_invalidations += c.coherence_invalidations;
            }
            sum
        });
        let tlbs: Vec<TlbCounters> = (0..self.geometry.tlbs.len())
            .map(|level| TlbCounters {
                hits: self
                    .cores
                    .iter()
                    .map(|c| c.tlbs[level].counts.load_hits)
                    .sum(),
                misses: self
                    .cores
                    .iter()
                    .map(|c| c.tlbs[level].counts.load_misses)
                    .sum(),
            })
            .collect();
        let mut memory = self.memory;
        for (_, bytes) in self.cores.iter().flat_map(|c| &c.buffers) {
            let waiting = bytes.iter().filter(|&&b| b).count() as u64;
            memory.bytes_written += waiting;
            memory.bytes_non_temporal += waiting;
        }
        Counters {
            levels: levels.collect(),
            memory,
            page_walks: tlbs.last().map_or(0, |t| t.misses),
            tlbs,
            footprint: Footprint {
                lines: self.lines.len() as u64,
                line: self.first_line() as u32,
                pages: self.pages.len() as u64,
                complete: true,
            },
            sampling: None,
        }
    }
}

/// A number that is apart from those of pages of the other size and falls into the page's set.
fn tag(number: u64, huge: bool, sets: u64) -> u64 {
    number + if huge { sets << 56 } else { 0 }
}

fn shuffle(number: u64, bits: u32, seed: u64) -> u64 {
    let half = bits.div_ceil(2);
    let mask = (1u64 << half) - 1;
    let mut n = number;
    loop {
        let (mut left, mut right) = (n >> half, n & mask);
        for round in 0..4 {
            let f = mix(right ^ mix(seed.wrapping_add(round))) & mask;
            (left, right) = (right, left ^ f);
        }
        n = (left << half) + right;
        if n < 1 << bits {
            return n;
        }
    }
}

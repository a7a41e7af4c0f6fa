//! The page trace before entry: which memory its touches are made on in this process.

use crate::caches::Area;
use crate::error::{Error, TraceDamage};
use crate::glue::Jump;
use crate::lines::Lines;
use crate::owners::owners;
use crate::pages::{PAGE, Page, Pages};
use crate::team::{Team, each};
use cere_format::capture::{
    PAGE_ABSENT, PAGE_CODE, TRACE_AGE_SHIFT, TRACE_AGE_UNIT, TRACE_IN_USE, TRACE_PAGE,
    TRACE_THREAD_SHIFT, TRACE_THREADS, TRACE_WRITTEN,
};
use cere_format::package::{Function, Manifest};
use std::f64::consts::LN_2;
use xxhash_rust::xxh3::xxh3_64;

/// A page of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    page: u64,
    /// The thread that touched it last.
    thread: u32,
    written: bool,
    /// Nanoseconds from the touch to the entry; 0 also if that is not known.
    age: u64,
}

impl Entry {
    fn is_in_use(&self) -> bool {
        self.age <= TRACE_IN_USE
    }
}

/// Reads the member that the manifest announces.
pub fn parse(bytes: &[u8], manifest: &Manifest) -> Result<Vec<Entry>, TraceDamage> {
    let entries = entries(bytes)?;
    if manifest.openmp.is_none()
        && let Some(entry) = entries.iter().find(|e| e.thread != 0)
    {
        return Err(TraceDamage::Thread { page: entry.page });
    }
    let announced = manifest.trace.as_ref().map_or(0, |t| t.pages);
    if announced != entries.len() as u64 {
        return Err(TraceDamage::Pages {
            found: entries.len(),
            announced,
        });
    }
    Ok(entries)
}

/// Pages in the order of their last touch.
fn entries(bytes: &[u8]) -> Result<Vec<Entry>, TraceDamage> {
    if !bytes.len().is_multiple_of(8) {
        return Err(TraceDamage::Bytes(bytes.len()));
    }
    let words = bytes.as_chunks::<8>().0;
    let mut entries = Vec::with_capacity(words.len());
    for word in words {
        let word = u64::from_le_bytes(*word);
        let page = word & TRACE_PAGE;
        let written = word & TRACE_WRITTEN != 0;
        let thread = (word >> TRACE_THREAD_SHIFT & TRACE_THREADS) as u32;
        entries.push(Entry {
            page,
            thread,
            written,
            age: (word >> TRACE_AGE_SHIFT) * TRACE_AGE_UNIT,
        });
    }
    let mut sorted: Vec<u64> = entries.iter().map(|e| e.page).collect();
    sorted.sort_unstable();
    if let Some(twice) = sorted.windows(2).find(|w| w[0] == w[1]) {
        return Err(TraceDamage::Twice { page: twice[0] });
    }
    Ok(entries)
}

/// A touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Touch {
    range: (u64, u64),
    write: bool,
    /// Whether a part of the lines is touched: [`cere_format::capture::TRACE_PART`].
    in_part: bool,
}

/// The thread of this process that makes each touch.
fn makers(entries: &[Entry], manifest: &Manifest, threads: u32) -> Vec<u32> {
    let captured = manifest.openmp.as_ref().map_or(1, |o| o.threads);
    if threads == 1 {
        return vec![0; entries.len()];
    }
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_unstable_by_key(|at| entries[*at].page);
    let touched = order
        .iter()
        .map(|at| (entries[*at].page, entries[*at].thread));
    let found = owners(&touched.collect::<Vec<_>>(), captured, threads);
    let mut makers = vec![0; entries.len()];
    order
        .iter()
        .zip(found)
        .for_each(|(at, owner)| makers[*at] = owner);
    makers
}

/// A touch whose memory may be still to be found.
struct Place {
    thread: u32,
    /// None stands for a scratch page.
    range: Option<(u64, u64)>,
    write: bool,
    in_part: bool,
}

/// How many entries come before the first page that the region finds at entry. What they brought into the caches lies
/// deeper there than all of the region's lines, and touching it takes milliseconds in which the processor forgets what it
/// had learnt of the region.
fn before(entries: &[Entry], pages: &Pages) -> usize {
    let region = |entry: &Entry| pages.at(entry.page).is_some_and(|p| !p.is(PAGE_ABSENT));
    entries.iter().position(region).unwrap_or(entries.len())
}

/// Of what a program touches, in turns, in `bytes` of memory, the part that a cache of `size` bytes has not, if what is brought in
/// replaces anything: x of it are missing after x times the bytes came in, so that x = 1 - exp(-x bytes / size). Nothing while
/// all fits.
fn missed(bytes: u64, size: u64) -> f64 {
    let times = bytes as f64 / size.max(1) as f64;
    // From above, so that it finds the solution that is not zero.
    (0..100).fold(1.0, |x, _| 1.0 - (-x * times).exp())
}

/// What others on the machine do to the caches.
#[derive(Debug, Clone, Copy)]
pub struct Others {
    /// Bytes of the largest cache.
    pub size: u64,
    /// Nanoseconds after which they have replaced half of what a program does not use.
    pub half: u64,
}

/// Others take the older lines first: what is lost grows with this power of the time. A Xeon loses 3 % of 8 MB in a third of the
/// half-life, and nearly all in twice the half-life (docs/measured.md, "Ages of pages").
const SHAPE: i32 = 3;

/// What is left of a trace in the caches.
#[derive(Debug, Clone, Copy)]
struct Left {
    others: Others,
    /// See [`missed`].
    missed: f64,
}

impl Left {
    fn of(entries: &[Entry], others: Others) -> Self {
        Self {
            others,
            missed: missed(entries.len() as u64 * PAGE, others.size),
        }
    }

    /// Whether a page is there that was touched so many nanoseconds ago, and so many bytes before the entry. Caches of the
    /// last level do not replace what is oldest, but nearly anything. So the page's number decides, the same way for each
    /// repetition and each variant.
    fn has(self, page: u64, later: u64, age: u64) -> bool {
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        let own = self.missed * share(later, self.others.size);
        // Until then it may have been touched again.
        let unused = age.saturating_sub(TRACE_IN_USE);
        let filled = own + LN_2 * share(unused, self.others.half).powi(SHAPE);
        let draw = xxh3_64(&page.to_le_bytes()) as f64 / u64::MAX as f64;
        draw <= (-filled).exp()
    }
}

/// How many of the region's pages that were absent at entry the program had in memory before, as far back as the caches hold what
/// it touched. Their frames are those that the kernel gives out first.
pub fn given_back(entries: &[Entry], pages: &Pages, others: Option<Others>) -> u64 {
    let left = others.map(|others| Left::of(entries, others));
    let absent = |page| pages.at(page).is_some_and(|p| p.is(PAGE_ABSENT));
    let there = |(at, entry): &(usize, &Entry)| {
        let later = (entries.len() - at) as u64 * PAGE;
        absent(entry.page) && left.is_none_or(|left| left.has(entry.page, later, entry.age))
    };
    entries.iter().enumerate().filter(there).count() as u64
}

/// Whether a quarter or more of the region's pages were not in use at entry: touched long before, or before more than `near`
/// bytes of others. If they were in use, filling a cache would take so long that the processor forgets what it knows of the
/// region. Not if the largest cache, of `size` bytes, holds all that the program touched: it has used that again and
/// again.
pub fn is_old(entries: &[Entry], pages: &Pages, near: u64, size: u64) -> bool {
    if entries.len() as u64 * PAGE <= size {
        return false;
    }
    let there = |page: &Page| !page.is(PAGE_ABSENT);
    let last = entries.iter().rev().take((near / PAGE) as usize);
    let young = last.filter(|entry| entry.is_in_use());
    let young = young.filter(|entry| pages.at(entry.page).is_some_and(there));
    let all = pages.all.iter().filter(|page| there(page)).count();
    4 * young.count() < 3 * all
}

/// The touches of a trace.
pub struct Trace {
    /// Those of each thread, in order.
    touches: Vec<Vec<Touch>>,
    /// Stands in for pages that the package has no content of.
    scratch: Option<Area>,
}

/// Parts of recompiled functions, where they are now, whose code in vivo lay in `page`.
fn recompiled(page: u64, jumps: &[Jump], functions: &[&Function]) -> Vec<(u64, u64)> {
    let first = functions.partition_point(|f| f.address + f.size <= page);
    let inside = functions[first..]
        .iter()
        .take_while(|f| f.address < page + PAGE);
    let moved = inside.filter_map(|f| {
        let at = jumps.binary_search_by_key(&f.address, |j| j.old).ok()?;
        let part = |old: u64| jumps[at].new + (old - f.address);
        let range = (
            part(page.max(f.address)),
            part((page + PAGE).min(f.address + f.size)),
        );
        (range.0 < range.1).then_some(range)
    });
    moved.collect()
}

/// Recompiled functions, where they are now, as far as they lie in `own` and pages with their code were executed in vivo.
pub fn code(
    jumps: &[Jump],
    manifest: &Manifest,
    pages: &Pages,
    own: &[(u64, u64)],
) -> Vec<(u64, u64)> {
    let functions = functions(manifest);
    let jumps = sorted(jumps);
    let executed = pages.all.iter().filter(|p| p.is(PAGE_CODE));
    let found = executed.flat_map(|p| recompiled(p.start(), &jumps, &functions));
    found.filter(|range| within(own, range)).collect()
}

fn within(own: &[(u64, u64)], range: &(u64, u64)) -> bool {
    own.iter().any(|o| o.0 <= range.0 && range.1 <= o.1)
}

fn sorted(jumps: &[Jump]) -> Vec<Jump> {
    let mut jumps = jumps.to_vec();
    jumps.sort_unstable_by_key(|j| j.old);
    jumps
}

/// Functions by address, each once.
fn functions(manifest: &Manifest) -> Vec<&Function> {
    let mut functions: Vec<&Function> = manifest.functions.iter().collect();
    // Aliases of a function are one after the other; the last end decides where a search begins.
    functions.retain(|f| f.size > 0 && f.address.checked_add(f.size).is_some());
    functions.sort_unstable_by_key(|f| (f.address, f.size));
    functions.dedup_by_key(|f| f.address);
    functions
}

impl Trace {
    /// Finds the memory for each touch from the first page of the region on that `others` left in the caches: the captured page,
    /// the recompiled functions whose code lay there as far as they lie in `own` (readable code of this executable), or a
    /// scratch page.
    pub fn new(
        entries: &[Entry],
        manifest: &Manifest,
        pages: &Pages,
        jumps: &[Jump],
        own: &[(u64, u64)],
        (threads, others): (u32, Option<Others>),
    ) -> Result<Self, Error> {
        let functions = functions(manifest);
        let jumps = sorted(jumps);
        let makers = makers(entries, manifest, threads);
        let mut places: Vec<Place> = Vec::with_capacity(entries.len());
        let first = before(entries, pages);
        let left = others.map(|others| Left::of(entries, others));
        for (at, (entry, thread)) in entries.iter().zip(makers).enumerate().skip(first) {
            let later = (entries.len() - at) as u64 * PAGE;
            if left.is_some_and(|left| !left.has(entry.page, later, entry.age)) {
                continue;
            }
            let so_far = places.len();
            if let Some(page) = pages.at(entry.page) {
                // It was unmapped and mapped again since.
                if page.is(PAGE_ABSENT) {
                    continue;
                }
                let closed = page.is(PAGE_CODE) || crate::code::executable(page.start());
                let range = Some((page.start(), page.end()));
                places.push(Place {
                    thread,
                    range,
                    write: entry.written && !closed,
                    in_part: false,
                });
            }
            let code = recompiled(entry.page, &jumps, &functions).into_iter();
            places.extend(code.filter(|range| within(own, range)).map(|range| Place {
                thread,
                range: Some(range),
                write: false,
                in_part: false,
            }));
            if places.len() == so_far {
                places.push(Place {
                    thread,
                    range: None,
                    write: entry.written,
                    in_part: entry.is_in_use(),
                });
            }
        }
        let strange = places.iter().filter(|p| p.range.is_none()).count() as u64;
        let scratch = match strange {
            0 => None,
            _ => Some(Area::new(strange * PAGE)?),
        };
        let mut free = scratch.as_ref().map_or(0, |s| s.range().0);
        let mut touches = vec![Vec::new(); threads as usize];
        for place in places {
            let range = place.range.unwrap_or_else(|| {
                free += PAGE;
                (free - PAGE, free)
            });
            let (write, in_part) = (place.write, place.in_part);
            touches[place.thread as usize].push(Touch {
                range,
                write,
                in_part,
            });
        }
        Ok(Self { touches, scratch })
    }

    /// The memory of the touches.
    pub fn ranges(&self) -> Vec<(u64, u64)> {
        let all = self.touches.iter().flatten();
        all.map(|touch| touch.range).collect()
    }

    /// The scratch pages, for flushing.
    pub fn scratch(&self) -> Option<(u64, u64)> {
        self.scratch.as_ref().map(Area::range)
    }

    /// Touches the lines, page after page, each thread what is its own.
    pub fn touch(&self, lines: &Lines, team: Option<&Team>) {
        each(team, |thread| self.touch_here(lines, thread));
    }

    fn touch_here(&self, lines: &Lines, thread: u32) {
        for touch in self.touches.get(thread as usize).into_iter().flatten() {
            // SAFETY: captured pages, open as `new` asked, code of this executable, or scratch pages.
            unsafe {
                match (touch.in_part, touch.write) {
                    (true, write) => lines.touch_part(touch.range.0, write),
                    (false, true) => lines.write(touch.range),
                    (false, false) => lines.read(touch.range),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    #[test]
    fn entries_in_their_order() {
        let aged = 0x7000 | 3 << TRACE_AGE_SHIFT;
        let found = entries(&bytes(&[aged, 0x1000 | 5 << 1 | TRACE_WRITTEN])).unwrap();
        let entry = |page, thread, written, age| Entry {
            page,
            thread,
            written,
            age: age * TRACE_AGE_UNIT,
        };
        assert_eq!(
            found,
            [entry(0x7000, 0, false, 3), entry(0x1000, 5, true, 0)]
        );
        assert_eq!(entries(&[]).unwrap(), []);
    }

    #[test]
    fn traces_that_cannot_be() {
        for (bytes, part) in [
            (vec![0; 15], "cut short: 15 bytes"),
            (bytes(&[0x2000, 0x1000, 0x2001]), "0x2000 twice"),
        ] {
            let message = entries(&bytes).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn touched_before_all_of_the_region() {
        use crate::pages::Bytes;
        use std::path::Path;
        let record =
            |address: u64, flags: u32| [address, u64::from(flags)].map(u64::to_le_bytes).concat();
        let table = [record(0x2000, PAGE_ABSENT), record(0x5000, 1)].concat();
        let none = || Bytes::open(Path::new("/nonexistent")).unwrap();
        let pages = Pages::new(&table, none(), none()).unwrap();
        let count = |touched: &[u64]| before(&entries(&bytes(touched)).unwrap(), &pages);
        assert_eq!(count(&[0x1000, 0x2000, 0x5000, 0x3000]), 2);
        assert_eq!(count(&[0x5000, 0x1000]), 0);
        assert_eq!(count(&[0x1000, 0x2000]), 2);
        assert_eq!(count(&[]), 0);
    }

    #[test]
    fn what_is_further_back_is_rarer() {
        let left = Left {
            others: Others {
                size: 1 << 20,
                half: 1_000_000,
            },
            missed: 1.0,
        };
        let count = |later: u64, age: u64| {
            let pages = (0..1000).map(|page| 0x7000_0000 + page * PAGE);
            pages.filter(|page| left.has(*page, later, age)).count() as i32
        };
        // Parts of a thousand.
        for (later, age, expected) in [
            (0, 0, 1000),
            // In use.
            (0, TRACE_IN_USE, 1000),
            (0, TRACE_IN_USE + 1_000_000, 500),
            (0, TRACE_IN_USE + 2_000_000, 4),
            (1 << 20, 0, 368),
            (1 << 19, TRACE_IN_USE + 1_000_000, 303),
            (8 << 20, 0, 0),
            (0, TRACE_IN_USE + 20_000_000, 0),
        ] {
            let found = count(later, age);
            assert!((found - expected).abs() <= 45, "{found} {expected}");
        }
        // What is there farther back is there nearer.
        for page in 0..1000 {
            let page = page * PAGE;
            assert!(!left.has(page, 2 << 20, 0) || left.has(page, 1 << 20, 500_000));
        }
    }

    #[test]
    fn frames_that_come_back() {
        use crate::pages::Bytes;
        use std::path::Path;
        let none = || Bytes::open(Path::new("/nonexistent")).unwrap();
        let record =
            |page: u64, flags: u32| [page, u64::from(flags)].map(u64::to_le_bytes).concat();
        let table: Vec<u8> = (1..=1000)
            .flat_map(|page| record(page * PAGE, PAGE_ABSENT))
            .chain(record(2000 * PAGE, 1))
            .collect();
        let pages = Pages::new(&table, none(), none()).unwrap();
        let trace = |age: u64| {
            let half = (1..=500)
                .chain([2000, 3000])
                .map(|page| (page * PAGE) | (age << TRACE_AGE_SHIFT));
            entries(&bytes(&half.collect::<Vec<_>>())).unwrap()
        };
        let others = Some(Others {
            size: 1 << 30,
            half: 1_000_000,
        });
        assert_eq!(given_back(&trace(0), &pages, None), 500);
        assert_eq!(given_back(&trace(0), &pages, others), 500);
        // Others take half of it.
        let old = given_back(
            &trace((TRACE_IN_USE + 1_000_000) / TRACE_AGE_UNIT),
            &pages,
            others,
        );
        assert!((200..300).contains(&old), "{old}");
        assert_eq!(given_back(&[], &pages, None), 0);
    }

    #[test]
    fn pages_in_use() {
        let age = TRACE_IN_USE / TRACE_AGE_UNIT;
        let aged = [age, age + 1].map(|age| PAGE | age << TRACE_AGE_SHIFT);
        let in_use = |word| entries(&bytes(&[word])).unwrap()[0].is_in_use();
        assert_eq!(aged.map(in_use), [true, false]);
    }

    #[test]
    fn a_program_that_fits_misses_nothing() {
        let size = 1000;
        for (bytes, expected) in [(500, 0.0), (900, 0.0), (2000, 0.797), (5000, 0.993)] {
            let found = missed(bytes, size);
            assert!((found - expected).abs() < 0.001, "{bytes}: {found}");
        }
        // By counting: lines in turns, in a cache that replaces any of its lines.
        let (lines, places) = (6000, 4000);
        let mut cache = vec![usize::MAX; places];
        let mut there = vec![usize::MAX; lines];
        let (mut misses, mut seed) = (0, 1u64);
        for touch in 0..20 * lines {
            let line = touch % lines;
            let at = there[line];
            if at != usize::MAX && cache[at] == line {
                continue;
            }
            misses += usize::from(touch >= 10 * lines);
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (seed >> 33) as usize % places;
            cache[at] = line;
            there[line] = at;
        }
        let counted = misses as f64 / (10 * lines) as f64;
        let found = missed(lines as u64, places as u64);
        assert!((counted - found).abs() < 0.02, "{counted} {found}");
    }

    #[test]
    fn old_regions() {
        use crate::pages::Bytes;
        use std::path::Path;
        let none = || Bytes::open(Path::new("/nonexistent")).unwrap();
        let table: Vec<u8> = [0x1000, 0x2000, 0x3000, 0x4000]
            .iter()
            .flat_map(|page: &u64| [*page, 1].map(u64::to_le_bytes).concat())
            .collect();
        let pages = Pages::new(&table, none(), none()).unwrap();
        let of = |touched: &[u64], size| {
            is_old(&entries(&bytes(touched)).unwrap(), &pages, 1 << 14, size)
        };
        let old = |touched: &[u64]| of(touched, 1 << 12);
        let aged = (TRACE_IN_USE / TRACE_AGE_UNIT + 1) << TRACE_AGE_SHIFT;
        assert!(!old(&[0x1000 | aged, 0x2000, 0x3000, 0x4000]));
        assert!(old(&[0x1000 | aged, 0x2000 | aged, 0x3000, 0x4000]));
        assert!(!of(
            &[0x1000 | aged, 0x2000 | aged, 0x3000, 0x4000],
            1 << 14
        ));
        // Not in the trace at all, or others' pages, or before those.
        assert!(old(&[0x2000, 0x3000, 0x9000]));
        assert!(old(&[0x1000, 0x2000, 0x3000, 0x4000, 0x8000, 0x9000]));
    }

    #[test]
    fn code_that_moved() {
        let function = |address, size| Function {
            name: String::new(),
            unit: None,
            address,
            size,
            other_image: false,
            ir: false,
        };
        let [a, b, c] = [
            function(0x1800, 0x1000),
            function(0x2900, 0x100),
            function(0x2a00, 16),
        ];
        let jump = |old, new| Jump { old, new };
        let jumps = [jump(0x1800, 0x50000), jump(0x2900, 0x60000)];
        let find = |page| recompiled(page, &jumps, &[&a, &b, &c]);
        assert_eq!(find(0x1000), [(0x50000, 0x50800)]);
        assert_eq!(find(0x2000), [(0x50800, 0x51000), (0x60000, 0x60100)]);
        assert_eq!(find(0x3000), []);
    }
}

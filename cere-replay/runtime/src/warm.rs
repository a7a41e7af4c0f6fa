//! The state of the caches before a timed repetition (CERE thesis, 3.5.3). Comes after the captured state was put back.

use crate::caches::{self, Area};
use crate::error::Error;
use crate::glue::Jump;
use crate::heap;
use crate::lines::{Lines, flush_translations};
use crate::operand::{Memory, Placing};
use crate::pages::{PAGE, Pages};
use crate::processor::Pinned;
use crate::space::{self, merge, union};
use crate::team::{Team, each};
use crate::thread::Block;
use crate::trace::{self, Entry, Others, Trace};
use cere_format::caches::Cache;
use cere_format::capture::{PAGE_ABSENT, PAGE_CODE};
use cere_format::package::Manifest;
use cere_format::replay::{PlacedOperand, Warmup};
use std::path::Path;

/// Bytes around the captured stack pointer that the caller has just used.
const TOP_OF_STACK: u64 = 256;
/// Bytes of the thread control block that the C library uses from the thread pointer on.
const CONTROL_BLOCK: u64 = 0x300;

/// What is done before each repetition, and with what.
pub struct Warm<'a> {
    how: Warmup,
    lines: Lines,
    /// Memory that the region uses.
    data: Vec<(u64, u64)>,
    /// The part of it, and of the region's code, that the trace does not hold.
    untraced: Vec<(u64, u64)>,
    /// As much memory as was not there at entry, and how many bytes of it the program had not given back shortly before.
    frames: Option<(Area, u64)>,
    /// This executable and its libraries.
    images: Vec<(u64, u64)>,
    /// What the caller touched last.
    last: Vec<(u64, u64)>,
    trace: Option<Trace>,
    /// Empties every cache where lines cannot be flushed by address.
    emptying: Option<Area>,
    /// Empties the caches nearer to the core than the wanted one.
    nearer: Option<Area>,
    /// Fills the largest cache. Flushing a line brings the entry of its page table into the caches, and the kernel's tables
    /// cannot be flushed; what the repetition before left is nearer than what was touched once.
    filling: Option<Area>,
    pinned: Pinned,
    team: Option<&'a Team>,
    /// Operands with states of their own.
    placing: Placing<'a>,
}

/// What a process file says is mapped of files and readable, but for the unpacked package's.
fn images(maps: &str, package: &Path) -> Vec<(u64, u64)> {
    let line = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let readable = words.next()?.starts_with('r');
        let path = words.nth(3)?;
        let wanted = readable && path.starts_with('/') && !Path::new(path).starts_with(package);
        let address = |text| u64::from_str_radix(text, 16).ok();
        wanted.then_some((address(start)?, address(end)?))
    };
    merge(maps.lines().filter_map(line).collect(), 0)
}

/// The thread-local block and the words that the C library keeps behind it.
fn thread(block: &Block) -> (u64, u64) {
    // SAFETY: asks for the thread's own identity, which is its pointer.
    let pointer = unsafe { libc::pthread_self() } as u64;
    let memory = block.memory();
    let start = match memory.is_empty() {
        true => pointer,
        false => (memory.as_ptr() as u64).min(pointer),
    };
    (start, pointer + CONTROL_BLOCK)
}

/// What a warm-up needs beside the plan, all of it after a first run of the region.
pub struct Needs<'a> {
    /// The manifest.
    pub manifest: &'a Manifest,
    /// Captured pages.
    pub pages: &'a Pages,
    /// The thread-local block.
    pub block: &'a Block,
    /// Recompiled functions.
    pub jumps: &'a [Jump],
    /// The page trace.
    pub trace: &'a [Entry],
    /// Nanoseconds that a line stays in the caches while the program brings in nothing; none: for ever.
    pub survival: Option<u64>,
    /// The threads.
    pub team: Option<&'a Team>,
    /// Directory of the unpacked package.
    pub package: &'a Path,
    /// Where this process runs.
    pub pinned: Pinned,
    /// Operands with states of their own.
    pub operands: &'a [PlacedOperand],
    /// The caches of the processor that this process runs on.
    pub caches: Vec<Cache>,
}

impl Needs<'_> {
    /// Bytes of the largest cache.
    fn largest(&self) -> Option<u64> {
        self.caches.iter().map(|cache| cache.size).max()
    }

    fn others(&self) -> Option<Others> {
        let known = self.survival.zip(self.largest());
        known.map(|(half, size)| Others { size, half })
    }

    fn trace(&self, images: &[(u64, u64)]) -> Result<Trace, Error> {
        let threads = self.team.map_or(1, Team::threads);
        let crowd = (threads, self.others());
        let (pages, jumps) = (self.pages, self.jumps);
        Trace::new(self.trace, self.manifest, pages, jumps, images, crowd)
    }

    /// The memory that the region uses. A touch would bring pages into memory that were not there at entry.
    fn memory(&self, scratch: Option<(u64, u64)>) -> Vec<(u64, u64)> {
        let there = self.pages.all.iter().filter(|p| !p.is(PAGE_ABSENT));
        let mut data: Vec<(u64, u64)> = there.map(|p| (p.start(), p.end())).collect();
        data.extend(space::resident(self.manifest.heap.0, heap::used()));
        let (low, top) = space::stack(self.manifest);
        data.extend(space::resident(low, top));
        data.extend(scratch);
        merge(data, 0)
    }

    /// As much memory as was not there at entry, and how many bytes of it are cold.
    fn frames(&self, lines: &Lines) -> Result<Option<(Area, u64)>, Error> {
        let absent = space::bytes(&space::absent(&self.pages.all));
        if absent == 0 || !lines.can_flush() {
            return Ok(None);
        }
        let warm = trace::given_back(self.trace, self.pages, self.others()) * PAGE;
        Ok(Some((Area::new(absent)?, absent.saturating_sub(warm))))
    }

    /// What the caller touched last, as far as it lies in `data`.
    fn last(&self, data: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let entry = &self.manifest.entry;
        let size = u64::from(entry.arguments_size);
        let arguments = (entry.arguments, entry.arguments + size);
        let top_of_stack = (entry.stack_pointer - TOP_OF_STACK, entry.stack_pointer);
        let open = |r: &(u64, u64)| data.iter().any(|d| d.0 <= r.0 && r.1 <= d.1);
        [arguments, top_of_stack].into_iter().filter(open).collect()
    }

    /// Captured pages of code.
    fn code(&self) -> Vec<(u64, u64)> {
        let code = self.pages.all.iter().filter(|p| p.is(PAGE_CODE));
        merge(code.map(|p| (p.start(), p.end())).collect(), 0)
    }

    /// What empties every cache where lines cannot be flushed.
    fn emptying(&self, how: Warmup, lines: &Lines) -> Result<Option<Area>, Error> {
        if how == Warmup::WorkingSet || lines.can_flush() {
            return Ok(None);
        }
        let area = caches::emptying(&self.caches, lines)?;
        // Before it was pinned, the process may have run anywhere.
        self.pinned.everywhere(|| area.walk(lines));
        Ok(Some(area))
    }

    /// What fills the largest cache where flushing leaves too much.
    fn filling(&self, how: Warmup, lines: &Lines) -> Result<Option<Area>, Error> {
        let near = caches::nearest(&self.caches, 2);
        let old = |o: Others| trace::is_old(self.trace, self.pages, near, o.size);
        let fill = match how {
            Warmup::Cold => true,
            Warmup::PageTrace => self.others().is_some_and(old),
            Warmup::Partial(_) | Warmup::WorkingSet => false,
        };
        let size = self.largest().filter(|_| fill && lines.can_flush());
        size.map(Area::new).transpose()
    }

    /// What empties the caches nearer to the core than the wanted one.
    fn nearer(&self, how: Warmup) -> Result<Option<Area>, Error> {
        let Warmup::Partial(level) = how else {
            return Ok(None);
        };
        let others = "--warmup cold, working-set and page-trace";
        let size = caches::nearer(&self.caches, level, "--warm-to", others)?;
        Area::new(2 * size).map(Some)
    }
}

impl<'a> Warm<'a> {
    /// Prepares for `how`.
    pub fn new(how: Warmup, needs: Needs<'a>) -> Result<Self, Error> {
        let maps = Path::new("/proc/self/maps");
        let text = std::fs::read_to_string(maps).map_err(Error::file("read", maps))?;
        let images = images(&text, needs.package);
        let lines = Lines::new();
        let traced = how == Warmup::PageTrace;
        let trace = traced.then(|| needs.trace(&images)).transpose()?;
        let scratch = trace.as_ref().and_then(Trace::scratch);
        let mut data = needs.memory(scratch);
        let frames = needs.frames(&lines)?;
        let recompiled = trace::code(needs.jumps, needs.manifest, needs.pages, &images);
        let traced = trace.as_ref().map_or_else(Vec::new, Trace::ranges);
        let untraced = space::without(&union(&data, &recompiled), &merge(traced, 0));
        data.push(thread(needs.block));
        let memory = Memory {
            data: &space::without(&union(&data, &[]), scratch.as_slice()),
            images: &images,
            code: needs.code(),
            recompiled,
            all_cold: matches!(how, Warmup::Cold | Warmup::Partial(_)),
        };
        let placing = Placing::new(needs.operands, memory, &needs.caches, lines, needs.team)?;
        Ok(Self {
            how,
            lines,
            last: needs.last(&data),
            data,
            untraced,
            frames,
            images,
            trace,
            emptying: needs.emptying(how, &lines)?,
            filling: needs.filling(how, &lines)?,
            nearer: needs.nearer(how)?,
            pinned: needs.pinned,
            team: needs.team,
            placing,
        })
    }

    /// Throws `ranges` out of the caches.
    fn flush(&self, ranges: &[&[(u64, u64)]]) {
        match &self.emptying {
            None => {
                for range in ranges {
                    // SAFETY: memory of the region and images, mapped for reading as long as the process lives.
                    unsafe { self.lines.flush(range) };
                }
            }
            Some(area) if self.pinned.is_pinned() => area.walk(&self.lines),
            Some(area) => self.pinned.everywhere(|| area.walk(&self.lines)),
        }
    }

    /// The region's page faults take the frames that the kernel got back last: of the repetition before, which are still in
    /// the caches. A program gets frames that are not, unless it has given back as much shortly before.
    fn fresh_frames(&self) {
        if let Some((area, cold)) = &self.frames {
            let (start, end) = area.range();
            // SAFETY: memory of our own.
            unsafe {
                self.lines.write((start, end));
                self.lines.flush(&[(start, start + cold)]);
            }
            area.give_back();
        }
    }

    /// Displaces what flushing leaves: page tables.
    fn fill(&self) {
        if let Some(area) = &self.filling {
            // SAFETY: memory of our own.
            unsafe { self.lines.read(area.range()) };
        }
    }

    /// Brings the caches into their state. The captured state is in place.
    pub fn apply(&self) {
        self.fresh_frames();
        let read = |ranges: &[(u64, u64)]| {
            // SAFETY: memory of the region and images, mapped for reading as long as the process lives.
            ranges.iter().for_each(|r| unsafe { self.lines.read(*r) });
        };
        match self.how {
            // The repetition before was the run over itself.
            Warmup::WorkingSet => {}
            Warmup::Cold => {
                self.flush(&[&self.data, &self.images]);
                self.fill();
                flush_translations();
            }
            Warmup::Partial(_) => {
                self.flush(&[&self.data, &self.images]);
                read(&self.images);
                read(&self.data);
                if let Some(area) = &self.nearer {
                    each(self.team, |_| area.walk(&self.lines));
                }
            }
            // What the program has used again and again stays in caches where what is read once does not: the lines
            // of traced memory are left as the repetition before used them, and are touched in the trace's order.
            Warmup::PageTrace => {
                self.flush(&[&self.untraced]);
                self.fill();
                if let Some(trace) = &self.trace {
                    trace.touch(&self.lines, self.team);
                }
                read(&self.last);
            }
        }
        self.placing.apply();
    }

    /// Bytes of each operand that [`Self::apply`] puts into its state.
    pub fn placed(&self) -> Vec<u64> {
        self.placing.bytes.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::images;
    use std::path::Path;

    #[test]
    fn files_that_are_mapped() {
        let maps = "\
            1000-2000 r-xp 00000000 08:01 7 /lib/libm.so.6\n\
            2000-3000 r--p 00001000 08:01 7 /lib/libm.so.6\n\
            5000-6000 ---p 00001000 08:01 7 /lib/libm.so.6\n\
            8000-9000 rw-p 00000000 00:00 0 \n\
            a000-b000 r--p 00000000 08:01 9 /cache/p/pages.entry\n\
            c000-d000 r--p 00000000 00:00 0 [vvar]\n\
            nonsense\n";
        assert_eq!(images(maps, Path::new("/cache/p")), [(0x1000, 0x3000)]);
    }
}

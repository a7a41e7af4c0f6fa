//! The captured state between repetitions: put back what the region changed, and a digest of what it left.

use crate::heap;
use crate::kept::Kept;
use crate::owners::owners;
use crate::pages::{PAGE, Page, Pages, memory};
use crate::space::{self, union};
use crate::team::{Team, each};
use crate::thread::Block;
use cere_format::capture::{PAGE_ABSENT, PAGE_CODE, PAGE_FOREIGN, PAGE_STACK, PAGE_WRITTEN};
use cere_format::package::Manifest;
use xxhash_rust::xxh3::xxh3_64;

/// Stack below the captured pointer that is there before the region runs, whether it was used in vivo or not.
const STACK_TOUCHED: u64 = 64 << 10;

/// The memory that every repetition starts from.
pub struct State<'a> {
    manifest: &'a Manifest,
    pages: &'a Pages,
    team: Option<&'a Team>,
    /// The thread of the team that touches each captured page first.
    owners: Vec<u32>,
    /// Pages that a repetition changes.
    changed: Vec<Page>,
    /// The same, by owner.
    shares: Vec<Vec<Page>>,
    /// Memory that was not there at entry: each repetition takes the page faults that the invocation took.
    absent: Vec<(u64, u64)>,
    words: &'a [(u64, u64)],
    block: &'a Block,
    /// What no comparison looks at: [start, end), rising.
    masked: Vec<(u64, u64)>,
}

impl<'a> State<'a> {
    /// Fills the captured pages that [`Self::restore`] leaves alone, and the region heap; each by the thread of the team that
    /// stands for the one that touched it first. `kept` are filled already; `words` are those to rewrite.
    pub fn new(
        manifest: &'a Manifest,
        pages: &'a Pages,
        kept: &Kept,
        words: &'a [(u64, u64)],
        block: &'a Block,
        team: Option<&'a Team>,
    ) -> Self {
        let touched: Vec<(u64, u32)> = pages
            .all
            .iter()
            .map(|p| (p.start(), p.record.thread))
            .collect();
        let captured = manifest.openmp.as_ref().map_or(1, |o| o.threads);
        let owners = owners(&touched, captured, team.map_or(1, Team::threads));
        let restored = |p: &Page| p.is(PAGE_WRITTEN) && !p.is(PAGE_CODE | PAGE_ABSENT);
        let (start, end) = manifest.heap;
        let later = |p: &Page| restored(p) || p.is(PAGE_ABSENT);
        let now = |p: &Page| (!later(p) || (start..end).contains(&p.start())) && !kept.holds(p);
        each(team, |thread| {
            let own = pages.all.iter().zip(&owners).filter(|p| *p.1 == thread);
            let own: Vec<&Page> = own.map(|(page, _)| page).filter(|p| now(p)).collect();
            space::populate(own.iter().copied());
            pages.restore_all(own.into_iter());
        });
        let (low, top) = space::stack(manifest);
        let low = low.max(top.saturating_sub(STACK_TOUCHED)) & !(PAGE - 1);
        for page in (low..top & !(PAGE - 1)).step_by(PAGE as usize) {
            if !pages.holds(page) {
                // SAFETY: room below the stack, opened for writing.
                unsafe { std::ptr::write_volatile(page as *mut u64, 0) };
            }
        }
        let masks = manifest.masks.iter().map(|m| (m.start, m.end));
        let masked = union(&masks.collect::<Vec<_>>(), &[]);
        let mut state = Self {
            manifest,
            pages,
            team,
            owners,
            masked,
            changed: pages.all.iter().filter(|p| restored(p)).copied().collect(),
            shares: Vec::new(),
            absent: space::absent(&pages.all),
            words,
            block,
        };
        state.divide_pages();
        let shares = &state.shares;
        each(team, |thread| {
            space::populate(shares.get(thread as usize).into_iter().flatten());
        });
        state
    }

    /// Memory that was not there at entry is there, zero, before each repetition.
    pub fn keep_absent(&mut self) {
        self.absent.clear();
        let absent = self.pages.all.iter().filter(|p| p.is(PAGE_ABSENT));
        self.changed.extend(absent);
        self.changed.sort_unstable_by_key(Page::start);
        self.divide_pages();
    }

    /// Divides the changed pages among the threads that touch them first.
    fn divide_pages(&mut self) {
        let threads = self.team.map_or(1, Team::threads) as usize;
        self.shares = vec![Vec::new(); threads];
        for page in &self.changed {
            let at = self
                .pages
                .all
                .binary_search_by_key(&page.start(), Page::start);
            let owner = at.ok().and_then(|at| self.owners.get(at));
            let share = owner.and_then(|owner| self.shares.get_mut(*owner as usize));
            if let Some(share) = share {
                share.push(*page);
            }
        }
    }

    /// Pages of memory, with the threads of the team that touch them first.
    pub fn owned(&self) -> Vec<(u64, u32)> {
        let starts = self.pages.all.iter().map(Page::start);
        starts.zip(self.owners.iter().copied()).collect()
    }

    /// Before a repetition.
    pub fn restore(&self) {
        let (shares, pages) = (&self.shares, self.pages);
        each(self.team, |thread| {
            let own = shares.get(thread as usize).into_iter().flatten();
            pages.restore_all(own);
        });
        for (start, end) in &self.absent {
            // By the bare call: `madvise` is the region's.
            // SAFETY: captured pages without content, in private memory of our own: they read as zeros again.
            unsafe { libc::syscall(libc::SYS_madvise, *start, end - start, libc::MADV_DONTNEED) };
        }
        for &(at, value) in self.words {
            // SAFETY: an aligned word of a captured page.
            unsafe { *(at as *mut u64) = value };
        }
        self.block.restore();
    }

    /// After the first repetition: pages that it wrote and the captured invocation did not are from now on
    /// restored as well. Returns, by rising address, pages that hold what they held at entry.
    pub fn find_changed(&mut self) -> Vec<u64> {
        let rewritten = |page: &Page| {
            let at = self.words.partition_point(|w| w.0 < page.start());
            self.words.get(at).is_some_and(|w| w.0 < page.end())
        };
        let unwritten = self
            .pages
            .all
            .iter()
            .filter(|p| !p.is(PAGE_WRITTEN | PAGE_CODE | PAGE_ABSENT));
        // Threads in another order take other free blocks of the region heap, which hold its lists.
        let (start, end) = self.manifest.heap;
        let shared = |page: &Page| {
            self.team.is_some_and(|team| team.threads() > 1) && (start..end).contains(&page.start())
        };
        // SAFETY: the region rests.
        let differs = |p: &Page| unsafe { memory(p) } != self.pages.entry(p);
        let (found, same): (Vec<&Page>, Vec<&Page>) = unwritten
            .filter(|p| !crate::code::executable(p.start()))
            .enumerate()
            .inspect(|(number, _)| self.pages.passed(*number))
            .map(|(_, page)| page)
            .partition(|p| rewritten(p) || shared(p) || differs(p));
        self.pages.let_go();
        self.changed.extend(found);
        self.changed.sort_unstable_by_key(Page::start);
        self.divide_pages();
        same.into_iter().map(Page::start).collect()
    }

    /// After a repetition: memory that it took from the region heap, or that it mapped, and that the package
    /// has no pages of, becomes zero again. It stays in place, so that the next repetition takes no page faults.
    pub fn clear_fresh(&self) {
        let used = heap::used();
        self.clear(self.manifest.heap.0.min(used), used);
        for &(start, end) in &self.manifest.fresh {
            self.clear(start, end);
        }
    }

    /// After a repetition: its stack below what was captured becomes zero again.
    pub fn clear_stack(&self) {
        let (low, top) = space::stack(self.manifest);
        self.clear(low, top & !(PAGE - 1));
    }

    /// Clears what lies between captured pages in [start, end).
    fn clear(&self, start: u64, end: u64) {
        let mut at = start & !(PAGE - 1);
        let first = self.pages.all.partition_point(|p| p.start() < at);
        let pages = self.pages.all[first..].iter().map(|p| (p.start(), p.end()));
        for (next, after) in pages.take_while(|p| p.0 < end).chain([(end, end)]) {
            if at < next && space::reserved(at) {
                for (from, to) in space::resident(at, next) {
                    // SAFETY: captured addresses without captured content, opened for writing.
                    unsafe { std::ptr::write_bytes(from as *mut u8, 0, (to - from) as usize) };
                }
            }
            at = at.max(after);
        }
    }

    /// What of the page is compared, behind its first `dead` bytes and but for `masked`.
    fn counted(page: &Page, dead: u64, masked: &[(u64, u64)]) -> u64 {
        // SAFETY: the region rests.
        let bytes = unsafe { memory(page) };
        let part = |from: u64, to: u64| {
            let at = |address: u64| (address - page.start()) as usize;
            xxh3_64(&bytes[at(from)..at(to)])
        };
        let (mut at, mut found) = (page.start() + dead, 0u64);
        let first = masked.partition_point(|m| m.1 <= at);
        for &(start, end) in &masked[first..] {
            if start >= page.end() {
                break;
            }
            found = found.rotate_left(1) ^ part(at, start.max(at));
            at = end.clamp(at, page.end());
        }
        found.rotate_left(1) ^ part(at, page.end())
    }

    /// A hash of each changed page that counts, dead stack and masked words left out, and of the thread-local block.
    /// `unordered`: what of the region heap does not count either.
    pub fn digest(&self, unordered: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let masked = union(&self.masked, unordered);
        let stack = self.manifest.entry.stack_pointer;
        let absent = self.pages.all.iter();
        let absent = absent.filter(|p| p.is(PAGE_ABSENT) && p.is(PAGE_WRITTEN));
        let live = self.changed.iter().filter(|p| !p.is(PAGE_FOREIGN));
        let live = live.chain(absent);
        let mut found: Vec<(u64, u64)> = live
            .map(|page| {
                let dead = if page.is(PAGE_STACK) && page.start() < stack {
                    (stack - page.start()).min(PAGE)
                } else {
                    0
                };
                (page.start(), Self::counted(page, dead, &masked))
            })
            .collect();
        let thread = self.manifest.image.tls.as_ref().map_or(0, |t| t.address);
        found.push((thread, xxh3_64(self.block.memory())));
        found
    }
}

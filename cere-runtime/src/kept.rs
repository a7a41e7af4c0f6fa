//! Which memory a process that keeps the captured state has in place, and whether a replay, its fork, has changed it.

use crate::pages::{PAGE, Page, Pages};
use crate::space;
use cere_format::capture::{PAGE_ABSENT, PAGE_CODE, PAGE_WRITTEN};
use cere_format::package::Manifest;
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Of an entry of `/proc/self/pagemap`: in memory, and not shared with another process.
const PRESENT: u64 = 1 << 63;
const EXCLUSIVE: u64 = 1 << 56;
/// Pages asked for at once.
const CHUNK: usize = 4096;

/// The pages that the invocation neither wrote nor executed. Where whole huge pages are wanted, a page that a replay writes
/// would split that of the kept state: such blocks are each replay's own.
pub fn pages<'p>(manifest: &Manifest, pages: &'p Pages) -> Vec<&'p Page> {
    let heap = manifest.heap;
    let own = |p: &Page| {
        p.is(PAGE_WRITTEN | PAGE_ABSENT | PAGE_CODE) || (heap.0..heap.1).contains(&p.start())
    };
    let huge = space::huge_pages(manifest, &pages.all);
    let block = |p: &Page| {
        huge.iter()
            .find(|r| (r.0..r.1).contains(&p.start()))
            .map(|r| r.0)
    };
    let split: BTreeSet<u64> = match huge.is_empty() {
        true => BTreeSet::new(),
        false => pages
            .all
            .iter()
            .filter(|p| own(p))
            .filter_map(block)
            .collect(),
    };
    let whole =
        |p: &&Page| split.is_empty() || block(p).is_none_or(|start| !split.contains(&start));
    pages.all.iter().filter(|p| !own(p)).filter(whole).collect()
}

/// The kept pages in a replay.
pub struct Kept {
    /// By rising address.
    starts: Vec<u64>,
    map: Option<File>,
}

impl Kept {
    /// Those of the process that this one is a fork of; none if it is not.
    pub fn of(is_fork: bool, manifest: &Manifest, all: &Pages) -> Self {
        let found = match is_fork {
            true => pages(manifest, all),
            false => Vec::new(),
        };
        Self {
            starts: found.into_iter().map(Page::start).collect(),
            map: File::open("/proc/self/pagemap").ok().filter(|_| is_fork),
        }
    }

    /// Whether the page is in place.
    pub fn holds(&self, page: &Page) -> bool {
        self.starts.binary_search(&page.start()).is_ok()
    }

    /// The pages that still are the kept state's own memory, so that nobody wrote to them: the kernel gives a fork that writes a
    /// copy, which no other process has. By rising address; none where the kernel does not tell.
    pub fn unwritten(&self) -> Vec<u64> {
        let Some(map) = &self.map else {
            return Vec::new();
        };
        let mut found = Vec::with_capacity(self.starts.len());
        let next = |a: &u64, b: &u64| a + PAGE == *b;
        for run in self.starts.chunk_by(next).flat_map(|run| run.chunks(CHUNK)) {
            let mut entries = vec![0u8; 8 * run.len()];
            if map.read_exact_at(&mut entries, run[0] / PAGE * 8).is_err() {
                continue;
            }
            let entries = entries
                .as_chunks::<8>()
                .0
                .iter()
                .map(|e| u64::from_ne_bytes(*e));
            let shared = |(entry, _): &(u64, &u64)| entry & (PRESENT | EXCLUSIVE) == PRESENT;
            found.extend(entries.zip(run).filter(shared).map(|(_, start)| *start));
        }
        found
    }
}

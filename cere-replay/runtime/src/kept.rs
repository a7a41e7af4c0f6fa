//! Which memory a process that keeps the captured state has in place for the replays that are its forks.

use crate::pages::{Page, Pages};
use crate::space::{self, HUGE};
use cere_format::capture::{PAGE_ABSENT, PAGE_CODE, PAGE_WRITTEN};
use cere_format::package::Manifest;
use std::collections::BTreeSet;

/// The pages that the invocation neither wrote nor executed. Where whole huge pages are wanted, a page that a replay writes
/// would split that of the kept state: such blocks are each replay's own.
pub fn pages<'p>(manifest: &Manifest, pages: &'p Pages) -> impl Iterator<Item = &'p Page> {
    let heap = manifest.heap.0..manifest.heap.1;
    let own =
        move |p: &Page| p.is(PAGE_WRITTEN | PAGE_ABSENT | PAGE_CODE) || heap.contains(&p.start());
    let block = |p: &Page| p.start() & !(HUGE - 1);
    let huge = space::huge_pages(manifest, &pages.all);
    let huge: BTreeSet<u64> = huge.into_iter().map(|(start, _)| start).collect();
    let split: BTreeSet<u64> = match huge.is_empty() {
        true => BTreeSet::new(),
        false => pages.all.iter().filter(|p| own(p)).map(block).collect(),
    };
    let parted = move |p: &Page| huge.contains(&block(p)) && split.contains(&block(p));
    let shared = move |p: &&Page| !own(p) && !parted(p);
    pages.all.iter().filter(shared)
}

/// The kept pages in a replay.
pub struct Kept {
    /// By rising address.
    starts: Vec<u64>,
}

impl Kept {
    /// Those of the process that this one is a fork of; none if it is not.
    pub fn of(is_fork: bool, manifest: &Manifest, all: &Pages) -> Self {
        let found = is_fork.then(|| pages(manifest, all));
        Self {
            starts: found.into_iter().flatten().map(Page::start).collect(),
        }
    }

    /// Whether the page is in place.
    pub fn holds(&self, page: &Page) -> bool {
        self.starts.binary_search(&page.start()).is_ok()
    }
}

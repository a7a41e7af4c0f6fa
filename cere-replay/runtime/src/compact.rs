//! Data compacted: pages of a range share a few frames of physical memory, so that all of it is in the nearest cache. The code runs
//! as it is, at the same addresses; what it computes is of no use.

use crate::error::Error;
use crate::pages::{PAGE, Page, Pages};
use crate::space;
use cere_format::capture::{PAGE_CODE, PAGE_FOREIGN, PAGE_STACK};
use cere_format::replay::ChangedMemory;

/// Mappings, at most: below `vm.max_map_count`.
const MOST: u64 = 60_000;

/// The frames, and what they hold before each repetition.
#[derive(Default)]
pub struct Frames {
    /// Where each is mapped first, with its content.
    filled: Vec<(u64, Box<[u8]>)>,
}

/// Whether pages may share frames: they are open, and hold data that is the program's.
fn whole((start, end): (u64, u64), pages: &Pages) -> bool {
    let others = PAGE_CODE | PAGE_STACK | PAGE_FOREIGN;
    let data = |at: u64| pages.at(at).is_some_and(|p| !p.is(others));
    let aligned = start.is_multiple_of(PAGE) && end.is_multiple_of(PAGE);
    start < end && aligned && (start..end).step_by(PAGE as usize).all(data)
}

impl Frames {
    /// Maps the ranges of `plan`, whose pages the replay then leaves alone.
    pub fn place(plan: &ChangedMemory, pages: &mut Pages) -> Result<Self, Error> {
        let frames = plan.frames.max(1);
        let bytes = frames * PAGE;
        let mappings = plan.compact.iter().map(|r| (r.1 - r.0).div_ceil(bytes));
        if mappings.sum::<u64>() > MOST {
            return Err(Error::Compact("it would take too many mappings"));
        }
        let mut filled = Vec::new();
        for &range in &plan.compact {
            if !whole(range, pages) {
                return Err(Error::Compact("a page of it was not captured"));
            }
            let shared = shared(bytes)?;
            let inside = |p: &&Page| (range.0..range.1).contains(&p.start());
            let own: Vec<&Page> = pages.all.iter().filter(inside).collect();
            // What lies in the middle of an array is as the rest of it.
            let first = own.len().saturating_sub(frames as usize) / 2;
            for (at, page) in (0..).zip(own.iter().skip(first).take(frames as usize)) {
                filled.push((shared + at * PAGE, pages.entry(page).into()));
            }
            for at in (range.0..range.1).step_by(bytes as usize) {
                again(shared, at, bytes.min(range.1 - at))?;
            }
            pages.give_up(range);
        }
        let frames = Self { filled };
        frames.fill();
        Ok(frames)
    }

    /// Before a repetition.
    pub fn fill(&self) {
        for (at, content) in &self.filled {
            // SAFETY: a page of our own; nothing else is written to while the region rests.
            unsafe {
                std::ptr::copy_nonoverlapping(content.as_ptr(), *at as *mut u8, content.len())
            };
        }
    }
}

/// Memory that can be mapped a second time.
fn shared(bytes: u64) -> Result<u64, Error> {
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    let none = std::ptr::null_mut::<libc::c_void>();
    // By the bare call: `mmap` is the region's.
    // SAFETY: a mapping where the kernel has room.
    let at = unsafe { libc::syscall(libc::SYS_mmap, none, bytes, rights, flags, -1, 0) };
    match at {
        -1 => Err(Error::system("cannot map frames that pages share")),
        at => Ok(at as u64),
    }
}

/// Maps `shared` a second time, at the captured pages from `at` on (mremap(2): an old size of 0 duplicates a shared mapping).
fn again(shared: u64, at: u64, bytes: u64) -> Result<(), Error> {
    debug_assert!(space::reserved(at));
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    // SAFETY: captured pages, which [`whole`] found open; nobody holds a slice of them yet.
    let done = unsafe { libc::syscall(libc::SYS_mremap, shared, 0, bytes, flags, at) };
    match done as u64 == at {
        true => Ok(()),
        false => Err(Error::system("cannot have captured pages share frames")),
    }
}

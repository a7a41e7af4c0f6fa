//! Variables that the recompiled code names and the captured image lacks, as its build's optimiser split, shrank or removed
//! them. What they held in vivo is not known.
//!
//! No other code uses one that was removed. It gets room of its own, full of a value that is no number: where the exit state
//! is the original's all the same, the region had written it before. Which of them a region uses shows in the faults of its
//! first run, until which their pages are closed. Of a variable that was split or shrunk the program still has the parts,
//! which such a region would leave as they were: its pages stay closed.

use crate::glue::{Lost, cere_glue_lost, cere_glue_lost_count};
use crate::pages::PAGE;
use libc::c_int;
use std::ffi::CStr;
use std::sync::atomic::Ordering::Relaxed;

/// What a lost variable holds: a quiet not-a-number as a half, bfloat16, float or double, no flag as a byte, no index
/// and no address.
const NOTHING: u16 = 0x7ff9;
/// Bytes of a variable that gets room, at most: all of it is filled each time.
const LARGEST: u64 = 64 << 20;

fn all() -> &'static [Lost] {
    // SAFETY: the glue's table, of so many rows; only `used` changes, and that atomically.
    unsafe { std::slice::from_raw_parts(&raw const cere_glue_lost, cere_glue_lost_count as usize) }
}

/// The pages of a variable, which hold nothing else.
fn pages(lost: &Lost) -> (u64, u64) {
    (
        lost.start,
        (lost.start + lost.size.max(1)).next_multiple_of(PAGE),
    )
}

fn protect(lost: &Lost, protection: c_int) -> bool {
    let (start, end) = pages(lost);
    // SAFETY: whole pages of this executable that hold nothing but the variable.
    unsafe { libc::mprotect(start as *mut _, (end - start) as usize, protection) == 0 }
}

/// Whether the region may use it.
fn allowed(lost: &Lost) -> bool {
    lost.removed != 0 && lost.size <= LARGEST
}

fn fill(lost: &Lost) {
    let (start, end) = pages(lost);
    // SAFETY: pages of this executable that are open and hold nothing but the variable, of the region alone, which does
    // not run; a page is a multiple of the value's size.
    let words = unsafe {
        std::slice::from_raw_parts_mut(start as *mut u16, (end - start) as usize / size_of::<u16>())
    };
    words.fill(NOTHING);
}

/// Fills the lost variables and closes their pages.
pub fn close() {
    for lost in all() {
        if allowed(lost) {
            fill(lost);
        }
        protect(lost, libc::PROT_NONE);
    }
}

/// The region ran into `address`: opens the lost variable there. False if there is none, or it stays closed. Takes no
/// lock and no memory.
pub fn open(address: u64) -> bool {
    let Some(lost) = find(address).filter(|l| allowed(l)) else {
        return false;
    };
    // Another thread may have opened it in between: that changes nothing.
    lost.used.store(1, Relaxed);
    protect(lost, libc::PROT_READ | libc::PROT_WRITE)
}

/// Those that the region has used.
fn in_use() -> impl Iterator<Item = &'static Lost> {
    all().iter().filter(|l| l.used.load(Relaxed) != 0)
}

/// Fills again those that were used, as before the first run.
pub fn restore() {
    in_use().for_each(fill);
}

fn find(address: u64) -> Option<&'static Lost> {
    let holds = |lost: &&Lost| {
        let (start, end) = pages(lost);
        start <= address && address < end
    };
    all().iter().find(holds)
}

fn name(lost: &Lost) -> String {
    // SAFETY: the glue's string.
    let name = unsafe { CStr::from_ptr(lost.name as *const _) };
    name.to_string_lossy().into_owned()
}

/// Name of the lost variable at `address`, if there is one.
pub fn named(address: u64) -> Option<String> {
    find(address).map(name)
}

/// Names of those that the region used.
pub fn used() -> Vec<String> {
    in_use().map(name).collect()
}

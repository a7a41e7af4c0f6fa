//! Variables that the recompiled code names and the captured image does not have as such: its build's optimiser split, shrank
//! or removed them. Each has room of its own. Rows that the pass wrote say what it holds before the region runs: its initial
//! value, and the bytes that the image has, in parts or as a byte that stands for one of two values. What the region leaves
//! there is copied to the image's places before the exit state is compared.
//!
//! Bytes that the image has nowhere were always the initial value, or nobody read them: code of the region that reads
//! them all the same and minds ends in another state. Which variables a region uses shows in the faults of its first run, until
//! which their pages are closed. Those of which nothing is known stay closed.

use crate::glue::{
    Lost, Row, cere_glue_byte_row_count, cere_glue_byte_rows, cere_glue_lost, cere_glue_lost_count,
};
use crate::pages::{PAGE, Pages};
use cere_inside::call::call;
use libc::c_int;
use std::ffi::CStr;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;

/// `kept` is the initial value.
const INITIAL: u64 = 0;
/// `kept` is the image's, the same bytes.
const PLAIN: u64 = 1;
/// `kept` is a byte of the image that is 0 or 1.
const ONE_OF_TWO: u64 = 2;
/// What a byte that is 0 or 1 in the image becomes where the region left neither value.
const NEITHER: u8 = 0xff;

/// Bytes of a variable that is not in the image, at most: all of it is filled each time.
const LARGEST: u64 = 64 << 20;

/// `Lost::kind` of variables of which nothing is known.
const UNKNOWN: u64 = 0;
/// `Lost::kind` of variables that the image has all bytes of.
const WHOLE: u64 = 2;
/// `Lost::kind` of symbols that the units refer to and a replay does not have.
const ABSENT: u64 = 3;

/// Which of the lost variables the region may use, in the order of the table.
static ALLOWED: OnceLock<Vec<bool>> = OnceLock::new();

fn all() -> &'static [Lost] {
    // SAFETY: the glue's table, of so many rows; only `used` changes, and that atomically.
    unsafe { std::slice::from_raw_parts(&raw const cere_glue_lost, cere_glue_lost_count as usize) }
}

fn rows() -> impl Iterator<Item = &'static Row> {
    // SAFETY: the glue's table of so many addresses, each of a row in one of the objects, which nothing writes.
    unsafe {
        let rows = (&raw const cere_glue_byte_rows).cast::<&'static Row>();
        let count = cere_glue_byte_row_count as usize;
        std::slice::from_raw_parts(rows, count).iter().copied()
    }
}

/// The pages of a variable, which hold nothing else.
fn pages(lost: &Lost) -> (u64, u64) {
    (
        lost.start,
        (lost.start + lost.size.max(1)).next_multiple_of(PAGE),
    )
}

/// The rows of a variable.
fn rows_of(lost: &Lost) -> impl Iterator<Item = &'static Row> {
    let (start, end) = (lost.start, lost.start + lost.size);
    rows().filter(move |row| start <= row.place && row.place < end)
}

fn protect(lost: &Lost, protection: c_int) -> bool {
    let (start, end) = pages(lost);
    let (start, length) = (start as usize, (end - start) as usize);
    // By the bare call: that of the library is the region's, while it runs.
    // SAFETY: whole pages of this executable that hold nothing but the variable.
    unsafe {
        call(
            libc::SYS_mprotect,
            [start, length, protection as usize, 0, 0, 0],
        ) == 0
    }
}

/// Whether the region may use it: what the image has of it is in the package.
fn is_usable(lost: &Lost, captured: &Pages) -> bool {
    let kept = |row: &Row| match row.how {
        INITIAL => true,
        PLAIN => captured.holds(row.kept) && captured.holds(row.kept + row.length - 1),
        _ => captured.holds(row.kept),
    };
    ![UNKNOWN, ABSENT].contains(&lost.kind) && lost.size <= LARGEST && rows_of(lost).all(kept)
}

impl Row {
    fn bytes(value: u64) -> [u8; 8] {
        value.to_le_bytes()
    }

    /// Puts the bytes where the region has them.
    ///
    /// # Safety
    /// The variable's pages are open, the image's are those of the package, and the region does not run.
    unsafe fn load(&self) {
        let (place, length) = (self.place as *mut u8, self.length as usize);
        // SAFETY: the variable's pages are open and the region does not run; the pass wrote no row that passes its variable.
        unsafe {
            match self.how {
                INITIAL if self.kept == 0 => place.write_bytes(0, length),
                ONE_OF_TWO => {
                    let value = match *(self.kept as *const u8) {
                        0 => self.first,
                        _ => self.other,
                    };
                    place.copy_from(Self::bytes(value).as_ptr(), length.min(8));
                }
                _ => place.copy_from(self.kept as *const u8, length),
            }
        }
    }

    /// Puts what the region left to where the image has it.
    ///
    /// # Safety
    /// As for [`Row::load`].
    unsafe fn store(&self) {
        let (place, length) = (self.place as *const u8, self.length as usize);
        // SAFETY: the variable's pages are open and the region does not run; what the image has of variables that are
        // written lies on pages that may be.
        unsafe {
            match self.how {
                PLAIN => (self.kept as *mut u8).copy_from(place, length),
                ONE_OF_TWO => {
                    let left = std::slice::from_raw_parts(place, length.min(8));
                    let is = |value: u64| Self::bytes(value)[..left.len()] == *left;
                    *(self.kept as *mut u8) = match () {
                        () if is(self.first) => 0,
                        () if is(self.other) => 1,
                        () => NEITHER,
                    };
                }
                _ => {}
            }
        }
    }
}

fn fill(lost: &Lost) {
    // SAFETY: open pages of this executable, of the region alone, which does not run; see `is_usable` for the image's.
    rows_of(lost).for_each(|row| unsafe { row.load() });
}

/// Fills the lost variables and closes their pages. The captured state is in place.
pub fn close(captured: &Pages) {
    let allowed =
        ALLOWED.get_or_init(|| all().iter().map(|lost| is_usable(lost, captured)).collect());
    for (lost, allowed) in all().iter().zip(allowed) {
        if *allowed {
            fill(lost);
        }
        protect(lost, libc::PROT_NONE);
    }
}

/// The region ran into `address`: opens the lost variable there. False if there is none, or it stays closed. Takes no
/// lock and no memory.
pub fn open(address: u64) -> bool {
    let Some((index, lost)) = find(address) else {
        return false;
    };
    if !ALLOWED.get().is_some_and(|allowed| allowed[index]) {
        return false;
    }
    // Another thread may have opened it in between: that changes nothing.
    lost.used.store(1, Relaxed);
    protect(lost, libc::PROT_READ | libc::PROT_WRITE)
}

/// Those that the region has used.
fn in_use() -> impl Iterator<Item = &'static Lost> {
    all().iter().filter(|l| l.used.load(Relaxed) != 0)
}

/// Fills again those that were used, as before the first run. The captured state is in place.
pub fn restore() {
    in_use().for_each(fill);
}

/// Puts what the region left in them to where the image has them.
pub fn write_back() {
    // SAFETY: as in `fill`.
    in_use().for_each(|lost| rows_of(lost).for_each(|row| unsafe { row.store() }));
}

fn find(address: u64) -> Option<(usize, &'static Lost)> {
    let holds = |lost: &Lost| {
        let (start, end) = pages(lost);
        start <= address && address < end
    };
    all().iter().enumerate().find(|(_, lost)| holds(lost))
}

fn name(lost: &Lost) -> String {
    // SAFETY: the glue's string.
    let name = unsafe { CStr::from_ptr(lost.name as *const _) };
    name.to_string_lossy().into_owned()
}

/// Name of the lost variable at `address`, if there is one.
pub fn name_at(address: u64) -> Option<String> {
    let found = find(address).filter(|(_, lost)| lost.kind != ABSENT);
    found.map(|(_, lost)| name(lost))
}

/// What is said of the absent symbol at `address`, if there is one.
pub fn absent_at(address: u64) -> Option<String> {
    let found = find(address).filter(|(_, lost)| lost.kind == ABSENT);
    found.map(|(_, lost)| name(lost))
}

/// Names of those that the region used, and of whose bytes the captured process did not have all.
pub fn used_names() -> Vec<String> {
    in_use().filter(|l| l.kind != WHOLE).map(name).collect()
}

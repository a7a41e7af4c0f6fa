//! Jumps at the old addresses of functions: captured pointers, tables and code lead to where a function is now.
//!
//! Pages are filled while writable and then made executable, never both at once. A page that the captured run did
//! not execute holds breakpoints beside the jumps. Where the machine code is another one than in vivo, so does the old code
//! of functions with IR: what jumps into it, but to a label that the glue knows, ends the replay.

use crate::error::Error;
use crate::glue::{Jump, cere_glue_label_count, cere_glue_labels};
use crate::pages::{PAGE, Pages};
use crate::space::{merge, protect, reserved};
use cere_arch::jump::{ALIGN, BREAKPOINT, FAR, NEAR, encode};
use cere_format::capture::{PAGE_CODE, PAGE_WRITTEN};
use cere_format::package::{Function, Manifest};
use std::sync::OnceLock;

static RANGES: OnceLock<Vec<(u64, u64)>> = OnceLock::new();
/// Where old machine code was that is not to run.
static STALE: OnceLock<Vec<(u64, u64)>> = OnceLock::new();
static TRAPS: OnceLock<Vec<Jump>> = OnceLock::new();

/// Whether the page that holds `address` is executable captured code.
pub fn executable(address: u64) -> bool {
    let inside = |r: &(u64, u64)| r.0 <= address && address < r.1;
    RANGES.get().is_some_and(|ranges| ranges.iter().any(inside))
}

/// Where a breakpoint at `address` leads, if it stands for a jump.
pub fn trap(address: u64) -> Option<u64> {
    let traps = TRAPS.get()?;
    let at = traps.binary_search_by_key(&address, |j| j.old).ok()?;
    Some(traps[at].new)
}

/// Fills whole instructions of a range that is open for writing with breakpoints.
///
/// # Safety
/// Nobody needs what is there.
unsafe fn fill(start: u64, end: u64) {
    let each = BREAKPOINT.len();
    let start = start.next_multiple_of(each as u64);
    for at in (start..end.saturating_sub(each as u64 - 1)).step_by(each) {
        // SAFETY: within the range, which is open by the contract.
        unsafe { (at as *mut [u8; BREAKPOINT.len()]).write(BREAKPOINT) };
    }
}

/// Where labels were and where they are.
pub fn labels() -> Vec<Jump> {
    // SAFETY: the generator's glue defines the table, whose rows name words of the units.
    unsafe {
        let (rows, count) = (&raw const cere_glue_labels, cere_glue_label_count as usize);
        let rows = std::slice::from_raw_parts(rows, count).iter();
        let labels = rows.map(|row| (row.old, row.new, *(row.new as *const u64)));
        let labels = labels.filter(|(_, _, distance)| *distance != 0);
        let labels = labels.map(|(old, entry, distance)| Jump {
            old,
            new: entry.wrapping_add(distance),
        });
        labels.collect()
    }
}

/// The function whose old machine code was at `address`, if breakpoints lie there instead.
pub fn stale(manifest: &Manifest, address: u64) -> Option<&Function> {
    let inside = |r: &(u64, u64)| r.0 <= address && address < r.1;
    STALE.get()?.iter().find(|r| inside(r))?;
    let holds = |f: &&Function| inside(&(f.address, f.address.saturating_add(f.size)));
    let stale = manifest.functions.iter().filter(|f| f.ir && holds(f));
    stale.max_by_key(|f| f.address)
}

/// Writes the jumps and makes the code pages executable. `other`: the units' machine code is not the one in vivo.
pub fn install(
    manifest: &Manifest,
    pages: &Pages,
    mut jumps: Vec<Jump>,
    other: bool,
) -> Result<(), Error> {
    jumps.sort_unstable_by_key(|j| j.old);
    jumps.dedup_by_key(|j| j.old);
    let written = |address: u64| {
        let page = |p: &crate::pages::Page| p.start().cmp(&(address & !(PAGE - 1)));
        let found = pages.all.binary_search_by(page);
        found.is_ok_and(|at| pages.all[at].is(PAGE_WRITTEN))
    };
    jumps.retain(|j| reserved(j.old) && reserved(j.old.saturating_add(FAR)) && !written(j.old));
    let mut starts: Vec<u64> = manifest.functions.iter().map(|f| f.address).collect();
    starts.extend(jumps.iter().map(|j| j.old));
    starts.sort_unstable();

    let code = pages.all.iter().filter(|p| p.is(PAGE_CODE));
    let mut ranges: Vec<(u64, u64)> = code.map(|p| (p.start(), p.end())).collect();
    ranges.extend(jumps.iter().map(|j| (j.old, j.old + NEAR)));
    let ranges = merge(ranges, 0);
    for &(start, end) in &ranges {
        protect(start, end, libc::PROT_READ | libc::PROT_WRITE)?;
        for page in (start..end).step_by(PAGE as usize) {
            if !pages.holds(page) {
                // SAFETY: reserved and opened above.
                unsafe { fill(page, page + PAGE) };
            }
        }
    }
    let mut stale = Vec::new();
    // No code of another architecture is to run.
    let foreign = manifest.machine.target() != Some(cere_arch::HERE);
    let with_ir = |f: &&Function| f.ir && !f.other_image;
    let functions = manifest.functions.iter();
    for function in functions.filter(|f| foreign || other && with_ir(f)) {
        let last = function.address.saturating_add(function.size);
        let opened = ranges.partition_point(|r| r.1 <= function.address);
        let opened = ranges[opened..].iter().take_while(|r| r.0 < last);
        for &(start, end) in opened {
            let first = start.max(function.address & !(PAGE - 1));
            for page in (first..end.min(last)).step_by(PAGE as usize) {
                if !pages.holds(page) || written(page) {
                    continue;
                }
                let (start, end) = (page.max(function.address), (page + PAGE).min(last));
                stale.push((start, end));
                // SAFETY: on a page that was opened for writing above.
                unsafe { fill(start, end) };
            }
        }
    }
    // What the program made itself, or a library of its own: nothing here leads into it.
    let runs = |start: u64, end: u64| {
        !foreign || jumps.iter().any(|jump| start <= jump.old && jump.old < end)
    };
    let last = |(start, end): &(u64, u64)| match runs(*start, *end) {
        true => libc::PROT_READ | libc::PROT_EXEC,
        false => libc::PROT_READ,
    };
    let last: Vec<i32> = ranges.iter().map(last).collect();
    let mut traps = Vec::new();
    for jump in jumps {
        let next = starts.partition_point(|s| *s <= jump.old);
        let next = starts.get(next).map_or(FAR, |n| n - jump.old);
        let opened = ranges.partition_point(|r| r.1 <= jump.old);
        let room = next.min(ranges.get(opened).map_or(0, |r| r.1 - jump.old));
        let bytes = encode(jump.old, jump.new, room).unwrap_or_else(|| {
            traps.push(jump);
            match jump.old.is_multiple_of(ALIGN) {
                true => BREAKPOINT.to_vec(),
                // The jump there faults.
                false => Vec::new(),
            }
        });
        // SAFETY: `room` bytes from here are opened for writing.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), jump.old as *mut u8, bytes.len());
        }
    }
    for (&(start, end), last) in ranges.iter().zip(last) {
        // SAFETY: mapped above.
        unsafe { cere_arch::jump::written(start, end) };
        protect(start, end, last)?;
    }
    let _ = RANGES.set(ranges);
    let _ = STALE.set(stale);
    let _ = TRAPS.set(traps);
    Ok(())
}

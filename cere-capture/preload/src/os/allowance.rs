//! Limits of address space and data (`RLIMIT_AS`, `RLIMIT_DATA`) hold for the memory of a program with regions alone: those in
//! force are higher by what the library takes. Processes that such a program starts inherit them; other programs (shells with
//! `ulimit`) keep theirs as they are.
//!
//! Allowed here: raw system calls and atomics, until the program's functions below.

use super::errno;
use super::sys;
use libc::rlimit64;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

const RESOURCES: [u32; 2] = [libc::RLIMIT_AS, libc::RLIMIT_DATA];

/// Whether the process has regions.
static BEGUN: AtomicBool = AtomicBool::new(false);
/// Bytes that the library has taken, of each resource.
static TAKEN: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
/// By how much the limits in force are higher than the program's: current ones, maximum ones.
static ABOVE: [[AtomicU64; 2]; 2] = [const { [const { AtomicU64::new(0) }; 2] }; 2];

/// Reads or sets a limit of a process as the kernel has it: zero or a negated error.
pub fn exchange(
    process: c_int,
    resource: u32,
    new: Option<&rlimit64>,
    old: &mut rlimit64,
) -> isize {
    let new = new.map_or(0, |new| &raw const *new as usize);
    let old = &raw mut *old as usize;
    let arguments = [process as usize, resource as usize, new, old, 0, 0];
    // SAFETY: the kernel's structures.
    unsafe { sys::call(libc::SYS_prlimit64, arguments) }
}

/// A limit of this process as the kernel has it.
pub fn read(resource: u32) -> rlimit64 {
    let mut now = rlimit64 {
        rlim_cur: libc::RLIM64_INFINITY,
        rlim_max: libc::RLIM64_INFINITY,
    };
    exchange(0, resource, None, &mut now);
    now
}

fn lift(limit: u64, bytes: u64) -> u64 {
    match limit {
        libc::RLIM64_INFINITY => limit,
        limit => limit.saturating_add(bytes),
    }
}

/// The limit of the program that the one in force stands for.
fn seen(place: usize, mut limit: rlimit64) -> rlimit64 {
    let [current, maximum] = ABOVE[place].each_ref().map(|above| above.load(Relaxed));
    if limit.rlim_cur != libc::RLIM64_INFINITY {
        limit.rlim_cur = limit.rlim_cur.saturating_sub(current);
    }
    if limit.rlim_max != libc::RLIM64_INFINITY {
        limit.rlim_max = limit.rlim_max.saturating_sub(maximum);
    }
    limit
}

/// Puts the program's limit in force, as much higher as the library has taken, or as the kernel lets it.
fn enforce(place: usize, own: &rlimit64) -> isize {
    let resource = RESOURCES[place];
    let taken = TAKEN[place].load(Relaxed);
    let wanted = rlimit64 {
        rlim_cur: lift(own.rlim_cur, taken),
        rlim_max: lift(own.rlim_max, taken),
    };
    let most = read(resource).rlim_max;
    let lower = rlimit64 {
        rlim_cur: wanted.rlim_cur.min(most).max(own.rlim_cur),
        rlim_max: wanted.rlim_max.min(most).max(own.rlim_max),
    };
    let mut old = read(resource);
    let mut result = -1;
    for new in [wanted, lower] {
        result = exchange(0, resource, Some(&new), &mut old);
        if result == 0 {
            let above = [new.rlim_cur - own.rlim_cur, new.rlim_max - own.rlim_max];
            for (place, above) in ABOVE[place].iter().zip(above) {
                place.store(above, Relaxed);
            }
            break;
        }
    }
    result
}

/// The process has regions: from now on its limits are its own memory's.
pub fn begin() {
    BEGUN.store(true, Relaxed);
    change(true, |taken| taken);
}

/// The library is about to take `bytes` of address space, which are `data` if they are private.
pub fn take(bytes: usize, data: bool) {
    change(data, |taken| taken.saturating_add(bytes as u64));
}

/// It has not got them.
pub fn give_back(bytes: usize, data: bool) {
    change(data, |taken| taken.saturating_sub(bytes as u64));
}

fn change(data: bool, to: impl Fn(u64) -> u64) {
    for (place, resource) in RESOURCES.into_iter().enumerate() {
        if resource == libc::RLIMIT_DATA && !data {
            continue;
        }
        let taken = TAKEN[place].load(Relaxed);
        TAKEN[place].store(to(taken), Relaxed);
        if !BEGUN.load(Relaxed) {
            continue;
        }
        let own = seen(place, read(resource));
        if own.rlim_cur != libc::RLIM64_INFINITY {
            enforce(place, &own);
        }
    }
}

fn place_of(process: c_int, resource: c_int) -> Option<usize> {
    let own = BEGUN.load(Relaxed) && (process == 0 || process == super::process::id());
    let found = RESOURCES.iter().position(|r| *r as c_int == resource);
    found.filter(|_| own)
}

/// What the program sees of a limit of its own that it has read.
pub fn show(resource: c_int, found: &mut rlimit64) {
    if let Some(place) = place_of(0, resource) {
        *found = seen(place, *found);
    }
}

/// `prlimit` and `setrlimit`.
unsafe fn change_limit(
    process: c_int,
    resource: c_int,
    new: *const rlimit64,
    old: *mut rlimit64,
) -> c_int {
    // SAFETY: null, or valid, as the manual demands of the program.
    let (new, old) = unsafe { (new.as_ref(), old.as_mut()) };
    let mut former = rlimit64 {
        rlim_cur: 0,
        rlim_max: 0,
    };
    let result = match (place_of(process, resource), new) {
        (Some(place), Some(new)) => {
            former = seen(place, read(resource as u32));
            match new.rlim_cur <= new.rlim_max {
                true => enforce(place, new),
                false => -(libc::EINVAL as isize),
            }
        }
        (place, new) => {
            let result = exchange(process, resource as u32, new, &mut former);
            if let Some(place) = place {
                former = seen(place, former);
            }
            result
        }
    };
    if result < 0 {
        errno::set(-result as i32);
        return -1;
    }
    if let Some(old) = old {
        *old = former;
    }
    0
}

macro_rules! interposed {
    ($set:ident, $both:ident) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $set(resource: c_int, new: *const rlimit64) -> c_int {
            // SAFETY: as the program's.
            unsafe { change_limit(0, resource, new, std::ptr::null_mut()) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $both(
            process: c_int,
            resource: c_int,
            new: *const rlimit64,
            old: *mut rlimit64,
        ) -> c_int {
            // SAFETY: as the program's.
            unsafe { change_limit(process, resource, new, old) }
        }
    };
}

interposed!(setrlimit, prlimit);
interposed!(setrlimit64, prlimit64);

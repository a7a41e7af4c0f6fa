//! Locks of the OpenMP runtime: which exist, and which are held.
//!
//! A lock's words belong to the runtime and mean nothing in another process. A replay initialises the locks that existed at
//! entry and takes those that were held (CERE thesis, 3.5.5).

use crate::engine::status;
use crate::os::section::{Lock, in_library};
use crate::os::symbols::{c_name, next};
use cere_format::capture::OpenMpLock;
use std::collections::BTreeMap;
use std::ffi::c_int;

/// Locks by address. Guarded by `TAKEN`.
static mut KNOWN: BTreeMap<usize, OpenMpLock> = BTreeMap::new();
static TAKEN: Lock = Lock::new();

/// Runs `work` on the table, if captures are prepared.
fn with_table(work: impl FnOnce(&mut BTreeMap<usize, OpenMpLock>)) {
    if !status::prepared() {
        return;
    }
    let known = &raw mut KNOWN;
    // SAFETY: one thread at a time.
    TAKEN.with(|| in_library(|| work(unsafe { &mut *known })));
}

/// In a forked child: its one thread does not hold the table's lock.
pub fn reset_in_child() {
    TAKEN.forked();
}

/// All existing locks.
pub fn list_locks() -> Vec<OpenMpLock> {
    let mut found = Vec::new();
    with_table(|known| found = known.values().cloned().collect());
    found
}

fn note_lock(lock: *mut usize, nested: bool, hint: u32) {
    let address = lock as usize;
    let fresh = OpenMpLock {
        address: address as u64,
        nested,
        hint,
        held: 0,
    };
    with_table(|known| {
        known.insert(address, fresh);
    });
}

fn change_held(lock: *mut usize, change: i32) {
    with_table(|known| {
        if let Some(lock) = known.get_mut(&(lock as usize)) {
            lock.held = lock.held.saturating_add_signed(change);
        }
    });
}

/// Calls the runtime's function of this name.
macro_rules! real {
    ($name:ident, $type:ty, $($argument:expr),*) => {{
        // SAFETY: the runtime's function, of this type.
        let real = in_library(|| unsafe { next!(c_name!($name), $type) });
        // SAFETY: the caller's arguments.
        unsafe { real($($argument),*) }
    }};
}

/// Interposed functions of each kind: they call the runtime's, and note the change.
macro_rules! functions {
    (init $($name:ident $nested:literal),*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(lock: *mut usize) {
            real!($name, unsafe extern "C" fn(*mut usize), lock);
            note_lock(lock, $nested, 0);
        }
    )* };
    (hint $($name:ident $nested:literal),*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(lock: *mut usize, hint: u32) {
            real!($name, unsafe extern "C" fn(*mut usize, u32), lock, hint);
            note_lock(lock, $nested, hint);
        }
    )* };
    (fortran_hint $($name:ident $nested:literal),*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(lock: *mut usize, hint: *const u32) {
            real!($name, unsafe extern "C" fn(*mut usize, *const u32), lock, hint);
            // SAFETY: the caller's variable.
            note_lock(lock, $nested, unsafe { *hint });
        }
    )* };
    (destroy $($name:ident),*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(lock: *mut usize) {
            with_table(|known| {
                known.remove(&(lock as usize));
            });
            real!($name, unsafe extern "C" fn(*mut usize), lock);
        }
    )* };
    (set $($name:ident),*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(lock: *mut usize) {
            real!($name, unsafe extern "C" fn(*mut usize), lock);
            change_held(lock, 1);
        }
    )* };
    (unset $($name:ident),*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(lock: *mut usize) {
            change_held(lock, -1);
            real!($name, unsafe extern "C" fn(*mut usize), lock);
        }
    )* };
    (test $($name:ident),*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(lock: *mut usize) -> c_int {
            let taken = real!($name, unsafe extern "C" fn(*mut usize) -> c_int, lock);
            if taken != 0 {
                change_held(lock, 1);
            }
            taken
        }
    )* };
}

functions!(init omp_init_lock false, omp_init_lock_ false, omp_init_nest_lock true, omp_init_nest_lock_ true);
functions!(hint omp_init_lock_with_hint false, omp_init_nest_lock_with_hint true);
functions!(fortran_hint omp_init_lock_with_hint_ false, omp_init_nest_lock_with_hint_ true);
functions!(destroy omp_destroy_lock, omp_destroy_lock_, omp_destroy_nest_lock, omp_destroy_nest_lock_);
functions!(set omp_set_lock, omp_set_lock_, omp_set_nest_lock, omp_set_nest_lock_);
functions!(unset omp_unset_lock, omp_unset_lock_, omp_unset_nest_lock, omp_unset_nest_lock_);
functions!(test omp_test_lock, omp_test_lock_, omp_test_nest_lock, omp_test_nest_lock_);

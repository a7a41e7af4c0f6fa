//! Limits that the program sees as without CERE: stack sizes and locked memory. Ordinary code.

use super::errno::{self, keep_errno};
use super::section::{in_library, unnoticed};
use super::symbols::next;
use super::sys::PAGE;
use super::{allowance, arena, mappings, thread};
use libc::rlimit64;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

unsafe extern "C" {
    fn pthread_getattr_default_np(attributes: *mut libc::pthread_attr_t) -> c_int;
    fn pthread_setattr_default_np(attributes: *const libc::pthread_attr_t) -> c_int;
}

/// Stack limit without CERE in bytes; 0 if the command has not changed it.
static USUAL: AtomicU64 = AtomicU64::new(0);
/// End of the main thread's stack, and end of the program's mapping below it.
static STACK: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
/// Whether a thread is asking libc for the main thread's stack.
static ASKS: AtomicBool = AtomicBool::new(false);

/// The limit without CERE. The program may have changed the limit that the command set.
fn usual_limit_of(now: rlimit64) -> u64 {
    match USUAL.load(Ordering::Relaxed) {
        0 => now.rlim_cur,
        _ if now.rlim_cur != now.rlim_max => now.rlim_cur,
        usual => usual,
    }
}

/// The command raises the stack limit to the maximum, to keep addresses equal. The program is shown its usual limit, and its
/// threads get stacks of that size: with an unlimited stack libc gives threads less than under the usual limit.
pub fn keep_stacks(told: Option<u64>) {
    /// The default of most systems.
    const COMMON: u64 = 8 << 20;
    let now = allowance::read(libc::RLIMIT_STACK);
    if now.rlim_cur == now.rlim_max {
        USUAL.store(told.unwrap_or_default(), Ordering::Relaxed);
    }
    let mut below = 0;
    for mapping in mappings::read_smaps().unwrap_or_default() {
        if mapping.path == mappings::STACK {
            STACK[0].store(mapping.end as usize, Ordering::Relaxed);
            STACK[1].store(below, Ordering::Relaxed);
        } else if !arena::is_ours(mapping.start as usize) {
            below = mapping.end as usize;
        }
    }
    let wanted = match usual_limit_of(now) {
        libc::RLIM_INFINITY if told.is_none() => COMMON,
        other => other,
    };
    if now.rlim_cur != libc::RLIM_INFINITY || wanted == libc::RLIM_INFINITY {
        return;
    }
    // SAFETY: structures of our own, initialised by the first call.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        if pthread_getattr_default_np(&mut attributes) != 0 {
            return;
        }
        let size = (wanted as usize).next_multiple_of(PAGE);
        if libc::pthread_attr_setstacksize(&mut attributes, size) == 0 {
            pthread_setattr_default_np(&attributes);
        }
        libc::pthread_attr_destroy(&mut attributes);
    }
}

/// Puts the usual limit in force: the layout of memory was settled when the program was started, and the stack must not grow
/// beyond what it does without CERE. Processes that this one starts get it too.
pub fn restore_stack_limit() {
    let usual = USUAL.swap(0, Ordering::Relaxed);
    if usual == 0 {
        return;
    }
    let mut old = allowance::read(libc::RLIMIT_STACK);
    let new = rlimit64 {
        rlim_cur: usual,
        ..old
    };
    allowance::exchange(0, libc::RLIMIT_STACK, Some(&new), &mut old);
}

/// Whether libc reads the mappings to find the main thread's stack: the program itself does not read them.
pub fn asks_for_stack() -> bool {
    ASKS.load(Ordering::Relaxed)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_getattr_np(
    thread: libc::pthread_t,
    attributes: *mut libc::pthread_attr_t,
) -> c_int {
    // SAFETY: a living thread, and attributes that are valid for writes, as the manual demands of the program.
    unsafe { stack_attributes(thread, attributes) }
}

/// `pthread_getattr_np`. libc computes the main thread's stack from the limit and the mappings, which both differ under CERE.
/// It has another name here because the library's own references to `pthread_getattr_np` are bound to libc's.
pub unsafe fn stack_attributes(
    thread: libc::pthread_t,
    attributes: *mut libc::pthread_attr_t,
) -> c_int {
    type Get = unsafe extern "C" fn(libc::pthread_t, *mut libc::pthread_attr_t) -> c_int;
    // SAFETY: libc's function; the attributes are set by then.
    unsafe {
        let real = in_library(|| next!(c"pthread_getattr_np", Get));
        if thread::main_pointer() != thread as usize {
            return real(thread, attributes);
        }
        ASKS.store(true, Ordering::Relaxed);
        let result = real(thread, attributes);
        ASKS.store(false, Ordering::Relaxed);
        if result == 0 {
            keep_errno(|| set_stack(attributes));
        }
        result
    }
}

/// Sets the size of the main thread's stack that libc would report without CERE.
unsafe fn set_stack(attributes: *mut libc::pthread_attr_t) {
    let (mut start, mut size) = (std::ptr::null_mut(), 0);
    // SAFETY: attributes that libc has set.
    if unsafe { libc::pthread_attr_getstack(attributes, &mut start, &mut size) } != 0 {
        return;
    }
    let [end, below] = [&STACK[0], &STACK[1]].map(|s| s.load(Ordering::Relaxed));
    let top = start as usize + size;
    if end < top || top <= below {
        return;
    }
    let limit = usual_limit_of(allowance::read(libc::RLIMIT_STACK)) as usize;
    let size = (limit.saturating_sub(end - top) & !(PAGE - 1)).min(top - below);
    // SAFETY: attributes that libc has set, and a stack that the program gave.
    unsafe { libc::pthread_attr_setstack(attributes, (top - size) as *mut _, size) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn getrlimit(resource: c_int, found: *mut rlimit64) -> c_int {
    // SAFETY: `found` is valid for a write, as the manual demands of the program.
    unsafe { usual_limit(resource, found) }
}

/// The same function, under its other name.
#[unsafe(no_mangle)]
unsafe extern "C" fn getrlimit64(resource: c_int, found: *mut rlimit64) -> c_int {
    // SAFETY: `found` is valid for a write, as the manual demands of the program.
    unsafe { usual_limit(resource, found) }
}

/// `getrlimit`, with the stack limit that the program would have without CERE.
unsafe fn usual_limit(resource: c_int, found: *mut rlimit64) -> c_int {
    type Get = unsafe extern "C" fn(c_int, *mut rlimit64) -> c_int;
    // SAFETY: libc's function; the structure is set by then.
    unsafe {
        let result = in_library(|| next!(c"getrlimit", Get))(resource, found);
        if result == 0 && resource == libc::RLIMIT_STACK as c_int {
            (*found).rlim_cur = usual_limit_of(*found);
        }
        if result == 0 {
            allowance::show(resource, &mut *found);
        }
        result
    }
}

/// Locks the program's memory only: the library reserves more address space than the machine has memory.
#[unsafe(no_mangle)]
unsafe extern "C" fn mlockall(flags: c_int) -> c_int {
    let all = libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT;
    // SAFETY: libc's function, which locks memory as the program wants.
    unsafe {
        let real = next!(c"mlockall", unsafe extern "C" fn(c_int) -> c_int);
        if flags & libc::MCL_CURRENT == 0 || flags & !all != 0 {
            return real(flags);
        }
        let future = flags & libc::MCL_FUTURE != 0;
        if future && real(flags & !libc::MCL_CURRENT) != 0 {
            return -1;
        }
        let on_fault = u32::from(flags & libc::MCL_ONFAULT != 0);
        let done = unnoticed(|| lock_current(on_fault));
        if done {
            return 0;
        }
        errno::set(libc::EPERM);
        -1
    }
}

/// Locks all mappings but the library's. False if the program has no right to.
unsafe fn lock_current(on_fault: u32) -> bool {
    let own = arena::arena_range();
    for mapping in mappings::read_smaps().unwrap_or_default() {
        let (start, end) = (mapping.start as usize, mapping.end as usize);
        if arena::is_ours(start)
            || own.0 <= start && start < own.1
            || mapping.path.starts_with("[v")
        {
            continue;
        }
        // SAFETY: a mapping of the program. As in `mlockall`, memory that cannot be had is no error.
        let result = unsafe { libc::mlock2(start as *const _, end - start, on_fault) };
        // SAFETY: errno's address is valid in the calling thread.
        if result != 0 && unsafe { *libc::__errno_location() } == libc::EPERM {
            return false;
        }
    }
    true
}

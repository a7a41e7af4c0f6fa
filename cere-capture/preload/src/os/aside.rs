//! System calls made aside: by a helper process that shares this one's memory and nothing else. It keeps what the program began
//! with, whatever the program does to its own: directories, user and capabilities, limits of files, sandboxes. It takes no
//! descriptor of the program's either.
//!
//! Ordinary code. The helper ends with the program, or when the program's process starts another one: the kernel then clears the
//! word that it keeps for the main thread. It is nobody's child: no wait finds it but with `__WALL` or `__WCLONE`.

use super::section::Lock;
use super::{allowance, futex, process, sys, thread};
use libc::rlimit64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicI32, AtomicIsize, AtomicU32, AtomicUsize};

/// Bytes of the helper's stack.
const STACK: usize = 32 << 10;
/// Seconds after which the helper looks whether it is still needed, and nanoseconds after which the program looks whether there is
/// a helper: ends that nobody reports.
const LOOK: i64 = 1;
const SOON: i64 = 100_000_000;
/// Number of no call: the helper ends.
const END: usize = usize::MAX;

static LOCK: Lock = Lock::new();
/// The thread that makes a request.
static ASKING: AtomicUsize = AtomicUsize::new(0);
/// Numbers of requests and answers so far.
static REQUEST: AtomicU32 = AtomicU32::new(0);
static ANSWER: AtomicU32 = AtomicU32::new(0);
/// The helper's process, 0 if there is none: the kernel clears it.
static HELPER: AtomicI32 = AtomicI32::new(0);
/// The main thread's word that the kernel clears.
static OWNER: AtomicUsize = AtomicUsize::new(0);
/// The call, and what it returned.
static CALL: [AtomicUsize; 7] = [const { AtomicUsize::new(0) }; 7];
static RESULT: AtomicIsize = AtomicIsize::new(0);

/// Starts the helper, in the main thread. Without one, calls are made by the program's own process: where it has confined itself
/// they fail.
pub fn start() {
    const PR_GET_TID_ADDRESS: usize = 40;
    if is_running() {
        return;
    }
    let mut owner = 0usize;
    let arguments = [PR_GET_TID_ADDRESS, &raw mut owner as usize, 0, 0, 0, 0];
    // SAFETY: writes one word of this frame.
    let known = unsafe { sys::call(libc::SYS_prctl, arguments) } == 0;
    if !known || owner == 0 {
        return;
    }
    OWNER.store(owner, Relaxed);
    let stack = Box::leak(vec![0u128; STACK / 16].into_boxed_slice());
    let top = stack.as_mut_ptr_range().end as usize;
    // Signals to the group are for the program.
    let mask = sys::exchange_mask(!0);
    // SAFETY: the stack is the helper's alone and stays; `serve` never returns.
    unsafe { sys::cere_start_aside(serve, top, HELPER.as_ptr()) };
    sys::exchange_mask(mask);
}

/// Ends the helper and waits for that.
pub fn end() {
    let id = HELPER.load(Relaxed);
    if alone(END, [0; 6]).is_none() {
        return;
    }
    let arguments = [id as usize, 0, libc::__WCLONE as usize, 0, 0, 0];
    // SAFETY: a process of our own.
    while unsafe { sys::call(libc::SYS_wait4, arguments) } == -(libc::EINTR as isize) {}
}

/// In a forked child: it has no helper.
pub fn forget() {
    LOCK.forked();
    ASKING.store(0, Relaxed);
    HELPER.store(0, Relaxed);
}

/// Whether there is a helper.
pub fn is_running() -> bool {
    HELPER.load(Acquire) != 0 && !process::is_copy()
}

/// The helper's process; 0 if there is none.
pub fn id() -> i32 {
    HELPER.load(Relaxed)
}

/// A system call by the helper; none if there is no helper.
///
/// # Safety
/// As the call itself.
pub unsafe fn call(number: i64, arguments: [usize; 6]) -> Option<isize> {
    alone(number as usize, arguments)
}

/// Makes a request while no other thread does. None where a handler of the program interrupts another request.
fn alone(number: usize, arguments: [usize; 6]) -> Option<isize> {
    if !is_running() || ASKING.load(Relaxed) == thread::pointer() {
        return None;
    }
    LOCK.with(|| {
        ASKING.store(thread::pointer(), Relaxed);
        let result = request(number, arguments);
        ASKING.store(0, Relaxed);
        result
    })
}

fn request(number: usize, arguments: [usize; 6]) -> Option<isize> {
    let words = std::iter::once(number).chain(arguments);
    for (place, value) in CALL.iter().zip(words) {
        place.store(value, Relaxed);
    }
    let next = REQUEST.load(Relaxed).wrapping_add(1);
    REQUEST.store(next, Release);
    futex::wake(&REQUEST, 1);
    loop {
        let answer = ANSWER.load(Acquire);
        if answer == next {
            return Some(RESULT.load(Relaxed));
        }
        if !is_running() {
            return None;
        }
        futex::wait(&ANSWER, answer, [0, SOON]);
    }
}

/// The helper. Its thread-local storage is the main thread's: raw system calls alone.
extern "C" fn serve() -> ! {
    // SAFETY: these concern the helper alone.
    unsafe {
        sys::call(libc::SYS_close_range, [0, u32::MAX as usize, 0, 0, 0, 0]);
        let (name, kill) = (libc::PR_SET_PDEATHSIG as usize, libc::SIGKILL as usize);
        sys::call(libc::SYS_prctl, [name, kill, 0, 0, 0, 0]);
    }
    raise_limits();
    // SAFETY: no arguments.
    let parent = || unsafe { sys::call(libc::SYS_getppid, [0; 6]) };
    let (begun, mut answered) = (parent(), ANSWER.load(Relaxed));
    // SAFETY: the kernel's word of the main thread, mapped as long as that runs.
    let owner = unsafe { &*(OWNER.load(Relaxed) as *const AtomicU32) };
    loop {
        let asked = REQUEST.load(Acquire);
        let needed = owner.load(Relaxed);
        if asked != answered {
            let [number, arguments @ ..] = CALL.each_ref().map(|word| word.load(Relaxed));
            let result = match number {
                END => 0,
                // SAFETY: the caller of `call` answers for the call's arguments.
                _ => unsafe { sys::call(number as i64, arguments) },
            };
            RESULT.store(result, Relaxed);
            answered = asked;
            ANSWER.store(answered, Release);
            futex::wake(&ANSWER, 1);
            if number == END {
                break;
            }
        } else if needed == 0 || parent() != begun {
            break;
        } else {
            await_request(asked, (owner, needed));
        }
    }
    loop {
        // SAFETY: ends the helper.
        unsafe { sys::call(libc::SYS_exit, [0; 6]) };
    }
}

/// Waits while there is no other request than `asked`, and while the main thread's word has its value, but not for long.
fn await_request(asked: u32, (owner, value): (&AtomicU32, u32)) {
    const FUTEX_WAITV: i64 = 449;
    const WORD: u32 = 2;
    #[repr(C)]
    struct Wait {
        value: u64,
        word: usize,
        flags: u32,
        reserved: u32,
    }
    let of = |word: &AtomicU32, value: u32, flags: i32| Wait {
        value: value.into(),
        word: word.as_ptr() as usize,
        flags: WORD | flags as u32,
        reserved: 0,
    };
    let both = [
        of(&REQUEST, asked, libc::FUTEX_PRIVATE_FLAG),
        // The kernel wakes as if other processes waited.
        of(owner, value, 0),
    ];
    let clock = libc::CLOCK_MONOTONIC as usize;
    let now = sys::time() as i64;
    let until = [now / 1_000_000_000 + LOOK, now % 1_000_000_000];
    let (waits, until) = (both.as_ptr() as usize, until.as_ptr() as usize);
    // SAFETY: the kernel's structures, of this frame.
    let result = unsafe { sys::call(FUTEX_WAITV, [waits, both.len(), 0, until, clock, 0]) };
    // Before Linux 5.16.
    if result == -(libc::ENOSYS as isize) {
        futex::wait(&REQUEST, asked, [LOOK, 0]);
    }
}

/// Limits of files that the program was started under are the program's.
fn raise_limits() {
    for resource in [libc::RLIMIT_FSIZE, libc::RLIMIT_NOFILE] {
        let mut now = allowance::read(resource);
        let maximum = now.rlim_max;
        let most = match resource {
            libc::RLIMIT_FSIZE => libc::RLIM64_INFINITY,
            _ => maximum.max(64),
        };
        for (rlim_cur, rlim_max) in [(most, most.max(maximum)), (maximum, maximum)] {
            let new = rlimit64 { rlim_cur, rlim_max };
            if allowance::exchange(0, resource, Some(&new), &mut now) == 0 {
                break;
            }
        }
    }
}

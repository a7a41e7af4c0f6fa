//! The preload library. What is allowed where:
//!
//! - constructor, `dlopen`, writing results: ordinary Rust, memory from [`arena`];
//! - hooks: the program's thread, no change of errno; what they begin or end runs on a stack of [`pool`], with the
//!   program's memory open and its signals blocked;
//! - signal handlers: raw system calls and preallocated memory only: no libc, locks, allocation, errno, until the
//!   program's memory is open again.
//!
//! Without `CERE_RUN` in the environment it does nothing but pass calls on.

mod arena;
mod calls;
mod capture;
mod clock;
mod conflict;
mod engine;
mod filter;
mod heap;
mod images;
mod inside;
mod limits;
mod local;
mod locks;
mod names;
mod openmp;
mod passing;
mod pool;
mod process;
mod profile;
mod register;
mod section;
mod signals;
mod spans;
mod spare;
mod stacks;
mod stub;
mod sys;
mod team;
mod threads;
mod trace;
mod tracer;
mod wanted;
mod write;

use cere_format::abi::Hook;
use cere_format::capture::{CAPTURE_VERSION, ENV_RUN, RunMode, RunPlan};
use std::collections::HashSet;
use std::ffi::{c_char, c_int, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicUsize, Ordering};

static ACTIVE: AtomicBool = AtomicBool::new(false);
/// The process that results are of.
static PROCESS: AtomicI32 = AtomicI32::new(0);
/// Where it stands that this is still that process: on a page that the kernel clears in each new one.
static MARK: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
static STATE: Mutex<Option<State>> = Mutex::new(None);

struct State {
    plan: RunPlan,
    seen: HashSet<usize>,
    begun: bool,
}

/// The calling thread's control block.
#[inline(always)]
fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: the first word of the control block is its own address on x86-64.
    unsafe {
        core::arch::asm!("mov {}, fs:[0]", out(reg) pointer, options(nostack, readonly, preserves_flags));
    }
    pointer
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;
#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = destructor;

fn complain(message: &str) {
    let text = format!("cere: {message}\n");
    let arguments = [2, text.as_ptr() as usize, text.len(), 0, 0, 0];
    // SAFETY: writes our own text to standard error.
    unsafe { sys::call(libc::SYS_write, arguments) };
}

/// Runs `f` and puts errno back.
fn keep_errno<T>(f: impl FnOnce() -> T) -> T {
    // SAFETY: errno's address is valid in the calling thread.
    unsafe {
        let errno = *libc::__errno_location();
        let result = f();
        *libc::__errno_location() = errno;
        result
    }
}

extern "C" fn constructor() {
    heap::in_library(cere_rebind::bind);
    keep_errno(|| {
        // A limit on the size of files is no reason to end the program.
        let ignored = sys::Action {
            handler: libc::SIG_IGN,
            ..sys::Action::default()
        };
        let own = sys::action(libc::SIGXFSZ, Some(&ignored));
        let outcome = std::panic::catch_unwind(|| heap::in_library(start));
        sys::action(libc::SIGXFSZ, Some(&own));
        match outcome {
            Ok(Ok(())) => {}
            Ok(Err(message)) => complain(&message),
            Err(_) => complain("the preload library failed at start; the program runs unprofiled"),
        }
    });
    capture::begin_windows();
}

fn start() -> Result<(), String> {
    let Some(path) = std::env::var_os(ENV_RUN) else {
        return Ok(());
    };
    let path = std::path::PathBuf::from(path);
    let text = std::fs::read(&path)
        .map_err(|e| format!("cannot read {ENV_RUN}={}: {e}", path.display()))?;
    let plan: RunPlan = serde_json::from_slice(&text)
        .map_err(|e| format!("{} is no run plan: {e}", path.display()))?;
    if plan.version != CAPTURE_VERSION {
        return Err(format!(
            "{} has version {}, this library {CAPTURE_VERSION}: rebuild CERE",
            path.display(),
            plan.version
        ));
    }
    let stack_limit = plan.stack_limit;
    if let RunMode::Capture { wanted, trace } = &plan.mode {
        wanted::prepare(plan.directory.clone(), wanted, *trace)?;
    }
    *STATE.lock().map_err(|e| e.to_string())? = Some(State {
        plan,
        seen: HashSet::new(),
        begun: false,
    });
    PROCESS.store(process(), Ordering::Relaxed);
    mark();
    ACTIVE.store(true, Ordering::Release);
    let (before, after) = (threads::before_fork, threads::after_fork);
    // SAFETY: all three are async-signal-safe.
    unsafe { libc::pthread_atfork(Some(before), Some(after), Some(child)) };
    limits::keep_stacks(stack_limit);
    openmp::begin();
    arm()
}

/// Sets [`MARK`]; a kernel that does not clear pages (before Linux 4.14) has processes noticed that libc's `fork` starts.
fn mark() {
    const MADV_WIPEONFORK: usize = 18;
    #[repr(align(4096))]
    struct Page([u8; pool::PAGE]);
    let mut page = Page([0; pool::PAGE]);
    page.0[0] = 1;
    let page: *mut Page = Box::into_raw(Box::new(page));
    let arguments = [page as usize, pool::PAGE, MADV_WIPEONFORK, 0, 0, 0];
    // SAFETY: a page of our own, which nobody else changes.
    unsafe { sys::call(libc::SYS_madvise, arguments) };
    MARK.store(page.cast(), Ordering::Relaxed);
}

/// Whether this is another process than the one that results are of, started by a system call that libc knows nothing of.
#[inline(always)]
fn is_copy() -> bool {
    let mark = MARK.load(Ordering::Relaxed);
    // SAFETY: null, or a page of our own.
    unsafe { mark.as_ref() }.is_some_and(|mark| *mark == 0)
}

/// The calling process.
fn process() -> i32 {
    // SAFETY: no arguments.
    unsafe { sys::call(libc::SYS_getpid, [0; 6]) as i32 }
}

extern "C" fn destructor() {
    // Under a filter even the question who this is may end it.
    if filter::sealed() {
        return;
    }
    // A child of vfork shares our memory, and ends alone.
    if PROCESS.load(Ordering::Relaxed) != process() {
        return;
    }
    if ACTIVE.swap(false, Ordering::AcqRel) {
        profile::finish();
        capture::finish_process();
    }
}

unsafe extern "C" fn child() {
    ACTIVE.store(false, Ordering::Release);
    threads::forked();
    heap::forked();
    profile::forget();
    wanted::abandon_process();
}

/// Arms the regions of images not seen yet.
fn arm() -> Result<(), String> {
    let mut state = STATE.lock().map_err(|e| e.to_string())?;
    let Some(state) = state.as_mut() else {
        return Ok(());
    };
    if matches!(state.plan.mode, RunMode::Capture { .. }) {
        openmp::find();
    }
    for image in images::loaded() {
        if image.range.0 == 0 || !state.seen.insert(image.range.0) {
            continue;
        }
        let found = images::sections(&image);
        let captures = matches!(state.plan.mode, RunMode::Capture { .. });
        if !state.begun && !found.regions.is_empty() {
            state.begun = true;
            register::claim(&state.plan.directory)?;
            if !captures {
                profile::begin(&state.plan.directory)?;
            }
        }
        if captures {
            wanted::arm(image.range.0, found.instrumented, found.regions);
            continue;
        }
        for region in found.regions {
            // SAFETY: a descriptor of a loaded image; the stub has the hook's interface.
            unsafe {
                let timed = match &state.plan.mode {
                    RunMode::Time(these) => these.iter().any(|key| wanted::is(region, key)),
                    _ => true,
                };
                (*region).scratch = 0;
                let hook =
                    std::mem::transmute::<*const (), Hook>(profile::cere_profile_stub as *const ());
                let hook = if timed {
                    Some(hook)
                } else {
                    openmp::dormant(region)
                };
                (&raw mut (*region).hook).write_volatile(hook);
            }
        }
    }
    Ok(())
}

/// Forgets images that are gone.
fn disregard() {
    if let Ok(mut state) = STATE.lock()
        && let Some(state) = state.as_mut()
    {
        let present: HashSet<usize> = images::loaded().iter().map(|i| i.range.0).collect();
        state.seen.retain(|start| present.contains(start));
        wanted::forget(&|start| present.contains(&start));
    }
}

/// Finds the next definition of a symbol; caches it.
fn next(cache: &AtomicUsize, name: &std::ffi::CStr) -> usize {
    let known = cache.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    // SAFETY: a plain look-up.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) } as usize;
    cache.store(found, Ordering::Relaxed);
    found
}

#[unsafe(no_mangle)]
unsafe extern "C" fn _exit(status: c_int) -> ! {
    destructor();
    loop {
        // SAFETY: ends the process as libc's does.
        unsafe { sys::call(libc::SYS_exit_group, [status as usize, 0, 0, 0, 0, 0]) };
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn _Exit(status: c_int) -> ! {
    // SAFETY: the same function.
    unsafe { _exit(status) }
}

/// libc's `dlopen` looks at its caller, whose RUNPATH and `$ORIGIN` count: it has to return into the caller's image.
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void {
    core::arch::naked_asm!("mov rdx, [rsp]", "jmp {}", sym dlopen_from)
}

unsafe extern "C" fn dlopen_from(file: *const c_char, flags: c_int, caller: usize) -> *mut c_void {
    static REAL: AtomicUsize = AtomicUsize::new(0);
    let real = next(&REAL, c"dlopen");
    // SAFETY: libc's dlopen; what it returns to is a return instruction.
    let handle = unsafe {
        match images::return_after(caller) {
            Some(at) => sys::cere_call_from(real, file.cast(), flags, at),
            None => std::mem::transmute::<
                usize,
                unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void,
            >(real)(file, flags),
        }
    };
    if !handle.is_null() && ACTIVE.load(Ordering::Acquire) {
        keep_errno(|| {
            if let Err(message) = heap::in_library(arm) {
                complain(&message);
            }
        });
        capture::begin_windows();
    }
    handle
}

#[unsafe(no_mangle)]
unsafe extern "C" fn dlclose(handle: *mut c_void) -> c_int {
    static REAL: AtomicUsize = AtomicUsize::new(0);
    let real = next(&REAL, c"dlclose");
    // SAFETY: libc's dlclose.
    let result = unsafe {
        std::mem::transmute::<usize, unsafe extern "C" fn(*mut c_void) -> c_int>(real)(handle)
    };
    if ACTIVE.load(Ordering::Acquire) {
        keep_errno(|| heap::in_library(disregard));
    }
    result
}

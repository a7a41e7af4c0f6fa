//! The team of the OpenMP runtime in this process: fresh, started before the clock runs, its threads' own memory as in
//! threads that have just started.

use crate::error::Error;
use crate::heap::{self, in_library};
use crate::thread::Others;
use cere_format::abi::{FORK_SYMBOL, Fork, Ident};
use cere_format::capture::OpenMpLock;
use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

type Push = unsafe extern "C" fn(*const Ident, i32, i32);
type Own = unsafe extern "C" fn(*const Ident) -> i32;
type Number = unsafe extern "C" fn() -> i32;

/// What each thread does.
struct Work<'a>(&'a (dyn Fn(u32) + Sync));

/// The runtime's threads.
#[derive(Debug, Clone, Copy)]
pub struct Team {
    threads: u32,
    fork: Fork,
}

/// The library's own function that starts threads.
static CREATE: AtomicUsize = AtomicUsize::new(0);

fn find(name: &CStr) -> usize {
    // SAFETY: a null-terminated name; the loader only looks.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) as usize }
}

unsafe extern "C" fn create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    start: *const c_void,
    argument: *mut c_void,
) -> i32 {
    type Create = unsafe extern "C" fn(
        *mut libc::pthread_t,
        *const libc::pthread_attr_t,
        *const c_void,
        *mut c_void,
    ) -> i32;
    // SAFETY: the C library's function, called as the OpenMP runtime calls it.
    in_library(|| unsafe {
        let real = std::mem::transmute::<usize, Create>(CREATE.load(Relaxed));
        real(thread, attributes, start, argument)
    })
}

unsafe extern "C" fn duplicate(text: *const c_char) -> *mut c_char {
    // SAFETY: the OpenMP runtime passes a string that ends in zero, as `strdup` demands.
    in_library(|| unsafe { libc::strdup(text) })
}

unsafe extern "C" fn attributes(thread: libc::pthread_t, found: *mut libc::pthread_attr_t) -> i32 {
    // SAFETY: a living thread, and attributes that are valid for writes, as `pthread_getattr_np` demands of the OpenMP runtime.
    in_library(|| unsafe { libc::pthread_getattr_np(thread, found) })
}

/// Stands for what says how many threads the next team has, where the replay's number counts.
unsafe extern "C" fn ignore(_: *const Ident, _: i32, _: i32) {}

unsafe extern "C" fn work_here(_: *const i32, _: *const i32, work: *const c_void) {
    // SAFETY: the runtime's function of this name, and the work that `Team::each` hands over.
    unsafe {
        let work = work.cast::<Work>();
        let number = std::mem::transmute::<usize, Number>(find(c"omp_get_thread_num"));
        (*work).0(number() as u32);
    }
}

/// Runs `work` on each thread of the team, with its number, or here.
pub fn each(team: Option<&Team>, work: impl Fn(u32) + Sync) {
    match team {
        Some(team) => team.each(work),
        None => work(0),
    }
}

impl Team {
    /// Finds the runtime and starts `threads` threads. `insist`: the region's teams have that many whatever it says.
    pub fn start(threads: u32, insist: bool) -> Result<Team, Error> {
        let fork = find(FORK_SYMBOL);
        if fork == 0 {
            return Err(Error::NoOpenMp);
        }
        CREATE.store(find(c"pthread_create"), Relaxed);
        let [malloc, calloc, realloc] = heap::libc_functions();
        let functions = [
            (c"malloc", malloc),
            (c"calloc", calloc),
            (c"realloc", realloc),
            (c"pthread_create", create as *const () as usize),
            (c"strdup", duplicate as *const () as usize),
            (c"pthread_getattr_np", attributes as *const () as usize),
        ];
        // SAFETY: libc's, and functions with the types of libc's; no team has started.
        unsafe { cere_inside::rebind::replace(fork, &functions) };
        if insist {
            let own = Team::start as *const () as usize;
            let ignored = ignore as *const () as usize;
            let pushes = [
                (c"__kmpc_push_num_threads", ignored),
                (c"__kmpc_push_num_threads_strict", ignored),
            ];
            // SAFETY: what returns nothing and takes what it is given stands for what only notes its arguments.
            unsafe { cere_inside::rebind::replace(own, &pushes) };
        }
        // SAFETY: the runtime's function.
        let fork = unsafe { std::mem::transmute::<usize, Fork>(fork) };
        let team = Team { threads, fork };
        let started = AtomicUsize::new(0);
        team.fork(|_| {
            started.fetch_add(1, Relaxed);
        });
        let started = started.load(Relaxed);
        if started != threads as usize {
            return Err(Error::Threads { started, threads });
        }
        Ok(team)
    }

    /// How many there are.
    pub fn threads(&self) -> u32 {
        self.threads
    }

    /// Runs `work` on each thread, with its number; the calling thread is number 0.
    pub fn each(&self, work: impl Fn(u32) + Sync) {
        if self.threads == 1 {
            return work(0);
        }
        self.fork(work);
    }

    fn fork(&self, work: impl Fn(u32) + Sync) {
        let ident = Ident::unknown();
        let work = Work(&work);
        // SAFETY: as compiled code calls them; all threads have joined before `work` goes.
        unsafe {
            let (own, push) = (
                find(c"__kmpc_global_thread_num"),
                find(c"__kmpc_push_num_threads"),
            );
            if own != 0 && push != 0 {
                // Asked first: the runtime gets to know the calling thread by that.
                let own = std::mem::transmute::<usize, Own>(own)(&ident);
                let push = std::mem::transmute::<usize, Push>(push);
                push(&ident, own, self.threads as i32);
            }
            (self.fork)(&ident, 1, work_here, (&raw const work).cast::<c_void>());
        }
    }

    /// Initialises the locks that there were at entry, and takes those that were held. Their words are zero.
    pub fn make_locks(&self, locks: &[OpenMpLock]) {
        type Act = unsafe extern "C" fn(u64);
        type Init = unsafe extern "C" fn(u64, u32);
        for lock in locks {
            let (init, set) = match lock.nested {
                true => (c"omp_init_nest_lock_with_hint", c"omp_set_nest_lock"),
                false => (c"omp_init_lock_with_hint", c"omp_set_lock"),
            };
            let (init, set) = (find(init), find(set));
            if init == 0 || set == 0 {
                continue;
            }
            // SAFETY: the runtime's functions, and a word of the region's memory, which is open.
            unsafe {
                std::mem::transmute::<usize, Init>(init)(lock.address, lock.hint);
                for _ in 0..lock.held {
                    std::mem::transmute::<usize, Act>(set)(lock.address);
                }
            }
        }
    }

    /// Gives every thread but the calling one its thread-local block at entry.
    pub fn reset(&self, others: Others<'_>) {
        if self.threads > 1 && !others.is_empty() {
            self.each(|number| {
                if number > 0 {
                    others.put_here(number);
                }
            });
        }
    }
}

//! Names the system call that the sandbox refuses a region.
//!
//! A filter traps the calls that the sandbox may refuse, in all threads. The handler makes the trapped call itself, marked
//! by a token as sixth argument: the sandbox decides. What it allows goes on; what it refuses a region ends the replay.

use crate::error::Error;
use crate::heap;
use cere_arch::register::Registers;
use cere_format::replay::{Guard, GuardedCall, Statement};
use cere_inside::call::call;
use libc::{c_void, sock_filter};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static GUARD: OnceLock<(u64, Vec<GuardedCall>)> = OnceLock::new();
/// Whether calls that the capture has no answers of are refused.
pub static SEALED: AtomicBool = AtomicBool::new(false);
static NAMED: AtomicBool = AtomicBool::new(false);
/// Exit status after such a refusal.
const STATUS: i32 = 5;
/// Bytes that are shown of a path.
const SHOWN: usize = 256;
/// The string at `address`, which may lie anywhere: the kernel copies it, as far as there is memory.
fn string(address: i64) -> Option<String> {
    let mut ends = [0; 2];
    let mut bytes = [0u8; SHOWN];
    // SAFETY: a pipe of its own; the kernel refuses to read what is not there.
    let count = unsafe {
        if libc::pipe(ends.as_mut_ptr()) != 0 {
            return None;
        }
        let page = 4096 - (address & 4095) as usize;
        let first = libc::write(ends[1], address as *const c_void, page.min(SHOWN));
        // What lies in the next page may be nothing.
        let second = match first {
            0.. if page < SHOWN => libc::write(
                ends[1],
                (address as usize + page) as *const c_void,
                SHOWN - page,
            ),
            _ => 0,
        };
        match first + second.max(0) {
            1.. => libc::read(ends[0], bytes.as_mut_ptr().cast(), SHOWN),
            _ => 0,
        }
    };
    let text = &bytes[..usize::try_from(count).unwrap_or(0)];
    let text = text.split(|byte| *byte == 0).next()?;
    (!text.is_empty()).then(|| String::from_utf8_lossy(text).into_owned())
}

/// Ends the replay: `number` is a call of code that nobody has read, which was not captured.
pub fn not_captured(number: i64, arguments: [usize; 6]) -> ! {
    let [a, b, c, d, e, _] = arguments.map(|argument| argument as i64);
    end(
        number,
        [a, b, c, d, e],
        "which the captured one did not make: code that nobody has read makes no other",
    )
}

fn refused(number: i64, arguments: [i64; 5], error: i64) -> ! {
    let why = std::io::Error::from_raw_os_error(-error as i32);
    end(
        number,
        arguments,
        &format!(
            "which the sandbox refuses ({why}): no region that was captured whole needs it; --no-sandbox replays without a \
             sandbox, packages that you trust"
        ),
    )
}

fn end(number: i64, arguments: [i64; 5], why: &str) -> ! {
    if NAMED.swap(true, Relaxed) {
        // SAFETY: ends the process.
        unsafe { libc::_exit(STATUS) }
    }
    // The calls from here on are the runtime's own.
    SEALED.store(false, Relaxed);
    heap::ACTIVE.store(false, Relaxed);
    let known = GUARD
        .get()
        .and_then(|g| g.1.iter().find(|c| c.number == number));
    let name = known.map_or_else(|| format!("number {number}"), |c| c.name.clone());
    let path = known.and_then(|c| arguments.get(usize::from(c.path?)));
    let path = path.and_then(|at| string(*at));
    let path = path.map_or(String::new(), |path| format!(" of {path:?}"));
    let text = format!("replay: the region makes the system call {name}{path}, {why}\n");
    // SAFETY: writes to standard error and ends the process.
    unsafe {
        libc::write(2, text.as_ptr().cast(), text.len());
        libc::_exit(STATUS)
    }
}

/// The handler.
pub extern "C" fn trapped(_: i32, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel hands over a valid pointer.
    let mut registers = Registers::of(unsafe { &mut *(context as *mut libc::ucontext_t) });
    let (number, [a, b, c, d, e, _]) = registers.call();
    if SEALED.load(Relaxed) && heap::ACTIVE.load(Relaxed) {
        not_captured(number, [a, b, c, d, e, 0]);
    }
    let token = GUARD.get().map_or(0, |guard| guard.0 as usize);
    // SAFETY: the interrupted code's own call, which the filters below decide.
    let result = unsafe { call(number, [a, b, c, d, e, token]) };
    let denied = [libc::EPERM, libc::EACCES].contains(&(-result as i32));
    if denied && heap::ACTIVE.load(Relaxed) {
        refused(
            number,
            [a, b, c, d, e].map(|argument| argument as i64),
            result as i64,
        );
    }
    registers.set_result(result);
}

/// Puts it into force in all threads.
pub fn install(guard: &Guard) -> Result<(), Error> {
    let _ = GUARD.set((guard.token, guard.calls.clone()));
    // SAFETY: a structure of this function, which the kernel copies; the handler stays.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = trapped as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
        if libc::sigaction(libc::SIGSYS, &action, std::ptr::null_mut()) != 0 {
            return Err(Error::system("cannot handle SIGSYS"));
        }
    }
    filter(&guard.program)
}

/// Adds a filter of system calls to all threads.
pub fn filter(program: &[Statement]) -> Result<(), Error> {
    let statement = |s: &Statement| sock_filter {
        code: s.0,
        jt: s.1,
        jf: s.2,
        k: s.3,
    };
    let program: Vec<sock_filter> = program.iter().map(statement).collect();
    // SAFETY: a structure of this function, which the kernel copies.
    unsafe {
        let program = libc::sock_fprog {
            len: program.len() as u16,
            filter: program.as_ptr().cast_mut(),
        };
        let flags = libc::SECCOMP_FILTER_FLAG_TSYNC | libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
        let set = libc::SECCOMP_SET_MODE_FILTER;
        if libc::syscall(libc::SYS_seccomp, set, flags, &raw const program) != 0 {
            return Err(Error::system("the sandbox's filter of system calls"));
        }
    }
    Ok(())
}

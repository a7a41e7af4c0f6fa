//! The preload library of a tool of LLVM that stays: once it is linked and its constructors have run, it waits for requests
//! instead of calling `main`, and forks a child for each, which does.
//!
//! Requests come on the socket that is its standard input, in one message each, whose bytes do not count. What counts are
//! its descriptors, in the order of [`Request`]. The file of a request has strings that end in zero: its seconds of
//! processor time (empty: not confined), its directory, its number of arguments, these, and its environment.
//!
//! The child's status, as `waitpid` gives it, is written to the request's answer. Who closes their end of that before has
//! the child killed. The end of the socket ends this process, and with it its children.
//!
//! There is one thread, and until a child calls `main` nothing of its request but this has been read.

mod huge;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recvmsg, send};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open, waitpid};
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::fs::File;
use std::io::{IoSliceMut, Read, Seek};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

type Main = unsafe extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;
type Hook = unsafe extern "C" fn();
type Start =
    unsafe extern "C" fn(Main, c_int, *mut *mut c_char, Hook, Hook, Hook, *mut c_void) -> c_int;

type Spawn = unsafe extern "C" fn(
    *mut libc::pid_t,
    *const c_char,
    *const libc::posix_spawn_file_actions_t,
    *const libc::posix_spawnattr_t,
    *const *mut c_char,
    *const *mut c_char,
) -> c_int;

/// The tool's own.
static MAIN: OnceLock<Main> = OnceLock::new();

unsafe extern "C" {
    static mut environ: *mut *mut c_char;
}

/// The function behind ours of this name.
///
/// # Safety
/// `F` is its type.
unsafe fn next<F: Copy>(name: &CStr) -> F {
    // SAFETY: a name that lives on; the tool was linked with this function, so it is there, and a pointer is one word.
    unsafe {
        let found = libc::dlsym(libc::RTLD_NEXT, name.as_ptr());
        std::mem::transmute_copy(&found)
    }
}

/// Starts a tool, with [`serve`] as its `main`: constructors of the executable run in between.
///
/// # Safety
/// The C library's start calls it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __libc_start_main(
    main: Main,
    argc: c_int,
    argv: *mut *mut c_char,
    init: Hook,
    fini: Hook,
    loader: Hook,
    stack: *mut c_void,
) -> c_int {
    MAIN.get_or_init(|| main);
    // SAFETY: its type in the C library, and the arguments that it was to have.
    unsafe {
        let start: Start = next(c"__libc_start_main");
        start(serve, argc, argv, init, fini, loader, stack)
    }
}

/// The descriptors of a message.
struct Request {
    file: OwnedFd,
    /// Standard input, output and error.
    standard: [OwnedFd; 3],
    answer: OwnedFd,
    /// Of landlock.
    ruleset: Option<OwnedFd>,
}

/// A child that runs.
struct Running {
    pid: Pid,
    end: OwnedFd,
    answer: OwnedFd,
    killed: bool,
}

/// The next request; none if there will be no more.
fn receive(control: BorrowedFd) -> Option<Request> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(6))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = [IoSliceMut::new(&mut byte)];
    let flags = RecvFlags::CMSG_CLOEXEC;
    retry_on_intr(|| recvmsg(control, &mut bytes, &mut ancillary, flags)).ok()?;
    let mut files = ancillary.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => files.collect(),
        _ => Vec::new(),
    });
    Some(Request {
        file: files.next()?,
        standard: [files.next()?, files.next()?, files.next()?],
        answer: files.next()?,
        ruleset: files.next(),
    })
}

extern "C" fn serve(_: c_int, _: *mut *mut c_char, _: *mut *mut c_char) -> c_int {
    // SAFETY: takes no pointers. Who started this process may end before it: the socket tells when it is not needed.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, 0) };
    huge::move_code();
    let control = rustix::stdio::stdin();
    let mut running: Vec<Running> = Vec::new();
    loop {
        let mut files = vec![PollFd::from_borrowed_fd(control, PollFlags::IN)];
        for child in &running {
            files.push(PollFd::new(&child.end, PollFlags::IN));
            let wanted = match child.killed {
                false => PollFlags::IN,
                true => PollFlags::empty(),
            };
            files.push(PollFd::new(&child.answer, wanted));
        }
        if poll(&mut files, None).is_err_and(|error| error != Errno::INTR) {
            break;
        }
        let ready: Vec<bool> = files.iter().map(|f| !f.revents().is_empty()).collect();
        let states = ready[1..].chunks_exact(2).map(|r| (r[0], r[1]));
        for (child, (ended, left)) in running.iter_mut().zip(states) {
            if left && !ended && !child.killed {
                let _ = kill_process(child.pid, Signal::KILL);
                child.killed = true;
            }
        }
        let mut ended = ready[1..].chunks_exact(2).map(|r| r[0]);
        running.retain(|child| !(ended.next().unwrap_or(false) && answer(child)));
        if !ready[0] {
            continue;
        }
        let Some(request) = receive(control) else {
            break;
        };
        // SAFETY: there is one thread, so that the child's memory is whole.
        match unsafe { libc::fork() } {
            0 => {
                drop(running);
                return run(request);
            }
            pid => running.extend(watch(pid, request.answer)),
        }
    }
    // SAFETY: ends the process, without what the tool would do at its end.
    unsafe { libc::_exit(0) }
}

/// A child to watch; without one the answer closes, and who waits for it knows.
fn watch(pid: c_int, answer: OwnedFd) -> Option<Running> {
    let pid = Pid::from_raw(pid).filter(|pid| pid.as_raw_nonzero().get() > 0)?;
    let end = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    Some(Running {
        pid,
        end,
        answer,
        killed: false,
    })
}

/// Says how a child ended, if it did.
fn answer(child: &Running) -> bool {
    let Ok(Some((_, status))) = waitpid(Some(child.pid), WaitOptions::NOHANG) else {
        return false;
    };
    let _ = send(
        &child.answer,
        &status.as_raw().to_le_bytes(),
        SendFlags::NOSIGNAL,
    );
    true
}

/// Becomes the process that a request asks for.
fn run(request: Request) -> c_int {
    match become_it(request) {
        // SAFETY: what the C library would call it with.
        Ok((count, arguments)) => unsafe { call_main(count, arguments, environ) },
        Err(error) => {
            eprintln!("cere: cannot run in a tool that stays: {error}");
            // SAFETY: ends the process.
            unsafe { libc::_exit(126) }
        }
    }
}

/// # Safety
/// Both are lists of strings that end in null and live on.
unsafe fn call_main(
    count: c_int,
    arguments: *mut *mut c_char,
    environment: *mut *mut c_char,
) -> c_int {
    // SAFETY: both lists end in null and live on.
    MAIN.get()
        .map_or(126, |main| unsafe { main(count, arguments, environment) })
}

/// Starts a program. Where a driver starts its own file once more, as flang does for each compile, a fork has all that the
/// file would link.
///
/// # Safety
/// As the C library's. Drivers have one thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawn(
    pid: *mut libc::pid_t,
    path: *const c_char,
    actions: *const libc::posix_spawn_file_actions_t,
    attributes: *const libc::posix_spawnattr_t,
    argv: *const *mut c_char,
    envp: *const *mut c_char,
) -> c_int {
    // SAFETY: drivers have one thread; the lists live on in the child, and the C library has this function under this name.
    unsafe {
        if !(actions.is_null() && attributes.is_null() && is_own(CStr::from_ptr(path))) {
            let spawn: Spawn = next(c"posix_spawn");
            return spawn(pid, path, actions, attributes, argv, envp);
        }
        match libc::fork() {
            -1 => *libc::__errno_location(),
            0 => {
                // A driver that is killed takes its compile with it.
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                environ = envp.cast_mut();
                let count = (0..).take_while(|at| !(*argv.add(*at)).is_null()).count();
                libc::exit(call_main(count as c_int, argv.cast_mut(), environ))
            }
            child => {
                *pid = child;
                0
            }
        }
    }
}

/// Whether this process is of the file at `path`.
fn is_own(path: &CStr) -> bool {
    let path = Path::new(OsStr::from_bytes(path.to_bytes()));
    let own = Path::new("/proc/self/exe").canonicalize();
    own.is_ok_and(|own| path.canonicalize().is_ok_and(|path| path == own))
}

/// A list that ends in null and lives on.
fn list<'a>(strings: impl Iterator<Item = &'a mut [u8]>) -> (c_int, *mut *mut c_char) {
    let mut list: Vec<*mut c_char> = strings.map(|s| s.as_mut_ptr().cast()).collect();
    let count = list.len() as c_int;
    list.push(std::ptr::null_mut());
    (count, list.leak().as_mut_ptr())
}

fn become_it(request: Request) -> std::io::Result<(c_int, *mut *mut c_char)> {
    let short = || std::io::Error::other("the request is short");
    let done = |result: c_int| match result {
        -1 => Err(std::io::Error::last_os_error()),
        _ => Ok(()),
    };
    for (at, file) in request.standard.iter().enumerate() {
        // SAFETY: takes no pointers.
        done(unsafe { libc::dup2(file.as_raw_fd(), at as c_int) })?;
    }
    let mut text = Vec::new();
    let mut file = File::from(request.file);
    file.rewind()?;
    file.read_to_end(&mut text)?;
    let mut strings = text.leak().split_inclusive_mut(|byte| *byte == 0);
    let seconds = number(strings.next().ok_or_else(short)?);
    let directory = strings.next().ok_or_else(short)?;
    let count = number(strings.next().ok_or_else(short)?).ok_or_else(short)?;
    let arguments = list(strings.by_ref().take(count as usize));
    // SAFETY: there is one thread; the strings end in zero and live on, as does the list.
    unsafe {
        environ = list(strings).1;
        done(libc::chdir(directory.as_ptr().cast()))?;
    }
    let ruleset = request.ruleset.as_ref().map(AsFd::as_fd);
    cere_sandbox::enter_rest(ruleset, seconds)?;
    // SAFETY: none of them is used any more: they are the server's, and those of this request.
    done(unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) } as c_int)?;
    std::mem::forget((request.standard, request.answer, request.ruleset, file));
    Ok(arguments)
}

/// A number before a zero.
fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text.strip_suffix(b"\0")?)
        .ok()?
        .parse()
        .ok()
}

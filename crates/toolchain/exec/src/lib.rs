//! The preload library of builds: a compiler that is started by an absolute path becomes the wrapper of its name, as one that is
//! found in PATH does. Scripts, and compilers below the build's own directory, which the build may have made, are left alone.
//! And of runs of another build of a program under a launcher: see [`replace`].
//!
//! The functions that start programs run in children of `vfork` and of threads: no allocation and no locks, but for the constructor; errno is kept.

mod replace;

use cere_format::build::{ENV_BUILD, ENV_WRAPPERS};
use libc::{c_char, c_int, pid_t};
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::OnceLock;

type Vector = *const *const c_char;
type Execute = unsafe extern "C" fn(*const c_char, Vector, Vector) -> c_int;
type Simple = unsafe extern "C" fn(*const c_char, Vector) -> c_int;
type Spawn = unsafe extern "C" fn(
    *mut pid_t,
    *const c_char,
    *const libc::posix_spawn_file_actions_t,
    *const libc::posix_spawnattr_t,
    Vector,
    Vector,
) -> c_int;

/// The functions behind ours.
struct Next {
    execve: Execute,
    execvpe: Execute,
    execv: Simple,
    execvp: Simple,
    posix_spawn: Spawn,
    posix_spawnp: Spawn,
}

/// Directories, with a slash at the end.
struct Build {
    wrappers: Vec<u8>,
    directory: Vec<u8>,
}

static NEXT: OnceLock<Next> = OnceLock::new();
static BUILD: OnceLock<Build> = OnceLock::new();

/// # Safety
/// `F` is the type of the function.
unsafe fn behind<F: Copy>(name: &CStr) -> F {
    // SAFETY: the C library has these functions, and a pointer is one word.
    unsafe {
        let found = libc::dlsym(libc::RTLD_NEXT, name.as_ptr());
        std::mem::transmute_copy(&found)
    }
}

fn next() -> &'static Next {
    // SAFETY: the types are those of the C library.
    NEXT.get_or_init(|| unsafe {
        Next {
            execve: behind(c"execve"),
            execvpe: behind(c"execvpe"),
            execv: behind(c"execv"),
            execvp: behind(c"execvp"),
            posix_spawn: behind(c"posix_spawn"),
            posix_spawnp: behind(c"posix_spawnp"),
        }
    })
}

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

/// Reads what the build is, unless this process is a wrapper: what that starts is the compiler.
extern "C" fn start() {
    next();
    replace::replace();
    let variable = |name: &str| std::env::var_os(name).map(OsStringExt::into_vec);
    let (Some(mut wrappers), Some(mut directory)) = (variable(ENV_WRAPPERS), variable(ENV_BUILD))
    else {
        return;
    };
    let wrapper = Path::new(OsStr::from_bytes(&wrappers)).join("cc");
    let this = std::fs::read_link("/proc/self/exe");
    if std::fs::canonicalize(wrapper).ok() == this.ok() {
        // SAFETY: there is one thread, which has not reached `main`.
        unsafe { leave_children() };
        return;
    }
    for path in [&mut wrappers, &mut directory] {
        if path.last() != Some(&b'/') {
            path.push(b'/');
        }
    }
    let _ = BUILD.set(Build {
        wrappers,
        directory,
    });
}

/// Takes this library out of what children load first.
///
/// # Safety
/// There is one thread.
unsafe fn leave_children() {
    // SAFETY: there is one thread; the value is copied before it is changed.
    unsafe {
        let value = libc::getenv(c"LD_PRELOAD".as_ptr());
        if value.is_null() {
            return;
        }
        let entries = CStr::from_ptr(value)
            .to_bytes()
            .split(|b| b": ".contains(b));
        let others: Vec<&[u8]> = entries
            .filter(|e| !e.is_empty() && !e.ends_with(b"/libcere_exec.so"))
            .collect();
        let mut left = others.join(&b':');
        left.push(0);
        match others.is_empty() {
            true => libc::unsetenv(c"LD_PRELOAD".as_ptr()),
            false => libc::setenv(c"LD_PRELOAD".as_ptr(), left.as_ptr().cast(), 1),
        };
    }
}

/// Room for a path.
type Room = [u8; 4096];

/// The path of the wrapper that takes the place of `path`; null if none does.
///
/// # Safety
/// `path` is a C string, `argv` an array of them that ends in null.
unsafe fn wrapper(path: *const c_char, argv: Vector, room: &mut Room) -> *const c_char {
    let none = std::ptr::null();
    let Some(build) = BUILD.get() else {
        return none;
    };
    if path.is_null() || argv.is_null() {
        return none;
    }
    // SAFETY: a C string, and an array that ends in null.
    let (bytes, first) = unsafe { (CStr::from_ptr(path).to_bytes(), *argv) };
    let Some(slash) = bytes.iter().rposition(|b| *b == b'/') else {
        return none;
    };
    let name = &bytes[slash + 1..];
    // Below `/` there is everything.
    let own = build.directory.len() > 1 && bytes.starts_with(&build.directory);
    let length = build.wrappers.len() + name.len();
    if bytes[0] != b'/'
        || own
        || bytes.starts_with(&build.wrappers)
        || name.is_empty()
        || length >= room.len()
        || first.is_null()
    {
        return none;
    }
    // The wrapper knows what it is by its name.
    // SAFETY: the array's first element, a C string.
    let called = unsafe { CStr::from_ptr(first) }.to_bytes();
    if called.rsplit(|b| *b == b'/').next() != Some(name) {
        return none;
    }
    room[..build.wrappers.len()].copy_from_slice(&build.wrappers);
    room[build.wrappers.len()..length].copy_from_slice(name);
    room[length] = 0;
    // SAFETY: both are C strings; errno is this thread's.
    unsafe {
        let errno = *libc::__errno_location();
        let there = libc::access(room.as_ptr().cast(), libc::X_OK) == 0 && is_image(path);
        *libc::__errno_location() = errno;
        if there { room.as_ptr().cast() } else { none }
    }
}

/// Whether the file is one that the kernel runs by itself, not a script, which has reasons of its own.
///
/// # Safety
/// `path` is a C string.
unsafe fn is_image(path: *const c_char) -> bool {
    let mut magic = [0u8; 4];
    // SAFETY: the descriptor is ours, the bytes are this frame's.
    unsafe {
        let file = libc::open(path, libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            return false;
        }
        let read = libc::read(file, magic.as_mut_ptr().cast(), magic.len());
        libc::close(file);
        read == 4 && magic == *b"\x7fELF"
    }
}

/// # Safety
/// As of the C library's, whose function this stands before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execve(path: *const c_char, argv: Vector, envp: Vector) -> c_int {
    let mut room = [0; 4096];
    // SAFETY: the caller's arguments go on unchanged, or with a path of our own.
    unsafe {
        let found = wrapper(path, argv, &mut room);
        (next().execve)(if found.is_null() { path } else { found }, argv, envp)
    }
}

/// # Safety
/// As above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execv(path: *const c_char, argv: Vector) -> c_int {
    let mut room = [0; 4096];
    // SAFETY: the caller's arguments go on unchanged, or with a path of our own.
    unsafe {
        let found = wrapper(path, argv, &mut room);
        (next().execv)(if found.is_null() { path } else { found }, argv)
    }
}

/// # Safety
/// As above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvp(path: *const c_char, argv: Vector) -> c_int {
    let mut room = [0; 4096];
    // SAFETY: the caller's arguments go on unchanged, or with a path of our own.
    unsafe {
        let found = wrapper(path, argv, &mut room);
        (next().execvp)(if found.is_null() { path } else { found }, argv)
    }
}

/// # Safety
/// As above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvpe(path: *const c_char, argv: Vector, envp: Vector) -> c_int {
    let mut room = [0; 4096];
    // SAFETY: the caller's arguments go on unchanged, or with a path of our own.
    unsafe {
        let found = wrapper(path, argv, &mut room);
        (next().execvpe)(if found.is_null() { path } else { found }, argv, envp)
    }
}

macro_rules! spawns {
    ($($function:ident)*) => {
        $(
            /// # Safety
            /// As above.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $function(
                pid: *mut pid_t,
                path: *const c_char,
                actions: *const libc::posix_spawn_file_actions_t,
                attributes: *const libc::posix_spawnattr_t,
                argv: Vector,
                envp: Vector,
            ) -> c_int {
                let mut room = [0; 4096];
                // SAFETY: the caller's arguments go on unchanged, or with a path of our own.
                unsafe {
                    let found = wrapper(path, argv, &mut room);
                    let path = if found.is_null() { path } else { found };
                    (next().$function)(pid, path, actions, attributes, argv, envp)
                }
            }
        )*
    };
}
spawns! { posix_spawn posix_spawnp }

//! Another build in the place of a program, whatever starts that: the program's process executes the build before `main`, with the
//! same arguments and environment.

use cere_format::build::{
    ENV_REPLACED, ENV_REPLACED_PRELOAD, ENV_REPLACED_RANK, ENV_REPLACEMENT, ENV_REPLACING,
};
use cere_format::rank;
use cere_inside::again::execute;
use std::ffi::{OsStr, c_int, c_void};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The id of the process that was replaced: it is so once, also by the same file.
const ENV_DONE: &str = "CERE_REPLACED_PROCESS";

/// Executes the build if this is the program. Where that cannot be executed the process ends: the program's own code is not meant.
pub fn replace() {
    let variable = std::env::var_os;
    let (Some(program), Some(build)) = (variable(ENV_REPLACED), variable(ENV_REPLACEMENT)) else {
        return;
    };
    let own = std::process::id().to_string();
    let (rank, directory) = (rank::own(), variable(ENV_REPLACING));
    if variable(ENV_DONE).is_some_and(|done| *done == *own) {
        if let (Some(directory), Some(rank)) = (&directory, &rank) {
            tell_end(Path::new(directory).join(rank::file(rank, rank::ENDED)));
        }
        return;
    }
    let this = std::fs::read_link("/proc/self/exe");
    let other_rank = || match variable(ENV_REPLACED_RANK) {
        Some(wanted) => rank.as_ref().is_none_or(|own| **own != *wanted),
        None => false,
    };
    let other = this.is_ok_and(|this| this != program) || other_rank();
    if let Some(directory) = &directory {
        tell(Path::new(directory), rank.as_deref(), other);
    }
    if other {
        return;
    }
    let first = variable(ENV_REPLACED_PRELOAD).map(|mut first| {
        if let Some(others) = variable("LD_PRELOAD").filter(|others| !others.is_empty()) {
            first.push(":");
            first.push(others);
        }
        first
    });
    let mut set = vec![(ENV_DONE, OsStr::new(&own))];
    set.extend(
        first
            .as_ref()
            .map(|first| ("LD_PRELOAD", first.as_os_str())),
    );
    // SAFETY: a constructor runs in the only thread, before `main`.
    let why = unsafe { execute(Path::new(&build), &set) };
    eprintln!("cere: cannot execute {}: {why}", build.display());
    std::process::exit(127);
}

/// Where [`ended`] writes, in this process and not in those that it forks.
static ENDED: OnceLock<(u32, PathBuf)> = OnceLock::new();

unsafe extern "C" {
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

extern "C" fn ended(status: c_int, _: *mut c_void) {
    if let Some((process, file)) = ENDED.get()
        && *process == std::process::id()
        && let Ok(mut file) = appended(file)
    {
        let _ = file.write_all(format!("{status}\n").as_bytes());
    }
}

/// The file, to be written at its end.
fn appended(file: &Path) -> std::io::Result<File> {
    OpenOptions::new().create(true).append(true).open(file)
}

/// Has this process add the status with which it calls `exit` to `file`.
fn tell_end(file: PathBuf) {
    if ENDED.set((std::process::id(), file)).is_ok() {
        // SAFETY: glibc keeps the function's address, and this library is never unloaded.
        unsafe { on_exit(ended, std::ptr::null_mut()) };
    }
}

/// Says in `directory` that this process of `rank` runs, the build or another program, and has the build print there.
fn tell(directory: &Path, rank: Option<&str>, other: bool) {
    // A launcher has no rank, and is nobody's business.
    if other && rank.is_none() {
        return;
    }
    let open = |ending| appended(&directory.join(rank::file(rank.unwrap_or_default(), ending)));
    let ending = if other { rank::OTHER } else { rank::RAN };
    if let Ok(mut file) = open(ending) {
        let line = format!("{} {}\n", std::process::id(), rank::size().unwrap_or(0));
        let _ = file.write_all(line.as_bytes());
    }
    if !other
        && rank.is_some()
        && directory.join(rank::APART).exists()
        && let Ok(file) = open(rank::PRINTED)
    {
        // SAFETY: both are descriptors; the second is this process's standard output, which nothing of Rust owns.
        unsafe { libc::dup2(file.as_raw_fd(), libc::STDOUT_FILENO) };
    }
}

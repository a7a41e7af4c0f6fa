//! Another build in the place of a program, whatever starts that: the program's process executes the build before `main`, with the
//! same arguments and environment.

use cere_format::build::{
    ENV_REPLACED, ENV_REPLACED_PRELOAD, ENV_REPLACED_RANK, ENV_REPLACEMENT, ENV_REPLACING,
};
use cere_format::rank;
use cere_inside::again::execute;
use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

/// The id of the process that was replaced: it is so once, also by the same file.
const ENV_DONE: &str = "CERE_REPLACED_PROCESS";

/// Executes the build if this is the program. Where that cannot be executed the process ends: the program's own code is not meant.
pub fn replace() {
    let variable = std::env::var_os;
    let (Some(program), Some(build)) = (variable(ENV_REPLACED), variable(ENV_REPLACEMENT)) else {
        return;
    };
    let own = std::process::id().to_string();
    let this = std::fs::read_link("/proc/self/exe");
    let other_rank = || match variable(ENV_REPLACED_RANK) {
        Some(rank) => rank::own().is_none_or(|own| *own != *rank),
        None => false,
    };
    if this.is_ok_and(|this| this != program)
        || variable(ENV_DONE).is_some_and(|done| *done == *own)
        || other_rank()
    {
        return;
    }
    if let Some(file) = variable(ENV_REPLACING)
        && let Ok(mut file) = OpenOptions::new().append(true).open(file)
    {
        let _ = file.write_all(b".");
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

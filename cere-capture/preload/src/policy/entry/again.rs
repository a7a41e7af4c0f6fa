//! A program that a launcher starts gets what one that the command starts has: fixed addresses, room for the stack, and all functions
//! bound before a capture. Launchers that have the program started by a daemon pass on none of these. Ordinary code, before `main`.

use crate::os::images;
use cere_format::capture::{RunMode, RunPlan};
use cere_inside::again::execute;
use std::ffi::OsStr;

/// The id of the process that was started again: it is so once.
const ENV_AGAIN: &str = "CERE_AGAIN";

/// Starts the program again in this process if it lacks something. Returns if it does not, or if that cannot be had: then the run goes on
/// without.
pub fn start_again(plan: &RunPlan) {
    let own = std::process::id().to_string();
    let done = || std::env::var_os(ENV_AGAIN).is_some_and(|id| *id == *own);
    if !plan.launched || done() || !is_instrumented() {
        return;
    }
    let binds =
        !matches!(plan.mode, RunMode::Capture { .. }) || std::env::var_os("LD_BIND_NOW").is_some();
    if binds && has_fixed_addresses() {
        return;
    }
    let Ok(file) = std::fs::read_link("/proc/self/exe") else {
        return;
    };
    fix_addresses();
    let mut set = vec![(ENV_AGAIN, OsStr::new(&own))];
    if !binds {
        set.push(("LD_BIND_NOW", OsStr::new("1")));
    }
    // SAFETY: a constructor runs in the only thread, before `main`.
    unsafe { execute(&file, &set) };
}

/// Whether an image of the process has regions.
fn is_instrumented() -> bool {
    let images = images::list_loaded();
    let mut loaded = images.iter().filter(|image| image.range.0 != 0);
    loaded.any(|image| !images::read_sections(image).regions.is_empty())
}

fn has_fixed_addresses() -> bool {
    // SAFETY: a plain query.
    let now = unsafe { libc::personality(0xffff_ffff) };
    now < 0 || now & libc::ADDR_NO_RANDOMIZE != 0
}

/// For the program that is executed next.
fn fix_addresses() {
    // SAFETY: plain settings of this process, with a structure of our own.
    unsafe {
        let now = libc::personality(0xffff_ffff);
        libc::personality((now | libc::ADDR_NO_RANDOMIZE) as libc::c_ulong);
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_STACK, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_STACK, &limit);
        }
    }
}

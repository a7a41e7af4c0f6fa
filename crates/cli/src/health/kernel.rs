//! Kernel features that captures and replays need. Each is tried, because a container may refuse what the kernel version has.
//! CERE uses neither ptrace nor userfaultfd, so these are not checked.

use crate::health::item::{Item, is_root};
use cere_format::proc;
use cere_sandbox::Sandbox;
use std::io::Error;
use std::os::fd::{FromRawFd, OwnedFd};

/// All items.
pub fn items() -> Vec<Item> {
    let mut items = match cere_arch::HERE.facts().captures {
        true => vec![dispatch(), referenced_pages(), stack(), fixed_addresses()],
        false => vec![no_capture()],
    };
    items.extend([pidfd(), fixed_mappings(), counter(), events()]);
    items.extend(sandbox());
    items
}

/// The remedy where a container refuses a feature.
const CONTAINER: &str = "run CERE outside of the container, or allow the call there (docker: --security-opt seccomp=unconfined)";

/// What takes the place of captures' items on an architecture without.
fn no_capture() -> Item {
    Item::limited(
        "capture",
        format!(
            "does not work on {}: `cere instrument`, `profile`, `capture`, `hybrid` and counts need x86-64; replays work",
            cere_arch::HERE.processor()
        ),
        "capture on an x86-64 machine, and bring its .codelet files here",
    )
}

/// Syscall User Dispatch: system calls of a captured region are seen in the process.
fn dispatch() -> Item {
    const NAME: &str = "Syscall User Dispatch";
    const PR_SET_SYSCALL_USER_DISPATCH: libc::c_int = 59;
    const ON: libc::c_ulong = 1;
    const OFF: libc::c_ulong = 0;
    // Zero: all calls are let through.
    let selector = 0u8;
    // SAFETY: the selector outlives the dispatch, which is of this thread alone and ends with the second call.
    let refused = unsafe {
        let none: libc::c_ulong = 0;
        let at = &raw const selector;
        let on = libc::prctl(PR_SET_SYSCALL_USER_DISPATCH, ON, none, none, at);
        let error = Error::last_os_error();
        libc::prctl(PR_SET_SYSCALL_USER_DISPATCH, OFF, none, none, none);
        (on != 0).then_some(error)
    };
    match refused {
        None => Item::good(NAME, "works"),
        Some(error) => Item::missing(
            NAME,
            format!("refused ({error}): `cere capture` does not work"),
            format!("take Linux 5.11 or later; if it is that, {CONTAINER}"),
        ),
    }
}

/// pidfd: the end of a child is waited for.
fn pidfd() -> Item {
    const NAME: &str = "pidfd";
    // SAFETY: takes no pointers.
    let found = unsafe { libc::syscall(libc::SYS_pidfd_open, libc::getpid(), 0) };
    if found < 0 {
        return Item::missing(
            NAME,
            format!(
                "pidfd_open is refused ({}): no program can be run",
                Error::last_os_error()
            ),
            format!("take Linux 5.3 or later; if it is that, {CONTAINER}"),
        );
    }
    // SAFETY: it was opened just now, and nobody else has it.
    drop(unsafe { OwnedFd::from_raw_fd(found as i32) });
    Item::good(NAME, "works")
}

/// MAP_FIXED_NOREPLACE: replays map captured addresses only where nothing is mapped.
fn fixed_mappings() -> Item {
    const NAME: &str = "MAP_FIXED_NOREPLACE";
    const PAGE: usize = cere_format::PAGE as usize;
    let map = |at: *mut libc::c_void, flags| {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags;
        // SAFETY: a mapping of its own; nothing is replaced by it.
        unsafe { libc::mmap(at, PAGE, libc::PROT_NONE, flags, -1, 0) }
    };
    let first = map(std::ptr::null_mut(), 0);
    if first == libc::MAP_FAILED {
        let why = format!("memory cannot be mapped: {}", Error::last_os_error());
        return Item::missing(NAME, why, "raise the limit of memory (`ulimit -v`)");
    }
    let second = map(first, libc::MAP_FIXED_NOREPLACE);
    let error = Error::last_os_error();
    let known = second == libc::MAP_FAILED && error.raw_os_error() == Some(libc::EEXIST);
    for mapping in [first, second] {
        if mapping != libc::MAP_FAILED {
            // SAFETY: mapped above, and used by nobody.
            unsafe { libc::munmap(mapping, PAGE) };
        }
    }
    match known {
        true => Item::good(NAME, "works"),
        false => Item::missing(
            NAME,
            "the kernel does not know it: no codelet can be replayed",
            "take Linux 4.17 or later",
        ),
    }
}

/// Fixed addresses: all runs of a program then have the same ones.
fn fixed_addresses() -> Item {
    const NAME: &str = "fixed addresses";
    // SAFETY: takes no pointers; what is changed counts from the next program on, and is changed back.
    let refused = unsafe {
        let now = libc::personality(0xffff_ffff);
        let fixed = now as libc::c_ulong | libc::ADDR_NO_RANDOMIZE as libc::c_ulong;
        let set = if now < 0 {
            now
        } else {
            libc::personality(fixed)
        };
        let error = Error::last_os_error();
        if set >= 0 {
            libc::personality(now as libc::c_ulong);
        }
        (set < 0).then_some(error)
    };
    match refused {
        None => Item::good(NAME, "works (personality)"),
        Some(error) => Item::limited(
            NAME,
            format!("personality is refused ({error}): addresses differ from run to run"),
            CONTAINER,
        ),
    }
}

/// Stack: captured programs get an unlimited one.
fn stack() -> Item {
    const NAME: &str = "stack";
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: a structure of our own.
    let failed = unsafe { libc::getrlimit(libc::RLIMIT_STACK, &mut limit) } != 0;
    match limit.rlim_max {
        _ if failed => Item::limited(NAME, "its limit is not known", "see `ulimit -Hs`"),
        libc::RLIM_INFINITY => Item::good(NAME, "may be unlimited"),
        bytes => Item::limited(
            NAME,
            format!(
                "is limited to {} KiB: regions that need more fail",
                bytes >> 10
            ),
            "raise the hard limit (`ulimit -Hs unlimited` as root)",
        ),
    }
}

/// Referenced bits of pages: a capture uses them to detect that a region touches another thread's stack.
fn referenced_pages() -> Item {
    const NAME: &str = "referenced pages";
    match std::fs::write("/proc/self/clear_refs", "1") {
        Ok(()) => Item::good(NAME, "works (/proc/self/clear_refs)"),
        Err(error) => Item::limited(
            NAME,
            format!(
                "/proc/self/clear_refs is refused ({error}): a region that touches another thread's stack is not detected"
            ),
            "take a kernel with CONFIG_PROC_PAGE_MONITOR",
        ),
    }
}

/// The counter: all regions are timed by it.
fn counter() -> Item {
    use cere_arch::counter::{NAME, is_steady};
    match is_steady(&proc::cpuinfo()) {
        Some(true) => Item::good(
            NAME,
            format!("steady, {:.0} MHz", cere_timing::clock::calibrate(20) / 1e6),
        ),
        Some(false) => Item::limited(
            NAME,
            "it may change its rate with the processor's: times are unreliable",
            "take a machine whose /proc/cpuinfo has constant_tsc and nonstop_tsc",
        ),
        None => Item::missing(
            NAME,
            "the processor has no rdtscp: nothing can be timed",
            "take a newer x86-64 processor; in a virtual machine, pass the processor through",
        ),
    }
}

/// Performance events, which `cere count --hardware` and the evidence of `cere asm` ask for.
fn events() -> Item {
    const NAME: &str = "performance events";
    const FILE: &str = "/proc/sys/kernel/perf_event_paranoid";
    let level = std::fs::read_to_string(FILE).ok();
    match level.and_then(|text| text.trim().parse::<i32>().ok()) {
        _ if is_root() => Item::good(NAME, "allowed to root"),
        Some(level) if level <= OWN_EVENTS => {
            Item::good(NAME, format!("allowed for own programs (level {level})"))
        }
        Some(level) => Item::limited(
            NAME,
            format!("refused to this user (level {level}): `cere count --hardware` counts nothing"),
            format!("`sudo sysctl kernel.perf_event_paranoid={OWN_EVENTS}`"),
        )
        .mended_as_root(&format!("sysctl kernel.perf_event_paranoid={OWN_EVENTS}")),
        None => Item::limited(
            NAME,
            "the kernel has none: `cere count --hardware` counts nothing",
            "take a kernel with CONFIG_PERF_EVENTS",
        ),
    }
}

/// The highest level at which a user may count in programs of their own.
const OWN_EVENTS: i32 = 2;

/// Settings that refuse user namespaces, and the value that allows them.
const NAMESPACES: [(&str, &str); 2] = [
    ("kernel.unprivileged_userns_clone", "1"),
    ("kernel.apparmor_restrict_unprivileged_userns", "0"),
];

/// The command that allows user namespaces, if a setting refuses them.
fn allows_namespaces() -> Option<String> {
    let refuses = |(name, allowed): &&(&str, &str)| {
        let file = format!("/proc/sys/{}", name.replace('.', "/"));
        std::fs::read_to_string(file).is_ok_and(|value| value.trim() != *allowed)
    };
    let (name, allowed) = NAMESPACES.iter().find(refuses)?;
    Some(format!("sysctl {name}={allowed}"))
}

/// The layers of the sandbox that this system refuses, if any.
fn sandbox() -> Vec<Item> {
    const NAME: &str = "sandbox";
    let warnings = Sandbox::new().warnings();
    if warnings.is_empty() {
        return vec![Item::good(
            NAME,
            "user namespaces, landlock and seccomp work",
        )];
    }
    let remedy = "replay only packages that you trust; or allow unprivileged user namespaces, take Linux 6.2 or later for \
                  landlock, run outside of the container";
    let items = warnings.into_iter();
    let command = allows_namespaces();
    let item = |why: String| {
        let of_namespaces = command.as_ref().filter(|_| why.contains("namespace"));
        let item = Item::limited(NAME, why, remedy);
        match of_namespaces {
            Some(command) => item.mended_as_root(command),
            None => item,
        }
    };
    items.map(item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::item::State;

    /// The features that the tests of captures need work here.
    #[test]
    fn this_kernel() {
        for item in items() {
            assert_ne!(item.state, State::Missing, "{item:?}");
            assert_eq!(item.remedy.is_none(), item.state == State::Good, "{item:?}");
        }
    }
}

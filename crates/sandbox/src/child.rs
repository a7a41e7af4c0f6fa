//! What the child does between fork and exec: plain system calls, in an order that matters.

use crate::calls::OWN_ID;
use libc::sock_filter;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Limits of resources.
pub(crate) struct Limits {
    pub anywhere: [(libc::__rlimit_resource_t, u64); 3],
    /// Only in a user namespace: elsewhere the user's other processes would count.
    pub processes: u64,
}

/// All of it, prepared.
pub(crate) struct Steps {
    namespaces: Option<Maps>,
    ruleset: Option<OwnedFd>,
    filters: Vec<Vec<sock_filter>>,
    limits: Limits,
}

/// The user's own ids, as a user namespace is told them.
pub(crate) struct Maps([(&'static CStr, Vec<u8>); 3]);

impl Maps {
    pub(crate) fn new() -> Self {
        // SAFETY: neither fails.
        let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
        Self([
            (c"/proc/self/setgroups", b"deny".to_vec()),
            (
                c"/proc/self/uid_map",
                format!("{user} {user} 1\n").into_bytes(),
            ),
            (
                c"/proc/self/gid_map",
                format!("{group} {group} 1\n").into_bytes(),
            ),
        ])
    }

    /// Leaves the network, the shared memory and the user namespace of the parent.
    pub(crate) fn enter(&self) -> io::Result<()> {
        let namespaces = libc::CLONE_NEWUSER | libc::CLONE_NEWNET | libc::CLONE_NEWIPC;
        // SAFETY: concerns this process alone.
        done(unsafe { libc::unshare(namespaces) }.into())?;
        for (path, text) in &self.0 {
            // SAFETY: strings and buffers that live on.
            unsafe {
                let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
                done(file.into())?;
                let written = libc::write(file, text.as_ptr().cast(), text.len());
                let failed = (written < 0).then(io::Error::last_os_error);
                libc::close(file);
                failed.map_or(Ok(()), Err)?;
            }
        }
        Ok(())
    }
}

fn done(result: i64) -> io::Result<()> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

fn limit(resource: libc::__rlimit_resource_t, most: u64) -> io::Result<()> {
    // SAFETY: a structure on the stack.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        done(libc::getrlimit(resource, &mut limit).into())?;
        limit.rlim_max = limit.rlim_max.min(most);
        limit.rlim_cur = limit.rlim_cur.min(limit.rlim_max);
        done(libc::setrlimit(resource, &limit).into())
    }
}

/// Gives up all capabilities, those in the namespace too; without new privileges exec brings none back.
fn drop_capabilities() -> io::Result<()> {
    const VERSION_3: u32 = 0x2008_0522;
    let header = [VERSION_3, 0];
    let none = [0u32; 6];
    // SAFETY: header and data as version 3 has them.
    unsafe {
        done(
            libc::prctl(
                libc::PR_CAP_AMBIENT,
                libc::PR_CAP_AMBIENT_CLEAR_ALL,
                0,
                0,
                0,
            )
            .into(),
        )?;
        done(libc::syscall(
            libc::SYS_capset,
            header.as_ptr(),
            none.as_ptr(),
        ))
    }
}

/// Adds a filter of system calls.
fn filter(program: &[sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: the kernel copies the program.
    done(unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW,
            &raw const program,
        )
    })
}

/// Has signals end this process that the parent has ignored or blocked: the limits end it by some. Not those by which people end
/// or stop a command.
fn reset_signals() {
    const PEOPLES: [i32; 7] = [
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGTERM,
        libc::SIGTSTP,
        libc::SIGTTIN,
        libc::SIGTTOU,
    ];
    let (default, none) = ([0usize; 4], 0u64);
    for signal in (1..=64).filter(|signal| !PEOPLES.contains(signal)) {
        // SAFETY: the kernel's structure, all zero; what cannot be set is refused.
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), 0, 8) };
    }
    // SAFETY: a set of signals in the kernel's size.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &raw const none,
            0,
            8,
        )
    };
}

/// What is left to a child of a server that has entered the [`Steps`] of one: the limit of processor time, and its files.
pub(crate) fn enter_rest(ruleset: Option<BorrowedFd>, seconds: Option<u64>) -> io::Result<()> {
    // SAFETY: concerns this process alone.
    done(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) }.into())?;
    seconds.map_or(Ok(()), |seconds| limit(libc::RLIMIT_CPU, seconds))?;
    ruleset.map_or(Ok(()), restrict)
}

fn restrict(ruleset: BorrowedFd) -> io::Result<()> {
    // SAFETY: concerns this process alone.
    done(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) })
}

impl Steps {
    pub(crate) fn new(
        namespaces: bool,
        ruleset: Option<OwnedFd>,
        filters: Vec<Vec<sock_filter>>,
        limits: Limits,
    ) -> Self {
        Self {
            namespaces: namespaces.then(Maps::new),
            ruleset,
            filters,
            limits,
        }
    }

    /// Takes everything away, the means to do so at last.
    pub(crate) fn enter(&mut self) -> io::Result<()> {
        reset_signals();
        for (resource, most) in self.limits.anywhere {
            limit(resource, most)?;
        }
        if let Some(maps) = &self.namespaces {
            maps.enter()?;
            limit(libc::RLIMIT_NPROC, self.limits.processes)?;
        }
        // SAFETY: these concern this process alone.
        unsafe {
            done(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0).into())?;
            drop_capabilities()?;
            // What was inherited open ends at exec; the kernel may be older than the call.
            libc::syscall(
                libc::SYS_close_range,
                3,
                u32::MAX,
                libc::CLOSE_RANGE_CLOEXEC,
            );
            // After a change of credentials, which forgets it.
            done(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL).into())?;
        }
        if let Some(ruleset) = &self.ruleset {
            restrict(ruleset.as_fd())?;
        }
        // SAFETY: never fails.
        let own = unsafe { libc::getpid() } as u32;
        for statement in self.filters.iter_mut().flatten() {
            if statement.k == OWN_ID {
                statement.k = own;
            }
        }
        self.filters.iter().try_for_each(|program| filter(program))
    }
}

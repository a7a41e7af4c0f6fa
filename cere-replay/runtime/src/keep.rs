//! Keeps a captured state restored for replays that follow one another. Each is a fork in which an executable takes this
//! one's place ([`crate::enter`]): it finds the memory that no invocation changes, and whatever it does to it, the next one does not see.

use crate::error::Error;
use crate::package::{self, Package};
use crate::{enter, guard, kept, space};
use cere_format::replay::{KEEP_SOCKET, KeepPlan, KeptAnswer, KeptRequest};
use std::ffi::CString;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::FromRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Exit status of a fork whose executable could not take over.
const FAILED: i32 = 2;

/// Restores the state and serves requests until the socket closes.
pub fn serve(plan: &Path) -> Result<(), Error> {
    let plan: KeepPlan = package::read("the plan", plan)?;
    let own = Package::open(&plan.package)?;
    package::reserve(own.manifest, &own.pages)?;
    space::open(own.manifest, &own.pages.all)?;
    space::populate(kept::pages(own.manifest, &own.pages));
    own.pages.restore_all(kept::pages(own.manifest, &own.pages));
    // SAFETY: the descriptor that was inherited for this; nothing else here uses it.
    let socket = unsafe { File::from_raw_fd(KEEP_SOCKET) };
    let failed = |error| Error::of_system("the socket of requests")(error);
    let answer = |answer: KeptAnswer| {
        let mut line = serde_json::to_vec(&answer).map_err(Error::json("an answer"))?;
        line.push(b'\n');
        (&socket).write_all(&line).map_err(failed)
    };
    answer(KeptAnswer::Ready)?;
    let mut lines = BufReader::new(&socket).lines();
    let mut before: Option<i32> = None;
    while let Some(line) = lines.next().transpose().map_err(failed)? {
        if let Some(fork) = before.take() {
            // Not sooner: who asked for it may still kill it by its number, which until now nobody else gets.
            // SAFETY: waits for a fork of this process, which has ended.
            unsafe { libc::waitpid(fork, std::ptr::null_mut(), 0) };
        }
        let request: KeptRequest = serde_json::from_str(&line).map_err(Error::json("a request"))?;
        // SAFETY: one thread runs here, so the fork has all that it needs.
        let fork = unsafe { libc::fork() };
        match fork {
            -1 => {
                return Err(Error::system("the kept state cannot be forked"));
            }
            0 => {
                let error = replay(&plan, &request);
                eprintln!("replay: {error}");
                // SAFETY: ends the fork.
                unsafe { libc::_exit(FAILED) }
            }
            fork => {
                answer(KeptAnswer::Started(fork))?;
                let status = status_of(fork).map_err(failed)?;
                answer(KeptAnswer::Ended(status))?;
                before = Some(fork);
            }
        }
    }
    Ok(())
}

/// Waits until a fork has ended, and leaves it to be waited for; its status as `waitpid` gives it.
fn status_of(fork: i32) -> std::io::Result<i32> {
    // SAFETY: zeros are a structure that the call fills.
    let (ended, found) = unsafe {
        let mut found: libc::siginfo_t = std::mem::zeroed();
        let flags = libc::WEXITED | libc::WNOWAIT;
        let ended = libc::waitid(libc::P_PID, fork as u32, &raw mut found, flags);
        (ended, found)
    };
    if ended != 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: a structure about a child.
    let value = unsafe { found.si_status() };
    Ok(match found.si_code {
        libc::CLD_EXITED => value << 8,
        libc::CLD_DUMPED => value | 0x80,
        _ => value,
    })
}

/// In the fork: becomes the replay; returns why it could not.
fn replay(plan: &KeepPlan, request: &KeptRequest) -> Error {
    let mut variables: Vec<(Vec<u8>, Vec<u8>)> = std::env::vars_os()
        .map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()))
        .collect();
    for (name, value) in &request.environment {
        variables.retain(|variable| variable.0 != name.as_bytes());
        variables.extend(
            value
                .iter()
                .map(|value| (name.clone().into_bytes(), value.clone().into_bytes())),
        );
    }
    let lines = variables
        .into_iter()
        .map(|(name, value)| [name, value].join(&b'='));
    let environment: Result<Vec<CString>, _> = lines.map(CString::new).collect();
    let environment = match environment {
        Ok(environment) => environment.leak(),
        Err(cause) => {
            return Error::Zero {
                what: "the environment",
                cause,
            };
        }
    };
    // SAFETY: concern this fork alone. It ends with the process that keeps the state; the socket is not the replay's.
    let own = unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::syscall(libc::SYS_close_range, KEEP_SOCKET, u32::MAX, 0);
        libc::getpid() as u32
    };
    for filter in &plan.filters {
        let mut filter = filter.clone();
        for statement in filter
            .iter_mut()
            .filter(|statement| statement.3 == plan.own_id)
        {
            statement.3 = own;
        }
        if let Err(error) = guard::filter(&filter) {
            return error;
        }
    }
    enter::enter(&request.executable, environment)
}

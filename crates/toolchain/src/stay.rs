//! Tools that stay: from its third run on, a tool of LLVM is a server that has linked and forks for each run (`cere-stay`).
//!
//! There is one server of a tool for each process and each kind of sandbox. It ends with this process, whose end closes the
//! socket. One that was replaced on disk is started again, as a new start would be.

use crate::error::stamp;
use crate::tools::{CLANG, FLANG, LLD, OBJCOPY, OPT};
use cere_sandbox::{Kind, Rest, Sandbox};
use cere_system::events::Events;
use cere_system::process::in_path;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, SocketFlags,
    SocketType, sendmsg, shutdown, socketpair,
};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Runs of a tool before it stays.
const OFTEN: u32 = 2;
const TOOLS: [&str; 5] = [CLANG, FLANG, OPT, LLD, OBJCOPY];
const ENV_PRELOAD: &str = "LD_PRELOAD";

/// The preload library, and where the tools that stay are reported.
static ALLOWED: OnceLock<(PathBuf, Events)> = OnceLock::new();
/// By tool and whether it is confined.
static TOOLS_HERE: Mutex<BTreeMap<(String, bool), Tool>> = Mutex::new(BTreeMap::new());

/// What is known of a tool.
#[derive(Default)]
struct Tool {
    runs: u32,
    server: Option<Arc<Server>>,
    /// It cannot stay.
    refused: bool,
}

/// A tool that waits for requests.
pub struct Server {
    control: OwnedFd,
    child: Child,
    stamp: Vec<u8>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = shutdown(&self.control, Shutdown::Both);
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(name: &str, file: &Path, stamp: Vec<u8>, sandbox: &Sandbox) -> std::io::Result<Self> {
        let (ours, its) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        let library = ALLOWED.get().map(|(library, _)| library);
        let mut preload = library.map(OsString::from).unwrap_or_default();
        if let Some(others) = std::env::var_os(ENV_PRELOAD) {
            preload.push(":");
            preload.push(others);
        }
        let mut command = Command::new(file);
        command.arg0(name).env(ENV_PRELOAD, preload);
        // Children then need not look up symbols.
        command.env("LD_BIND_NOW", "1");
        command.stdin(its).stdout(Stdio::null());
        sandbox.confine_server(&mut command, Kind::Tool);
        Ok(Self {
            control: ours,
            child: command.spawn()?,
            stamp,
        })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Has a child run `command`; `rest` is what its sandbox gives it, `standard` its input, output and error.
    ///
    /// # Errors
    /// The kernel's, where the server is gone.
    pub fn run(
        &self,
        command: &Command,
        rest: Option<&Rest>,
        standard: [BorrowedFd; 3],
    ) -> std::io::Result<Served> {
        let mut file = File::from(memfd_create("request", MemfdFlags::CLOEXEC)?);
        file.write_all(&request(command, rest)?)?;
        let (ours, its) = socketpair(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )?;
        let [input, output, error] = standard;
        let mut files = vec![file.as_fd(), input, output, error, its.as_fd()];
        files.extend(rest.and_then(|rest| rest.ruleset.as_ref()).map(AsFd::as_fd));
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(6))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(&files));
        let bytes = [IoSlice::new(&[0])];
        retry_on_intr(|| sendmsg(&self.control, &bytes, &mut ancillary, SendFlags::NOSIGNAL))?;
        Ok(Served(ours))
    }
}

/// The strings of a request, as `cere-stay` reads them.
fn request(command: &Command, rest: Option<&Rest>) -> std::io::Result<Vec<u8>> {
    let mut environment: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => environment.insert(name.to_owned(), value.to_owned()),
            None => environment.remove(name),
        };
    }
    let scratch = rest.and_then(|rest| rest.scratch.as_ref());
    environment.extend(scratch.map(|scratch| ("TMPDIR".into(), scratch.into())));
    let seconds = rest.map_or(String::new(), |rest| rest.seconds.to_string());
    let here = std::env::current_dir()?;
    let directory = here.join(command.get_current_dir().unwrap_or(Path::new("")));
    let count = (1 + command.get_args().len()).to_string();
    let mut strings = vec![
        OsStr::new(&seconds),
        directory.as_os_str(),
        OsStr::new(&count),
    ];
    strings.push(command.get_program());
    strings.extend(command.get_args());
    let mut bytes = Vec::new();
    for string in strings {
        bytes.extend(string.as_bytes());
        bytes.push(0);
    }
    for (name, value) in environment {
        bytes.extend([name.as_bytes(), b"=", value.as_bytes(), b"\0"].concat());
    }
    Ok(bytes)
}

/// A child of a server.
pub struct Served(OwnedFd);

impl Served {
    /// Its status, and whether it ran longer than `limit` and was killed.
    ///
    /// # Errors
    /// The server was killed, or the kernel's.
    pub fn within(self, limit: Option<Duration>) -> std::io::Result<(ExitStatus, bool)> {
        let start = Instant::now();
        let late = loop {
            let left = limit.map(|limit| limit.saturating_sub(start.elapsed()));
            let timeout = left.and_then(|left| Timespec::try_from(left).ok());
            match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], timeout.as_ref()) {
                Err(Errno::INTR) => {}
                found => break found? == 0,
            }
        };
        if late {
            // Has the server kill it.
            shutdown(&self.0, Shutdown::Write)?;
        }
        let mut status = [0; 4];
        File::from(self.0).read_exact(&mut status)?;
        Ok((ExitStatus::from_raw(i32::from_le_bytes(status)), late))
    }
}

/// Lets tools of this process stay, with the library at `library` in them.
pub fn allow(library: PathBuf, events: &Events) {
    ALLOWED.get_or_init(|| (library, events.clone()));
}

fn with<T>(name: &str, sandbox: &Sandbox, what: impl FnOnce(&mut Tool) -> T) -> T {
    let mut tools = TOOLS_HERE.lock().unwrap_or_else(PoisonError::into_inner);
    what(tools.entry((name.to_owned(), sandbox.is_on())).or_default())
}

/// The server of `name`, if that is a tool that runs often.
pub fn server(name: &str, sandbox: &Sandbox) -> Option<Arc<Server>> {
    let (_, events) = ALLOWED.get().filter(|_| TOOLS.contains(&name))?;
    with(name, sandbox, |tool| {
        tool.runs = tool.runs.saturating_add(1);
        if tool.runs <= OFTEN || tool.refused {
            return None;
        }
        let file = in_path(name)?;
        let now = stamp(&file.canonicalize().ok()?).ok()?;
        if let Some(server) = tool.server.as_ref().filter(|server| server.stamp == now) {
            return Some(server.clone());
        }
        // A script would have its interpreter stay.
        if !is_elf(&file) {
            events.detail(format!("{name} does not stay: it is a script"));
            tool.refused = true;
            return None;
        }
        events.detail(format!("{name} stays"));
        // Who cannot be started is started once more, for its error.
        let started = Server::start(name, &file, now, sandbox).ok()?;
        tool.server = Some(Arc::new(started));
        tool.server.clone()
    })
}

/// Has the next run of `name` start a server in the place of `gone`; or none, if this was the last try.
pub fn replace(
    name: &str,
    sandbox: &Sandbox,
    gone: &Arc<Server>,
    error: &std::io::Error,
    last: bool,
) {
    with(name, sandbox, |tool| {
        tool.server.take_if(|server| Arc::ptr_eq(server, gone));
        if last && !tool.refused {
            if let Some((_, events)) = ALLOWED.get() {
                events.warning(format!(
                    "{name} does not stay ({error}) and is started anew for each run, which takes longer"
                ));
            }
            tool.refused = true;
        }
    });
}

fn is_elf(file: &Path) -> bool {
    let mut magic = [0; 4];
    let read = File::open(file).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == *b"\x7fELF"
}

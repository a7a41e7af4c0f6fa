//! Starts a replay executable in the sandbox and reads its outcome.

use crate::counters::{Opening, Readings};
use crate::{Options, ReplayError};
use cere_driver::{CompileError, io};
use cere_format::package::Manifest;
use cere_format::replay::{ENV_PLAN, ReplayOutcome, ReplayPlan};
use cere_format::untrusted;
use cere_process::wait;
use cere_sandbox::{Kind, Task, ended_by};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// What the environment says of teams and their places: a replay's are as its options say.
const FORGOTTEN: [&str; 10] = [
    "OMP_THREAD_LIMIT",
    "OMP_PLACES",
    "OMP_PROC_BIND",
    "OMP_SCHEDULE",
    "OMP_NUM_TEAMS",
    "OMP_TEAMS_THREAD_LIMIT",
    "KMP_AFFINITY",
    "KMP_HW_SUBSET",
    "KMP_ALL_THREADS",
    "KMP_DEVICE_THREAD_LIMIT",
];

/// Bytes that are kept of what a replay writes to standard error.
const MESSAGE: u64 = 64 << 10;

/// What a run is watched with.
pub enum Watch {
    /// Its own clock.
    Clock,
    /// Counted code, which writes to this descriptor.
    Stream(OwnedFd),
    /// Counters of the kernel.
    Counters(Opening),
}

impl Watch {
    /// What the executable inherits.
    fn descriptors(&self) -> Vec<RawFd> {
        match self {
            Self::Clock => Vec::new(),
            Self::Stream(stream) => vec![stream.as_raw_fd()],
            Self::Counters(counters) => counters.descriptors(),
        }
    }
}

/// A replay's own directory. It may write the outcome's file there, and standard error.
struct Place(tempfile::TempDir);

impl Place {
    fn in_cache(cache: &Path) -> Result<Self, CompileError> {
        let new = tempfile::Builder::new().prefix("run.").tempdir_in(cache);
        new.map(Self).map_err(io("write into", cache))
    }
    fn plan(&self) -> PathBuf {
        self.0.path().join("plan")
    }
    fn outcome(&self) -> PathBuf {
        self.0.path().join("outcome")
    }
    fn errors(&self) -> PathBuf {
        self.0.path().join("stderr")
    }
}

/// The first `limit` bytes of a file that a stranger's code may have written: a plain one, not what it put in its place.
fn read(path: &Path, limit: u64) -> std::io::Result<Vec<u8>> {
    let mut open = File::options();
    let file = open
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::other("it is no plain file"));
    }
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What the replay does in the sandbox.
fn task(
    executable: &Path,
    manifest: &Manifest,
    plan: &ReplayPlan,
    place: &Place,
    options: &Options,
) -> Task {
    let other = options
        .settings
        .team
        .runtime
        .as_deref()
        .and_then(Path::parent);
    let libraries = manifest.library_directories.iter().map(PathBuf::from);
    Task {
        kind: Kind::Replay,
        read: vec![plan.package.clone(), place.plan()],
        libraries: libraries.chain(other.map(Path::to_owned)).collect(),
        execute: Some(executable.to_owned()),
        write: vec![plan.outcome.clone()],
        seconds: options.settings.timeout.as_secs(),
    }
}

/// The command that starts it.
fn command(
    executable: &Path,
    plan: &ReplayPlan,
    place: &Place,
    task: &Task,
    watch: &Watch,
    options: &Options,
) -> Result<Command, CompileError> {
    let errors = File::create(place.errors()).map_err(io("write", &place.errors()))?;
    let mut command = Command::new(executable);
    command
        .env(ENV_PLAN, place.plan())
        .env_remove("LD_PRELOAD")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(errors);
    if let Some(threads) = plan.threads {
        for name in FORGOTTEN {
            command.env_remove(name);
        }
        command
            .env("OMP_NUM_THREADS", threads.to_string())
            .env("OMP_DYNAMIC", "false")
            .envs(options.settings.team.environment.iter().cloned());
    }
    // SAFETY: only system calls between fork and exec.
    unsafe {
        command.pre_exec(|| {
            // Ordinary layout: randomised, libraries and stack at the top, away from captured addresses.
            libc::personality(0);
            let mut limit: libc::rlimit = std::mem::zeroed();
            libc::getrlimit(libc::RLIMIT_STACK, &mut limit);
            limit.rlim_cur = (8 << 20).min(limit.rlim_max);
            libc::setrlimit(libc::RLIMIT_STACK, &limit);
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    if let Watch::Counters(counters) = watch {
        counters.open_in(&mut command);
    }
    let confined = options.settings.sandbox.confine(&mut command, task);
    confined.map_err(|source| CompileError::Sandbox {
        what: format!("the replay {}", executable.display()),
        source,
    })?;
    // After the sandbox, which closes all that it does not know.
    for descriptor in watch.descriptors() {
        // SAFETY: one system call between fork and exec.
        unsafe {
            command.pre_exec(move || match libc::fcntl(descriptor, libc::F_SETFD, 0) {
                -1 => Err(std::io::Error::last_os_error()),
                _ => Ok(()),
            });
        }
    }
    Ok(command)
}

/// How a process failed, if it did.
fn describe_failure(status: ExitStatus, options: &Options) -> Option<String> {
    let confined = |signal: &i32| options.settings.sandbox.is_on() && *signal != 0;
    match (status.success(), status.code(), status.signal()) {
        (true, ..) => None,
        (_, Some(code), _) => Some(format!("failed (exit code {code})")),
        (_, _, signal) => {
            let signal = signal.unwrap_or_default();
            let why = Some(signal).filter(confined);
            let why = why.and_then(|signal| ended_by(signal, Kind::Replay));
            Some(match why {
                Some(why) => format!("was ended by the sandbox: {why}"),
                None => format!("was ended by signal {signal}"),
            })
        }
    }
}

/// Runs `executable` as `plan` says, watched by `watch`, and gives what it reports and what the counters read.
pub fn outcome(
    executable: &Path,
    manifest: &Manifest,
    plan: &mut ReplayPlan,
    watch: Watch,
    options: &Options,
) -> Result<(ReplayOutcome, Vec<Readings>), ReplayError> {
    let cache = std::path::absolute(&options.cache).map_err(io("find", &options.cache))?;
    let place = Place::in_cache(&cache)?;
    plan.outcome = place.outcome();
    match &watch {
        Watch::Clock => {}
        Watch::Stream(stream) => plan.count = Some(stream.as_raw_fd()),
        Watch::Counters(counters) => plan.counters = counters.sets(),
    }
    let text = serde_json::to_vec(plan).map_err(ReplayError::Manifest)?;
    for (path, content) in [(place.plan(), text.as_slice()), (place.outcome(), b"")] {
        std::fs::write(&path, content).map_err(io("write", &path))?;
    }
    let task = task(executable, manifest, plan, &place, options);
    let mut command = command(executable, plan, &place, &task, &watch, options)?;
    let counters = |source| ReplayError::Counters {
        codelet: manifest.name.clone(),
        source,
    };
    let mut child = command.spawn().map_err(|source| match &watch {
        Watch::Counters(_) => counters(source),
        _ => ReplayError::from(CompileError::Tool {
            tool: executable.display().to_string(),
            source,
        }),
    })?;
    let opened = match watch {
        Watch::Counters(opening) => Some(opening.opened().map_err(counters)?),
        // The reader sees the end of the stream when the replay ends.
        Watch::Stream(_) | Watch::Clock => None,
    };
    let status =
        wait::within(&mut child, options.settings.timeout).map_err(io("wait for", executable))?;
    let Some(status) = status else {
        return Err(ReplayError::Late {
            codelet: manifest.name.clone(),
            seconds: options.settings.timeout.as_secs(),
        });
    };
    if let Some(how) = describe_failure(status, options) {
        let said = read(&place.errors(), MESSAGE).unwrap_or_default();
        let said = String::from_utf8_lossy(&said).trim().to_owned();
        let message = match said.is_empty() {
            true => said,
            false => format!(": {said}"),
        };
        return Err(ReplayError::Run {
            codelet: manifest.name.clone(),
            how,
            message,
        });
    }
    let text = read(&plan.outcome, Kind::Replay.file_size()).map_err(io("read", &plan.outcome))?;
    let outcome = untrusted::json("the outcome", &text).map_err(|source| ReplayError::Outcome {
        codelet: manifest.name.clone(),
        source,
    })?;
    let readings = opened.map(|counters| counters.read());
    Ok((
        outcome,
        readings.transpose().map_err(counters)?.unwrap_or_default(),
    ))
}

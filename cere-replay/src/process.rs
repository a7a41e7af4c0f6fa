//! Starts a replay executable in the sandbox and reads its outcome.

use crate::counters::{Opening, Readings};
use crate::energy;
use crate::limit::{self, Limit};
use crate::place::{Place, read};
use crate::target::Emulator;
use crate::{Options, ReplayError};
use cere_format::package::Manifest;
use cere_format::replay::{ENV_PLAN, ReplayOutcome, ReplayPlan, Unset};
use cere_format::untrusted;
use cere_sandbox::{Kind, Task, ended_by};
use cere_system::process::wait;
use cere_timing::energy::Counters;
use cere_toolchain::{CompileError, io};
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
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

/// What a run is watched with.
pub enum Watch {
    /// Its own clock.
    Clock,
    /// Counted code, which writes to this descriptor.
    Stream(OwnedFd),
    /// Counters of the kernel.
    Counters(Opening),
    /// Its own clock, then counters of energy in so many rounds.
    Energy(Counters, u32),
    /// Code that reports where its stores are; the words whose stores are kept.
    Stores(Vec<u64>),
    /// What is found out, or known, of bytes that nobody set.
    Unset(Unset),
    /// Edited code, which writes into this file.
    File(PathBuf),
}

impl Watch {
    /// What the executable inherits.
    fn descriptors(&self) -> Vec<RawFd> {
        match self {
            Self::Clock | Self::Stores(_) | Self::Unset(_) | Self::File(_) => Vec::new(),
            Self::Stream(stream) => vec![stream.as_raw_fd()],
            Self::Counters(counters) => counters.descriptors(),
            Self::Energy(counters, _) => {
                let files = counters.all().iter().map(|counter| counter.file());
                files.map(AsRawFd::as_raw_fd).collect()
            }
        }
    }
}

/// What the replay does in the sandbox.
fn task(
    executable: &Path,
    manifest: &Manifest,
    plan: &ReplayPlan,
    place: &Place,
    limit: &Limit,
    watch: &Watch,
    options: &Options,
) -> Task {
    let mut read = vec![plan.package.clone(), place.plan()];
    let execute = match emulator(options) {
        Some(emulator) => {
            read.extend([executable.to_owned(), emulator.root.clone()]);
            emulator.program.clone()
        }
        None => executable.to_owned(),
    };
    let mut write = vec![plan.outcome.clone()];
    if let Watch::File(file) = watch {
        write.push(file.clone());
    }
    Task {
        kind: Kind::Replay,
        read,
        libraries: libraries(manifest, options),
        execute: Some(execute),
        write,
        seconds: limit.time.as_secs(),
    }
}

/// What runs the executable, if this machine does not.
fn emulator(options: &Options) -> Option<&Emulator> {
    options.settings.cross.as_ref()?.emulator.as_ref()
}

/// Directories of the libraries that a replay loads.
pub(crate) fn libraries(manifest: &Manifest, options: &Options) -> Vec<PathBuf> {
    let other = options
        .settings
        .team
        .runtime
        .as_deref()
        .and_then(Path::parent);
    if let Some(cross) = &options.settings.cross {
        return cross.directories().into_iter().collect();
    }
    let own = manifest.library_directories.iter().map(PathBuf::from);
    own.chain(other.map(Path::to_owned)).collect()
}

/// Variables of a replay's environment, with their values or absent.
pub(crate) fn environment(
    plan: &ReplayPlan,
    place: &Place,
    options: &Options,
) -> Vec<(String, Option<String>)> {
    let named = |name: &str, value: String| (name.to_owned(), Some(value));
    let mut variables = vec![named(ENV_PLAN, place.plan().display().to_string())];
    if let Some(threads) = plan.threads {
        variables.extend(FORGOTTEN.map(|name| (name.to_owned(), None)));
        variables.push(named("OMP_NUM_THREADS", threads.to_string()));
        variables.push(named("OMP_DYNAMIC", "false".to_owned()));
        let own = options.settings.team.environment.iter();
        variables.extend(own.map(|(name, value)| named(name, value.clone())));
    }
    variables
}

/// The command that starts an executable of the runtime.
pub(crate) fn command(
    executable: &Path,
    environment: &[(String, Option<String>)],
    place: &Place,
    task: &Task,
    watch: &Watch,
    options: &Options,
) -> Result<Command, CompileError> {
    // Appending, for what follows one another.
    let errors = File::options().append(true).open(place.errors());
    let mut command = match emulator(options) {
        Some(emulator) => {
            let mut command = Command::new(&emulator.program);
            command.args(&emulator.arguments);
            command.arg("-L").arg(&emulator.root).arg(executable);
            command
        }
        None => Command::new(executable),
    };
    command
        .env_remove("LD_PRELOAD")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(errors.map_err(io("write", &place.errors()))?);
    for (name, value) in environment {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
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
pub(crate) fn describe_failure(status: ExitStatus, options: &Options) -> Option<String> {
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

pub(crate) fn late(manifest: &Manifest, limit: &Limit) -> ReplayError {
    ReplayError::Late {
        codelet: manifest.name.clone(),
        seconds: limit.time.as_secs(),
        why: limit.to_string(),
    }
}

/// The outcome of a replay in `place` that ended with `status`.
pub(crate) fn finish(
    status: ExitStatus,
    manifest: &Manifest,
    place: &Place,
    options: &Options,
) -> Result<ReplayOutcome, ReplayError> {
    if let Some(how) = describe_failure(status, options) {
        return Err(ReplayError::Run {
            codelet: manifest.name.clone(),
            how,
            message: place.message(),
        });
    }
    let path = place.outcome();
    let text = read(&path, Kind::Replay.file_size()).map_err(io("read", &path))?;
    untrusted::json("the outcome", &text).map_err(|source| ReplayError::Outcome {
        codelet: manifest.name.clone(),
        source,
    })
}

/// The command that starts `executable` as `plan` says, in `place`, which is prepared for it.
pub(crate) fn prepared(
    executable: &Path,
    manifest: &Manifest,
    plan: &ReplayPlan,
    place: &Place,
    limit: &Limit,
    watch: &Watch,
    options: &Options,
) -> Result<Command, ReplayError> {
    place.prepare(plan)?;
    let task = task(executable, manifest, plan, place, limit, watch, options);
    let environment = environment(plan, place, options);
    Ok(command(
        executable,
        &environment,
        place,
        &task,
        watch,
        options,
    )?)
}

/// Runs `executable` as `plan` says, watched by `watch`, and gives what it reports and what the counters read.
pub fn outcome(
    executable: &Path,
    manifest: &Manifest,
    plan: &mut ReplayPlan,
    watch: Watch,
    options: &Options,
) -> Result<(ReplayOutcome, Vec<Readings>), ReplayError> {
    // What a keeper holds is in its forks' memory.
    let keepers = options
        .keepers
        .as_ref()
        .filter(|_| !plan.sealed && plan.memory.is_none());
    if let (Watch::Clock, Some(keepers)) = (&watch, keepers)
        && let Some(outcome) = keepers.outcome(executable, manifest, plan, options)
    {
        return Ok((outcome?, Vec::new()));
    }
    let place = Place::in_cache(&options.cache)?;
    plan.outcome = place.outcome();
    let slowed = matches!(watch, Watch::Stream(_) | Watch::Stores(_) | Watch::File(_));
    match &watch {
        Watch::Clock | Watch::File(_) => {}
        Watch::Stores(words) => plan.stores = Some(words.clone()),
        Watch::Unset(unset) => plan.unset = unset.clone(),
        Watch::Stream(stream) => plan.count = Some(stream.as_raw_fd()),
        Watch::Counters(counters) => plan.counters = counters.sets(),
        Watch::Energy(counters, rounds) => plan.energy = Some(energy::plan(counters, *rounds)),
    }
    let limit = limit::of(manifest, plan, slowed, options);
    let mut command = prepared(executable, manifest, plan, &place, &limit, &watch, options)?;
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
        Watch::Stream(_)
        | Watch::Clock
        | Watch::Energy(..)
        | Watch::Stores(_)
        | Watch::Unset(_)
        | Watch::File(_) => None,
    };
    let status = wait::within(&mut child, limit.time).map_err(io("wait for", executable))?;
    let Some(status) = status else {
        return Err(late(manifest, &limit));
    };
    let outcome = finish(status, manifest, &place, options)?;
    let readings = opened.map(|counters| counters.read());
    Ok((
        outcome,
        readings.transpose().map_err(counters)?.unwrap_or_default(),
    ))
}

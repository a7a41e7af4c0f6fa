//! Processes that keep captured states for replays that follow one another: each replay is a fork in which its executable takes
//! the other's place (`cere-replay/runtime/src/keep.rs`). So no replay restores what no invocation changes, and none sees what
//! another did.

pub(crate) mod pool;

pub use pool::Keepers;

use crate::limit::{self, Limit};
use crate::place::Place;
use crate::process::{self, Watch};
use crate::{Options, ReplayError, apart, link};
use cere_format::package::{MEMBER_ENTRY, Manifest};
use cere_format::proc;
use cere_format::replay::{
    ENV_KEEP, KEEP_SOCKET, KeepPlan, KeptAnswer, KeptRequest, ReplayOutcome, ReplayPlan,
};
use cere_sandbox::{Kind, Task};
use cere_system::process::wait;
use cere_toolchain::io;
use pool::Keeper;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::ExitStatus;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// Processes at a time.
const MOST: usize = 64;
/// Of the available memory, the part that kept states take at most.
const SHARE: u64 = 4;
/// Time to restore a state, and to be killed.
const PATIENCE: Duration = Duration::from_secs(60);

/// The longest time that is waited.
const LONGEST: Duration = Duration::from_secs(1 << 31);

/// Why there was no answer.
enum Silence {
    /// The time was over.
    Late,
    /// The process that keeps the state has ended, or answers what it does not ask.
    Ended(String),
}

impl Keeper {
    /// Starts it, which restores the state.
    fn start(
        package: &Path,
        manifest: &Manifest,
        bytes: u64,
        limit: &Limit,
        options: &Options,
    ) -> Result<Self, ReplayError> {
        let executable = link::keeper(&apart::runtime(options)?.object, options)?;
        let place = Place::in_cache(&options.cache)?;
        let (filters, own_id) = options.settings.sandbox.of_forks();
        let plan = KeepPlan {
            package: package.to_owned(),
            filters,
            own_id,
        };
        let path = place.directory().join("keep");
        let text = serde_json::to_vec(&plan).map_err(ReplayError::Json)?;
        for (path, content) in [
            (&path, text.as_slice()),
            (&place.outcome(), b""),
            (&place.errors(), b""),
        ] {
            std::fs::write(path, content).map_err(io("write", path))?;
        }
        let libraries = process::libraries(manifest, options);
        let task = Task {
            kind: Kind::Keeper,
            read: vec![package.to_owned(), place.directory().to_owned()],
            libraries: libraries.clone(),
            execute: Some(executable.clone()),
            write: vec![place.outcome()],
            seconds: limit.time.as_secs(),
        };
        // The kernel knows one area of restartable sequences: it is to be that of the replay's C library.
        let tunables = (
            "GLIBC_TUNABLES".to_owned(),
            Some("glibc.pthread.rseq=0".to_owned()),
        );
        let environment = [
            (ENV_KEEP.to_owned(), Some(path.display().to_string())),
            tunables,
        ];
        let mut command = process::command(
            &executable,
            &environment,
            &place,
            &task,
            &Watch::Clock,
            options,
        )?;
        let (own, theirs) = UnixStream::pair().map_err(io("make a socket for", &executable))?;
        let descriptor = theirs.as_raw_fd();
        // SAFETY: one or two system calls between fork and exec, after the sandbox, which closes all that it does not know.
        unsafe {
            command.pre_exec(move || {
                let done = match descriptor == KEEP_SOCKET {
                    true => libc::fcntl(descriptor, libc::F_SETFD, 0),
                    false => libc::dup2(descriptor, KEEP_SOCKET),
                };
                match done {
                    -1 => Err(std::io::Error::last_os_error()),
                    _ => Ok(()),
                }
            });
        }
        let child = command.spawn().map_err(io("start", &executable))?;
        drop(theirs);
        let mut keeper = Self {
            package: package.to_owned(),
            libraries,
            bytes,
            place,
            child,
            socket: BufReader::new(own),
        };
        match keeper.answer(Instant::now() + PATIENCE.max(limit.time)) {
            Ok(KeptAnswer::Ready) => Ok(keeper),
            Ok(_) | Err(Silence::Late) => Err(keeper.failed(manifest, "did not restore the state")),
            Err(Silence::Ended(why)) => Err(keeper.failed(manifest, &why)),
        }
    }

    /// The error that it ends with.
    fn failed(&mut self, manifest: &Manifest, why: &str) -> ReplayError {
        let _ = self.child.kill();
        ReplayError::Keeper {
            codelet: manifest.name.clone(),
            how: format!("{why}{}", self.place.message()),
        }
    }

    fn answer(&mut self, until: Instant) -> Result<KeptAnswer, Silence> {
        let ended = |error: std::io::Error| Silence::Ended(error.to_string());
        let left = until.saturating_duration_since(Instant::now());
        let left = left.max(Duration::from_millis(1));
        self.socket
            .get_ref()
            .set_read_timeout(Some(left))
            .map_err(ended)?;
        let mut line = String::new();
        match self.socket.read_line(&mut line) {
            Ok(0) => {
                let status = wait::within(&mut self.child, PATIENCE).ok().flatten();
                let how = status.map_or("ended".to_owned(), |status| format!("ended ({status})"));
                Err(Silence::Ended(how))
            }
            Ok(_) => serde_json::from_str(&line).map_err(|error| ended(error.into())),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Err(Silence::Late)
            }
            Err(error) => Err(ended(error)),
        }
    }

    /// Runs `executable` as `plan` says; none: too late.
    fn run(
        &mut self,
        executable: &Path,
        plan: &mut ReplayPlan,
        limit: &Limit,
        options: &Options,
    ) -> Result<Option<ExitStatus>, Silence> {
        let ended = |error: &dyn std::error::Error| Silence::Ended(error.to_string());
        plan.outcome = self.place.outcome();
        plan.kept = true;
        self.place.prepare(plan).map_err(|error| ended(&error))?;
        // In its own directory it may read it.
        let code = self.place.directory().join("code");
        let _ = std::fs::remove_file(&code);
        let linked = std::fs::hard_link(executable, &code);
        let linked = linked.or_else(|_| std::fs::copy(executable, &code).map(drop));
        linked.map_err(|error| ended(&error))?;
        let mut environment = process::environment(plan, &self.place, options);
        let tunables = std::env::var("GLIBC_TUNABLES").ok();
        environment.extend([
            (ENV_KEEP.to_owned(), None),
            ("GLIBC_TUNABLES".to_owned(), tunables),
        ]);
        let request = KeptRequest {
            executable: code,
            environment,
        };
        let mut line = serde_json::to_vec(&request).map_err(|error| ended(&error))?;
        line.push(b'\n');
        self.socket
            .get_ref()
            .write_all(&line)
            .map_err(|error| ended(&error))?;
        let until = Instant::now() + limit.time.min(LONGEST);
        let strange = || Silence::Ended("answered out of turn".to_owned());
        let Ok(KeptAnswer::Started(fork)) = self.answer(Instant::now() + PATIENCE) else {
            return Err(Silence::Ended("ended".to_owned()));
        };
        match self.answer(until) {
            Ok(KeptAnswer::Ended(status)) => Ok(Some(ExitStatus::from_raw(status))),
            Ok(_) => Err(strange()),
            Err(Silence::Late) => {
                // SAFETY: the fork is not waited for before the next request, so the number is its own.
                unsafe { libc::kill(fork, libc::SIGKILL) };
                match self.answer(Instant::now() + PATIENCE) {
                    Ok(KeptAnswer::Ended(_)) => Ok(None),
                    _ => Err(strange()),
                }
            }
            Err(ended) => Err(ended),
        }
    }
}

impl Keepers {
    /// Runs `executable` as `plan` says in a fork of a process that keeps the state of its package; none if the state is not
    /// kept, which was announced unless it is a matter of course.
    pub(crate) fn outcome(
        &self,
        executable: &Path,
        manifest: &Manifest,
        plan: &mut ReplayPlan,
        options: &Options,
    ) -> Option<Result<ReplayOutcome, ReplayError>> {
        if plan.threads.is_some_and(|threads| threads > 1) && several_nodes() {
            return None;
        }
        if self
            .refused
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(&plan.package)
        {
            return None;
        }
        let limit = limit::of(manifest, plan, false, options);
        let mut lost = None;
        // A process that was killed from outside costs a second start.
        for _ in 0..2 {
            let mut keeper = match self.take(manifest, plan, &limit, options) {
                Ok(keeper) => keeper,
                Err(error) => return self.refuse(plan, manifest, &error.to_string(), options),
            };
            match keeper.run(executable, plan, &limit, options) {
                Ok(status) => {
                    let outcome = match status {
                        None => Err(process::late(manifest, &limit)),
                        Some(status) => process::finish(status, manifest, &keeper.place, options),
                    };
                    self.put_back(keeper);
                    return Some(outcome);
                }
                Err(Silence::Ended(why)) => lost = Some(keeper.failed(manifest, &why)),
                Err(Silence::Late) => lost = Some(keeper.failed(manifest, "did not answer")),
            }
        }
        plan.kept = false;
        lost.map(Err)
    }

    /// Announces why the state is not kept.
    fn refuse<T>(
        &self,
        plan: &mut ReplayPlan,
        manifest: &Manifest,
        why: &str,
        options: &Options,
    ) -> Option<T> {
        plan.kept = false;
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.insert(plan.package.clone());
        options.events.note(format!(
            "the captured state of {} is restored for each replay: {why}",
            manifest.name
        ));
        None
    }

    /// A process for the package, at rest or new.
    fn take(
        &self,
        manifest: &Manifest,
        plan: &ReplayPlan,
        limit: &Limit,
        options: &Options,
    ) -> Result<Keeper, ReplayError> {
        let libraries = process::libraries(manifest, options);
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let suits = |k: &Keeper| k.package == plan.package && k.libraries == libraries;
        if let Some(at) = idle.iter().position(suits) {
            return Ok(idle.remove(at));
        }
        let entry = plan.package.join(MEMBER_ENTRY);
        let bytes = std::fs::metadata(&entry).map_or(0, |m| m.len());
        let kept = |idle: &Vec<Keeper>| idle.iter().map(|k| k.bytes).sum::<u64>();
        let bound = self.bound.unwrap_or_else(|| {
            let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
            let available = proc::available(&meminfo).unwrap_or(u64::MAX);
            // What is kept is no longer available.
            available.saturating_add(kept(&idle)) / SHARE
        });
        if bytes > bound {
            return Err(ReplayError::Keeper {
                codelet: manifest.name.clone(),
                how: format!(
                    "it takes {} MiB, and {} MiB may be kept",
                    bytes >> 20,
                    bound >> 20
                ),
            });
        }
        while idle.len() >= MOST || !idle.is_empty() && kept(&idle) + bytes > bound {
            idle.remove(0);
        }
        drop(idle);
        Keeper::start(&plan.package, manifest, bytes, limit, options)
    }

    fn put_back(&self, keeper: Keeper) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(keeper);
    }
}

/// Whether memory lies on several nodes: a team's threads then put pages on their own.
fn several_nodes() -> bool {
    let online = std::fs::read_to_string("/sys/devices/system/node/online");
    online.is_ok_and(|text| text.trim() != "0")
}

//! Runs an instrumented program under the preload library.

use crate::{components, state};
use anyhow::{Context, Result, anyhow, bail};
use cere_format::abi::{UNIT_MAGIC, UNIT_SECTION};
use cere_format::build::Unit;
use cere_format::capture::{CAPTURE_VERSION, ENV_RUN, RunMode, RunPlan};
use cere_format::store::Store;
use object::{Object, ObjectSection};
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

/// What a run is to do.
pub struct Launch<'a> {
    /// Store whose units the program must hold.
    pub store: &'a Store,
    /// The units of the current build.
    pub units: &'a [Unit],
    /// Program and arguments.
    pub command: &'a [String],
    /// Profile or capture.
    pub mode: RunMode,
    /// End it after this many seconds.
    pub timeout: Option<f64>,
    /// Whether the program's stdout goes to stderr, to leave stdout to JSON.
    pub quiet_stdout: bool,
}

/// How a run ended, and the directory with its results, which goes when this is dropped.
pub struct Finished {
    /// The program's exit status.
    pub status: ExitStatus,
    /// Results of the preload library.
    pub directory: tempfile::TempDir,
}

impl Finished {
    /// The status that a shell would report.
    pub fn code(&self) -> u8 {
        match (self.status.code(), self.status.signal()) {
            (Some(code), _) => code as u8,
            (None, signal) => 128 + signal.unwrap_or(0) as u8,
        }
    }
}

/// The file that a shell would run for `program`.
pub fn locate(program: &str) -> Result<PathBuf> {
    if program.contains('/') {
        let path = std::path::absolute(program)?;
        return if path.is_file() { Ok(path) } else { Err(anyhow!("there is no program {program}")) };
    }
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .map(|directory| directory.join(program))
        .find(|path| path.is_file())
        .ok_or_else(|| anyhow!("there is no program {program} in PATH (./{program} for one in this directory)"))
}

/// Ids of the units that the image `bytes` holds; none if it was not instrumented.
pub fn units_of(bytes: &[u8]) -> Result<Vec<String>> {
    let file = object::File::parse(bytes)?;
    let Some(section) = file.section_by_name(UNIT_SECTION) else { return Ok(Vec::new()) };
    let data = section.data()?;
    Ok(data
        .chunks_exact(48)
        .filter(|chunk| chunk[..8] == UNIT_MAGIC.to_le_bytes())
        .map(|chunk| String::from_utf8_lossy(&chunk[8..40]).into_owned())
        .collect())
}

fn check(path: &Path, store: &Store) -> Result<()> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    if bytes.starts_with(b"#!") {
        return Ok(());
    }
    let shown = path.display();
    let file = object::File::parse(&*bytes).map_err(|_| anyhow!("{shown} is not a program of this machine"))?;
    if file.section_by_name(".interp").is_none() {
        bail!("{shown} is linked statically, so the preload library cannot enter it: link it without -static");
    }
    let ids = units_of(&bytes)?;
    let shared = std::fs::read_dir(store.links()).map(|e| e.count() > 1).unwrap_or(false);
    if ids.is_empty() && !shared {
        bail!("{shown} is not instrumented: build it again with `cere instrument -- <build command>`");
    }
    if let Some(id) = ids.iter().find(|id| !store.unit_record(id).is_file()) {
        bail!(
            "{shown} holds the unit {id}, which {} does not know: it is of another build; build it again with `cere instrument`, or name its store with --store",
            store.root().display()
        );
    }
    Ok(())
}

static CHILD: AtomicI32 = AtomicI32::new(0);

extern "C" fn pass_on(signal: i32) {
    let child = CHILD.load(Ordering::Relaxed);
    if child > 0 {
        // SAFETY: kill is async-signal-safe and takes no pointers; the group is the one started here.
        unsafe { libc::kill(-child, signal) };
    }
}

impl Launch<'_> {
    /// Runs it to its end.
    pub fn run(&self) -> Result<Finished> {
        let program = locate(&self.command[0])?;
        check(&program, self.store)?;
        let preload = components::find(components::PRELOAD)?;
        state::make_directory(&self.store.runs())?;
        let directory = tempfile::Builder::new().prefix("run").tempdir_in(self.store.runs())?;
        let plan = directory.path().join("plan.json");
        state::write_json(
            &plan,
            &RunPlan { version: CAPTURE_VERSION, directory: directory.path().to_path_buf(), mode: self.mode.clone() },
        )?;
        let mut command = Command::new(&program);
        let earlier = std::env::var("LD_PRELOAD").unwrap_or_default();
        let preloads = if earlier.is_empty() { preload.display().to_string() } else { format!("{}:{earlier}", preload.display()) };
        command
            .arg0(&self.command[0])
            .args(&self.command[1..])
            .env("LD_PRELOAD", preloads)
            .env("LD_BIND_NOW", "1")
            .env(ENV_RUN, &plan);
        if self.quiet_stdout {
            command.stdout(std::io::stderr());
        }
        // SAFETY: between fork and exec only async-signal-safe system calls are made, on values of this frame.
        unsafe {
            command.pre_exec(|| {
                libc::setpgid(0, 0);
                let now = libc::personality(0xffff_ffff);
                // A container may refuse either; the run then goes on with the addresses it gets.
                if now >= 0 {
                    libc::personality((now as libc::c_ulong) | libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
                }
                let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
                if libc::getrlimit(libc::RLIMIT_STACK, &mut limit) == 0 {
                    limit.rlim_cur = limit.rlim_max;
                    libc::setrlimit(libc::RLIMIT_STACK, &limit);
                }
                Ok(())
            });
        }
        let mut child = command.spawn().with_context(|| format!("cannot run {}", program.display()))?;
        let group = child.id() as i32;
        CHILD.store(group, Ordering::Relaxed);
        let handler = pass_on as extern "C" fn(i32) as libc::sighandler_t;
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            // SAFETY: the handler makes one async-signal-safe call.
            unsafe { libc::signal(signal, handler) };
        }
        let terminal = Terminal::give(group);
        let started = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if let Some(limit) = self.timeout
                && started.elapsed().as_secs_f64() > limit
            {
                // SAFETY: no pointers; the group is the child's own, which was not waited for yet.
                unsafe { libc::kill(-group, libc::SIGKILL) };
                child.wait()?;
                drop(terminal);
                bail!("{} did not end within the --timeout of {limit} s and was killed", self.command[0]);
            }
            std::thread::sleep(Duration::from_millis(if started.elapsed().as_millis() < 100 { 1 } else { 10 }));
        };
        drop(terminal);
        CHILD.store(0, Ordering::Relaxed);
        Ok(Finished { status, directory })
    }
}

/// The controlling terminal, lent to the program's group so that it may read; taken back when dropped.
struct Terminal(Option<i32>);

impl Terminal {
    fn give(group: i32) -> Self {
        // SAFETY: these calls take no pointers; SIGTTOU is ignored so that the terminal can be taken back.
        unsafe {
            let before = libc::tcgetpgrp(0);
            if before < 0 || before != libc::getpgrp() {
                return Self(None);
            }
            libc::signal(libc::SIGTTOU, libc::SIG_IGN);
            libc::tcsetpgrp(0, group);
            Self(Some(before))
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // SAFETY: takes no pointers.
            unsafe { libc::tcsetpgrp(0, group) };
        }
    }
}

/// A spinner on stderr while the program runs would mix with its output; one line before it does not.
pub fn announce(text: &str) {
    eprintln!("cere: {text}");
    let _ = std::io::stdin().by_ref();
}

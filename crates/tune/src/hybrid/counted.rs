//! The program with counted code, linked again, and run: codelets compared with their invocations without a clock.

use crate::hybrid::image::{Image, scratch};
use anyhow::{Context, Result};
use cere_capture::input::Input;
use cere_capture::launch::prepare;
use cere_catalogue::{OrCoded, bail, codes};
use cere_count::codelet::{COMPARED_FRAMES, Counted};
use cere_count::fidelity::{self, Fidelity};
use cere_count::vivo::{self, Observed, Wanted};
use cere_format::build::RegionKind;
use cere_format::count::ENV_STREAM;
use cere_format::profile::Profile;
use cere_format::store::Store;
use cere_measure::vivo::{environment, reopen};
use cere_measure::{Replays, Settings};
use cere_memory::{Geometry, Hierarchy};
use cere_store::build::start::Start;
use cere_store::components;
use cere_store::current::Codelet;
use cere_system::console::print;
use cere_system::events::Events;
use cere_system::process::supervise;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

/// What is compared.
pub struct Request<'a> {
    /// The store.
    pub store: &'a Store,
    /// The run that codelets are compared with.
    pub profile: &'a Profile,
    /// The codelets.
    pub codelets: &'a [Codelet],
    /// How they are replayed.
    pub settings: &'a Settings,
    /// What is simulated.
    pub counting: &'a cere_count::Settings,
    /// What is said meanwhile.
    pub events: &'a Events,
}

/// Codelets that were compared, and those that were not, with the reason.
#[derive(Debug, Default)]
pub struct Compared {
    /// Compared.
    pub done: Vec<Fidelity>,
    /// Name and reason.
    pub skipped: Vec<(String, String)>,
}

impl Request<'_> {
    /// Runs the counted program once and each counted codelet three times.
    pub fn compare(&self) -> Result<Compared> {
        let replays = Replays::open(self.store, self.events)?;
        let geometry = self.counting.geometry.as_ref();
        let wanted: Vec<Wanted> = self
            .codelets
            .iter()
            .map(|(_, codelet)| Wanted {
                unit: codelet.key.unit.clone(),
                index: codelet.key.index,
                function: codelet.region.kind == RegionKind::Function,
                invocation: codelet.invocation,
            })
            .collect();
        let observed = self.observe(&replays, &wanted)?;
        let mut compared = Compared::default();
        let count = self.codelets.len() as u64;
        let bar = self.events.steps("counting codelets", count);
        for ((file, codelet), found) in self.codelets.iter().zip(&observed.found) {
            let one = || -> Result<Fidelity> {
                let found = found.as_ref().or_coded(
                    codes::E6207,
                    || "the counted program did not enter it so often",
                )?;
                if !found.ended {
                    bail!(
                        E6208,
                        "the invocation did not return in the counted program (by an exception?)"
                    );
                }
                let (package, ..) = replays.unpack(file)?;
                let options = replays.options(self.settings, None)?;
                let counted = Counted::new(&package, &options)?;
                Ok(fidelity::compare(
                    &counted,
                    &observed.code,
                    found,
                    geometry,
                    self.counting,
                )?)
            };
            match one() {
                Ok(fidelity) => compared.done.push(fidelity),
                Err(error) => {
                    let reason = print::error(&error);
                    compared.skipped.push((codelet.name.clone(), reason));
                }
            }
            bar.step();
        }
        Ok(compared)
    }

    /// Builds the counted program and runs it.
    fn observe(&self, replays: &Replays, wanted: &[Wanted]) -> Result<Observed> {
        let program = reopen(self.store, self.profile)?;
        let image = Image::open(self.store, replays, &program.image()?.path, self.events)?;
        let directory = scratch(self.store)?;
        let counted = directory.path().join("counted");
        image.make_counted(&counted)?;
        let manifests: Vec<_> = self.codelets.iter().map(|(_, manifest)| manifest).collect();
        let threads = cere_measure::vivo::threads(manifests.iter().copied());
        let memory = match &self.counting.geometry {
            Some(geometry) => Some(self.memory(geometry, threads.last().copied())?),
            None => None,
        };
        let (reader, writer) = std::io::pipe().context("cannot make a pipe")?;
        let mut input = Input::open(self.events)?;
        let mut feed = input.for_next_run()?;
        let mut started = Start {
            program: &program,
            words: &self.profile.command,
            library: Some(components::find(components::COUNTED)?),
            library_of_build: true,
            build: Some(&counted),
            rank: self.profile.process.rank.as_deref(),
            apart: false,
        }
        .command(self.store)?;
        let command = &mut started.command;
        let stream = match program.is_direct() {
            true => writer.as_raw_fd().to_string(),
            // Launchers close what they do not know.
            false => format!("/proc/{}/fd/{}", std::process::id(), writer.as_raw_fd()),
        };
        command
            .env(ENV_STREAM, stream)
            .envs(environment(&manifests))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if let Some(input) = feed.stdin.take() {
            command.stdin(input);
        }
        prepare(command);
        let descriptor = writer.as_raw_fd();
        // SAFETY: one system call between fork and exec.
        unsafe {
            command.pre_exec(move || match libc::fcntl(descriptor, libc::F_SETFD, 0) {
                -1 => Err(std::io::Error::last_os_error()),
                _ => Ok(()),
            });
        }
        let running = self
            .events
            .work(format!("running {} with counters", self.profile.command[0]));
        let (ended, observed) = std::thread::scope(|scope| {
            let consumer = scope.spawn(|| vivo::observe(reader, &counted, wanted, memory));
            let ended = supervise::run(command, &self.profile.command[0], None);
            // The stream ends when nobody can write to it.
            drop(writer);
            let observed = match consumer.join() {
                Ok(observed) => observed,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            (ended, observed)
        });
        drop(running);
        let status = ended?.status;
        started.check(status)?;
        let observed = observed?;
        if !status.success() || !observed.ended {
            self.events.note(format!(
                "the counted program did not run to its end ({status})"
            ));
        }
        Ok(observed)
    }

    /// The memory that the program's accesses go to.
    fn memory(&self, geometry: &Geometry, threads: Option<u32>) -> Result<Hierarchy> {
        let options = cere_memory::Options {
            cores: threads.unwrap_or(1).max(1) as usize,
            seed: self.counting.seed,
            frames: COMPARED_FRAMES,
            ..cere_memory::Options::default()
        };
        Ok(Hierarchy::new(geometry, &options)?)
    }
}

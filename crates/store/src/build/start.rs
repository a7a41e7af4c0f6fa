//! Starting a program as its command does: by itself, or by a launcher.

use crate::build::image::Program;
use crate::components;
use anyhow::{Context, Result, bail};
use cere_format::build::{
    ENV_REPLACED, ENV_REPLACED_PRELOAD, ENV_REPLACED_RANK, ENV_REPLACEMENT, ENV_REPLACING,
};
use cere_format::rank::ENV_PROCESS_KEY;
use cere_format::store::Store;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// How a program is started.
pub struct Start<'a> {
    /// What is started, and the program.
    pub program: &'a Program,
    /// Program and arguments as given.
    pub words: &'a [String],
    /// A library that is loaded first, before those that the user has named.
    pub library: Option<PathBuf>,
    /// Whether it is loaded in the process of the build alone, not in those of a launcher.
    pub library_of_build: bool,
    /// The build that runs in the program's place, if not the program itself.
    pub build: Option<&'a Path>,
    /// The only process in which it does, by rank.
    pub rank: Option<&'a str>,
}

/// A command, and what shows that the build that is meant runs.
pub struct Started {
    /// The command, without input and output.
    pub command: Command,
    /// Gets a byte for each process in which the build runs; none if the command starts it itself.
    proof: Option<tempfile::NamedTempFile>,
    program: PathBuf,
}

impl Start<'_> {
    /// The command. Under a launcher the program's process executes the build, so that its arguments are the program's.
    pub fn command(&self, store: &Store) -> Result<Started> {
        let direct = self.program.is_direct() || self.build.is_none();
        let file = match (direct, self.build) {
            (true, Some(build)) => build,
            _ => &self.program.start,
        };
        let mut command = Command::new(file);
        command.arg0(&self.words[0]).args(&self.words[1..]);
        if let Some(key) = &self.program.process_key {
            command.env(ENV_PROCESS_KEY, key);
        }
        let own = self
            .library
            .iter()
            .filter(|_| direct || !self.library_of_build);
        let mut libraries: Vec<PathBuf> = own.cloned().collect();
        let (mut proof, mut program) = (None, PathBuf::new());
        if let (false, Some(build)) = (direct, self.build) {
            program.clone_from(&self.program.image()?.path);
            let file = tempfile::NamedTempFile::new_in(store.root());
            let file =
                file.with_context(|| format!("cannot write in {}", store.root().display()))?;
            command
                .env(ENV_REPLACED, &program)
                .env(ENV_REPLACEMENT, build)
                .env(ENV_REPLACING, file.path());
            if let Some(library) = self.library.as_ref().filter(|_| self.library_of_build) {
                command.env(ENV_REPLACED_PRELOAD, library);
            }
            if let Some(rank) = self.rank {
                command.env(ENV_REPLACED_RANK, rank);
            }
            proof = Some(file);
            // The last one's constructor runs first.
            libraries.push(components::find(components::EXEC)?);
        }
        if !libraries.is_empty() {
            command.env("LD_PRELOAD", preloaded(&libraries));
        }
        Ok(Started {
            command,
            proof,
            program,
        })
    }
}

impl Started {
    /// Fails if the run, which ended with `status`, was not of the build that was meant.
    pub fn check(&self, status: ExitStatus) -> Result<()> {
        let Some(proof) = &self.proof else {
            return Ok(());
        };
        let ran = proof.as_file().metadata().map_or(0, |m| m.len());
        if ran > 0 {
            return Ok(());
        }
        let (launcher, program) = (self.command.get_program(), &self.program);
        bail!(
            "no other build of {} could be run: {} ended with {status}, and {}",
            program.display(),
            launcher.display(),
            match status.success() {
                false => "did not start it; does it start it outside CERE?",
                true =>
                    "either did not start it, or does not pass the environment of this command on to it (LD_PRELOAD and what begins with CERE_ are needed)",
            }
        );
    }
}

/// The value of LD_PRELOAD with `libraries` before those that the environment names.
fn preloaded(libraries: &[PathBuf]) -> OsString {
    let earlier = std::env::var_os("LD_PRELOAD").filter(|e| !e.is_empty());
    let all: Vec<OsString> = libraries
        .iter()
        .map(|l| l.clone().into_os_string())
        .chain(earlier)
        .collect();
    all.join(std::ffi::OsStr::new(":"))
}

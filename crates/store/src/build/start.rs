//! Starting a program as its command does: by itself, or by a launcher.

use crate::build::image::Program;
use crate::components;
use anyhow::{Context, Result};
use cere_catalogue::bail;
use cere_format::build::{
    ENV_REPLACED, ENV_REPLACED_PRELOAD, ENV_REPLACED_RANK, ENV_REPLACEMENT, ENV_REPLACING,
};
use cere_format::rank::{self, ENV_PROCESS_KEY};
use cere_format::store::Store;
use std::collections::{BTreeMap, BTreeSet};
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
    /// Whether each rank prints into a file of its own, for [`Ran`], and not into what the launcher has for it.
    pub apart: bool,
}

/// The processes of a launcher in which another build ran in the program's place.
#[derive(Debug, Default)]
pub struct Ran {
    /// Those with a rank, by rank.
    pub ranks: Vec<RanRank>,
    /// Ranks whose processes are of other programs alone.
    pub others: Vec<String>,
}

/// A rank in which a build ran.
#[derive(Debug)]
pub struct RanRank {
    /// What its launcher calls it.
    pub rank: String,
    /// Its processes.
    pub processes: Vec<u32>,
    /// What it printed, if ranks print apart.
    pub printed: Vec<u8>,
    /// The statuses with which its processes called `exit`, rising; not those of processes that a signal killed.
    pub ended: Vec<i32>,
}

impl RanRank {
    /// Whether a process called `exit` with another status than 0.
    pub fn failed(&self) -> bool {
        self.ended.iter().any(|status| *status != 0)
    }
}

/// A command, and what shows that the build that is meant runs.
pub struct Started {
    /// The command, without input and output.
    pub command: Command,
    /// Gets a file for each rank in which the build runs; none if the command starts it itself.
    proof: Option<tempfile::TempDir>,
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
            let told = self.directory(store);
            let told =
                told.with_context(|| format!("cannot write in {}", store.root().display()))?;
            command
                .env(ENV_REPLACED, &program)
                .env(ENV_REPLACEMENT, build)
                .env(ENV_REPLACING, told.path());
            if let Some(library) = self.library.as_ref().filter(|_| self.library_of_build) {
                command.env(ENV_REPLACED_PRELOAD, library);
            }
            if let Some(rank) = self.rank {
                command.env(ENV_REPLACED_RANK, rank);
            }
            proof = Some(told);
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

    /// Where the program's processes say that the build runs.
    fn directory(&self, store: &Store) -> std::io::Result<tempfile::TempDir> {
        let directory = tempfile::tempdir_in(store.root())?;
        if self.apart {
            std::fs::write(directory.path().join(rank::APART), [])?;
        }
        Ok(directory)
    }
}

impl Started {
    /// The processes in which the build that was meant ran, in a run that ended with `status`. Fails if there are none, or if a rank ran
    /// that does not say so; nothing is known of them if the command starts the build itself.
    pub fn check(&self, status: ExitStatus) -> Result<Ran> {
        let Some(proof) = &self.proof else {
            return Ok(Ran::default());
        };
        let (program, launcher) = (self.program.display(), self.command.get_program().display());
        let told = Told::read(proof.path())
            .with_context(|| format!("cannot read in {}", proof.path().display()))?;
        if told.ran.is_empty() {
            bail!(
                E6525,
                "no other build of {program} could be run: {launcher} ended with {status}, and {}",
                match status.success() {
                    false => "did not start it; does it start it outside CERE?",
                    true =>
                        "either did not start it, or does not pass the environment of this command on to it (LD_PRELOAD and what begins with CERE_ are needed)",
                }
            );
        }
        // Of a run that failed it may be the reason that a rank did not come to it.
        if let Some(unseen) = told.unseen().filter(|_| status.success()) {
            bail!(
                E6513,
                "{unseen} of {launcher} ran without saying whether it is the other build of {program}: is the environment of this command passed \
                 on to each rank (LD_PRELOAD and what begins with CERE_ are needed), and does each see {}?",
                proof.path().display()
            );
        }
        told.ranks(proof.path())
    }
}

/// What the file holds; nothing if there is none.
fn read_or_empty(file: &Path) -> Result<Vec<u8>> {
    match std::fs::read(file) {
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read.with_context(|| format!("cannot read {}", file.display())),
    }
}

/// The statuses in the lines of a file, rising.
fn statuses(text: &[u8]) -> Vec<i32> {
    let text = String::from_utf8_lossy(text);
    let mut statuses: Vec<i32> = text.lines().filter_map(|line| line.parse().ok()).collect();
    statuses.sort_unstable();
    statuses
}

/// What the processes of a run said: by rank, the empty one for those without, the lines of their files.
struct Told {
    ran: BTreeMap<String, String>,
    others: BTreeMap<String, String>,
}

impl Told {
    fn read(directory: &Path) -> std::io::Result<Self> {
        let mut told = Self {
            ran: BTreeMap::new(),
            others: BTreeMap::new(),
        };
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            let name = entry.file_name();
            let (rank, of) = match name.to_str().and_then(rank::of_file) {
                Some((rank, rank::RAN)) => (rank, &mut told.ran),
                Some((rank, rank::OTHER)) => (rank, &mut told.others),
                _ => continue,
            };
            of.insert(rank.to_owned(), std::fs::read_to_string(entry.path())?);
        }
        told.others.retain(|rank, _| !told.ran.contains_key(rank));
        Ok(told)
    }

    /// The ranks that said nothing, if the launcher told how many there are.
    fn unseen(&self) -> Option<String> {
        let all = || self.ran.iter().chain(&self.others);
        let sizes = all().flat_map(|(_, lines)| lines.lines());
        let size: usize = sizes
            .filter_map(|line| line.split_once(' ')?.1.parse().ok())
            .max()?;
        let seen: BTreeSet<&str> = all().map(|(rank, _)| rank.as_str()).collect();
        let silent = size.saturating_sub(seen.iter().filter(|rank| !rank.is_empty()).count());
        let numbers = (0..size).map(|rank| rank.to_string());
        let numbers: Vec<String> = numbers
            .filter(|rank| !seen.contains(rank.as_str()))
            .collect();
        match (silent, numbers.len() == silent) {
            (0, _) => None,
            (1, true) => Some(format!("rank {}", numbers[0])),
            (_, true) => Some(format!("ranks {}", numbers.join(", "))),
            (silent, false) => Some(format!("{silent} of the {size} processes")),
        }
    }

    fn ranks(self, directory: &Path) -> Result<Ran> {
        let ranks = self.ran.into_iter().filter(|(rank, _)| !rank.is_empty());
        let of = |(rank, lines): (String, String)| {
            let read = |ending| read_or_empty(&directory.join(rank::file(&rank, ending)));
            Ok(RanRank {
                printed: read(rank::PRINTED)?,
                ended: statuses(&read(rank::ENDED)?),
                processes: lines
                    .lines()
                    .filter_map(|line| line.split(' ').next()?.parse().ok())
                    .collect(),
                rank,
            })
        };
        let mut ranks: Vec<RanRank> = ranks.map(of).collect::<Result<_>>()?;
        ranks.sort_by(|a, b| rank::order(&a.rank, &b.rank));
        let mut others: Vec<String> = self.others.into_keys().collect();
        others.sort_by(|a, b| rank::order(a, b));
        Ok(Ran { ranks, others })
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

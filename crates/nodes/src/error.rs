//! What can go wrong, by name.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Why work could not be spread, or a chunk not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NodesError {
    /// A file or a process.
    #[error("cannot {doing}: {source}")]
    Io {
        /// What was tried, and on what.
        doing: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A disk is full, or a quota used up.
    #[error(
        "cannot {doing}: {limit}: free some space and run the same command again, what is finished is kept"
    )]
    Space {
        /// What was tried, and on what.
        doing: String,
        /// Which of the two.
        limit: &'static str,
    },
    /// The directory has the job of other tasks.
    #[error(
        "{directory} has another job ({found}, wanted is {wanted}): remove it, or name another directory"
    )]
    OtherJob {
        /// The job's directory.
        directory: PathBuf,
        /// Kind, id and number of tasks that it has.
        found: String,
        /// Those that were asked for.
        wanted: String,
    },
    /// Another cere made the job.
    #[error(
        "the job in {directory} has version {version}, this cere reads {reads}: use the same cere everywhere"
    )]
    Version {
        /// The job's directory.
        directory: PathBuf,
        /// Its version.
        version: u32,
        /// The one that is read.
        reads: u32,
    },
    /// A file of the job is not what it should be.
    #[error(
        "{file} is damaged ({why}): remove the directory of the job, and run the same command again"
    )]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Another process runs the job.
    #[error("the job in {directory} is run by {holder}: wait for it, or stop it")]
    InUse {
        /// The job's directory.
        directory: PathBuf,
        /// Host and number of the process.
        holder: String,
    },
    /// The job has no such chunk.
    #[error("the job in {directory} has no chunk {chunk}: it has {chunks}, numbered from 0")]
    NoChunk {
        /// The job's directory.
        directory: PathBuf,
        /// The number asked for.
        chunk: usize,
        /// How many there are.
        chunks: usize,
    },
    /// A place that cannot be read.
    #[error(
        "`{text}` is no place to run at ({why}): give `local`, `ssh:HOST[:PORT],...`, `slurm` or `hq`"
    )]
    Place {
        /// What was given.
        text: String,
        /// What is wrong with it.
        why: NoPlace,
    },
    /// A program of the place is not there.
    #[error("cannot run `{program}` ({why}): {remedy}")]
    Program {
        /// Its name.
        program: &'static str,
        /// The system's answer.
        why: std::io::Error,
        /// What to do.
        remedy: &'static str,
    },
    /// The place does not take the work.
    #[error("{place} refuses: {said}")]
    Refused {
        /// Which command said so.
        place: String,
        /// What it said.
        said: String,
    },
    /// Chunks have no result.
    #[error(
        "{left} of {of} chunks have no result (chunk {chunk}: {why}): the same command goes on with them"
    )]
    Missing {
        /// How many.
        left: usize,
        /// Of so many that had none before.
        of: usize,
        /// The first of them.
        chunk: usize,
        /// Why it has none.
        why: String,
    },
    /// This command was told to end.
    #[error("{0}: finished chunks are kept, the same command goes on")]
    Interrupted(String),
}

/// Why a text names no place.
#[derive(Debug, thiserror::Error)]
pub enum NoPlace {
    /// No host behind `ssh`.
    #[error("ssh needs hosts")]
    NoHosts,
    /// A host of that name.
    #[error("{0} is there twice")]
    Twice(String),
    /// A kind of place and hosts.
    #[error("{0} takes no hosts")]
    TakesNone(String),
    /// What stands where a port should.
    #[error("`{0}` is no port")]
    Port(String),
    /// What stands where a host should.
    #[error("`{0}` is no host")]
    Host(String),
    /// No kind of place.
    #[error("unknown")]
    Unknown,
}

/// What this crate's functions return.
pub type Result<T> = std::result::Result<T, NodesError>;

/// An error of the system while `doing` something with `path`.
pub(crate) fn failed(doing: &str, path: &Path) -> impl FnOnce(std::io::Error) -> NodesError {
    let doing = format!("{doing} {}", path.display());
    move |source| match source.kind() {
        ErrorKind::StorageFull => NodesError::Space {
            doing,
            limit: "the disk is full",
        },
        ErrorKind::QuotaExceeded => NodesError::Space {
            doing,
            limit: "the quota is used up",
        },
        _ => NodesError::Io { doing, source },
    }
}

//! Why energy cannot be measured.

use std::io;
use std::path::{Path, PathBuf};

/// What is wrong with which file, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnergyError {
    /// No counter of a package.
    #[error(
        "this machine shows no energy counters: {} {what}; virtual machines usually hide them, and Linux needs its module \
         intel_rapl_msr (`modprobe intel_rapl_msr`): measure on the machine itself, or without energy",
        root.display()
    )]
    None {
        /// Where they would be.
        root: PathBuf,
        /// What is there instead.
        what: &'static str,
    },
    /// Counters are root's, because they leak what a processor computes.
    #[error(
        "{} cannot be read by this user: run as root, or let everybody read energy counters: `sudo chmod a+r {}/*/energy_uj` \
         (until the next start of the machine)",
        path.display(), root.display()
    )]
    Forbidden {
        /// The file.
        path: PathBuf,
        /// The directory of all zones.
        root: PathBuf,
    },
    /// A zone that was there is not any more, or lacks a file.
    #[error(
        "the energy counter {} is not there any more: was its module removed? Measure again",
        path.display()
    )]
    Gone {
        /// The file.
        path: PathBuf,
    },
    /// Another failure.
    #[error("the energy counter {} cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// No number, or one that cannot be.
    #[error(
        "the energy counter {} holds `{text}`, not {wanted}: measure without energy, or report it to the maker of its driver",
        path.display()
    )]
    Garbage {
        /// The file.
        path: PathBuf,
        /// Its content, or the start of it.
        text: String,
        /// What it should hold.
        wanted: String,
    },
    /// Counters that do not count.
    #[error(
        "the energy counters {names} did not move while {seconds:.2} s of work ran: this machine shows counters that count nothing, \
         as some virtual machines do; measure without energy"
    )]
    Still {
        /// Names of the zones.
        names: String,
        /// How long.
        seconds: f64,
    },
}

impl EnergyError {
    /// That `path`, of the zones in `root`, could not be opened or read.
    pub(super) fn of(root: &Path, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match (source.kind(), source.raw_os_error()) {
            (io::ErrorKind::PermissionDenied, _) => Self::Forbidden {
                path,
                root: root.to_owned(),
            },
            (io::ErrorKind::NotFound, _) | (_, Some(libc::ENODEV)) => Self::Gone { path },
            _ => Self::Read { path, source },
        }
    }
}

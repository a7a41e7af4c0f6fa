//! The processes themselves.

use crate::place::Place;
use std::collections::BTreeSet;
use std::io::BufReader;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Child;
use std::sync::Mutex;

/// A process with the state of one package.
pub(super) struct Keeper {
    pub(super) package: PathBuf,
    pub(super) libraries: Vec<PathBuf>,
    pub(super) bytes: u64,
    pub(super) place: Place,
    pub(super) child: Child,
    pub(super) socket: BufReader<UnixStream>,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The processes of one command.
#[derive(Default)]
pub struct Keepers {
    /// Those at rest, the one that was used last at the end.
    pub(super) idle: Mutex<Vec<Keeper>>,
    /// Packages whose state cannot be kept.
    pub(super) refused: Mutex<BTreeSet<PathBuf>>,
    /// Bytes of memory for all of them, if not a part of what is available.
    pub(super) bound: Option<u64>,
}

impl Keepers {
    /// With so many bytes of memory for all states.
    pub fn with_bound(bytes: u64) -> Self {
        Self {
            bound: Some(bytes),
            ..Self::default()
        }
    }
}

//! What a replay, and the process that keeps its state, read of an unpacked package, and the addresses that they reserve for it.

use crate::check;
use crate::error::Error;
use crate::pages::{Bytes, Pages};
use crate::space;
use cere_format::package::{MEMBER_ENTRY, MEMBER_EXIT, MEMBER_MANIFEST, MEMBER_TABLE, Manifest};
use serde::de::DeserializeOwned;
use std::path::Path;

/// Times that the executable starts itself again when an address is taken.
const ATTEMPTS: u32 = 20;
const ENV_ATTEMPT: &str = "CERE_REPLAY_ATTEMPT";

/// What every replay reads of an unpacked package.
pub struct Package {
    /// The manifest, which stays for the life of the process.
    pub manifest: &'static Manifest,
    /// The pages.
    pub pages: Pages,
}

impl Package {
    /// Reads the package in `directory`.
    pub fn open(directory: &Path) -> Result<Self, Error> {
        let member = |name: &str| directory.join(name);
        let manifest: Manifest = read("the manifest", &member(MEMBER_MANIFEST))?;
        let manifest: &'static Manifest = Box::leak(Box::new(manifest));
        check::check(manifest)?;
        let table = Bytes::open(&member(MEMBER_TABLE))?;
        let entry = Bytes::open(&member(MEMBER_ENTRY))?;
        let exit = Bytes::open(&member(MEMBER_EXIT))?;
        let pages = Pages::new(table.get(), entry, exit)?;
        Ok(Self { manifest, pages })
    }
}

/// Starts this executable again, as its addresses are taken; returns why that failed.
fn start_again(start: u64, end: u64) -> Error {
    let attempt = std::env::var(ENV_ATTEMPT).ok();
    let attempt: u32 = attempt.and_then(|a| a.parse().ok()).unwrap_or(0);
    if attempt >= ATTEMPTS {
        return Error::Taken {
            start,
            end,
            times: ATTEMPTS,
        };
    }
    use std::os::unix::process::CommandExt;
    let error = std::process::Command::new("/proc/self/exe")
        .env(ENV_ATTEMPT, (attempt + 1).to_string())
        .exec();
    Error::of_system("cannot start again")(error)
}

/// Reserves the addresses of the captured process; starts this executable again where one is taken.
pub fn reserve(manifest: &Manifest, pages: &Pages) -> Result<(), Error> {
    space::reserve(manifest, &pages.all).map_err(|error| match error {
        Error::Taken { start, end, .. } => start_again(start, end),
        other => other,
    })
}

/// Reads JSON from a file; `what` names it for people.
pub fn read<T: DeserializeOwned>(what: &str, path: &Path) -> Result<T, Error> {
    let text = std::fs::read(path).map_err(Error::file("read", path))?;
    serde_json::from_slice(&text).map_err(Error::json(format!("{what} {}", path.display())))
}

//! `--target` and what goes with it: replays on another architecture.

use anyhow::Result;
use cere_arch::target::{ALL, Target};
use cere_catalogue::anyhow;
use cere_replay::cross::{Cross, Emulator};
use std::path::{Path, PathBuf};

/// Where a codelet is replayed.
#[derive(Debug, Clone, clap::Args)]
pub struct CrossOptions {
    /// Make code for this system, e.g. aarch64-linux-gnu, and run it there: natively, or by an emulator, which tells no time
    #[arg(long, value_name = "SYSTEM")]
    target: Option<String>,
    /// The emulator of --target, started as `PROGRAM -L SYSROOT REPLAY`; by default that of qemu-user
    #[arg(long, value_name = "PROGRAM", requires = "target")]
    runner: Option<PathBuf>,
    /// The directory with the loader and the libraries of --target, e.g. a root made by mmdebstrap; by default that of Debian's
    /// cross compilers
    #[arg(long, value_name = "DIR", requires = "target")]
    sysroot: Option<PathBuf>,
}

/// Where a system's libraries are in its root.
const LIBRARIES: [&str; 4] = ["lib", "usr/lib", "usr/local/lib", "usr/lib/llvm-22/lib"];

impl CrossOptions {
    /// What is asked for; none: this machine as it is.
    pub fn cross(&self) -> Result<Option<Cross>> {
        let Some(name) = &self.target else {
            return Ok(None);
        };
        let target = Target::named(name).ok_or_else(|| unknown(name))?;
        if target == cere_arch::HERE && self.runner.is_none() {
            return Ok(None);
        }
        let facts = target.facts();
        let root = match &self.sysroot {
            Some(root) => std::path::absolute(root)?,
            None => facts.root.into(),
        };
        let emulator = Some(Emulator {
            program: self.program(target)?,
            root: root.clone(),
        });
        let named = LIBRARIES.map(|directory| root.join(directory));
        let multiarch = ["lib", "usr/lib"].map(|d| root.join(d).join(facts.name));
        let libraries = match self.sysroot {
            Some(_) => named.into_iter().chain(multiarch).collect(),
            None => Vec::new(),
        };
        Ok(Some(Cross {
            target,
            emulator,
            libraries,
            split: true,
        }))
    }

    /// The emulator's file.
    fn program(&self, target: Target) -> Result<PathBuf> {
        let wanted = match &self.runner {
            Some(program) => program.as_path(),
            None => Path::new(target.facts().emulator),
        };
        let found = match wanted.components().count() {
            1 => {
                let path = std::env::var_os("PATH").unwrap_or_default();
                let mut places = std::env::split_paths(&path).map(|d| d.join(wanted));
                places.find(|place| place.is_file())
            }
            _ => std::fs::canonicalize(wanted).ok(),
        };
        found.ok_or_else(|| {
            anyhow!(
                E5043,
                "this machine does not run programs of {target}, and {} is not there: install it (Debian: qemu-user), or name an emulator with --runner",
                wanted.display()
            )
        })
    }
}

/// Why a name is no target.
fn unknown(name: &str) -> anyhow::Error {
    let known: Vec<&str> = ALL.iter().map(|t| t.facts().name).collect();
    let why = match name {
        big if big.starts_with("aarch64_be")
            || big.starts_with("powerpc64-")
            || big.starts_with("s390") =>
        {
            ": it is big-endian, and captured memory is little-endian"
        }
        _ => "",
    };
    anyhow!(
        E5042,
        "--target {name:?} is not an architecture that CERE makes code for{why}; there are {}",
        known.join(", ")
    )
}

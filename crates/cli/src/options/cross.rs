//! `--target` and what goes with it: replays on another architecture.

use anyhow::Result;
use cere_arch::target::{ALL, Target};
use cere_catalogue::anyhow;
use cere_measure::emulated;
use cere_replay::cross::Cross;
use std::path::PathBuf;

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
        let (runner, root) = (self.runner.as_deref(), self.sysroot.as_deref());
        emulated::cross(target, runner, root).map(Some)
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

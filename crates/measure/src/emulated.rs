//! Programs of another architecture on this machine.

use anyhow::Result;
use cere_arch::target::Target;
use cere_catalogue::anyhow;
use cere_format::proc;
use cere_replay::cross::{Cross, Emulator};
use cere_system::process::in_path;
use std::path::{Path, PathBuf};

/// Where a system's libraries are in its root.
const LIBRARIES: [&str; 4] = ["lib", "usr/lib", "usr/local/lib", "usr/lib/llvm-22/lib"];

/// Replays of code for `target` under an emulator.
///
/// `runner`: the emulator, by default that of qemu-user. `root`: the directory with the target's loader and libraries, by default that
/// of Debian's cross compilers.
///
/// # Errors
/// The emulator is not there.
pub fn cross(target: Target, runner: Option<&Path>, root: Option<&Path>) -> Result<Cross> {
    let facts = target.facts();
    let libraries = match root {
        None => Vec::new(),
        Some(root) => {
            let root = std::path::absolute(root)?;
            let named = LIBRARIES.map(|directory| root.join(directory));
            let multiarch = ["lib", "usr/lib"].map(|d| root.join(d).join(facts.name));
            named.into_iter().chain(multiarch).collect()
        }
    };
    let root = match root {
        Some(root) => std::path::absolute(root)?,
        None => facts.root.into(),
    };
    Ok(Cross {
        target,
        emulator: Some(Emulator {
            program: program(target, runner)?,
            arguments: Vec::new(),
            root,
        }),
        libraries,
        split: true,
    })
}

/// The emulator's file.
fn program(target: Target, runner: Option<&Path>) -> Result<PathBuf> {
    let wanted = runner.unwrap_or(Path::new(target.facts().emulator));
    let found = match wanted.components().count() {
        1 => in_path(wanted),
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

/// The architecture of the machine that runs an emulator of user programs around this process, as its kernel names it; none if nothing
/// shows one. What is timed there is the emulator.
#[must_use]
pub fn host() -> Option<String> {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/arch").ok();
    foreign(kernel.as_deref(), &proc::cpuinfo())
}

/// The kernel's own word, or what its list of processors looks like.
fn foreign(kernel: Option<&str>, cpuinfo: &str) -> Option<String> {
    let own = cere_arch::HERE.processor();
    let marks = [
        ("vendor_id", "x86_64"),
        ("CPU implementer", "aarch64"),
        ("hart", "riscv64"),
    ];
    let looks = marks
        .iter()
        .find(|(field, _)| proc::field(cpuinfo, field).next().is_some());
    let named = kernel.map(str::trim).filter(|name| !name.is_empty());
    let there = named.or(looks.map(|(_, name)| *name))?;
    (there != own).then(|| there.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emulator_shows_by_the_kernel_below_it() {
        let own = cere_arch::HERE.processor();
        let (other, field) = match own {
            "x86_64" => ("aarch64", "CPU implementer"),
            _ => ("x86_64", "vendor_id"),
        };
        assert_eq!(
            foreign(Some(&format!("{own}\n")), &format!("{field} : 1\n")),
            None
        );
        assert_eq!(foreign(Some(other), "").as_deref(), Some(other));
        assert_eq!(
            foreign(None, &format!("{field} : 1\n")).as_deref(),
            Some(other)
        );
        assert_eq!(foreign(None, ""), None);
    }
}

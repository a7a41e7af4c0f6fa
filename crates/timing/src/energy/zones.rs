//! The zones whose counters are added up.

use super::error::EnergyError;
use std::io;
use std::path::{Path, PathBuf};

/// Environment variable that names a directory in the place of [`POWERCAP`]: a stand-in, for tests.
pub const ENV_POWERCAP: &str = "CERE_POWERCAP";

/// Where Linux shows the counters.
pub const POWERCAP: &str = "/sys/class/powercap";

/// Interfaces to the counters, AMD's too; the second shows packages of the first once more.
const INTERFACES: [&str; 2] = ["intel-rapl", "intel-rapl-mmio"];

/// A zone that counts.
#[derive(Debug, PartialEq, Eq)]
pub struct Zone {
    /// `package-0`, `package-0 dram`.
    pub name: String,
    /// Its directory.
    pub path: PathBuf,
}

/// The content of a small file of a zone in `root`, without the space around it.
pub fn text(root: &Path, path: &Path) -> Result<String, EnergyError> {
    let text =
        std::fs::read_to_string(path).map_err(|source| EnergyError::of(root, path, source))?;
    Ok(text.trim().to_owned())
}

/// The numbers in `intel-rapl:0:1`, if that is a zone of the interface.
fn numbers(entry: &str, interface: &str) -> Option<Vec<u32>> {
    let rest = entry.strip_prefix(interface)?.strip_prefix(':')?;
    rest.split(':').map(|n| n.parse().ok()).collect()
}

/// The packages in `root` and the memory beside each, in order. A package holds what its parts (`core`, `uncore`) count, and `psys`
/// holds everything: neither is counted once more.
///
/// # Errors
/// There are none; a name cannot be read.
pub fn zones(root: &Path) -> Result<Vec<Zone>, EnergyError> {
    let none = |what| EnergyError::None {
        root: root.to_owned(),
        what,
    };
    let entries = match std::fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(none("does not exist"));
        }
        Err(source) => return Err(EnergyError::of(root, root, source)),
    };
    let entries: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    for interface in INTERFACES {
        let of_it = entries.iter().filter_map(|e| numbers(e, interface));
        let mut of_it: Vec<Vec<u32>> = of_it.collect();
        of_it.sort_unstable();
        let found = counted(root, interface, &of_it)?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Err(none(match entries.is_empty() {
        true => "is empty",
        false => "has no zone of a processor package",
    }))
}

/// Those of the zones with these numbers that count.
fn counted(root: &Path, interface: &str, all: &[Vec<u32>]) -> Result<Vec<Zone>, EnergyError> {
    let mut found: Vec<Zone> = Vec::new();
    let mut package: Option<(u32, String)> = None;
    for numbers in all {
        let words: Vec<String> = numbers.iter().map(u32::to_string).collect();
        let path = root.join(format!("{interface}:{}", words.join(":")));
        let name = text(root, &path.join("name"))?;
        match (&numbers[..], &package) {
            ([number], _) if name.starts_with("package") => {
                package = Some((*number, name.clone()));
                found.push(Zone { name, path });
            }
            ([number, _], Some((own, package))) if own == number && name == "dram" => {
                let name = format!("{package} dram");
                found.push(Zone { name, path });
            }
            _ => {}
        }
    }
    Ok(found)
}

//! Finds the parts that the command works with: the plugin, the preload library, the replay runtime.

use anyhow::Result;
use cere_arch::target::Target;
use cere_catalogue::anyhow;
use std::path::{Path, PathBuf};

/// Environment variable that names a directory with the parts.
pub const ENV_HOME: &str = "CERE_HOME";
/// The pass plugin.
pub const PLUGIN: &str = "libcere_pass.so";
/// The preload library.
pub const PRELOAD: &str = "libcere_preload.so";
/// The preload library of counted programs.
pub const COUNTED: &str = "libcere_counted.so";
/// The preload library of tools that stay.
pub const STAY: &str = "libcere_stay.so";
/// The preload library of builds.
pub const EXEC: &str = "libcere_exec.so";
/// The runtime inside replay executables.
pub const RUNTIME: &str = "libcere_runtime.a";

/// The absolute path of the part `name`: in `CERE_HOME`, beside the executable, or in `../lib/cere` from there.
pub fn find(name: &str) -> Result<PathBuf> {
    let executable = std::env::current_exe()?;
    let home = std::env::var_os(ENV_HOME).map(PathBuf::from);
    find_in(&candidates(&executable, home.as_deref()), name)
}

/// The runtime of replay executables for an architecture.
pub fn runtime(target: Target) -> Result<PathBuf> {
    if target == cere_arch::HERE {
        return find(RUNTIME);
    }
    let executable = std::env::current_exe()?;
    let home = std::env::var_os(ENV_HOME).map(PathBuf::from);
    let facts = target.facts();
    let mut all: Vec<PathBuf> = Vec::new();
    for directory in candidates(&executable, home.as_deref()) {
        all.push(directory.join(facts.name));
        // Where cargo puts it.
        if let (Some(profile), Some(above)) = (directory.file_name(), directory.parent()) {
            all.push(above.join(facts.rust).join(profile));
        }
    }
    find_in(&all, RUNTIME).map_err(|_| {
        let places: Vec<String> = all.iter().map(|d| d.display().to_string()).collect();
        anyhow!(
            E5045,
            "the runtime of replays on {target} is missing (looked in {}): run `make cross`, or install a CERE that has it",
            places.join(", ")
        )
    })
}

fn candidates(executable: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = home
        .map(|home| vec![home.to_path_buf(), home.join("lib/cere")])
        .unwrap_or_default();
    if let Some(beside) = executable.parent() {
        all.push(beside.to_path_buf());
        if let Some(prefix) = beside.parent() {
            all.push(prefix.join("lib/cere"));
        }
    }
    all
}

fn find_in(directories: &[PathBuf], name: &str) -> Result<PathBuf> {
    for directory in directories {
        let path = directory.join(name);
        if path.is_file() {
            return Ok(std::path::absolute(path)?);
        }
    }
    let searched: Vec<String> = directories
        .iter()
        .map(|d| d.display().to_string())
        .collect();
    Err(anyhow!(
        E4012,
        "{name} is missing (looked in {}): build or install all of CERE, or set {ENV_HOME} to the directory that holds it",
        searched.join(", ")
    ))
}

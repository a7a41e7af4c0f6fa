//! The compilers that wrappers stand for: their names, and where they are.

use anyhow::{Context, Result};
use cere_catalogue::{anyhow, bail};
use cere_format::build::{ENV_STORE, Language};
use cere_format::language::Front;
use cere_format::store::Store;
use cere_system::process::supervise::shell_code;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names that wrappers go by, with the language and the compiler behind each; a version may follow and a target precede them.
pub fn drivers() -> impl Iterator<Item = (&'static str, Language, &'static str)> {
    Language::all().flat_map(|language| {
        let drivers = language.facts().drivers.iter();
        drivers.map(move |(name, compiler)| (*name, language, *compiler))
    })
}

/// Programs that stand in front of compilers, also under a compiler's name.
const LAUNCHERS: [&str; 6] = ["ccache", "sccache", "distcc", "icecc", "icerun", "colorgcc"];

/// Lets the launchers in a build start the compiler, here and each time: what comes out of a cache, or from another machine,
/// leaves no unit in the store.
pub const LAUNCH_HERE: [(&str, &str); 4] = [
    ("CCACHE_DISABLE", "1"),
    ("SCCACHE_RECACHE", "1"),
    ("DISTCC_HOSTS", "localhost"),
    ("ICECC", "disable"),
];

/// Set by `cere instrument --all-loops`: loops that are too short for a probe become regions all the same.
pub const ENV_ALL_LOOPS: &str = "CERE_ALL_LOOPS";

/// A compile that the pass could not instrument, so that it was made plainly: in the store's `failures/`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Failure {
    /// The source as given.
    pub source: String,
    /// Directory of the compile.
    pub directory: PathBuf,
    /// What the compiler said.
    pub reason: String,
}

/// A compiler that this process acts as.
#[derive(Debug, Clone, Copy)]
pub struct Tool {
    /// Its language.
    pub language: Language,
    /// The compiler that runs in its place.
    pub compiler: &'static str,
}

impl Tool {
    /// Whether it is called as GCC is.
    pub fn is_driver(self) -> bool {
        matches!(self.language.facts().front, Front::Driver)
    }
}

/// The compiler with this file name, if there is one: `gcc`, `gcc-12`, `x86_64-linux-gnu-gcc`.
pub fn tool(name: &str) -> Option<Tool> {
    let plain = ["x86_64-linux-gnu-", "x86_64-pc-linux-gnu-"]
        .iter()
        .find_map(|target| name.strip_prefix(target))
        .unwrap_or(name);
    let digits = |version: &str| version.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let plain = match plain.rsplit_once('-') {
        Some((tool, version)) if digits(version) => tool,
        _ => plain,
    };
    drivers()
        .find(|(tool, ..)| *tool == plain)
        .map(|(_, language, compiler)| Tool { language, compiler })
}

/// The compiler that argv\[0\] names, if it names one.
pub fn tool_of_argv0() -> Option<Tool> {
    let name = PathBuf::from(std::env::args_os().next()?);
    tool(name.file_name()?.to_str()?)
}

/// Names of wrappers: the plain ones, and those in PATH with a version or a target.
pub fn names() -> BTreeSet<String> {
    let mut names: BTreeSet<String> = drivers().map(|(name, ..)| name.to_owned()).collect();
    for directory in std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()) {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let found = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names.extend(found.filter(|name| tool(name).is_some()));
    }
    names
}

pub fn store() -> Result<Store> {
    if let Some(path) = std::env::var_os(ENV_STORE) {
        return Ok(Store::new(std::path::absolute(PathBuf::from(path))?));
    }
    // A wrapper called by its path, for example from a configured build directory, lies in its store.
    let name = PathBuf::from(std::env::args_os().next().unwrap_or_default());
    if let Some(bin) = name
        .parent()
        .filter(|p| p.ends_with("bin") && p.is_absolute())
    {
        return Ok(Store::new(bin.parent().context("no parent")?));
    }
    bail!(
        E1019,
        "{ENV_STORE} is not set: compilers wrapped by cere run under `cere instrument -- <build command>`"
    )
}

/// The compiler itself: the first in PATH that is neither a wrapper nor a launcher.
pub fn compiler(name: &str) -> Result<PathBuf> {
    let this = std::env::current_exe()?.canonicalize()?;
    let launcher = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| LAUNCHERS.contains(&name))
    };
    let wrapper = |path: &Path| path.canonicalize().is_ok_and(|p| p == this || launcher(&p));
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .map(|directory| directory.join(name))
        .find(|path| path.is_file() && !wrapper(path))
        .ok_or_else(|| match name.ends_with("-22") {
            true => anyhow!(
                E1001,
                "{name} is not in PATH: install LLVM 22 with clang and flang"
            ),
            false => anyhow!(E1032, "{name} is not in PATH: install it, or correct PATH"),
        })
}

/// The compiler that this process was started in the place of: `cere-exec` leaves its path.
pub fn named_by_path() -> Result<Option<PathBuf>> {
    let name = PathBuf::from(std::env::args_os().next().unwrap_or_default());
    let this = std::env::current_exe()?.canonicalize()?;
    let other = name.is_absolute() && name.canonicalize().is_ok_and(|path| path != this);
    Ok(other.then_some(name))
}

/// Runs the compiler as it was called; its exit status.
pub fn pass_through(compiler: &Path, arguments: &[String]) -> Result<u8> {
    let status = Command::new(compiler)
        .args(arguments)
        .status()
        .with_context(|| format!("cannot run {}", compiler.display()))?;
    Ok(shell_code(status))
}

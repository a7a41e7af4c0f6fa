//! The compiler wrapper: runs clang-22, clang++-22 or flang-22 with the pass, one source at a time, and records
//! compile and link commands in the store.
//!
//! A wrapper is a program of its own: it speaks on stderr, as the compiler whose place it takes.

mod compile;
pub mod edited;
pub mod front;
mod inputs;
mod job;
pub mod modules;
mod object;
mod own;
mod rust;
pub mod said;

use anyhow::{Context, Result, anyhow, bail};
use cere_format::build::{ENV_STORE, Language, LinkCommand};
use cere_format::language::Front;
use cere_format::store::Store;
use cere_system::console::warning;
use cere_system::process::supervise::shell_code;
use cere_toolchain::arguments::{self, Item, Mode};
use cere_toolchain::gcc;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names that wrappers go by, with the language and the compiler behind each; a version may follow and a target precede them.
fn drivers() -> impl Iterator<Item = (&'static str, Language, &'static str)> {
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
    language: Language,
    compiler: &'static str,
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

fn store() -> Result<Store> {
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
            true => anyhow!("{name} is not in PATH: install LLVM 22 with clang and flang"),
            false => anyhow!("{name} is not in PATH: install it, or correct PATH"),
        })
}

/// The parts of a recorded link, in order: options, sources and other files.
pub fn link_items(command: &LinkCommand) -> Result<Vec<LinkItem>> {
    let (_, language, _) = drivers()
        .find(|(.., compiler)| *compiler == command.compiler)
        .with_context(|| {
            format!(
                "the link of {} was made by {}, which no wrapper stands for",
                command.output.display(),
                command.compiler
            )
        })?;
    let compiler = match &command.front {
        Some(front) => front.clone(),
        None => compiler(&command.compiler)?,
    };
    let adapted = gcc::adapt(&command.arguments, &compiler, language)?;
    let parsed = arguments::parse(&adapted.arguments, language);
    let items = parsed.items.into_iter().filter_map(|item| match item {
        Item::Source { path, .. } => Some(LinkItem::Source(path)),
        Item::Assembler { path, .. } => Some(LinkItem::Assembler(path)),
        Item::Other(path) => Some(LinkItem::File(path)),
        Item::Option(words) => job::link_words(&words).map(LinkItem::Words),
    });
    Ok(items.collect())
}

/// A part of a recorded link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkItem {
    /// An option with its value.
    Words(Vec<String>),
    /// A source that the same command compiled under the pass.
    Source(String),
    /// A source that it compiled without the pass.
    Assembler(String),
    /// An object, archive or library file.
    File(String),
}

/// The compiler that this process was started in the place of: `cere-exec` leaves its path.
fn named_by_path() -> Result<Option<PathBuf>> {
    let name = PathBuf::from(std::env::args_os().next().unwrap_or_default());
    let this = std::env::current_exe()?.canonicalize()?;
    let other = name.is_absolute() && name.canonicalize().is_ok_and(|path| path != this);
    Ok(other.then_some(name))
}

/// The machine that a compiler makes code for, as it says; what it says otherwise is no machine.
fn machine_of(compiler: &Path) -> String {
    let output = Command::new(compiler).arg("-dumpmachine").output();
    let said = output.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned());
    match said {
        Ok(said) if !said.is_empty() => said,
        _ => "a machine that it does not name".to_owned(),
    }
}

fn pass_through(compiler: &Path, arguments: &[String]) -> Result<u8> {
    let status = Command::new(compiler)
        .args(arguments)
        .status()
        .with_context(|| format!("cannot run {}", compiler.display()))?;
    Ok(shell_code(status))
}

/// Acts as `tool` with the arguments of this process.
pub fn run(tool: Tool) -> Result<u8> {
    let given = std::env::args_os()
        .skip(1)
        .map(|a| {
            a.into_string()
                .map_err(|a| anyhow!("the argument {} is not UTF-8", a.display()))
        })
        .collect::<Result<Vec<String>>>()?;
    let named = named_by_path()?;
    match tool.language.facts().front {
        Front::Driver => drive(tool, given, named),
        Front::Rustc => rust::run(&given, named),
        Front::Own(parse) => own::run(tool, &given, named, parse),
    }
}

/// Acts as a driver whose arguments are GCC's; `named`: the compiler that the build names by its path.
fn drive(tool: Tool, given: Vec<String>, named: Option<PathBuf>) -> Result<u8> {
    let store = store();
    if let Some(named) = named {
        let machine = machine_of(&named);
        let what = match machine.starts_with("x86_64") {
            true => format!("is replaced by {}, as compilers in PATH are", tool.compiler),
            false => format!("is left as it is: it compiles for {machine}"),
        };
        let message = format!(
            "{}, which the build names by its path, {what}",
            named.display()
        );
        if let Ok(store) = &store {
            said::once(store, &message);
        }
        if !machine.starts_with("x86_64") {
            return pass_through(&named, &given);
        }
    }
    let front = front::of_environment(tool.language)?;
    let compiler = match &front {
        Some(front) => front.clone(),
        None => compiler(tool.compiler)?,
    };
    let expanded = arguments::expand(given, 0)?;
    let adapted = gcc::adapt(&expanded, &compiler, tool.language)?;
    for warning in &adapted.warnings {
        match &store {
            Ok(store) => said::once(store, warning),
            Err(_) => warning!("{warning}"),
        }
    }
    let mut parsed = arguments::parse(&adapted.arguments, tool.language);
    if tool.language == Language::Fortran
        && let Ok(store) = &store
    {
        modules::prefer(store, &compiler, &mut parsed)?;
    }
    if parsed.mode == Mode::PassThrough {
        return pass_through(&compiler, &adapted.arguments);
    }
    job::Job {
        name: tool.compiler,
        front: front.is_some(),
        compiler,
        store: store?,
        directory: std::env::current_dir()?,
        expanded,
        parsed,
    }
    .run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_compilers() {
        for (name, compiler) in [
            ("gcc", "clang-22"),
            ("gcc-12", "clang-22"),
            ("clang++-22", "clang++-22"),
            ("x86_64-linux-gnu-g++-12", "clang++-22"),
            ("flang-new", "flang-22"),
            ("rustc", "rustc"),
            ("zig", "zig"),
        ] {
            assert_eq!(tool(name).map(|t| t.compiler), Some(compiler), "{name}");
        }
        for name in ["cere", "gcc-ar", "clang-tidy-22", "clang-format", "ld", ""] {
            assert!(tool(name).is_none(), "{name}");
        }
    }
}

//! rustc, which loads the pass as clang does: both are LLVM 22.

use super::compile::through_pass;
use super::inputs::{ENV_KEEP_INPUTS, ENV_UNRECORDED};
use super::job::Job;
use super::said;
use super::tools::{compiler, pass_through, store};
use crate::{components, state};
use anyhow::{Context, Result};
use cere_format::build::{ENV_COMMAND, ENV_HEADERS};
use cere_format::language::rust::{COMPILER, Rustc};
use cere_system::process::supervise::shell_code;
use cere_toolchain::arguments::Parsed;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// Lets a released compiler load a pass.
pub const BOOTSTRAP: &str = "RUSTC_BOOTSTRAP";
/// The LLVM of a compiler that can.
const LLVM: &str = "LLVM version: 22.";

/// Acts as rustc; `named`: the compiler that the build names by its path.
pub fn run(given: &[String], named: Option<PathBuf>) -> Result<u8> {
    let rustc = match named {
        Some(named) => named,
        None => compiler(COMPILER)?,
    };
    let expanded = expand(given)?;
    let call = Rustc::parse(&expanded);
    let primary = std::env::var_os("CARGO_PRIMARY_PACKAGE").is_some();
    if !call.makes_code() || !call.is_of_program(primary) {
        // Its link is nobody's business: what it makes serves the build alone.
        let status = Command::new(&rustc)
            .args(given)
            .env(ENV_UNRECORDED, "1")
            .status();
        let status = status.with_context(|| format!("cannot run {}", rustc.display()))?;
        return Ok(shell_code(status));
    }
    let store = store()?;
    let said_version = version(&rustc, &expanded);
    if let Some(why) = refused(&call, &said_version) {
        said::once(&store, &format!("{}: {why}", rustc.display()));
        return pass_through(&rustc, given);
    }
    let (line, changes) = call.whole();
    for change in changes {
        said::once(&store, change);
    }
    let output = call.product();
    let job = Job {
        name: COMPILER,
        front: true,
        compiler: rustc,
        store,
        directory: std::env::current_dir()?,
        expanded,
        parsed: Parsed::compile(&output, call.has_debug(), call.flags()),
    };
    let line = with_pass(&line, &components::find(components::PLUGIN)?, &said_version);
    job.crate_of(&call, line, &output, given)
}

/// The arguments, those in files among them, one a line.
fn expand(given: &[String]) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for argument in given {
        match argument.strip_prefix('@') {
            Some(file) => {
                let text = std::fs::read_to_string(file)
                    .with_context(|| format!("cannot read the arguments in {file}"))?;
                all.extend(text.lines().map(str::to_owned));
            }
            None => all.push(argument.clone()),
        }
    }
    Ok(all)
}

/// What the compiler that is called so says of itself: rustup's may be told first which one it is (`+nightly`).
pub fn version(rustc: &Path, arguments: &[String]) -> String {
    let toolchain = arguments.first().filter(|first| first.starts_with('+'));
    let output = Command::new(rustc).args(toolchain).arg("-vV").output();
    output.map_or_else(
        |_| String::new(),
        |o| String::from_utf8_lossy(&o.stdout).into_owned(),
    )
}

fn field<'a>(version: &'a str, name: &str) -> &'a str {
    let line = version.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or("unknown").trim()
}

/// Why a crate is left as it is.
fn refused(call: &Rustc, version: &str) -> Option<String> {
    if let Some(target) = call
        .target
        .as_deref()
        .filter(|t| !(t.starts_with("x86_64") && t.contains("linux")))
    {
        return Some(format!(
            "crates for {target} are left as they are: regions are captured on x86-64 Linux"
        ));
    }
    if !version.contains(LLVM) {
        return Some(format!(
            "its LLVM is {}, and the pass is LLVM 22's: crates are left as they are. Use Rust 1.95 or a neighbour of it (`rustup run 1.95.0 cargo build`), or have it write bitcode, which cere takes at the link: RUSTFLAGS=\"-C linker-plugin-lto -C no-prepopulate-passes -C codegen-units=1 -C debuginfo=line-tables-only -C linker=cc\"",
            field(version, "LLVM version:")
        ));
    }
    None
}

impl Job {
    /// Compiles the crate by `line`, or as `given` where the pass fails on it.
    fn crate_of(
        &self,
        call: &Rustc,
        mut line: Vec<String>,
        output: &Path,
        given: &[String],
    ) -> Result<u8> {
        let scratch = state::own_scratch(&self.store)?;
        let path = scratch.path().join("command.json");
        let mut record = self.record(output)?;
        record.variables = variables();
        let files = list_files(call, &mut line, scratch.path());
        let mut variables = record.variables.clone();
        // What cargo was told once it does not expect again.
        let told = RefCell::default();
        let tried = through_pass(&mut record, &path, || {
            self.rustc(&line, Some((&path, &files)), &told)
        })?;
        let name = call.root.as_deref().unwrap_or(COMPILER);
        let done = || {
            variables.extend(asked_for(&files));
            self.note_crate(output, &variables)
        };
        self.concluded(name, tried, done, || self.rustc(given, None, &told))
    }

    /// Runs the compiler; what it says is returned, but for what cargo waits for, such as that the metadata is there: that goes on at once, unless
    /// it was `told`. `with`: the pass's record and the list of files.
    fn rustc(
        &self,
        line: &[String],
        with: Option<(&Path, &Path)>,
        told: &RefCell<HashSet<String>>,
    ) -> Result<(ExitStatus, String)> {
        let mut command = Command::new(&self.compiler);
        command
            .args(line)
            .env_remove(ENV_COMMAND)
            .env(ENV_KEEP_INPUTS, "1")
            .stderr(Stdio::piped());
        if let Some((record, files)) = with {
            command
                .env(BOOTSTRAP, "1")
                .env(ENV_COMMAND, record)
                .env(ENV_HEADERS, files);
        }
        let child = command.spawn();
        let mut child = child.with_context(|| format!("cannot run {}", self.compiler.display()))?;
        let mut said = String::new();
        if let Some(pipe) = child.stderr.take() {
            for line in BufReader::new(pipe).split(b'\n') {
                let line = line?;
                let text = String::from_utf8_lossy(&line).into_owned();
                if !text.contains("\"$message_type\":\"artifact\"") {
                    said = said + &text + "\n";
                } else if told.borrow_mut().insert(text.clone()) {
                    eprintln!("{text}");
                }
            }
        }
        Ok((child.wait()?, said))
    }
}

/// The variables that a crate's source may ask for, as cargo sets them, and the toolchain that rustup is asked for. No others: some of
/// cargo's are secrets.
fn variables() -> BTreeMap<String, String> {
    const OWN: [&str; 7] = [
        "CARGO",
        "CARGO_CRATE_NAME",
        "CARGO_BIN_NAME",
        "CARGO_PRIMARY_PACKAGE",
        "OUT_DIR",
        "RUSTUP_TOOLCHAIN",
        "CARGO_TARGET_TMPDIR",
    ];
    let starts = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    let all = std::env::vars_os();
    let text =
        all.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    text.filter(|(name, _)| OWN.contains(&&**name) || starts(name))
        .collect()
}

/// Those that it did ask for, by the list of its files.
fn asked_for(files: &Path) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(files).unwrap_or_default();
    let asked = text
        .lines()
        .filter_map(|line| line.strip_prefix("# env-dep:"));
    let asked = asked.filter_map(|line| line.split_once('='));
    asked
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Where the list of the crate's files goes: the user's own, or one in `scratch` that is added to what is asked for.
fn list_files(call: &Rustc, line: &mut Vec<String>, scratch: &Path) -> PathBuf {
    if call.emits("dep-info") {
        return match call.emitted("dep-info") {
            Some(path) => path.into(),
            None => call.product_of("d"),
        };
    }
    let own = scratch.join("files.d");
    if call.emits.is_empty() {
        line.push("--emit=link".to_owned());
    }
    line.push(format!("--emit=dep-info={}", own.display()));
    own
}

/// `line` with the pass, for the compiler that says `version` of itself.
pub fn with_pass(line: &[String], plugin: &Path, version: &str) -> Vec<String> {
    let mut full = line.to_vec();
    full.push(format!("-Zllvm-plugins={}", plugin.display()));
    // The names of values.
    full.push("-Zfewer-names=no".to_owned());
    // What a released compiler refuses to a crate it still does.
    let released = !field(version, "release:").contains('-');
    if released && std::env::var_os(BOOTSTRAP).is_none() {
        full.push("-Zallow-features=".to_owned());
    }
    full
}

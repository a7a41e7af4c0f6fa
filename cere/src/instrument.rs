//! `cere instrument -- CMD`: runs a build with the wrappers ahead in PATH and reports what it left in the store.

use crate::options::Common;
use crate::{components, state, wrapper};
use anyhow::{Context, Result, bail};
use cere_format::build::ENV_STORE;
use std::os::unix::fs::symlink;
use std::process::Command;

/// Run a build with the compiler wrappers
#[derive(clap::Args)]
#[command(after_help = "Example:\n  cere instrument -- make -j2")]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Compile units that cannot be instrumented plainly and list them
    #[arg(long)]
    keep_going: bool,
    /// The build command
    #[arg(required = true, last = true)]
    command: Vec<String>,
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    let store = options.common.store()?;
    components::find(components::PLUGIN)?;
    let _lock = state::lock(&store)?;
    let bin = store.wrappers();
    state::make_directory(&bin)?;
    let executable = std::env::current_exe()?;
    for (name, ..) in wrapper::TOOLS {
        let link = bin.join(name);
        let _ = std::fs::remove_file(&link);
        symlink(&executable, &link)
            .with_context(|| format!("cannot create the wrapper {}", link.display()))?;
    }
    let _ = std::fs::remove_dir_all(store.failures());
    let mut path = vec![bin.clone()];
    path.extend(std::env::split_paths(
        &std::env::var_os("PATH").unwrap_or_default(),
    ));
    let mut build = Command::new(&options.command[0]);
    build
        .args(&options.command[1..])
        .env("PATH", std::env::join_paths(path)?)
        .env("CC", bin.join("clang"))
        .env("CXX", bin.join("clang++"))
        .env("FC", bin.join("flang"))
        .env("F77", bin.join("flang"))
        .env(ENV_STORE, store.root());
    if options.keep_going {
        build.env(wrapper::ENV_KEEP_GOING, "1");
    }
    if options.common.json {
        // stdout is for the report alone.
        build.stdout(std::io::stderr());
    }
    let status = build
        .status()
        .with_context(|| format!("cannot run {}", options.command[0]))?;
    let mut failures: Vec<wrapper::Failure> = Vec::new();
    if let Ok(entries) = std::fs::read_dir(store.failures()) {
        for entry in entries {
            failures.push(state::read_json(&entry?.path())?);
        }
    }
    let units = if store.units().is_dir() {
        state::current_units(&store)?
    } else {
        Vec::new()
    };
    let outlined = units
        .iter()
        .flat_map(|u| &u.regions)
        .filter(|r| r.outlined)
        .count();
    let refused = units.iter().flat_map(|u| &u.regions).count() - outlined;
    if options.common.json {
        println!(
            "{}",
            serde_json::json!({"units": units.len(), "regions": outlined, "refused": refused, "failures": failures})
        );
    }
    eprintln!(
        "cere: {} units, {outlined} regions, {refused} loops refused (`cere regions` lists them)",
        units.len()
    );
    for failure in &failures {
        eprintln!(
            "cere: not instrumented: {}: {}",
            failure.source, failure.reason
        );
    }
    if !status.success() {
        bail!(
            "the build command `{}` failed: {status}",
            options.command.join(" ")
        );
    }
    if !failures.is_empty() && !options.keep_going {
        bail!(
            "{} units could not be instrumented: see above, or pass --keep-going",
            failures.len()
        );
    }
    if units.is_empty() {
        bail!(
            "the build compiled nothing through cere's wrappers: clean it first, and let it take its compilers from CC, CXX, FC or PATH"
        );
    }
    Ok(0)
}

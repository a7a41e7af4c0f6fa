//! `cere instrument -- CMD`: runs a build with the wrappers ahead in PATH and reports what it left in the store.

use crate::options;
use crate::options::Common;
use anyhow::{Context, Result, bail};
use cere_build::wrapper;
use cere_console::{note, print};
use cere_format::build::ENV_STORE;
use cere_format::store::Store;
use cere_process::supervise;
use cere_process::supervise::shell_code;
use cere_store::{components, state};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

/// Run a build with the compiler wrappers
#[derive(clap::Args)]
#[command(after_help = "\
Wrappers named cc, gcc, clang, c++, g++, clang++, gfortran, flang and so on come first in PATH and in CC, CXX, FC.\n\
\n\
Examples:\n\
\x20 cere instrument -- make -j2\n\
\x20 cere instrument -- ./configure && cere instrument -- make\n\
\x20 cere instrument -- cmake -S . -B build && cere instrument -- cmake --build build")]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Compile units that cannot be instrumented plainly and list them
    #[arg(long)]
    keep_going: bool,
    /// Outline short loops as well: those of at most 1000 instructions and searches in functions that loops call, and those
    /// that `cere profile` found too short
    #[arg(long)]
    all_loops: bool,
    /// Kill the build after this many seconds
    #[arg(long, value_name = "S", value_parser = options::seconds)]
    timeout: Option<f64>,
    /// The build command
    #[arg(required = true, last = true)]
    command: Vec<String>,
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    let store = options.common.store()?;
    components::find(components::PLUGIN)?;
    wrapper::compiler("clang-22")?;
    let _lock = state::lock(&store)?;
    place_wrappers(&store.wrappers())?;
    let _ = std::fs::remove_dir_all(store.failures());
    let started = file_system_time(&store)?;
    let mut build = command(options, &store)?;
    let ended = supervise::run(&mut build, &options.command[0], options.timeout)?;
    if let Some(late) = ended.late {
        bail!(late);
    }
    let status = ended.status;
    let failures = failures(&store)?;
    let compiled = compiled_since(&store, started)?;
    let units = if store.current().is_dir() {
        state::current_units(&store)?
    } else {
        Vec::new()
    };
    let loops = units.iter().flat_map(|u| &u.regions);
    let outlined = loops.clone().filter(|r| r.outlined).count();
    let refused = loops.count() - outlined;
    if options.common.json {
        print::json(
            &serde_json::json!({"status": shell_code(status), "compiled": compiled,
            "units": units.len(), "regions": outlined, "refused": refused, "failures": failures}),
        )?;
    }
    note!(
        "{compiled} units compiled; the build now has {} units, {outlined} regions, {refused} loops refused (`cere regions` lists them)",
        units.len()
    );
    for failure in &failures {
        note!("not instrumented: {}: {}", failure.source, failure.reason);
    }
    if !status.success() {
        print::line(&format!(
            "cere: error: the build command `{}` failed: {status}",
            options.command.join(" ")
        ));
        return Ok(shell_code(status));
    }
    if !failures.is_empty() && !options.keep_going {
        bail!(
            "{} units could not be instrumented: see above, or pass --keep-going",
            failures.len()
        );
    }
    if compiled > 0 || !failures.is_empty() {
        return Ok(0);
    }
    let here = std::env::current_dir()?;
    if units.iter().any(|u| u.command.directory.starts_with(&here)) {
        note!(
            "nothing was compiled: everything is up to date, and the units of earlier builds still count"
        );
        return Ok(0);
    }
    bail!(
        "the build compiled nothing through cere's wrappers, and the store has nothing of this directory. Is everything up to date? Clean it first (`make clean`, or `touch` the sources). Does it name its compilers by an absolute path? Let it take them from CC, CXX, FC or PATH"
    )
}

fn place_wrappers(bin: &Path) -> Result<()> {
    state::make_directory(bin)?;
    let executable = std::env::current_exe()?;
    for name in wrapper::names() {
        let link = bin.join(name);
        let _ = std::fs::remove_file(&link);
        symlink(&executable, &link)
            .with_context(|| format!("cannot create the wrapper {}", link.display()))?;
    }
    Ok(())
}

fn command(options: &Options, store: &Store) -> Result<Command> {
    let bin = store.wrappers();
    let mut path = vec![bin.clone()];
    path.extend(std::env::split_paths(
        &std::env::var_os("PATH").unwrap_or_default(),
    ));
    let path = std::env::join_paths(path)
        .with_context(|| format!("{} cannot stand in PATH", bin.display()))?;
    let mut build = Command::new(&options.command[0]);
    build
        .args(&options.command[1..])
        .env("PATH", path)
        .env("CC", bin.join("clang"))
        .env("CXX", bin.join("clang++"))
        .env(ENV_STORE, store.root());
    for fortran in ["FC", "F77", "F90"] {
        build.env(fortran, bin.join("flang"));
    }
    if options.keep_going {
        build.env(wrapper::ENV_KEEP_GOING, "1");
    }
    // An outer build's setting is not this one's.
    build.env_remove(wrapper::ENV_ALL_LOOPS);
    if options.all_loops {
        build.env(wrapper::ENV_ALL_LOOPS, "1");
    }
    if options.common.json {
        // stdout is for the report alone.
        build.stdout(std::io::stderr());
    }
    Ok(build)
}

/// The file system's time, which is coarser than the clock's.
fn file_system_time(store: &Store) -> Result<SystemTime> {
    let path = state::scratch(store).join("start");
    state::make_directory(&state::scratch(store))?;
    std::fs::write(&path, "").with_context(|| format!("cannot write {}", path.display()))?;
    Ok(std::fs::metadata(&path)?.modified()?)
}

/// Number of compiles that left a unit from `start` on.
fn compiled_since(store: &Store, start: SystemTime) -> Result<usize> {
    let Ok(entries) = std::fs::read_dir(store.current()) else {
        return Ok(0);
    };
    let mut count = 0;
    for entry in entries {
        if entry?.metadata()?.modified()? >= start {
            count += 1;
        }
    }
    Ok(count)
}

fn failures(store: &Store) -> Result<Vec<wrapper::Failure>> {
    let Ok(entries) = std::fs::read_dir(store.failures()) else {
        return Ok(Vec::new());
    };
    entries
        .map(|entry| state::read_json(&entry?.path()))
        .collect()
}

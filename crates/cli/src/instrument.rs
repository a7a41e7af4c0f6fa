//! `cere instrument -- CMD`: runs a build with the wrappers ahead in PATH and reports what it left in the store.

use crate::functions::Functions;
use crate::options;
use crate::options::Common;
use crate::split::Split;
use anyhow::{Context, Result};
use cere_catalogue::{anyhow, bail};
use cere_format::build::{BuildCommand, ENV_BUILD, ENV_STORE, ENV_WRAPPERS, Language, Unit};
use cere_format::store::Store;
use cere_store::build::image::no_regions;
use cere_store::build::made::{self, Stray};
use cere_store::build::plain::Plain;
use cere_store::build::wrapper::{self, said};
use cere_store::{components, state};
use cere_system::console::{note, print, warning};
use cere_system::process::supervise;
use cere_system::process::supervise::shell_code;
use cere_toolchain::unit::FLANG;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// Run a build with the compiler wrappers
#[derive(clap::Args)]
#[command(after_help = "\
Wrappers named cc, gcc, clang, c++, g++, clang++, gfortran, flang and so on come first in PATH and in CC, CXX, FC, and take\n\
the place of compilers that the build names by an absolute path.\n\
\n\
Examples:\n\
\x20 cere instrument -- make -j2\n\
\x20 cere instrument --split 'main@step.c:12' -- make\n\
\x20 cere instrument --functions 'Grid::*' --functions solve -- make\n\
\x20 cere instrument -- ./configure && cere instrument -- make\n\
\x20 cere instrument -- cmake -S . -B build && cere instrument -- cmake --build build")]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// What happens without it too
    #[arg(long, hide = true)]
    keep_going: bool,
    /// Outline short loops as well: those of at most 1000 instructions and searches in functions that loops call, and those
    /// that `cere profile` found too short
    #[arg(long)]
    all_loops: bool,
    /// Make the loops directly inside this loop or function regions too (a name, or a unique prefix or glob, as `cere regions` prints it; may be given
    /// several times): for one that cannot be captured because it communicates. Its file is compiled again, and the choice
    /// is kept in the store
    #[arg(long, value_name = "REGION")]
    split: Vec<String>,
    /// Make these functions regions as a whole, in place of their loops (a name with scopes and without parameters, a symbol, or a glob
    /// of them; may be given several times). What the source marks with `__attribute__((annotate("cere.region")))` is one anyway.
    /// Files that hold them are compiled again, and the choice is kept in the store; an empty name forgets earlier ones
    #[arg(long, value_name = "FUNCTION")]
    functions: Vec<String>,
    /// Let this compiler's front end read C and C++ (clang-14 to clang-22, icx and others made of LLVM): headers, language and warnings
    /// are its own; the optimiser and the code generator are clang 22's
    #[arg(long, value_name = "CLANG")]
    compiler: Option<String>,
    /// Make modules of Fortran from the sources in this directory, for builds that use modules which gfortran compiled (may be given
    /// several times; kept in the store). The module mpi is made without it
    #[arg(long, value_name = "DIR")]
    module_source: Vec<PathBuf>,
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
    if let Some(named) = &options.compiler {
        let said = wrapper::front::check(named)?;
        note!("C and C++ are read by {said}; code is made of them by clang 22");
    }
    let _lock = state::lock(&store)?;
    place_wrappers(&store.wrappers())?;
    let _ = std::fs::remove_dir_all(store.failures());
    said::begin(&store)?;
    if !options.module_source.is_empty() {
        wrapper::modules::make(&store, &wrapper::compiler(FLANG)?, &options.module_source)?;
    }
    let started = file_system_time(&store)?;
    let split = Split::before_build(&store, &options.split)?;
    let functions = Functions::before_build(&store, &options.functions)?;
    let mut build = command(options, &store)?;
    let ended = supervise::run(&mut build, &options.command[0], options.timeout)?;
    if let Some(late) = ended.late {
        bail!(E4016, "{late}");
    }
    if ended.status.success() {
        split.after_build(&store)?;
        functions.after_build(&store)?;
    }
    let here = std::env::current_dir()?;
    let left = Left::by(&store, started, &here)?;
    if ended.status.success() && left.compiled > 0 {
        let build = BuildCommand {
            version: BuildCommand::VERSION,
            command: options.command.clone(),
            directory: here.clone(),
        };
        state::write_json(&store.build(), &build)?;
    }
    if options.common.json {
        print::json(&left.json(shell_code(ended.status)))?;
    }
    left.print();
    if !ended.status.success() {
        print::failed(&anyhow!(
            E1015,
            "the build command `{}` failed: {}",
            options.command.join(" "),
            ended.status
        ));
        return Ok(shell_code(ended.status));
    }
    left.judge(&here)
}

/// What a build left.
struct Left {
    compiled: usize,
    linked: usize,
    units: Vec<Unit>,
    failures: Vec<wrapper::Failure>,
    plain: Vec<Plain>,
    replaced: Vec<PathBuf>,
    strays: Vec<Stray>,
    warnings: Vec<(String, usize)>,
}

/// Names in a message.
const SHOWN: usize = 3;

/// The first of some names, and how many more there are.
fn some(names: &[String]) -> String {
    let shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>();
    match names.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

impl Left {
    fn by(store: &Store, started: SystemTime, here: &Path) -> Result<Self> {
        let compiled = compiled_since(store, started)?;
        let units = match store.current().is_dir() {
            true => state::current_units(store)?,
            false => Vec::new(),
        };
        let (linked, plain) = made::images(store, started);
        let failures = failures(store)?;
        // Compilers that came by other ways matter where nothing came by the wrappers.
        let seen = compiled > 0 || !failures.is_empty();
        Ok(Self {
            compiled,
            linked,
            replaced: made::replaced(&units)
                .into_iter()
                .filter_map(|unit| unit.command.output.clone())
                .collect(),
            strays: match seen {
                true => Vec::new(),
                false => made::strays(here, store, started),
            },
            units,
            failures,
            plain,
            warnings: said::end(store),
        })
    }

    fn outlined(&self) -> usize {
        let loops = self.units.iter().flat_map(|u| &u.regions);
        loops.filter(|r| r.outlined).count()
    }

    fn refused(&self) -> usize {
        let loops = self.units.iter().flat_map(|u| &u.regions);
        loops.count() - self.outlined()
    }

    fn json(&self, status: u8) -> serde_json::Value {
        let warnings = self
            .warnings
            .iter()
            .map(|(message, times)| serde_json::json!({"message": message, "times": times}));
        serde_json::json!({"status": status, "compiled": self.compiled, "linked": self.linked,
            "units": self.units.len(), "regions": self.outlined(), "refused": self.refused(),
            "failures": self.failures, "without_units": self.plain, "replaced": self.replaced,
            "unseen": self.strays, "warnings": warnings.collect::<Vec<_>>()})
    }

    fn print(&self) {
        let units = self.units.len();
        note!(
            "{} units compiled; the build now has {units} units, {} regions, {} loops refused (`cere regions` lists them)",
            self.compiled,
            self.outlined(),
            self.refused(),
        );
        for (message, times) in self.warnings.iter().filter(|(_, times)| *times > 1) {
            note!("{times} times in this build: {message}");
        }
        if units > 0 && self.outlined() == 0 {
            note!("the build has no regions: {}", no_regions(self.refused()));
        }
        for failure in &self.failures {
            note!("not instrumented: {}: {}", failure.source, failure.reason);
        }
        for plain in self.plain.iter().take(SHOWN) {
            warning!("{plain}");
        }
        if self.plain.len() > SHOWN {
            warning!("likewise of {} more images", self.plain.len() - SHOWN);
        }
        if !self.replaced.is_empty() {
            let names: Vec<String> = self
                .replaced
                .iter()
                .map(|o| o.display().to_string())
                .collect();
            warning!(
                "made again without cere's wrappers since its unit was kept, so its regions are gone: {}. Remove it and build again with `cere instrument`",
                some(&names)
            );
        }
    }

    /// Whether the build is one that can be worked with.
    fn judge(&self, here: &Path) -> Result<u8> {
        if self.compiled > 0 {
            return Ok(0);
        }
        if !self.failures.is_empty() {
            bail!(E1012, "no unit could be instrumented: see above");
        }
        let known = self
            .units
            .iter()
            .any(|u| u.command.directory.starts_with(here));
        if !self.strays.is_empty() {
            let names: Vec<String> = self
                .strays
                .iter()
                .map(|s| format!("{} (by {})", s.file.display(), s.compiler))
                .collect();
            let message = format!(
                "the build compiled nothing through cere's wrappers, but made {}: does it start its compilers in a way of its own? Let it take them from CC, CXX, FC or PATH",
                some(&names)
            );
            if !known {
                bail!(E1003, "{message}");
            }
            warning!("{message}");
            return Ok(0);
        }
        if known {
            note!(
                "nothing was compiled{}: everything is up to date, and the units of earlier builds still count{}",
                if self.linked > 0 { ", only linked" } else { "" },
                if self.replaced.is_empty() {
                    ""
                } else {
                    ", but for those above"
                }
            );
            return Ok(0);
        }
        bail!(
            E1002,
            "the build compiled nothing through cere's wrappers, and the store has nothing of this directory. Is everything up to date? Clean it first (`make clean`, `cargo clean`, or `touch` the sources)"
        )
    }
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
        .env(ENV_STORE, store.root());
    for (variable, compiler) in Language::all().flat_map(|language| language.facts().variables) {
        build.env(variable, named(&bin, compiler));
    }
    build.envs(wrapper::LAUNCH_HERE);
    let preload = components::find(components::EXEC)?;
    // Neither can stand in a list of libraries; then compilers that are named by their path come to light by what they make.
    if !preload
        .as_os_str()
        .as_encoded_bytes()
        .iter()
        .any(|b| b" :".contains(b))
    {
        let mut preloads = preload.into_os_string();
        if let Some(earlier) = std::env::var_os("LD_PRELOAD").filter(|e| !e.is_empty()) {
            preloads.push(":");
            preloads.push(earlier);
        }
        build
            .env("LD_PRELOAD", preloads)
            .env(ENV_WRAPPERS, &bin)
            .env(ENV_BUILD, std::env::current_dir()?);
    }
    // An outer build's setting is not this one's.
    build.env_remove(wrapper::ENV_ALL_LOOPS);
    build.env_remove(wrapper::front::ENV_FRONT);
    if let Some(named) = &options.compiler {
        // A build may change its directory.
        let path = wrapper::front::find(named, Language::C)?;
        build.env(wrapper::front::ENV_FRONT, path);
    }
    if options.all_loops {
        build.env(wrapper::ENV_ALL_LOOPS, "1");
    }
    if options.common.json {
        // stdout is for the report alone.
        build.stdout(std::io::stderr());
    }
    Ok(build)
}

/// How a variable names a wrapper: make, configure and shells split it into words, so a path that has anything unusual in it is left
/// to PATH.
fn named(bin: &Path, name: &str) -> PathBuf {
    let usual = |b: &u8| b.is_ascii_alphanumeric() || b"/._-+,@%".contains(b) || !b.is_ascii();
    match bin.as_os_str().as_encoded_bytes().iter().all(usual) {
        true => bin.join(name),
        false => name.into(),
    }
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

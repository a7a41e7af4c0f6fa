//! Units to objects.

use crate::command::{Line, hash, run};
use crate::flags::{self, Change};
use crate::link::LLD;
use crate::{Options, ReplayError, cached, io, stamp};
use cere_format::abi::IDENT_SYMBOL_PREFIX;
use cere_format::build::{BUILD_VERSION, BindPlan, ENV_BIND, Language, Retarget};
use cere_format::package::{Manifest, PackageUnit};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// The compiler of C and C++ units, and the assembler.
pub const CLANG: &str = "clang-22";
/// The compiler of Fortran units.
pub const FLANG: &str = "flang-22";
/// The optimiser.
pub const OPT: &str = "opt-22";

/// What tells the tools, and for code that is made for the machine at hand the machine, from others.
pub fn tools(flags: &[String]) -> Result<Vec<u8>, ReplayError> {
    let mut stamps = Vec::new();
    let path = std::env::var_os("PATH").unwrap_or_default();
    for tool in [CLANG, FLANG, OPT, LLD] {
        let mut places = std::env::split_paths(&path).map(|d| d.join(tool));
        if let Some(found) = places.find(|p| p.is_file()) {
            // The file behind all links: an update replaces it.
            let real = std::fs::canonicalize(&found).map_err(io("read", &found))?;
            stamps.extend(stamp(&real)?);
        }
    }
    if flags.iter().any(|f| f.contains("native")) {
        let path = Path::new("/proc/cpuinfo");
        let text = std::fs::read_to_string(path).map_err(io("read", path))?;
        let kinds = ["vendor_id", "cpu family", "model", "stepping", "flags"];
        let own = |l: &&str| kinds.iter().any(|k| l.starts_with(k));
        let first = text.split("\n\n").next().unwrap_or("");
        let lines: Vec<&str> = first.lines().filter(own).collect();
        stamps.extend(lines.join("\n").into_bytes());
    }
    Ok(stamps)
}

/// Prefix of a unit's local symbols.
pub fn prefix(index: usize) -> String {
    format!("cere.u{index}.")
}

/// What the pass is to bind in unit `index`.
pub fn bind_plan(manifest: &Manifest, index: usize, retarget: Retarget, pinned: bool) -> BindPlan {
    let unit = &manifest.units[index];
    let here = |owner: &Option<String>| owner.as_ref().is_none_or(|id| *id == unit.id);
    let mut variables: Vec<String> = manifest
        .variables
        .iter()
        .filter(|v| here(&v.unit) && !v.name.starts_with(IDENT_SYMBOL_PREFIX))
        .map(|v| v.name.clone())
        .collect();
    if let Some(tls) = &manifest.image.tls {
        let local = tls.variables.iter().filter(|v| here(&v.unit));
        variables.extend(local.map(|v| v.name.clone()));
    }
    let functions = manifest
        .functions
        .iter()
        .filter(|f| here(&f.unit) && !f.other_image)
        .map(|f| f.name.clone())
        .collect();
    let own = |owner: &Option<String>| owner.as_ref() == Some(&unit.id);
    let locals = manifest.variables.iter().filter(|v| own(&v.unit));
    let mut sizes: BTreeMap<String, u64> = locals.map(|v| (v.name.clone(), v.size)).collect();
    if let Some(tls) = &manifest.image.tls {
        let local = tls.variables.iter().filter(|v| own(&v.unit));
        sizes.extend(local.map(|v| (v.name.clone(), v.size)));
    }
    BindPlan {
        version: BUILD_VERSION,
        prefix: prefix(index),
        variables,
        functions,
        retarget,
        sizes: Some(sizes),
        pinned,
        typed: false,
    }
}

/// Where the steps of one unit's compile read and write.
pub struct Files {
    /// Kept IR.
    pub ir: PathBuf,
    /// [`BindPlan`].
    pub bind: PathBuf,
    /// IR with the retargeted attributes and pinned variables, when a pipeline of the user's follows.
    pub retargeted: PathBuf,
    /// IR after the user's pipeline.
    pub optimised: PathBuf,
    /// The object.
    pub object: PathBuf,
}

/// The compiler of a unit.
fn compiler(unit: &PackageUnit, options: &Options) -> &'static str {
    match unit.language {
        Language::Fortran if options.passes.is_none() => FLANG,
        _ => CLANG,
    }
}

/// The commands that compile a unit, with `flags` after its own.
pub fn lines(
    unit: &PackageUnit,
    plan: &BindPlan,
    flags: &[String],
    files: &Files,
    options: &Options,
) -> Vec<Line> {
    let bind = |program: &str| Line::new(program).variable(ENV_BIND, &files.bind);
    let compiler = compiler(unit, options);
    let quiet: &[&str] = match compiler {
        CLANG => &["-w", "-Wno-unused-command-line-argument"],
        _ => &["-w"],
    };
    let mut lines = Vec::new();
    let mut compile = bind(compiler)
        .args(&unit.codegen)
        .args(flags)
        .args(quiet)
        .arg(format!("-fpass-plugin={}", options.plugin.display()));
    let mut input = &files.ir;
    if let Some(passes) = &options.passes {
        let plugin = format!("-load-pass-plugin={}", options.plugin.display());
        let mut opt = |passes: &str, to: &'static str| {
            let output = if to == "retargeted" {
                &files.retargeted
            } else {
                &files.optimised
            };
            let line = bind(OPT)
                .arg(&plugin)
                .arg(format!("-passes={passes}"))
                .path(input)
                .arg("-o")
                .path(output);
            lines.push(line);
            input = output;
        };
        if plan.pinned {
            opt("cere-retarget", "retargeted");
        }
        opt(passes, "optimised");
        compile = compile.args(["-Xclang", "-disable-llvm-passes"]);
    }
    lines.push(
        compile
            .args(["-x", "ir", "-c"])
            .path(input)
            .arg("-o")
            .path(&files.object),
    );
    lines
}

/// A unit's object and how it was made.
pub struct Compiled {
    /// In the cache.
    pub object: PathBuf,
    /// What the pass was told.
    pub plan: BindPlan,
    /// Flags after the unit's own.
    pub flags: Vec<String>,
    /// Names in it that are the program's and the runtime's: see [`crate::apart`].
    pub renamed: BTreeSet<String>,
}

/// Compiles unit `index`; the object lies in the cache.
pub fn unit(
    package: &Path,
    manifest: &Manifest,
    index: usize,
    change: Change,
    typed: bool,
    options: &Options,
) -> Result<Compiled, ReplayError> {
    let unit = &manifest.units[index];
    let ir = package.join(unit.member());
    let content = std::fs::read(&ir).map_err(io("read", &ir))?;
    let pinned = change.other || options.passes.is_some();
    let mut plan = bind_plan(manifest, index, change.retarget, pinned);
    plan.typed = typed;
    let text = serde_json::to_vec(&plan).map_err(ReplayError::Manifest)?;
    let flags = change.flags;
    let all = [&unit.codegen[..], &flags[..]].concat();
    let key = hash(&[
        &content,
        &stamp(&options.plugin)?,
        &text,
        unit.codegen.join("\0").as_bytes(),
        flags.join("\0").as_bytes(),
        &tools(&all)?,
        options.passes.as_deref().unwrap_or("").as_bytes(),
    ]);
    let object = cached::get(&options.cache, &format!("{key}.o"), |made| {
        let files = Files {
            ir,
            bind: made.with_file_name("bind.json"),
            retargeted: made.with_file_name("retargeted.bc"),
            optimised: made.with_file_name("optimised.bc"),
            object: made.to_owned(),
        };
        std::fs::write(&files.bind, &text).map_err(io("write", &files.bind))?;
        for line in lines(unit, &plan, &flags, &files, options) {
            run(&line, &unit.source)?;
        }
        Ok(())
    })?;
    Ok(Compiled {
        object,
        plan,
        flags,
        renamed: BTreeSet::new(),
    })
}

/// Compiles all units, several at a time; `typed`: such that they tell what they store.
pub fn all(
    package: &Path,
    manifest: &Manifest,
    typed: bool,
    options: &Options,
) -> Result<Vec<Compiled>, ReplayError> {
    // Most units share their flags, so that one look at what the new ones change serves all.
    let mut changes: HashMap<(&[String], Language), Change> = HashMap::new();
    for unit in &manifest.units {
        if let Entry::Vacant(entry) = changes.entry((&unit.codegen, unit.language)) {
            entry.insert(flags::change(
                &unit.codegen,
                unit.language,
                compiler(unit, options),
                &options.flags,
            )?);
        }
    }
    let changes = &changes;
    let change = |index: usize| {
        let unit = &manifest.units[index];
        changes[&(unit.codegen.as_slice(), unit.language)].clone()
    };
    let count = manifest.units.len();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = std::sync::atomic::AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if index >= count {
                return done;
            }
            done.push((
                index,
                unit(package, manifest, index, change(index), typed, options),
            ));
        }
    };
    let mut done = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(count)).map(|_| scope.spawn(work)).collect();
        let mut done = work();
        for other in others {
            match other.join() {
                Ok(more) => done.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_by_key(|d| d.0);
    done.into_iter().map(|d| d.1).collect()
}

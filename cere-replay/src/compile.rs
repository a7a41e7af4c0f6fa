//! Units to objects.

use crate::command::{Line, hash, run};
use crate::{Options, ReplayError, flags, io, stamp};
use cere_format::build::{BUILD_VERSION, BindPlan, ENV_BIND, Language, Retarget};
use cere_format::package::{Manifest, PackageUnit};
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// The compiler of C and C++ units, and the assembler.
pub const CLANG: &str = "clang-22";
/// The compiler of Fortran units.
pub const FLANG: &str = "flang-22";
/// The optimiser.
pub const OPT: &str = "opt-22";

/// Prefix of a unit's local symbols.
pub fn prefix(index: usize) -> String {
    format!("cere.u{index}.")
}

/// What the pass is to bind in unit `index`.
pub fn bind_plan(manifest: &Manifest, index: usize, retarget: Retarget) -> BindPlan {
    let unit = &manifest.units[index];
    let here = |owner: &Option<String>| owner.as_ref().is_none_or(|id| *id == unit.id);
    let mut variables: Vec<String> = manifest
        .variables
        .iter()
        .filter(|v| here(&v.unit))
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
    BindPlan {
        version: BUILD_VERSION,
        prefix: prefix(index),
        variables,
        functions,
        retarget,
    }
}

/// Where the steps of one unit's compile read and write.
pub struct Files {
    /// Kept IR.
    pub ir: PathBuf,
    /// [`BindPlan`].
    pub bind: PathBuf,
    /// IR with the retargeted attributes, when a pipeline of the user's follows.
    pub retargeted: PathBuf,
    /// IR after the user's pipeline.
    pub optimised: PathBuf,
    /// The object.
    pub object: PathBuf,
}

/// The commands that compile a unit.
pub fn lines(
    unit: &PackageUnit,
    retarget: &Retarget,
    files: &Files,
    options: &Options,
) -> Vec<Line> {
    let bind = |program: &str| Line::new(program).variable(ENV_BIND, &files.bind);
    let compiler = match unit.language {
        Language::Fortran if options.passes.is_none() => FLANG,
        _ => CLANG,
    };
    let quiet: &[&str] = match compiler {
        CLANG => &["-w", "-Wno-unused-command-line-argument"],
        _ => &["-w"],
    };
    let mut lines = Vec::new();
    let mut compile = bind(compiler)
        .args(&unit.codegen)
        .args(&options.flags)
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
        if *retarget != Retarget::default() {
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
    /// Names in it that are the program's and the runtime's: see [`crate::apart`].
    pub renamed: BTreeSet<String>,
}

/// Compiles unit `index`; the object lies in the cache.
pub fn unit(
    package: &Path,
    manifest: &Manifest,
    index: usize,
    retarget: Retarget,
    options: &Options,
) -> Result<Compiled, ReplayError> {
    let unit = &manifest.units[index];
    let ir = package.join(unit.member());
    let content = std::fs::read(&ir).map_err(io("read", &ir))?;
    let plan = bind_plan(manifest, index, retarget);
    let text = serde_json::to_vec(&plan).map_err(ReplayError::Manifest)?;
    let key = hash(&[
        &content,
        &stamp(&options.plugin)?,
        &text,
        unit.codegen.join("\0").as_bytes(),
        options.flags.join("\0").as_bytes(),
        options.passes.as_deref().unwrap_or("").as_bytes(),
    ]);
    let object = options.cache.join(format!("{key}.o"));
    if object.exists() {
        return Ok(Compiled {
            object,
            plan,
            renamed: BTreeSet::new(),
        });
    }
    let scratch = tempfile::Builder::new()
        .prefix("unit.")
        .tempdir_in(&options.cache)
        .map_err(io("write into", &options.cache))?;
    let files = Files {
        ir,
        bind: scratch.path().join("bind.json"),
        retargeted: scratch.path().join("retargeted.bc"),
        optimised: scratch.path().join("optimised.bc"),
        object: scratch.path().join("unit.o"),
    };
    std::fs::write(&files.bind, &text).map_err(io("write", &files.bind))?;
    for line in lines(unit, &plan.retarget, &files, options) {
        run(&line, &unit.source)?;
    }
    // Another replay may have been faster: either object is the same.
    std::fs::rename(&files.object, &object).map_err(io("write", &object))?;
    Ok(Compiled {
        object,
        plan,
        renamed: BTreeSet::new(),
    })
}

/// Compiles all units, several at a time.
pub fn all(
    package: &Path,
    manifest: &Manifest,
    options: &Options,
) -> Result<Vec<Compiled>, ReplayError> {
    // Most units share their flags, so that one look at what the new ones change serves all.
    let mut changes: HashMap<(&[String], Language), Retarget> = HashMap::new();
    for unit in &manifest.units {
        if let Entry::Vacant(entry) = changes.entry((&unit.codegen, unit.language)) {
            entry.insert(flags::retarget(
                &unit.codegen,
                unit.language,
                &options.flags,
            )?);
        }
    }
    let changes = &changes;
    let retarget = |index: usize| {
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
                unit(package, manifest, index, retarget(index), options),
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

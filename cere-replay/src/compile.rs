//! Units to objects.

use crate::{Options, ReplayError, cross, limit};
use cere_arch::target::Target;
use cere_format::abi::{IDENT_SYMBOL_PREFIX, INVOKE_SYMBOL_PREFIX, OUTLINED_SYMBOL_PREFIX};
use cere_format::build::{
    Ablation, BUILD_VERSION, BindPlan, BoundLabels, ENV_BIND, ENV_SHAPES, Language, Retarget,
    Shapes,
};
use cere_format::package::{
    Function, MEMBER_ENTRY, MEMBER_MANIFEST, MEMBER_TLS_ENTRY, Manifest, PackageUnit, addresses_in,
};
use cere_toolchain::command::{hash, run};
use cere_toolchain::flags::{self, Change};
use cere_toolchain::several::several;
use cere_toolchain::unit::{self, Files, Job, Recipe};
use cere_toolchain::{CompileError, cached, io, stamp};
use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// Prefix of a unit's local symbols.
pub fn prefix(index: usize) -> String {
    format!("cere.u{index}.")
}

/// Captured labels of functions of unit `index`.
fn labels(manifest: &Manifest, index: usize) -> Vec<BoundLabels> {
    let here = |unit: &Option<String>| {
        let id = unit.as_ref();
        id.is_none_or(|id| *id == manifest.units[index].id)
    };
    let labels = manifest.labels.iter().filter(|l| here(&l.unit));
    let bound = labels.map(|l| BoundLabels {
        function: l.function.clone(),
        addresses: l.addresses.clone(),
    });
    bound.collect()
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
    let absent = manifest.absent.iter().filter(|a| a.thread_local);
    let other_thread_locals = absent.map(|a| a.name.clone()).collect();
    let own = |owner: &Option<String>| owner.as_ref() == Some(&unit.id);
    let locals = manifest.variables.iter().filter(|v| own(&v.unit));
    // Only code that is compiled anew uses what was not touched: codelets of a unit as built share its object.
    let untouched = locals.clone().filter(|v| pinned && v.untouched);
    let untouched = untouched.map(|v| v.name.clone()).collect();
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
        other_thread_locals,
        overridden: unit.overridden.clone(),
        retarget,
        sizes: Some(sizes),
        untouched,
        shapes: None,
        pinned,
        roots: None,
        labels: Vec::new(),
        typed: false,
        traced: false,
        counted: None,
        ablation: None,
    }
}

/// What the code of a replay does beside the program's work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Code {
    /// Nothing.
    #[default]
    Timed,
    /// Each store reports its type to the runtime.
    Typed,
    /// Each store reports its place in the source.
    Traced,
    /// It reports what it executes ([`cere_format::count`]).
    Counted,
    /// What was done to its assembly ([`crate::edited`]).
    Edited,
}

/// The compiler of a unit.
fn compiler(unit: &PackageUnit, options: &Options) -> &'static str {
    unit::compiler(unit.language, options.settings.passes.is_some())
}

/// A unit's own code generation flags: the build's, for the architecture that is wanted.
pub fn codegen<'a>(unit: &'a PackageUnit, options: &Options) -> Cow<'a, [String]> {
    match &options.settings.cross {
        Some(cross) => Cow::Owned(cross.codegen(&unit.codegen)),
        None => Cow::Borrowed(&unit.codegen),
    }
}

/// How a unit is compiled, with `flags` after its own, which are `codegen`.
pub fn recipe<'a>(
    unit: &PackageUnit,
    codegen: &'a [String],
    plan: &BindPlan,
    flags: &'a [String],
    options: &'a Options,
) -> Recipe<'a> {
    Recipe {
        language: unit.language,
        codegen,
        flags,
        passes: options.settings.passes.as_deref(),
        plugin: &options.plugin,
        variable: ENV_BIND,
        prepare: plan.pinned,
        sandbox: &options.settings.sandbox,
    }
}

/// Functions of the region's unit that a replay may enter: the region's own, and those whose address is in captured memory.
/// Others that a wild pointer meets run as captured.
fn roots(package: &Path, manifest: &Manifest, cache: &Path) -> Result<Vec<String>, ReplayError> {
    let region = manifest.region.index;
    let own = [INVOKE_SYMBOL_PREFIX, OUTLINED_SYMBOL_PREFIX];
    let mut roots: Vec<String> = own.iter().map(|p| format!("{p}{region}")).collect();
    let callable = |f: &&Function| !f.name.starts_with("cere.") && f.name != "main";
    let functions = manifest.functions.iter().filter(callable);
    let by_address: HashMap<u64, &str> = functions.map(|f| (f.address, f.name.as_str())).collect();
    let (Some(&first), Some(&last)) = (by_address.keys().min(), by_address.keys().max()) else {
        return Ok(roots);
    };
    let mut members: Vec<PathBuf> = [MEMBER_ENTRY, MEMBER_TLS_ENTRY]
        .map(|m| package.join(m))
        .into();
    members.retain(|path| path.exists());
    let key = hash(&[
        // What is looked for.
        b"2".as_slice(),
        stamp(&package.join(MEMBER_MANIFEST))?.as_slice(),
        &members
            .iter()
            .map(|m| stamp(m))
            .collect::<Result<Vec<_>, _>>()?
            .concat(),
    ]);
    // Memory can be large, and a search asks for each variant.
    let found = cached::get(cache, &format!("{key}.roots"), |made| {
        let mut pointed: BTreeSet<&str> = BTreeSet::new();
        for member in &members {
            let content = std::fs::read(member).map_err(io("read", member))?;
            let words = content.as_chunks::<8>().0.iter();
            let addresses = words.flat_map(|w| addresses_in(u64::from_le_bytes(*w)));
            let near = addresses.filter(|a| (first..=last).contains(a));
            pointed.extend(near.filter_map(|a| by_address.get(&a).copied()));
        }
        let names: Vec<&str> = pointed.into_iter().collect();
        std::fs::write(made, names.join("\0")).map_err(io("write", made))
    })?;
    let names = std::fs::read_to_string(&found).map_err(io("read", &found))?;
    roots.extend(names.split_terminator('\0').map(str::to_owned));
    Ok(roots)
}

/// The flag that has a compiler of another machine do what the build's did.
fn of_the_build(options: &Options) -> Vec<String> {
    let captured = Target::X86_64;
    let other = options.settings.cross.is_some() && cere_arch::HERE != captured;
    let flag = other.then(|| format!("--target={}", captured.facts().triple));
    flag.into_iter().collect()
}

/// What the build made of the unit's local variables: its pipeline is run again, up to where code would be made.
fn shapes(package: &Path, unit: &PackageUnit, options: &Options) -> Result<Shapes, ReplayError> {
    let ir = package.join(unit.member());
    let content = std::fs::read(&ir).map_err(io("read", &ir))?;
    let key = hash(&[
        &content,
        &stamp(&options.plugin)?,
        unit.codegen.join("\0").as_bytes(),
        &unit::tools(&unit.codegen)?,
    ]);
    // The build's, on whatever machine that is.
    let target = of_the_build(options);
    let recipe = Recipe {
        language: unit.language,
        codegen: &unit.codegen,
        flags: &target,
        passes: None,
        plugin: &options.plugin,
        variable: ENV_SHAPES,
        sandbox: &options.settings.sandbox,
        prepare: false,
    };
    let found = cached::get(&options.cache, &format!("{key}.shapes"), |made| {
        let files = Files {
            plan: made.to_owned(),
            ..Files::beside(ir, &made.with_file_name("unused.o"))
        };
        for line in unit::lines(&recipe, &files) {
            run(
                &line.limit(options.settings.timeout.unwrap_or(limit::UNKNOWN)),
                &unit.source,
            )?;
        }
        Ok::<(), ReplayError>(())
    })?;
    let text = std::fs::read(&found).map_err(io("read", &found))?;
    serde_json::from_slice(&text).map_err(ReplayError::Json)
}

/// What a unit becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Object,
    Assembly,
    /// What the optimiser says of its work.
    Remarks,
    /// IR that needs no plugin any more.
    Bound,
}

impl Form {
    /// The flags that ask for it: `-S` has precedence over the `-c` of all compiles. Comments name the blocks.
    fn flags(self) -> &'static [&'static str] {
        match self {
            Form::Object | Form::Remarks | Form::Bound => &[],
            Form::Assembly => &["-S", "-fverbose-asm", "-masm=att"],
        }
    }

    /// Compiles a unit to it.
    fn make(self, job: Job, cache: &Path) -> Result<PathBuf, CompileError> {
        match self {
            Form::Object => unit::object(job, cache, ".o"),
            Form::Assembly => unit::object(job, cache, ".s"),
            Form::Remarks => unit::optimiser_remarks(job, cache),
            Form::Bound => unit::bound(job, cache),
        }
    }
}

/// IR with the lines of the source, by the unit's id, of units whose IR in the package has none. It differs in nothing else.
pub type Lined = BTreeMap<String, PathBuf>;

/// What is to be made of units.
#[derive(Debug, Clone, Copy)]
struct Wanted<'a> {
    code: Code,
    form: Form,
    /// Taken instead of the package's IR.
    lined: Option<&'a Lined>,
}

/// A unit's object and how it was made.
#[derive(Debug)]
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

/// Compiles unit `index`; what `form` says lies in the cache.
fn unit(
    package: &Path,
    manifest: &Manifest,
    index: usize,
    change: Change,
    wanted: Wanted,
    options: &Options,
) -> Result<Compiled, ReplayError> {
    let Wanted { code, form, lined } = wanted;
    let unit = &manifest.units[index];
    let edited = options.edited.iter().find(|e| e.unit == unit.id);
    let cross = options.settings.cross.as_ref();
    let other =
        change.other || options.settings.passes.is_some() || form == Form::Bound || cross.is_some();
    let parallel = options.ablation == Some(Ablation::Dependences);
    let pinned = other || edited.is_some() || code == Code::Traced || parallel;
    let lined = lined.and_then(|lined| lined.get(&unit.id));
    let ir = edited.map(|edited| &edited.ir).or(lined);
    let mut plan = bind_plan(manifest, index, change.retarget, pinned);
    plan.typed = code == Code::Typed;
    plan.traced = code == Code::Traced;
    plan.counted = (code == Code::Counted).then(|| unit.id.clone());
    plan.ablation = options.ablation;
    if pinned || code != Code::Timed {
        plan.labels = labels(manifest, index);
    }
    if pinned {
        plan.shapes = Some(shapes(package, unit, options)?);
    }
    // Other units, and captured code of the image, may call anything in the region's.
    let alone = manifest.units.len() == 1
        && manifest
            .captured_code
            .as_ref()
            .is_none_or(|all| all.iter().all(|f| f.other_image));
    if pinned && alone {
        plan.roots = Some(roots(package, manifest, &options.cache)?);
    }
    let mut flags = change.flags;
    flags.extend(form.flags().iter().map(|f| (*f).to_owned()));
    let mut ir = ir.map_or_else(|| package.join(unit.member()), PathBuf::clone);
    if let Some(cross) = cross {
        ir = cross::ir(&ir, manifest, unit, cross, options)?;
    }
    let codegen = codegen(unit, options);
    let job = Job {
        recipe: recipe(unit, &codegen, &plan, &flags, options),
        ir,
        plan: &serde_json::to_vec(&plan).map_err(ReplayError::Json)?,
        source: &unit.source,
        limit: Some(options.settings.timeout.unwrap_or(limit::UNKNOWN)),
    };
    let object = form.make(job, &options.cache)?;
    Ok(Compiled {
        object,
        plan,
        flags,
        renamed: BTreeSet::new(),
    })
}

/// Compiles all units, several at a time.
pub fn all(
    package: &Path,
    manifest: &Manifest,
    code: Code,
    options: &Options,
) -> Result<Vec<Compiled>, ReplayError> {
    let wanted = Wanted {
        code,
        form: Form::Object,
        lined: None,
    };
    every(package, manifest, wanted, options)
}

/// The IR of all units as replays under other flags compile it, before any optimisation: it needs no plugin any more. Each with
/// the flags that its compiler gets after the unit's own.
///
/// # Errors
/// The optimiser fails, or a file cannot be read.
pub fn bound(
    package: &Path,
    manifest: &Manifest,
    options: &Options,
) -> Result<Vec<Compiled>, ReplayError> {
    let wanted = Wanted {
        code: Code::Timed,
        form: Form::Bound,
        lined: None,
    };
    every(package, manifest, wanted, options)
}

/// The assembly of all units, as they are timed.
///
/// # Errors
/// The compiler fails, or a file cannot be read.
pub fn assembly(
    package: &Path,
    manifest: &Manifest,
    options: &Options,
) -> Result<Vec<String>, ReplayError> {
    texts(package, manifest, Form::Assembly, None, options)
}

/// The same with the lines of the source (directives `.loc` and `.file`), where the units or `lined` have them.
///
/// # Errors
/// The compiler fails, or a file cannot be read.
pub fn assembly_with_lines(
    package: &Path,
    manifest: &Manifest,
    lined: &Lined,
    options: &Options,
) -> Result<Vec<String>, ReplayError> {
    texts(package, manifest, Form::Assembly, Some(lined), options)
}

/// What the optimiser says of all units, as YAML, with the lines of the source where the units or `lined` have them.
///
/// # Errors
/// The compiler fails, or a file cannot be read.
pub fn remarks(
    package: &Path,
    manifest: &Manifest,
    lined: &Lined,
    options: &Options,
) -> Result<Vec<String>, ReplayError> {
    texts(package, manifest, Form::Remarks, Some(lined), options)
}

/// Unit by unit, files with the assembly of code as it is timed.
pub(crate) fn to_edit(
    package: &Path,
    manifest: &Manifest,
    options: &Options,
) -> Result<Vec<Compiled>, ReplayError> {
    let wanted = Wanted {
        code: Code::Timed,
        form: Form::Assembly,
        lined: None,
    };
    every(package, manifest, wanted, options)
}

/// What all units become, as text.
fn texts(
    package: &Path,
    manifest: &Manifest,
    form: Form,
    lined: Option<&Lined>,
    options: &Options,
) -> Result<Vec<String>, ReplayError> {
    let wanted = Wanted {
        code: Code::Timed,
        form,
        lined,
    };
    let read = |unit: Compiled| {
        let path = &unit.object;
        let text = std::fs::read(path).map_err(io("read", path))?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    };
    let units = every(package, manifest, wanted, options)?;
    units.into_iter().map(read).collect()
}

fn every(
    package: &Path,
    manifest: &Manifest,
    wanted: Wanted,
    options: &Options,
) -> Result<Vec<Compiled>, ReplayError> {
    // Most units share their flags, so that one look at what the new ones change serves all.
    let mut changes: HashMap<(&[String], Language), Change> = HashMap::new();
    for unit in &manifest.units {
        if let Entry::Vacant(entry) = changes.entry((&unit.codegen, unit.language)) {
            entry.insert(flags::change(
                &codegen(unit, options),
                unit.language,
                compiler(unit, options),
                &options.settings.flags,
                &options.settings.sandbox,
                &options.events,
            )?);
        }
    }
    let changes = &changes;
    let change = |index: usize| {
        let unit = &manifest.units[index];
        changes[&(unit.codegen.as_slice(), unit.language)].clone()
    };
    let compile = |index| unit(package, manifest, index, change(index), wanted, options);
    let done = several(manifest.units.len(), compile);
    done.into_iter().collect()
}

//! Compiles an edited source as the build compiled it, beside the build: what is kept goes into another store, and no file of the
//! build's is written.

use super::compile::{Tried, add_options, through_pass};
use super::job::Job;
use super::tools::{compiler, drivers};
use super::{front, modules, rust};
use crate::{components, state};
use anyhow::{Context, Result};
use cere_catalogue::{OrCoded, bail, codes};
use cere_format::build::{
    BUILD_VERSION, CompileCommand, ENV_COMMAND, ENV_KEPT_ALONE, Language, Unit,
};
use cere_format::language::rust::{COMPILER, Rustc};
use cere_format::language::{Front, Parse};
use cere_format::store::Store;
use cere_sandbox::{Kind, Sandbox, Task};
use cere_toolchain::arguments::{self, Item};
use cere_toolchain::gcc;
use cere_toolchain::unit::{CLANG, FLANG};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// Seconds after which a compile of code that nobody has read ends.
const LONGEST: u64 = 120;
/// Variables that such a compile gets: what finds programs and headers.
const KEPT: [&str; 8] = [
    "PATH",
    "LD_LIBRARY_PATH",
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "SOURCE_DATE_EPOCH",
    "LANG",
    "LC_ALL",
];

/// What is edited.
#[derive(Debug, Clone, Default)]
pub struct Edit {
    /// Files whose content is another file's: the original, absolute, and the new one.
    pub replaced: Vec<(PathBuf, PathBuf)>,
    /// A directory that stands for another one: that of the build, and the new one.
    pub moved: Option<(PathBuf, PathBuf)>,
}

/// A program that is run, one of several that follow one another.
struct Step {
    program: PathBuf,
    line: Vec<String>,
}

/// How an edited unit is compiled.
struct Plan {
    /// Of the build.
    directory: PathBuf,
    /// In which the steps run.
    runs_in: PathBuf,
    steps: Vec<Step>,
}

/// Compiles `unit` with `edit` into the empty directory `scratch`; its IR. The inner error is what the compiler says. In a sealed
/// `sandbox` the compiler reads the unit's own sources and the system's files alone; otherwise it runs as in the build.
pub fn compile(
    unit: &Unit,
    edit: &Edit,
    scratch: &Path,
    sandbox: &Sandbox,
) -> Result<Result<PathBuf, String>> {
    let object = scratch.join("edited.o");
    let plugin = components::find(components::PLUGIN)?;
    let plan = match unit.language.facts().front {
        Front::Driver => driven(unit, edit, scratch, &plugin, &object)?,
        Front::Rustc => by_rustc(unit, edit, scratch, &plugin)?,
        Front::Own(parse) => by_own(unit, edit, scratch, &plugin, parse)?,
    };
    let store = Store::new(scratch.join("store"));
    let mut record = CompileCommand {
        version: BUILD_VERSION,
        store: store.root().to_path_buf(),
        directory: plan.directory.clone(),
        output: Some(object),
        debug: true,
        skip: Vec::new(),
        ..unit.command.clone()
    };
    let path = scratch.join("command.json");
    let tried = through_pass(&mut record, &path, || {
        let mut said = String::new();
        let mut ended = ExitStatus::default();
        for step in &plan.steps {
            let task = sandbox
                .is_sealed()
                .then(|| task(unit, edit, scratch, &plugin));
            let confined = task.map(|task| (sandbox, task));
            let (status, more) = attempt(step, &plan.runs_in, unit, &path, confined)?;
            said.push_str(&more);
            ended = status;
            if !status.success() {
                break;
            }
        }
        Ok((ended, said))
    })?;
    match tried {
        Tried::Done(_) => kept(&store).map(Ok),
        Tried::Failed(_, said) => Ok(Err(said)),
    }
}

/// By a driver whose arguments are GCC's.
fn driven(unit: &Unit, edit: &Edit, scratch: &Path, plugin: &Path, object: &Path) -> Result<Plan> {
    let (job, mut line) = line(unit, edit, scratch, object)?;
    let mut options = vec!["-g".into()];
    if !job.front {
        options.push(format!("-fpass-plugin={}", plugin.display()));
    }
    if job.name != FLANG {
        options.push("-fno-discard-value-names".into());
    }
    add_options(&mut line, options);
    let mut steps = Vec::new();
    if job.front {
        let bitcode = scratch.join("front.bc");
        line = front::to_bitcode(&line, &bitcode, object);
        let codegen = &unit.command.codegen;
        let rest = front::of_bitcode(codegen, Some(plugin), &bitcode, object);
        steps.push(Step {
            program: compiler(CLANG)?,
            line: rest,
        });
    }
    steps.insert(
        0,
        Step {
            program: job.compiler.clone(),
            line,
        },
    );
    Ok(Plan {
        directory: job.directory.clone(),
        runs_in: job.directory,
        steps,
    })
}

/// How the build's driver compiles `unit` with `edit`, with no file written but `object`.
fn line(unit: &Unit, edit: &Edit, scratch: &Path, object: &Path) -> Result<(Job, Vec<String>)> {
    let job = job(unit, edit, scratch)?;
    let source = source_of(unit, edit, &job)?;
    let (mut path, explicit) = source;
    let mut options = Vec::new();
    match &edit.replaced[..] {
        [] => {}
        _ if job.name != FLANG => {
            options.extend(["-ivfsoverlay".into(), overlay(edit, scratch)?]);
        }
        // The source itself may lie elsewhere, if what it includes is found.
        [(original, new)] if *original == unit.source => {
            let copy = scratch.join(original.file_name().unwrap_or_default());
            std::fs::copy(new, &copy).with_context(|| format!("cannot copy {}", new.display()))?;
            path = copy.display().to_string();
            let beside = original.parent().unwrap_or(Path::new("/"));
            options.push(format!("-I{}", beside.display()));
        }
        _ => bail!(
            E5313,
            "{}: flang reads no file in another's place: give the tree with the edited source by --dir",
            unit.source.display()
        ),
    }
    let mut line = job.compile_line(&path, explicit.as_deref(), object);
    drop_dependencies(&mut line);
    if job.name == FLANG {
        options.extend(take_module_directories(&mut line));
        let own = scratch.join("modules");
        state::make_directory(&own)?;
        options.push(format!("-J{}", own.display()));
    }
    add_options(&mut line, options);
    Ok((job, line))
}

/// Compiles `unit` with `edit` as the build would without CERE, with `flags` after its own, to the file `object`. The inner error is
/// what the compiler says.
///
/// # Errors
/// The unit's compiler is not a driver whose arguments are GCC's, or cannot be run.
pub fn plainly(
    unit: &Unit,
    edit: &Edit,
    flags: &[String],
    scratch: &Path,
    object: &Path,
) -> Result<Result<(), String>> {
    if !matches!(unit.language.facts().front, Front::Driver) {
        bail!(
            E5313,
            "{}: its compiler has a form of its own",
            unit.source.display()
        );
    }
    let (job, mut line) = line(unit, edit, scratch, object)?;
    add_options(&mut line, flags.iter().cloned());
    let step = Step {
        program: job.compiler.clone(),
        line,
    };
    let none = scratch.join("none.json");
    let (status, said) = attempt(&step, &job.directory, unit, &none, None)?;
    Ok(status.success().then_some(()).ok_or(said))
}

/// The recorded arguments and the directory, with `edit`.
fn recorded(unit: &Unit, edit: &Edit) -> Result<(Vec<String>, PathBuf)> {
    let command = &unit.command;
    let given = command.arguments.iter().map(|a| moved(a, edit)).collect();
    let directory = PathBuf::from(moved(&command.directory.to_string_lossy(), edit));
    if !directory.is_dir() {
        bail!(
            E5314,
            "{} was compiled in {}, which is not there: make the build's directories first",
            unit.source.display(),
            directory.display()
        );
    }
    Ok((given, directory))
}

/// By rustc, which reads no file in another's place: edited files lie in a copy of the tree, of links.
fn by_rustc(unit: &Unit, edit: &Edit, scratch: &Path, plugin: &Path) -> Result<Plan> {
    let (mut given, directory) = recorded(unit, edit)?;
    let mut runs_in = directory.clone();
    if !edit.replaced.is_empty() {
        let root = Rustc::parse(&given).root.unwrap_or_default();
        let source = directory.join(&root);
        let from = match source.starts_with(&directory) {
            true => directory.clone(),
            false => source.parent().unwrap_or(Path::new("/")).to_owned(),
        };
        let tree = Tree {
            from,
            to: scratch.join("tree"),
        };
        tree.link(&tree.from, edit)?;
        match Path::new(&root).is_relative() && tree.from == directory {
            true => runs_in.clone_from(&tree.to),
            false => {
                let to = tree.path(&source)?.display().to_string();
                let named = given.iter_mut().filter(|word| **word == root);
                named.for_each(|word| word.clone_from(&to));
            }
        }
        // Where the sources are is part of what they become.
        given.push(format!(
            "--remap-path-prefix={}={}",
            tree.to.display(),
            tree.from.display()
        ));
    }
    let mut call = Rustc::parse(&given);
    // Nothing beside the object is wanted, and that is not made.
    call.others.retain(|word| !word.starts_with("--emit"));
    call.directory = Some(scratch.display().to_string());
    call.output = None;
    // Debug information stays as it was: rustc keeps variables in memory for it.
    let (line, _) = call.whole();
    let program = front_of(unit, COMPILER)?;
    let mut line = rust::with_pass(&line, plugin, &rust::version(&program, &line));
    line.push("--emit=obj".to_owned());
    Ok(Plan {
        directory,
        runs_in,
        steps: vec![Step { program, line }],
    })
}

/// By a compiler that writes bitcode.
fn by_own(unit: &Unit, edit: &Edit, scratch: &Path, plugin: &Path, parse: Parse) -> Result<Plan> {
    let (mut given, directory) = recorded(unit, edit)?;
    for (original, new) in &edit.replaced {
        let mut words = given.iter_mut();
        let word = words.find(|word| directory.join(word.as_str()) == *original);
        let word = word.or_coded(codes::E5313, || {
            format!(
                "{}: the compiler of {} reads no file in another's place: give the tree with the edited source by --dir",
                original.display(),
                unit.language.facts().name
            )
        })?;
        // The module is called after the file.
        let to = scratch.join(original.file_name().unwrap_or_default());
        std::fs::copy(new, &to).with_context(|| format!("cannot copy {}", new.display()))?;
        *word = to.display().to_string();
    }
    let bitcode = scratch.join("bitcode");
    state::make_directory(&bitcode)?;
    let Ok(call) = parse(&given, &bitcode) else {
        bail!(
            E1031,
            "the recorded command of {} compiles nothing: build it again with `cere instrument`",
            unit.source.display()
        );
    };
    let stem = unit.source.file_stem().unwrap_or_default();
    let file = call
        .bitcode
        .unwrap_or_else(|| bitcode.join(stem).with_extension("bc"));
    let object = scratch.join("edited.o");
    let mut line = front::of_bitcode(&call.codegen, Some(plugin), &file, &object);
    line.push("-g".to_owned());
    let front_end = Step {
        program: front_of(unit, &unit.command.compiler)?,
        line: call.front,
    };
    let clang = Step {
        program: compiler(CLANG)?,
        line,
    };
    Ok(Plan {
        runs_in: directory.clone(),
        directory,
        steps: vec![front_end, clang],
    })
}

/// The front end that compiled the unit.
fn front_of(unit: &Unit, name: &str) -> Result<PathBuf> {
    match unit.command.front.as_ref().filter(|front| front.is_file()) {
        Some(front) => Ok(front.clone()),
        None => compiler(name),
    }
}

/// A copy of a tree: links to its files and directories, and to new files in place of some.
struct Tree {
    from: PathBuf,
    to: PathBuf,
}

impl Tree {
    /// Links what is in `directory`, of the tree; directories that lead to replaced files are made anew.
    fn link(&self, directory: &Path, edit: &Edit) -> Result<()> {
        state::make_directory(&self.path(directory)?)?;
        let entries = std::fs::read_dir(directory)
            .with_context(|| format!("cannot read {}", directory.display()))?;
        for entry in entries.flatten() {
            let own = entry.path();
            let mut replaced = edit.replaced.iter();
            match replaced.find(|(original, _)| original.starts_with(&own)) {
                Some((original, new)) if *original == own => link(new, &self.path(&own)?)?,
                Some(_) => self.link(&own, edit)?,
                None => link(&own, &self.path(&own)?)?,
            }
        }
        Ok(())
    }

    fn path(&self, file: &Path) -> Result<PathBuf> {
        let below = file.strip_prefix(&self.from).or_coded(codes::E5313, || {
            format!(
                "{} is not below {}: give the tree with the edited source by --dir",
                file.display(),
                self.from.display()
            )
        })?;
        Ok(self.to.join(below))
    }
}

fn link(target: &Path, path: &Path) -> Result<()> {
    std::os::unix::fs::symlink(target, path)
        .with_context(|| format!("cannot create {}", path.display()))
}

fn job(unit: &Unit, edit: &Edit, scratch: &Path) -> Result<Job> {
    let (given, directory) = recorded(unit, edit)?;
    let command = &unit.command;
    let known = drivers().find(|(.., name)| *name == command.compiler);
    let (_, language, name) = known.with_context(|| {
        format!(
            "{} was compiled by {}, which no wrapper stands for",
            unit.source.display(),
            command.compiler
        )
    })?;
    let file = front_of(unit, name)?;
    let adapted = gcc::adapt(&given, &file, language)?;
    let mut parsed = arguments::parse(&adapted.arguments, language);
    if language == Language::Fortran {
        modules::prefer(&Store::new(&command.store), &file, &mut parsed);
    }
    Ok(Job {
        name,
        front: command.front.is_some(),
        compiler: file,
        store: Store::new(scratch.join("store")),
        directory,
        parsed,
        expanded: given,
    })
}

/// A word with the directory of the build replaced by the new one.
fn moved(word: &str, edit: &Edit) -> String {
    let Some((from, to)) = &edit.moved else {
        return word.to_owned();
    };
    let (from, to) = (from.to_string_lossy(), to.to_string_lossy());
    let Some(at) = word.find(&*from) else {
        return word.to_owned();
    };
    let rest = &word[at + from.len()..];
    match rest.is_empty() || rest.starts_with('/') {
        true => format!("{}{to}{rest}", &word[..at]),
        false => word.to_owned(),
    }
}

/// The unit's source among those of its command, as given, and the language that is asked for.
fn source_of(unit: &Unit, edit: &Edit, job: &Job) -> Result<(String, Option<String>)> {
    let wanted = PathBuf::from(moved(&unit.source.to_string_lossy(), edit));
    let sources = job.parsed.items.iter().filter_map(|item| match item {
        Item::Source { path, explicit } => Some((path, explicit)),
        _ => None,
    });
    let found: Vec<_> = sources.collect();
    let named = |path: &str| job.directory.join(path);
    let same = |path: &str| {
        let here = named(path);
        here == wanted || here.canonicalize().ok() == wanted.canonicalize().ok()
    };
    let chosen = match &found[..] {
        [only] => Some(only),
        several => several.iter().find(|(path, _)| same(path)),
    };
    let (path, explicit) = chosen.or_coded(codes::E1031, || {
        format!(
            "the recorded command of {} does not name it: build it again with `cere instrument`",
            unit.source.display()
        )
    })?;
    if *path == "-" {
        bail!(
            E2024,
            "{} was compiled from standard input, which is gone: give its text by --source",
            unit.source.display()
        );
    }
    Ok(((*path).clone(), (*explicit).clone()))
}

/// Takes out where flang would write modules; options that have it still find them there.
fn take_module_directories(line: &mut Vec<String>) -> Vec<String> {
    let mut found = Vec::new();
    let mut kept = Vec::new();
    let mut words = std::mem::take(line).into_iter();
    while let Some(word) = words.next() {
        match word.strip_prefix("-J") {
            None if word == "-module-dir" => found.extend(words.next()),
            None => kept.push(word),
            Some("") => found.extend(words.next()),
            Some(directory) => found.push(directory.to_owned()),
        }
    }
    *line = kept;
    found
        .iter()
        .map(|directory| format!("-I{directory}"))
        .collect()
}

/// Takes out what would write files of the build's.
fn drop_dependencies(line: &mut Vec<String>) {
    const WITH_VALUE: [&str; 6] = [
        "-MF",
        "-MT",
        "-MQ",
        "-MJ",
        "-serialize-diagnostics",
        "--serialize-diagnostics",
    ];
    const BESIDE: [&str; 14] = [
        "-MF",
        "-MT",
        "-MQ",
        "-MJ",
        "-Wp,-M",
        "-save-temps",
        "-fsave-optimization-record",
        "-foptimization-record-file",
        "-ftime-trace",
        "-gsplit-dwarf",
        "-fstack-usage",
        "-fcallgraph-info",
        "-ftest-coverage",
        "--coverage",
    ];
    let mut kept = Vec::new();
    let mut words = std::mem::take(line).into_iter();
    while let Some(word) = words.next() {
        match &*word {
            _ if WITH_VALUE.contains(&&*word) => drop(words.next()),
            "-MD" | "-MMD" | "-MP" | "-MG" => {}
            _ if BESIDE.iter().any(|start| word.starts_with(start)) => {}
            _ => kept.push(word),
        }
    }
    *line = kept;
}

/// A file that has clang read the replaced ones.
fn overlay(edit: &Edit, scratch: &Path) -> Result<String> {
    let roots = edit.replaced.iter().map(|(original, new)| {
        serde_json::json!({ "type": "file", "name": original, "external-contents": new, "use-external-name": false })
    });
    let roots: Vec<_> = roots.collect();
    let path = scratch.join("overlay.yaml");
    state::write_json(&path, &serde_json::json!({ "version": 0, "roots": roots }))?;
    Ok(path.display().to_string())
}

/// What the compiler of code that nobody has read needs.
fn task(unit: &Unit, edit: &Edit, scratch: &Path, plugin: &Path) -> Task {
    let moved = |file: &PathBuf| PathBuf::from(moved(&file.to_string_lossy(), edit));
    let own = unit.sources.iter().map(|source| moved(&source.file));
    let new = edit.replaced.iter().map(|(_, new)| new.clone());
    let others = [moved(&unit.source), plugin.to_owned()];
    Task {
        kind: Kind::Tool,
        read: own.chain(new).chain(others).collect(),
        libraries: Vec::new(),
        execute: None,
        write: vec![scratch.to_owned()],
        seconds: LONGEST,
    }
}

fn attempt(
    step: &Step,
    directory: &Path,
    unit: &Unit,
    record: &Path,
    confined: Option<(&Sandbox, Task)>,
) -> Result<(ExitStatus, String)> {
    let mut command = Command::new(&step.program);
    if let Some((sandbox, task)) = confined {
        // Errors quote what was included, and a process can include its own environment.
        command.env_clear();
        command.envs(
            KEPT.iter()
                .filter_map(|name| Some((name, std::env::var_os(name)?))),
        );
        sandbox
            .confine(&mut command, &task)
            .or_coded(codes::E5036, || {
                format!("cannot confine {}", step.program.display())
            })?;
    }
    if unit.language == Language::Rust {
        command.env(rust::BOOTSTRAP, "1");
    }
    let output = command
        .args(&step.line)
        .current_dir(directory)
        .envs(&unit.command.variables)
        .env(ENV_COMMAND, record)
        .env(ENV_KEPT_ALONE, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .with_context(|| format!("cannot run {}", step.program.display()))?;
    Ok((
        output.status,
        String::from_utf8_lossy(&output.stderr).into_owned(),
    ))
}

fn kept(store: &Store) -> Result<PathBuf> {
    match &state::current_units(store)?[..] {
        [unit] => Ok(store.unit_ir(&unit.id)),
        units => bail!(
            E9001,
            "the compiler kept {} units of one source: this is a bug, please report it",
            units.len()
        ),
    }
}

//! Compiles an edited source as the build compiled it, beside the build: what is kept goes into another store, and no file of the
//! build's is written.

use super::compile::parse_retry;
use super::job::Job;
use super::{TOOLS, compiler};
use crate::{components, state};
use anyhow::{Context, Result, bail};
use cere_format::build::{BUILD_VERSION, CompileCommand, ENV_COMMAND, ENV_KEPT_ALONE, Unit};
use cere_format::store::Store;
use cere_sandbox::{Kind, Sandbox, Task};
use cere_toolchain::arguments::{self, Item};
use cere_toolchain::gcc;
use cere_toolchain::unit::FLANG;
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

/// Compiles `unit` with `edit` into the empty directory `scratch`; its IR. The inner error is what the compiler says. In a sealed
/// `sandbox` the compiler reads the unit's own sources and the system's files alone; otherwise it runs as in the build.
pub fn compile(
    unit: &Unit,
    edit: &Edit,
    scratch: &Path,
    sandbox: &Sandbox,
) -> Result<Result<PathBuf, String>> {
    let job = job(unit, edit, scratch)?;
    let source = source_of(unit, edit, &job)?;
    let object = scratch.join("edited.o");
    let mut line = job.compile_line(&source.0, source.1.as_deref(), &object);
    drop_dependencies(&mut line);
    let plugin = components::find(components::PLUGIN)?;
    let mut options = vec![format!("-fpass-plugin={}", plugin.display()), "-g".into()];
    if job.name != FLANG {
        options.push("-fno-discard-value-names".into());
        if !edit.replaced.is_empty() {
            options.extend(["-ivfsoverlay".into(), overlay(edit, scratch)?]);
        }
    } else if !edit.replaced.is_empty() {
        bail!(
            "{}: flang reads no file in another's place: give the tree with the edited source by --dir",
            unit.source.display()
        );
    }
    let end = line.iter().rposition(|a| a == "-c" || a == "-S");
    line.splice(end.unwrap_or(0)..end.unwrap_or(0), options);
    let mut record = CompileCommand {
        version: BUILD_VERSION,
        store: job.store.root().to_path_buf(),
        directory: job.directory.clone(),
        output: Some(object),
        debug: true,
        skip: Vec::new(),
        ..unit.command.clone()
    };
    let path = scratch.join("command.json");
    loop {
        state::write_json(&path, &record)?;
        let task = sandbox
            .is_sealed()
            .then(|| task(unit, edit, scratch, &plugin));
        let (status, said) = attempt(&job, &line, &path, task.map(|task| (sandbox, task)))?;
        if status.success() {
            return kept(&job.store).map(Ok);
        }
        match parse_retry(&said) {
            Some(skip) if record.skip.iter().all(|s| s.index != skip.index) => {
                record.skip.push(skip);
            }
            _ => return Ok(Err(said)),
        }
    }
}

fn job(unit: &Unit, edit: &Edit, scratch: &Path) -> Result<Job> {
    let command = &unit.command;
    let known = TOOLS.iter().find(|(.., name)| *name == command.compiler);
    let (_, language, name) = known.with_context(|| {
        format!(
            "{} was compiled by {}, which no wrapper stands for",
            unit.source.display(),
            command.compiler
        )
    })?;
    let file = compiler(name)?;
    let given: Vec<String> = command.arguments.iter().map(|a| moved(a, edit)).collect();
    let adapted = gcc::adapt(&given, &file, *language)?;
    let directory = PathBuf::from(moved(&command.directory.to_string_lossy(), edit));
    if !directory.is_dir() {
        bail!(
            "{} was compiled in {}, which is not there: make the build's directories first",
            unit.source.display(),
            directory.display()
        );
    }
    Ok(Job {
        name,
        compiler: file,
        store: Store::new(scratch.join("store")),
        directory,
        parsed: arguments::parse(&adapted.arguments, *language),
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
    let (path, explicit) = chosen.with_context(|| {
        format!(
            "the recorded command of {} does not name it: build it again with `cere instrument`",
            unit.source.display()
        )
    })?;
    if *path == "-" {
        bail!(
            "{} was compiled from standard input, which is gone: give its text by --source",
            unit.source.display()
        );
    }
    Ok(((*path).clone(), (*explicit).clone()))
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
    job: &Job,
    line: &[String],
    record: &Path,
    confined: Option<(&Sandbox, Task)>,
) -> Result<(ExitStatus, String)> {
    let mut command = Command::new(&job.compiler);
    if let Some((sandbox, task)) = confined {
        // Errors quote what was included, and a process can include its own environment.
        command.env_clear();
        command.envs(
            KEPT.iter()
                .filter_map(|name| Some((name, std::env::var_os(name)?))),
        );
        sandbox
            .confine(&mut command, &task)
            .with_context(|| format!("cannot confine {}", job.compiler.display()))?;
    }
    let output = command
        .args(line)
        .current_dir(&job.directory)
        .env(ENV_COMMAND, record)
        .env(ENV_KEPT_ALONE, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .with_context(|| format!("cannot run {}", job.compiler.display()))?;
    Ok((
        output.status,
        String::from_utf8_lossy(&output.stderr).into_owned(),
    ))
}

fn kept(store: &Store) -> Result<PathBuf> {
    match &state::current_units(store)?[..] {
        [unit] => Ok(store.unit_ir(&unit.id)),
        units => bail!(
            "the compiler kept {} units of one source: this is a bug, please report it",
            units.len()
        ),
    }
}

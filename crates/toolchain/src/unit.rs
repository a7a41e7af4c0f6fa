//! The commands that compile a unit's kept IR.

use crate::cached;
use crate::command::{Line, hash, run};
use crate::error::{CompileError, io, stamp};
use cere_format::build::Language;
use cere_format::language::BackEnd;
use cere_format::proc::KINDS;
use cere_sandbox::{Sandbox, files};
use cere_system::process::in_path;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use crate::tools::{CLANG, DIS, FLANG, LLD, MCA, OBJCOPY, OPT};

/// Identifies the tools and, for code made for the machine at hand, the machine.
pub fn tools(flags: &[String]) -> Result<Vec<u8>, CompileError> {
    let mut stamps = Vec::new();
    for tool in [CLANG, FLANG, OPT, LLD] {
        if let Some(found) = in_path(tool) {
            // Follows all links, because an update replaces the file.
            let real = std::fs::canonicalize(&found).map_err(io("read", &found))?;
            stamps.extend(stamp(&real)?);
        }
    }
    if flags.iter().any(|f| f.contains("native")) {
        let path = Path::new("/proc/cpuinfo");
        let text = std::fs::read_to_string(path).map_err(io("read", path))?;
        let own = |l: &&str| KINDS.iter().any(|k| l.starts_with(k));
        let first = text.split("\n\n").next().unwrap_or("");
        let lines: Vec<&str> = first.lines().filter(own).collect();
        stamps.extend(lines.join("\n").into_bytes());
    }
    Ok(stamps)
}

/// How to compile a unit.
#[derive(Debug, Clone, Copy)]
pub struct Recipe<'a> {
    /// Language of the unit.
    pub language: Language,
    /// The unit's own code generation flags.
    pub codegen: &'a [String],
    /// Flags after those, as [`crate::flags::Change::flags`] has them.
    pub flags: &'a [String],
    /// An `opt` pipeline instead of the compiler's own.
    pub passes: Option<&'a str>,
    /// The pass plugin.
    pub plugin: &'a Path,
    /// The environment variable that tells the plugin its plan, which is [`Files::plan`].
    pub variable: &'static str,
    /// Whether the plugin is to prepare the IR before the user's pipeline.
    pub prepare: bool,
    /// The sandbox of the compilers.
    pub sandbox: &'a Sandbox,
}

/// Where the steps of one unit's compile read and write.
pub struct Files {
    /// Kept IR.
    pub ir: PathBuf,
    /// What the plugin is told.
    pub plan: PathBuf,
    /// IR as the plugin prepared it, when a pipeline of the user's follows.
    pub prepared: PathBuf,
    /// IR after the user's pipeline.
    pub optimised: PathBuf,
    /// The object.
    pub object: PathBuf,
    /// What the optimiser says of its work, if that is wanted.
    pub remarks: Option<PathBuf>,
}

impl Files {
    /// Beside the object.
    pub fn beside(ir: PathBuf, object: &Path) -> Self {
        Self {
            ir,
            plan: object.with_file_name("plan.json"),
            prepared: object.with_file_name("prepared.bc"),
            optimised: object.with_file_name("optimised.bc"),
            object: object.to_owned(),
            remarks: None,
        }
    }
}

/// Passes whose remarks are kept: those that say why code is as it is. Others say much, and little of that.
const SPEAKING: &str = "^(loop-vectorize|slp-vectorizer|loop-unroll|loop-idiom|loop-distribute|licm|gvn|inline|regalloc)$";

/// The compiler's arguments that write its remarks to a file.
fn remarks(file: &Path) -> [String; 3] {
    [
        "-fsave-optimization-record=yaml".to_owned(),
        format!("-foptimization-record-passes={SPEAKING}"),
        format!("-foptimization-record-file={}", file.display()),
    ]
}

/// The compiler of a unit in this language; `passes`: whether the user's pipeline has been through it before.
pub fn compiler(language: Language, passes: bool) -> &'static str {
    match language.facts().back_end {
        BackEnd::Flang if !passes => FLANG,
        _ => CLANG,
    }
}

/// The commands that compile a unit.
pub fn lines(recipe: &Recipe, files: &Files) -> Vec<Line> {
    let new = |program: &str| Line::new(program).confined(recipe.sandbox);
    let told = |program: &str| {
        new(program)
            .variable(recipe.variable, &files.plan)
            .reads(recipe.plugin)
    };
    let compiler = compiler(recipe.language, recipe.passes.is_some());
    let quiet: &[&str] = match compiler {
        CLANG => &["-w", "-Wno-unused-command-line-argument"],
        _ => &["-w"],
    };
    let mut lines = Vec::new();
    let mut compile = told(compiler)
        .args(recipe.codegen)
        .args(recipe.flags)
        .args(quiet)
        .arg(format!("-fpass-plugin={}", recipe.plugin.display()));
    let profiles = files::profiles(recipe.codegen).into_iter();
    for file in profiles.chain(files::named(recipe.flags)) {
        compile = compile.reads(&file);
    }
    let mut input: &Path = &files.ir;
    if let Some(passes) = recipe.passes {
        let pipeline = |line: Line, passes: &str, input: &Path, output: &Path| {
            line.arg(format!("-passes={passes}"))
                .path(input)
                .arg("-o")
                .output(output)
        };
        if recipe.prepare {
            let plugin = format!("-load-pass-plugin={}", recipe.plugin.display());
            let line = told(OPT).arg(plugin);
            lines.push(pipeline(line, "cere-retarget", input, &files.prepared));
            input = &files.prepared;
        }
        // Without the plugin: a level's pipeline would have it prepare once more.
        let mut optimise = new(OPT);
        if let Some(file) = &files.remarks {
            optimise = optimise
                .arg(format!("-pass-remarks-output={}", file.display()))
                .arg(format!("-pass-remarks-filter={SPEAKING}"));
        }
        lines.push(pipeline(optimise, passes, input, &files.optimised));
        input = &files.optimised;
        compile = compile.args(["-Xclang", "-disable-llvm-passes"]);
    } else if let Some(file) = &files.remarks {
        compile = compile.args(remarks(file));
    }
    lines.push(
        compile
            .args(["-x", "ir", "-c"])
            .path(input)
            .arg("-o")
            .output(&files.object),
    );
    lines
}

/// The start of the command that compiles a unit's IR without the plugin.
pub fn plain(language: Language, codegen: &[String], flags: &[String]) -> Line {
    let compiler = compiler(language, false);
    let mut line = Line::new(compiler).args(codegen).args(flags).arg("-w");
    if compiler == CLANG {
        line = line.arg("-Wno-unused-command-line-argument");
    }
    for file in files::profiles(codegen)
        .into_iter()
        .chain(files::named(flags))
    {
        line = line.reads(&file);
    }
    line.args(["-x", "ir", "-c"])
}

/// A unit to compile.
#[derive(Debug, Clone)]
pub struct Job<'a> {
    /// How.
    pub recipe: Recipe<'a>,
    /// Kept IR.
    pub ir: PathBuf,
    /// What the plugin is told.
    pub plan: &'a [u8],
    /// Its source, for errors.
    pub source: &'a str,
    /// Longest time for each command.
    pub limit: Option<Duration>,
}

/// Compiles the unit and returns the object, a file of the directory `cache` whose name ends in `suffix`.
pub fn object(job: Job, cache: &Path, suffix: &str) -> Result<PathBuf, CompileError> {
    made(job, cache, suffix, false)
}

/// Compiles the unit and returns what the optimiser says of it, a YAML file of the directory `cache`; empty if it says nothing.
pub fn optimiser_remarks(job: Job, cache: &Path) -> Result<PathBuf, CompileError> {
    made(job, cache, ".remarks", true)
}

/// The unit's IR as a replay compiles it, before any optimisation, in the cache: it needs no plugin any more.
pub fn bound(job: Job, cache: &Path) -> Result<PathBuf, CompileError> {
    let recipe = &job.recipe;
    let content = std::fs::read(&job.ir).map_err(io("read", &job.ir))?;
    let key = hash(&[&content, &stamp(recipe.plugin)?, job.plan, &tools(&[])?]);
    cached::get(cache, &format!("{key}.bound.bc"), |made| {
        let plan = made.with_file_name("plan.json");
        std::fs::write(&plan, job.plan).map_err(io("write", &plan))?;
        let mut line = Line::new(OPT)
            .confined(recipe.sandbox)
            .variable(recipe.variable, &plan)
            .reads(recipe.plugin)
            .arg(format!("-load-pass-plugin={}", recipe.plugin.display()))
            .arg("-passes=cere-retarget,cere-bind")
            .path(&job.ir)
            .arg("-o")
            .output(made);
        if let Some(limit) = job.limit {
            line = line.limit(limit);
        }
        run(&line, job.source).map(drop)
    })
}

/// The file that a compile makes: the object, or the remarks.
fn made(job: Job, cache: &Path, suffix: &str, remarks: bool) -> Result<PathBuf, CompileError> {
    let recipe = &job.recipe;
    let content = std::fs::read(&job.ir).map_err(io("read", &job.ir))?;
    let all = [recipe.codegen, recipe.flags].concat();
    let key = hash(&[
        &content,
        &stamp(recipe.plugin)?,
        job.plan,
        recipe.codegen.join("\0").as_bytes(),
        recipe.flags.join("\0").as_bytes(),
        &tools(&all)?,
        recipe.passes.unwrap_or("").as_bytes(),
    ]);
    cached::get(cache, &format!("{key}{suffix}"), |made| {
        let object = match remarks {
            true => made.with_file_name("unused.o"),
            false => made.to_owned(),
        };
        let files = Files {
            remarks: remarks.then(|| made.to_owned()),
            ..Files::beside(job.ir.clone(), &object)
        };
        std::fs::write(&files.plan, job.plan).map_err(io("write", &files.plan))?;
        for mut line in lines(recipe, &files) {
            if let Some(limit) = job.limit {
                line = line.limit(limit);
            }
            run(&line, job.source)?;
        }
        match files.remarks.filter(|file| !file.exists()) {
            Some(none) => std::fs::write(&none, "").map_err(io("write", &none)),
            None => Ok(()),
        }
    })
}

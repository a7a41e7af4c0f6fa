//! The compiler wrapper: runs clang-22, clang++-22 or flang-22 with the pass, one source at a time, and records
//! compile and link commands in the store.

pub mod arguments;

use crate::{components, state};
use anyhow::{Context, Result, bail};
use arguments::{Item, Mode, Parsed};
use cere_format::build::{
    BUILD_VERSION, CompileCommand, ENV_COMMAND, ENV_STORE, Language, LinkCommand, SkippedLoop,
};
use cere_format::store::Store;
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// Names that wrappers go by, with the language and the compiler behind each.
pub const TOOLS: &[(&str, Language, &str)] = &[
    ("cc", Language::C, "clang-22"),
    ("gcc", Language::C, "clang-22"),
    ("clang", Language::C, "clang-22"),
    ("c++", Language::Cxx, "clang++-22"),
    ("g++", Language::Cxx, "clang++-22"),
    ("clang++", Language::Cxx, "clang++-22"),
    ("flang", Language::Fortran, "flang-22"),
    ("gfortran", Language::Fortran, "flang-22"),
    ("f95", Language::Fortran, "flang-22"),
];

/// Set by `cere instrument --keep-going`: a unit that cannot be instrumented is compiled plainly and listed.
pub const ENV_KEEP_GOING: &str = "CERE_KEEP_GOING";
/// Line of the pass on stderr: `CERE-RETRY-SKIP <index> <reason>`.
const RETRY: &str = "CERE-RETRY-SKIP ";

/// A compile that the pass could not instrument, in the store's `failures/`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Failure {
    /// The source as given.
    pub source: String,
    /// Directory of the compile.
    pub directory: PathBuf,
    /// What the compiler said.
    pub reason: String,
}

/// A compiler that this process stands for.
#[derive(Debug, Clone, Copy)]
pub struct Tool {
    language: Language,
    compiler: &'static str,
}

/// The compiler that argv\[0\] names, if it names one.
pub fn tool_of_argv0() -> Option<Tool> {
    let name = PathBuf::from(std::env::args_os().next()?);
    let name = name.file_name()?.to_str()?;
    TOOLS
        .iter()
        .find(|(tool, ..)| *tool == name)
        .map(|(_, language, compiler)| Tool {
            language: *language,
            compiler,
        })
}

fn store() -> Result<Store> {
    if let Some(path) = std::env::var_os(ENV_STORE) {
        return Ok(Store::new(std::path::absolute(PathBuf::from(path))?));
    }
    // A wrapper that was called by its path, say from a configured build directory, knows its store.
    let name = PathBuf::from(std::env::args_os().next().unwrap_or_default());
    if let Some(bin) = name
        .parent()
        .filter(|p| p.ends_with("bin") && p.is_absolute())
    {
        return Ok(Store::new(bin.parent().context("no parent")?));
    }
    bail!(
        "{ENV_STORE} is not set: compilers wrapped by cere run under `cere instrument -- <build command>`"
    )
}

/// Acts as `tool` with the arguments of this process.
pub fn run(tool: Tool) -> Result<u8> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let expanded = arguments::expand(given, 0)?;
    let parsed = arguments::parse(&expanded, tool.language);
    for flag in &parsed.dropped {
        eprintln!(
            "cere: warning: {flag} is left out: {} does not take it here",
            tool.compiler
        );
    }
    if parsed.mode == Mode::PassThrough {
        let status = Command::new(tool.compiler)
            .args(&parsed.cleaned)
            .status()
            .with_context(|| format!("cannot run {}: install LLVM 22", tool.compiler))?;
        return Ok(code(status));
    }
    Job {
        tool,
        store: store()?,
        directory: std::env::current_dir()?,
        expanded,
        parsed,
    }
    .run()
}

fn code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => code as u8,
        (None, signal) => 128 + signal.unwrap_or(0) as u8,
    }
}

struct Job {
    tool: Tool,
    store: Store,
    directory: PathBuf,
    expanded: Vec<String>,
    parsed: Parsed,
}

impl Job {
    fn run(&self) -> Result<u8> {
        let temporary = state::scratch(&self.store);
        state::make_directory(&temporary)?;
        let scratch = tempfile::Builder::new()
            .prefix("wrap")
            .tempdir_in(&temporary)?;
        let inputs: Vec<&Item> = self
            .parsed
            .items
            .iter()
            .filter(|item| matches!(item, Item::Source { .. } | Item::Assembler { .. }))
            .collect();
        if self.parsed.mode == Mode::Compile && inputs.len() > 1 && self.parsed.output.is_some() {
            bail!("cannot give -o with -c or -S and several sources");
        }
        let mut objects = Vec::new();
        for (number, item) in inputs.iter().enumerate() {
            let (path, explicit) = match item {
                Item::Source { path, explicit, .. } | Item::Assembler { path, explicit } => {
                    (path, explicit)
                }
                _ => continue,
            };
            let link = self.parsed.mode == Mode::Link;
            let output = if link {
                let stem = Path::new(path)
                    .file_stem()
                    .unwrap_or_default()
                    .to_string_lossy();
                scratch.path().join(format!("{stem}-{number}.o"))
            } else {
                match &self.parsed.output {
                    Some(output) => PathBuf::from(output),
                    None => arguments::default_output(path, self.parsed.assembly),
                }
            };
            let mut line = self.compile_line(path, explicit.as_deref(), &output);
            if link {
                self.place_dependencies(&mut line, path);
            }
            let status = match item {
                Item::Source { language, .. } => {
                    let recorded = if link {
                        self.image()
                    } else {
                        self.directory.join(&output)
                    };
                    self.instrumented(path, *language, &line, &output, recorded, scratch.path())?
                }
                _ => code(
                    self.command(&line)
                        .status()
                        .with_context(|| self.missing())?,
                ),
            };
            if status != 0 {
                return Ok(status);
            }
            objects.push(output);
        }
        if self.parsed.mode == Mode::Link {
            self.link(&objects)
        } else {
            Ok(0)
        }
    }

    fn missing(&self) -> String {
        format!("cannot run {}: install LLVM 22", self.tool.compiler)
    }

    fn image(&self) -> PathBuf {
        self.directory
            .join(self.parsed.output.as_deref().unwrap_or("a.out"))
    }

    fn command(&self, line: &[String]) -> Command {
        let mut command = Command::new(self.tool.compiler);
        command.args(line);
        command
    }

    /// The compile of one source: the options, without those that only a link takes.
    fn compile_line(&self, path: &str, explicit: Option<&str>, output: &Path) -> Vec<String> {
        let mut line = Vec::new();
        for item in &self.parsed.items {
            let Item::Option(words) = item else { continue };
            let name = words[0].as_str();
            let linking = name.starts_with("-Wl,")
                || name.starts_with("-l")
                || name.starts_with("-L")
                || name.starts_with("-fuse-ld")
                || matches!(
                    name,
                    "-Xlinker"
                        | "-T"
                        | "-u"
                        | "-z"
                        | "-rpath"
                        | "-e"
                        | "-s"
                        | "-shared"
                        | "-static"
                        | "-rdynamic"
                        | "-static-libgcc"
                        | "-static-libstdc++"
                        | "-static-libgfortran"
                        | "-pie"
                        | "-no-pie"
                        | "-nostartfiles"
                        | "-nodefaultlibs"
                );
            if !linking {
                line.extend(words.iter().cloned());
            }
        }
        line.push(if self.parsed.assembly { "-S" } else { "-c" }.into());
        if let Some(explicit) = explicit {
            line.extend(["-x".into(), explicit.into()]);
        }
        line.extend([path.into(), "-o".into(), output.display().to_string()]);
        line
    }

    /// Compiling and linking in one go names the dependency file after the image, not after our temporary object.
    fn place_dependencies(&self, line: &mut Vec<String>, source: &str) {
        let wanted = line.iter().any(|a| a == "-MD" || a == "-MMD");
        if !wanted || line.iter().any(|a| a.starts_with("-MF")) {
            return;
        }
        let base = self.parsed.output.as_deref().unwrap_or(source);
        let name = Path::new(base).with_extension("d");
        line.extend(["-MF".into(), name.display().to_string()]);
        if !line
            .iter()
            .any(|a| a.starts_with("-MT") || a.starts_with("-MQ"))
        {
            line.extend(["-MT".into(), base.to_owned()]);
        }
    }

    fn instrumented(
        &self,
        source: &str,
        language: Language,
        line: &[String],
        output: &Path,
        recorded: PathBuf,
        scratch: &Path,
    ) -> Result<u8> {
        let plugin = components::find(components::PLUGIN)?;
        let mut record = CompileCommand {
            version: BUILD_VERSION,
            store: self.store.root().to_path_buf(),
            directory: self.directory.clone(),
            compiler: self.tool.compiler.into(),
            arguments: self.expanded.clone(),
            codegen: self.parsed.codegen.clone(),
            output: Some(recorded),
            debug: self.parsed.debug,
            skip: Vec::new(),
        };
        let mut input = None;
        if source == "-" {
            let mut bytes = Vec::new();
            std::io::stdin().read_to_end(&mut bytes)?;
            input = Some(bytes);
        }
        let path = scratch.join("command.json");
        let mut extended = vec![format!("-fpass-plugin={}", plugin.display())];
        if !self.parsed.debug {
            extended.push("-gline-tables-only".into());
        }
        // `-O0` and `-g0` of the user come later and win, so ours stands behind them.
        let (options, tail) = line.split_at(
            line.iter()
                .rposition(|a| a == "-c" || a == "-S")
                .unwrap_or(0),
        );
        let mut full = options.to_vec();
        full.append(&mut extended);
        full.extend(tail.iter().cloned());
        let _ = language;
        loop {
            state::write_json(&path, &record)?;
            let (status, text) = self.attempt(&full, input.as_deref(), Some(&path))?;
            if status.success() {
                forward(&text);
                self.clear_failure(source);
                return Ok(0);
            }
            if let Some(skip) = retry(&text) {
                if record.skip.iter().all(|other| other.index != skip.index) {
                    record.skip.push(skip);
                    continue;
                }
            }
            // Is it the program's fault or ours? The plain compiler tells.
            let (plain, plain_text) = self.attempt(line, input.as_deref(), None)?;
            if !plain.success() {
                forward(&plain_text);
                return Ok(code(plain));
            }
            let failure = Failure {
                source: source.into(),
                directory: self.directory.clone(),
                reason: text.trim().lines().take(20).collect::<Vec<_>>().join("\n"),
            };
            let name = state::hash(&format!("{}\0{source}", self.directory.display()));
            state::write_json(
                &self.store.failures().join(format!("{name}.json")),
                &failure,
            )?;
            if std::env::var_os(ENV_KEEP_GOING).is_some() {
                forward(&plain_text);
                eprintln!(
                    "cere: warning: {source} is compiled without regions: {}",
                    failure.reason
                );
                return Ok(0);
            }
            let _ = std::fs::remove_file(output);
            bail!(
                "{source} cannot be instrumented (`cere instrument --keep-going` compiles such units plainly): {}",
                failure.reason
            );
        }
    }

    fn clear_failure(&self, source: &str) {
        let name = state::hash(&format!("{}\0{source}", self.directory.display()));
        let _ = std::fs::remove_file(self.store.failures().join(format!("{name}.json")));
    }

    fn attempt(
        &self,
        line: &[String],
        input: Option<&[u8]>,
        record: Option<&Path>,
    ) -> Result<(ExitStatus, String)> {
        let mut command = self.command(line);
        command.stderr(Stdio::piped());
        command.env_remove(ENV_COMMAND);
        if let Some(record) = record {
            command.env(ENV_COMMAND, record);
        }
        if input.is_some() {
            command.stdin(Stdio::piped());
        }
        let mut child = command.spawn().with_context(|| self.missing())?;
        let pipe = child.stdin.take();
        let status = std::thread::scope(|scope| -> Result<_> {
            if let (Some(mut pipe), Some(bytes)) = (pipe, input) {
                scope.spawn(move || pipe.write_all(bytes));
            }
            Ok(child.wait_with_output()?)
        })?;
        Ok((
            status.status,
            String::from_utf8_lossy(&status.stderr).into_owned(),
        ))
    }

    fn link(&self, objects: &[PathBuf]) -> Result<u8> {
        let mut objects = objects.iter();
        let mut line = Vec::new();
        for item in &self.parsed.items {
            match item {
                Item::Source { .. } | Item::Assembler { .. } => {
                    line.extend(objects.next().map(|o| o.display().to_string()));
                }
                Item::Other(path) => line.push(path.clone()),
                Item::Option(words) => match arguments::without_strip(&words[0]) {
                    Some(rest) => line.extend(rest),
                    None if words[0].starts_with("-M") && !matches!(words[0].as_str(), "-Map") => {}
                    None => line.extend(words.iter().cloned()),
                },
            }
        }
        if let Some(output) = &self.parsed.output {
            line.extend(["-o".into(), output.clone()]);
        }
        let status = self
            .command(&line)
            .status()
            .with_context(|| self.missing())?;
        if status.success() {
            let output = self.image();
            let record = LinkCommand {
                version: BUILD_VERSION,
                directory: self.directory.clone(),
                compiler: self.tool.compiler.into(),
                arguments: self.expanded.clone(),
                output: output.clone(),
            };
            let name = state::hash(&output.display().to_string());
            state::write_json(&self.store.links().join(format!("{name}.json")), &record)?;
        }
        Ok(code(status))
    }
}

fn retry(text: &str) -> Option<SkippedLoop> {
    let line = text.lines().find_map(|line| line.strip_prefix(RETRY))?;
    let (index, reason) = line
        .split_once(' ')
        .unwrap_or((line, "outlining it breaks the module"));
    Some(SkippedLoop {
        index: index.parse().ok()?,
        reason: reason.into(),
    })
}

/// Hands the compiler's messages on.
fn forward(text: &str) {
    for line in text.lines().filter(|line| !line.starts_with("CERE-")) {
        eprintln!("{line}");
    }
}

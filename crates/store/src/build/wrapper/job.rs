//! One call of a driver that compiles or links: its sources one after the other, then the link.

use super::{inputs, said};
use crate::state;
use anyhow::{Context, Result};
use cere_format::build::{BUILD_VERSION, LinkCommand};
use cere_format::store::Store;
use cere_system::process::supervise::shell_code;
use cere_toolchain::arguments::{self, Item, Mode, Parsed, is_ir};
use cere_toolchain::codegen;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A call of a driver.
pub struct Job {
    /// The compiler's name, for records.
    pub name: &'static str,
    /// Whether `compiler` is the front end alone: clang-22 makes the code of its bitcode.
    pub front: bool,
    /// The compiler's file.
    pub compiler: PathBuf,
    /// The store for records.
    pub store: Store,
    /// The working directory.
    pub directory: PathBuf,
    /// The arguments as given, response files expanded.
    pub expanded: Vec<String>,
    /// The parsed arguments.
    pub parsed: Parsed,
}

/// Options for links only.
const LINKING: &[&str] = &[
    "-Xlinker",
    "-T",
    "-u",
    "-z",
    "-rpath",
    "-e",
    "-s",
    "-shared",
    "-static",
    "-static-pie",
    "-rdynamic",
    "-static-libgcc",
    "-static-libstdc++",
    "-pie",
    "-no-pie",
    "-nostartfiles",
    "-nodefaultlibs",
    "-nostdlib",
];

fn links_only(name: &str) -> bool {
    LINKING.contains(&name)
        || ["-Wl,", "-l", "-L", "-fuse-ld"]
            .iter()
            .any(|start| name.starts_with(start))
}

/// An option as passed to the link, without stripping symbols and dependency files.
pub fn link_words(words: &[String]) -> Option<Vec<String>> {
    if words[0] == "-Xlinker" {
        let strips = matches!(words[1].as_str(), "-s" | "--strip-all" | "-x");
        return (!strips).then(|| words.to_vec());
    }
    match arguments::without_strip(&words[0]) {
        Some(rest) => Some(rest.into_iter().collect()),
        None if words[0].starts_with("-M") => None,
        None => Some(words.to_vec()),
    }
}

impl Job {
    /// Does the driver's work and returns its exit status.
    pub fn run(self) -> Result<u8> {
        match self.parsed.mode {
            Mode::Link => {
                let (job, archives) = self.with_bitcode();
                job.work(&archives)
            }
            _ => self.work(&[]),
        }
    }

    /// `archives`: those of the inputs that hold bitcode.
    fn work(&self, archives: &[String]) -> Result<u8> {
        let scratch = state::own_scratch(&self.store)?;
        let sources = self.parsed.items.iter().filter_map(|item| match item {
            Item::Source { path, explicit } => Some((path, explicit, true)),
            Item::Assembler { path, explicit } => Some((path, explicit, false)),
            _ => None,
        });
        let sources: Vec<_> = sources.collect();
        let link = self.parsed.mode == Mode::Link;
        let beside = link && self.options().any(codegen::writes_beside);
        let keeps = self.options().any(|option| option.contains("-save-temps"));
        let mut objects = Vec::new();
        let mut failed = 0;
        for (number, (path, explicit, instrumented)) in sources.into_iter().enumerate() {
            let stem = Path::new(path).file_stem().unwrap_or_default();
            let output = match &self.parsed.output {
                _ if link => {
                    let named = Some(self.beside_image(stem)).filter(|path| {
                        beside && !objects.contains(path) && (keeps || !path.exists())
                    });
                    let hidden = format!("{}-{number}.o", stem.display());
                    named.unwrap_or_else(|| scratch.path().join(hidden))
                }
                Some(output) => PathBuf::from(output),
                None => arguments::default_output(path, self.parsed.assembly),
            };
            let line = self.compile_line(path, explicit.as_deref(), &output);
            let given = (path.as_str(), explicit.as_deref());
            let status = match instrumented {
                true => self.instrumented(given, &line, &output, scratch.path())?,
                false => self.plain(&line)?,
            };
            // Like a driver, go on: the other sources may have errors to report too.
            if status != 0 && failed == 0 {
                failed = status;
            }
            objects.push(output);
        }
        let status = match failed {
            0 if link => self.link(&objects, &self.with_code(archives, scratch.path())?)?,
            _ => failed,
        };
        if link && !keeps {
            for object in objects {
                let _ = std::fs::remove_file(object);
            }
        }
        Ok(status)
    }

    /// The names of the options.
    pub fn options(&self) -> impl Iterator<Item = &str> {
        self.parsed.items.iter().filter_map(|item| match item {
            Item::Option(words) => words.first().map(String::as_str),
            _ => None,
        })
    }

    /// Where the object of a source goes while one call compiles and links and asks for files beside the object: these then have
    /// the names and the place that the driver gives them.
    fn beside_image(&self, stem: &OsStr) -> PathBuf {
        let kept = self.options().find(|option| option.contains("-save-temps"));
        let image = self.parsed.output.as_deref();
        match kept {
            Some(word) if word.ends_with("=obj") => {
                let name = format!("{}.o", stem.display());
                self.directory_of_image().join(name)
            }
            Some(_) => PathBuf::from(format!("{}.o", stem.display())),
            None => format!("{}-{}.o", image.unwrap_or("a"), stem.display()).into(),
        }
    }

    fn plain(&self, line: &[String]) -> Result<u8> {
        let status = Command::new(&self.compiler)
            .args(line)
            .status()
            .with_context(|| format!("cannot run {}", self.compiler.display()))?;
        Ok(shell_code(status))
    }

    /// The final output of the compile to `output`: the object, or the image if compiling and linking are one call.
    pub fn recorded(&self, output: &Path) -> PathBuf {
        match self.parsed.mode {
            Mode::Link => self.image(),
            _ => self.directory.join(output),
        }
    }

    /// The directory of the image, as the arguments name it.
    fn directory_of_image(&self) -> PathBuf {
        let image = Path::new(self.parsed.output.as_deref().unwrap_or("a.out"));
        image.parent().map_or_else(PathBuf::new, Path::to_owned)
    }

    fn image(&self) -> PathBuf {
        self.directory
            .join(self.parsed.output.as_deref().unwrap_or("a.out"))
    }

    /// The command line that compiles one source: the options except those for links, then `-c` or `-S`, source and output.
    pub fn compile_line(&self, path: &str, explicit: Option<&str>, output: &Path) -> Vec<String> {
        let mut line = Vec::new();
        for item in &self.parsed.items {
            if let Item::Option(words) = item
                && !links_only(&words[0])
            {
                line.extend(words.iter().cloned());
            }
        }
        if self.parsed.mode == Mode::Link {
            self.place_dependencies(&mut line, path);
            // Likewise a module's interface.
            if let Some(bare) = line.iter_mut().find(|a| *a == "-fmodule-output") {
                let interface = Path::new(path).with_extension("pcm");
                let name = interface.file_name().unwrap_or_default();
                *bare = format!(
                    "-fmodule-output={}",
                    self.directory_of_image().join(name).display()
                );
            }
            line.push("-Qunused-arguments".into());
        }
        line.push(if self.parsed.assembly { "-S" } else { "-c" }.into());
        if let Some(explicit) = explicit {
            line.extend(["-x".into(), explicit.into()]);
        }
        line.extend([path.into(), "-o".into(), output.display().to_string()]);
        line
    }

    /// When one call compiles and links, the dependency file is named after the image or the source, not after our temporary
    /// object.
    fn place_dependencies(&self, line: &mut Vec<String>, source: &str) {
        let wanted = line.iter().any(|a| a == "-MD" || a == "-MMD");
        let has = |line: &[String], name: &str| line.iter().any(|a| a.starts_with(name));
        if !wanted || has(line, "-MF") {
            return;
        }
        let stem = |path: &str| Path::new(path).file_stem().unwrap_or_default().to_owned();
        let name = match &self.parsed.output {
            Some(output) => Path::new(output).with_extension("d"),
            None => PathBuf::from(stem(source)).with_extension("d"),
        };
        let target = match &self.parsed.output {
            Some(output) => output.clone(),
            None => format!("{}.o", stem(source).display()),
        };
        line.extend(["-MF".into(), name.display().to_string()]);
        if !has(line, "-MT") && !has(line, "-MQ") {
            line.extend(["-MT".into(), target]);
        }
    }

    fn link(&self, objects: &[PathBuf], archives: &[(String, PathBuf)]) -> Result<u8> {
        let mut line = Vec::new();
        if !objects.is_empty() {
            // Options for the compiles alone would cause warnings.
            line.push("-Qunused-arguments".into());
        }
        let mut objects = objects.iter();
        let named = archives
            .iter()
            .map(|(of, new)| (of.as_str(), new.as_path()));
        let mut made: Vec<(&str, &Path)> = named.collect();
        let mut strips = false;
        for item in &self.parsed.items {
            match item {
                Item::Source { path, explicit } => {
                    let object = objects.next();
                    // What is linked again takes the object: no source says what IR is.
                    let kept = object.filter(|_| is_ir(path, explicit.as_deref()));
                    made.extend(kept.map(|object| (path.as_str(), object.as_path())));
                    line.extend(object.map(|o| o.display().to_string()));
                }
                Item::Assembler { .. } => {
                    line.extend(objects.next().map(|o| o.display().to_string()));
                }
                Item::Other(path) => {
                    let new = archives.iter().find(|(of, _)| of == path);
                    line.push(new.map_or(path.clone(), |(_, new)| new.display().to_string()));
                }
                Item::Option(words) => {
                    let kept = link_words(words);
                    strips |= kept.as_ref() != Some(words) && !words[0].starts_with("-M");
                    line.extend(kept.into_iter().flatten());
                }
            }
        }
        if strips {
            said::once(
                &self.store,
                "the link keeps its symbols, which later steps read: options that strip them are dropped",
            );
        }
        if let Some(output) = &self.parsed.output {
            line.extend(["-o".into(), output.clone()]);
        }
        let status = self.plain(&line)?;
        if status == 0 && std::env::var_os(inputs::ENV_UNRECORDED).is_none() {
            let output = self.image();
            let record = LinkCommand {
                version: BUILD_VERSION,
                directory: self.directory.clone(),
                compiler: self.name.into(),
                front: self.front.then(|| self.compiler.clone()),
                arguments: inputs::kept(&self.store, &self.expanded, &output, &made)?,
                output: output.clone(),
            };
            let name = state::hash(&output.display().to_string());
            state::write_json(&self.store.links().join(format!("{name}.json")), &record)?;
        }
        Ok(status)
    }
}

//! One call of a driver that compiles or links: its sources one after the other, then the link.

use super::{inputs, said};
use crate::state;
use anyhow::{Context, Result, ensure};
use cere_format::build::{BUILD_VERSION, LinkCommand};
use cere_format::store::Store;
use cere_system::process::supervise::shell_code;
use cere_toolchain::arguments::{self, Item, Mode, Parsed};
use cere_toolchain::codegen;
use object::read::archive::ArchiveFile;
use std::ffi::OsStr;
use std::io::Read;
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

/// The archiver.
const AR: &str = "llvm-ar-22";

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

/// Whether these are the first bytes of LLVM's bitcode.
fn begins_bitcode(bytes: &[u8]) -> bool {
    bytes.starts_with(b"BC\xc0\xde") || bytes.starts_with(b"\xde\xc0\x17\x0b")
}

/// Whether the file is an object that holds LLVM's bitcode.
fn is_bitcode(path: &str) -> bool {
    let mut magic = [0; 4];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && begins_bitcode(&magic)
}

/// Whether the file is an archive with such an object.
fn has_bitcode(path: &str) -> bool {
    if !(path.ends_with(".a") || path.ends_with(".rlib")) {
        return false;
    }
    let Ok(bytes) = std::fs::read(path) else {
        return false;
    };
    ArchiveFile::parse(&*bytes).is_ok_and(|archive| {
        let mut members = archive.members().flatten();
        members.any(|member| member.data(&*bytes).is_ok_and(begins_bitcode))
    })
}

impl Job {
    /// Does the driver's work and returns its exit status.
    pub fn run(self) -> Result<u8> {
        let bitcode = self.parsed.mode == Mode::Link
            && self
                .others()
                .any(|path| is_bitcode(path) || has_bitcode(path));
        match bitcode && !self.options().any(|option| option.starts_with("-O")) {
            true => self.at_level_of_link().work(),
            false => self.work(),
        }
    }

    /// With the level of optimisation that the linker was to have for bitcode, or its own default.
    fn at_level_of_link(mut self) -> Self {
        let level = self.options().find_map(|option| {
            let parts = option.strip_prefix("-Wl,")?.split(',');
            let level = |part: &str| {
                let plugin = part.strip_prefix("-plugin-opt=O");
                plugin.or(part.strip_prefix("--lto-O")).map(str::to_owned)
            };
            parts.rev().find_map(level)
        });
        let level = format!("-O{}", level.as_deref().unwrap_or("2"));
        said::once(
            &self.store,
            &format!("bitcode at the link is compiled with {level}, as the linker would"),
        );
        let mut flags = vec![level];
        if self.options().any(|option| option == "-shared") {
            flags.push("-fPIC".to_owned());
        }
        self.parsed.codegen.extend(flags.iter().cloned());
        let options = flags.into_iter().map(|flag| Item::Option(vec![flag]));
        self.parsed.items.splice(0..0, options);
        self
    }

    /// The inputs that are no sources.
    fn others(&self) -> impl Iterator<Item = &str> {
        self.parsed.items.iter().filter_map(|item| match item {
            Item::Other(path) => Some(path.as_str()),
            _ => None,
        })
    }

    fn work(&self) -> Result<u8> {
        let temporary = state::scratch(&self.store);
        state::make_directory(&temporary)?;
        let scratch = tempfile::Builder::new()
            .prefix("wrap")
            .tempdir_in(&temporary)
            .with_context(|| format!("cannot write in {}", temporary.display()))?;
        let ir = Some("ir".to_owned());
        let sources = self.parsed.items.iter().filter_map(|item| match item {
            Item::Source { path, explicit } => Some((path, explicit, true)),
            Item::Assembler { path, explicit } => Some((path, explicit, false)),
            // What a compiler wrote for optimising at the link.
            Item::Other(path) if is_bitcode(path) => Some((path, &ir, true)),
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
            let status = if instrumented {
                {
                    let given = (path.as_str(), explicit.as_deref());
                    self.instrumented(given, &line, &output, scratch.path())?
                }
            } else {
                self.plain(&line)?
            };
            // Like a driver, go on: the other sources may have errors to report too.
            if status != 0 && failed == 0 {
                failed = status;
            }
            objects.push(output);
        }
        let archives = match link && failed == 0 {
            true => self.archives(scratch.path())?,
            false => Vec::new(),
        };
        let status = match failed {
            0 if link => self.link(&objects, &archives)?,
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
    fn options(&self) -> impl Iterator<Item = &str> {
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

    /// Archives with objects of bitcode, each with one that has the code in their place.
    fn archives(&self, scratch: &Path) -> Result<Vec<(String, PathBuf)>> {
        let mut made = Vec::new();
        for (number, path) in self.others().filter(|path| has_bitcode(path)).enumerate() {
            let Ok(bytes) = std::fs::read(path) else {
                continue;
            };
            let Ok(archive) = ArchiveFile::parse(&*bytes) else {
                continue;
            };
            let members = archive.members().flatten();
            let members: Vec<_> = members
                .filter_map(|m| {
                    Some((
                        String::from_utf8_lossy(m.name()).into_owned(),
                        m.data(&*bytes).ok()?,
                    ))
                })
                .collect();
            let room = scratch.join(format!("archive{number}"));
            let file = Path::new(path).file_name().unwrap_or_default();
            self.with_code(&members, &room, &room.join(file))?;
            made.push((path.to_owned(), room.join(file)));
        }
        Ok(made)
    }

    /// Makes the code of an archive's members in `room`, and of those an archive `to`.
    fn with_code(&self, members: &[(String, &[u8])], room: &Path, to: &Path) -> Result<()> {
        state::make_directory(room)?;
        let mut ar = Command::new(AR);
        ar.arg("rcs").arg(to);
        for (number, (name, data)) in members.iter().enumerate() {
            let name = Path::new(name).file_name().unwrap_or_default();
            let file = room.join(format!("{number}-{}", name.display()));
            std::fs::write(&file, data)
                .with_context(|| format!("cannot write {}", file.display()))?;
            if !begins_bitcode(data) {
                ar.arg(file);
                continue;
            }
            let object = file.with_extension("code.o");
            let source = file.display().to_string();
            let line = self.compile_line(&source, Some("ir"), &object);
            let status = self.instrumented((&source, Some("ir")), &line, &object, room)?;
            ensure!(
                status == 0,
                "{} cannot be compiled: see above",
                file.display()
            );
            ar.arg(object);
        }
        let status = ar.status().with_context(|| format!("cannot run {AR}"))?;
        ensure!(status.success(), "{AR} could not make {}", to.display());
        Ok(())
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
                Item::Source { .. } | Item::Assembler { .. } => {
                    line.extend(objects.next().map(|o| o.display().to_string()));
                }
                Item::Other(path) if is_bitcode(path) => {
                    let object = objects.next();
                    made.extend(object.map(|object| (path.as_str(), object.as_path())));
                    line.extend(object.map(|o| o.display().to_string()));
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

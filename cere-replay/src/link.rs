//! The executable, within reach of the captured image.

use crate::glue::Glue;
use crate::{Options, ReplayError};
use cere_arch::target::Target;
use cere_format::package::{Manifest, OFFERED_LIBRARIES};
use cere_toolchain::cached::Known;
use cere_toolchain::command::{Line, hash, run};
use cere_toolchain::unit::{CLANG, LLD, tools};
use cere_toolchain::{CompileError, cached, io};
use object::{Object, ObjectSection, SectionFlags};
use std::io::Read;
use std::path::{Path, PathBuf};

const GIB2: u64 = 1 << 31;
/// Distance kept to captured mappings where there is room.
const ROOM: u64 = 64 << 20;
/// What the linker adds to the objects: tables by eighths of these, the glue, compiler builtins, alignment.
const BESIDE: u64 = 1 << 20;
/// Lowest base: the kernel keeps the first pages.
const LOWEST: u64 = 0x1_0000;
/// Refers to the runtime's entry, so that the runtime comes first in every section and the captured
/// thread-local block, in the glue, last.
const FIRST: &str = ".globl _start\n.section .note.GNU-stack,\"\",@progbits\n";

/// How far from its place an executable is put that is to lie elsewhere, and bytes of code before its own: no byte of an address in
/// its code is then the same, but for those that are the same for all code near the captured image.
const FAR: u64 = 0x0333_0000;
const BEFORE: u64 = 0x15a30;

/// A base for an executable of `size` bytes, all of it within reach of the captured image.
pub fn base(manifest: &Manifest, size: u64) -> Result<u64, ReplayError> {
    let (start, end) = manifest.image.range;
    let reach = GIB2 - (1 << 20);
    let (lowest, highest) = if manifest.image.low {
        (LOWEST, GIB2)
    } else {
        (
            end.saturating_sub(reach).max(LOWEST),
            start.saturating_add(reach),
        )
    };
    let mut taken: Vec<(u64, u64)> = manifest
        .mappings
        .iter()
        .map(|m| (m.start, m.end))
        .chain(manifest.fresh.iter().copied())
        .chain([manifest.heap, manifest.image.range])
        .filter(|r| r.0 < r.1)
        .collect();
    taken.sort_unstable();
    // Free gaps by falling size.
    let mut gaps = Vec::new();
    let mut at = lowest;
    for &(start, end) in &taken {
        if start > at && at < highest {
            gaps.push((at, start.min(highest)));
        }
        at = at.max(end);
    }
    if at < highest {
        gaps.push((at, highest));
    }
    gaps.sort_by_key(|g| std::cmp::Reverse(g.1 - g.0));
    for (start, end) in gaps {
        for (room, align) in [(ROOM, 0x1_0000), (1 << 20, 0x1_0000), (0x1000, 0x1000)] {
            let from = start.saturating_add(room).next_multiple_of(align);
            if from.saturating_add(size).saturating_add(room) <= end {
                return Ok(from);
            }
        }
    }
    Err(ReplayError::NoRoom {
        size,
        image: manifest.image.name.clone(),
        start,
        end,
    })
}

/// Whether a file is an ELF image of this architecture.
fn is_of(path: &Path, target: Target) -> bool {
    let mut head = [0; 20];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok()
        && head[..5] == *b"\x7fELF\x02"
        && head[18..] == target.facts().machine.to_le_bytes()
}

/// A library of the architecture that code is made for, in `directories` or where those of the system are.
fn find(name: &str, directories: &[String], options: &Options) -> Option<PathBuf> {
    let target = options.target();
    let usual = match &options.settings.cross {
        Some(cross) => cross.directories(),
        None => target.directories(),
    };
    let own = directories.iter().map(PathBuf::from);
    let mut all = own.chain(usual).map(|d| d.join(name));
    all.find(|path| path.is_file() && is_of(path, target))
}

/// The loader's file, as a library.
fn loader(options: &Options) -> PathBuf {
    let path = Path::new(options.target().facts().loader);
    let name = path
        .file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy();
    match options.settings.cross {
        Some(_) => find(&name, &[], options).unwrap_or_else(|| path.to_owned()),
        None => path.to_owned(),
    }
}

/// What is linked and where the result goes.
pub struct Files {
    /// Refers to the runtime's entry.
    pub first: PathBuf,
    /// The runtime: see [`crate::apart`].
    pub runtime: PathBuf,
    /// The units.
    pub objects: Vec<PathBuf>,
    /// The glue.
    pub glue: PathBuf,
    /// The executable.
    pub executable: PathBuf,
}

/// The command that assembles a file.
pub fn assemble(source: &Path, object: &Path, options: &Options) -> Line {
    Line::new(CLANG)
        .args(options.settings.cross.iter().map(|cross| cross.flag()))
        .args(["-c", "-x", "assembler"])
        .path(source)
        .arg("-o")
        .output(object)
}

/// The command that links; `other` stands for the OpenMP runtime of the capture.
pub fn line(
    manifest: &Manifest,
    files: &Files,
    base: u64,
    builtins: &[PathBuf],
    other: Option<&Path>,
    options: &Options,
) -> Result<Line, ReplayError> {
    let cross = options.settings.cross.as_ref();
    let mut line = Line::new(LLD)
        .arg(format!("--image-base={base:#x}"))
        .args([
            "-z",
            "now",
            "--gc-sections",
            "--eh-frame-hdr",
            "--strip-debug",
            "-e",
            "_start",
        ])
        .args(["--dynamic-linker", options.target().facts().loader])
        .path(&files.first)
        .path(&files.runtime);
    for object in files.objects.iter().chain([&files.glue]) {
        line = line.path(object);
    }
    // The loader looks here before where it found the runtime of the capture.
    if let Some(directory) = other.and_then(Path::parent) {
        line = line.arg("-rpath").path(directory);
    }
    let own: Vec<String> = match cross {
        None => manifest.library_directories.clone(),
        // Where the target's libraries are, as they are called where it runs.
        Some(cross) => {
            let named = cross.libraries.iter();
            named.map(|d| d.display().to_string()).collect()
        }
    };
    for directory in &own {
        line = line.loads(Path::new(directory));
        line = line.arg("-rpath").arg(directory);
    }
    for directory in cross.iter().flat_map(|cross| cross.directories()) {
        line = line.loads(&directory);
    }
    let wanted = manifest
        .libraries
        .iter()
        .filter(|l| !l.starts_with("ld-linux"));
    let mut missing = Vec::new();
    let openmp = manifest.openmp.as_ref().map(|o| o.runtime.as_str());
    for library in wanted {
        if let Some(other) = other.filter(|_| openmp == Some(library.as_str())) {
            line = line.path(other);
            continue;
        }
        match find(library, &manifest.library_directories, options) {
            Some(path) => line = line.path(&path),
            None => missing.push(library.as_str()),
        }
    }
    if !missing.is_empty() {
        return Err(ReplayError::Library {
            codelet: manifest.name.clone(),
            libraries: missing.join(", "),
            target: cross.map(|cross| cross.target.to_string()),
        });
    }
    for archive in builtins {
        line = line.path(archive);
    }
    line = line.arg("--as-needed");
    for library in OFFERED_LIBRARIES {
        if let Some(path) = find(library, &[], options) {
            line = line.path(&path);
        }
    }
    let libc = find("libc.so.6", &[], options);
    Ok(line
        .args(libc)
        .path(&loader(options))
        .arg("-o")
        .output(&files.executable))
}

/// The executable that keeps a captured state, from the cache: the runtime alone, anywhere in memory.
pub fn keeper(runtime: &Path, options: &Options) -> Result<PathBuf, CompileError> {
    let glue = crate::glue::nothing(options.target());
    let key = hash(&[
        glue.as_bytes(),
        runtime.as_os_str().as_encoded_bytes(),
        &tools(&[])?,
    ]);
    cached::get(&options.cache, &format!("{key}.keeper"), |made| {
        let mut line = Line::new(LLD)
            .args([
                "-pie",
                "-z",
                "now",
                "--gc-sections",
                "--eh-frame-hdr",
                "--strip-debug",
            ])
            .args(["-e", "_start", "--dynamic-linker"])
            .arg(options.target().facts().loader)
            .path(&first(options)?)
            .path(runtime)
            .path(&assembled(options, "glue", &glue)?);
        for library in OFFERED_LIBRARIES.into_iter().chain(["libc.so.6"]) {
            if let Some(path) = find(library, &[], options) {
                line = line.path(&path);
            }
        }
        let line = line.path(&loader(options)).arg("-o").output(made);
        run(
            &line.confined(&options.settings.sandbox),
            "what keeps a captured state",
        )
        .map(drop)
    })
}

/// Functions that code generation calls for what a processor lacks, e.g. 128-bit division: the captured
/// program may not have needed them.
fn builtins(options: &Options) -> Vec<PathBuf> {
    let ask = |option: &str| {
        let line = Line::new(CLANG)
            .confined(&options.settings.sandbox)
            .args(options.settings.cross.iter().map(|cross| cross.flag()));
        let found = run(&line.args([option, "-print-libgcc-file-name"]), "builtins");
        found.ok().map(|path| PathBuf::from(path.trim()))
    };
    let found = [ask("--rtlib=compiler-rt"), ask("--rtlib=libgcc")];
    found
        .into_iter()
        .flatten()
        .filter(|p| p.is_file())
        .collect()
}

/// Symbols that the linker did not find.
fn undefined(message: &str) -> Vec<&str> {
    let mut found: Vec<&str> = message
        .lines()
        .filter_map(|l| l.split_once("undefined symbol: ").map(|(_, name)| name))
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// An executable and how it was made.
pub struct Linked {
    /// In the cache.
    pub executable: PathBuf,
    /// The runtime's object in it.
    pub runtime: PathBuf,
    /// Its base.
    pub base: u64,
    /// Archives of compiler builtins that it needed.
    pub builtins: Vec<PathBuf>,
}

/// Bytes of an object or an executable that are loaded, at most.
fn loaded_size(path: &Path) -> Result<u64, ReplayError> {
    let bad = |reason: String| ReplayError::Object {
        path: path.to_owned(),
        reason,
    };
    let data = std::fs::read(path).map_err(|e| bad(e.to_string()))?;
    let file = object::File::parse(&*data).map_err(|e| bad(e.to_string()))?;
    let loaded = file.sections().filter(|s| match s.flags() {
        SectionFlags::Elf { sh_flags, .. } => sh_flags.contains(object::elf::SHF_ALLOC),
        _ => true,
    });
    let sizes = loaded.map(|s| s.size().saturating_add(s.align()));
    Ok(sizes.fold(0, u64::saturating_add))
}

/// Assembles the glue and links.
pub fn link(
    manifest: &Manifest,
    objects: &[&Path],
    glue: &Glue,
    runtime: &Path,
    options: &Options,
) -> Result<Linked, ReplayError> {
    // The linker takes of the runtime what is used, about half: as in the runtime alone.
    static SIZES: Known<u64> = Known::new();
    let runtime_size = SIZES.of(&keeper(runtime, options)?, loaded_size)?;
    let mut parts = runtime_size.saturating_add(glue.room);
    for object in objects {
        parts = parts.saturating_add(loaded_size(object)?);
    }
    let size = parts.saturating_add(parts / 8 + BESIDE);
    let base = match options.elsewhere {
        true => base(manifest, size.saturating_add(FAR))? + FAR,
        false => base(manifest, size)?,
    };
    let other = options.settings.team.runtime.as_deref();
    let names: Vec<String> = objects.iter().map(|o| o.display().to_string()).collect();
    let key = hash(&[
        glue.text.as_bytes(),
        names.join("\0").as_bytes(),
        runtime.as_os_str().as_encoded_bytes(),
        &base.to_le_bytes(),
        &tools(&[])?,
        manifest.libraries.join("\0").as_bytes(),
        manifest.library_directories.join("\0").as_bytes(),
        other.map_or(&[][..], |p| p.as_os_str().as_encoded_bytes()),
        format!("{:?}", options.settings.cross).as_bytes(),
    ]);
    let name = format!("{key}.replay");
    let mut linked = Linked {
        executable: options.cache.join(&name),
        runtime: runtime.to_owned(),
        base,
        builtins: Vec::new(),
    };
    // Keeping needs to know whether the link took the builtins.
    if linked.executable.exists() && options.keep.is_none() {
        return Ok(linked);
    }
    let make = |made: &Path| {
        let files = Files {
            first: match options.elsewhere {
                true => assembled(
                    options,
                    "first",
                    &format!("{FIRST}.section .text.before, \"axR\", @progbits\n.skip {BEFORE}\n"),
                )?,
                false => first(options)?,
            },
            runtime: runtime.to_owned(),
            objects: objects.iter().map(|o| o.to_path_buf()).collect(),
            glue: assembled(options, "glue", &glue.text)?,
            executable: made.to_owned(),
        };
        let what = format!("the link of {}", manifest.name);
        let link = |builtins: &[PathBuf]| {
            let line = line(manifest, &files, base, builtins, other, options)?;
            Ok::<_, ReplayError>(run(&line.confined(&options.settings.sandbox), &what))
        };
        let mut result = link(&[])?;
        if is_undefined(&result) {
            linked.builtins = builtins(options);
            result = link(&linked.builtins)?;
        }
        match result {
            Err(CompileError::Compile { message, .. }) if !undefined(&message).is_empty() => {
                Err(ReplayError::Undefined {
                    codelet: manifest.name.clone(),
                    symbols: undefined(&message).join(", "),
                    other_flags: !options.settings.flags.is_empty()
                        || options.settings.passes.is_some(),
                })
            }
            Err(CompileError::Compile { message, .. })
                if message.contains("requires an executable stack") =>
            {
                Err(ReplayError::ExecutableStack(manifest.name.clone()))
            }
            result => Ok(result.map(drop)?),
        }
    };
    match options.keep {
        None => cached::get(&options.cache, &name, make)?,
        Some(_) => cached::replace(&options.cache, &name, make)?,
    };
    Ok(linked)
}

fn is_undefined(result: &Result<String, CompileError>) -> bool {
    matches!(result, Err(CompileError::Compile { message, .. }) if !undefined(message).is_empty())
}

/// The object that comes first, from the cache.
pub(crate) fn first(options: &Options) -> Result<PathBuf, CompileError> {
    assembled(options, "first", FIRST)
}

/// The object of an assembly text, called `what`, from the cache.
fn assembled(options: &Options, what: &str, text: &str) -> Result<PathBuf, CompileError> {
    let target = options.target().to_string();
    let name = format!("{}.{what}.o", hash(&[text.as_bytes(), target.as_bytes()]));
    cached::get(&options.cache, &name, |made| {
        let source = made.with_file_name(format!("{what}.s"));
        std::fs::write(&source, text).map_err(io("write", &source))?;
        let line = assemble(&source, made, options).confined(&options.settings.sandbox);
        run(&line, what).map(drop)
    })
}

/// Writes the source of the first object.
pub fn write_first(path: &Path) -> Result<(), CompileError> {
    std::fs::write(path, FIRST).map_err(io("write", path))
}

//! Bitcode among the inputs of a link, as compilers write it that leave optimising to the linker: clang makes the code of it before.

use super::job::Job;
use super::said;
use crate::state;
use anyhow::{Context, Result};
use cere_catalogue::ensure;
use cere_toolchain::arguments::Item;
use object::ReadRef;
use object::read::ReadCache;
use object::read::archive::ArchiveFile;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The archiver.
const AR: &str = "llvm-ar-22";

/// Whether these are the first bytes of LLVM's bitcode.
fn begins(bytes: &[u8]) -> bool {
    bytes.starts_with(b"BC\xc0\xde") || bytes.starts_with(b"\xde\xc0\x17\x0b")
}

/// Whether the file is an object of bitcode.
fn is_object(path: &str) -> bool {
    let mut magic = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && begins(&magic)
}

/// Whether the file is an archive with such an object; of its members the beginnings alone are read.
fn is_archive(path: &str) -> bool {
    let named = path.ends_with(".a") || path.ends_with(".rlib");
    named && File::open(path).is_ok_and(|file| holds(&ReadCache::new(file)))
}

fn holds(content: &ReadCache<File>) -> bool {
    let member = |range: (u64, u64)| {
        content
            .read_bytes_at(range.0, range.1.min(4))
            .is_ok_and(begins)
    };
    ArchiveFile::parse(content).is_ok_and(|archive| {
        let mut members = archive.members().flatten();
        !archive.is_thin() && members.any(|m| member(m.file_range()))
    })
}

impl Job {
    /// With objects of bitcode as sources, and the archives that hold some. Where nothing says how to optimise it, that is done as the linker
    /// would.
    pub fn with_bitcode(mut self) -> (Self, Vec<String>) {
        let mut archives = Vec::new();
        let mut found = false;
        for item in &mut self.parsed.items {
            match item {
                Item::Other(path) if is_object(path) => {
                    found = true;
                    *item = Item::Source {
                        path: std::mem::take(path),
                        explicit: Some("ir".to_owned()),
                    };
                }
                Item::Other(path) if is_archive(path) => archives.push(path.clone()),
                _ => {}
            }
        }
        found |= !archives.is_empty();
        match found && !self.options().any(|option| option.starts_with("-O")) {
            true => (self.at_level_of_link(), archives),
            false => (self, archives),
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

    /// The archives, each with one that has code in place of bitcode.
    pub fn with_code(&self, archives: &[String], scratch: &Path) -> Result<Vec<(String, PathBuf)>> {
        let made = archives.iter().enumerate().map(|(number, path)| {
            let room = scratch.join(format!("archive{number}"));
            let to = room.join(Path::new(path).file_name().unwrap_or_default());
            self.archive_with_code(path, &room, &to)?;
            Ok((path.clone(), to))
        });
        made.collect()
    }

    /// Makes the code of an archive's members in `room`, and of those the archive `to`.
    fn archive_with_code(&self, path: &str, room: &Path, to: &Path) -> Result<()> {
        let unread = || format!("cannot read {path}");
        let bytes = std::fs::read(path).with_context(unread)?;
        let archive = ArchiveFile::parse(&*bytes).with_context(unread)?;
        state::make_directory(room)?;
        let mut ar = Command::new(AR);
        ar.arg("rcs").arg(to);
        for (number, member) in archive.members().enumerate() {
            let member = member.with_context(unread)?;
            let name = String::from_utf8_lossy(member.name()).into_owned();
            let name = Path::new(&name).file_name().unwrap_or_default();
            let data = member.data(&*bytes).with_context(unread)?;
            let file = room.join(format!("{number}-{}", name.display()));
            std::fs::write(&file, data)
                .with_context(|| format!("cannot write {}", file.display()))?;
            if !begins(data) {
                ar.arg(file);
                continue;
            }
            let object = file.with_extension("code.o");
            let source = file.display().to_string();
            let line = self.compile_line(&source, Some("ir"), &object);
            let status = self.instrumented((&source, Some("ir")), &line, &object, room)?;
            ensure!(
                status == 0,
                E1030,
                "{} of {path} cannot be compiled: see above",
                name.display()
            );
            ar.arg(object);
        }
        let status = ar.status().with_context(|| format!("cannot run {AR}"))?;
        ensure!(
            status.success(),
            E1030,
            "{AR} could not make {}",
            to.display()
        );
        Ok(())
    }
}

//! Repeats the recorded link command with the objects of some units replaced, also inside archives.

use crate::hybrid::error::HybridError;
use cere_format::build::LinkCommand;
use cere_store::build::units;
use cere_toolchain::command::{Line, run};
use cere_toolchain::io;
use object::read::archive::ArchiveFile;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The archiver.
const AR: &str = "llvm-ar-22";

/// A part of the link command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// An option or value that goes to the driver unchanged.
    Words(Vec<String>),
    /// A source that the same command compiled, with its unit.
    Source {
        /// As given.
        path: String,
        /// Id of its unit; `None` if it was compiled without the pass.
        unit: Option<String>,
    },
    /// An object, an archive or a shared library.
    File(String),
    /// `-l`: the name of a library.
    Library(String),
}

/// A parsed recorded link.
#[derive(Debug, Clone)]
pub struct Link {
    /// The record.
    pub command: LinkCommand,
    /// Its words, without `-o`.
    pub items: Vec<Item>,
}

/// The content of an input.
enum Content {
    /// An object and its units.
    Object(Vec<String>),
    /// Members with their units.
    Archive(Vec<(String, Vec<u8>, Vec<String>)>),
    /// No unit of this build.
    Other,
}

impl Link {
    fn path(&self, given: &str) -> PathBuf {
        self.command.directory.join(given)
    }

    /// The archive that `-l` refers to, if any: the first directory with the library decides, and there a shared library wins.
    fn archive_of(&self, library: &str) -> Option<PathBuf> {
        let directories = self.items.iter().filter_map(|item| match item {
            Item::Words(words) => match &words[..] {
                [option, value] if option == "-L" => Some(value.as_str()),
                [option] => option.strip_prefix("-L"),
                _ => None,
            },
            _ => None,
        });
        let fixed = self
            .items
            .iter()
            .any(|item| matches!(item, Item::Words(words) if words[0] == "-static"));
        for directory in directories {
            let directory = self.path(directory);
            if let Some(file) = library.strip_prefix(':') {
                let file = directory.join(file);
                if file.is_file() {
                    return Some(file);
                }
                continue;
            }
            if !fixed && directory.join(format!("lib{library}.so")).is_file() {
                return None;
            }
            let archive = directory.join(format!("lib{library}.a"));
            if archive.is_file() {
                return Some(archive);
            }
        }
        None
    }

    fn content(&self, path: &Path) -> Result<Content, HybridError> {
        let unreadable = |reason: object::Error| HybridError::Unreadable {
            path: path.to_owned(),
            reason: reason.to_string(),
        };
        let bytes = match std::fs::read(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(HybridError::Gone {
                    path: path.to_owned(),
                    image: self.command.output.clone(),
                });
            }
            other => other.map_err(io("read", path))?,
        };
        if let Ok(archive) = ArchiveFile::parse(&*bytes) {
            let mut members = Vec::new();
            for member in archive.members() {
                let member = member.map_err(unreadable)?;
                let name = String::from_utf8_lossy(member.name()).into_owned();
                let data = if archive.is_thin() {
                    let file = path.parent().unwrap_or(Path::new(".")).join(&name);
                    std::fs::read(&file).map_err(io("read", &file))?
                } else {
                    member.data(&*bytes).map_err(unreadable)?.to_vec()
                };
                // A file that is not an object, such as a list of names, holds no unit.
                let units = units::of(&data).unwrap_or_default();
                members.push((name, data, units));
            }
            return Ok(Content::Archive(members));
        }
        match object::File::parse(&*bytes) {
            Ok(file) if object::Object::kind(&file) == object::ObjectKind::Relocatable => {
                Ok(Content::Object(units::of(&bytes).map_err(unreadable)?))
            }
            _ => Ok(Content::Other),
        }
    }

    /// The files that the link reads, including archives of `-l`.
    fn files(&self) -> impl Iterator<Item = PathBuf> {
        self.items.iter().filter_map(|item| match item {
            Item::File(given) => Some(self.path(given)),
            Item::Library(name) => self.archive_of(name),
            _ => None,
        })
    }

    /// Ids of the units that the link may use.
    pub fn units(&self) -> Result<BTreeSet<String>, HybridError> {
        let mut found: BTreeSet<String> = self
            .items
            .iter()
            .filter_map(|item| match item {
                Item::Source { unit, .. } => unit.clone(),
                _ => None,
            })
            .collect();
        for file in self.files() {
            match self.content(&file)? {
                Content::Object(units) => found.extend(units),
                Content::Archive(members) => found.extend(members.into_iter().flat_map(|m| m.2)),
                Content::Other => {}
            }
        }
        Ok(found)
    }

    /// Links into `output` atomically. `replacement` gives the new object of a unit. Without one the recorded object stays;
    /// sources need a replacement.
    pub fn relink(
        &self,
        output: &Path,
        replacement: impl Fn(&str) -> Option<PathBuf>,
    ) -> Result<(), HybridError> {
        let parent = output
            .parent()
            .filter(|p| !p.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let scratch = tempfile::Builder::new()
            .prefix(".hybrid")
            .tempdir_in(parent)
            .map_err(io("write into", parent))?;
        let driver = match &self.command.front {
            Some(front) => front.to_string_lossy().into_owned(),
            None => self.command.compiler.clone(),
        };
        let mut line = Line::new(&driver).directory(&self.command.directory);
        for (number, item) in self.items.iter().enumerate() {
            let room = scratch.path().join(number.to_string());
            line = match item {
                Item::Words(words) => line.args(words),
                Item::Source { path, unit } => match unit.as_deref().and_then(&replacement) {
                    Some(object) => line.path(&object),
                    None => line.arg(path),
                },
                Item::File(given) => {
                    let path = self.path(given);
                    match self.replaced(&path, &room, &replacement)? {
                        Some(other) => line.path(&other),
                        None => line.arg(given),
                    }
                }
                Item::Library(name) => {
                    let other = match self.archive_of(name) {
                        Some(archive) => self.replaced(&archive, &room, &replacement)?,
                        None => None,
                    };
                    match other {
                        Some(other) => line.path(&other),
                        None => line.arg(format!("-l{name}")),
                    }
                }
            };
        }
        let made = scratch.path().join("linked");
        let line = line.arg("-Qunused-arguments").arg("-o").path(&made);
        run(&line, &format!("the link of {}", output.display()))?;
        std::fs::rename(&made, output).map_err(io("write", output))?;
        Ok(())
    }

    /// The file that replaces an input, if any unit in it is replaced.
    fn replaced(
        &self,
        path: &Path,
        room: &Path,
        replacement: &impl Fn(&str) -> Option<PathBuf>,
    ) -> Result<Option<PathBuf>, HybridError> {
        let of = |units: &[String], path: &Path| match units {
            [] => Ok(None),
            [only] => Ok(replacement(only)),
            several if several.iter().all(|unit| replacement(unit).is_none()) => Ok(None),
            _ => Err(HybridError::Several {
                path: path.to_owned(),
            }),
        };
        match self.content(path)? {
            Content::Object(units) => of(&units, path),
            Content::Other => Ok(None),
            Content::Archive(members) => {
                let mut others = Vec::new();
                for (name, _, units) in &members {
                    others.push(of(units, &path.join(name))?);
                }
                if others.iter().all(Option::is_none) {
                    return Ok(None);
                }
                archive(path, members, others, room).map(Some)
            }
        }
    }
}

/// Writes a copy of an archive with some members replaced, in the original order.
fn archive(
    path: &Path,
    members: Vec<(String, Vec<u8>, Vec<String>)>,
    others: Vec<Option<PathBuf>>,
    room: &Path,
) -> Result<PathBuf, HybridError> {
    let mut line = Line::new(AR).arg("qcs");
    std::fs::create_dir_all(room).map_err(io("create", room))?;
    let name = path.file_name().unwrap_or_default();
    let made = room.join(name);
    line = line.path(&made);
    for (number, ((name, data, _), other)) in members.into_iter().zip(others).enumerate() {
        // Several members may have the same name.
        let directory = room.join(number.to_string());
        std::fs::create_dir_all(&directory).map_err(io("create", &directory))?;
        let file = directory.join(Path::new(&name).file_name().unwrap_or_default());
        match other {
            Some(other) => std::fs::copy(&other, &file).map(drop),
            None => std::fs::write(&file, data),
        }
        .map_err(io("write", &file))?;
        line = line.path(&file);
    }
    run(&line, &path.to_string_lossy())?;
    Ok(made)
}

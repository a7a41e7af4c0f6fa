//! The files that a unit was compiled of, as they are during the compile.

use cere_format::build::{ENV_HEADERS, Region, SourceFile};
use cere_format::hexadecimal;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where headers of the system lie. They are left out: there are hundreds, and packages change them.
const SYSTEM: [&str; 2] = ["/usr/include", "/usr/lib"];

/// The files of a unit of `source` that was compiled in `directory`: the source, what its `regions` are in, and the headers that
/// the compiler listed.
pub fn of(source: &Path, regions: &[Region], directory: &Path) -> Vec<SourceFile> {
    let files = std::iter::once(source.to_owned())
        .chain(regions.iter().map(|region| region.file.clone()))
        .chain(listed());
    let own = |file: &PathBuf| !SYSTEM.iter().any(|system| file.starts_with(system));
    let files: BTreeSet<PathBuf> = files
        .map(|file| plain(&directory.join(file)))
        .filter(own)
        .collect();
    files.into_iter().filter_map(state).collect()
}

/// The files that the compiler lists.
fn listed() -> Vec<PathBuf> {
    let Some(list) = std::env::var_os(ENV_HEADERS) else {
        return Vec::new();
    };
    let text = std::fs::read(&list).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    if Path::new(&list).extension().is_some_and(|e| e == "d") {
        return text.lines().find_map(of_rule).unwrap_or_default();
    }
    // Dots show the depth of a header, where the list has it.
    let header = |line: &str| match line.split_once(' ') {
        Some((dots, path)) if dots.bytes().all(|b| b == b'.') => PathBuf::from(path),
        _ => PathBuf::from(line),
    };
    text.lines().map(header).collect()
}

/// The files of a rule of make's, in which a backslash stands before a space of a name.
fn of_rule(line: &str) -> Option<Vec<PathBuf>> {
    let (_, files) = line.split_once(": ")?;
    let apart = files.replace("\\ ", "\0");
    let names = apart.split_whitespace().map(|name| name.replace('\0', " "));
    Some(names.map(PathBuf::from).collect())
}

/// `path` without `.` between its parts.
fn plain(path: &Path) -> PathBuf {
    path.components().collect()
}

fn state(file: PathBuf) -> Option<SourceFile> {
    let found = std::fs::metadata(&file).ok().filter(|f| f.is_file())?;
    let sha256 = hexadecimal(&Sha256::digest(std::fs::read(&file).ok()?));
    let seconds = found.mtime().saturating_mul(1_000_000_000);
    Some(SourceFile {
        size: found.size(),
        modified: seconds.saturating_add(found.mtime_nsec()),
        sha256,
        file,
    })
}

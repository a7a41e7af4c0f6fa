//! A package from its members.

use super::check::check_stored;
use super::layout::{HEADER_LENGTH, copy_hashed, header, invalid};
use super::{check_manifest, decode_table};
use cere_format::package::{MEMBER_MANIFEST, MEMBER_TABLE, Manifest, Member, PACKAGE_VERSION};
use cere_format::{FormatError, hexadecimal, untrusted};
use sha2::{Digest, Sha256};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::ScopedJoinHandle;

/// Numbers hardly get smaller at higher levels, which take twice as long.
const LEVEL: i32 = 1;
/// 128 MiB, the largest window that every zstd accepts unasked: pages at exit mostly repeat pages at entry.
const WINDOW_LOG: u32 = 27;
/// Bytes of members from which on the large window is worth its memory.
const LONG: u64 = 2 << 20;

/// Opens a member's bytes again, from their start.
pub type OpenStream<'a> = Box<dyn Fn() -> io::Result<Box<dyn Read + 'a>> + Sync + 'a>;

/// Where a new member's bytes come from.
pub enum MemberData<'a> {
    /// Memory.
    Bytes(Vec<u8>),
    /// A file, read while the package is written.
    File(PathBuf),
    /// Anything that can be read twice, and its size: once for the checksum, once to be written.
    Stream(u64, OpenStream<'a>),
}

/// A member to write.
pub struct NewMember<'a> {
    /// Its name, one of the `MEMBER_` names or a unit's.
    pub name: String,
    /// Its bytes.
    pub data: MemberData<'a>,
}

impl<'a> NewMember<'a> {
    /// A member from memory.
    pub fn bytes(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            name: name.into(),
            data: MemberData::Bytes(bytes.into()),
        }
    }
    /// A member from a file.
    pub fn file(name: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            data: MemberData::File(path.into()),
        }
    }
    /// A member of `size` bytes from readers that `open` gives.
    pub fn stream(
        name: impl Into<String>,
        size: u64,
        open: impl Fn() -> io::Result<Box<dyn Read + 'a>> + Sync + 'a,
    ) -> Self {
        Self {
            name: name.into(),
            data: MemberData::Stream(size, Box::new(open)),
        }
    }
    pub(super) fn open(&self) -> Result<(Box<dyn Read + '_>, u64, PathBuf), FormatError> {
        match &self.data {
            MemberData::Bytes(bytes) => Ok((
                Box::new(bytes.as_slice()),
                bytes.len() as u64,
                PathBuf::from(&self.name),
            )),
            MemberData::File(path) => {
                let file = File::open(path).map_err(FormatError::io("read", path))?;
                let size = file
                    .metadata()
                    .map_err(FormatError::io("read", path))?
                    .len();
                Ok((Box::new(file), size, path.clone()))
            }
            MemberData::Stream(size, open) => {
                let path = PathBuf::from(&self.name);
                let reader = open().map_err(FormatError::io("read", &path))?;
                Ok((reader, *size, path))
            }
        }
    }
}

/// Hashes and counts what passes to the file below.
struct Hashing<W> {
    below: W,
    hash: Sha256,
    length: u64,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.below.write(bytes)?;
        self.hash.update(&bytes[..count]);
        self.length += count as u64;
        Ok(count)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.below.flush()
    }
}

/// What the name of a package ends with that is not whole yet; it begins with a dot.
pub const PACKAGE_UNFINISHED: &str = ".tmp";

/// Removes a temporary file unless it was renamed.
struct Temporary(Option<PathBuf>);

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = self.0.take() {
            // Nothing is lost if it stays: the next write to this target uses another name.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// What no reader takes is not written.
fn check_readable(manifest: &Manifest) -> Result<(), FormatError> {
    let json = serde_json::to_vec(manifest).map_err(|source| FormatError::Json {
        what: MEMBER_MANIFEST.into(),
        source,
    })?;
    untrusted::measure(MEMBER_MANIFEST, &json)
}

/// Writes a package to `path`: under a temporary name beside it, renamed when complete and on disk. Fills
/// `manifest.members` from `members`, whose first must be the page table.
pub fn write_package(
    path: &Path,
    manifest: &mut Manifest,
    members: &[NewMember<'_>],
) -> Result<(), FormatError> {
    list_members(manifest, members)?;
    let name = path
        .file_name()
        .ok_or_else(|| invalid("package", "path", path.display(), "it names a file"))?;
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let temporary = directory.join(temporary_name(name));
    let mut file = File::create_new(&temporary).map_err(FormatError::io("create", &temporary))?;
    let mut guard = Temporary(Some(temporary.clone()));
    write_to(&mut file, manifest, members).map_err(FormatError::io("write", &temporary))?;
    std::fs::rename(&temporary, path).map_err(FormatError::io("rename", &temporary))?;
    guard.0 = None;
    // The name is durable once the directory is; a file system that cannot sync one still has the file.
    if let Ok(directory) = File::open(directory) {
        let _ = directory.sync_all();
    }
    Ok(())
}

/// Fills `manifest.members`, and checks what is then to be written.
fn list_members(manifest: &mut Manifest, members: &[NewMember<'_>]) -> Result<(), FormatError> {
    // Most of the bytes are of two members: the pages at entry and at exit.
    let hashed: Vec<_> = std::thread::scope(|scope| {
        let spawned = members.iter().map(|member| scope.spawn(|| hash(member)));
        let spawned: Vec<_> = spawned.collect();
        let joined = spawned.into_iter().map(ScopedJoinHandle::join);
        let hashed = joined.map(|h| h.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        hashed.collect()
    });
    manifest.members = hashed.into_iter().collect::<Result<_, FormatError>>()?;
    let mut pages = Vec::new();
    for member in members.iter().filter(|m| m.name == MEMBER_TABLE) {
        let mut table = Vec::new();
        let (mut reader, _, from) = member.open()?;
        reader
            .read_to_end(&mut table)
            .map_err(FormatError::io("read", &from))?;
        pages = decode_table(MEMBER_TABLE, &table, manifest.page_size)?;
    }
    manifest.pages = pages.len() as u64;
    check_manifest(manifest)?;
    check_stored(manifest, &pages)?;
    check_readable(manifest)
}

/// What a manifest says of a member.
fn hash(member: &NewMember<'_>) -> Result<Member, FormatError> {
    let (mut reader, size, from) = member.open()?;
    let hashed = copy_hashed(&mut reader, &mut io::sink(), u64::MAX);
    let (found, hash) = hashed.map_err(FormatError::io("read", &from))?;
    if found != size {
        let why = "the file changed while it was read";
        return Err(invalid(&member.name, "size", found, why));
    }
    Ok(Member {
        name: member.name.clone(),
        size,
        sha256: hexadecimal(&hash),
    })
}

/// A name beside `name` that no other write uses.
fn temporary_name(name: &OsStr) -> OsString {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let mut temporary = OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}.{number}", std::process::id()));
    temporary.push(PACKAGE_UNFINISHED);
    temporary
}

/// Writes the members behind room for the preamble, then the preamble, which has their hash.
fn write_to(file: &mut File, manifest: &Manifest, members: &[NewMember<'_>]) -> io::Result<()> {
    file.write_all(&[0; HEADER_LENGTH as usize])?;
    let below = Hashing {
        below: BufWriter::new(&mut *file),
        hash: Sha256::new(),
        length: 0,
    };
    let mut encoder = zstd::Encoder::new(below, LEVEL)?;
    encoder.include_checksum(true)?;
    let total: u64 = manifest.members.iter().map(|member| member.size).sum();
    if total > LONG {
        encoder.long_distance_matching(true)?;
        encoder.window_log(WINDOW_LOG)?;
    }
    let mut archive = tar::Builder::new(encoder);
    let json = serde_json::to_vec_pretty(manifest)?;
    let size = json.len() as u64;
    append(&mut archive, MEMBER_MANIFEST, size, &mut json.as_slice())?;
    for (member, listed) in members.iter().zip(&manifest.members) {
        let (mut reader, ..) = member.open().map_err(io::Error::other)?;
        append(&mut archive, &member.name, listed.size, &mut reader)?;
    }
    let Hashing {
        below,
        hash,
        length,
    } = archive.into_inner()?.finish()?;
    below.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&header(PACKAGE_VERSION, length, hash.finalize().into()))?;
    file.sync_all()
}

pub(super) fn append<W: Write>(
    archive: &mut tar::Builder<W>,
    name: &str,
    size: u64,
    reader: &mut dyn Read,
) -> io::Result<()> {
    let mut header = tar::Header::new_ustar();
    header.set_path(name)?;
    header.set_size(size);
    header.set_mode(0o644);
    header.set_mtime(0);
    header.set_cksum();
    let mut counted = Counted {
        below: reader,
        left: size,
    };
    archive.append(&header, &mut counted)?;
    if counted.left != 0 {
        return Err(io::Error::other(format!(
            "{name} changed while it was packed"
        )));
    }
    Ok(())
}

struct Counted<'a> {
    below: &'a mut dyn Read,
    left: u64,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = usize::try_from(self.left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let count = self.below.read(&mut buffer[..room])?;
        self.left -= count as u64;
        Ok(count)
    }
}

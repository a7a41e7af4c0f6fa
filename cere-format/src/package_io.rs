//! Reads and writes codelet packages. The layout is in `docs/formats.md`.
//!
//! A reader trusts nothing: the checksum of the whole is verified before anything is decompressed, the
//! manifest before any member, and every size against the manifest before bytes are taken for it.

use crate::FormatError;
use crate::abi::UNIT_ID_LENGTH;
use crate::capture::{PAGE_ENTRY_STORED, PAGE_EXIT_STORED, PAGE_FLAGS, PAGE_WRITTEN, PageRecord};
use crate::package::{
    MEMBER_CODE, MEMBER_ENTRY, MEMBER_EXIT, MEMBER_MANIFEST, MEMBER_TABLE, MEMBER_TLS_ENTRY,
    MEMBER_TLS_EXIT, Manifest, Member, PACKAGE_VERSION,
};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Magic number of the zstd skippable frame that a package starts with.
pub const SKIPPABLE_MAGIC: u32 = 0x184D_2A50;
/// First bytes of the preamble.
pub const PREAMBLE_MAGIC: [u8; 12] = *b"CERE-CODELET";
/// Bytes of the preamble, the frame's own header left out.
pub const PREAMBLE_LENGTH: u32 = 12 + 4 + 8 + 32;
/// Bytes of the skippable frame: its header and the preamble.
pub const HEADER_LENGTH: u64 = 8 + PREAMBLE_LENGTH as u64;
/// Oldest package version that this build reads.
pub const OLDEST_VERSION: u32 = 1;
/// Most bytes of a manifest that are read.
pub const MANIFEST_LIMIT: u64 = 1 << 30;
/// Bytes of a page record on disk.
pub const RECORD_LENGTH: u64 = 16;

const BLOCK: u64 = 512;
const LEVEL: i32 = 3;

/// Where a new member's bytes come from.
#[derive(Debug, Clone)]
pub enum MemberData {
    /// Memory.
    Bytes(Vec<u8>),
    /// A file, read while the package is written.
    File(PathBuf),
}

/// A member to write.
#[derive(Debug, Clone)]
pub struct NewMember {
    /// Its name, one of the `MEMBER_` names or a unit's.
    pub name: String,
    /// Its bytes.
    pub data: MemberData,
}

impl NewMember {
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
    fn open(&self) -> Result<(Box<dyn Read + '_>, u64, PathBuf), FormatError> {
        match &self.data {
            MemberData::Bytes(bytes) => Ok((
                Box::new(bytes.as_slice()),
                bytes.len() as u64,
                PathBuf::from(&self.name),
            )),
            MemberData::File(path) => {
                let fail = |source| FormatError::Io {
                    action: "read",
                    path: path.clone(),
                    source,
                };
                let file = File::open(path).map_err(fail)?;
                let size = file.metadata().map_err(fail)?.len();
                Ok((Box::new(BufReader::new(file)), size, path.clone()))
            }
        }
    }
}

/// A package in memory.
#[derive(Debug, Clone)]
pub struct Package {
    /// The manifest.
    pub manifest: Manifest,
    /// The page table.
    pub pages: Vec<PageRecord>,
    /// All members but the manifest, by name.
    pub members: BTreeMap<String, Vec<u8>>,
}

impl Package {
    /// The bytes of a member; empty if the package has none of that name.
    pub fn member(&self, name: &str) -> &[u8] {
        self.members.get(name).map_or(&[], Vec::as_slice)
    }
}

/// The page table as bytes on disk.
pub fn encode_table(pages: &[PageRecord]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(pages.len() * RECORD_LENGTH as usize);
    for page in pages {
        bytes.extend_from_slice(&page.address.to_le_bytes());
        bytes.extend_from_slice(&page.flags.to_le_bytes());
        bytes.extend_from_slice(&page.reserved.to_le_bytes());
    }
    bytes
}

/// Reads and validates a page table: rising, aligned, known flags. `what` names it in errors.
pub fn decode_table(
    what: &str,
    bytes: &[u8],
    page_size: u64,
) -> Result<Vec<PageRecord>, FormatError> {
    check_page_size(what, page_size)?;
    let (records, rest) = bytes.as_chunks::<16>();
    if !rest.is_empty() {
        return Err(FormatError::TooShort {
            what: "page table",
            offset: (bytes.len() - rest.len()) as u64,
            needed: RECORD_LENGTH,
            available: rest.len() as u64,
        });
    }
    let mut pages: Vec<PageRecord> = Vec::with_capacity(records.len());
    for (number, record) in records.iter().enumerate() {
        let half = |at: usize| {
            u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])
        };
        let page = PageRecord {
            address: u64::from(half(0)) | u64::from(half(4)) << 32,
            flags: half(8),
            reserved: half(12),
        };
        let bad = |field, value: u64, why| {
            Err(FormatError::Invalid {
                what: format!("{what}, record {number} at offset {}", number * 16),
                field,
                value: format!("{value:#x}"),
                why,
            })
        };
        if page.address % page_size != 0 {
            return bad(
                "address",
                page.address,
                "pages are aligned to the page size",
            );
        }
        if page.address.checked_add(page_size).is_none() {
            return bad(
                "address",
                page.address,
                "the page ends beyond the address space",
            );
        }
        if pages
            .last()
            .is_some_and(|last| last.address >= page.address)
        {
            return bad("address", page.address, "addresses rise");
        }
        if page.flags & !PAGE_FLAGS != 0 {
            return bad(
                "flags",
                page.flags.into(),
                "this version knows no such flag",
            );
        }
        if page.flags & PAGE_EXIT_STORED != 0 && page.flags & PAGE_WRITTEN == 0 {
            return bad(
                "flags",
                page.flags.into(),
                "only written pages have a state at exit",
            );
        }
        if page.reserved != 0 {
            return bad(
                "reserved",
                page.reserved.into(),
                "it is zero in this version",
            );
        }
        pages.push(page);
    }
    Ok(pages)
}

fn check_page_size(what: &str, page_size: u64) -> Result<(), FormatError> {
    if !page_size.is_power_of_two() || !(4096..=1 << 21).contains(&page_size) {
        return Err(FormatError::Invalid {
            what: what.into(),
            field: "page_size",
            value: page_size.to_string(),
            why: "it is a power of two from 4096 to 2 MiB",
        });
    }
    Ok(())
}

fn stored(pages: &[PageRecord], flag: u32) -> u64 {
    pages.iter().filter(|page| page.flags & flag != 0).count() as u64
}

fn invalid(
    what: &str,
    field: &'static str,
    value: impl ToString,
    why: &'static str,
) -> FormatError {
    FormatError::Invalid {
        what: what.into(),
        field,
        value: value.to_string(),
        why,
    }
}

/// Checks all that a manifest says about itself and its members.
pub fn check_manifest(manifest: &Manifest) -> Result<(), FormatError> {
    let what = MEMBER_MANIFEST;
    check_version("codelet manifest", manifest.version)?;
    check_page_size(what, manifest.page_size)?;
    if manifest.invocation == 0 {
        return Err(invalid(what, "invocation", 0, "invocations count from 1"));
    }
    let table = manifest.pages.checked_mul(RECORD_LENGTH);
    let mut known: BTreeMap<String, Option<u64>> = BTreeMap::from([
        (MEMBER_TABLE.into(), table),
        (MEMBER_ENTRY.into(), None),
        (MEMBER_EXIT.into(), None),
        (MEMBER_CODE.into(), None),
    ]);
    if table.is_none() {
        return Err(invalid(
            what,
            "pages",
            manifest.pages,
            "its table's size overflows",
        ));
    }
    if let Some(tls) = &manifest.image.tls {
        if !tls.align.is_power_of_two() {
            return Err(invalid(
                what,
                "tls.align",
                tls.align,
                "it is a power of two",
            ));
        }
        for variable in &tls.variables {
            if variable
                .offset
                .checked_add(variable.size)
                .is_none_or(|end| end > tls.size)
            {
                return Err(invalid(
                    what,
                    "tls.variables",
                    &variable.name,
                    "it lies outside the block",
                ));
            }
        }
        known.insert(MEMBER_TLS_ENTRY.into(), Some(tls.size));
        known.insert(MEMBER_TLS_EXIT.into(), Some(tls.size));
    }
    for unit in &manifest.units {
        let hexadecimal = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if unit.id.len() != UNIT_ID_LENGTH || !unit.id.bytes().all(hexadecimal) {
            return Err(invalid(
                what,
                "units.id",
                format!("{:?}", unit.id),
                "it is 32 hexadecimal digits",
            ));
        }
        if known.insert(unit.member(), None).is_some() {
            return Err(invalid(what, "units.id", &unit.id, "units are listed once"));
        }
    }
    if manifest
        .units
        .first()
        .is_none_or(|unit| unit.id != manifest.key.unit)
    {
        return Err(invalid(
            what,
            "units",
            &manifest.key.unit,
            "the region's own unit comes first",
        ));
    }
    for (start, end) in manifest
        .fresh
        .iter()
        .copied()
        .chain([manifest.heap, manifest.image.range])
        .chain(manifest.mappings.iter().map(|m| (m.start, m.end)))
        .chain(manifest.masks.iter().map(|m| (m.start, m.end)))
    {
        if start > end {
            return Err(invalid(
                what,
                "range",
                format!("{start:#x}..{end:#x}"),
                "it ends before it starts",
            ));
        }
    }
    if manifest
        .members
        .first()
        .is_none_or(|member| member.name != MEMBER_TABLE)
    {
        let found = manifest
            .members
            .first()
            .map_or("nothing", |member| &member.name);
        return Err(invalid(what, "members", found, "pages.table comes first"));
    }
    let mut seen = BTreeSet::new();
    let mut total = 0u64;
    for member in &manifest.members {
        let Some(size) = known.get(&member.name) else {
            let name = format!("{:?}", member.name);
            return Err(invalid(
                what,
                "members.name",
                name,
                "the manifest calls for no such member",
            ));
        };
        if !seen.insert(&member.name) {
            return Err(invalid(
                what,
                "members.name",
                &member.name,
                "members are listed once",
            ));
        }
        if size.is_some_and(|size| size != member.size) {
            let value = format!("{} for {}", member.size, member.name);
            return Err(invalid(
                what,
                "members.size",
                value,
                "the manifest's counts ask for another size",
            ));
        }
        total = total
            .checked_add(member.size)
            .ok_or_else(|| invalid(what, "members.size", member.size, "the sum overflows"))?;
    }
    if let Some(missing) = known.keys().find(|name| !seen.contains(name)) {
        return Err(invalid(what, "members", missing, "this member is missing"));
    }
    Ok(())
}

fn check_version(what: &'static str, found: u32) -> Result<(), FormatError> {
    if found > PACKAGE_VERSION {
        return Err(FormatError::TooNew {
            what,
            found,
            supported: PACKAGE_VERSION,
        });
    }
    if found < OLDEST_VERSION {
        return Err(FormatError::TooOld {
            what,
            found,
            oldest: OLDEST_VERSION,
        });
    }
    Ok(())
}

fn check_stored(manifest: &Manifest, pages: &[PageRecord]) -> Result<(), FormatError> {
    for (name, flag) in [
        (MEMBER_ENTRY, PAGE_ENTRY_STORED),
        (MEMBER_EXIT, PAGE_EXIT_STORED),
    ] {
        let expected = stored(pages, flag).checked_mul(manifest.page_size);
        let found = manifest
            .members
            .iter()
            .find(|m| m.name == name)
            .map_or(0, |m| m.size);
        if expected != Some(found) {
            let value = format!("{found} for {name}");
            return Err(invalid(
                MEMBER_MANIFEST,
                "members.size",
                value,
                "the page table stores another number of pages",
            ));
        }
    }
    Ok(())
}

fn hexadecimal(hash: [u8; 32]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads `reader` to its end, at most `limit` bytes, into `sink`; gives the count and the SHA-256.
fn copy_hashed(
    reader: &mut dyn Read,
    sink: &mut dyn Write,
    limit: u64,
) -> io::Result<(u64, [u8; 32])> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    let mut total = 0;
    while total < limit {
        let room = usize::try_from(limit - total)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let count = match reader.read(&mut buffer[..room]) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hash.update(&buffer[..count]);
        sink.write_all(&buffer[..count])?;
        total += count as u64;
    }
    Ok((total, hash.finalize().into()))
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

/// Writes a package to `path`: under a temporary name beside it, renamed when complete and on disk. Fills
/// `manifest.members` from `members`, whose first must be the page table.
pub fn write_package(
    path: &Path,
    manifest: &mut Manifest,
    members: &[NewMember],
) -> Result<(), FormatError> {
    manifest.members.clear();
    let mut pages = Vec::new();
    for member in members {
        let (mut reader, size, from) = member.open()?;
        let fail = |source| FormatError::Io {
            action: "read",
            path: from.clone(),
            source,
        };
        let (found, hash) = if member.name == MEMBER_TABLE {
            let mut table = Vec::new();
            let result = copy_hashed(&mut reader, &mut table, u64::MAX).map_err(fail)?;
            pages = decode_table(MEMBER_TABLE, &table, manifest.page_size)?;
            result
        } else {
            copy_hashed(&mut reader, &mut io::sink(), u64::MAX).map_err(fail)?
        };
        if found != size {
            return Err(invalid(
                &member.name,
                "size",
                found,
                "the file changed while it was read",
            ));
        }
        manifest.members.push(Member {
            name: member.name.clone(),
            size,
            sha256: hexadecimal(hash),
        });
    }
    manifest.pages = pages.len() as u64;
    check_manifest(manifest)?;
    check_stored(manifest, &pages)?;
    drop(pages);

    let fail = |action, path: &Path| {
        let path = path.to_path_buf();
        move |source| FormatError::Io {
            action,
            path,
            source,
        }
    };
    let name = path
        .file_name()
        .ok_or_else(|| invalid("package", "path", path.display(), "it names a file"))?;
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    static COUNTER: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let number = COUNTER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let mut temporary_name = std::ffi::OsString::from(".");
    temporary_name.push(name);
    temporary_name.push(format!(".{}.{number}.tmp", std::process::id()));
    let temporary = directory.join(temporary_name);
    let mut file = File::create_new(&temporary).map_err(fail("create", &temporary))?;
    let mut guard = Temporary(Some(temporary.clone()));
    let mut write = || -> io::Result<()> {
        file.write_all(&[0; HEADER_LENGTH as usize])?;
        let below = Hashing {
            below: BufWriter::new(&mut file),
            hash: Sha256::new(),
            length: 0,
        };
        let mut encoder = zstd::Encoder::new(below, LEVEL)?;
        encoder.include_checksum(true)?;
        let mut archive = tar::Builder::new(encoder);
        let json = serde_json::to_vec_pretty(manifest)?;
        append(
            &mut archive,
            MEMBER_MANIFEST,
            json.len() as u64,
            &mut json.as_slice(),
        )?;
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
    };
    write().map_err(fail("write", &temporary))?;
    std::fs::rename(&temporary, path).map_err(fail("rename", &temporary))?;
    guard.0 = None;
    // The name is durable once the directory is; a file system that cannot sync one still has the file.
    if let Ok(directory) = File::open(directory) {
        let _ = directory.sync_all();
    }
    Ok(())
}

fn append<W: Write>(
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

fn header(version: u32, length: u64, hash: [u8; 32]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_LENGTH as usize);
    bytes.extend_from_slice(&SKIPPABLE_MAGIC.to_le_bytes());
    bytes.extend_from_slice(&PREAMBLE_LENGTH.to_le_bytes());
    bytes.extend_from_slice(&PREAMBLE_MAGIC);
    bytes.extend_from_slice(&version.to_le_bytes());
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&hash);
    bytes
}

/// Takes the members of a package as they are read, each after its name and size were checked.
trait Receiver {
    fn receive(
        &mut self,
        member: &str,
        contents: &mut dyn Read,
        size: u64,
    ) -> Result<(u64, [u8; 32]), FormatError>;
}

/// Reads the manifest only. The checksum of the whole is verified all the same.
pub fn read_manifest(path: &Path) -> Result<Manifest, FormatError> {
    let mut file = open(path)?;
    let mut archive = Archive::open(&mut file, path)?;
    archive.manifest()
}

/// Reads a package into memory; refuses one whose members take more than `limit` bytes.
pub fn read_package(path: &Path, limit: u64) -> Result<Package, FormatError> {
    read_package_from(&mut open(path)?, path, limit)
}

/// [`read_package`] from any source; `path` is for messages.
pub fn read_package_from(
    source: &mut (impl Read + Seek),
    path: &Path,
    limit: u64,
) -> Result<Package, FormatError> {
    struct Memory(BTreeMap<String, Vec<u8>>, PathBuf);
    impl Receiver for Memory {
        fn receive(
            &mut self,
            member: &str,
            contents: &mut dyn Read,
            size: u64,
        ) -> Result<(u64, [u8; 32]), FormatError> {
            let mut bytes = Vec::new();
            let result =
                copy_hashed(contents, &mut bytes, size).map_err(|source| FormatError::Io {
                    action: "decompress",
                    path: self.1.clone(),
                    source,
                })?;
            self.0.insert(member.into(), bytes);
            Ok(result)
        }
    }
    let mut memory = Memory(BTreeMap::new(), path.into());
    let (manifest, pages) = Archive::open(source, path)?.read(limit, &mut memory)?;
    Ok(Package {
        manifest,
        pages,
        members: memory.0,
    })
}

/// Unpacks a package into `directory`, which must exist, `manifest.json` last; refuses one whose members take
/// more than `limit` bytes. After an error the directory holds no manifest.
pub fn unpack_package(path: &Path, directory: &Path, limit: u64) -> Result<Manifest, FormatError> {
    struct Files<'a>(&'a Path);
    impl Receiver for Files<'_> {
        fn receive(
            &mut self,
            member: &str,
            contents: &mut dyn Read,
            size: u64,
        ) -> Result<(u64, [u8; 32]), FormatError> {
            let target = self.0.join(member);
            let fail = |source| FormatError::Io {
                action: "unpack to",
                path: target.clone(),
                source,
            };
            if let Some(parent) = target.parent() {
                std::fs::create_dir_all(parent).map_err(fail)?;
            }
            let mut file = File::create(&target).map_err(fail)?;
            copy_hashed(contents, &mut file, size).map_err(fail)
        }
    }
    let mut file = open(path)?;
    let (manifest, _) = Archive::open(&mut file, path)?.read(limit, &mut Files(directory))?;
    let target = directory.join(MEMBER_MANIFEST);
    let json = serde_json::to_vec_pretty(&manifest).map_err(|source| FormatError::Json {
        what: MEMBER_MANIFEST.into(),
        source,
    })?;
    std::fs::write(&target, json).map_err(|source| FormatError::Io {
        action: "write",
        path: target,
        source,
    })?;
    Ok(manifest)
}

fn open(path: &Path) -> Result<File, FormatError> {
    File::open(path).map_err(|source| FormatError::Io {
        action: "open",
        path: path.into(),
        source,
    })
}

/// A package whose preamble and overall checksum are good.
struct Archive<'a> {
    frame: zstd::Decoder<'static, BufReader<io::Take<&'a mut dyn Read>>>,
    path: PathBuf,
    /// Bytes of the tar archive read.
    offset: u64,
}

impl<'a> Archive<'a> {
    fn open<S: Read + Seek>(source: &'a mut S, path: &Path) -> Result<Self, FormatError> {
        let fail = |source| FormatError::Io {
            action: "read",
            path: path.into(),
            source,
        };
        let total = source.seek(SeekFrom::End(0)).map_err(fail)?;
        source.seek(SeekFrom::Start(0)).map_err(fail)?;
        let mut bytes = Vec::new();
        (&mut *source)
            .take(HEADER_LENGTH)
            .read_to_end(&mut bytes)
            .map_err(fail)?;
        // The magic number comes first: a file of another kind is not "cut short".
        let magic = [
            &SKIPPABLE_MAGIC.to_le_bytes()[..],
            &PREAMBLE_LENGTH.to_le_bytes(),
            &PREAMBLE_MAGIC,
        ]
        .concat();
        let common = bytes.len().min(magic.len());
        if bytes[..common] != magic[..common] {
            return Err(FormatError::WrongMagic {
                what: "a codelet package",
                found: bytes[..common].to_vec(),
                expected: magic,
            });
        }
        let Ok(bytes) = <[u8; HEADER_LENGTH as usize]>::try_from(bytes.as_slice()) else {
            return Err(FormatError::TooShort {
                what: "package preamble",
                offset: 0,
                needed: HEADER_LENGTH,
                available: bytes.len() as u64,
            });
        };
        let mut cursor = &bytes[magic.len()..];
        let mut word = [0; 4];
        let mut length = [0; 8];
        let mut expected = [0; 32];
        cursor.read_exact(&mut word).map_err(fail)?;
        cursor.read_exact(&mut length).map_err(fail)?;
        cursor.read_exact(&mut expected).map_err(fail)?;
        check_version("codelet package", u32::from_le_bytes(word))?;
        let length = u64::from_le_bytes(length);
        let available = total.saturating_sub(HEADER_LENGTH);
        if length > available {
            return Err(FormatError::TooShort {
                what: "package",
                offset: HEADER_LENGTH,
                needed: length,
                available,
            });
        }
        if length < available {
            return Err(invalid(
                "package",
                "length",
                length,
                "bytes follow the end of the package",
            ));
        }
        let (_, found) = copy_hashed(&mut *source, &mut io::sink(), length).map_err(fail)?;
        if found != expected {
            return Err(FormatError::Checksum {
                what: path.display().to_string(),
                found: hexadecimal(found),
                expected: hexadecimal(expected),
            });
        }
        source.seek(SeekFrom::Start(HEADER_LENGTH)).map_err(fail)?;
        let source: &'a mut dyn Read = source;
        let frame = zstd::Decoder::with_buffer(BufReader::new(source.take(length)))
            .map_err(fail)?
            .single_frame();
        Ok(Self {
            frame,
            path: path.into(),
            offset: 0,
        })
    }

    fn fail(&self) -> impl FnOnce(io::Error) -> FormatError + use<> {
        let path = self.path.clone();
        move |source| FormatError::Io {
            action: "decompress",
            path,
            source,
        }
    }

    fn block(&mut self, what: &'static str) -> Result<[u8; BLOCK as usize], FormatError> {
        let mut block = [0; BLOCK as usize];
        let mut filled = 0;
        while filled < block.len() {
            let count = self.frame.read(&mut block[filled..]).map_err(self.fail())?;
            if count == 0 {
                return Err(FormatError::TooShort {
                    what,
                    offset: self.offset,
                    needed: BLOCK,
                    available: filled as u64,
                });
            }
            filled += count;
        }
        self.offset += BLOCK;
        Ok(block)
    }

    /// The name and size of the next member.
    fn next(&mut self) -> Result<(String, u64), FormatError> {
        let at = self.offset;
        let block = self.block("header of a member")?;
        let what = format!("member header at offset {at}");
        let header = tar::Header::from_byte_slice(&block);
        let sum: u32 = block
            .iter()
            .enumerate()
            .map(|(i, b)| u32::from(if (148..156).contains(&i) { b' ' } else { *b }))
            .sum();
        if header.cksum().ok() != Some(sum) {
            return Err(invalid(&what, "checksum", sum, "the header states another"));
        }
        if header.as_ustar().is_none() || !header.entry_type().is_file() {
            let kind = format!("{:?}", header.entry_type());
            return Err(invalid(
                &what,
                "type",
                kind,
                "all members are plain files in the ustar format",
            ));
        }
        let name = String::from_utf8_lossy(&header.path_bytes()).into_owned();
        let size = header
            .entry_size()
            .map_err(|_| invalid(&what, "size", "no number", "it is an octal number"))?;
        Ok((name, size))
    }

    fn skip_padding(&mut self, size: u64) -> Result<(), FormatError> {
        self.offset = self.offset.saturating_add(size);
        let padding = (BLOCK - size % BLOCK) % BLOCK;
        let mut bytes = Vec::new();
        (&mut self.frame)
            .take(padding)
            .read_to_end(&mut bytes)
            .map_err(self.fail())?;
        if bytes.len() as u64 != padding {
            return Err(FormatError::TooShort {
                what: "padding of a member",
                offset: self.offset,
                needed: padding,
                available: bytes.len() as u64,
            });
        }
        self.offset += padding;
        if bytes.iter().any(|byte| *byte != 0) {
            return Err(invalid(
                "package",
                "padding",
                format!("{bytes:02x?}"),
                "padding is zero",
            ));
        }
        Ok(())
    }

    fn manifest(&mut self) -> Result<Manifest, FormatError> {
        let (name, size) = self.next()?;
        if name != MEMBER_MANIFEST {
            return Err(invalid(
                "package",
                "first member",
                format!("{name:?}"),
                "it is manifest.json",
            ));
        }
        if size > MANIFEST_LIMIT {
            return Err(invalid(
                MEMBER_MANIFEST,
                "size",
                size,
                "manifests are at most 1 GiB",
            ));
        }
        let mut json = Vec::new();
        (&mut self.frame)
            .take(size)
            .read_to_end(&mut json)
            .map_err(self.fail())?;
        if json.len() as u64 != size {
            return Err(FormatError::TooShort {
                what: MEMBER_MANIFEST,
                offset: self.offset,
                needed: size,
                available: json.len() as u64,
            });
        }
        self.skip_padding(size)?;
        /// The one field that every version has.
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        let fail = |source| FormatError::Json {
            what: MEMBER_MANIFEST.into(),
            source,
        };
        let version: Version = serde_json::from_slice(&json).map_err(fail)?;
        check_version("codelet manifest", version.version)?;
        let manifest = serde_json::from_slice(&json).map_err(fail)?;
        check_manifest(&manifest)?;
        Ok(manifest)
    }

    fn read(
        mut self,
        limit: u64,
        receiver: &mut dyn Receiver,
    ) -> Result<(Manifest, Vec<PageRecord>), FormatError> {
        let manifest = self.manifest()?;
        // The sum does not overflow: the manifest's check added it up.
        let total: u64 = manifest.members.iter().map(|member| member.size).sum();
        if total > limit {
            return Err(invalid(
                MEMBER_MANIFEST,
                "members.size",
                total,
                "the members take more room than is allowed",
            ));
        }
        let mut pages = Vec::new();
        for (number, member) in manifest.members.iter().enumerate() {
            let at = self.offset;
            let (name, size) = self.next()?;
            if name != member.name || size != member.size {
                return Err(invalid(
                    &format!("package, member {} at offset {at}", number + 1),
                    "name and size",
                    format!("{name:?}, {size}"),
                    "the manifest lists another here",
                ));
            }
            let (found, hash) = if name == MEMBER_TABLE {
                let mut table = Vec::new();
                let result = copy_hashed(&mut self.frame, &mut table, size).map_err(self.fail())?;
                let mut again = table.as_slice();
                receiver.receive(&name, &mut again, size)?;
                if result.0 == size {
                    pages = decode_table(MEMBER_TABLE, &table, manifest.page_size)?;
                    check_stored(&manifest, &pages)?;
                }
                result
            } else {
                receiver.receive(&name, &mut self.frame, size)?
            };
            if found != size {
                return Err(FormatError::TooShort {
                    what: "member",
                    offset: self.offset,
                    needed: size,
                    available: found,
                });
            }
            let hash = hexadecimal(hash);
            if hash != member.sha256 {
                return Err(FormatError::Checksum {
                    what: name,
                    found: hash,
                    expected: member.sha256.clone(),
                });
            }
            self.skip_padding(size)?;
        }
        for _ in 0..2 {
            let at = self.offset;
            if self
                .block("end of the archive")?
                .iter()
                .any(|byte| *byte != 0)
            {
                return Err(invalid(
                    "package",
                    "end",
                    at,
                    "members follow that the manifest does not list",
                ));
            }
        }
        let mut after = [0; 1];
        if self.frame.read(&mut after).map_err(self.fail())? != 0 {
            return Err(invalid(
                "package",
                "end",
                self.offset,
                "bytes follow the archive",
            ));
        }
        let fail = self.fail();
        if self.frame.finish().read(&mut after).map_err(fail)? != 0 {
            return Err(invalid(
                "package",
                "end",
                "a second frame",
                "a package has one zstd frame",
            ));
        }
        Ok((manifest, pages))
    }
}

#[cfg(test)]
mod tests;

//! The file as a checked sequence of members.

use super::check::check_stored;
use super::layout::{
    HEADER_LENGTH, PREAMBLE_LENGTH, PREAMBLE_MAGIC, SKIPPABLE_MAGIC, check_version, copy_hashed,
    invalid, manifest_limit,
};
use super::{check_manifest, decode_table, decode_trace};
use cere_format::capture::PageRecord;
use cere_format::package::{
    MEMBER_ANSWERS, MEMBER_MANIFEST, MEMBER_MPI, MEMBER_TABLE, MEMBER_TRACE, Manifest,
};
use cere_format::{FormatError, hexadecimal, untrusted};
use cere_format::{answers, mpi};
use serde::Deserialize;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Bytes of a block of a tar archive.
const BLOCK: u64 = 512;

/// Takes the members of a package as they are read, each after its name and size were checked.
pub(super) trait Receiver {
    fn receive(
        &mut self,
        member: &str,
        contents: &mut dyn Read,
        size: u64,
    ) -> Result<(u64, [u8; 32]), FormatError>;
}

/// What stands before the archive, behind the version.
struct Preamble {
    /// Bytes of the archive.
    length: u64,
    /// Their hash.
    sha256: [u8; 32],
}

impl Preamble {
    /// Of the file's first bytes, [`HEADER_LENGTH`] unless it is shorter.
    fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
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
        let rest = bytes.get(magic.len()..).unwrap_or_default();
        let fields = || {
            let (version, rest) = rest.split_first_chunk()?;
            let (length, rest) = rest.split_first_chunk()?;
            Some((
                u32::from_le_bytes(*version),
                u64::from_le_bytes(*length),
                *rest.first_chunk()?,
            ))
        };
        let Some((version, length, sha256)) = fields() else {
            return Err(FormatError::TooShort {
                what: "package preamble",
                offset: 0,
                needed: HEADER_LENGTH,
                available: bytes.len() as u64,
            });
        };
        check_version("codelet package", version)?;
        Ok(Self { length, sha256 })
    }

    /// Checks that just `available` bytes follow.
    fn check_length(&self, available: u64) -> Result<(), FormatError> {
        let length = self.length;
        if length > available {
            return Err(FormatError::TooShort {
                what: "package",
                offset: HEADER_LENGTH,
                needed: length,
                available,
            });
        }
        if length < available {
            let why = "bytes follow the end of the package";
            return Err(invalid("package", "length", length, why));
        }
        Ok(())
    }
}

/// A package whose preamble and overall checksum are good.
pub(super) struct Archive<'a> {
    frame: zstd::Decoder<'static, BufReader<io::Take<&'a mut dyn Read>>>,
    path: PathBuf,
    /// Bytes of the tar archive read.
    offset: u64,
    /// Bytes of the file that follow the preamble.
    length: u64,
}

impl<'a> Archive<'a> {
    pub(super) fn open<S: Read + Seek>(
        source: &'a mut S,
        path: &Path,
    ) -> Result<Self, FormatError> {
        let fail = |source| FormatError::io("read", path)(source);
        let total = source.seek(SeekFrom::End(0)).map_err(fail)?;
        source.seek(SeekFrom::Start(0)).map_err(fail)?;
        let mut bytes = Vec::new();
        (&mut *source)
            .take(HEADER_LENGTH)
            .read_to_end(&mut bytes)
            .map_err(fail)?;
        let preamble = Preamble::parse(&bytes)?;
        preamble.check_length(total.saturating_sub(HEADER_LENGTH))?;
        let length = preamble.length;
        let (_, found) = copy_hashed(&mut *source, &mut io::sink(), length).map_err(fail)?;
        if found != preamble.sha256 {
            return Err(FormatError::Checksum {
                what: path.display().to_string(),
                found: hexadecimal(&found),
                expected: hexadecimal(&preamble.sha256),
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
            length,
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

    pub(super) fn manifest(&mut self) -> Result<Manifest, FormatError> {
        let (name, size) = self.next()?;
        if name != MEMBER_MANIFEST {
            return Err(invalid(
                "package",
                "first member",
                format!("{name:?}"),
                "it is manifest.json",
            ));
        }
        if size > manifest_limit(self.length) {
            return Err(invalid(
                MEMBER_MANIFEST,
                "size",
                size,
                "manifests are at most 256 MiB, and 4 MiB or 256 times the package's own size",
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
        untrusted::measure(MEMBER_MANIFEST, &json)?;
        let version: Version = serde_json::from_slice(&json).map_err(fail)?;
        check_version("codelet manifest", version.version)?;
        let manifest = serde_json::from_slice(&json).map_err(fail)?;
        check_manifest(&manifest)?;
        Ok(manifest)
    }

    pub(super) fn read(
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
            let checked =
                [MEMBER_TABLE, MEMBER_TRACE, MEMBER_ANSWERS, MEMBER_MPI].contains(&name.as_str());
            let (found, hash) = match checked {
                true => {
                    let mut bytes = Vec::new();
                    let result =
                        copy_hashed(&mut self.frame, &mut bytes, size).map_err(self.fail())?;
                    receiver.receive(&name, &mut bytes.as_slice(), size)?;
                    if result.0 == size {
                        check_member(&name, &bytes, &manifest, &mut pages)?;
                    }
                    result
                }
                false => receiver.receive(&name, &mut self.frame, size)?,
            };
            if found != size {
                return Err(FormatError::TooShort {
                    what: "member",
                    offset: self.offset,
                    needed: size,
                    available: found,
                });
            }
            let hash = hexadecimal(&hash);
            if hash != member.sha256 {
                return Err(FormatError::Checksum {
                    what: name,
                    found: hash,
                    expected: member.sha256.clone(),
                });
            }
            self.skip_padding(size)?;
        }
        self.end()?;
        Ok((manifest, pages))
    }

    /// Checks that nothing follows the last member.
    fn end(mut self) -> Result<(), FormatError> {
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
        Ok(())
    }
}

/// Checks a table, trace, list of answers or of calls of MPI, and gives the `pages` of a table.
fn check_member(
    name: &str,
    bytes: &[u8],
    manifest: &Manifest,
    pages: &mut Vec<PageRecord>,
) -> Result<(), FormatError> {
    match name {
        MEMBER_TRACE => {
            let team = manifest.openmp.is_some();
            decode_trace(MEMBER_TRACE, bytes, manifest.page_size, team)?;
        }
        MEMBER_ANSWERS => answers::decode(MEMBER_ANSWERS, bytes).map(drop)?,
        MEMBER_MPI => {
            let functions = manifest.mpi.as_ref().map_or(0, |mpi| mpi.functions.len());
            mpi::decode(MEMBER_MPI, bytes, functions).map(drop)?;
        }
        _ => {
            *pages = decode_table(MEMBER_TABLE, bytes, manifest.page_size)?;
            check_stored(manifest, pages)?;
        }
    }
    Ok(())
}

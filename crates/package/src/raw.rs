//! A raw capture on disk, and the pages of it that a package keeps.

use crate::PackError;
use crate::io::{TLS_LIMIT, decode_table, decode_trace};
use cere_format::FormatError;
use cere_format::capture::*;
use cere_format::error::check_version;
use cere_format::{answers, mpi};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The pages of one end of the invocation.
pub struct PageFile {
    path: PathBuf,
    file: File,
    page_size: u64,
    /// For each record of the table, the number of its page in the file, from 1; 0 if it has none.
    places: Vec<u32>,
    /// The last of them.
    last: u64,
}

impl PageFile {
    /// `places` are as on disk: pairs, of which the one at `end` is taken.
    fn open(
        path: PathBuf,
        table: &[PageRecord],
        (places, end): (&[u8], usize),
        page_size: u64,
    ) -> Result<Self, PackError> {
        let flag = [PAGE_ENTRY_STORED, PAGE_EXIT_STORED][end];
        let (pairs, _) = places.as_chunks::<8>();
        let places: Vec<u32> = pairs
            .iter()
            .map(|pair| u32::from_le_bytes(pair.as_chunks().0[end]))
            .collect();
        same(
            "raw capture's list of places",
            places.len() as u64,
            table.len() as u64,
        )?;
        for (record, place) in table.iter().zip(&places) {
            if (record.flags & flag != 0) != (*place != 0) {
                return Err(PackError::Format(FormatError::Invalid {
                    what: path.with_extension("places").display().to_string(),
                    field: "place",
                    value: format!("{place} for the page at {:#x}", record.address),
                    why: "a page has a place if it is stored, and none if not",
                }));
            }
        }
        let file = File::open(&path).map_err(FormatError::io("open", &path))?;
        let last = u64::from(places.iter().copied().max().unwrap_or(0));
        let needed = last * page_size;
        let size = file
            .metadata()
            .map_err(FormatError::io("read", &path))?
            .len();
        if size < needed {
            return Err(PackError::Format(FormatError::TooShort {
                what: "raw capture's page file",
                offset: 0,
                needed,
                available: size,
            }));
        }
        Ok(Self {
            path,
            file,
            page_size,
            places,
            last,
        })
    }

    /// Content of the page of record `index`; false, and nothing read, if it is not stored.
    pub fn page(&self, index: usize, buffer: &mut [u8]) -> Result<bool, PackError> {
        let place = self.place(index);
        if place == 0 {
            return Ok(false);
        }
        self.file
            .read_exact_at(buffer, (place - 1) * self.page_size)
            .map_err(FormatError::io("read", &self.path))?;
        Ok(true)
    }

    fn place(&self, index: usize) -> u64 {
        u64::from(self.places.get(index).copied().unwrap_or(0))
    }

    /// A reader of many of these pages.
    pub fn reader(&self) -> Reader<'_> {
        Reader {
            file: self,
            first: 0,
            count: 0,
            bytes: Vec::new(),
        }
    }
}

/// Reads pages one after the other, and ahead where they lie so.
pub struct Reader<'a> {
    file: &'a PageFile,
    /// Place of the first page at hand, and how many there are.
    first: u64,
    count: u64,
    bytes: Vec<u8>,
}

impl Reader<'_> {
    /// Content of the page of record `index`; none if it is not stored.
    pub fn page(&mut self, index: usize) -> Result<Option<&mut [u8]>, PackError> {
        let place = self.file.place(index);
        if place == 0 {
            return Ok(None);
        }
        if place < self.first || self.first + self.count <= place {
            self.read(place)?;
        }
        let page_size = self.file.page_size as usize;
        let at = (place - self.first) as usize * page_size;
        Ok(Some(&mut self.bytes[at..at + page_size]))
    }

    fn read(&mut self, place: u64) -> Result<(), PackError> {
        /// Most bytes that are read at a time.
        const MOST: u64 = 1 << 18;
        let (page_size, last) = (self.file.page_size, self.file.last);
        let ahead = match place == self.first + self.count {
            true => (2 * self.count).clamp(1, (MOST / page_size).max(1)),
            false => 1,
        };
        let count = ahead.min(last + 1 - place);
        self.bytes.resize((count * page_size) as usize, 0);
        (self.first, self.count) = (place, 0);
        let file = &self.file.file;
        file.read_exact_at(&mut self.bytes, (place - 1) * page_size)
            .map_err(FormatError::io("read", &self.file.path))?;
        self.count = count;
        Ok(())
    }
}

/// A raw capture.
pub struct Raw {
    /// Its metadata.
    pub capture: RawCapture,
    /// Its page table.
    pub table: Vec<PageRecord>,
    /// Pages at entry.
    pub entry: PageFile,
    /// Pages at exit.
    pub exit: PageFile,
    /// The page trace before entry, as on disk; empty if there is none.
    pub trace: Vec<u8>,
    /// Thread-local blocks of the OpenMP runtime's threads; empty if there are none.
    pub blocks: Vec<u8>,
    /// What the kernel answered, as on disk; empty if nothing.
    pub answers: Vec<u8>,
    /// Calls of MPI, as on disk; empty if there are none.
    pub mpi: Vec<u8>,
}

/// Fails unless `found` pages or bytes of `what` are as many as the capture says.
fn same(what: &'static str, found: u64, known: u64) -> Result<(), FormatError> {
    match found == known {
        true => Ok(()),
        false => Err(FormatError::TooShort {
            what,
            offset: 0,
            needed: known,
            available: found,
        }),
    }
}

/// The page trace beside the metadata in `path`; empty if there is none.
fn read_trace(path: &Path, capture: &RawCapture) -> Result<Vec<u8>, FormatError> {
    let Some(known) = &capture.trace else {
        return Ok(Vec::new());
    };
    let path = path.with_extension("trace");
    let trace = std::fs::read(&path).map_err(FormatError::io("read", &path))?;
    let what = path.display().to_string();
    let pages = decode_trace(&what, &trace, capture.page_size, capture.openmp.is_some())?;
    same("raw capture's page trace", pages.len() as u64, known.pages)?;
    Ok(trace)
}

/// What the kernel answered, beside the metadata in `path`; empty if nothing.
fn read_answers(path: &Path, capture: &RawCapture) -> Result<Vec<u8>, FormatError> {
    let Some(known) = capture.answers.as_ref().filter(|a| a.bytes > 0) else {
        return Ok(Vec::new());
    };
    let path = path.with_extension("answers");
    let answers = std::fs::read(&path).map_err(FormatError::io("read", &path))?;
    answers::decode(&path.display().to_string(), &answers)?;
    let found = answers.len() as u64;
    same("raw capture's list of answers", found, known.bytes)?;
    Ok(answers)
}

/// The calls of MPI beside the metadata in `path`; empty if there are none.
fn read_mpi(path: &Path, capture: &RawCapture) -> Result<Vec<u8>, FormatError> {
    let Some(known) = &capture.mpi else {
        return Ok(Vec::new());
    };
    let path = path.with_extension("mpi");
    let list = std::fs::read(&path).map_err(FormatError::io("read", &path))?;
    same(
        "raw capture's list of calls of MPI",
        list.len() as u64,
        known.bytes,
    )?;
    let calls = mpi::decode(&path.display().to_string(), &list, known.functions.len())?;
    same(
        "raw capture's calls of MPI",
        calls.len() as u64,
        known.calls,
    )?;
    Ok(list)
}

impl Raw {
    /// Opens the capture whose metadata is the file `path` (`<n>.json`); `region` names it in errors.
    pub fn open(path: &Path, region: &str) -> Result<Self, PackError> {
        let text = std::fs::read(path).map_err(FormatError::io("read", path))?;
        let capture: RawCapture =
            serde_json::from_slice(&text).map_err(|source| FormatError::Json {
                what: path.display().to_string(),
                source,
            })?;
        check_version("the raw capture", capture.version, CAPTURE_VERSION)?;
        let refused = match (&capture.refused, capture.end) {
            (Some(reason), _) => Some(reason.clone()),
            (None, RegionEnd::Never) => {
                Some("it was still running when the program ended, or was left by longjmp".into())
            }
            _ => None,
        };
        if let Some(reason) = refused {
            return Err(PackError::Refused {
                region: region.into(),
                reason,
            });
        }
        let table_path = path.with_extension("table");
        let bytes = std::fs::read(&table_path).map_err(FormatError::io("read", &table_path))?;
        let table = decode_table(&table_path.display().to_string(), &bytes, capture.page_size)?;
        let trace = read_trace(path, &capture)?;
        let blocks = match &capture.openmp {
            Some(openmp) if !openmp.blocks.is_empty() => {
                let path = path.with_extension("blocks");
                std::fs::read(&path).map_err(FormatError::io("read", &path))?
            }
            _ => Vec::new(),
        };
        let answers = read_answers(path, &capture)?;
        let mpi = read_mpi(path, &capture)?;
        let places_path = path.with_extension("places");
        let places = std::fs::read(&places_path).map_err(FormatError::io("read", &places_path))?;
        let pages = path.with_extension("pages");
        let open = |end| PageFile::open(pages.clone(), &table, (&places, end), capture.page_size);
        Ok(Self {
            entry: open(0)?,
            exit: open(1)?,
            capture,
            table,
            trace,
            blocks,
            answers,
            mpi,
        })
    }

    /// Index of the record of the page that holds `address`.
    pub fn index(&self, address: u64) -> Option<usize> {
        let start = address & !(self.capture.page_size - 1);
        self.table
            .binary_search_by_key(&start, |record| record.address)
            .ok()
    }

    /// Whether the capture has all pages of `size` bytes at `address`.
    pub fn holds(&self, address: u64, size: u64) -> bool {
        let (page, end) = (self.capture.page_size, address + size.max(1));
        let first = address & !(page - 1);
        (first..end)
            .step_by(page as usize)
            .all(|at| self.index(at).is_some())
    }

    /// `size` bytes at `address` at entry or at exit; pages that the capture does not hold read as zero.
    pub fn bytes(&self, address: u64, size: u64, at_exit: bool) -> Result<Vec<u8>, PackError> {
        if size > TLS_LIMIT || address.checked_add(size).is_none() {
            return Err(PackError::Format(FormatError::Invalid {
                what: "the raw capture".to_owned(),
                field: "a block's address and size",
                value: format!("{address:#x}, {size}"),
                why: "a block has at most 1 GiB, and ends",
            }));
        }
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
        let page_size = self.capture.page_size;
        let mut page = vec![0; page_size as usize];
        let mut done = 0;
        while done < size {
            let at = address + done;
            let inside = at % page_size;
            let count = (page_size - inside).min(size - done);
            if let Some(index) = self.index(at) {
                let file = if at_exit && self.table[index].flags & PAGE_WRITTEN != 0 {
                    &self.exit
                } else {
                    &self.entry
                };
                if file.page(index, &mut page)? {
                    bytes[done as usize..(done + count) as usize]
                        .copy_from_slice(&page[inside as usize..(inside + count) as usize]);
                }
            }
            done += count;
        }
        Ok(bytes)
    }

    /// The little-endian word at `address` at entry, if its page is stored.
    pub fn word(&self, address: u64) -> Result<Option<u64>, PackError> {
        let stored = |at| {
            self.index(at)
                .is_some_and(|i| self.table[i].flags & PAGE_ENTRY_STORED != 0)
        };
        if !stored(address) || !stored(address + 7) {
            return Ok(None);
        }
        let bytes = self.bytes(address, 8, false)?;
        Ok(bytes.try_into().ok().map(u64::from_le_bytes))
    }
}

/// The pages of one file that a package keeps.
#[derive(Default)]
pub struct Kept {
    /// Records of the table, rising.
    pub indices: Vec<usize>,
    /// Ranges of bytes, by record, that are zeroed.
    pub zeroed: BTreeMap<usize, Vec<(usize, usize)>>,
}

impl Kept {
    /// Zeroes what is to be zeroed in the page of record `index`.
    pub fn patch(&self, index: usize, page: &mut [u8]) {
        for &(start, end) in self.zeroed.get(&index).into_iter().flatten() {
            page[start..end].fill(0);
        }
    }
    /// Reads the kept pages of `file`, patched, one after the other.
    pub fn stream<'a>(&'a self, file: &'a PageFile) -> Box<dyn Read + 'a> {
        Box::new(Stream {
            kept: self,
            reader: file.reader(),
            next: 0,
            used: 0,
        })
    }
}

struct Stream<'a> {
    kept: &'a Kept,
    reader: Reader<'a>,
    /// The page that is read, by its place among the kept ones, and the bytes of it that are.
    next: usize,
    used: usize,
}

impl Read for Stream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(&index) = self.kept.indices.get(self.next) else {
            return Ok(0);
        };
        let page = self.reader.page(index).map_err(io::Error::other)?;
        let page = page.ok_or(io::ErrorKind::UnexpectedEof)?;
        if self.used == 0 {
            self.kept.patch(index, page);
        }
        let count = buffer.len().min(page.len() - self.used);
        buffer[..count].copy_from_slice(&page[self.used..self.used + count]);
        self.used += count;
        if self.used == page.len() {
            (self.next, self.used) = (self.next + 1, 0);
        }
        Ok(count)
    }
}

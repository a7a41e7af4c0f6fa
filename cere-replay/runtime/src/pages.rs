//! The page table and the content of pages at both ends of the region.

use crate::error::{Damage, Error};
use cere_format::capture::{PAGE_ENTRY_STORED, PAGE_EXIT_STORED, PAGE_WRITTEN, PageRecord};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

// Packages of other page sizes are refused.
pub use cere_format::PAGE;
/// End of user addresses (four-level page tables).
pub const TOP: u64 = 1 << 47;

/// Bytes of a file from which on it is read page by page, and let go of again: a state of gigabytes is then held once, in its own place,
/// and not a second and a third time in the files beside it.
const LARGE: usize = 64 << 20;
/// Pages after which that happens.
const WINDOW: usize = 4096;

/// A file mapped for reading.
pub struct Bytes {
    start: *const u8,
    length: usize,
}

// SAFETY: nobody writes to the mapping, which stays for the life of the process.
unsafe impl Sync for Bytes {}

impl Bytes {
    /// Maps `path`; an absent or empty file is no bytes.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let empty = Self {
            start: std::ptr::NonNull::dangling().as_ptr(),
            length: 0,
        };
        let file = match File::open(path) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(empty),
            Err(e) => return Err(Error::file("open", path)(e)),
        };
        let length = file.metadata().map_err(Error::file("read", path))?.len() as usize;
        if length == 0 {
            return Ok(empty);
        }
        // SAFETY: a fresh private mapping of the whole file.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ,
                libc::MAP_PRIVATE | populated(length),
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(Error::file("map", path)(std::io::Error::last_os_error()));
        }
        Ok(Self {
            start: start as *const u8,
            length,
        })
    }

    /// Maps `file` in its place; without one nothing can be read there.
    fn replace(&self, file: Option<&File>) -> Result<(), Error> {
        let (rights, more) = match file {
            Some(_) => (libc::PROT_READ, populated(self.length)),
            None => (libc::PROT_NONE, libc::MAP_ANONYMOUS),
        };
        let start = self.start.cast_mut().cast();
        let flags = libc::MAP_PRIVATE | libc::MAP_FIXED | more;
        let file = file.map_or(-1, AsRawFd::as_raw_fd);
        // SAFETY: the place of a mapping of our own, of which nobody holds a slice.
        let done = self.length == 0
            || unsafe { libc::mmap(start, self.length, rights, flags, file, 0) } == start;
        match done {
            true => Ok(()),
            false => Err(Error::system("cannot map the state at exit")),
        }
    }

    /// What was read of a large file need not stay: it is in the system's cache.
    fn let_go(&self) {
        if self.length < LARGE {
            return;
        }
        // By the bare call: `madvise` is the region's.
        // SAFETY: a private mapping that nobody writes to: the same bytes come back.
        unsafe {
            libc::syscall(
                libc::SYS_madvise,
                self.start,
                self.length,
                libc::MADV_DONTNEED,
            )
        };
    }

    /// The content.
    pub fn get(&self) -> &[u8] {
        // SAFETY: mapped for the life of the process.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}

/// How a file of this length is mapped: a small one is read at once.
fn populated(length: usize) -> libc::c_int {
    match length {
        ..LARGE => libc::MAP_POPULATE,
        _ => 0,
    }
}

/// A page with its content at both ends.
#[derive(Clone, Copy)]
pub struct Page {
    /// The record.
    pub record: PageRecord,
    /// Offset in the entry file; none: zeros.
    entry: Option<usize>,
    /// Offset in the exit file; none: zeros.
    exit: Option<usize>,
}

impl Page {
    /// Address.
    pub fn start(&self) -> u64 {
        self.record.address
    }

    /// Address after the last byte.
    pub fn end(&self) -> u64 {
        self.record.address + PAGE
    }

    /// Whether one of the flags is set.
    pub fn is(&self, flags: u32) -> bool {
        self.record.flags & flags != 0
    }
}

const ZERO: &[u8] = &[0; PAGE as usize];

/// The captured pages, by rising address.
pub struct Pages {
    /// All of them.
    pub all: Vec<Page>,
    /// Those of the C library's in whose place this replay has its own.
    pub given_up: Vec<Page>,
    entry: Bytes,
    exit: Bytes,
    /// The file of the state at exit, if that is hidden while the region runs.
    hidden: Option<File>,
}

impl Pages {
    /// Reads the table and gives each page its place in the two files.
    pub fn new(table: &[u8], entry: Bytes, exit: Bytes) -> Result<Self, Damage> {
        if !table.len().is_multiple_of(16) {
            return Err(Damage::TableCut { bytes: table.len() });
        }
        let (mut entries, mut exits) = (0usize, 0usize);
        let take = |wanted: bool, at: &mut usize| {
            wanted.then(|| {
                *at += PAGE as usize;
                *at - PAGE as usize
            })
        };
        let mut all: Vec<Page> = Vec::with_capacity(table.len() / 16);
        for bytes in table.chunks_exact(16) {
            let word = |at: usize| {
                u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
            };
            let address = u64::from(word(0)) | u64::from(word(4)) << 32;
            let flags = word(8);
            let rising = all.last().is_none_or(|p| p.start() < address);
            if !rising || !address.is_multiple_of(PAGE) || address > TOP - PAGE {
                return Err(Damage::TablePage(address));
            }
            all.push(Page {
                record: PageRecord {
                    address,
                    flags,
                    thread: word(12),
                },
                entry: take(flags & PAGE_ENTRY_STORED != 0, &mut entries),
                exit: take(flags & PAGE_EXIT_STORED != 0, &mut exits),
            });
        }
        for (name, needed, file) in [("entry", entries, &entry), ("exit", exits, &exit)] {
            if file.get().len() != needed {
                return Err(Damage::PageFile {
                    name,
                    bytes: file.get().len(),
                    needed,
                });
            }
        }
        Ok(Self {
            all,
            given_up: Vec::new(),
            entry,
            exit,
            hidden: None,
        })
    }

    /// Hides the state at exit, which is `file`, but for [`Self::look`].
    pub fn hide(&mut self, file: &Path) -> Result<(), Error> {
        self.hidden = Some(File::open(file).map_err(Error::file("open", file))?);
        self.exit.replace(None)
    }

    /// What `find` finds while the state at exit can be read.
    pub fn look<T>(&self, find: impl FnOnce() -> T) -> Result<T, Error> {
        let Some(file) = &self.hidden else {
            return Ok(find());
        };
        self.exit.replace(Some(file))?;
        let found = find();
        self.exit.replace(None)?;
        Ok(found)
    }

    /// Leaves out the pages in [start, end): the replay has something else there.
    pub fn give_up(&mut self, (start, end): (u64, u64)) {
        let inside = |p: &Page| (start..end).contains(&p.start());
        self.given_up.extend(self.all.iter().filter(|p| inside(p)));
        self.all.retain(|p| !inside(p));
    }

    /// Content at entry.
    pub fn entry(&self, page: &Page) -> &[u8] {
        content(&self.entry, page.entry)
    }

    /// Content at exit.
    pub fn exit(&self, page: &Page) -> &[u8] {
        content(&self.exit, page.exit)
    }

    /// The page with this number, of those that are gone through in their order, was looked at.
    pub fn passed(&self, number: usize) {
        if number % WINDOW == WINDOW - 1 {
            self.let_go();
        }
    }

    /// All pages were gone through.
    pub fn let_go(&self) {
        self.entry.let_go();
        self.exit.let_go();
    }

    /// Puts the entry contents of `pages` back.
    pub fn restore_all<'p>(&self, pages: impl Iterator<Item = &'p Page>) {
        for (number, page) in pages.enumerate() {
            self.restore(page);
            self.passed(number);
        }
        self.let_go();
    }

    /// Puts the entry content of `page` back.
    fn restore(&self, page: &Page) {
        let from = self.entry(page);
        // SAFETY: the page was opened for writing; both are a page long.
        unsafe {
            std::ptr::copy_nonoverlapping(from.as_ptr(), page.start() as *mut u8, PAGE as usize);
        }
    }

    /// The aligned 8-byte word at `address` at entry, if its page was captured.
    pub fn word(&self, address: u64) -> Option<u64> {
        let page = address & !(PAGE - 1);
        let offset = (address - page) as usize;
        let word = self.entry(self.at(page)?).get(offset..offset + 8)?;
        word.try_into().ok().map(u64::from_le_bytes)
    }

    /// The captured bytes of [start, end) at exit, and at entry; none if a page of them was not captured.
    pub fn both(&self, start: u64, end: u64) -> Option<(Vec<u8>, Vec<u8>)> {
        let (mut exit, mut entry) = (Vec::new(), Vec::new());
        let mut at = start;
        while at < end {
            let page = at & !(PAGE - 1);
            let found = self.at(page)?;
            let part = (at - page) as usize..(end.min(page + PAGE) - page) as usize;
            let before = self.entry(found).get(part.clone())?;
            let written = found.is(PAGE_WRITTEN);
            exit.extend(if written {
                self.exit(found).get(part)?
            } else {
                before
            });
            entry.extend(before);
            at = page + PAGE;
        }
        Some((exit, entry))
    }

    /// The captured page that holds `address`.
    pub fn at(&self, address: u64) -> Option<&Page> {
        let start = address & !(PAGE - 1);
        let at = self.all.binary_search_by_key(&start, Page::start).ok()?;
        self.all.get(at)
    }

    /// Whether the page that holds `address` was captured.
    pub fn holds(&self, address: u64) -> bool {
        self.at(address).is_some()
    }
}

fn content(file: &Bytes, at: Option<usize>) -> &[u8] {
    at.and_then(|at| file.get().get(at..at + PAGE as usize))
        .unwrap_or(ZERO)
}

/// The memory of `page` as it is now.
///
/// # Safety
/// Nobody writes to the page while the slice is held: the region rests, and no state is put back.
pub unsafe fn memory(page: &Page) -> &[u8] {
    // SAFETY: captured pages are open and stay mapped; by the contract their content stays as well.
    unsafe { std::slice::from_raw_parts(page.start() as *const u8, PAGE as usize) }
}

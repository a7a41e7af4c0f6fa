//! Reserving and restoring captured memory, and the handler of accesses outside it.

use cere_format::capture::{Mapping, PAGE_CODE, PAGE_ENTRY_STORED, PAGE_EXIT_STORED, PageRecord};
use cere_format::package::Manifest;
use libc::c_void;
use std::ffi::CString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Bytes of a page; packages of other page sizes are refused.
pub const PAGE: u64 = 4096;
/// Room below the captured stack pointer.
const STACK_ROOM: u64 = 8 << 20;

static RESERVED: OnceLock<Vec<(u64, u64)>> = OnceLock::new();
static MAPPINGS: OnceLock<Vec<Mapping>> = OnceLock::new();

/// Whether `address` lies in a range that belongs to the captured process.
pub fn reserved(address: u64) -> bool {
    let Some(ranges) = RESERVED.get() else {
        return false;
    };
    let position = ranges.partition_point(|r| r.1 <= address);
    ranges.get(position).is_some_and(|r| r.0 <= address)
}

/// A file mapped for reading.
pub struct Bytes {
    start: *const u8,
    length: usize,
}

impl Bytes {
    /// Maps `path`; an absent or empty file is no bytes.
    pub fn open(path: &Path) -> Result<Self, String> {
        let empty = Self {
            start: std::ptr::NonNull::dangling().as_ptr(),
            length: 0,
        };
        let file = match File::open(path) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(empty),
            Err(e) => return Err(format!("cannot open {}: {e}", path.display())),
        };
        let length = file
            .metadata()
            .map_err(|e| format!("cannot read {}: {e}", path.display()))?
            .len() as usize;
        if length == 0 {
            return Ok(empty);
        }
        // SAFETY: a fresh private mapping of the whole file.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ,
                libc::MAP_PRIVATE | libc::MAP_POPULATE,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(format!(
                "cannot map {}: {}",
                path.display(),
                std::io::Error::last_os_error()
            ));
        }
        Ok(Self {
            start: start as *const u8,
            length,
        })
    }
    /// The content.
    pub fn get(&self) -> &[u8] {
        // SAFETY: mapped for the life of the process.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}

/// A page with its content at both ends.
#[derive(Clone, Copy)]
pub struct Page {
    /// The record.
    pub record: PageRecord,
    /// Offset in the entry file.
    pub entry: Option<usize>,
    /// Offset in the exit file.
    pub exit: Option<usize>,
}

/// Reads the page table and gives each page its place in the files.
pub fn table(bytes: &[u8]) -> Vec<Page> {
    let word = |b: &[u8]| u32::from_le_bytes([b[0], b[1], b[2], b[3]]);
    let (mut entry, mut exit) = (0usize, 0usize);
    bytes
        .chunks_exact(16)
        .map(|b| {
            let record = PageRecord {
                address: u64::from(word(b)) | u64::from(word(&b[4..])) << 32,
                flags: word(&b[8..]),
                reserved: 0,
            };
            let take = |flag: u32, at: &mut usize| {
                (record.flags & flag != 0).then(|| {
                    *at += PAGE as usize;
                    *at - PAGE as usize
                })
            };
            Page {
                record,
                entry: take(PAGE_ENTRY_STORED, &mut entry),
                exit: take(PAGE_EXIT_STORED, &mut exit),
            }
        })
        .collect()
}

/// Sorts, rounds to pages and merges ranges.
pub fn merge(mut ranges: Vec<(u64, u64)>, gap: u64) -> Vec<(u64, u64)> {
    for r in &mut ranges {
        r.0 &= !(PAGE - 1);
        r.1 = (r.1 + PAGE - 1) & !(PAGE - 1);
    }
    ranges.retain(|r| r.0 < r.1);
    ranges.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for r in ranges {
        match merged.last_mut() {
            Some(last) if r.0 <= last.1.saturating_add(gap) => last.1 = last.1.max(r.1),
            _ => merged.push(r),
        }
    }
    merged
}

/// Reserves all that the captured process had mapped. `Err(Some(address))` on a clash.
pub fn reserve(manifest: &Manifest, pages: &[Page]) -> Result<(), Option<u64>> {
    let mut ranges: Vec<(u64, u64)> = manifest
        .mappings
        .iter()
        .filter(|m| !m.path.starts_with("[v"))
        .map(|m| (m.start, m.end))
        .chain(manifest.fresh.iter().copied())
        .chain([manifest.heap])
        .chain(
            pages
                .iter()
                .map(|p| (p.record.address, p.record.address + PAGE)),
        )
        .collect();
    let stack = manifest.entry.stack_pointer;
    ranges.push((stack.saturating_sub(STACK_ROOM), stack));
    let ranges = merge(ranges, 0);
    for &(start, end) in &ranges {
        // SAFETY: fails where something is mapped already.
        let at = unsafe {
            libc::mmap(
                start as *mut c_void,
                (end - start) as usize,
                libc::PROT_NONE,
                libc::MAP_PRIVATE
                    | libc::MAP_ANONYMOUS
                    | libc::MAP_NORESERVE
                    | libc::MAP_FIXED_NOREPLACE,
                -1,
                0,
            )
        };
        if at == libc::MAP_FAILED || at as u64 != start {
            return Err(Some(start));
        }
    }
    let _ = RESERVED.set(ranges);
    let _ = MAPPINGS.set(manifest.mappings.clone());
    Ok(())
}

/// Changes the protection of [start, end).
pub fn protect(start: u64, end: u64, protection: i32) -> Result<(), String> {
    // SAFETY: only reserved ranges are handed in.
    let rc = unsafe { libc::mprotect(start as *mut c_void, (end - start) as usize, protection) };
    if rc != 0 {
        return Err(format!(
            "cannot open {start:#x}-{end:#x}: {}",
            std::io::Error::last_os_error()
        ));
    }
    Ok(())
}

/// Opens all captured pages for writing and the stack below them.
pub fn open(manifest: &Manifest, pages: &[Page]) -> Result<(), String> {
    let wanted: Vec<(u64, u64)> = pages
        .iter()
        .map(|p| (p.record.address, p.record.address + PAGE))
        .collect();
    // Few enough ranges for vm.max_map_count, at the price of opening what lies between.
    let mut gap = 0;
    let mut ranges = merge(wanted.clone(), gap);
    while ranges.len() > 20_000 {
        gap = (gap * 2).max(PAGE);
        ranges = merge(wanted.clone(), gap);
    }
    for (start, end) in ranges {
        protect(start, end, libc::PROT_READ | libc::PROT_WRITE)?;
    }
    let stack = manifest.entry.stack_pointer;
    protect(
        stack.saturating_sub(STACK_ROOM) & !(PAGE - 1),
        (stack + PAGE - 1) & !(PAGE - 1),
        libc::PROT_READ | libc::PROT_WRITE,
    )?;
    if manifest.heap.0 < manifest.heap.1 {
        protect(
            manifest.heap.0,
            manifest.heap.1,
            libc::PROT_READ | libc::PROT_WRITE,
        )?;
    }
    for &(start, end) in &merge(manifest.fresh.clone(), 0) {
        protect(start, end, libc::PROT_READ | libc::PROT_WRITE)?;
    }
    Ok(())
}

/// Puts the entry content of `page` back.
pub fn restore(page: &Page, entry: &[u8]) {
    let to = page.record.address as *mut u8;
    // SAFETY: the page was opened for writing.
    unsafe {
        match page.entry.and_then(|at| entry.get(at..at + PAGE as usize)) {
            Some(bytes) => std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, PAGE as usize),
            None => std::ptr::write_bytes(to, 0, PAGE as usize),
        }
    }
}

/// One jump: old address and where the function is now.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Jump {
    /// Captured address.
    pub old: u64,
    /// Address in the replay.
    pub new: u64,
}

/// Writes the jumps and makes the code pages executable.
pub fn code(pages: &[Page], jumps: &[Jump]) -> Result<(), String> {
    let mut ranges: Vec<(u64, u64)> = pages
        .iter()
        .filter(|p| p.record.flags & PAGE_CODE != 0)
        .map(|p| (p.record.address, p.record.address + PAGE))
        .collect();
    ranges.extend(jumps.iter().map(|j| (j.old, j.old + 14)));
    let ranges = merge(ranges, 0);
    for &(start, end) in &ranges {
        if !reserved(start) || !reserved(end - 1) {
            return Err(format!(
                "code at {start:#x}-{end:#x} lies outside all captured mappings"
            ));
        }
        protect(start, end, libc::PROT_READ | libc::PROT_WRITE)?;
    }
    for jump in jumps {
        let distance = jump.new.wrapping_sub(jump.old + 5) as i64;
        let mut bytes = Vec::with_capacity(14);
        if let Ok(near) = i32::try_from(distance) {
            bytes.push(0xe9);
            bytes.extend(near.to_le_bytes());
        } else {
            bytes.extend([0xff, 0x25, 0, 0, 0, 0]);
            bytes.extend(jump.new.to_le_bytes());
        }
        // SAFETY: opened for writing above.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), jump.old as *mut u8, bytes.len());
        }
    }
    for (start, end) in ranges {
        protect(start, end, libc::PROT_READ | libc::PROT_EXEC)?;
    }
    Ok(())
}

/// Name of the captured mapping that holds `address`.
pub fn place(address: u64) -> Option<&'static Mapping> {
    MAPPINGS
        .get()?
        .iter()
        .find(|m| m.start <= address && address < m.end)
}

static IN_HANDLER: AtomicBool = AtomicBool::new(false);

extern "C" fn fault(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    if IN_HANDLER.swap(true, Relaxed) {
        // SAFETY: ends the process.
        unsafe { libc::_exit(5) }
    }
    // SAFETY: the kernel hands over valid pointers.
    let (address, rip, write) = unsafe {
        let registers = &(*(context as *const libc::ucontext_t)).uc_mcontext.gregs;
        (
            (*info).si_addr() as u64,
            registers[libc::REG_RIP as usize] as u64,
            registers[libc::REG_ERR as usize] & 2 != 0,
        )
    };
    let page = address & !(PAGE - 1);
    let mut text = format!(
        "replay: the region {} {address:#x} (page {page:#x}) at instruction {rip:#x} with signal {signal}",
        if rip == address {
            "jumped to"
        } else if write {
            "wrote"
        } else {
            "read"
        }
    );
    match place(address) {
        Some(m) => {
            let name = if m.path.is_empty() {
                "anonymous memory"
            } else {
                &m.path
            };
            text += &format!(
                ", in {name} ({:#x}-{:#x} {}), which the captured invocation did not touch there: ",
                m.start, m.end, m.permissions
            );
            text += if m.permissions.contains('x') {
                "likely code that the captured run did not execute (another path was taken)"
            } else {
                "likely the recompiled region took another path or reads further (a wider vector, a prefetch made a load)"
            };
        }
        None if address < 65536 => {
            text += ", a null pointer: likely a symbol or pointer the package lacks"
        }
        None => {
            text += ", which was not mapped when the region was captured: likely a wild pointer"
        }
    }
    text.push('\n');
    // SAFETY: writes to standard error and ends the process.
    unsafe {
        libc::write(2, text.as_ptr() as *const c_void, text.len());
        libc::_exit(4)
    }
}

/// Installs the handler on a stack of its own.
pub fn watch() {
    // SAFETY: fresh memory for the stack, a handler that never returns.
    unsafe {
        let size = 256 << 10;
        let stack = libc::mmap(
            std::ptr::null_mut(),
            size,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        let alternate = libc::stack_t {
            ss_sp: stack,
            ss_flags: 0,
            ss_size: size,
        };
        libc::sigaltstack(&alternate, std::ptr::null_mut());
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = fault as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE] {
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
}

/// Address of a library symbol in this process.
pub fn library_symbol(name: &str, version: Option<&str>) -> Option<u64> {
    let name = CString::new(name).ok()?;
    let version = version.and_then(|v| CString::new(v).ok());
    // SAFETY: null-terminated strings.
    let found = unsafe {
        match &version {
            Some(v) => libc::dlvsym(libc::RTLD_DEFAULT, name.as_ptr(), v.as_ptr()),
            None => libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()),
        }
    };
    if found.is_null() && version.is_some() {
        // SAFETY: as above.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        return (!found.is_null()).then_some(found as u64);
    }
    (!found.is_null()).then_some(found as u64)
}

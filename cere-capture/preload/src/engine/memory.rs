//! Protection and mapping of the program's memory: by system calls, or by a table in tests.

use crate::os::sys;

/// May be read: `PROT_READ`.
pub const READ: u8 = libc::PROT_READ as u8;
/// May be written: `PROT_WRITE`.
pub const WRITE: u8 = libc::PROT_WRITE as u8;
/// May be executed: `PROT_EXEC`.
pub const EXECUTE: u8 = libc::PROT_EXEC as u8;

/// What an instruction wants from memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// To read it.
    Read,
    /// To write it.
    Write,
    /// To execute it.
    Execute,
}

/// What the engine asks of the kernel. In handlers: neither allocates nor locks. Results are the kernel's: negated errors.
pub trait Memory {
    /// Sets what may be done with [start, end), whole pages. Zero or a negated error.
    ///
    /// # Safety
    /// Nobody relies on the former protection.
    unsafe fn protect(&mut self, start: usize, end: usize, rights: u8) -> isize;

    /// Whether all of [start, start + length) is mapped; `start` is a page's.
    fn is_mapped(&self, start: usize, length: usize) -> bool;

    /// Makes the kernel give the pages of [start, end) memory of their own without changing them.
    ///
    /// # Safety
    /// They are writable.
    unsafe fn populate(&mut self, start: usize, end: usize);

    /// Reads all of [start, end), whole pages that are readable: zero or a negated error.
    fn read_in(&mut self, start: usize, end: usize) -> isize;

    /// A system call of the program that changes what is mapped.
    ///
    /// # Safety
    /// As the call itself.
    unsafe fn call(&mut self, number: i64, arguments: [usize; 6]) -> isize;

    /// Nanoseconds since some time in the past.
    fn time(&self) -> u64;
}

/// The process's own memory.
pub struct System;

impl Memory for System {
    #[inline(always)]
    unsafe fn protect(&mut self, start: usize, end: usize, rights: u8) -> isize {
        // SAFETY: nobody relies on the pages' former rights, as for the call itself.
        unsafe { sys::protect(start, end, rights) }
    }

    #[inline(always)]
    fn is_mapped(&self, start: usize, length: usize) -> bool {
        sys::is_mapped(start, length)
    }

    #[inline(always)]
    unsafe fn populate(&mut self, start: usize, end: usize) {
        for page in (start..end).step_by(sys::PAGE) {
            // SAFETY: a page of the program that may be written, as for the call itself.
            unsafe { sys::populate(page) }
        }
    }

    fn read_in(&mut self, start: usize, end: usize) -> isize {
        const MADV_POPULATE_READ: usize = 22;
        let arguments = [start, end - start, MADV_POPULATE_READ, 0, 0, 0];
        // SAFETY: changes nothing that the program could see.
        unsafe { sys::call(libc::SYS_madvise, arguments) }
    }

    #[inline(always)]
    unsafe fn call(&mut self, number: i64, arguments: [usize; 6]) -> isize {
        // SAFETY: the call is the program's, and what it reaches is open.
        unsafe { sys::call(number, arguments) }
    }

    #[inline(always)]
    fn time(&self) -> u64 {
        sys::time()
    }
}

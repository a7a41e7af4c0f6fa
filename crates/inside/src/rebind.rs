//! Binds a loaded image's references of functions anew, after the loader has.
//!
//! [`bind`] is for the image that this crate is linked into: its own calls of libc go to libc. The loader binds them to
//! the first definition in line: a program that has a function `read` or `getenv` would have them all. Each reference
//! is bound once more, to what has the version that it asks for; the program's functions have none. What stays as the
//! loader bound it: `dlsym` and `dlvsym` until then, the `malloc` family (one for the whole process), and what libc
//! and libgcc call of others in turn.
//!
//! [`replace`] has another library's calls go to given functions.

use crate::call::call;
use crate::images;
use std::ffi::{CStr, c_char};

const DT_NULL: usize = 0;
const DT_PLTRELSZ: usize = 2;
const DT_STRTAB: usize = 5;
const DT_SYMTAB: usize = 6;
const DT_RELA: usize = 7;
const DT_RELASZ: usize = 8;
const DT_JMPREL: usize = 23;
const DT_VERSYM: usize = 0x6fff_fff0;
const DT_VERNEED: usize = 0x6fff_fffe;
const FUNCTION: u8 = 2;

/// mprotect, whatever function of that name the program has. Whether it worked.
///
/// # Safety
/// Nobody relies on the former protection.
unsafe fn protect((start, end): (usize, usize), protection: i32) -> bool {
    let arguments = [start, end - start, protection as usize, 0, 0, 0];
    // SAFETY: nobody relies on the former rights; the call changes no memory of ours.
    unsafe { call(libc::SYS_mprotect, arguments) == 0 }
}

unsafe extern "C" {
    static __ehdr_start: libc::Elf64_Ehdr;
    static _DYNAMIC: [usize; 2];
}

#[repr(C)]
struct Relocation {
    offset: usize,
    info: u64,
    addend: i64,
}

/// The versions of one library, and one of them.
#[repr(C)]
struct Needed {
    version: u16,
    count: u16,
    file: u32,
    first: u32,
    next: u32,
}
#[repr(C)]
struct Version {
    hash: u32,
    flags: u16,
    number: u16,
    name: u32,
    next: u32,
}

/// A loaded image.
struct Image {
    base: usize,
    dynamic: *const [usize; 2],
    headers: *const libc::Elf64_Phdr,
    count: usize,
}

impl Image {
    /// Value of an entry of the dynamic section, 0 if there is none.
    unsafe fn entry(&self, tag: usize) -> usize {
        let mut at = self.dynamic;
        // SAFETY: the section ends with DT_NULL.
        unsafe {
            while (*at)[0] != DT_NULL {
                if (*at)[0] == tag {
                    return (*at)[1];
                }
                at = at.add(1);
            }
        }
        0
    }

    /// The table that an entry leads to; the loader may have added the base already.
    unsafe fn table<T>(&self, tag: usize) -> *const T {
        // SAFETY: the section's entries hold offsets or addresses in the image, which stays loaded.
        match unsafe { self.entry(tag) } {
            0 => std::ptr::null(),
            at if at < self.base => (self.base + at) as *const T,
            at => at as *const T,
        }
    }

    /// Name of a version that the image needs.
    unsafe fn version(&self, number: u16) -> Option<*const c_char> {
        // SAFETY: lists of the image, which end where `next` is 0.
        unsafe {
            let text: *const c_char = self.table(DT_STRTAB);
            let mut needed: *const Needed = self.table(DT_VERNEED);
            while !needed.is_null() {
                let mut version: *const Version = needed.byte_add((*needed).first as usize).cast();
                for _ in 0..(*needed).count {
                    if (*version).number == number {
                        return Some(text.add((*version).name as usize));
                    }
                    version = version.byte_add((*version).next as usize);
                }
                needed = match (*needed).next {
                    0 => std::ptr::null(),
                    next => needed.byte_add(next as usize),
                };
            }
        }
        None
    }

    /// The definition of a function that the image does not define, in the version that it needs.
    unsafe fn definition(&self, index: usize) -> Option<usize> {
        // SAFETY: tables of the image.
        unsafe {
            let symbol = &*self.table::<libc::Elf64_Sym>(DT_SYMTAB).add(index);
            let versions: *const u16 = self.table(DT_VERSYM);
            if symbol.st_shndx != 0 || symbol.st_info & 15 != FUNCTION || versions.is_null() {
                return None;
            }
            let version = self.version(*versions.add(index) & 0x7fff)?;
            let name = self.table::<c_char>(DT_STRTAB).add(symbol.st_name as usize);
            let found = libc::dlvsym(libc::RTLD_NEXT, name, version) as usize;
            (found != 0).then_some(found)
        }
    }

    /// Whole pages of what is read-only once the loader is done.
    unsafe fn sealed(&self) -> Option<(usize, usize)> {
        // SAFETY: the image's own headers.
        unsafe {
            let mut all = std::slice::from_raw_parts(self.headers, self.count).iter();
            let found = all.find(|h| h.p_type == libc::PT_GNU_RELRO)?;
            let start = self.base + found.p_vaddr as usize;
            Some((start & !4095, (start + found.p_memsz as usize) & !4095))
        }
    }

    /// Stores what `address` gives for the symbol of each relocation that stores an address.
    unsafe fn bind(&self, address: impl Fn(usize) -> Option<usize>) {
        let tables = [(DT_RELA, DT_RELASZ), (DT_JMPREL, DT_PLTRELSZ)];
        // SAFETY: tables of the image, and its own pages, sealed again afterwards; what is stored stands for the symbol.
        unsafe {
            let sealed = self.sealed();
            if let Some(pages) = sealed
                && !protect(pages, libc::PROT_READ | libc::PROT_WRITE)
            {
                return;
            }
            for (table, size) in tables {
                let relocations: *const Relocation = self.table(table);
                for i in 0..self.entry(size) / size_of::<Relocation>() {
                    let relocation = &*relocations.add(i);
                    if cere_arch::HERE
                        .facts()
                        .addresses
                        .contains(&(relocation.info & 0xffff_ffff))
                        && let Some(found) = address((relocation.info >> 32) as usize)
                    {
                        let at = (self.base + relocation.offset) as *mut usize;
                        at.write_volatile(found);
                    }
                }
            }
            if let Some(pages) = sealed {
                protect(pages, libc::PROT_READ);
            }
        }
    }
}

/// Binds the references of the image that this crate is part of.
pub fn bind() {
    let base = &raw const __ehdr_start as usize;
    // SAFETY: the image's own header.
    let header = unsafe { &__ehdr_start };
    let image = Image {
        base,
        dynamic: &raw const _DYNAMIC,
        headers: (base + header.e_phoff as usize) as *const libc::Elf64_Phdr,
        count: header.e_phnum.into(),
    };
    // SAFETY: the image's own symbols. Nobody else calls into it yet but for memory.
    unsafe { image.bind(|index| image.definition(index)) };
}

/// Has what the image that holds `address` refers to by the names of functions be the functions at the given addresses,
/// which have the same types.
///
/// # Safety
/// Each of `functions` has the type and keeps the promises of what the image expects under its name, and stays as long as
/// the image. No thread calls through the image's tables meanwhile that would mind which of both it gets.
pub unsafe fn replace(address: usize, functions: &[(&CStr, usize)]) {
    let of = |name: &CStr| functions.iter().find(|f| f.0 == name).map(|f| f.1);
    // SAFETY: by the contract.
    unsafe { replace_by(address, of) };
}

/// The same for the functions that `of` gives for names.
///
/// # Safety
/// As [`replace`].
pub unsafe fn replace_by(address: usize, of: impl Fn(&CStr) -> Option<usize>) {
    let mut found = None;
    images::visit(|info, headers| {
        let base = info.dlpi_addr as usize;
        let holds = |h: &libc::Elf64_Phdr| {
            let start = base.wrapping_add(h.p_vaddr as usize);
            h.p_type == libc::PT_LOAD && start <= address && address - start < h.p_memsz as usize
        };
        let dynamic = headers.iter().find(|h| h.p_type == libc::PT_DYNAMIC);
        let (true, Some(dynamic)) = (headers.iter().any(holds), dynamic) else {
            return true;
        };
        found = Some(Image {
            base,
            dynamic: base.wrapping_add(dynamic.p_vaddr as usize) as *const _,
            headers: info.dlpi_phdr,
            count: headers.len(),
        });
        false
    });
    let Some(image) = found else { return };
    // SAFETY: the image is loaded, so its tables are there; the functions are the caller's word.
    unsafe {
        image.bind(|index| {
            let symbol = &*image.table::<libc::Elf64_Sym>(DT_SYMTAB).add(index);
            let name = image
                .table::<c_char>(DT_STRTAB)
                .add(symbol.st_name as usize);
            of(CStr::from_ptr(name))
        });
    }
}

//! Finds the regions of the loaded images through the section headers of their files.
//!
//! Runs in the constructor and after `dlopen`: ordinary code.

use super::files;
use cere_format::abi::{REGION_MAGIC, REGION_SECTION, RegionDescriptor, UNIT_SECTION};
use cere_inside::images;
use object::{Object, ObjectSection, ObjectSymbol};
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// A loaded image.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// Its file, absolute.
    pub path: PathBuf,
    /// Difference between its addresses in memory and in its file.
    pub bias: usize,
    /// Lowest and highest address of its segments.
    pub range: (usize, usize),
    /// Thread-local block of the calling thread.
    pub tls: Option<(usize, usize)>,
}

/// The loaded images, the program first.
pub fn list_loaded() -> Vec<Loaded> {
    let mut list: Vec<Loaded> = Vec::new();
    images::visit(|info, headers| {
        let path = if list.is_empty() {
            files::read_link("/proc/self/exe").unwrap_or_default()
        } else if info.dlpi_name.is_null() {
            PathBuf::new()
        } else {
            // SAFETY: the loader's string.
            let name = unsafe { CStr::from_ptr(info.dlpi_name) };
            let path = PathBuf::from(OsStr::from_bytes(name.to_bytes()));
            files::resolve(&path).unwrap_or(path)
        };
        let bias = info.dlpi_addr as usize;
        let (mut low, mut high, mut tls) = (usize::MAX, 0, None);
        for header in headers {
            let start = bias.wrapping_add(header.p_vaddr as usize);
            if header.p_type == libc::PT_LOAD {
                low = low.min(start & !4095);
                high = high.max((start + header.p_memsz as usize).next_multiple_of(4096));
            } else if header.p_type == libc::PT_TLS && !info.dlpi_tls_data.is_null() {
                tls = Some((info.dlpi_tls_data as usize, header.p_memsz as usize));
            }
        }
        list.push(Loaded {
            path,
            bias,
            range: (low.min(high), high),
            tls,
        });
        true
    });
    list
}

/// Address of a return instruction after `address`, in the same image.
pub fn return_after(address: usize) -> Option<usize> {
    const RET: u8 = 0xc3;
    const READABLE: u32 = libc::PF_R | libc::PF_X;
    let mut end = address;
    images::visit(|info, headers| {
        for header in headers {
            let start = (info.dlpi_addr as usize).wrapping_add(header.p_vaddr as usize);
            let code = start..start.wrapping_add(header.p_filesz as usize);
            if header.p_type == libc::PT_LOAD
                && header.p_flags & READABLE == READABLE
                && code.contains(&address)
            {
                end = code.end;
                return false;
            }
        }
        true
    });
    // SAFETY: readable code of a loaded image.
    (address..end).find(|at| unsafe { *(*at as *const u8) } == RET)
}

#[repr(C)]
struct TlsIndex {
    module: usize,
    offset: usize,
}

unsafe extern "C" {
    fn __tls_get_addr(index: *const TlsIndex) -> *mut libc::c_void;
}

/// A function of the loader.
pub fn tls_function() -> *const () {
    __tls_get_addr as *const ()
}

/// Has the loader allocate the calling thread's block of every image now. Otherwise it does at the first access, with
/// `malloc`, which would be a call of the region.
pub fn allocate_tls() {
    let mut modules: Vec<usize> = Vec::new();
    images::visit(|info, _| {
        if info.dlpi_tls_modid != 0 && info.dlpi_tls_data.is_null() {
            modules.push(info.dlpi_tls_modid);
        }
        true
    });
    for module in modules {
        // SAFETY: the module is loaded.
        unsafe { __tls_get_addr(&TlsIndex { module, offset: 0 }) };
    }
}

/// What CERE has put into an image.
pub struct Sections {
    /// Whether it holds units.
    pub instrumented: bool,
    /// Its region descriptors in memory.
    pub regions: Vec<*mut RegionDescriptor>,
}

/// What an image exports.
#[derive(Default)]
pub struct Exported {
    /// Functions, and their addresses.
    pub functions: Vec<(String, u64)>,
    /// Functions that it chooses by processor: the value of the symbol, and the address that it chose.
    pub chosen: Vec<(u64, u64)>,
}

/// Reads the dynamic symbols of `image`. `ask`: its functions that choose others may be called.
pub fn read_exported(image: &Loaded, ask: bool) -> Exported {
    let mut exported = Exported::default();
    let Ok(file) = std::fs::File::open(&image.path) else {
        return exported;
    };
    let cache = object::ReadCache::new(file);
    let Ok(file) = object::File::parse(&cache) else {
        return exported;
    };
    for symbol in file.dynamic_symbols().filter(|s| s.is_definition()) {
        let object::SymbolFlags::Elf { st_info, .. } = symbol.flags() else {
            continue;
        };
        let value = symbol.address();
        let address = image.bias.wrapping_add(value as usize);
        if !(image.range.0..image.range.1).contains(&address) {
            continue;
        }
        match st_info.st_type() {
            object::elf::STT_FUNC => {
                if let Ok(name) = symbol.name() {
                    exported.functions.push((name.to_owned(), address as u64));
                }
            }
            object::elf::STT_GNU_IFUNC if ask && exported.chosen.iter().all(|c| c.0 != value) => {
                // SAFETY: the function that the loader calls to bind the symbol, of a relocated image. It takes no arguments.
                let chosen =
                    unsafe { std::mem::transmute::<usize, extern "C" fn() -> usize>(address)() };
                // One outside is the kernel's: clocks.
                if (image.range.0..image.range.1).contains(&chosen) {
                    exported.chosen.push((value, chosen as u64));
                }
            }
            _ => {}
        }
    }
    exported
}

/// Reads the section headers of `image`.
pub fn read_sections(image: &Loaded) -> Sections {
    let mut found = Sections {
        instrumented: false,
        regions: Vec::new(),
    };
    let Ok(file) = std::fs::File::open(&image.path) else {
        return found;
    };
    let cache = object::ReadCache::new(file);
    let Ok(file) = object::File::parse(&cache) else {
        return found;
    };
    found.instrumented = file.section_by_name(UNIT_SECTION).is_some();
    let Some(section) = file.section_by_name(REGION_SECTION) else {
        return found;
    };
    found.instrumented = true;
    let start = image.bias.wrapping_add(section.address() as usize);
    let end = start + section.size() as usize;
    if start < image.range.0 || end > image.range.1 {
        return found;
    }
    let mut at = start.next_multiple_of(64);
    while at + 64 <= end {
        let region = at as *mut RegionDescriptor;
        // SAFETY: within a loaded, readable section of the image.
        if unsafe { (*region).magic } == REGION_MAGIC {
            found.regions.push(region);
        }
        at += 64;
    }
    found
}

//! The kernel's shared page (vDSO), to which every library goes for the time without a system call.

use std::ffi::CStr;

pub use cere_arch::call::SHARED as NAMES;

/// The page of this process.
pub struct SharedPage {
    /// Whole pages of its code.
    pub code: (usize, usize),
    /// Addresses of [`NAMES`]; 0 for functions that the page lacks, or all if the loader knows it by another name.
    pub functions: [usize; NAMES.len()],
}

impl SharedPage {
    /// None if the process has none. Asks the loader, which may allocate.
    #[must_use]
    pub fn find() -> Option<Self> {
        // SAFETY: the kernel says where the page is: an ELF image with its headers in the first page, for the life of the
        // process. The loader knows it by its name.
        unsafe {
            let base = libc::getauxval(libc::AT_SYSINFO_EHDR) as usize;
            let header = (base as *const libc::Elf64_Ehdr).as_ref()?;
            let headers = std::slice::from_raw_parts(
                (base + header.e_phoff as usize) as *const libc::Elf64_Phdr,
                header.e_phnum.into(),
            );
            let load = headers.iter().find(|h| h.p_type == libc::PT_LOAD)?;
            let how = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
            let page = libc::dlopen(c"linux-vdso.so.1".as_ptr(), how);
            let address = |name: &CStr| match page.is_null() {
                true => 0,
                false => libc::dlsym(page, name.as_ptr()) as usize,
            };
            let end = (base + load.p_memsz as usize).next_multiple_of(cere_format::PAGE as usize);
            Some(Self {
                code: (base, end),
                functions: NAMES.map(address),
            })
        }
    }
}

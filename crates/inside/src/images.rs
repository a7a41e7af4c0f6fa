//! The loaded images, as the loader knows them.

use libc::{Elf64_Phdr, dl_phdr_info};
use std::ffi::{c_int, c_void};

/// Calls `visit` with the loader's record of each loaded image and that image's headers, the program's first, until it returns
/// false. Allocates nothing; the loader holds its lock meanwhile.
pub fn visit(mut visit: impl FnMut(&dl_phdr_info, &[Elf64_Phdr]) -> bool) {
    type Visit<'a> = &'a mut dyn FnMut(&dl_phdr_info, &[Elf64_Phdr]) -> bool;
    unsafe extern "C" fn call(info: *mut dl_phdr_info, _: usize, visit: *mut c_void) -> c_int {
        // SAFETY: the loader passes its record, which holds its headers, and what it was given below.
        unsafe {
            let (info, visit) = (&*info, &mut *visit.cast::<Visit>());
            let headers = std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into());
            c_int::from(!visit(info, headers))
        }
    }
    let mut visit: Visit = &mut visit;
    // SAFETY: `call` gets the function back.
    unsafe { libc::dl_iterate_phdr(Some(call), (&raw mut visit).cast()) };
}

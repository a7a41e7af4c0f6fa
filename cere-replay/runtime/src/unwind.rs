//! Exceptions that captured machine code throws or lets pass: the unwinder finds the captured tables of its images, as it found them in
//! vivo, on the pages that it touched there.

use crate::{code, library};
use cere_format::package::{FrameTable, Manifest};
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

/// What glibc says of the object that holds an address: its `struct dl_find_object`.
#[repr(C)]
pub struct Found {
    flags: u64,
    start: *mut c_void,
    end: *mut c_void,
    link_map: *mut c_void,
    frames: *mut c_void,
    reserved: [u64; 7],
}

type Find = unsafe extern "C" fn(*mut c_void, *mut Found) -> c_int;

static TABLES: OnceLock<&'static [FrameTable]> = OnceLock::new();
static REAL: OnceLock<Option<Find>> = OnceLock::new();

/// Knows the tables of the captured images.
pub fn know(manifest: &'static Manifest) {
    let _ = TABLES.set(&manifest.frames);
    let _ = real();
}

/// glibc's function.
fn real() -> Option<Find> {
    *REAL.get_or_init(|| {
        let found = library::next(c"_dl_find_object")?;
        // SAFETY: glibc's function of this name has this type.
        Some(unsafe { std::mem::transmute::<*mut c_void, Find>(found) })
    })
}

/// Stands for glibc's function, which the unwinder asks where the tables of an address are.
///
/// # Safety
/// `result` can be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn _dl_find_object(address: *mut c_void, result: *mut Found) -> c_int {
    let at = address as u64;
    let holds = |t: &&FrameTable| t.range.0 <= at && at < t.range.1;
    let captured = TABLES.get().and_then(|tables| tables.iter().find(holds));
    if let Some(table) = captured.filter(|_| code::executable(at)) {
        // SAFETY: the unwinder's own structure, which it gave to be filled.
        unsafe {
            *result = Found {
                flags: 0,
                start: table.range.0 as *mut c_void,
                end: table.range.1 as *mut c_void,
                link_map: std::ptr::null_mut(),
                frames: table.table as *mut c_void,
                reserved: [0; 7],
            };
        }
        return 0;
    }
    match real() {
        // SAFETY: the caller's own arguments.
        Some(real) => unsafe { real(address, result) },
        None => -1,
    }
}

//! How a region is called in the source's terms.

use crate::{ir, shim};
use llvm_sys::core::*;
use llvm_sys::debuginfo::*;
use llvm_sys::prelude::*;
use std::path::{Path, PathBuf};

/// Name of a function: demangled without parameters, or the debug information's name with its scopes.
pub fn function(function: LLVMValueRef) -> String {
    let symbol = ir::name(function);
    // SAFETY: the function is live; the shim returns malloc'ed strings or null.
    unsafe {
        if let Some(name) = ir::take_string(shim::cere_demangle(ir::c(&symbol).as_ptr())) {
            return name;
        }
        let subprogram = LLVMGetSubprogram(function);
        if !subprogram.is_null()
            && let Some(name) =
                ir::take_string(shim::cere_scoped_name(subprogram)).filter(|name| !name.is_empty())
        {
            return name;
        }
    }
    symbol
}

/// File (absolute) and line of a location; `None` for a null one.
pub fn place(location: LLVMMetadataRef, directory: &Path) -> Option<(PathBuf, u32)> {
    if location.is_null() {
        return None;
    }
    // SAFETY: a DILocation.
    unsafe {
        let line = LLVMDILocationGetLine(location);
        in_file(LLVMDILocationGetScope(location), line, directory)
    }
}

/// File (absolute) and line of a function's definition; `None` without debug information.
pub fn definition(function: LLVMValueRef, directory: &Path) -> Option<(PathBuf, u32)> {
    // SAFETY: the function is live; a DISubprogram is a scope.
    unsafe {
        let subprogram = LLVMGetSubprogram(function);
        if subprogram.is_null() {
            return None;
        }
        let line = LLVMDISubprogramGetLine(subprogram);
        in_file(subprogram, line, directory)
    }
}

/// # Safety
/// `scope` is a live DIScope.
unsafe fn in_file(scope: LLVMMetadataRef, line: u32, directory: &Path) -> Option<(PathBuf, u32)> {
    // SAFETY: a live scope; its strings live as long as the module's context.
    unsafe {
        let file = LLVMDIScopeGetFile(scope);
        if file.is_null() {
            return None;
        }
        let mut length = 0;
        let data = LLVMDIFileGetFilename(file, &mut length);
        let name = text(data, length);
        let data = LLVMDIFileGetDirectory(file, &mut length);
        Some((directory.join(text(data, length)).join(name), line))
    }
}

/// # Safety
/// `data` is null or points to `length` bytes.
unsafe fn text(data: *const libc::c_char, length: u32) -> String {
    if data.is_null() {
        return String::new();
    }
    // SAFETY: it is no null pointer, so so many bytes.
    let bytes = unsafe { std::slice::from_raw_parts(data.cast(), length as usize) };
    String::from_utf8_lossy(bytes).into_owned()
}

/// Name of the module's source as the front end gave it.
pub fn source(module: LLVMModuleRef) -> String {
    let mut length = 0;
    // SAFETY: the module owns the bytes.
    unsafe {
        let data = LLVMGetSourceFileName(module, &mut length);
        text(data, length as u32)
    }
}

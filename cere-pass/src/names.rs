//! How a region is called in the source's terms.

use crate::{ir, shim};
use cere_format::build::Language;
use cere_format::language::Facts;
use cere_format::language::rust::is_symbol;
use libc::{c_char, c_void};
use llvm_sys::core::*;
use llvm_sys::debuginfo::*;
use llvm_sys::prelude::*;
use std::path::{Path, PathBuf};

/// Name of a function: demangled without parameters, or the debug information's name with its scopes.
pub fn function(function: LLVMValueRef) -> String {
    let symbol = ir::name(function);
    if let Some(name) = rust(&symbol).or_else(|| d(&symbol)) {
        return name;
    }
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

/// The same of the function that a place is in, which may have been inlined into `function`.
pub fn function_at(function: LLVMValueRef, location: LLVMMetadataRef) -> String {
    // SAFETY: a DILocation or null; the shim returns a malloc'ed string or null.
    let symbol = unsafe { ir::take_string(shim::cere_linkage_name(location)) };
    let of_symbol = symbol.and_then(|symbol| rust(&symbol));
    of_symbol.unwrap_or_else(|| self::function(function))
}

/// Name of Rust's function without crate hash and generic arguments, if the symbol is one of Rust's.
fn rust(symbol: &str) -> Option<String> {
    if !is_symbol(symbol) {
        return None;
    }
    let name = rustc_demangle::try_demangle(symbol).ok()?;
    Some(without_generics(&format!("{name:#}")))
}

/// Name of D's function with its modules and types, without template arguments and parameters.
fn d(symbol: &str) -> Option<String> {
    let mut rest = symbol.strip_prefix("_D")?;
    let mut names = Vec::new();
    loop {
        // An instance of a template: its name, then its arguments, which may refer back to anything.
        let template = rest.strip_prefix("__T");
        let part = template.unwrap_or(rest);
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        let length: usize = part[..digits].parse().ok().unwrap_or(0);
        let name = part[digits..].get(..length);
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            break;
        };
        // Older compilers count the instance's characters.
        let inside = name
            .strip_prefix("__T")
            .and_then(|i| i.get(i.bytes().take_while(u8::is_ascii_digit).count()..));
        names.push(inside.map_or(name, |i| i.split("Z").next().unwrap_or(i)));
        rest = &part[digits + length..];
        if template.is_some() {
            break;
        }
    }
    (!names.is_empty()).then(|| names.join("."))
}

/// A path of Rust's without generic arguments, and with a type in place of `<type as trait>`.
fn without_generics(path: &str) -> String {
    let mut short = String::new();
    let mut rest = path;
    while let Some(at) = rest.find('<') {
        short.push_str(&rest[..at]);
        let inside = &rest[at + 1..];
        let end = closing(inside);
        // A type takes the place of a path's beginning; elsewhere these are arguments.
        let starts = short.is_empty() || short.ends_with([' ', '&', '(', ',']);
        match starts {
            true => short.push_str(&without_generics(of_type(&inside[..end]))),
            false => short.truncate(short.trim_end_matches("::").len()),
        }
        rest = inside.get(end + 1..).unwrap_or("");
    }
    short + rest
}

/// Where the bracket that was open before `text` closes.
fn closing(text: &str) -> usize {
    let mut depth = 0;
    let mut before = ' ';
    for (at, sign) in text.char_indices() {
        match sign {
            '<' => depth += 1,
            '>' if before == '-' => {}
            '>' if depth == 0 => return at,
            '>' => depth -= 1,
            _ => {}
        }
        before = sign;
    }
    text.len()
}

/// The type of `type as trait`.
fn of_type(text: &str) -> &str {
    let mut depth = 0;
    for (at, sign) in text.char_indices() {
        match sign {
            '<' => depth += 1,
            '>' => depth -= 1,
            ' ' if depth == 0 && text[at..].starts_with(" as ") => return &text[..at],
            _ => {}
        }
    }
    text
}

/// Where a place that a library's code has stands in the user's own, for languages whose libraries are compiled along with what uses them:
/// the function there, and the location.
pub fn in_own_code(
    function: LLVMValueRef,
    location: LLVMMetadataRef,
    language: Language,
) -> (LLVMValueRef, LLVMMetadataRef) {
    let facts: *const Facts = language.facts();
    let mut own = location;
    // SAFETY: the function is live, the location a DILocation or null; what is handed on comes back to `is_library` alone.
    let found =
        unsafe { shim::cere_user_place(function, &mut own, is_library, facts.cast::<c_void>()) };
    match found.is_null() {
        true => (function, location),
        false => (found, own),
    }
}

/// Whether the path of so many bytes is the library's of the language with these `facts`.
extern "C" fn is_library(facts: *const c_void, path: *const c_char, length: usize) -> bool {
    // SAFETY: the shim's path has so many bytes, and the facts are constants, which `in_own_code` handed on.
    let (facts, path) = unsafe { (&*facts.cast::<Facts>(), text(path, length as u32)) };
    (facts.is_library)(&path)
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

/// The files that the module's debug information says it was compiled of, each the first of a unit.
pub fn compiled(module: LLVMModuleRef, directory: &Path) -> Vec<PathBuf> {
    // SAFETY: the module is live; the shim returns malloc'ed strings or null.
    let text = unsafe { ir::take_string(shim::cere_compiled(module)) };
    let text = text.unwrap_or_default();
    // rustc adds the part of the crate.
    let file = |line: &str| directory.join(line.split("/@/").next().unwrap_or(line));
    text.lines().map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::{d, rust, without_generics};

    #[test]
    fn names_of_rust() {
        for (path, short) in [
            ("hot::relax", "hot::relax"),
            (
                "<core::slice::iter::Iter<T> as core::iter::traits::iterator::Iterator>::fold",
                "core::slice::iter::Iter::fold",
            ),
            ("hot::potential::<hot::Gauss>", "hot::potential"),
            ("<alloc::vec::Vec<f64>>::push", "alloc::vec::Vec::push"),
            (
                "a::b::<fn(u8) -> Vec<u8>>::{closure#0}",
                "a::b::{closure#0}",
            ),
            ("<[T]>::sort", "[T]::sort"),
        ] {
            assert_eq!(without_generics(path), short);
        }
        assert_eq!(
            rust("_ZN3hot5relax17h05af221e174051e9E").as_deref(),
            Some("hot::relax")
        );
        assert_eq!(rust("_RNvC6_123foo3bar").as_deref(), Some("123foo::bar"));
        assert_eq!(rust("_ZN4Grid4stepEd"), None);
    }

    #[test]
    fn names_of_d() {
        for (symbol, name) in [
            ("_D3hot5relaxFKxSQo4GridKSQxQjZv", Some("hot.relax")),
            (
                "_D3std6format5write__T14formattedWriteTSQBm5stdio4FileZQCgFNfZk",
                Some("std.format.write.formattedWrite"),
            ),
            ("_Dmain", None),
            ("_D99x", None),
            ("_D18446744073709551615x", None),
            ("main", None),
        ] {
            assert_eq!(d(symbol).as_deref(), name, "{symbol}");
        }
    }
}

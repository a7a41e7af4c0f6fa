//! The unit's record, its id and the marker in its object.

use crate::error::{PassError, Result};
use crate::{functions, ir, labels, names, outline, runtime, shim, sources};
use cere_format::abi::*;
use cere_format::build::{BUILD_VERSION, CompileCommand, Language, Unit};
use cere_format::hexadecimal;
use cere_format::store::Store;
use libc::c_void;
use llvm_sys::core::*;
use llvm_sys::debuginfo::LLVMStripModuleDebugInfo;
use llvm_sys::error::{LLVMDisposeErrorMessage, LLVMGetErrorMessage};
use llvm_sys::prelude::*;
use llvm_sys::transforms::pass_builder::*;
use llvm_sys::{LLVMLinkage, LLVMTypeKind, LLVMUnnamedAddr};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;

/// Instruments the module and keeps it in the store.
pub fn instrument(
    module: LLVMModuleRef,
    mut command: CompileCommand,
    optimize: bool,
) -> Result<()> {
    for function in ir::functions(module) {
        ir::remove_enum(function, "optnone");
    }
    // Before the inliner drops some.
    let functions = functions::defined(module);
    let chosen = functions::chosen(module, &command, &functions);
    canonicalise(module, optimize, &chosen)?;
    show_constants(module);
    let source = source(module, &command);
    let language = Language::of(&source, &command.compiler);
    // rustc's allocator shim, which is no crate's.
    if language == Language::Rust && names::compiled(module, &command.directory).is_empty() {
        return Ok(());
    }
    let marker = marker(module);
    let regions = outline::all(module, marker, &command, &source, language, &chosen)?;
    labels::list(module);
    if let Some(short) = &mut command.short {
        short.retain(|s| regions.iter().any(|region| s.is(region)));
    }
    command
        .split
        .retain(|s| regions.iter().any(|region| s.is(region)));
    // `cere asm` shows lines all the same; nothing that is run is made of this.
    let lines = (!command.debug).then(|| bitcode(module));
    command
        .functions
        .retain(|pattern| functions.iter().any(|f| f.is_named_by(pattern)));
    if !command.debug {
        // SAFETY: the module is live.
        unsafe { LLVMStripModuleDebugInfo(module) };
    }
    ir::verify(module)?;
    let sources = sources::of(&source, &regions, &command.directory);
    let id = identify(module, &command);
    name_marker(module, marker, &id);
    let unit = Unit {
        version: BUILD_VERSION,
        id,
        language,
        source,
        regions,
        functions,
        defines: defines(module),
        needs: needs(module),
        optional: needs(module),
        executable_stack: false,
        weak: weak(module),
        runtime_words: runtime::words(module),
        sources,
        command,
    };
    keep(&unit, &bitcode(module), lines.as_deref())
}

/// Gives string literals and other private constants a place in the symbol table: a region may store their
/// addresses, and a replay has to store the same ones.
fn show_constants(module: LLVMModuleRef) {
    for global in ir::globals(module) {
        // SAFETY: the variable is live.
        unsafe {
            let private = LLVMGetLinkage(global) == LLVMLinkage::LLVMPrivateLinkage;
            if !private || LLVMIsDeclaration(global) != 0 {
                continue;
            }
            if is_ident(global) {
                ir::set_name(global, IDENT_SYMBOL_PREFIX);
                name_text(global);
            } else if ir::name(global).is_empty() {
                ir::set_name(global, "cere.constant");
            }
            LLVMSetLinkage(global, LLVMLinkage::LLVMInternalLinkage);
        }
    }
}

/// Whether the constant is an `ident_t` of the OpenMP runtime's interface.
///
/// # Safety
/// The variable is live.
unsafe fn is_ident(global: LLVMValueRef) -> bool {
    // SAFETY: a live variable; the name is a C string or null.
    unsafe {
        let kind = LLVMGlobalGetValueType(global);
        if LLVMGetTypeKind(kind) != LLVMTypeKind::LLVMStructTypeKind {
            return false;
        }
        let name = LLVMGetStructName(kind);
        !name.is_null() && CStr::from_ptr(name) == c"struct.ident_t"
    }
}

/// Names the text that an `ident_t` leads to, its last field, likewise.
///
/// # Safety
/// The variable is a live `ident_t` with an initialiser.
unsafe fn name_text(ident: LLVMValueRef) {
    // SAFETY: a live `ident_t` with an initialiser.
    unsafe {
        let value = LLVMGetInitializer(ident);
        let last = LLVMGetNumOperands(value) - 1;
        if last < 0 {
            return;
        }
        let text = LLVMGetOperand(value, last as u32);
        if !LLVMIsAGlobalVariable(text).is_null()
            && LLVMGetLinkage(text) == LLVMLinkage::LLVMPrivateLinkage
        {
            ir::set_name(text, IDENT_SYMBOL_PREFIX);
        }
    }
}

/// What the source wants inlined always is no function of its own: its loops belong to the callers, whose
/// constants they are often written for. With optimisation, small functions without regions (accessors,
/// operators) are inlined as well, but for `chosen` ones: otherwise the objects that they work on are in memory when the
/// loop is outlined, and stay there.
fn canonicalise(module: LLVMModuleRef, optimize: bool, chosen: &HashSet<String>) -> Result<()> {
    if !optimize {
        return run(module, c"always-inline,function(loop-simplify,lcssa)");
    }
    run(
        module,
        c"always-inline,function(sroa,early-cse,simplifycfg)",
    )?;
    // SAFETY: the module is live.
    let context = unsafe { LLVMGetModuleContext(module) };
    // By name: the inliner may delete functions.
    let mut kept = HashSet::new();
    for function in ir::functions(module) {
        let region = outline::has_regions(function) || chosen.contains(&ir::name(function));
        if region && !ir::has_enum(function, "noinline") {
            ir::add_enum(context, function, "noinline");
            kept.insert(ir::name(function));
        }
    }
    run(
        module,
        c"cgscc(inline,function(sroa,early-cse,simplifycfg)),function(loop-simplify,lcssa)",
    )?;
    for function in ir::functions(module) {
        if kept.contains(&ir::name(function)) {
            ir::remove_enum(function, "noinline");
        }
    }
    Ok(())
}

/// Runs `passes` over the module.
pub fn run(module: LLVMModuleRef, passes: &CStr) -> Result<()> {
    // SAFETY: the module is live; the options are ours.
    unsafe {
        let options = LLVMCreatePassBuilderOptions();
        let error = LLVMRunPasses(module, passes.as_ptr(), null_mut(), options);
        LLVMDisposePassBuilderOptions(options);
        if !error.is_null() {
            let message = LLVMGetErrorMessage(error);
            let text = CStr::from_ptr(message).to_string_lossy().into_owned();
            LLVMDisposeErrorMessage(message);
            return Err(PassError::Passes {
                passes: passes.to_string_lossy().into_owned(),
                message: text,
            });
        }
    }
    Ok(())
}

/// The file that the module was made of: the one it names, or, where that is none (flang calls every module `FIRModule`, rustc
/// names a part of a crate), the debug information's, or an argument of the compiler.
fn source(module: LLVMModuleRef, command: &CompileCommand) -> PathBuf {
    let named = command.directory.join(names::source(module));
    if named.is_file() {
        return named;
    }
    let known = names::compiled(module, &command.directory).into_iter();
    let arguments = command.arguments.iter().map(|a| command.directory.join(a));
    let is_ir = |path: &Path| path.extension().is_some_and(|e| e == "bc" || e == "ll");
    let given = arguments.filter(|path| Language::of_source(path).is_some() || is_ir(path));
    known
        .chain(given)
        .find(|path| path.is_file())
        .unwrap_or(named)
}

/// The marker, still without an id: the id is a hash of the module that already refers to it.
fn marker(module: LLVMModuleRef) -> LLVMValueRef {
    // SAFETY: the module is live.
    unsafe {
        let value = marker_value(module, &[0; UNIT_ID_LENGTH]);
        let global = LLVMAddGlobal(
            module,
            LLVMTypeOf(value),
            ir::c(UNIT_SYMBOL_PREFIX).as_ptr(),
        );
        LLVMSetInitializer(global, value);
        LLVMSetLinkage(global, LLVMLinkage::LLVMInternalLinkage);
        LLVMSetGlobalConstant(global, 1);
        LLVMSetUnnamedAddress(global, LLVMUnnamedAddr::LLVMNoUnnamedAddr);
        LLVMSetSection(global, ir::c(UNIT_SECTION).as_ptr());
        LLVMSetAlignment(global, 16);
        shim::cere_append_used(module, global);
        global
    }
}

/// # Safety
/// The module is live.
unsafe fn marker_value(module: LLVMModuleRef, id: &[u8; UNIT_ID_LENGTH]) -> LLVMValueRef {
    // SAFETY: the module is live; LLVM copies the bytes.
    unsafe {
        let context = LLVMGetModuleContext(module);
        let long = LLVMInt64TypeInContext(context);
        let mut fields = [
            LLVMConstInt(long, UNIT_MAGIC, 0),
            LLVMConstStringInContext2(context, id.as_ptr().cast(), id.len(), 1),
            LLVMConstInt(long, 0, 0),
        ];
        LLVMConstStructInContext(context, fields.as_mut_ptr(), 3, 0)
    }
}

fn name_marker(module: LLVMModuleRef, marker: LLVMValueRef, id: &str) {
    let bytes = id.as_bytes().try_into().expect("an id of 32 digits");
    // SAFETY: module and marker are live.
    unsafe { LLVMSetInitializer(marker, marker_value(module, bytes)) };
    ir::set_name(marker, &format!("{UNIT_SYMBOL_PREFIX}{id}"));
}

fn hex(hash: Sha256) -> String {
    hexadecimal(&hash.finalize()[..UNIT_ID_LENGTH / 2])
}

fn identify(module: LLVMModuleRef, command: &CompileCommand) -> String {
    let mut hash = Sha256::new();
    hash.update(bitcode(module));
    for flag in &command.codegen {
        hash.update([0]);
        hash.update(flag);
    }
    hex(hash)
}

/// The module as bitcode, the order of uses kept.
pub fn bitcode(module: LLVMModuleRef) -> Vec<u8> {
    extern "C" fn sink(context: *mut c_void, data: *const u8, length: usize) {
        // SAFETY: the context is the vector below, the bytes are the shim's.
        unsafe {
            (*context.cast::<Vec<u8>>()).extend_from_slice(std::slice::from_raw_parts(data, length))
        }
    }
    let mut bytes = Vec::new();
    // SAFETY: the module is live; the sink only sees the vector during the call.
    unsafe { shim::cere_bitcode(module, sink, (&raw mut bytes).cast()) };
    bytes
}

fn defines(module: LLVMModuleRef) -> Vec<String> {
    let external = |&value: &LLVMValueRef| {
        // SAFETY: the value is live.
        let (linkage, declared) = unsafe { (LLVMGetLinkage(value), LLVMIsDeclaration(value) != 0) };
        use LLVMLinkage::*;
        let local = matches!(
            linkage,
            LLVMInternalLinkage
                | LLVMPrivateLinkage
                | LLVMAvailableExternallyLinkage
                | LLVMAppendingLinkage
        );
        !declared && !local
    };
    let values = ir::functions(module).into_iter().chain(ir::globals(module));
    values.filter(external).map(ir::name).collect()
}

/// External functions and variables that the module refers to. The wrapper adds what only the object refers to.
fn needs(module: LLVMModuleRef) -> Vec<String> {
    let needed = |&value: &LLVMValueRef| {
        // SAFETY: the value is live.
        let (linkage, declared, used) = unsafe {
            let used = !LLVMGetFirstUse(value).is_null();
            (LLVMGetLinkage(value), LLVMIsDeclaration(value) != 0, used)
        };
        use LLVMLinkage::*;
        let elsewhere = declared || linkage == LLVMAvailableExternallyLinkage;
        used && elsewhere
    };
    let values = ir::functions(module).into_iter().chain(ir::globals(module));
    let names = values.filter(needed).map(ir::name);
    names.filter(|n| !n.starts_with("llvm.")).collect()
}

/// Functions whose definition another one of the program may stand in for.
fn weak(module: LLVMModuleRef) -> Vec<String> {
    let gives_way = |&function: &LLVMValueRef| {
        // SAFETY: the function is live.
        let linkage = unsafe { LLVMGetLinkage(function) };
        use LLVMLinkage::*;
        matches!(linkage, LLVMWeakAnyLinkage | LLVMLinkOnceAnyLinkage)
    };
    let defined = ir::defined(ir::functions(module)).into_iter();
    defined.filter(gives_way).map(ir::name).collect()
}

fn keep(unit: &Unit, bitcode: &[u8], lines: Option<&[u8]>) -> Result<()> {
    let store = Store::new(&unit.command.store);
    let mut hash = Sha256::new();
    hash.update(unit.source.as_os_str().as_encoded_bytes());
    hash.update([0]);
    let output = unit.command.output.as_deref().unwrap_or(Path::new(""));
    hash.update(output.as_os_str().as_encoded_bytes());
    let record = store.unit_record(&unit.id);
    let pretty = serde_json::to_vec_pretty(unit).map_err(|e| unwritten(&record)(e.into()))?;
    write(&store.unit_ir(&unit.id), bitcode)?;
    if let Some(lines) = lines {
        write(&store.unit_lines(&unit.id), lines)?;
    }
    write(&record, &pretty)?;
    write(&store.current().join(hex(hash)), unit.id.as_bytes())
}

/// Writes a file whole or not at all.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))
        .and_then(|()| std::fs::write(&temporary, bytes))
        .and_then(|()| std::fs::rename(&temporary, path))
        .inspect_err(|_| {
            let _ = std::fs::remove_file(&temporary);
        })
        .map_err(unwritten(path))
}

/// The same of JSON.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_vec(value).map_err(|e| unwritten(path)(e.into()))?;
    write(path, &text)
}

fn unwritten(path: &Path) -> impl FnOnce(std::io::Error) -> PassError {
    let file = path.to_owned();
    move |source| PassError::Write { file, source }
}

//! Turns outermost loops into functions.

use crate::{ir, names, probe, shim};
use cere_format::build::{CompileCommand, LiveIn, Region};
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMLinkage, LLVMOpcode};
use std::ffi::CStr;
use std::path::Path;

/// Prints why a loop breaks the compile, so that the wrapper compiles again without it, and ends.
fn give_up(index: u32, place: &str, reason: &str) -> ! {
    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    eprintln!("cere: loop {index} {place}: {reason}");
    eprintln!("CERE-RETRY-SKIP {index} {reason}");
    // SAFETY: _exit has no preconditions.
    unsafe { libc::_exit(77) }
}

/// Outlines every outermost loop of the module, each with a probe that names `marker` as its unit.
pub fn all(
    module: LLVMModuleRef,
    marker: LLVMValueRef,
    command: &CompileCommand,
    source: &Path,
) -> Vec<Region> {
    let mut regions = Vec::<Region>::new();
    for function in ir::functions(module) {
        // SAFETY: the function is live.
        let linkage = unsafe { LLVMGetLinkage(function) };
        // SAFETY: the function is live.
        let declared = unsafe { LLVMIsDeclaration(function) } != 0;
        if declared || linkage == LLVMLinkage::LLVMAvailableExternallyLinkage {
            continue;
        }
        for (header, location) in loops(function) {
            let index = regions.len() as u32;
            let (file, line) = names::place(location, &command.directory)
                .unwrap_or_else(|| (source.to_owned(), 0));
            let name = names::function(function);
            let same = |r: &&Region| r.function == name && r.file == file && r.line == line;
            let mut region = Region {
                index,
                ordinal: regions.iter().filter(same).count() as u32 + 1,
                function: name,
                symbol: ir::name(function),
                file,
                line,
                outlined: false,
                reason: None,
                live_ins: Vec::new(),
                exits: 0,
            };
            match command.skip.iter().find(|skip| skip.index == index) {
                Some(skip) => region.reason = Some(skip.reason.clone()),
                None => one(module, function, header, marker, &mut region),
            }
            regions.push(region);
        }
    }
    regions
}

fn loops(function: LLVMValueRef) -> Vec<(LLVMBasicBlockRef, LLVMMetadataRef)> {
    // SAFETY: the shim writes at most `room` entries and returns how many there are.
    unsafe {
        let room = shim::cere_loops(function, std::ptr::null_mut(), std::ptr::null_mut(), 0);
        let (mut headers, mut locations) = (
            vec![std::ptr::null_mut(); room],
            vec![std::ptr::null_mut(); room],
        );
        shim::cere_loops(function, headers.as_mut_ptr(), locations.as_mut_ptr(), room);
        headers.into_iter().zip(locations).collect()
    }
}

fn one(
    module: LLVMModuleRef,
    function: LLVMValueRef,
    header: LLVMBasicBlockRef,
    marker: LLVMValueRef,
    region: &mut Region,
) {
    let (mut inputs, mut exits, mut pads, mut reason) = (0, 0, false, std::ptr::null());
    let place = format!(
        "in {} ({}:{})",
        region.function,
        region.file.display(),
        region.line
    );
    // SAFETY: function and header are live; the shim fills the results.
    let outlined = unsafe {
        shim::cere_outline(
            function,
            header,
            &mut inputs,
            &mut exits,
            &mut pads,
            &mut reason,
        )
    };
    region.exits = exits as u32;
    if outlined.is_null() {
        // SAFETY: the shim set a string literal.
        let text = unsafe { CStr::from_ptr(reason) };
        region.reason = Some(text.to_string_lossy().into_owned());
        return;
    }
    region.live_ins = live_ins(outlined, inputs);
    // SAFETY: all values are live and belong to the module.
    unsafe {
        let context = LLVMGetModuleContext(module);
        LLVMSetLinkage(outlined, LLVMLinkage::LLVMInternalLinkage);
        LLVMSetAlignment(outlined, 64);
        for attribute in ["alwaysinline", "inlinehint", "optnone"] {
            ir::remove_enum(outlined, attribute);
        }
        ir::add_enum(context, outlined, "noinline");
        if pads {
            resume_by_call(module, function);
        }
        probe::add(module, function, outlined, marker, region.index);
        for checked in [function, outlined] {
            if let Some(message) = ir::take(shim::cere_verify(checked)) {
                give_up(
                    region.index,
                    &place,
                    &format!("the verifier rejects it: {message}"),
                );
            }
        }
    }
    region.outlined = true;
}

fn live_ins(outlined: LLVMValueRef, inputs: usize) -> Vec<LiveIn> {
    // SAFETY: the function is live, the parameter numbers are in range.
    unsafe {
        (0..LLVMCountParams(outlined))
            .map(|i| {
                let parameter = LLVMGetParam(outlined, i);
                let text = LLVMPrintTypeToString(LLVMTypeOf(parameter));
                let r#type = CStr::from_ptr(text).to_string_lossy().into_owned();
                LLVMDisposeMessage(text);
                LiveIn {
                    name: ir::name(parameter),
                    r#type,
                    output: i as usize >= inputs,
                }
            })
            .collect()
    }
}

/// A `resume` that no landing pad of its function reaches counts as unreachable in the back end, and later
/// passes may remove the pads that reach it now; so all of them become the call they stand for.
///
/// # Safety
/// `function` is live and belongs to `module`.
unsafe fn resume_by_call(module: LLVMModuleRef, function: LLVMValueRef) {
    // SAFETY: by the contract; each instruction is erased only after its last use.
    unsafe {
        let context = LLVMGetModuleContext(module);
        let mut pointer = LLVMPointerTypeInContext(context, 0);
        let kind = LLVMFunctionType(LLVMVoidTypeInContext(context), &mut pointer, 1, 0);
        let builder = LLVMCreateBuilderInContext(context);
        for resume in ir::instructions(function) {
            if LLVMGetInstructionOpcode(resume) != LLVMOpcode::LLVMResume {
                continue;
            }
            let mut target = LLVMGetNamedFunction(module, c"_Unwind_Resume".as_ptr());
            if target.is_null() {
                target = LLVMAddFunction(module, c"_Unwind_Resume".as_ptr(), kind);
                ir::add_enum(context, target, "noreturn");
            }
            LLVMPositionBuilderBefore(builder, resume);
            let mut exception =
                LLVMBuildExtractValue(builder, LLVMGetOperand(resume, 0), 0, c"".as_ptr());
            LLVMBuildCall2(builder, kind, target, &mut exception, 1, c"".as_ptr());
            LLVMBuildUnreachable(builder);
            LLVMInstructionEraseFromParent(resume);
        }
        LLVMDisposeBuilder(builder);
    }
}

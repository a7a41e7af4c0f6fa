//! Turns loops, parallel regions and the bodies of chosen functions into functions of their own.

use crate::error::{PassError, Result};
use crate::places::{Place, Survey, text};
use crate::{ir, probe, shim};
use cere_format::build::{CompileCommand, Language, LiveIn, Region};
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMLinkage, LLVMOpcode};
use std::collections::HashSet;
use std::ffi::CStr;
use std::path::Path;
use std::ptr::null_mut;

/// Outlines every parallel region, the functions whose symbols are `chosen`, every outermost loop of the others and loops inside
/// what may communicate, each with a probe that names `marker` as its unit.
pub fn all(
    module: LLVMModuleRef,
    marker: LLVMValueRef,
    command: &CompileCommand,
    source: &Path,
    language: Language,
    chosen: &HashSet<String>,
) -> Result<Vec<Region>> {
    let mut regions = Vec::<Region>::new();
    let survey = Survey::of(module, command, source, language, chosen);
    let unwinds = language.facts().unwinds;
    for function in ir::functions(module) {
        // SAFETY: the function is live.
        let linkage = unsafe { LLVMGetLinkage(function) };
        // SAFETY: the function is live.
        let declared = unsafe { LLVMIsDeclaration(function) } != 0;
        if declared || linkage == LLVMLinkage::LLVMAvailableExternallyLinkage {
            continue;
        }
        let wanted = survey.list(function, &mut regions);
        outline_regions(module, function, &wanted, marker, unwinds, &mut regions)?;
    }
    // SAFETY: the module is live.
    unsafe { shim::cere_restore_types(module) };
    Ok(regions)
}

/// Attribute of a function that goes on unwinding by a call, and so needs a frame of its own under all flags: inlined into a
/// function that catches, the call would find the handler of that very frame chosen already, and run the cleanup again and again.
pub const OWN_FRAME: &str = "cere-own-frame";

/// Whether the function is defined here and holds a loop or forks a team.
pub fn has_regions(function: LLVMValueRef) -> bool {
    // SAFETY: the function is live; with no room nothing is written.
    unsafe {
        LLVMIsDeclaration(function) == 0
            && (shim::cere_forks(function, null_mut(), 0) > 0
                || shim::cere_loops(function, null_mut(), null_mut(), 0) > 0)
    }
}

/// Outlines the regions of one function: first all of them, then the probes, so that what one region's call
/// does to the arguments is known when the next one's are described.
fn outline_regions(
    module: LLVMModuleRef,
    function: LLVMValueRef,
    wanted: &[(Place, usize)],
    marker: LLVMValueRef,
    passes: bool,
    regions: &mut [Region],
) -> Result<()> {
    let inside = |place| matches!(place, Place::Loop { depth: 2.., .. });
    // SAFETY: function and places are live and belong to the module.
    unsafe {
        let unwinds = wanted.iter().any(|&(place, _)| match place {
            Place::Loop { header, .. } => shim::cere_has_invoke(function, header),
            Place::Fork(_) | Place::Function => false,
        });
        if unwinds {
            for &(place, _) in wanted {
                if let Place::Loop { header, .. } = place {
                    shim::cere_own_landing_pads(function, header);
                }
            }
            shim::cere_number_types(function);
        }
        let mut outlined = Vec::new();
        // Where the rest of the function is: a chosen one's moves last.
        let mut body = function;
        for &(place, at) in wanted {
            if let Some(new) = outline_region(module, function, place, &mut regions[at]) {
                check(&regions[at], &[function, new])?;
                outlined.push((place, new, at));
                if place == Place::Function {
                    body = new;
                }
            }
        }
        if unwinds {
            resume_by_call(module, body);
            let context = LLVMGetModuleContext(module);
            ir::add_enum(context, body, "noinline");
            ir::remove_enum(body, "inlinehint");
            ir::set_string(context, body, OWN_FRAME, "true");
        }
        for &(_, new, _) in &outlined {
            shim::cere_note_captures(new);
        }
        // The call of a loop inside is in the function of the loop around it, whose parameters are described before.
        let (within, others): (Vec<_>, Vec<_>) =
            outlined.iter().partition(|&&(place, ..)| inside(place));
        for &(_, new, _) in others.into_iter().chain(within.into_iter().rev()) {
            shim::cere_note_arguments(new);
        }
        for &(_, new, at) in &outlined {
            probe::add(module, new, marker, &regions[at], passes);
            check(&regions[at], &[function, body, new])?;
        }
        if body != function {
            for &(_, part, _) in &outlined {
                shim::cere_join_recursion(function, body, part);
            }
        }
    }
    Ok(())
}

/// Fails if the verifier rejects one of the functions.
///
/// # Safety
/// The functions are live.
unsafe fn check(region: &Region, functions: &[LLVMValueRef]) -> Result<()> {
    for &function in functions {
        // SAFETY: a live function; the shim returns a malloc'ed string or null.
        if let Some(message) = ir::take_string(unsafe { shim::cere_verify(function) }) {
            return Err(PassError::Region {
                index: region.index,
                function: region.function.clone(),
                place: format!("{}:{}", region.file.display(), region.line),
                reason: ir::one_line(&format!("the verifier rejects it: {message}")),
            });
        }
    }
    Ok(())
}

/// Outlines one region; `None` if it cannot be, with the reason in `region`.
///
/// # Safety
/// Function and place are live and belong to `module`.
unsafe fn outline_region(
    module: LLVMModuleRef,
    function: LLVMValueRef,
    place: Place,
    region: &mut Region,
) -> Option<LLVMValueRef> {
    let (mut inputs, mut exits, mut reason) = (0, 1, std::ptr::null());
    // SAFETY: function and place are live and of this module; the shim fills the results.
    unsafe {
        let outlined = match place {
            Place::Loop { header, .. } => {
                shim::cere_outline(function, header, &mut inputs, &mut exits, &mut reason)
            }
            Place::Fork(call) => shim::cere_outline_fork(call, &mut inputs, &mut reason),
            Place::Function => shim::cere_outline_function(function, &mut inputs),
        };
        region.exits = exits as u32;
        if outlined.is_null() {
            region.reason = text(reason);
            return None;
        }
        let outlined = shim::cere_return_results(outlined, &mut inputs);
        region.outlined = true;
        region.live_ins = live_ins(outlined, inputs);
        LLVMSetLinkage(outlined, LLVMLinkage::LLVMInternalLinkage);
        LLVMSetAlignment(outlined, 64);
        for attribute in ["alwaysinline", "inlinehint", "optnone"] {
            ir::remove_enum(outlined, attribute);
        }
        ir::add_enum(LLVMGetModuleContext(module), outlined, "noinline");
        Some(outlined)
    }
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
    // SAFETY: the function is live and of this module; each instruction is erased only after its last use.
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

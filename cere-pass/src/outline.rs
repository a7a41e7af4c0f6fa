//! Turns outermost loops and parallel regions into functions.

use crate::{ir, names, probe, shim};
use cere_format::build::{CompileCommand, Language, LiveIn, Region, RegionKind};
use llvm_sys::core::*;
use llvm_sys::debuginfo::LLVMInstructionGetDebugLoc;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMLinkage, LLVMOpcode};
use std::collections::HashSet;
use std::ffi::CStr;
use std::path::Path;

/// Prints why a region breaks the compile, so that the wrapper compiles again without it, and ends.
fn give_up(region: &Region, reason: &str) -> ! {
    let (index, file, line) = (region.index, region.file.display(), region.line);
    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    eprintln!(
        "cere: region {index} in {} ({file}:{line}): {reason}",
        region.function
    );
    eprintln!("CERE-RETRY-SKIP {index} {reason}");
    crate::end(77)
}

/// What becomes a region.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// The loop with this header.
    Loop(LLVMBasicBlockRef),
    /// This call, which forks a team.
    Fork(LLVMValueRef),
}

/// Outlines every parallel region and every outermost loop of the module, each with a probe that names `marker` as its
/// unit.
pub fn all(
    module: LLVMModuleRef,
    marker: LLVMValueRef,
    command: &CompileCommand,
    source: &Path,
    language: Language,
) -> Vec<Region> {
    let mut regions = Vec::<Region>::new();
    // Before anything is outlined: calls leave their functions with the loops around them.
    let in_loops = [false, true].map(|closed| called_in_loops(module, closed));
    let cxx = language == Language::Cxx;
    for function in ir::functions(module) {
        // SAFETY: the function is live.
        let linkage = unsafe { LLVMGetLinkage(function) };
        // SAFETY: the function is live.
        let declared = unsafe { LLVMIsDeclaration(function) } != 0;
        if declared || linkage == LLVMLinkage::LLVMAvailableExternallyLinkage {
            continue;
        }
        // SAFETY: the function is live.
        let parallel = unsafe { shim::cere_in_parallel(function) };
        let mut wanted = Vec::new();
        for (place, location) in places(function) {
            let mut region = describe(function, location, command, source);
            region.index = regions.len() as u32;
            region.kind = match place {
                Place::Loop(_) => RegionKind::Loop,
                Place::Fork(_) => RegionKind::Parallel,
            };
            let same = |r: &&Region| {
                (&r.function, &r.file, r.line) == (&region.function, &region.file, region.line)
            };
            region.ordinal = regions.iter().filter(same).count() as u32 + 1;
            let skip = command.skip.iter().find(|skip| skip.index == region.index);
            let refusal = || match place {
                Place::Loop(_) if parallel => Some(IN_PARALLEL.to_owned()),
                // SAFETY: function and header are live; the shim returns null or a string literal.
                Place::Loop(header) => unsafe { text(shim::cere_refusal(function, header)) },
                Place::Fork(_) => None,
            };
            let short = || match (place, &command.short) {
                (Place::Loop(header), Some(short)) => {
                    let profiled = short.iter().find(|s| s.is(&region));
                    let profiled = profiled.map(|s| {
                        format!(
                            "too short: {:.0} cycles an invocation in a profile",
                            s.cycles
                        )
                    });
                    profiled.or_else(|| too_short(function, header, &in_loops))
                }
                _ => None,
            };
            let skipped = skip.map(|skip| skip.reason.clone());
            region.reason = skipped.or_else(refusal).or_else(short);
            if region.reason.is_none() {
                wanted.push((place, regions.len()));
            }
            regions.push(region);
        }
        outline_regions(module, function, &wanted, marker, cxx, &mut regions);
    }
    // SAFETY: the module is live.
    unsafe { shim::cere_restore_types(module) };
    regions
}

/// The functions whose calls are all in loops; `closed`: and that nothing else can call.
fn called_in_loops(module: LLVMModuleRef, closed: bool) -> HashSet<LLVMValueRef> {
    // SAFETY: the module is live; the shim writes at most `room` entries and returns how many there are.
    unsafe {
        let room = shim::cere_called_in_loops(module, closed, std::ptr::null_mut(), 0);
        let mut functions = vec![std::ptr::null_mut(); room];
        shim::cere_called_in_loops(module, closed, functions.as_mut_ptr(), room);
        functions.into_iter().collect()
    }
}

/// Why the code alone shows that the loop is too short; `in_loops`: of [`called_in_loops`], open and closed.
fn too_short(
    function: LLVMValueRef,
    header: LLVMBasicBlockRef,
    [open, closed]: &[HashSet<LLVMValueRef>; 2],
) -> Option<String> {
    if !open.contains(&function) {
        return None;
    }
    // SAFETY: function and header are live; the shim returns null or a string literal.
    unsafe {
        text(shim::cere_too_short(
            function,
            header,
            closed.contains(&function),
        ))
    }
}

/// Attribute of a function that goes on unwinding by a call, and so needs a frame of its own under all flags: inlined into a
/// function that catches, the call would find the handler of that very frame chosen already, and run the cleanup again and again.
pub const OWN_FRAME: &str = "cere-own-frame";

const IN_PARALLEL: &str = "it runs within a parallel region, which is a region itself";

fn describe(
    function: LLVMValueRef,
    location: LLVMMetadataRef,
    command: &CompileCommand,
    source: &Path,
) -> Region {
    let (file, line) =
        names::place(location, &command.directory).unwrap_or_else(|| (source.to_owned(), 0));
    Region {
        kind: RegionKind::default(),
        index: 0,
        ordinal: 1,
        function: names::function(function),
        symbol: ir::name(function),
        file,
        line,
        outlined: false,
        reason: None,
        live_ins: Vec::new(),
        exits: 0,
    }
}

/// A string literal of the shim's, or null.
///
/// # Safety
/// `literal` is null or a C string.
unsafe fn text(literal: *const libc::c_char) -> Option<String> {
    if literal.is_null() {
        return None;
    }
    // SAFETY: it is no null pointer, so a C string.
    let literal = unsafe { CStr::from_ptr(literal) };
    Some(literal.to_string_lossy().into_owned())
}

/// Whether the function is defined here and holds a loop or forks a team.
pub fn has_regions(function: LLVMValueRef) -> bool {
    // SAFETY: the function is live; with no room nothing is written.
    unsafe {
        LLVMIsDeclaration(function) == 0
            && (shim::cere_forks(function, std::ptr::null_mut(), 0) > 0
                || shim::cere_loops(function, std::ptr::null_mut(), std::ptr::null_mut(), 0) > 0)
    }
}

/// Parallel regions first: a loop may hold some.
fn places(function: LLVMValueRef) -> Vec<(Place, LLVMMetadataRef)> {
    // SAFETY: the shim writes at most `room` entries and returns how many there are.
    unsafe {
        let room = shim::cere_forks(function, std::ptr::null_mut(), 0);
        let mut forks = vec![std::ptr::null_mut(); room];
        shim::cere_forks(function, forks.as_mut_ptr(), room);
        let room = shim::cere_loops(function, std::ptr::null_mut(), std::ptr::null_mut(), 0);
        let (mut headers, mut locations) = (
            vec![std::ptr::null_mut(); room],
            vec![std::ptr::null_mut(); room],
        );
        shim::cere_loops(function, headers.as_mut_ptr(), locations.as_mut_ptr(), room);
        let forks = forks
            .into_iter()
            .map(|call| (Place::Fork(call), LLVMInstructionGetDebugLoc(call)));
        let loops = headers.into_iter().map(Place::Loop).zip(locations);
        forks.chain(loops).collect()
    }
}

/// Outlines the regions of one function: first all of them, then the probes, so that what one region's call
/// does to the arguments is known when the next one's are described.
fn outline_regions(
    module: LLVMModuleRef,
    function: LLVMValueRef,
    wanted: &[(Place, usize)],
    marker: LLVMValueRef,
    cxx: bool,
    regions: &mut [Region],
) {
    // SAFETY: function and places are live and belong to the module.
    unsafe {
        let unwinds = wanted.iter().any(|&(place, _)| match place {
            Place::Loop(header) => shim::cere_has_invoke(function, header),
            Place::Fork(_) => false,
        });
        if unwinds {
            for &(place, _) in wanted {
                if let Place::Loop(header) = place {
                    shim::cere_own_landing_pads(function, header);
                }
            }
            shim::cere_number_types(function);
        }
        let mut outlined = Vec::new();
        for &(place, at) in wanted {
            if let Some(new) = outline_region(module, function, place, &mut regions[at]) {
                check(&regions[at], &[function, new]);
                outlined.push((new, at));
            }
        }
        if unwinds {
            resume_by_call(module, function);
            let context = LLVMGetModuleContext(module);
            ir::add_enum(context, function, "noinline");
            ir::remove_enum(function, "inlinehint");
            ir::set_string(context, function, OWN_FRAME, "true");
        }
        for &(new, _) in &outlined {
            shim::cere_note_captures(new);
        }
        for &(new, _) in &outlined {
            shim::cere_note_arguments(new);
        }
        for &(new, at) in &outlined {
            probe::add(module, new, marker, &regions[at], cxx);
            check(&regions[at], &[function, new]);
        }
    }
}

/// Ends the compile if the verifier rejects one of the functions.
///
/// # Safety
/// The functions are live.
unsafe fn check(region: &Region, functions: &[LLVMValueRef]) {
    for &function in functions {
        // SAFETY: a live function; the shim returns a malloc'ed string or null.
        if let Some(message) = ir::take_string(unsafe { shim::cere_verify(function) }) {
            give_up(region, &format!("the verifier rejects it: {message}"));
        }
    }
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
            Place::Loop(header) => {
                shim::cere_outline(function, header, &mut inputs, &mut exits, &mut reason)
            }
            Place::Fork(call) => shim::cere_outline_fork(call, &mut inputs, &mut reason),
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

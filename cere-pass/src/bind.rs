//! Binds a unit's symbols for a replay, after optimisation.

use crate::captured::Captured;
use crate::symbols::{
    assembled_locals, declare, drop_assembly, fix_address, keep_reached, make_plain, publish,
    second_name,
};
use crate::unit::run;
use crate::{ir, labels, lost, shapes, shim};
use cere_format::build::BindPlan;
use llvm_sys::LLVMLinkage;
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use std::collections::HashSet;

/// Keeps shape and alignment of variables through the pipeline, and leaves out what the region does not reach.
pub fn pin(module: LLVMModuleRef, plan: &BindPlan) -> Result<(), String> {
    shapes::mark(module);
    let captured = Captured::of(plan);
    if let Some(roots) = &plan.roots
        && lacks_some_of(module, &captured, roots)
    {
        // The build's optimiser made most of them another variable at its start, whole unit in view: done again, they are
        // the image's.
        run(module, c"globalopt")?;
    }
    // What only the rest of the unit writes is written.
    let all = ir::defined(ir::globals(module)).into_iter();
    let pinned: Vec<String> = all
        .filter(|v| captured.has(module, *v) || written(*v))
        .map(ir::name)
        .collect();
    if let Some(roots) = &plan.roots {
        keep_reached(module, named(module, roots));
    }
    for name in pinned {
        if let Some(variable) = ir::variable(module, &name) {
            // SAFETY: the variable is live and defined.
            unsafe { shim::cere_pin(variable) };
        }
    }
    Ok(())
}

/// The module's functions of these names.
fn named(module: LLVMModuleRef, names: &[String]) -> Vec<LLVMValueRef> {
    names
        .iter()
        .filter_map(|n| ir::function(module, n))
        .collect()
}

/// Whether functions reach variables with a state that the captured image lacks.
fn lacks_some_of(module: LLVMModuleRef, captured: &Captured, roots: &[String]) -> bool {
    let all = ir::defined(ir::globals(module)).into_iter();
    let mut lost: Vec<LLVMValueRef> = all
        .filter(|v| !captured.has(module, *v) && written(*v))
        .collect();
    let mut roots = named(module, roots);
    // SAFETY: all of them are live.
    unsafe {
        let (roots, count) = (roots.as_mut_ptr(), roots.len());
        shim::cere_reach_any(roots, count, lost.as_mut_ptr(), lost.len())
    }
}

/// Applies the plan to the module.
pub fn bind(module: LLVMModuleRef, plan: &BindPlan) -> Result<(), String> {
    if plan.typed {
        // SAFETY: the module is live.
        unsafe { shim::cere_tell_types(module) };
    }
    ir::drop_lists(module, &["llvm.global_ctors", "llvm.global_dtors"]);
    for function in named(module, &plan.overridden) {
        // SAFETY: the function is live.
        unsafe { shim::cere_drop_body(function) };
    }
    labels::bind(module, plan)?;
    // SAFETY: the module is live.
    unsafe { shim::cere_resolve_at_calls(module) };
    let listed: HashSet<&str> = plan.functions.iter().map(String::as_str).collect();
    // What the unit's own assembly defines is the captured image's, as of an object without IR.
    let assembled = assembled_locals(module);
    drop_assembly(module);
    for function in ir::functions(module).into_iter().chain(ir::aliases(module)) {
        let name = ir::name(function);
        if listed.contains(name.as_str()) {
            // SAFETY: the function is live.
            unsafe { fix_address(module, function, &format!("{}at.{name}", plan.prefix)) };
        }
    }
    let captured = Captured::of(plan);
    let untouched: HashSet<&str> = plan.untouched.iter().map(String::as_str).collect();
    let mut lacking = Vec::new();
    let values = ir::globals(module).into_iter().chain(ir::functions(module));
    for value in values.chain(ir::aliases(module)) {
        let name = ir::name(value);
        // SAFETY: the value is live.
        unsafe {
            let defined = LLVMIsDeclaration(value) == 0;
            let local = LLVMGetLinkage(value) == LLVMLinkage::LLVMInternalLinkage;
            let bound = defined && captured.knows(&name) && !LLVMIsAGlobalVariable(value).is_null();
            let prefixed = format!("{}{name}", plan.prefix);
            if !defined && assembled.contains(&name) {
                if !LLVMIsAGlobalVariable(value).is_null() && captured.knows(&name) {
                    publish(value, &prefixed);
                } else if listed.contains(name.as_str()) {
                    // Where it is, as `fix_address` has named it.
                    let at = ir::variable(module, &format!("{}at.{name}", plan.prefix));
                    LLVMReplaceAllUsesWith(value, at.ok_or("a function without its address")?);
                }
                continue;
            }
            if bound
                && plan.pinned
                && untouched.contains(name.as_str())
                && shim::cere_only_read(value)
            {
                continue;
            }
            if bound && local && plan.pinned && !captured.has(module, value) {
                lacking.push(value);
            } else if bound {
                declare(module, value);
                if local {
                    publish(value, &prefixed);
                }
            } else if name == "main" && defined {
                publish(value, &prefixed);
            } else if local && !LLVMIsAFunction(value).is_null() {
                second_name(module, value, &prefixed);
            } else if plan.pinned
                && defined
                && !LLVMIsAGlobalVariable(value).is_null()
                && !LLVMGetFirstUse(value).is_null()
                && written(value)
            {
                lacking.push(value);
            }
        }
    }
    let others = plan.other_thread_locals.iter();
    for variable in others.filter_map(|name| ir::variable(module, name)) {
        // SAFETY: the variable is live.
        unsafe {
            if LLVMIsDeclaration(variable) != 0 && LLVMIsThreadLocal(variable) != 0 {
                make_plain(module, variable);
            }
        }
    }
    // Last, as they name others.
    lost::lose_all(module, lacking, &captured);
    shapes::unmark(module);
    // SAFETY: the module is live.
    unsafe { shim::cere_resolve_aliases(module) };
    Ok(())
}

/// Whether a variable is the program's and something writes it.
fn written(variable: LLVMValueRef) -> bool {
    // SAFETY: the variable is live.
    !ours(variable) && unsafe { !shim::cere_unwritten(variable) }
}

/// Whether a variable is LLVM's or the pass's own.
fn ours(variable: LLVMValueRef) -> bool {
    let name = ir::name(variable);
    ["llvm.", "cere."].iter().any(|own| name.starts_with(own))
}

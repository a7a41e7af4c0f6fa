//! Binds a unit's symbols for a replay, after optimisation.

use crate::split::keep_reached;
use crate::{ir, shim};
use cere_format::build::BindPlan;
use llvm_sys::comdat::LLVMSetComdat;
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::target::{
    LLVMABISizeOfType, LLVMGetModuleDataLayout, LLVMPreferredAlignmentOfGlobal,
};
use llvm_sys::{LLVMLinkage, LLVMVisibility};
use std::collections::HashSet;
use std::ptr::null_mut;

/// Keeps shape and alignment of captured variables through the pipeline, and leaves out what the region does not reach.
pub fn pin(module: LLVMModuleRef, plan: &BindPlan) {
    let captured: HashSet<&str> = plan.variables.iter().map(String::as_str).collect();
    // What the build's optimiser reshaped under its own name, this pipeline may reshape likewise.
    let is_kept = |v: &LLVMValueRef| {
        // SAFETY: the variable is live and defined.
        captured.contains(ir::name(*v).as_str()) && !unsafe { reshaped(module, *v, plan) }
    };
    let (kept, others): (Vec<_>, Vec<_>) = ir::globals(module)
        .into_iter()
        // SAFETY: the variable is live.
        .filter(|v| unsafe { LLVMIsDeclaration(*v) } == 0)
        .partition(is_kept);
    // SAFETY: the variable is live.
    let written = |v: &LLVMValueRef| !ours(*v) && unsafe { !shim::cere_unwritten(*v) };
    let mut lost: Vec<LLVMValueRef> = others.into_iter().filter(written).collect();
    if let Some(roots) = &plan.roots {
        let names: HashSet<&str> = roots.iter().map(String::as_str).collect();
        let functions = ir::functions(module).into_iter();
        let mut roots: Vec<LLVMValueRef> = functions
            .filter(|f| names.contains(ir::name(*f).as_str()))
            .collect();
        // What becomes of these depends on all that uses them.
        // SAFETY: all of them are live.
        let depends = unsafe {
            let (roots, count) = (roots.as_mut_ptr(), roots.len());
            shim::cere_reach_any(roots, count, lost.as_mut_ptr(), lost.len())
        };
        if !depends {
            keep_reached(module, roots);
        }
    }
    for variable in kept {
        // SAFETY: the variable is live.
        unsafe {
            if LLVMIsDeclaration(variable) == 0 {
                shim::cere_pin(variable);
            }
        }
    }
}

/// Applies the plan to the module. Fails if a thread-local variable is in neither the captured block nor the plan.
pub fn bind(module: LLVMModuleRef, plan: &BindPlan) -> Result<(), String> {
    if plan.typed {
        // SAFETY: the module is live.
        unsafe { shim::cere_tell_types(module) };
    }
    ir::drop_lists(module, &["llvm.global_ctors", "llvm.global_dtors"]);
    let listed: HashSet<&str> = plan.functions.iter().map(String::as_str).collect();
    for function in ir::functions(module).into_iter().chain(ir::aliases(module)) {
        let name = ir::name(function);
        if listed.contains(name.as_str()) {
            // SAFETY: the function is live.
            unsafe { fix_address(module, function, &format!("{}at.{name}", plan.prefix)) };
        }
    }
    let captured: HashSet<&str> = plan.variables.iter().map(String::as_str).collect();
    let values = ir::globals(module).into_iter().chain(ir::functions(module));
    for value in values.chain(ir::aliases(module)) {
        let name = ir::name(value);
        // SAFETY: the value is live.
        unsafe {
            let defined = LLVMIsDeclaration(value) == 0;
            let local = LLVMGetLinkage(value) == LLVMLinkage::LLVMInternalLinkage;
            let bound = defined
                && captured.contains(name.as_str())
                && !LLVMIsAGlobalVariable(value).is_null();
            let prefixed = format!("{}{name}", plan.prefix);
            if bound && local && plan.pinned && reshaped(module, value, plan) {
                lose(module, value, &plan.prefix)?;
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
                && !ours(value)
                && !LLVMGetFirstUse(value).is_null()
                && !shim::cere_unwritten(value)
            {
                lose(module, value, &plan.prefix)?;
            }
        }
    }
    // SAFETY: the module is live.
    unsafe { shim::cere_resolve_aliases(module) };
    Ok(())
}

/// Whether a local variable takes other room than in the captured program: a part that the optimiser split off bears the
/// name of another part there.
unsafe fn reshaped(module: LLVMModuleRef, variable: LLVMValueRef, plan: &BindPlan) -> bool {
    let captured = plan.sizes.as_ref().and_then(|s| s.get(&ir::name(variable)));
    // SAFETY: the variable is live and defined.
    captured.is_some_and(|captured| *captured != unsafe { size(module, variable) })
}

/// Bytes of a variable.
unsafe fn size(module: LLVMModuleRef, variable: LLVMValueRef) -> u64 {
    // SAFETY: module and variable are live; the type of a definition has a size.
    unsafe {
        LLVMABISizeOfType(
            LLVMGetModuleDataLayout(module),
            LLVMGlobalGetValueType(variable),
        )
    }
}

/// Whether a variable is LLVM's or the pass's own.
fn ours(variable: LLVMValueRef) -> bool {
    let name = ir::name(variable);
    ["llvm.", "cere."].iter().any(|own| name.starts_with(own))
}

/// Turns a variable that the captured image does not have (its build's optimiser split, shrank or removed it) into a
/// reference to a place that ends the replay when it is used.
unsafe fn lose(module: LLVMModuleRef, variable: LLVMValueRef, prefix: &str) -> Result<(), String> {
    let name = ir::name(variable);
    // SAFETY: the variable is live and has an initialiser.
    unsafe {
        if LLVMIsThreadLocal(variable) != 0 {
            return Err(format!(
                "the captured program does not have the thread-local variable {name}, which these flags keep: \
                 replay with an -O level like the build's"
            ));
        }
        let size = size(module, variable);
        declare(module, variable);
        publish(variable, &format!("{prefix}lost.{size}.{name}"));
    }
    Ok(())
}

/// Turns a variable's definition into a reference to the captured one. Code generation still sees the
/// initialiser (it expands copies and comparisons of constants) and the alignment of the definition.
pub unsafe fn declare(module: LLVMModuleRef, variable: LLVMValueRef) {
    // SAFETY: the variable is live and has an initialiser.
    unsafe {
        if LLVMGetAlignment(variable) == 0 {
            let layout = LLVMGetModuleDataLayout(module);
            LLVMSetAlignment(variable, LLVMPreferredAlignmentOfGlobal(layout, variable));
        }
        LLVMSetComdat(variable, null_mut());
        LLVMSetSection(variable, c"".as_ptr());
        LLVMSetLinkage(variable, LLVMLinkage::LLVMAvailableExternallyLinkage);
    }
}

/// A hidden global name for a local function, which keeps its own: calls inside the unit are encoded as they were.
pub unsafe fn second_name(module: LLVMModuleRef, function: LLVMValueRef, name: &str) {
    // SAFETY: module and function are live.
    unsafe {
        let kind = LLVMGlobalGetValueType(function);
        let alias = LLVMAddAlias2(module, kind, 0, function, ir::c(name).as_ptr());
        LLVMSetVisibility(alias, LLVMVisibility::LLVMHiddenVisibility);
        shim::cere_set_dso_local(alias);
    }
}

pub unsafe fn publish(value: LLVMValueRef, name: &str) {
    // SAFETY: the value is live.
    unsafe {
        LLVMSetVisibility(value, LLVMVisibility::LLVMHiddenVisibility);
        shim::cere_set_dso_local(value);
    }
    ir::set_name(value, name);
}

/// Lets every use as a value, not as a call's target, name the symbol `at` instead.
pub unsafe fn fix_address(module: LLVMModuleRef, function: LLVMValueRef, at: &str) {
    // SAFETY: module and function are live.
    unsafe {
        let byte = LLVMInt8TypeInContext(LLVMGetModuleContext(module));
        let address = LLVMAddGlobal(module, byte, ir::c(at).as_ptr());
        // The same way of reaching it as the function's, so that the same instructions are chosen.
        LLVMSetVisibility(address, LLVMGetVisibility(function));
        shim::cere_copy_dso_local(function, address);
        shim::cere_replace_values(function, address);
    }
}

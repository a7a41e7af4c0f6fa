//! Binds a unit's symbols for a replay, after optimisation.

use crate::captured::Captured;
use crate::error::{PassError, Result};
use crate::symbols::{
    assembled_locals, declare, drop_assembly, fix_address, keep_reached, make_plain, publish,
    second_name,
};
use crate::unit::run;
use crate::{ir, labels, lost, shapes, shim};
use cere_format::build::{Ablation, BindPlan};
use llvm_sys::LLVMLinkage;
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use std::collections::HashSet;

/// Keeps shape and alignment of variables through the pipeline, and leaves out what the region does not reach.
pub fn pin(module: LLVMModuleRef, plan: &BindPlan) -> Result<()> {
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
    if plan.traced {
        // SAFETY: the module is live.
        unsafe { shim::cere_tell_stores(module) };
    }
    if plan.ablation == Some(Ablation::Dependences) {
        // SAFETY: sets what the pass before the vectoriser reads, in this thread.
        unsafe { shim::cere_all_parallel() };
    }
    Ok(())
}

/// Takes a cause of time out of the optimised code.
fn ablate(module: LLVMModuleRef, plan: &BindPlan) {
    let what = match plan.ablation {
        None | Some(Ablation::Dependences) => return,
        Some(Ablation::Chains) => 0,
        Some(Ablation::Divisions) => 1,
        Some(Ablation::Stores) => 2,
    };
    // SAFETY: the module is live.
    unsafe { shim::cere_ablate(module, what) };
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
pub fn bind(module: LLVMModuleRef, plan: &BindPlan) -> Result<()> {
    ablate(module, plan);
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
    let binding = Binding {
        module,
        plan,
        captured: Captured::of(plan),
        listed: plan.functions.iter().map(String::as_str).collect(),
        untouched: plan.untouched.iter().map(String::as_str).collect(),
        assembled: assembled_locals(module),
    };
    drop_assembly(module);
    binding.fix_addresses();
    let mut lacking = Vec::new();
    let values = ir::globals(module).into_iter().chain(ir::functions(module));
    for value in values.chain(ir::aliases(module)) {
        if binding.bind(value)? {
            lacking.push(value);
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
    lost::lose_all(module, lacking, &binding.captured);
    shapes::unmark(module);
    // SAFETY: the module is live.
    unsafe { shim::cere_resolve_aliases(module) };
    Ok(())
}

/// A module that is bound, and what decides how.
struct Binding<'a> {
    module: LLVMModuleRef,
    plan: &'a BindPlan,
    captured: Captured<'a>,
    /// Functions with a place in the captured image.
    listed: HashSet<&'a str>,
    untouched: HashSet<&'a str>,
    /// What the unit's own assembly defines: it is the captured image's, as of an object without IR.
    assembled: HashSet<String>,
}

impl Binding<'_> {
    fn symbol_of_address(&self, name: &str) -> String {
        format!("{}at.{name}", self.plan.prefix)
    }

    fn fix_addresses(&self) {
        let functions = ir::functions(self.module).into_iter();
        for function in functions.chain(ir::aliases(self.module)) {
            let name = ir::name(function);
            if self.listed.contains(name.as_str()) {
                // SAFETY: the function is live.
                unsafe { fix_address(self.module, function, &self.symbol_of_address(&name)) };
            }
        }
    }

    /// Binds a variable, a function or an alias. Whether it is a variable with a state that the captured image lacks.
    fn bind(&self, value: LLVMValueRef) -> Result<bool> {
        let (module, plan) = (self.module, self.plan);
        let name = ir::name(value);
        let prefixed = format!("{}{name}", plan.prefix);
        // SAFETY: the value is live and of this module.
        unsafe {
            let defined = LLVMIsDeclaration(value) == 0;
            let local = LLVMGetLinkage(value) == LLVMLinkage::LLVMInternalLinkage;
            let variable = !LLVMIsAGlobalVariable(value).is_null();
            if !defined && self.assembled.contains(&name) {
                if variable && self.captured.knows(&name) {
                    publish(value, &prefixed);
                } else if self.listed.contains(name.as_str()) {
                    // Where it is, as `fix_address` has named it.
                    let at = ir::variable(module, &self.symbol_of_address(&name));
                    LLVMReplaceAllUsesWith(value, at.ok_or(PassError::NoAddress(name))?);
                }
                return Ok(false);
            }
            if defined && variable && self.captured.knows(&name) {
                let untouched = plan.pinned && self.untouched.contains(name.as_str());
                if untouched && shim::cere_only_read(value) {
                    return Ok(false);
                }
                if local && plan.pinned && !self.captured.has(module, value) {
                    return Ok(true);
                }
                declare(module, value);
                if local {
                    publish(value, &prefixed);
                }
            } else if name == "main" && defined {
                publish(value, &prefixed);
            } else if local && !LLVMIsAFunction(value).is_null() {
                second_name(module, value, &prefixed);
            } else if plan.pinned && defined && variable {
                return Ok(!LLVMGetFirstUse(value).is_null() && written(value));
            }
        }
        Ok(false)
    }
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

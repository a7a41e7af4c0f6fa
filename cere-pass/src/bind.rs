//! Binds a unit's symbols for a replay, after optimisation.

use crate::split::keep_reached;
use crate::unit::run;
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
pub fn pin(module: LLVMModuleRef, plan: &BindPlan) -> Result<(), String> {
    let captured = Captured::of(plan);
    let mut alone = false;
    if let Some(roots) = &plan.roots {
        // What becomes of variables that the image lacks depends on all that uses them. The build's optimiser made most of
        // them another variable at its start, whole unit in view: done again, they are the image's.
        alone = !captured.lacks_some_of(module, roots, |_| true);
        if !alone {
            run(module, c"globalopt")?;
            // One that is not there at all serves the region alone.
            alone = !captured.lacks_some_of(module, roots, |v| !captured.removed(v));
        }
        if alone {
            keep_reached(module, named(module, roots));
        }
    }
    for variable in ir::defined(ir::globals(module)) {
        // In a hybrid binary the region's part has those that the build removed in memory as well.
        if captured.has(module, variable) || alone && captured.removed(variable) {
            // SAFETY: the variable is live.
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

/// The variables of the captured image.
struct Captured<'a> {
    names: HashSet<&'a str>,
    plan: &'a BindPlan,
}

impl<'a> Captured<'a> {
    fn of(plan: &'a BindPlan) -> Self {
        let names = plan.variables.iter().map(String::as_str).collect();
        Self { names, plan }
    }

    /// Whether a variable is there as it is here: what the build's optimiser reshaped under its own name, this pipeline
    /// may reshape likewise.
    fn has(&self, module: LLVMModuleRef, variable: LLVMValueRef) -> bool {
        let listed = self.names.contains(ir::name(variable).as_str());
        // SAFETY: the variable is live and defined.
        listed && !unsafe { reshaped(module, variable, self.plan) }
    }

    /// Whether a variable with a state is not there, nor any part of it.
    fn removed(&self, variable: LLVMValueRef) -> bool {
        let name = ir::name(variable);
        let part = |rest: &str| rest.is_empty() || rest.starts_with('.');
        let of_it = |n: &&str| n.strip_prefix(whole(&name)).is_some_and(part);
        written(variable) && !self.names.iter().any(of_it)
    }

    /// Whether functions reach variables with a state that are not there, `counted` ones.
    fn lacks_some_of(
        &self,
        module: LLVMModuleRef,
        roots: &[String],
        counted: impl Fn(LLVMValueRef) -> bool,
    ) -> bool {
        let all = ir::defined(ir::globals(module)).into_iter();
        let mut lost: Vec<LLVMValueRef> = all
            .filter(|v| !self.has(module, *v) && written(*v) && counted(*v))
            .collect();
        let mut roots = named(module, roots);
        // SAFETY: all of them are live.
        unsafe {
            let (roots, count) = (roots.as_mut_ptr(), roots.len());
            shim::cere_reach_any(roots, count, lost.as_mut_ptr(), lost.len())
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
    let captured = Captured::of(plan);
    let values = ir::globals(module).into_iter().chain(ir::functions(module));
    for value in values.chain(ir::aliases(module)) {
        let name = ir::name(value);
        // SAFETY: the value is live.
        unsafe {
            let defined = LLVMIsDeclaration(value) == 0;
            let local = LLVMGetLinkage(value) == LLVMLinkage::LLVMInternalLinkage;
            let bound = defined
                && captured.names.contains(name.as_str())
                && !LLVMIsAGlobalVariable(value).is_null();
            let prefixed = format!("{}{name}", plan.prefix);
            if bound && local && plan.pinned && !captured.has(module, value) {
                lose(module, value, &captured)?;
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
                lose(module, value, &captured)?;
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

/// The variable that `name` may be a part of. The optimiser names parts after their variable and numbers them, here maybe
/// otherwise than in the build; `.b` is the bit that stands for one of two values.
fn whole(name: &str) -> &str {
    let numbered = |last: &str| !last.is_empty() && last.bytes().all(|b| b.is_ascii_digit());
    match name.rsplit_once('.') {
        Some((rest, last)) if !rest.is_empty() && (last == "b" || numbered(last)) => whole(rest),
        _ => name,
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

/// Turns a variable that the captured image does not have (its build's optimiser split, shrank or removed it) into a
/// reference to a place of its own, in whose name is whether parts of it are there.
unsafe fn lose(
    module: LLVMModuleRef,
    variable: LLVMValueRef,
    captured: &Captured,
) -> Result<(), String> {
    let kind = match captured.removed(variable) {
        true => "removed",
        false => "lost",
    };
    let prefix = &captured.plan.prefix;
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
        publish(variable, &format!("{prefix}{kind}.{size}.{name}"));
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

#[cfg(test)]
mod tests {
    use super::whole;

    #[test]
    fn parts_belong_to_their_variable() {
        for (name, variable) in [
            ("tmp1", "tmp1"),
            ("field.3", "field"),
            ("field.3.b", "field"),
            ("solve.scratch", "solve.scratch"),
            ("solve.scratch.0.12", "solve.scratch"),
            (".str.4", ".str"),
            (".7", ".7"),
            ("name.", "name."),
        ] {
            assert_eq!(whole(name), variable);
        }
    }
}

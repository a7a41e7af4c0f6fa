//! Binds a unit's symbols for a replay, after optimisation.

use crate::split::keep_reached;
use crate::unit::run;
use crate::{ir, lost, shapes, shim};
use cere_format::build::{BindPlan, Piece};
use llvm_sys::comdat::LLVMSetComdat;
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::target::{
    LLVMABISizeOfType, LLVMGetModuleDataLayout, LLVMPreferredAlignmentOfGlobal,
};
use llvm_sys::{LLVMLinkage, LLVMVisibility};
use std::collections::{HashMap, HashSet};
use std::ptr::null_mut;

/// Keeps shape and alignment of variables through the pipeline, and leaves out what the region does not reach.
pub fn pin(module: LLVMModuleRef, plan: &BindPlan) -> Result<(), String> {
    shapes::mark(module);
    let captured = Captured::of(plan);
    if let Some(roots) = &plan.roots
        && captured.lacks_some_of(module, roots)
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

/// The variables of the captured image.
pub struct Captured<'a> {
    names: HashSet<&'a str>,
    /// Where the bytes of variables of the unit are, by the variable.
    places: HashMap<&'a str, Vec<(&'a str, &'a Piece)>>,
    /// The plan.
    pub plan: &'a BindPlan,
}

impl<'a> Captured<'a> {
    fn of(plan: &'a BindPlan) -> Self {
        let names: HashSet<&str> = plan.variables.iter().map(String::as_str).collect();
        let mut places: HashMap<_, Vec<_>> = HashMap::new();
        for (symbol, pieces) in plan.shapes.iter().flatten() {
            for piece in pieces {
                let of_it = places.entry(piece.variable.as_str()).or_default();
                of_it.push((symbol.as_str(), piece));
            }
        }
        Self {
            names,
            places,
            plan,
        }
    }

    /// Whether a variable is there as it is here.
    fn has(&self, module: LLVMModuleRef, variable: LLVMValueRef) -> bool {
        let name = ir::name(variable);
        if !self.names.contains(name.as_str()) {
            return false;
        }
        let here = shapes::pieces(variable);
        match &self.plan.shapes {
            Some(shapes) if !here.is_empty() => shapes.get(&name) == Some(&here),
            // SAFETY: the variable is live and defined.
            _ => !unsafe { resized(module, variable, self.plan) },
        }
    }

    /// Where the image has bytes of the variable that the unit's IR calls so: its symbols, and what of it they are.
    pub fn places(&self, variable: &str) -> &[(&'a str, &'a Piece)] {
        self.places.get(variable).map_or(&[], Vec::as_slice)
    }

    /// Whether the address of a symbol of the image is known.
    pub fn knows(&self, symbol: &str) -> bool {
        self.names.contains(symbol)
    }

    /// Whether functions reach variables with a state that are not there.
    fn lacks_some_of(&self, module: LLVMModuleRef, roots: &[String]) -> bool {
        let all = ir::defined(ir::globals(module)).into_iter();
        let mut lost: Vec<LLVMValueRef> = all
            .filter(|v| !self.has(module, *v) && written(*v))
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
    let untouched: HashSet<&str> = plan.untouched.iter().map(String::as_str).collect();
    let mut lacking = Vec::new();
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
    // Last, as they name others.
    lost::lose_all(module, lacking, &captured)?;
    shapes::unmark(module);
    // SAFETY: the module is live.
    unsafe { shim::cere_resolve_aliases(module) };
    Ok(())
}

/// Whether a local variable takes other room than in the captured program.
unsafe fn resized(module: LLVMModuleRef, variable: LLVMValueRef, plan: &BindPlan) -> bool {
    let captured = plan.sizes.as_ref().and_then(|s| s.get(&ir::name(variable)));
    // SAFETY: the variable is live and defined.
    captured.is_some_and(|captured| *captured != unsafe { size(module, variable) })
}

/// Bytes of a variable.
pub unsafe fn size(module: LLVMModuleRef, variable: LLVMValueRef) -> u64 {
    // SAFETY: module and variable are live; the type of a definition has a size.
    unsafe {
        LLVMABISizeOfType(
            LLVMGetModuleDataLayout(module),
            LLVMGlobalGetValueType(variable),
        )
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

//! Parts of a unit for a hybrid binary: a region with flags of its own, or the rest of the unit without such regions.
//!
//! What goes through the pipeline for a region's part is what the region reaches, as in a replay, so that both have the
//! same machine code. What it calls it takes along in copies of its own; variables, and functions whose address is a
//! value, are the rest's.

use crate::error::{PassError, Result};
use crate::symbols::{
    assembled_locals, declare, drop_assembly, fix_address, keep_reached, publish, second_name,
};
use crate::unit::run;
use crate::{ir, labels, shim, team, vectors};
use cere_format::abi::OUTLINED_SYMBOL_PREFIX;
use cere_format::build::SplitPlan;
use llvm_sys::comdat::LLVMSetComdat;
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMLinkage, LLVMUnnamedAddr};
use std::collections::HashSet;
use std::ptr::null_mut;

/// Before the pipeline: regions that are parts of their own become declarations of those, as what is derived from their
/// body here need not hold for theirs. What several parts use keeps its shape.
pub fn prepare(module: LLVMModuleRef, plan: &SplitPlan) -> Result<()> {
    labels::forget(module);
    for index in &plan.regions {
        let outlined = outlined(module, *index).ok_or(PassError::NoRegion(*index))?;
        if plan.part != Some(*index) {
            // SAFETY: the function is live.
            unsafe {
                shim::cere_drop_body(outlined);
                LLVMSetLinkage(outlined, LLVMLinkage::LLVMExternalLinkage);
                publish(outlined, &format!("{}{index}", plan.prefix));
            }
        }
    }
    if let Some(index) = plan.part {
        let root = outlined(module, index).ok_or(PassError::NoRegion(index))?;
        if let Some(team) = plan.team {
            team::set(module, root, team)?;
        }
        keep_reached(module, vec![root]);
        for variable in ir::defined(ir::globals(module)) {
            // SAFETY: the variable is live and defined.
            unsafe { shim::cere_pin(variable) };
        }
        return Ok(());
    }
    let wanted = Wanted::of(plan);
    let values = ir::globals(module).into_iter().chain(ir::functions(module));
    let symbols = ir::aliases(module).into_iter().chain(ir::ifuncs(module));
    for value in ir::defined(values.chain(symbols).collect()) {
        if !wanted.has(value) {
            continue;
        }
        // SAFETY: the value is live and defined.
        unsafe { shim::cere_append_compiler_used(module, value) };
    }
    Ok(())
}

/// A region's outlined function.
fn outlined(module: LLVMModuleRef, index: u32) -> Option<LLVMValueRef> {
    ir::function(module, &format!("{OUTLINED_SYMBOL_PREFIX}{index}"))
}

/// After the pipeline, before code generation: a region's part keeps what the region reaches; the rest gives what it shares
/// names that the parts know.
pub fn cut(module: LLVMModuleRef, plan: &SplitPlan) -> Result<()> {
    match plan.part {
        Some(index) => cut_out(module, index, plan),
        None => publish_shared(module, plan),
    }
}

/// What the other parts need of the rest.
struct Wanted<'a> {
    locals: HashSet<&'a str>,
    others: HashSet<&'a str>,
}

impl<'a> Wanted<'a> {
    fn of(plan: &'a SplitPlan) -> Self {
        let at = format!("{}at.", plan.prefix);
        let local = |name: &'a String| name.strip_prefix(&at);
        Self {
            locals: plan.shared.iter().filter_map(local).collect(),
            others: plan.shared.iter().map(String::as_str).collect(),
        }
    }

    fn has(&self, value: LLVMValueRef) -> bool {
        let names = match is_local(value) {
            true => &self.locals,
            false => &self.others,
        };
        names.contains(ir::name(value).as_str())
    }
}

fn publish_shared(module: LLVMModuleRef, plan: &SplitPlan) -> Result<()> {
    let wanted = Wanted::of(plan);
    let mut missing = wanted.locals.clone();
    let values = ir::globals(module).into_iter().chain(ir::functions(module));
    for value in ir::defined(values.chain(ir::ifuncs(module)).collect()) {
        let name = ir::name(value);
        if is_local(value) && missing.remove(name.as_str()) {
            let known = format!("{}at.{name}", plan.prefix);
            // SAFETY: the value is live and defined. Aliases of thread-local variables need a mode that C cannot set.
            unsafe {
                if !LLVMIsAGlobalVariable(value).is_null() && LLVMIsThreadLocal(value) != 0 {
                    LLVMSetLinkage(value, LLVMLinkage::LLVMExternalLinkage);
                    publish(value, &known);
                } else {
                    second_name(module, value, &known);
                }
            }
        }
    }
    for name in assembled_locals(module) {
        if missing.remove(name.as_str()) {
            let known = format!("{}at.{name}", plan.prefix);
            let line = format!(".set {known}, {name}\n.globl {known}\n.hidden {known}\n");
            // SAFETY: the module is live; the text is copied.
            unsafe { LLVMAppendModuleInlineAsm(module, line.as_ptr().cast(), line.len()) };
        }
    }
    match missing.into_iter().min() {
        None => Ok(()),
        Some(name) => Err(PassError::NotShared(name.to_owned())),
    }
}

fn cut_out(module: LLVMModuleRef, index: u32, plan: &SplitPlan) -> Result<()> {
    let root = outlined(module, index).ok_or(PassError::RegionRemoved(index))?;
    if let Some(function) = labels::open(module) {
        return Err(PassError::LabelsInMemory(ir::name(function)));
    }
    // Its own assembly is the rest's.
    let assembled = assembled_locals(module);
    drop_assembly(module);
    let values = ir::globals(module).into_iter().chain(ir::functions(module));
    for value in values.filter(|v| assembled.contains(&ir::name(*v))) {
        let known = format!("{}at.{}", plan.prefix, ir::name(value));
        // SAFETY: the value is live.
        unsafe { publish(value, &known) };
    }
    ir::drop_lists(module, &ir::LISTS);
    for function in ir::defined(ir::functions(module)) {
        if function != root {
            // SAFETY: the function is live and defined.
            unsafe { copy_into_part(module, function, plan) };
        }
    }
    for alias in ir::aliases(module) {
        // SAFETY: the alias is live; what it stands for is called in its place.
        unsafe {
            fix_address(module, alias, &symbol_in_rest(alias, plan));
            LLVMReplaceAllUsesWith(alias, LLVMAliasGetAliasee(alias));
            LLVMSetLinkage(alias, LLVMLinkage::LLVMInternalLinkage);
        }
    }
    for ifunc in ir::ifuncs(module) {
        let name = ir::c(&symbol_in_rest(ifunc, plan));
        // SAFETY: module and ifunc are live; the name is copied.
        unsafe { shim::cere_declare_ifunc(module, ifunc, name.as_ptr()) };
    }
    for variable in ir::defined(ir::globals(module)) {
        // SAFETY: the variable is live and defined.
        unsafe { leave_to_rest(module, variable, plan)? };
    }
    // SAFETY: the function is live.
    unsafe {
        LLVMSetComdat(root, null_mut());
        LLVMSetLinkage(root, LLVMLinkage::LLVMExternalLinkage);
        publish(root, &format!("{}{index}", plan.prefix));
    }
    run(module, c"globaldce")?;
    match plan.retarget.target {
        // SAFETY: the function is live.
        Some(_) => vectors::check(module, unsafe { LLVMGlobalGetValueType(root) }),
        None => Ok(()),
    }
}

/// The name by which a part knows what the rest has.
fn symbol_in_rest(value: LLVMValueRef, plan: &SplitPlan) -> String {
    match is_local(value) {
        true => format!("{}at.{}", plan.prefix, ir::name(value)),
        false => ir::name(value),
    }
}

/// Makes a function the part's own, but for its address, which is the rest's.
///
/// # Safety
/// The function is live and defined.
unsafe fn copy_into_part(module: LLVMModuleRef, function: LLVMValueRef, plan: &SplitPlan) {
    use LLVMLinkage::*;
    // SAFETY: a live function with a body.
    unsafe {
        let linkage = LLVMGetLinkage(function);
        if matches!(
            linkage,
            LLVMAvailableExternallyLinkage | LLVMWeakAnyLinkage | LLVMLinkOnceAnyLinkage
        ) {
            // Another one may take its place.
            shim::cere_drop_body(function);
            LLVMSetLinkage(function, LLVMExternalLinkage);
            return;
        }
        if !shim::cere_is_for_runtime(function) {
            let address = symbol_in_rest(function, plan);
            if !is_local(function) {
                ir::set_name(function, &format!("{}copy.{address}", plan.prefix));
            }
            fix_address(module, function, &address);
        }
        LLVMSetComdat(function, null_mut());
        LLVMSetLinkage(function, LLVMInternalLinkage);
        LLVMSetVisibility(function, llvm_sys::LLVMVisibility::LLVMDefaultVisibility);
        shim::cere_set_dso_local(function);
    }
}

/// Leaves a variable to the rest, unless the part can have a copy: no code notices the difference.
///
/// # Safety
/// The variable is live and defined.
unsafe fn leave_to_rest(
    module: LLVMModuleRef,
    variable: LLVMValueRef,
    plan: &SplitPlan,
) -> Result<()> {
    // SAFETY: a live variable with a definition.
    unsafe {
        let constant = LLVMIsGlobalConstant(variable) != 0;
        let local = is_local(variable);
        let nameless = LLVMGetUnnamedAddress(variable) == LLVMUnnamedAddr::LLVMGlobalUnnamedAddr
            || !has_symbol(variable);
        let labels = shim::cere_holds_labels(variable);
        if labels && !constant && !LLVMGetFirstUse(variable).is_null() {
            return Err(PassError::LabelsInVariable(ir::name(variable)));
        }
        if local && constant && nameless || labels {
            LLVMSetComdat(variable, null_mut());
            LLVMSetSection(variable, c"".as_ptr());
            LLVMSetLinkage(variable, LLVMLinkage::LLVMInternalLinkage);
            return Ok(());
        }
        let name = symbol_in_rest(variable, plan);
        declare(module, variable);
        if local {
            publish(variable, &name);
        }
        if !constant {
            LLVMSetLinkage(variable, LLVMLinkage::LLVMExternalLinkage);
            LLVMSetInitializer(variable, null_mut());
        }
    }
    Ok(())
}

/// Whether a value has a place in the symbol table.
fn has_symbol(value: LLVMValueRef) -> bool {
    // SAFETY: the value is live.
    unsafe { LLVMGetLinkage(value) != LLVMLinkage::LLVMPrivateLinkage }
}

/// Whether a value is known in this unit alone.
fn is_local(value: LLVMValueRef) -> bool {
    // SAFETY: the value is live.
    let linkage = unsafe { LLVMGetLinkage(value) };
    matches!(
        linkage,
        LLVMLinkage::LLVMInternalLinkage | LLVMLinkage::LLVMPrivateLinkage
    )
}

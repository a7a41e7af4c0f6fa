//! Parts of a unit for a hybrid binary: a region with flags of its own, or the rest of the unit without such regions.
//!
//! A region's part goes through the pipeline as the whole unit, as it does in a replay, so that both have the same
//! machine code; then everything is taken out that the region's code does not reach. What it calls it takes along in
//! copies of its own; variables, and functions whose address is a value, are the rest's.

use crate::bind::{declare, fix_address, publish, second_name};
use crate::unit::run;
use crate::{ir, shim};
use cere_format::abi::OUTLINED_SYMBOL_PREFIX;
use cere_format::build::{SplitPlan, SplitTeam};
use llvm_sys::comdat::LLVMSetComdat;
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMLinkage, LLVMTypeKind, LLVMUnnamedAddr};
use std::collections::HashSet;
use std::ptr::null_mut;

/// What forks a team.
const FORKS: [&str; 2] = ["__kmpc_fork_call", "__kmpc_fork_call_if"];

/// Before the pipeline: regions that are parts of their own become declarations of those, as what is derived from their
/// body here need not hold for theirs. What several parts use keeps its shape.
pub fn prepare(module: LLVMModuleRef, plan: &SplitPlan) -> Result<(), String> {
    for index in &plan.regions {
        let name = format!("{OUTLINED_SYMBOL_PREFIX}{index}");
        // SAFETY: the module is live.
        let outlined = unsafe { LLVMGetNamedFunction(module, ir::c(&name).as_ptr()) };
        if outlined.is_null() {
            return Err(format!("the unit has no region {index}"));
        }
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
        if let Some(team) = plan.team {
            let name = format!("{OUTLINED_SYMBOL_PREFIX}{index}");
            // SAFETY: the module is live, the function there: see above.
            let root = unsafe { LLVMGetNamedFunction(module, ir::c(&name).as_ptr()) };
            set_team(module, root, team)?;
        }
        let root = format!("{OUTLINED_SYMBOL_PREFIX}{index}");
        keep_reached(module, functions_named(module, |name| name == root));
        for variable in defined(ir::globals(module)) {
            if !is_llvms(variable) {
                // SAFETY: the variable is live and defined.
                unsafe { shim::cere_pin(variable) };
            }
        }
        return Ok(());
    }
    let wanted = Wanted::of(plan);
    let values = ir::globals(module).into_iter().chain(ir::functions(module));
    for value in defined(values.chain(ir::aliases(module)).collect()) {
        if !wanted.has(value) {
            continue;
        }
        // SAFETY: the value is live and defined.
        unsafe { shim::cere_append_compiler_used(module, value) };
    }
    Ok(())
}

/// Leaves what `roots` reach: what the rest of the unit does need not be compiled for them.
pub fn keep_reached(module: LLVMModuleRef, mut roots: Vec<LLVMValueRef>) {
    // SAFETY: the module is live, the roots are its functions.
    unsafe {
        shim::cere_keep_reached(module, roots.as_mut_ptr(), roots.len());
        for root in defined(roots) {
            shim::cere_append_compiler_used(module, root);
        }
    }
}

/// The functions that `is_root` takes, by name.
pub fn functions_named(module: LLVMModuleRef, is_root: impl Fn(&str) -> bool) -> Vec<LLVMValueRef> {
    let functions = ir::functions(module).into_iter();
    functions.filter(|f| is_root(&ir::name(*f))).collect()
}

/// Has each fork in `root` ask for this team, whatever was asked for before.
fn set_team(module: LLVMModuleRef, root: LLVMValueRef, team: SplitTeam) -> Result<(), String> {
    let mut forks = 0;
    // SAFETY: module and function are live; the types are those of the runtime's functions (openmp/runtime/src/kmp.h).
    unsafe {
        let context = LLVMGetModuleContext(module);
        let (int, void) = (
            LLVMInt32TypeInContext(context),
            LLVMVoidTypeInContext(context),
        );
        let pointer = LLVMPointerTypeInContext(context, 0);
        let function = |name: &str, result, parameters: &mut [LLVMTypeRef]| {
            let kind =
                LLVMFunctionType(result, parameters.as_mut_ptr(), parameters.len() as u32, 0);
            let found = LLVMGetNamedFunction(module, ir::c(name).as_ptr());
            match found.is_null() {
                true => (LLVMAddFunction(module, ir::c(name).as_ptr(), kind), kind),
                false => (found, kind),
            }
        };
        let builder = LLVMCreateBuilderInContext(context);
        for call in ir::instructions(root) {
            if LLVMIsACallInst(call).is_null() && LLVMIsAInvokeInst(call).is_null() {
                continue;
            }
            let callee = LLVMIsAFunction(LLVMGetCalledValue(call));
            if callee.is_null() || !FORKS.contains(&ir::name(callee).as_str()) {
                continue;
            }
            forks += 1;
            LLVMPositionBuilderBefore(builder, call);
            let mut ident = LLVMGetOperand(call, 0);
            let build = |(function, kind): (LLVMValueRef, LLVMTypeRef),
                         arguments: &mut [LLVMValueRef]| {
                let (first, count) = (arguments.as_mut_ptr(), arguments.len() as u32);
                LLVMBuildCall2(builder, kind, function, first, count, c"".as_ptr())
            };
            let number = build(
                function("__kmpc_global_thread_num", int, &mut [pointer]),
                std::slice::from_mut(&mut ident),
            );
            let asked = [
                ("__kmpc_push_num_threads", team.threads),
                ("__kmpc_push_proc_bind", team.bind),
            ];
            for (name, value) in asked {
                if let Some(value) = value {
                    let value = LLVMConstInt(int, value.into(), 0);
                    let push = function(name, void, &mut [pointer, int, int]);
                    build(push, &mut [ident, number, value]);
                }
            }
        }
        LLVMDisposeBuilder(builder);
    }
    match forks {
        0 => Err("the region forks no team: leave threads and bind out for it".to_owned()),
        _ => Ok(()),
    }
}

/// After the pipeline, before code generation: a region's part keeps what the region reaches; the rest gives what it shares
/// names that the parts know.
pub fn cut(module: LLVMModuleRef, plan: &SplitPlan) -> Result<(), String> {
    match plan.part {
        Some(index) => cut_out(module, index, plan),
        None => share(module, plan),
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

fn share(module: LLVMModuleRef, plan: &SplitPlan) -> Result<(), String> {
    let wanted = Wanted::of(plan);
    let mut missing = wanted.locals.clone();
    let values = ir::globals(module).into_iter().chain(ir::functions(module));
    for value in defined(values.collect()) {
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
    match missing.into_iter().min() {
        None => Ok(()),
        Some(name) => Err(format!(
            "a region uses {name}, which the rest of the unit does not have: its flags make another variable of it"
        )),
    }
}

fn cut_out(module: LLVMModuleRef, index: u32, plan: &SplitPlan) -> Result<(), String> {
    let root = format!("{OUTLINED_SYMBOL_PREFIX}{index}");
    // SAFETY: the module is live.
    let root = unsafe { LLVMGetNamedFunction(module, ir::c(&root).as_ptr()) };
    if root.is_null() {
        return Err(format!("the pipeline has removed region {index}"));
    }
    // SAFETY: the module is live; its own assembly is the rest's.
    unsafe { LLVMSetModuleInlineAsm2(module, c"".as_ptr(), 0) };
    for list in [
        "llvm.used",
        "llvm.compiler.used",
        "llvm.global_ctors",
        "llvm.global_dtors",
    ] {
        // SAFETY: the module is live; nothing refers to these lists.
        unsafe {
            let list = LLVMGetNamedGlobal(module, ir::c(list).as_ptr());
            if !list.is_null() {
                LLVMDeleteGlobal(list);
            }
        }
    }
    for function in defined(ir::functions(module)) {
        if function != root {
            // SAFETY: the function is live and defined.
            unsafe { take_along(module, function, plan) };
        }
    }
    for alias in ir::aliases(module) {
        // SAFETY: the alias is live; what it stands for is called in its place.
        unsafe {
            fix_address(module, alias, &outside(alias, plan));
            LLVMReplaceAllUsesWith(alias, LLVMAliasGetAliasee(alias));
            LLVMSetLinkage(alias, LLVMLinkage::LLVMInternalLinkage);
        }
    }
    for variable in defined(ir::globals(module)) {
        // SAFETY: the variable is live and defined.
        unsafe { leave(module, variable, plan)? };
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
        Some(_) => check_calls(module, unsafe { LLVMGlobalGetValueType(root) }),
        None => Ok(()),
    }
}

/// Fails if the part calls, or is called, with vectors whose way of passing depends on the target's features.
fn check_calls(module: LLVMModuleRef, root: LLVMTypeRef) -> Result<(), String> {
    // SAFETY: calls of live functions, and their types.
    unsafe {
        let calls = ir::functions(module).into_iter().flat_map(ir::instructions);
        let calls =
            calls.filter(|i| !LLVMIsACallInst(*i).is_null() || !LLVMIsAInvokeInst(*i).is_null());
        let outside = calls.filter(|call| {
            let callee = LLVMGetCalledValue(*call);
            let function = LLVMIsAFunction(callee);
            let own = !function.is_null()
                && (LLVMIsDeclaration(function) == 0 || LLVMGetIntrinsicID(function) != 0);
            // Vector variants of library functions say in their name how they are called.
            let variant = !function.is_null() && ir::name(function).starts_with("_ZGV");
            !own && !variant && LLVMIsAInlineAsm(callee).is_null()
        });
        let mut types = outside
            .map(|call| LLVMGetCalledFunctionType(call))
            .chain([root]);
        match types.any(|kind| passes_wide_vectors(kind)) {
            false => Ok(()),
            true => Err(
                "vectors of more than 128 bits are passed to or from the region's code by value, which is done in another way                  for another target: leave flags like -march out for this region"
                    .to_owned(),
            ),
        }
    }
}

/// Whether a function of this type takes or returns vectors of more than 128 bits.
///
/// # Safety
/// A live function type.
unsafe fn passes_wide_vectors(function: LLVMTypeRef) -> bool {
    // SAFETY: by the contract.
    unsafe {
        let mut types = vec![null_mut(); LLVMCountParamTypes(function) as usize];
        LLVMGetParamTypes(function, types.as_mut_ptr());
        types.push(LLVMGetReturnType(function));
        types.into_iter().any(|kind| has_wide_vectors(kind))
    }
}

/// # Safety
/// A live type.
unsafe fn has_wide_vectors(kind: LLVMTypeRef) -> bool {
    use LLVMTypeKind::*;
    // SAFETY: by the contract; each call fits the kind.
    unsafe {
        match LLVMGetTypeKind(kind) {
            LLVMVectorTypeKind => {
                let element = LLVMGetElementType(kind);
                let bits = match LLVMGetTypeKind(element) {
                    LLVMIntegerTypeKind => LLVMGetIntTypeWidth(element),
                    LLVMHalfTypeKind | LLVMBFloatTypeKind => 16,
                    LLVMFloatTypeKind => 32,
                    _ => 64,
                };
                bits * LLVMGetVectorSize(kind) > 128
            }
            LLVMStructTypeKind => (0..LLVMCountStructElementTypes(kind))
                .any(|i| has_wide_vectors(LLVMStructGetTypeAtIndex(kind, i))),
            LLVMArrayTypeKind => has_wide_vectors(LLVMGetElementType(kind)),
            _ => false,
        }
    }
}

/// The name by which a part knows what the rest has.
fn outside(value: LLVMValueRef, plan: &SplitPlan) -> String {
    match is_local(value) {
        true => format!("{}at.{}", plan.prefix, ir::name(value)),
        false => ir::name(value),
    }
}

/// Makes a function the part's own, but for its address, which is the rest's.
///
/// # Safety
/// The function is live and defined.
unsafe fn take_along(module: LLVMModuleRef, function: LLVMValueRef, plan: &SplitPlan) {
    use LLVMLinkage::*;
    // SAFETY: by the contract.
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
            let address = outside(function, plan);
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

/// Leaves a variable to the rest, unless nobody can tell a copy from it.
///
/// # Safety
/// The variable is live and defined.
unsafe fn leave(
    module: LLVMModuleRef,
    variable: LLVMValueRef,
    plan: &SplitPlan,
) -> Result<(), String> {
    // SAFETY: by the contract.
    unsafe {
        let constant = LLVMIsGlobalConstant(variable) != 0;
        let local = is_local(variable);
        let nameless = LLVMGetUnnamedAddress(variable) == LLVMUnnamedAddr::LLVMGlobalUnnamedAddr
            || !named(variable);
        let labels = shim::cere_holds_labels(variable);
        if labels && !constant && !LLVMGetFirstUse(variable).is_null() {
            return Err(format!(
                "the variable {} holds addresses of labels: its region keeps the flags of the build",
                ir::name(variable)
            ));
        }
        if is_llvms(variable) || local && constant && nameless || labels {
            LLVMSetComdat(variable, null_mut());
            LLVMSetSection(variable, c"".as_ptr());
            if !is_llvms(variable) {
                LLVMSetLinkage(variable, LLVMLinkage::LLVMInternalLinkage);
            }
            return Ok(());
        }
        let name = outside(variable, plan);
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

/// Those that are defined here.
fn defined(values: Vec<LLVMValueRef>) -> Vec<LLVMValueRef> {
    // SAFETY: the values are live.
    let is = |value: &LLVMValueRef| unsafe { LLVMIsDeclaration(*value) } == 0;
    values.into_iter().filter(is).collect()
}

/// Whether a variable is LLVM's own.
fn is_llvms(variable: LLVMValueRef) -> bool {
    ir::name(variable).starts_with("llvm.")
}

/// Whether a value has a place in the symbol table.
fn named(value: LLVMValueRef) -> bool {
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

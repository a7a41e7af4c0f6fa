//! Binds a unit's symbols for a replay, after optimisation.

use crate::{ir, shim};
use cere_format::build::BindPlan;
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMDLLStorageClass, LLVMLinkage, LLVMVisibility};
use std::collections::HashSet;
use std::ptr::null_mut;

/// Applies the plan to the module.
pub fn bind(module: LLVMModuleRef, plan: &BindPlan) {
    for name in ["llvm.global_ctors", "llvm.global_dtors"] {
        // SAFETY: the module is live.
        unsafe {
            let global = LLVMGetNamedGlobal(module, ir::c(name).as_ptr());
            if !global.is_null() {
                LLVMDeleteGlobal(global);
            }
        }
    }
    let listed: HashSet<&str> = plan.functions.iter().map(String::as_str).collect();
    for function in ir::functions(module) {
        let name = ir::name(function);
        if listed.contains(name.as_str()) {
            // SAFETY: the function is live.
            unsafe { fix_address(module, function, &format!("{}at.{name}", plan.prefix)) };
        }
    }
    let captured: HashSet<&str> = plan.variables.iter().map(String::as_str).collect();
    for value in ir::globals(module).into_iter().chain(ir::functions(module)) {
        let name = ir::name(value);
        // SAFETY: the value is live.
        unsafe {
            let declared = LLVMIsDeclaration(value) != 0;
            let local = is_local(value);
            if local && !name.is_empty() && !name.starts_with("llvm.") {
                publish(value, &format!("{}{name}", plan.prefix));
            } else if name == "main" && !declared {
                publish(value, &format!("{}main", plan.prefix));
            }
            if captured.contains(name.as_str()) && !LLVMIsAGlobalVariable(value).is_null() {
                LLVMSetInitializer(value, null_mut());
                LLVMSetComdat(value, null_mut());
                LLVMSetSection(value, c"".as_ptr());
                LLVMSetLinkage(value, LLVMLinkage::LLVMExternalLinkage);
                shim::cere_set_dso_local(value);
            }
        }
    }
}

use llvm_sys::comdat::LLVMSetComdat;

unsafe fn is_local(value: LLVMValueRef) -> bool {
    // SAFETY: the value is live.
    let linkage = unsafe { LLVMGetLinkage(value) };
    matches!(
        linkage,
        LLVMLinkage::LLVMInternalLinkage | LLVMLinkage::LLVMPrivateLinkage
    )
}

unsafe fn publish(value: LLVMValueRef, name: &str) {
    // SAFETY: the value is live.
    unsafe {
        LLVMSetLinkage(value, LLVMLinkage::LLVMExternalLinkage);
        LLVMSetVisibility(value, LLVMVisibility::LLVMHiddenVisibility);
        LLVMSetDLLStorageClass(value, LLVMDLLStorageClass::LLVMDefaultStorageClass);
        shim::cere_set_dso_local(value);
    }
    ir::set_name(value, name);
}

/// Lets every use as a value, not as a call's target, name the symbol `at` instead.
unsafe fn fix_address(module: LLVMModuleRef, function: LLVMValueRef, at: &str) {
    // SAFETY: module and function are live.
    unsafe {
        let byte = LLVMInt8TypeInContext(LLVMGetModuleContext(module));
        let address = LLVMAddGlobal(module, byte, ir::c(at).as_ptr());
        LLVMSetVisibility(address, LLVMVisibility::LLVMHiddenVisibility);
        shim::cere_set_dso_local(address);
        shim::cere_replace_values(function, address);
    }
}

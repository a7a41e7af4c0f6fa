//! Symbols of a kept unit: what is kept of them, and by which names others reach them.

use crate::{ir, shim};
use cere_format::abi::LABELS_SYMBOL_PREFIX;
use libc::c_void;
use llvm_sys::comdat::LLVMSetComdat;
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::target::{LLVMGetModuleDataLayout, LLVMPreferredAlignmentOfGlobal};
use llvm_sys::{LLVMLinkage, LLVMVisibility};
use std::collections::HashSet;
use std::ptr::null_mut;

/// Removes what `roots` do not reach: it need not be compiled for them. Being listed as used or as a constructor keeps nothing.
pub fn keep_reached(module: LLVMModuleRef, mut roots: Vec<LLVMValueRef>) {
    ir::drop_lists(module, &ir::LISTS);
    // SAFETY: the module is live, the roots are its functions.
    unsafe {
        let prefix = ir::c(LABELS_SYMBOL_PREFIX);
        shim::cere_keep_reached(module, roots.as_mut_ptr(), roots.len(), prefix.as_ptr());
        shim::cere_keep_labels(module, prefix.as_ptr());
        for root in ir::defined(roots) {
            shim::cere_append_compiler_used(module, root);
        }
    }
}

/// Names of the symbols that the unit's own assembly defines and no other unit knows.
pub fn assembled_locals(module: LLVMModuleRef) -> HashSet<String> {
    extern "C" fn sink(context: *mut c_void, name: *const u8, length: usize, global: bool) {
        // SAFETY: the context is the set below, the name is the shim's during the call.
        let (locals, name) = unsafe {
            let name = std::slice::from_raw_parts(name, length);
            (&mut *context.cast::<HashSet<String>>(), name)
        };
        if !global {
            locals.insert(String::from_utf8_lossy(name).into_owned());
        }
    }
    let mut locals = HashSet::new();
    // SAFETY: the module is live; the sink only sees the set during the call.
    unsafe { shim::cere_assembly_symbols(module, sink, (&raw mut locals).cast()) };
    locals
}

/// Removes the unit's own assembly.
pub fn drop_assembly(module: LLVMModuleRef) {
    // SAFETY: the module is live.
    unsafe { LLVMSetModuleInlineAsm2(module, c"".as_ptr(), 0) };
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

/// Renames a value to `name`, hidden: the other objects of the link can use it.
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

/// Makes a plain variable of a thread-local one that is declared, or whose definition is not emitted.
pub unsafe fn make_plain(module: LLVMModuleRef, variable: LLVMValueRef) {
    // SAFETY: module and variable are live; a call is deleted once nothing uses it.
    unsafe {
        let intrinsics = ir::functions(module).into_iter();
        let addresses = intrinsics.filter(|f| ir::name(*f).starts_with("llvm.threadlocal.address"));
        for call in addresses.flat_map(ir::calls) {
            if LLVMGetOperand(call, 0) == variable {
                LLVMReplaceAllUsesWith(call, variable);
                LLVMInstructionEraseFromParent(call);
            }
        }
        LLVMSetThreadLocal(variable, 0);
    }
}

//! Labels whose address is taken: a table beside each function that has some, from which a replay knows where they were
//! and where they are.

use crate::error::{PassError, Result};
use crate::symbols::publish;
use crate::{ir, shim};
use cere_format::abi::LABELS_SYMBOL_PREFIX;
use cere_format::build::BindPlan;
use llvm_sys::LLVMLinkage;
use llvm_sys::core::*;
use llvm_sys::prelude::*;

/// Makes the tables.
pub fn list(module: LLVMModuleRef) {
    // SAFETY: the module is live.
    unsafe { shim::cere_list_labels(module, ir::c(LABELS_SYMBOL_PREFIX).as_ptr()) }
}

/// Makes the tables fit for code generation.
pub fn settle(module: LLVMModuleRef) {
    // SAFETY: the module is live.
    unsafe { shim::cere_settle_labels(module, ir::c(LABELS_SYMBOL_PREFIX).as_ptr()) }
}

/// Removes the tables.
pub fn forget(module: LLVMModuleRef) {
    // SAFETY: the module is live.
    unsafe { shim::cere_forget_labels(module, ir::c(LABELS_SYMBOL_PREFIX).as_ptr()) }
}

/// A function of which memory may hold labels beside constants of its own: only one copy of it can run.
pub fn open(module: LLVMModuleRef) -> Option<LLVMValueRef> {
    // SAFETY: the functions are live.
    let open = |f: &LLVMValueRef| unsafe { shim::cere_has_open_labels(*f) };
    ir::defined(ir::functions(module)).into_iter().find(open)
}

/// Gives labels their captured addresses, where the plan has them, and the tables names that the glue knows.
pub fn bind(module: LLVMModuleRef, plan: &BindPlan) -> Result<()> {
    for table in ir::defined(ir::globals(module)) {
        let name = ir::name(table);
        let Some(function) = name.strip_prefix(LABELS_SYMBOL_PREFIX) else {
            continue;
        };
        if let Some(known) = plan.labels.iter().find(|l| l.function == function) {
            let addresses = &known.addresses;
            // SAFETY: module and table are live; the addresses are as many as said.
            let fits = unsafe {
                shim::cere_bind_labels(module, table, addresses.as_ptr(), addresses.len())
            };
            if !fits {
                return Err(PassError::Labels {
                    count: addresses.len(),
                    function: function.to_owned(),
                });
            }
        }
        // SAFETY: the table is live.
        unsafe {
            LLVMSetLinkage(table, LLVMLinkage::LLVMExternalLinkage);
            publish(table, &format!("{}labels.{function}", plan.prefix));
        }
    }
    Ok(())
}

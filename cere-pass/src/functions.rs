//! Which functions become regions as a whole: those that the user names, and those that the source marks.

use crate::{ir, names};
use cere_format::build::{CompileCommand, DefinedFunction};
use llvm_sys::LLVMLinkage;
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use std::collections::HashSet;

/// The annotation that marks a function: `__attribute__((annotate("cere.region")))`.
const MARK: &str = "cere.region";

/// The functions that the module defines.
pub fn defined(module: LLVMModuleRef) -> Vec<DefinedFunction> {
    let own = |&function: &LLVMValueRef| {
        // SAFETY: the function is live.
        let linkage = unsafe { LLVMGetLinkage(function) };
        linkage != LLVMLinkage::LLVMAvailableExternallyLinkage
    };
    let functions = ir::defined(ir::functions(module)).into_iter().filter(own);
    functions
        .map(|function| DefinedFunction {
            name: names::function(function),
            symbol: ir::name(function),
        })
        .collect()
}

/// Symbols of those of `functions` that are to be regions.
pub fn chosen(
    module: LLVMModuleRef,
    command: &CompileCommand,
    functions: &[DefinedFunction],
) -> HashSet<String> {
    let named = functions
        .iter()
        .filter(|f| f.is_named(&command.functions))
        .map(|f| f.symbol.clone());
    named.chain(marked(module)).collect()
}

/// Symbols of the functions that the source marks.
fn marked(module: LLVMModuleRef) -> Vec<String> {
    // SAFETY: the module is live; the operands of a live constant, as many as it says.
    unsafe {
        let list = LLVMGetNamedGlobal(module, c"llvm.global.annotations".as_ptr());
        if list.is_null() {
            return Vec::new();
        }
        let all = LLVMGetInitializer(list);
        let count = u32::try_from(LLVMGetNumOperands(all)).unwrap_or(0);
        (0..count)
            .map(|i| LLVMGetOperand(all, i))
            .filter(|entry| text(LLVMGetOperand(*entry, 1)).as_deref() == Some(MARK))
            .map(|entry| ir::name(LLVMGetOperand(entry, 0)))
            .collect()
    }
}

/// The text of a constant variable, without the zero at its end.
///
/// # Safety
/// The value is live.
unsafe fn text(variable: LLVMValueRef) -> Option<String> {
    // SAFETY: a live value; LLVM gives as many bytes as it says.
    unsafe {
        if LLVMIsAGlobalVariable(variable).is_null() {
            return None;
        }
        let value = LLVMGetInitializer(variable);
        if value.is_null() || LLVMIsConstantString(value) == 0 {
            return None;
        }
        let mut length = 0;
        let data = LLVMGetAsString(value, &mut length);
        let bytes = std::slice::from_raw_parts(data.cast::<u8>(), length);
        let text = String::from_utf8_lossy(bytes);
        Some(text.trim_end_matches('\0').to_owned())
    }
}

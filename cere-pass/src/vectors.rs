//! Vectors that are passed by value.

use crate::error::{PassError, Result};
use crate::ir;
use llvm_sys::LLVMTypeKind;
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use std::ptr::null_mut;

/// Fails if the part calls, or is called, with vectors whose way of passing depends on the target's features.
pub fn check(module: LLVMModuleRef, root: LLVMTypeRef) -> Result<()> {
    // SAFETY: calls of live functions, and their types.
    unsafe {
        let calls = ir::functions(module).into_iter().flat_map(ir::instructions);
        let calls = calls.filter(|i| ir::is_call(*i));
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
            true => Err(PassError::WideVectors),
        }
    }
}

/// Whether a function of this type takes or returns vectors of more than 128 bits.
///
/// # Safety
/// A live function type.
unsafe fn passes_wide_vectors(function: LLVMTypeRef) -> bool {
    // SAFETY: a live function type.
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
    // SAFETY: a live type; each call fits its kind.
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

//! Changes to attributes that other compile flags would have made in the front end.

use crate::outline::OWN_FRAME;
use crate::{ir, shim};
use cere_format::build::Retarget;
use llvm_sys::core::*;
use llvm_sys::prelude::*;

/// Applies the changes to every function that is defined here.
pub fn apply(module: LLVMModuleRef, retarget: &Retarget) {
    // SAFETY: the module is live.
    let context = unsafe { LLVMGetModuleContext(module) };
    // SAFETY: the module is live.
    unsafe {
        if retarget.split_contractions {
            shim::cere_split_contractions(module);
        }
        if retarget.no_math_errno {
            shim::cere_forget_errno(module);
        }
    }
    for function in ir::functions(module) {
        // SAFETY: the function is live.
        if unsafe { LLVMIsDeclaration(function) } != 0 {
            continue;
        }
        if let Some(target) = &retarget.target {
            ir::set_string(context, function, "target-cpu", &target.cpu);
            ir::set_string(context, function, "tune-cpu", &target.tune);
            ir::set_string(context, function, "target-features", &target.features);
        }
        for (key, value) in &retarget.attributes {
            ir::set_string(context, function, key, value);
        }
        let own = ir::name(function).starts_with("cere.");
        for (name, there) in retarget.enum_attributes.iter().filter(|_| !own) {
            if !there && name == "noinline" && ir::has_string(function, OWN_FRAME) {
                continue;
            }
            if !there {
                ir::remove_enum(function, name);
            } else if name != "noinline" || !ir::has_enum(function, "alwaysinline") {
                ir::add_enum(context, function, name);
            }
        }
        if retarget.fast_flags.is_some() || retarget.no_strict_aliasing {
            instructions(context, function, retarget);
        }
    }
}

fn instructions(context: LLVMContextRef, function: LLVMValueRef, retarget: &Retarget) {
    for instruction in ir::instructions(function) {
        // SAFETY: the instruction is live; a null metadata removes the kind.
        unsafe {
            if let Some(flags) = retarget.fast_flags
                && LLVMCanValueUseFastMathFlags(instruction) != 0
            {
                LLVMSetFastMathFlags(instruction, flags);
            }
            if retarget.no_strict_aliasing {
                for kind in ["tbaa", "tbaa.struct"] {
                    let kind =
                        LLVMGetMDKindIDInContext(context, kind.as_ptr().cast(), kind.len() as u32);
                    LLVMSetMetadata(instruction, kind, std::ptr::null_mut());
                }
            }
        }
    }
}

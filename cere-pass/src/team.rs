//! The team that a region with a team of its own asks for.

use crate::error::{PassError, Result};
use crate::ir;
use cere_format::build::SplitTeam;
use llvm_sys::core::*;
use llvm_sys::prelude::*;

/// What forks a team.
const FORKS: [&str; 2] = ["__kmpc_fork_call", "__kmpc_fork_call_if"];

/// Has each fork in `root` ask for this team, whatever was asked for before.
pub fn set(module: LLVMModuleRef, root: LLVMValueRef, team: SplitTeam) -> Result<()> {
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
            let found = ir::function(module, name)
                .unwrap_or_else(|| LLVMAddFunction(module, ir::c(name).as_ptr(), kind));
            (found, kind)
        };
        let builder = LLVMCreateBuilderInContext(context);
        for call in ir::instructions(root) {
            if !ir::is_call(call) {
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
        0 => Err(PassError::NoTeam),
        _ => Ok(()),
    }
}

//! Kept IR becomes that of another architecture.

use crate::error::{PassError, Result};
use crate::{ir, shim};
use cere_format::build::CrossPlan;
use libc::{c_char, c_void};
use llvm_sys::prelude::*;
use std::ffi::CString;

/// A function, and why it cannot go on there.
type Refused = (String, String);

/// Applies the plan to the module.
pub fn cross(module: LLVMModuleRef, plan: &CrossPlan) -> Result<()> {
    extern "C" fn sink(
        context: *mut c_void,
        name: *const u8,
        length: usize,
        why: *const u8,
        size: usize,
    ) {
        // SAFETY: the context is the vector below, name and reason are the shim's during the call.
        let (all, name, why) = unsafe {
            (
                &mut *context.cast::<Vec<Refused>>(),
                std::slice::from_raw_parts(name, length),
                std::slice::from_raw_parts(why, size),
            )
        };
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        all.push((text(name), text(why)));
    }
    let mut refused: Vec<Refused> = Vec::new();
    let (triple, layout) = (ir::c(&plan.triple), ir::c(&plan.layout));
    let trap = ir::c(&plan.trap);
    let names: Vec<CString> = plan.with_ir.iter().map(|name| ir::c(name)).collect();
    let pointers: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
    // SAFETY: the module is live; strings and names outlive the call, and the sink only sees the vector during it.
    unsafe {
        shim::cere_cross_module(
            module,
            triple.as_ptr(),
            layout.as_ptr(),
            plan.split,
            trap.as_ptr(),
            pointers.as_ptr(),
            pointers.len(),
            sink,
            (&raw mut refused).cast(),
        );
    }
    let mut refused = refused.into_iter();
    match refused.find(|(function, _)| plan.roots.contains(function)) {
        Some((function, why)) => Err(PassError::Crossing {
            function,
            triple: plan.triple.clone(),
            why,
        }),
        None => Ok(()),
    }
}

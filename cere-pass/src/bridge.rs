//! An edited unit in the place of a captured one.

use crate::error::Result;
use crate::unit::{bitcode, write};
use crate::{ir, shim};
use cere_format::build::{BRIDGE_REFUSED, BridgePlan};
use llvm_sys::prelude::*;

/// Writes the module with a function that runs what stands for the captured region on what was captured; or why nothing does.
pub fn bridge(module: LLVMModuleRef, plan: &BridgePlan) -> Result<()> {
    let captured = ir::c(&plan.captured.to_string_lossy());
    let function = ir::c(plan.function.as_deref().unwrap_or_default());
    let mut note = std::ptr::null_mut();
    // SAFETY: the module is live; the shim returns malloc'ed strings or null.
    let refused = ir::take_string(unsafe {
        let (captured, function) = (captured.as_ptr(), function.as_ptr());
        shim::cere_bridge(module, captured, plan.region, function, &mut note)
    });
    let others = ir::take_string(note).unwrap_or_default();
    write(&plan.others, others.as_bytes())?;
    if let Some(reason) = refused {
        let text = format!("{BRIDGE_REFUSED}{}", ir::one_line(&reason));
        return write(&plan.output, text.as_bytes());
    }
    ir::verify(module)?;
    write(&plan.output, &bitcode(module))
}

//! The variables of the captured image.

use crate::{ir, shapes};
use cere_format::build::{BindPlan, Piece};
use llvm_sys::core::LLVMGlobalGetValueType;
use llvm_sys::prelude::*;
use llvm_sys::target::{LLVMABISizeOfType, LLVMGetModuleDataLayout};
use std::collections::{HashMap, HashSet};

/// The variables of the captured image.
pub struct Captured<'a> {
    names: HashSet<&'a str>,
    /// Where the bytes of variables of the unit are, by the variable.
    places: HashMap<&'a str, Vec<(&'a str, &'a Piece)>>,
    /// The plan.
    pub plan: &'a BindPlan,
}

impl<'a> Captured<'a> {
    /// Those that the plan names.
    pub fn of(plan: &'a BindPlan) -> Self {
        let names: HashSet<&str> = plan.variables.iter().map(String::as_str).collect();
        let mut places: HashMap<_, Vec<_>> = HashMap::new();
        for (symbol, pieces) in plan.shapes.iter().flatten() {
            for piece in pieces {
                let of_it = places.entry(piece.variable.as_str()).or_default();
                of_it.push((symbol.as_str(), piece));
            }
        }
        Self {
            names,
            places,
            plan,
        }
    }

    /// Whether the image has a variable in the same form as the module.
    pub fn has(&self, module: LLVMModuleRef, variable: LLVMValueRef) -> bool {
        let name = ir::name(variable);
        if !self.names.contains(name.as_str()) {
            return false;
        }
        let here = shapes::pieces(variable);
        match &self.plan.shapes {
            Some(shapes) if !here.is_empty() => shapes.get(&name) == Some(&here),
            // SAFETY: the variable is live and defined.
            _ => !unsafe { resized(module, variable, self.plan) },
        }
    }

    /// Where the image has bytes of the unit's `variable`: the symbols, and the piece of it that each holds.
    pub fn places(&self, variable: &str) -> &[(&'a str, &'a Piece)] {
        self.places.get(variable).map_or(&[], Vec::as_slice)
    }

    /// Whether the address of a symbol of the image is known.
    pub fn knows(&self, symbol: &str) -> bool {
        self.names.contains(symbol)
    }
}

/// Whether a local variable takes other room than in the captured program.
unsafe fn resized(module: LLVMModuleRef, variable: LLVMValueRef, plan: &BindPlan) -> bool {
    let captured = plan.sizes.as_ref().and_then(|s| s.get(&ir::name(variable)));
    // SAFETY: the variable is live and defined.
    captured.is_some_and(|captured| *captured != unsafe { size(module, variable) })
}

/// Bytes of a variable.
pub unsafe fn size(module: LLVMModuleRef, variable: LLVMValueRef) -> u64 {
    // SAFETY: module and variable are live; the type of a definition has a size.
    unsafe {
        LLVMABISizeOfType(
            LLVMGetModuleDataLayout(module),
            LLVMGlobalGetValueType(variable),
        )
    }
}

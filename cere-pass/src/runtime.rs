//! Variables of the program in which the OpenMP runtime keeps what belongs to the threads that run.

use crate::ir;
use cere_format::build::RuntimeWord;
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use std::collections::BTreeMap;

/// `kmp_critical_name`: a lock, or the address of one.
const LOCK: u64 = 32;
/// The address of a table of copies.
const TABLE: u64 = 8;

/// Functions of the runtime that take the address of such a variable: at which argument, and of how many bytes.
const TAKERS: [(&str, u32, u64); 8] = [
    ("__kmpc_critical", 2, LOCK),
    ("__kmpc_critical_with_hint", 2, LOCK),
    ("__kmpc_end_critical", 2, LOCK),
    ("__kmpc_reduce", 6, LOCK),
    ("__kmpc_reduce_nowait", 6, LOCK),
    ("__kmpc_end_reduce", 2, LOCK),
    ("__kmpc_end_reduce_nowait", 2, LOCK),
    ("__kmpc_threadprivate_cached", 4, TABLE),
];

/// Those of the module, by name.
pub fn words(module: LLVMModuleRef) -> Vec<RuntimeWord> {
    let mut found = BTreeMap::new();
    for (name, argument, bytes) in TAKERS {
        let Some(taker) = ir::function(module, name) else {
            continue;
        };
        for call in ir::calls(taker) {
            // SAFETY: a live call, and an argument that it has.
            unsafe {
                if argument >= LLVMGetNumArgOperands(call) {
                    continue;
                }
                let word = LLVMGetOperand(call, argument);
                if !LLVMIsAGlobalVariable(word).is_null() {
                    found.insert(ir::name(word), bytes);
                }
            }
        }
    }
    let word = |(symbol, bytes)| RuntimeWord { symbol, bytes };
    found.into_iter().map(word).collect()
}

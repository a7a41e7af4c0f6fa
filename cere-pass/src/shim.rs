//! Declarations of the C++ shim (`shim.cpp`).

use libc::{c_char, c_void, size_t};
use llvm_sys::prelude::*;

unsafe extern "C" {
    pub fn cere_register(builder: *mut c_void);
    pub fn cere_loops(
        function: LLVMValueRef,
        headers: *mut LLVMBasicBlockRef,
        locations: *mut LLVMMetadataRef,
        room: size_t,
    ) -> size_t;
    pub fn cere_outline(
        function: LLVMValueRef,
        header: LLVMBasicBlockRef,
        inputs: *mut size_t,
        exits: *mut size_t,
        pads: *mut bool,
        reason: *mut *const c_char,
    ) -> LLVMValueRef;
    pub fn cere_split_before(instruction: LLVMValueRef) -> LLVMBasicBlockRef;
    pub fn cere_verify(function: LLVMValueRef) -> *mut c_char;
    pub fn cere_append_used(module: LLVMModuleRef, global: LLVMValueRef);
    pub fn cere_bitcode(
        module: LLVMModuleRef,
        sink: extern "C" fn(*mut c_void, *const u8, size_t),
        context: *mut c_void,
    );
    pub fn cere_demangle(symbol: *const c_char) -> *mut c_char;
    pub fn cere_scoped_name(subprogram: LLVMMetadataRef) -> *mut c_char;
    pub fn cere_set_fast(instruction: LLVMValueRef);
    pub fn cere_replace_values(function: LLVMValueRef, by: LLVMValueRef);
    pub fn cere_set_dso_local(global: LLVMValueRef) -> bool;
}

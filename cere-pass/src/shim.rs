//! Declarations of the C++ shim (`*.cpp`).

use libc::{c_char, c_void, size_t};
use llvm_sys::prelude::*;

/// Bytes of a variable as they were when they were described, and where they are now.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct MarkedBytes {
    pub offset: u64,
    pub size: u64,
    pub at: u64,
    /// As in `shapes.cpp`: 0 as they were, 1 one bit that stands for one of two values, 2 not known.
    pub form: u64,
    pub first: u64,
    pub other: u64,
}

unsafe extern "C" {
    pub fn cere_register(builder: *mut c_void);
    pub fn cere_loops(
        function: LLVMValueRef,
        headers: *mut LLVMBasicBlockRef,
        locations: *mut LLVMMetadataRef,
        room: size_t,
    ) -> size_t;
    pub fn cere_refusal(
        function: LLVMValueRef,
        header: LLVMBasicBlockRef,
        inside: bool,
    ) -> *const c_char;
    pub fn cere_reach(module: LLVMModuleRef) -> *mut c_void;
    pub fn cere_forget_reach(calls: *mut c_void);
    pub fn cere_loops_inside(
        function: LLVMValueRef,
        header: LLVMBasicBlockRef,
        calls: *mut c_void,
        repeated: bool,
        headers: *mut LLVMBasicBlockRef,
        locations: *mut LLVMMetadataRef,
        room: size_t,
    ) -> size_t;
    pub fn cere_depth(function: LLVMValueRef, header: LLVMBasicBlockRef) -> u32;
    pub fn cere_called_in_loops(
        module: LLVMModuleRef,
        closed: bool,
        functions: *mut LLVMValueRef,
        room: size_t,
    ) -> size_t;
    pub fn cere_too_short(
        function: LLVMValueRef,
        header: LLVMBasicBlockRef,
        closed: bool,
    ) -> *const c_char;
    pub fn cere_has_invoke(function: LLVMValueRef, header: LLVMBasicBlockRef) -> bool;
    pub fn cere_own_landing_pads(function: LLVMValueRef, header: LLVMBasicBlockRef);
    pub fn cere_number_types(function: LLVMValueRef);
    pub fn cere_restore_types(module: LLVMModuleRef);
    pub fn cere_outline(
        function: LLVMValueRef,
        header: LLVMBasicBlockRef,
        inputs: *mut size_t,
        exits: *mut size_t,
        reason: *mut *const c_char,
    ) -> LLVMValueRef;
    pub fn cere_forks(function: LLVMValueRef, calls: *mut LLVMValueRef, room: size_t) -> size_t;
    pub fn cere_in_parallel(function: LLVMValueRef) -> bool;
    pub fn cere_outline_fork(
        call: LLVMValueRef,
        inputs: *mut size_t,
        reason: *mut *const c_char,
    ) -> LLVMValueRef;
    pub fn cere_refuse_function(function: LLVMValueRef) -> *const c_char;
    pub fn cere_outline_function(function: LLVMValueRef, inputs: *mut size_t) -> LLVMValueRef;
    pub fn cere_join_recursion(function: LLVMValueRef, body: LLVMValueRef, part: LLVMValueRef);
    pub fn cere_return_results(outlined: LLVMValueRef, inputs: *mut size_t) -> LLVMValueRef;
    pub fn cere_note_captures(outlined: LLVMValueRef);
    pub fn cere_note_arguments(outlined: LLVMValueRef);
    pub fn cere_tell_types(module: LLVMModuleRef);
    pub fn cere_tell_stores(module: LLVMModuleRef);
    pub fn cere_count_code(unit: *const c_char);
    pub fn cere_remove_files();
    pub fn cere_split_before(instruction: LLVMValueRef) -> LLVMBasicBlockRef;
    pub fn cere_verify(function: LLVMValueRef) -> *mut c_char;
    pub fn cere_verify_module(module: LLVMModuleRef) -> *mut c_char;
    pub fn cere_append_used(module: LLVMModuleRef, global: LLVMValueRef);
    pub fn cere_append_compiler_used(module: LLVMModuleRef, global: LLVMValueRef);
    pub fn cere_reach_any(
        roots: *mut LLVMValueRef,
        count: size_t,
        values: *mut LLVMValueRef,
        number: size_t,
    ) -> bool;
    pub fn cere_keep_reached(
        module: LLVMModuleRef,
        roots: *mut LLVMValueRef,
        count: size_t,
        labels_prefix: *const c_char,
    );
    pub fn cere_list_labels(module: LLVMModuleRef, prefix: *const c_char);
    pub fn cere_keep_labels(module: LLVMModuleRef, prefix: *const c_char);
    pub fn cere_settle_labels(module: LLVMModuleRef, prefix: *const c_char);
    pub fn cere_forget_labels(module: LLVMModuleRef, prefix: *const c_char);
    pub fn cere_has_open_labels(function: LLVMValueRef) -> bool;
    pub fn cere_bind_labels(
        module: LLVMModuleRef,
        table: LLVMValueRef,
        addresses: *const u64,
        count: size_t,
    ) -> bool;
    pub fn cere_drop_body(function: LLVMValueRef);
    pub fn cere_holds_labels(variable: LLVMValueRef) -> bool;
    pub fn cere_is_for_runtime(function: LLVMValueRef) -> bool;
    pub fn cere_pin(variable: LLVMValueRef);
    pub fn cere_only_read(variable: LLVMValueRef) -> bool;
    pub fn cere_unwritten(variable: LLVMValueRef) -> bool;
    pub fn cere_mark_bytes(module: LLVMModuleRef);
    pub fn cere_marked_bytes(
        variable: LLVMValueRef,
        sink: extern "C" fn(*mut c_void, *const c_char, size_t, *const MarkedBytes),
        context: *mut c_void,
    );
    pub fn cere_unmark_bytes(module: LLVMModuleRef);
    pub fn cere_bitcode(
        module: LLVMModuleRef,
        sink: extern "C" fn(*mut c_void, *const u8, size_t),
        context: *mut c_void,
    );
    pub fn cere_bridge(
        module: LLVMModuleRef,
        captured: *const c_char,
        region: u32,
        function: *const c_char,
        note: *mut *mut c_char,
    ) -> *mut c_char;
    pub fn cere_all_parallel();
    pub fn cere_ablate(module: LLVMModuleRef, what: u32) -> size_t;
    pub fn cere_cross_module(
        module: LLVMModuleRef,
        triple: *const c_char,
        layout: *const c_char,
        split: bool,
        trap: *const c_char,
        with_ir: *const *const c_char,
        count: size_t,
        said: extern "C" fn(*mut c_void, *const u8, size_t, *const u8, size_t),
        context: *mut c_void,
    );
    pub fn cere_demangle(symbol: *const c_char) -> *mut c_char;
    pub fn cere_linkage_name(location: LLVMMetadataRef) -> *mut c_char;
    pub fn cere_compiled(module: LLVMModuleRef) -> *mut c_char;
    pub fn cere_user_place(
        function: LLVMValueRef,
        location: *mut LLVMMetadataRef,
        is_library: extern "C" fn(*const c_void, *const c_char, usize) -> bool,
        facts: *const c_void,
    ) -> LLVMValueRef;
    pub fn cere_scoped_name(subprogram: LLVMMetadataRef) -> *mut c_char;
    pub fn cere_split_contractions(module: LLVMModuleRef);
    pub fn cere_forget_errno(module: LLVMModuleRef);
    pub fn cere_replace_values(function: LLVMValueRef, by: LLVMValueRef);
    pub fn cere_set_dso_local(global: LLVMValueRef);
    pub fn cere_copy_dso_local(from: LLVMValueRef, to: LLVMValueRef);
    pub fn cere_resolve_aliases(module: LLVMModuleRef);
    pub fn cere_resolve_at_calls(module: LLVMModuleRef);
    pub fn cere_declare_ifunc(module: LLVMModuleRef, ifunc: LLVMValueRef, name: *const c_char);
    pub fn cere_assembly_symbols(
        module: LLVMModuleRef,
        sink: extern "C" fn(*mut c_void, *const u8, size_t, bool),
        context: *mut c_void,
    );
}

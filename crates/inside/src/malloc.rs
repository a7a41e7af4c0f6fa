//! The `malloc` family that the preload library and replays put in the C library's place.

/// Defines those of the family that follow from others: for a module that has `realloc`, `memalign` and `no_memory`, which sets
/// errno and returns null.
#[macro_export]
macro_rules! derived_allocators {
    () => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn reallocarray(
            block: *mut libc::c_void,
            count: usize,
            size: usize,
        ) -> *mut libc::c_void {
            match count.checked_mul(size) {
                // SAFETY: `block` is null or what this allocator gave, as C demands of the program.
                Some(bytes) => unsafe { realloc(block, bytes) },
                None => no_memory(),
            }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn valloc(size: usize) -> *mut libc::c_void {
            // SAFETY: takes no pointers; 4096 is a power of two.
            unsafe { memalign(4096, size) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn pvalloc(size: usize) -> *mut libc::c_void {
            match size.checked_next_multiple_of(4096) {
                // SAFETY: takes no pointers; 4096 is a power of two.
                Some(size) => unsafe { memalign(4096, size) },
                None => no_memory(),
            }
        }
    };
}

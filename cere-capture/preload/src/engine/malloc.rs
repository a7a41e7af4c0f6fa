//! `malloc` and family. Outside captured invocations they call the next allocator; inside, they use the region heap. What
//! the library's own calls of libc allocate comes from the arena.

use super::heap::{Block, in_heap, is_inside, is_inside_elsewhere, with_heap};
use super::status;
use crate::os::arena::{self, Arena};
use crate::os::local;
use crate::os::section::in_library;
use crate::os::symbols::find_next;
use crate::os::sys::copy;
use cere_inside::heap::Heap;
use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Head of the list of blocks whose `free` waits for the end of the captured invocation.
static DEFERRED: AtomicUsize = AtomicUsize::new(0);

fn in_arena(block: Block) -> bool {
    let (start, end) = arena::arena_range();
    (start..end).contains(&(block as usize))
}

const HEAD: usize = 16;

fn arena_layout(size: usize) -> Layout {
    Layout::from_size_align(size.saturating_add(HEAD).min(1 << 40), HEAD)
        .unwrap_or(Layout::new::<u128>())
}

fn arena_allocate(size: usize) -> Block {
    // SAFETY: a layout of at least 16 bytes; the head fits.
    unsafe {
        let block = Arena.alloc(arena_layout(size));
        if block.is_null() {
            return null_mut();
        }
        *block.cast::<usize>() = size;
        block.add(HEAD).cast()
    }
}

unsafe fn arena_size(block: Block) -> usize {
    // SAFETY: the head holds the size.
    unsafe { *block.cast::<u8>().sub(HEAD).cast::<usize>() }
}

unsafe fn arena_free(block: Block) {
    // SAFETY: `block` came from `arena_allocate`.
    unsafe {
        Arena.dealloc(
            block.cast::<u8>().sub(HEAD),
            arena_layout(arena_size(block)),
        )
    }
}

fn no_memory() -> Block {
    // SAFETY: errno's address is valid in the calling thread.
    unsafe { *libc::__errno_location() = libc::ENOMEM };
    null_mut()
}

/// The next definition of a function; the caller vouches for the type.
macro_rules! real {
    ($name:literal, $type:ty) => {{
        static REAL: AtomicUsize = AtomicUsize::new(0);
        let mut found = REAL.load(Ordering::Relaxed);
        if found == 0 {
            // dlsym may allocate.
            found = in_library(|| find_next(&REAL, $name));
        }
        std::mem::transmute::<usize, $type>(found)
    }};
}

unsafe fn real_free(block: Block) {
    static REAL: AtomicUsize = AtomicUsize::new(0);
    static RESOLVING: AtomicBool = AtomicBool::new(false);
    let mut found = REAL.load(Ordering::Relaxed);
    if found == 0 {
        // dlsym itself frees the message of an earlier error: that block is lost.
        if RESOLVING.swap(true, Ordering::Acquire) {
            return;
        }
        found = in_library(|| find_next(&REAL, c"free"));
        RESOLVING.store(false, Ordering::Release);
    }
    let _call = local::calls_allocator();
    // SAFETY: libc's `free`, of that type; callers pass blocks that libc's allocator gave.
    unsafe { std::mem::transmute::<usize, unsafe extern "C" fn(Block)>(found)(block) }
}

unsafe fn real_size(block: Block) -> usize {
    // SAFETY: the callers pass blocks that libc's allocator gave.
    unsafe { real!(c"malloc_usable_size", unsafe extern "C" fn(Block) -> usize)(block) }
}

/// Looks up the functions that a captured invocation calls: a look-up inside would be part of it.
pub fn look_up_next() {
    // SAFETY: frees nothing; the block is none.
    unsafe {
        real_free(null_mut());
        real_size(null_mut());
    }
}

/// Frees what was freed while a captured invocation ran.
pub fn free_deferred() {
    let mut block = DEFERRED.swap(0, Ordering::AcqRel);
    while block != 0 {
        // SAFETY: an entry of the list is the block and the next entry; the block is the program's allocator's.
        unsafe {
            let entry = block as Block;
            let [freed, next] = *entry.cast::<[usize; 2]>();
            arena_free(entry);
            free(freed as Block);
            block = next;
        }
    }
}

/// The newest block whose `free` waits.
pub fn last_deferred() -> usize {
    DEFERRED.load(Ordering::Acquire)
}

/// Blocks of the program's allocator that were freed since [`last_deferred`] told `before`, and still hold what they held then:
/// [start, end), rising; neighbours with nothing but a head between them are one. Everything is open.
pub fn freed_since(before: usize) -> Vec<(u64, u64)> {
    /// As many as a package may hold with room for more.
    const MOST: usize = 1 << 18;
    let mut found: Vec<(u64, u64)> = Vec::new();
    let mut entry = last_deferred();
    while entry != before && entry != 0 {
        // SAFETY: an entry of the list is the block and the next entry; the block is not freed yet.
        unsafe {
            let [block, next] = *(entry as *const [usize; 2]);
            if !in_heap(block as Block) {
                let size = malloc_usable_size(block as Block);
                found.push((block as u64, (block + size) as u64));
            }
            entry = next;
        }
    }
    found.sort_unstable();
    found.dedup_by(|next, last| {
        let near = next.0 <= last.1 + HEAD as u64;
        last.1 = if near { last.1.max(next.1) } else { last.1 };
        near
    });
    found.truncate(MOST);
    found
}

fn defer_free(block: Block) {
    let entry = arena_allocate(16);
    if entry.is_null() {
        return;
    }
    let mut head = DEFERRED.load(Ordering::Relaxed);
    loop {
        // SAFETY: a fresh block of 16 bytes that nobody else knows yet.
        unsafe { *entry.cast::<[usize; 2]>() = [block as usize, head] };
        match DEFERRED.compare_exchange(head, entry as usize, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return,
            Err(now) => head = now,
        }
    }
}

fn heap_allocate(size: usize, align: usize) -> Block {
    let block = with_heap(|heap| heap.allocate(size, align));
    if block.is_null() {
        no_memory()
    } else {
        block.cast()
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn malloc(size: usize) -> Block {
    if is_inside() {
        return heap_allocate(size, 16);
    }
    if local::in_library() {
        return arena_allocate(size);
    }
    let _call = local::calls_allocator();
    // SAFETY: takes no pointers.
    unsafe { real!(c"malloc", unsafe extern "C" fn(usize) -> Block)(size) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn calloc(count: usize, size: usize) -> Block {
    let inside = is_inside();
    if !inside && !local::in_library() {
        let _call = local::calls_allocator();
        // SAFETY: takes no pointers.
        return unsafe {
            real!(c"calloc", unsafe extern "C" fn(usize, usize) -> Block)(count, size)
        };
    }
    let Some(bytes) = count.checked_mul(size) else {
        return no_memory();
    };
    if inside {
        let block = with_heap(|heap| heap.allocate_zeroed(bytes));
        return if block.is_null() {
            no_memory()
        } else {
            block.cast()
        };
    }
    let block = arena_allocate(bytes);
    if !block.is_null() {
        // SAFETY: the block holds `bytes`.
        unsafe { block.cast::<u8>().write_bytes(0, bytes) };
    }
    block
}

#[unsafe(no_mangle)]
unsafe extern "C" fn free(block: Block) {
    if block.is_null() {
        return;
    }
    // SAFETY: `block` is what one of these allocators gave, as C demands of the program; its address says which, and it goes back there.
    unsafe {
        let other_inside = is_inside_elsewhere();
        if in_heap(block) && other_inside {
            // The heap is closed, and the captured thread may hold its lock.
            defer_free(block);
        } else if in_heap(block) {
            with_heap(|heap| heap.free(block.cast()));
        } else if in_arena(block) {
            arena_free(block);
        } else if is_inside() {
            defer_free(block);
        } else {
            if DEFERRED.load(Ordering::Relaxed) != 0 && !other_inside && !status::captures() {
                free_deferred();
            }
            real_free(block);
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn realloc(block: Block, size: usize) -> Block {
    // SAFETY: `block` is null or what one of these allocators gave, as C demands of the program.
    unsafe {
        if block.is_null() {
            return malloc(size);
        }
        let moves = is_inside() || in_heap(block) || in_arena(block);
        if !moves {
            let _call = local::calls_allocator();
            return real!(c"realloc", unsafe extern "C" fn(Block, usize) -> Block)(block, size);
        }
        if size == 0 {
            free(block);
            return null_mut();
        }
        let usable = malloc_usable_size(block);
        if in_heap(block) && is_inside() && cere_inside::heap::stays(usable, size) {
            return block;
        }
        let new = malloc(size);
        if !new.is_null() {
            copy(block.cast(), new.cast(), usable.min(size));
            free(block);
        }
        new
    }
}

cere_inside::derived_allocators! {}

#[unsafe(no_mangle)]
unsafe extern "C" fn malloc_usable_size(block: Block) -> usize {
    if block.is_null() {
        return 0;
    }
    // SAFETY: `block` is what one of these allocators gave, as C demands of the program.
    unsafe {
        if in_heap(block) {
            Heap::usable(block.cast())
        } else if in_arena(block) {
            arena_size(block)
        } else {
            real_size(block)
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memalign(align: usize, size: usize) -> Block {
    if is_inside() {
        return heap_allocate(size, align.next_power_of_two());
    }
    let _call = local::calls_allocator();
    // SAFETY: takes no pointers.
    unsafe { real!(c"memalign", unsafe extern "C" fn(usize, usize) -> Block)(align, size) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn aligned_alloc(align: usize, size: usize) -> Block {
    if is_inside() {
        return heap_allocate(size, align.next_power_of_two());
    }
    let _call = local::calls_allocator();
    // SAFETY: takes no pointers.
    unsafe {
        real!(
            c"aligned_alloc",
            unsafe extern "C" fn(usize, usize) -> Block
        )(align, size)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn posix_memalign(out: *mut Block, align: usize, size: usize) -> c_int {
    if !is_inside() {
        let _call = local::calls_allocator();
        // SAFETY: `out` is valid for a write, as C demands of the program.
        return unsafe {
            real!(
                c"posix_memalign",
                unsafe extern "C" fn(*mut Block, usize, usize) -> c_int
            )(out, align, size)
        };
    }
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<usize>()) {
        return libc::EINVAL;
    }
    let block = with_heap(|heap| heap.allocate(size, align));
    if block.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller's variable.
    unsafe { *out = block.cast() };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn malloc_trim(pad: usize) -> c_int {
    let _call = local::calls_allocator();
    // SAFETY: takes no pointers.
    unsafe { real!(c"malloc_trim", unsafe extern "C" fn(usize) -> c_int)(pad) }
}

macro_rules! addresses {
    ($($function:ident)*) => {
        [$((stringify!($function).to_owned(), $function as *const () as u64)),*].into()
    };
}

/// Names and addresses of the interposed functions that allocate or free.
pub fn list_functions() -> Vec<(String, u64)> {
    cere_format::malloc_family!(addresses)
}

/// `malloc` of the OpenMP runtime: its memory belongs to no region.
pub unsafe extern "C" fn runtime_malloc(size: usize) -> Block {
    arena_allocate(size)
}

/// `calloc` of the OpenMP runtime.
pub unsafe extern "C" fn runtime_calloc(count: usize, size: usize) -> Block {
    let Some(bytes) = count.checked_mul(size) else {
        return no_memory();
    };
    // SAFETY: the block holds `bytes`.
    unsafe {
        let block = runtime_malloc(bytes);
        if !block.is_null() {
            block.cast::<u8>().write_bytes(0, bytes);
        }
        block
    }
}

/// `realloc` of the OpenMP runtime.
pub unsafe extern "C" fn runtime_realloc(block: Block, size: usize) -> Block {
    // SAFETY: `block` is null or what `runtime_malloc` gave: the OpenMP runtime is C.
    unsafe {
        if block.is_null() {
            return runtime_malloc(size);
        }
        if !in_arena(block) {
            return realloc(block, size);
        }
        let new = runtime_malloc(size);
        if !new.is_null() {
            copy(block.cast(), new.cast(), arena_size(block).min(size));
            free(block);
        }
        new
    }
}

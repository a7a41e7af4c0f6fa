//! The library's own memory: a reserved address range, apart from the program's heap.
//!
//! Allowed here: raw memory, raw system calls and atomics. Never libc.

use super::section::Lock;
use super::{allowance, sys};
use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Preferred start of the range.
pub const WANTED: usize = 0x2000_0000_0000;
/// Size of the range: address space only.
pub const SIZE: usize = 64 << 30;
/// Smaller sizes, for systems that refuse [`SIZE`].
const SMALL: [usize; 3] = [256 << 20, 16 << 20, 1 << 20];

/// Preferred addresses of thread stacks.
pub const STACKS: usize = WANTED + 12 * SIZE;

static BASE: AtomicUsize = AtomicUsize::new(0);
static END: AtomicUsize = AtomicUsize::new(0);
static NEXT: AtomicUsize = AtomicUsize::new(0);
static LOCK: Lock = Lock::new();
/// Heads of the lists of free blocks, by power of two. Guarded by `LOCK`.
static mut FREE: [usize; 48] = [0; 48];

/// The global allocator of the library.
pub struct Arena;

/// [start, end) of the range; empty before the first allocation.
pub fn arena_range() -> (usize, usize) {
    let base = BASE.load(Ordering::Acquire);
    if base == 0 {
        (0, 0)
    } else {
        (base, END.load(Ordering::Relaxed))
    }
}

fn map_memory(wanted: usize, size: usize, extra: i32) -> Option<usize> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | extra;
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    let arguments = [wanted, size, rights as usize, flags as usize, usize::MAX, 0];
    allowance::take(size, true);
    // SAFETY: a fresh mapping; MAP_FIXED_NOREPLACE never replaces one.
    let got = usize::try_from(unsafe { sys::call(libc::SYS_mmap, arguments) });
    if got.is_err() {
        allowance::give_back(size, true);
    }
    got.ok()
}

/// Reserves `size` bytes of zeroed address space at `wanted`, or anywhere, for the library. None if refused.
pub fn reserve(wanted: usize, size: usize) -> Option<usize> {
    let start = map_memory(wanted, size, libc::MAP_FIXED_NOREPLACE)
        .or_else(|| map_memory(wanted, size, 0))?;
    // SAFETY: a fresh mapping of our own, which a core file can do without.
    unsafe {
        let advice = libc::MADV_DONTDUMP as usize;
        sys::call(libc::SYS_madvise, [start, size, advice, 0, 0, 0]);
    }
    Some(start)
}

/// Whether `address` lies in the part of the address space that the library uses.
pub fn is_ours(address: usize) -> bool {
    (WANTED..cere_inside::heap::BASE + cere_inside::heap::SIZE).contains(&address)
}

/// In a forked child: its one thread does not hold the lock.
pub fn reset_in_child() {
    LOCK.forked();
}

/// Reserves `size` bytes of zeroed address space at `wanted` and nowhere else.
pub fn reserve_at(wanted: usize, size: usize) -> bool {
    map_memory(wanted, size, libc::MAP_FIXED_NOREPLACE) == Some(wanted)
}

fn size_class(layout: Layout) -> usize {
    layout
        .size()
        .max(layout.align())
        .max(16)
        .next_power_of_two()
        .trailing_zeros() as usize
}

// SAFETY: blocks are powers of two, aligned to their size up to 4096 and to the page beyond, never overlapping.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let class = size_class(layout);
        if class >= 40 {
            return std::ptr::null_mut();
        }
        // SAFETY: the lock is held; a free block's first word is the next free block.
        LOCK.with(|| unsafe {
            let head = FREE[class];
            if head != 0 {
                FREE[class] = *(head as *const usize);
                return head as *mut u8;
            }
            let mut base = BASE.load(Ordering::Relaxed);
            if base == 0 {
                let sizes = std::iter::once(SIZE).chain(SMALL);
                let mut found = sizes.filter_map(|n| Some((reserve(WANTED, n)?, n)));
                if let Some((start, size)) = found.next() {
                    base = start;
                    END.store(start + size, Ordering::Relaxed);
                    NEXT.store(start, Ordering::Relaxed);
                    BASE.store(start, Ordering::Release);
                }
            }
            let align = (1usize << class).min(4096).max(layout.align());
            let start = NEXT.load(Ordering::Relaxed).next_multiple_of(align);
            if base == 0 || start + (1 << class) > END.load(Ordering::Relaxed) {
                return std::ptr::null_mut();
            }
            NEXT.store(start + (1 << class), Ordering::Relaxed);
            start as *mut u8
        })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let class = size_class(layout);
        // SAFETY: the block is free now and at least 16 bytes long; the lock is held.
        LOCK.with(|| unsafe {
            *block.cast::<usize>() = FREE[class];
            FREE[class] = block as usize;
        });
    }
}

#[global_allocator]
static ALLOCATOR: Arena = Arena;

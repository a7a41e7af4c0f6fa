//! The region heap: a deterministic allocator over one fixed address range that keeps all its state in the range.
//!
//! A capture saves the range like any memory, so a replay that makes the same calls gets the same addresses. The first
//! page holds [`Header`]; behind it the blocks are cut off one after the other, each after a 16-byte head with its size.
//! Free blocks are kept by size class, the last one freed first. No libc, no locks: the caller keeps threads apart.

use core::ptr::null_mut;

/// Where the range lies in captured programs and in replays.
pub const BASE: usize = 0x2100_0000_0000;
/// Size of the range: address space only.
pub const SIZE: usize = 64 << 30;
/// First word of a heap in use.
pub const MAGIC: u64 = u64::from_le_bytes(*b"CEREHEA1");

const CLASSES: usize = 257;
const HEAD: usize = 16;
const ALIGNED: usize = 1 << 63;

/// The heap's state.
#[repr(C)]
pub struct Header {
    /// [`MAGIC`]; anything else: not yet used.
    pub magic: u64,
    /// First address never cut off.
    pub next: usize,
    /// Bytes handed out and not freed.
    pub live: usize,
    /// Heads of the free lists by class.
    free: [usize; CLASSES],
}

/// Whether a block of `usable` bytes stays where it is when it is to hold `size` (not 0): else it moves.
pub const fn stays(usable: usize, size: usize) -> bool {
    usable / 2 <= size && size <= usable
}

/// A heap over [start, end), for who has it alone while this lives.
#[derive(Debug)]
pub struct Heap {
    start: usize,
    end: usize,
}

/// Class and size of the blocks that serve `size` bytes: eight classes to each power of two.
fn class(size: usize) -> Option<(usize, usize)> {
    let size = size.max(16);
    if size <= 128 {
        let class = size.div_ceil(16);
        return Some((class, class * 16));
    }
    if size > 1 << 38 {
        return None;
    }
    let power = (size - 1).ilog2() as usize;
    let step = 1usize << (power - 3);
    let part = (size - (1 << power)).div_ceil(step);
    Some((8 + (power - 7) * 8 + part, (1 << power) + part * step))
}

/// Bytes of the blocks of a class.
fn bytes(class: usize) -> usize {
    match class {
        ..=8 => class * 16,
        _ => {
            let (power, part) = (7 + (class - 9) / 8, (class - 9) % 8 + 1);
            (1 << power) + part * (1 << (power - 3))
        }
    }
}

impl Heap {
    /// A heap over [start, end).
    ///
    /// # Safety
    /// As long as this lives the range stays mapped, readable and writable; it holds zeros or a heap; and no other [`Heap`] over
    /// it is used at the same time, in whichever thread. What the blocks hold is their owners'.
    pub const unsafe fn new(start: usize, end: usize) -> Heap {
        Heap { start, end }
    }

    /// Whether `block` lies in the range.
    pub fn contains(&self, block: *const u8) -> bool {
        (self.start..self.end).contains(&(block as usize))
    }

    fn header(&self) -> *mut Header {
        self.start as *mut Header
    }

    /// A block of `size` bytes aligned to `align` (a power of two), not zeroed; null if the range is used up.
    pub fn allocate(&mut self, size: usize, align: usize) -> *mut u8 {
        self.find(size, align).0
    }

    /// A block of `size` zeros; null if the range is used up. Memory never used before is left untouched.
    pub fn allocate_zeroed(&mut self, size: usize) -> *mut u8 {
        let (block, used) = self.find(size, 16);
        if !block.is_null() && used {
            // SAFETY: the block holds `size` bytes.
            unsafe { block.write_bytes(0, size) };
        }
        block
    }

    /// A block, and whether it was in use before.
    fn find(&mut self, size: usize, align: usize) -> (*mut u8, bool) {
        let align = align.max(16);
        let wanted = if align > 16 {
            size.checked_add(align + HEAD)
        } else {
            Some(size)
        };
        let Some((class, bytes)) = wanted.and_then(class) else {
            return (null_mut(), false);
        };
        // SAFETY: see `new`; blocks lie within the range and never overlap.
        unsafe {
            let header = self.header();
            if (*header).magic != MAGIC {
                (*header).magic = MAGIC;
                (*header).next = self.start + size_of::<Header>().next_multiple_of(4096);
            }
            let mut block = (*header).free[class];
            let used = block != 0;
            if used {
                (*header).free[class] = *(block as *const usize);
            } else {
                let head = (*header).next;
                if self.end - head < bytes + HEAD {
                    return (null_mut(), false);
                }
                (*header).next = head + HEAD + bytes;
                block = head + HEAD;
            }
            // Of a used block as well: a replay whose threads come in another order takes free blocks that the captured
            // invocation did not touch, and whose heads it has not got.
            *((block - HEAD) as *mut usize) = bytes;
            *((block - HEAD) as *mut usize).add(1) = class;
            (*header).live += bytes;
            if align == 16 {
                return (block as *mut u8, used);
            }
            let aligned = (block + HEAD).next_multiple_of(align);
            // A head in front of the aligned block that leads to the true one.
            *((aligned - HEAD) as *mut usize) = ALIGNED | block;
            *((aligned - HEAD) as *mut usize).add(1) = block + bytes - aligned;
            (aligned as *mut u8, used)
        }
    }

    /// Bytes usable at `block`, whose head nobody changes while it is handed out.
    ///
    /// # Safety
    /// `block` came from a heap and is not freed.
    pub unsafe fn usable(block: *const u8) -> usize {
        // SAFETY: the head lies in front of the block.
        unsafe {
            let head = (block as usize - HEAD) as *const usize;
            if *head & ALIGNED != 0 {
                *head.add(1)
            } else {
                *head
            }
        }
    }

    /// Gives `block` back.
    ///
    /// # Safety
    /// `block` came from this heap and is not freed.
    pub unsafe fn free(&mut self, block: *mut u8) {
        // SAFETY: the head lies in front of the block.
        unsafe {
            let mut block = block as usize;
            let word = *((block - HEAD) as *const usize);
            if word & ALIGNED != 0 {
                block = word & !ALIGNED;
            }
            let head = (block - HEAD) as *const usize;
            let (bytes, class) = (*head, *head.add(1));
            let header = self.header();
            *(block as *mut usize) = (*header).free[class];
            (*header).free[class] = block;
            (*header).live -= bytes;
        }
    }

    /// End of the part that was ever handed out; the start if the heap was never used.
    pub fn used(&self) -> usize {
        if self.end - self.start < size_of::<Header>() {
            return self.start;
        }
        // SAFETY: see `new`; an unused heap holds zeros there.
        let (magic, next) = unsafe { ((*self.header()).magic, (*self.header()).next) };
        match magic == MAGIC {
            true => next.clamp(self.start, self.end),
            false => self.start,
        }
    }

    /// Bytes in blocks that are handed out.
    pub fn live(&self) -> usize {
        match self.used() == self.start {
            true => 0,
            // SAFETY: a heap that was used has its header.
            false => unsafe { (*self.header()).live },
        }
    }

    /// Tells [start, end) of what depends on the order in which threads took and gave back blocks: the state, the free
    /// blocks with their heads, and what was never handed out.
    pub fn each_unordered(&self, mut found: impl FnMut(usize, usize)) {
        found(self.start, self.start + size_of::<Header>());
        self.each_free(|start, end| found(start - size_of::<usize>() - HEAD, end));
        found(self.used(), self.end);
    }

    /// Tells [start, end) of what each free block holds behind its first word, which leads to the next one. A list that
    /// the program has broken is followed as far as it makes sense.
    pub fn each_free(&self, mut found: impl FnMut(usize, usize)) {
        const WORD: usize = size_of::<usize>();
        let (first, used) = (self.start + size_of::<Header>(), self.used());
        if used <= first {
            return;
        }
        let mut count = 0;
        for class in 0..CLASSES {
            // SAFETY: only words of the header and of the used part are read.
            unsafe {
                let mut block = (*self.header()).free[class];
                while block >= first + HEAD && block < used && block.is_multiple_of(16) {
                    // Not by its head: see `find`.
                    let bytes = bytes(class);
                    if bytes < WORD || bytes > used - block || count > used - self.start {
                        break;
                    }
                    count += 1;
                    found(block + WORD, block + bytes);
                    block = *(block as *const usize);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    fn told(heap: &Heap) -> Vec<(usize, usize)> {
        let mut list = Vec::new();
        heap.each_free(|from, to| list.push((from, to)));
        list
    }

    #[test]
    fn classes_fit_and_rise() {
        let mut last = (0, 0);
        for size in (0..100_000).chain([1 << 30, (1 << 30) + 1, 1 << 38]) {
            let (number, bytes) = class(size).unwrap();
            assert!(
                bytes >= size && number < CLASSES && (number, bytes) >= last,
                "{size}"
            );
            assert_eq!(super::bytes(number), bytes);
            last = (number, bytes);
        }
        assert!(class((1 << 38) + 1).is_none());
    }

    #[test]
    fn zeroed_blocks_are_zero() {
        let memory: Vec<u128> = std::vec![0; 4096];
        let start = (memory.as_ptr() as usize).next_multiple_of(4096);
        // SAFETY: our own memory.
        let mut heap = unsafe { Heap::new(start, start + 32768) };
        for _ in 0..3 {
            let block = heap.allocate_zeroed(100);
            // SAFETY: a live block of 100 bytes.
            unsafe {
                assert!(
                    std::slice::from_raw_parts(block, 100)
                        .iter()
                        .all(|b| *b == 0)
                );
                block.write_bytes(7, 100);
                heap.free(block);
            }
        }
    }

    #[test]
    fn free_blocks_are_told_whatever_became_of_the_lists() {
        let memory: Vec<u128> = std::vec![0; 4096];
        let start = (memory.as_ptr() as usize).next_multiple_of(4096);
        // SAFETY: our own memory.
        let mut heap = unsafe { Heap::new(start, start + 32768) };
        assert_eq!((heap.used(), told(&heap)), (start, std::vec![]));
        let blocks = [100, 100, 300].map(|size| heap.allocate(size, 16));
        assert!(told(&heap).is_empty());
        let at = |i: usize| blocks[i] as usize;
        // SAFETY: live blocks; the last line breaks the list of the first two.
        unsafe {
            blocks.iter().for_each(|block| heap.free(*block));
            let bytes = |i: usize| (at(i) + 8, at(i) + [112, 112, 320][i]);
            assert_eq!(told(&heap), [bytes(1), bytes(0), bytes(2)]);
            assert_eq!(heap.used(), at(2) + 320);
            for broken in [7, usize::MAX & !15, at(2) + 320] {
                *(blocks[1].cast::<usize>()) = broken;
                assert_eq!(told(&heap), [bytes(1), bytes(2)]);
            }
            *(blocks[1].cast::<usize>()) = at(1);
            assert!(told(&heap).len() <= 32768 + 2);
        }
    }

    #[test]
    fn free_blocks_without_a_head_can_be_taken() {
        let memory: Vec<u128> = std::vec![0; 4096];
        let start = (memory.as_ptr() as usize).next_multiple_of(4096);
        // SAFETY: our own memory; the block's head and first word are wiped while it is free, as in a replay.
        unsafe {
            let mut heap = Heap::new(start, start + 32768);
            let block = heap.allocate(300, 16);
            heap.free(block);
            block.sub(HEAD).write_bytes(0, HEAD + size_of::<usize>());
            let at = block as usize;
            assert_eq!(told(&heap), [(at + 8, at + 320)]);
            assert_eq!(heap.allocate(300, 16), block);
            assert_eq!((Heap::usable(block), heap.live()), (320, 320));
            heap.free(block);
            assert_eq!(
                (told(&heap), heap.live()),
                (std::vec![(at + 8, at + 320)], 0)
            );
        }
    }

    #[test]
    fn same_calls_same_offsets_and_no_overlap() {
        let run = || {
            let size = 1 << 24;
            let memory: Vec<u128> = std::vec![0; size / 16 + 256];
            let start = (memory.as_ptr() as usize).next_multiple_of(4096);
            // SAFETY: our own memory.
            let mut heap = unsafe { Heap::new(start, start + size) };
            let mut live: Vec<(usize, usize)> = Vec::new();
            let mut offsets = Vec::new();
            let mut seed = 7usize;
            for _ in 0..5000 {
                seed = seed
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                if seed >> 60 < 7 && !live.is_empty() {
                    let (block, _) = live.swap_remove((seed >> 20) % live.len());
                    // SAFETY: a live block.
                    unsafe { heap.free((start + block) as *mut u8) };
                } else {
                    let (bytes, align) = ((seed >> 30) % 700, 16 << ((seed >> 50) % 5));
                    let block = heap.allocate(bytes, align);
                    assert!(!block.is_null() && (block as usize).is_multiple_of(align));
                    // SAFETY: a live block.
                    assert!(unsafe { Heap::usable(block) } >= bytes);
                    let block = block as usize - start;
                    assert!(
                        live.iter()
                            .all(|(b, n)| block + bytes <= *b || b + n <= block)
                    );
                    live.push((block, bytes));
                    offsets.push(block);
                }
            }
            offsets
        };
        assert_eq!(run(), run());
    }
}

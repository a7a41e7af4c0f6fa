//! What counted code writes to, in its own process: a buffer for each thread, which goes to a pipe when it is full.
//!
//! Counted code ([`cere_format::count`]) finds the buffer, and has it sent when it is full, as [`cere_arch::counting`] says.

use crate::call::{self, call, thread_pointer};
use cere_arch::counting;
use cere_format::count::{CHUNK_HEAD, CHUNK_ROOM, END_THREAD, MARK_IMAGES};
use std::sync::atomic::{
    AtomicI32, AtomicPtr, AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

/// What counted code finds. [`cere_arch::counting`] and the pass know the offsets.
#[repr(C, align(64))]
struct Context {
    saved_a: u64,
    saved_c: u64,
    cursor: usize,
    room: usize,
    base: usize,
    /// Where the descriptor to write to is.
    to: *const AtomicI32,
    lock: *const AtomicU32,
    /// `syscall; ret`.
    call: usize,
    scratch: [u64; 8],
    own: *mut Context,
    next: *mut Context,
    /// Where the buffer that was made last is.
    all: *const AtomicPtr<Context>,
    /// Teams that the thread has forked and that have not joined.
    teams: u64,
}

/// Bytes after a chunk's room that one segment may still use.
const SLACK: usize = 4 << 20;
/// Chunks begin at multiples of this, so that one byte of the cursor says whether there is room.
const ALIGN: usize = 1 << 24;

/// The number of the descriptor that chunks go to; negative: nowhere.
static TO: AtomicI32 = AtomicI32::new(-1);
static LOCK: AtomicU32 = AtomicU32::new(0);
/// All buffers.
static ALL: AtomicPtr<Context> = AtomicPtr::new(std::ptr::null_mut());

/// A thread's buffer. It stays for the life of the process: the thread may run counted code at any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffer(*mut Context);

// SAFETY: a buffer is handed to one thread, which alone uses it.
unsafe impl Send for Buffer {}
// SAFETY: see above; others only copy the address.
unsafe impl Sync for Buffer {}

/// Sends chunks to `descriptor` from now on; negative: drops them.
pub fn send_to(descriptor: i32) {
    TO.store(descriptor, Relaxed);
}

impl Buffer {
    /// A buffer for thread number `thread`. None if there is no memory.
    #[must_use]
    pub fn new(thread: u32) -> Option<Self> {
        let context = size_of::<Context>().next_multiple_of(4096);
        let bytes = CHUNK_HEAD + CHUNK_ROOM + SLACK;
        let all = ALIGN + bytes + context;
        let (protection, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
        );
        let (protection, flags) = (protection as usize, flags as usize);
        // SAFETY: a new mapping, where the kernel has room.
        let start = unsafe { call(libc::SYS_mmap, [0, all, protection, flags, usize::MAX, 0]) };
        let start = usize::try_from(start).ok()?;
        let chunk = (start + context).next_multiple_of(ALIGN);
        // SAFETY: what lies before the context and after the chunk is whole pages of the new mapping that nobody knows.
        unsafe {
            let first = chunk - context;
            let end = (chunk + bytes).next_multiple_of(4096);
            for (from, to) in [(start, first), (end, start + all)] {
                if to > from {
                    call(libc::SYS_munmap, [from, to - from, 0, 0, 0, 0]);
                }
            }
        }
        let base = chunk + CHUNK_HEAD;
        let at = (chunk - context) as *mut Context;
        // SAFETY: both lie in the new mapping, aligned to pages.
        unsafe {
            at.write(Context {
                saved_a: 0,
                saved_c: 0,
                cursor: base,
                room: counting::room(),
                base,
                to: &raw const TO,
                lock: &raw const LOCK,
                call: call::plain(),
                scratch: [0; 8],
                own: at,
                next: std::ptr::null_mut(),
                all: &raw const ALL,
                teams: 0,
            });
            (chunk as *mut [u64; 4]).write([0, thread.into(), 0, 0]);
        }
        let mut first = ALL.load(Relaxed);
        loop {
            // SAFETY: written above, and nobody else knows of it yet.
            unsafe { (*at).next = first };
            match ALL.compare_exchange_weak(first, at, Release, Relaxed) {
                Ok(_) => return Some(Self(at)),
                Err(other) => first = other,
            }
        }
    }

    /// Has the calling thread write here from now on. False if the kernel refuses.
    ///
    /// # Safety
    /// No other thread writes here, and this one enters no other.
    #[must_use]
    pub unsafe fn enter(self) -> bool {
        // SAFETY: the head of the chunk lies before its base; the kernel changes GS alone.
        unsafe {
            let head = ((*self.0).base - CHUNK_HEAD) as *mut [u64; 4];
            (*head)[2] = thread_pointer() as u64;
            counting::enter(self.0 as usize)
        }
    }
}

/// Sends what the calling thread's buffer holds.
///
/// # Safety
/// The thread has entered a buffer.
pub unsafe fn flush() {
    // SAFETY: by the contract.
    unsafe { counting::flush() };
}

/// Sends the mark `code`: chunks that come later were written after it. The calling thread's buffer is sent before.
///
/// # Safety
/// The thread has entered a buffer.
pub unsafe fn mark(code: u64) {
    // SAFETY: the thread has entered a buffer; a record on the stack, whose length is given. The lock keeps chunks of other threads
    // apart.
    unsafe {
        flush();
        let record: [u64; 4] = [0, END_THREAD.into(), code, 0];
        let bytes = std::slice::from_raw_parts(record.as_ptr().cast::<u8>(), CHUNK_HEAD);
        while LOCK.swap(1, Acquire) != 0 {
            std::thread::yield_now();
        }
        send(bytes);
        LOCK.store(0, Release);
    }
}

/// Sends where the images of the process lie: for each, its offset in hexadecimal, a blank, its path and a zero. A whole
/// number of words.
pub fn send_images(text: &[u8]) {
    let head: [u64; 4] = [text.len() as u64, END_THREAD.into(), MARK_IMAGES, 0];
    // SAFETY: words of our own, as bytes.
    let head = unsafe { std::slice::from_raw_parts(head.as_ptr().cast::<u8>(), CHUNK_HEAD) };
    // Not the heap: the program's blocks have to lie where they lie without counters.
    for part in [head, text] {
        send(part);
    }
}

/// Sends bytes; what cannot be sent is dropped.
fn send(mut rest: &[u8]) {
    while !rest.is_empty() {
        let arguments = [
            TO.load(Relaxed) as usize,
            rest.as_ptr() as usize,
            rest.len(),
            0,
            0,
            0,
        ];
        // SAFETY: memory of our own, whose length is given.
        let written = unsafe { call(libc::SYS_write, arguments) };
        match usize::try_from(written) {
            Ok(written) => rest = &rest[written..],
            Err(_) if written == -(libc::EINTR as isize) => {}
            Err(_) => return,
        }
    }
}

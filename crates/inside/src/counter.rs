//! What counted code writes to, in its own process: a buffer for each thread, which goes to a pipe when it is full.
//!
//! Counted code ([`cere_format::count`]) finds the buffer through GS, which nothing else uses on x86-64 Linux. What runs
//! when the buffer is full is assembly: it keeps all registers but RCX, the flags too, and makes one kind of system call.
//! It never allocates, never calls libc and takes no lock but the one that keeps the threads' chunks apart.

use crate::call::{self, call, thread_pointer};
use cere_format::count::{CHUNK_HEAD, CHUNK_ROOM, END_THREAD, MARK_IMAGES};
use std::arch::global_asm;
use std::sync::atomic::{
    AtomicI32, AtomicPtr, AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

// Offsets are those of `Context`; the first four are known to the pass too (cere-pass/src/count.cpp).
global_asm!(
    ".pushsection .text.cere_counter,\"ax\",@progbits",
    ".balign 16",
    // RCX is the third byte of the cursor: 0 while the chunk has room. Or 2: a team is forked; or -1: it has
    // joined, and the buffers of its threads are to be sent.
    ".globl cere_counter_room",
    ".hidden cere_counter_room",
    ".type cere_counter_room,@function",
    "cere_counter_room:",
    "jrcxz 9f",
    "jmp cere_counter_flush",
    "9: ret",
    ".globl cere_counter_flush",
    ".hidden cere_counter_flush",
    ".type cere_counter_flush,@function",
    "cere_counter_flush:",
    "mov gs:[64], rax",
    "mov gs:[72], rdx",
    "mov gs:[80], rsi",
    "mov gs:[88], rdi",
    "mov gs:[96], r11",
    "mov gs:[104], r8",
    "mov gs:[112], rcx",
    "pushfq",
    "pop qword ptr gs:[120]",
    "mov r8, gs:[128]",
    "cmp rcx, 2",
    "jne 1f",
    "inc qword ptr gs:[152]",
    "1: cmp rcx, -1",
    "jne 1f",
    "mov qword ptr gs:[112], 0",
    // Only when the main thread's outermost team has joined does no other thread of it write.
    "dec qword ptr gs:[152]",
    "jnz 1f",
    "mov rsi, gs:[32]",
    "cmp qword ptr [rsi - 24], 0",
    "jne 1f",
    "mov qword ptr gs:[112], -1",
    // All buffers, the last made first.
    "mov r8, gs:[144]",
    "mov r8, [r8]",
    "1: mov rsi, [r8 + 32]",
    "mov rdx, [r8 + 16]",
    "sub rdx, rsi",
    "jz 8f",
    "mov [rsi - 32], rdx",
    // One chunk at a time.
    "2: mov rdi, gs:[48]",
    "mov eax, 1",
    "xchg [rdi], eax",
    "test eax, eax",
    "jz 3f",
    "mov eax, 24", // sched_yield
    "call qword ptr gs:[56]",
    "jmp 2b",
    "3: sub rsi, 32",
    "add rdx, 32",
    "4: mov rax, gs:[40]",
    "mov edi, [rax]",
    "test edi, edi",
    "js 6f",
    "mov eax, 1", // write
    "call qword ptr gs:[56]",
    "test rax, rax",
    "js 5f",
    "add rsi, rax",
    "sub rdx, rax",
    "jnz 4b",
    "jmp 6f",
    "5: cmp rax, -4", // EINTR
    "je 4b",
    "cmp rax, -11", // EAGAIN
    "je 4b",
    // Nobody reads any more: what follows is dropped.
    "mov rax, gs:[40]",
    "mov dword ptr [rax], -1",
    "6: mov rdi, gs:[48]",
    "mov dword ptr [rdi], 0",
    "mov rax, [r8 + 32]",
    "mov [r8 + 16], rax",
    "8: cmp qword ptr gs:[112], -1",
    "jne 7f",
    "mov r8, [r8 + 136]",
    "test r8, r8",
    "jnz 1b",
    "7: push qword ptr gs:[120]",
    "popfq",
    "mov rax, gs:[64]",
    "mov rdx, gs:[72]",
    "mov rsi, gs:[80]",
    "mov rdi, gs:[88]",
    "mov r11, gs:[96]",
    "mov r8, gs:[104]",
    "ret",
    ".popsection",
);

unsafe extern "C" {
    fn cere_counter_room();
    fn cere_counter_flush();
}

/// What GS points to.
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
                room: cere_counter_room as *const () as usize,
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
    /// No other thread writes here, and nothing else uses GS in this thread.
    #[must_use]
    pub unsafe fn enter(self) -> bool {
        const ARCH_SET_GS: usize = 0x1001;
        // SAFETY: the head of the chunk lies before its base; the kernel changes GS alone.
        unsafe {
            let head = ((*self.0).base - CHUNK_HEAD) as *mut [u64; 4];
            (*head)[2] = thread_pointer() as u64;
            let at = self.0 as usize;
            call(libc::SYS_arch_prctl, [ARCH_SET_GS, at, 0, 0, 0, 0]) == 0
        }
    }
}

/// Sends what the calling thread's buffer holds.
///
/// # Safety
/// The thread has entered a buffer.
pub unsafe fn flush() {
    // SAFETY: it changes RCX alone, whose content says whose buffers are sent.
    unsafe {
        core::arch::asm!("call {}", sym cere_counter_flush, inout("rcx") 1 => _, options(preserves_flags));
    }
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

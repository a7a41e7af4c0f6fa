//! `malloc` and family. Outside the region they are the C library's. Inside, memory comes from the region heap at
//! the captured addresses, and pointers of captured memory are never handed to a fresh allocator.

use crate::pages::Pages;
use crate::{space, text, unset};
use cere_inside::heap::Heap;
use libc::{c_int, c_void, size_t};
use std::cell::Cell;
use std::ffi::CStr;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

/// Whether the region is running.
pub static ACTIVE: AtomicBool = AtomicBool::new(false);
static START: AtomicUsize = AtomicUsize::new(0);
static END: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Whether the calling thread does something whose memory is not the region's.
    static OF_LIBRARY: Cell<bool> = const { Cell::new(false) };
}

/// Does `work` of the OpenMP runtime: what it allocates comes from the C library.
pub fn in_library<T>(work: impl FnOnce() -> T) -> T {
    let before = OF_LIBRARY.replace(true);
    let result = work();
    OF_LIBRARY.set(before);
    result
}

/// Blocks at most that are noted as freed.
const MOST_FREED: u64 = 1 << 24;
/// Blocks older than the region that it has freed in this run, as far as there is room.
static FREED: OnceLock<Box<[AtomicUsize]>> = OnceLock::new();
/// Their number.
static FREED_COUNT: AtomicUsize = AtomicUsize::new(0);

/// Where the region heap lies, an empty range if there is none; `freed`: the older blocks that the captured invocation freed.
pub fn place((start, end): (u64, u64), freed: &[(u64, u64)]) {
    START.store(start as usize, Relaxed);
    END.store(end as usize, Relaxed);
    let blocks = freed.iter().map(|f| f.1.saturating_sub(f.0) / 16 + 1);
    let most = blocks.fold(0, u64::saturating_add).min(MOST_FREED);
    let room = (0..most).map(|_| AtomicUsize::new(0)).collect();
    let _ = FREED.set(room);
}

/// A run of the region begins.
pub fn begin() {
    FREED_COUNT.store(0, Relaxed);
    ACTIVE.store(true, Relaxed);
}

/// A run of the region has ended.
pub fn end() {
    ACTIVE.store(false, Relaxed);
}

/// The region frees a block that is older than itself. One thread at a time.
fn note_freed(block: usize) {
    let at = FREED_COUNT.fetch_add(1, Relaxed);
    if let Some(place) = FREED.get().and_then(|freed| freed.get(at)) {
        place.store(block, Relaxed);
    }
}

/// Parts of the older blocks that both this run and the captured invocation, which freed those in `there`, have freed; by
/// rising address.
pub fn freed_older(there: &[(u64, u64)], pages: &Pages) -> Vec<(u64, u64)> {
    let here = FREED.get().into_iter().flatten();
    let here = here.take(FREED_COUNT.load(Relaxed));
    let mut starts: Vec<u64> = here.map(|block| block.load(Relaxed) as u64).collect();
    starts.sort_unstable();
    let ends = starts.iter().skip(1).copied().chain([u64::MAX]);
    let part = |(start, next): (&u64, u64)| {
        let range = there.get(there.partition_point(|r| r.1 <= *start))?;
        // Without the head in the package the block ends before the next one.
        let head = pages.word(start.wrapping_sub(8));
        let end = head.map_or(next, |head| start.saturating_add(usable(head) as u64));
        (range.0 <= *start).then(|| (*start, end.min(range.1).min(next)))
    };
    starts.iter().zip(ends).filter_map(part).collect()
}

/// The region heap, whether or not the region is running.
///
/// # Safety
/// No other thread is in it: by the lock, or because the region rests.
unsafe fn whole() -> Heap {
    // SAFETY: the captured range, open, with its captured content; or an empty one. Alone by the contract.
    unsafe { Heap::new(START.load(Relaxed), END.load(Relaxed)) }
}

/// End of the part of the region heap that was ever handed out.
pub fn used() -> u64 {
    // SAFETY: the region rests.
    unsafe { whole() }.used() as u64
}

/// Parts of the region heap that depend on the order in which threads took and gave back blocks; by rising address.
pub fn unordered() -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    if START.load(Relaxed) < END.load(Relaxed) {
        // SAFETY: the region rests.
        unsafe { whole() }.each_unordered(|start, end| found.push((start as u64, end as u64)));
    }
    found.sort_unstable();
    found
}

/// Free blocks of the region heap without their first word, which leads to the next one; by rising address.
pub fn freed() -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    // SAFETY: the region rests.
    unsafe { whole() }.each_free(|start, end| found.push((start as u64, end as u64)));
    found.sort_unstable();
    found
}

unsafe extern "C" {
    fn __libc_malloc(size: size_t) -> *mut c_void;
    fn __libc_calloc(count: size_t, size: size_t) -> *mut c_void;
    fn __libc_realloc(old: *mut c_void, size: size_t) -> *mut c_void;
    fn __libc_memalign(align: size_t, size: size_t) -> *mut c_void;
    fn __libc_free(old: *mut c_void);
}

/// The C library's own `malloc`, `calloc` and `realloc`.
pub fn libc_functions() -> [usize; 3] {
    [
        __libc_malloc as *const () as usize,
        __libc_calloc as *const () as usize,
        __libc_realloc as *const () as usize,
    ]
}

/// Whether a thread is in the region heap.
static LOCK: AtomicBool = AtomicBool::new(false);

/// The region heap, for one thread.
struct Locked(Heap);

impl Drop for Locked {
    fn drop(&mut self) {
        LOCK.store(false, Release);
    }
}

impl std::ops::DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut Heap {
        &mut self.0
    }
}

impl std::ops::Deref for Locked {
    type Target = Heap;
    fn deref(&self) -> &Heap {
        &self.0
    }
}

/// The region heap while the region runs, for what is the region's.
fn region() -> Option<Locked> {
    let there = START.load(Relaxed) < END.load(Relaxed);
    if !there || !ACTIVE.load(Relaxed) || OF_LIBRARY.get() {
        return None;
    }
    while LOCK.swap(true, Acquire) {
        std::hint::spin_loop();
    }
    // SAFETY: the lock, which is given back when this is dropped.
    Some(Locked(unsafe { whole() }))
}

fn no_memory() -> *mut c_void {
    // SAFETY: this thread's errno.
    unsafe { *libc::__errno_location() = libc::ENOMEM };
    null_mut()
}

/// A block of the region heap, if there is one.
fn given(block: *mut u8) -> *mut c_void {
    match block.is_null() {
        true => no_memory(),
        false => block.cast(),
    }
}

/// Bytes usable at a block of captured memory.
///
/// # Safety
/// The application got `block` from its allocator.
unsafe fn captured_size(block: *const c_void) -> usize {
    let region = START.load(Relaxed)..END.load(Relaxed);
    // SAFETY: the application got `block` from its allocator, by the contract.
    unsafe {
        if region.contains(&(block as usize)) {
            return Heap::usable(block as *const u8);
        }
        usable(*(block as *const u64).sub(1))
    }
}

/// Bytes usable at a block of the C library's, which keeps size and flags in the word before; a block that was mapped has two
/// words in front.
fn usable(head: u64) -> usize {
    let size = (head & !7) as usize;
    size.saturating_sub(if head & 2 != 0 { 16 } else { 8 })
}

/// A block of the region heap, or outside the region of the C library's.
#[inline(never)]
fn block(align: size_t, size: size_t) -> *mut c_void {
    let Some(mut heap) = region() else {
        space::hold_break();
        // SAFETY: takes no pointers.
        return unsafe {
            if align <= 16 {
                __libc_malloc(size)
            } else {
                __libc_memalign(align, size)
            }
        };
    };
    given(heap.allocate(size, align.next_power_of_two()))
}

#[inline(never)]
fn zeroed(count: size_t, size: size_t) -> *mut c_void {
    let Some(mut heap) = region() else {
        space::hold_break();
        // SAFETY: takes no pointers.
        return unsafe { __libc_calloc(count, size) };
    };
    let size = count.checked_mul(size);
    given(size.map_or(null_mut(), |size| heap.allocate_zeroed(size)))
}

/// Inside, blocks of the region heap go back to it; other captured memory stays as it is.
///
/// # Safety
/// `old` is what this allocator gave or captured memory.
#[inline(never)]
unsafe fn give_back(old: *mut c_void) {
    // SAFETY: by the contract.
    unsafe {
        match region() {
            Some(mut heap) if heap.contains(old as *const u8) => heap.free(old as *mut u8),
            Some(_) if space::reserved(old as u64) => note_freed(old as usize),
            None if space::reserved(old as u64) => {}
            _ => __libc_free(old),
        }
    }
}

/// Inside, a block that does not fit its place any more moves to the region heap.
///
/// # Safety
/// `old` is null, what this allocator gave or captured memory.
#[inline(never)]
unsafe fn resized(old: *mut c_void, size: size_t) -> *mut c_void {
    // SAFETY: by the contract.
    unsafe {
        if old.is_null() {
            return block(16, size);
        }
        if !space::reserved(old as u64) {
            return __libc_realloc(old, size);
        }
        if size == 0 {
            give_back(old);
            return null_mut();
        }
        let usable = captured_size(old);
        let stays = region().is_some_and(|h| h.contains(old as *const u8));
        if stays && cere_inside::heap::stays(usable, size) {
            return old;
        }
        let new = block(16, size);
        if !new.is_null() {
            let bytes = size.min(usable);
            std::ptr::copy_nonoverlapping(old as *const u8, new as *mut u8, bytes);
            give_back(old);
        }
        new
    }
}

// The functions themselves leave nothing on the stack but what their callers had in registers.

#[unsafe(no_mangle)]
unsafe extern "C" fn malloc(size: size_t) -> *mut c_void {
    let made = block(16, size);
    unset::leave_frames();
    made
}

#[unsafe(no_mangle)]
unsafe extern "C" fn calloc(count: size_t, size: size_t) -> *mut c_void {
    let made = zeroed(count, size);
    unset::leave_frames();
    made
}

#[unsafe(no_mangle)]
unsafe extern "C" fn free(old: *mut c_void) {
    if !old.is_null() {
        // SAFETY: as C demands of the region.
        unsafe { give_back(old) };
        unset::leave_frames();
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn realloc(old: *mut c_void, size: size_t) -> *mut c_void {
    // SAFETY: as C demands of the region.
    let made = unsafe { resized(old, size) };
    unset::leave_frames();
    made
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memalign(align: size_t, size: size_t) -> *mut c_void {
    let made = block(align, size);
    unset::leave_frames();
    made
}

cere_inside::derived_allocators! {}

#[unsafe(no_mangle)]
unsafe extern "C" fn aligned_alloc(align: size_t, size: size_t) -> *mut c_void {
    // SAFETY: takes no pointers.
    unsafe { memalign(align, size) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn posix_memalign(out: *mut *mut c_void, align: size_t, size: size_t) -> c_int {
    if !align.is_power_of_two() || !align.is_multiple_of(8) {
        return libc::EINVAL;
    }
    // SAFETY: `out` is valid for a write, as C demands of the program.
    unsafe {
        let block = memalign(align, size);
        if block.is_null() {
            return libc::ENOMEM;
        }
        *out = block;
    }
    0
}

/// Most keys for thread-specific data that the C library has.
const KEYS: usize = 1024;
/// Those that libraries have made.
static LIBRARYS: [AtomicBool; KEYS] = [const { AtomicBool::new(false) }; KEYS];

/// Whether a library that a replay takes fresh made the key.
pub fn is_librarys(key: u32) -> bool {
    let made = LIBRARYS.get(key as usize);
    made.is_some_and(|made| made.load(Relaxed))
}

type Destructor = Option<unsafe extern "C" fn(*mut c_void)>;
type Create = unsafe extern "C" fn(*mut libc::pthread_key_t, Destructor) -> c_int;

/// As in the C library. The program's destructors have their captured addresses, those of libraries have none.
#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_key_create(
    key: *mut libc::pthread_key_t,
    on_end: Destructor,
) -> c_int {
    // SAFETY: the C library's function, as the caller calls it; then the key is set.
    unsafe {
        let next = libc::dlsym(libc::RTLD_NEXT, c"pthread_key_create".as_ptr());
        let status = std::mem::transmute::<*mut c_void, Create>(next)(key, on_end);
        if status == 0
            && let Some(place) = LIBRARYS.get(*key as usize)
        {
            let of_library = on_end.is_some_and(|f| !space::reserved(f as *const () as u64));
            place.store(of_library, Relaxed);
        }
        status
    }
}

type Register = unsafe extern "C" fn(*const c_void, *mut c_void, *const c_void) -> c_int;

/// Notes what is to run when the thread or the process ends. The region's never runs, as a replay ends without it, but is
/// compared.
unsafe fn register(
    key: u32,
    name: &CStr,
    what: *const c_void,
    on: *mut c_void,
    image: *const c_void,
) -> c_int {
    if ACTIVE.load(Relaxed) && !OF_LIBRARY.get() {
        text::note_registration(key, [what as u64, on as u64, image as u64]);
        return 0;
    }
    // SAFETY: the C library's function, which takes these or the first of them; as the caller calls it.
    unsafe {
        let next = libc::dlsym(libc::RTLD_NEXT, name.as_ptr());
        std::mem::transmute::<*mut c_void, Register>(next)(what, on, image)
    }
}

macro_rules! registers {
    ($($function:ident = $key:literal;)*) => {
        $(
            /// As in the C library, outside the region.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $function(
                what: *const c_void,
                on: *mut c_void,
                image: *const c_void,
            ) -> c_int {
                let name = concat!(stringify!($function), "\0").as_bytes();
                let name = CStr::from_bytes_with_nul(name).unwrap_or_default();
                // SAFETY: the caller's function and argument, as the C library takes them.
                unsafe { register($key, name, what, on, image) }
            }
        )*
    };
}
registers! {
    __cxa_thread_atexit_impl = 0;
    __cxa_atexit = 1;
    __cxa_at_quick_exit = 2;
    on_exit = 3;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> size_t {
    if block.is_null() {
        return 0;
    }
    // SAFETY: the C library's blocks have the same word in front as captured ones.
    unsafe { captured_size(block) }
}

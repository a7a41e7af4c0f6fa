//! The preload library of a program whose code is counted: gives each thread its buffer.
//!
//! It does nothing unless [`ENV_STREAM`] names a descriptor or a file. Its constructor runs before all others. What runs in the
//! program's threads later is `pthread_create` and the start of a thread; neither takes a lock.

use cere_format::count::{ENV_STREAM, MARK_END};
use cere_inside::counter::Buffer;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicUsize, Ordering::Relaxed};

static COUNTS: AtomicBool = AtomicBool::new(false);
static THREADS: AtomicU32 = AtomicU32::new(0);
static STREAM: AtomicI32 = AtomicI32::new(-1);
static CREATE: AtomicUsize = AtomicUsize::new(0);

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: unsafe extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) = constructor;
#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = destructor;

/// Ends the process, which would crash at its next counted instruction.
fn give_up(message: &str) -> ! {
    for text in ["cere: ", message, "\n"] {
        // SAFETY: text of our own.
        unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
    }
    // SAFETY: ends the process.
    unsafe { libc::_exit(78) }
}

/// Gives the calling thread a buffer of its own.
fn enter() {
    let number = THREADS.fetch_add(1, Relaxed);
    let buffer = Buffer::new(number);
    // SAFETY: the buffer is this thread's alone; nothing else uses GS on x86-64 Linux.
    if !buffer.is_some_and(|buffer| unsafe { buffer.enter() }) {
        give_up("no memory for the buffer of a counted thread, or the kernel refuses to set GS");
    }
}

/// Takes [`ENV_STREAM`] out of the environment: programs that this one starts do not see it. libc does not know the
/// environment yet.
///
/// # Safety
/// `environment` is a list of strings that ends in null, and nobody else uses it.
unsafe fn take_descriptor(environment: *mut *mut c_char) -> Option<i32> {
    let mut at = environment;
    // SAFETY: a list of strings that ends in null, which nobody else uses.
    unsafe {
        while !(*at).is_null() {
            let text = CStr::from_ptr(*at).to_bytes();
            let value = text.strip_prefix(ENV_STREAM.as_bytes());
            if let Some(value) = value.and_then(|v| v.strip_prefix(b"=")) {
                let number = match value.first() {
                    Some(b'/') => {
                        let path = (*at).add(ENV_STREAM.len() + 1);
                        Some(libc::open(path, libc::O_WRONLY)).filter(|number| *number >= 0)
                    }
                    _ => std::str::from_utf8(value).ok()?.parse().ok(),
                };
                while !(*at).is_null() {
                    *at = *at.add(1);
                    at = at.add(1);
                }
                return number;
            }
            at = at.add(1);
        }
    }
    None
}

/// The loader hands over what `main` gets.
unsafe extern "C" fn constructor(_: c_int, _: *mut *mut c_char, environment: *mut *mut c_char) {
    enter();
    // SAFETY: the loader's list; no other code of the program has run.
    let Some(descriptor) = (unsafe { take_descriptor(environment) }) else {
        return;
    };
    // SAFETY: plain look-ups and settings.
    unsafe {
        CREATE.store(
            libc::dlsym(libc::RTLD_NEXT, c"pthread_create".as_ptr()) as usize,
            Relaxed,
        );
        // Programs that this one starts write nothing.
        libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
        libc::pthread_atfork(None, None, Some(child));
    }
    cere_inside::counter::send_to(descriptor);
    STREAM.store(descriptor, Relaxed);
    COUNTS.store(true, Relaxed);
    images();
}

/// The list of images while it is written. Not in the heap: the program's blocks have to lie where they lie without this
/// library.
struct Text {
    bytes: [u8; 1 << 16],
    used: usize,
}

impl Text {
    fn add(&mut self, bytes: &[u8]) {
        if let Some(to) = self.bytes.get_mut(self.used..self.used + bytes.len()) {
            to.copy_from_slice(bytes);
            self.used += bytes.len();
        }
    }
}

/// Says where the images of the process lie.
fn images() {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = Text {
        bytes: [0; 1 << 16],
        used: 0,
    };
    cere_inside::images::visit(|info, _| {
        let offset = info.dlpi_addr;
        let digit = |at: u32| DIGITS[(offset >> (4 * at) & 15) as usize];
        let mut number = [0; 17];
        (0..16).for_each(|at| number[15 - at as usize] = digit(at));
        number[16] = b' ';
        text.add(&number);
        // SAFETY: the loader's string.
        text.add(unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes_with_nul());
        true
    });
    while !text.used.is_multiple_of(8) {
        text.add(&[0]);
    }
    cere_inside::counter::send_images(&text.bytes[..text.used]);
}

extern "C" fn destructor() {
    if COUNTS.load(Relaxed) {
        // SAFETY: the thread that ends the process has entered a buffer, as all have.
        unsafe { cere_inside::counter::mark(MARK_END) };
    }
}

/// A process that the program starts counts nothing.
unsafe extern "C" fn child() {
    COUNTS.store(false, Relaxed);
    cere_inside::counter::send_to(-1);
    // The stream ends with the program, not with what it started.
    // SAFETY: the descriptor that the environment named.
    unsafe { libc::close(STREAM.swap(-1, Relaxed)) };
}

/// What a new thread begins with.
#[derive(Clone, Copy)]
struct Start {
    run: extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
}

/// Threads that the program may start, at most.
const MOST: usize = 1 << 14;
/// What each thread begins with; not in the heap, as [`Text`].
static mut STARTS: [Option<Start>; MOST] = [None; MOST];
static STARTED: AtomicUsize = AtomicUsize::new(0);

extern "C" fn begin(start: *mut c_void) -> *mut c_void {
    // SAFETY: written by `pthread_create` below for this thread alone.
    let start = unsafe { *start.cast::<Option<Start>>() };
    enter();
    let Some(start) = start else {
        give_up("a thread has nothing to run")
    };
    let result = (start.run)(start.argument);
    // SAFETY: the thread has entered its buffer.
    unsafe { cere_inside::counter::flush() };
    result
}

/// Stands in front of libc's.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    run: extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
) -> c_int {
    type Create = unsafe extern "C" fn(
        *mut libc::pthread_t,
        *const libc::pthread_attr_t,
        extern "C" fn(*mut c_void) -> *mut c_void,
        *mut c_void,
    ) -> c_int;
    let mut real = CREATE.load(Relaxed);
    if real == 0 {
        // SAFETY: a plain look-up.
        real = unsafe { libc::dlsym(libc::RTLD_NEXT, c"pthread_create".as_ptr()) as usize };
    }
    if real == 0 {
        return libc::ENOSYS;
    }
    let place = STARTED.fetch_add(1, Relaxed);
    if place >= MOST {
        give_up("the program starts more threads than can be counted");
    }
    // SAFETY: the place is this call's alone; libc's function is called as the program calls it.
    unsafe {
        let start = (&raw mut STARTS).cast::<Option<Start>>().add(place);
        start.write(Some(Start { run, argument }));
        let real = std::mem::transmute::<usize, Create>(real);
        real(thread, attributes, begin, start.cast())
    }
}

//! Standard output during the region: a large buffer, so that printing stays out of the timed part; but where the
//! captured invocation was the first to print, the C library allocates its buffer inside, as it did in vivo.

use crate::heap;
use crate::library::Origins;
use crate::pages::Pages;
use cere_format::package::Manifest;

/// Size of the large buffer.
const BUFFER: usize = 1 << 20;
/// Bytes of the C library's stream that say which buffer it has and what is in it.
const STREAM: usize = 0x70;
/// Offset of the buffer's address in it.
const BUFFER_BASE: u64 = 56;
/// The packager's reason for a mask over such a buffer.
const REASON: &str = "buffer of a standard stream";

unsafe extern "C" {
    static stdout: *mut libc::FILE;
}

/// How standard output starts each repetition.
pub struct Output {
    /// The untouched stream, if the region allocates its buffer.
    untouched: Option<[u8; STREAM]>,
}

impl Output {
    /// Before anything is printed, with the region heap as at entry.
    pub fn new(manifest: &Manifest, origins: &Origins, pages: &Pages) -> Self {
        let heap = manifest.heap.0..manifest.heap.1;
        let mut masks = manifest.masks.iter().filter(|m| m.reason == REASON);
        let buffer = masks.find(|m| heap.contains(&m.start));
        // What the captured stream had at entry tells; without it, whether the heap reached so far.
        let inside =
            buffer.is_some_and(
                |m| match origins.captured(pages, "_IO_2_1_stdout_", BUFFER_BASE) {
                    Some(base) => base == 0,
                    None => m.start >= heap::used(),
                },
            );
        // SAFETY: the C library's stream, longer than the part that is read.
        unsafe {
            if !inside {
                libc::setvbuf(stdout, std::ptr::null_mut(), libc::_IOFBF, BUFFER);
            }
            Self {
                untouched: inside.then(|| std::ptr::read(stdout.cast())),
            }
        }
    }

    /// After a repetition: what it printed is gone, and its buffer too.
    pub fn reset(&self) {
        // SAFETY: the C library's stream; nothing prints meanwhile, and the region heap is put back as well.
        unsafe {
            libc::fflush(stdout);
            if let Some(untouched) = self.untouched {
                std::ptr::write(stdout.cast(), untouched);
            }
        }
    }
}

//! Standard output during the region: a large buffer, so that printing stays out of the timed part; but where the
//! captured invocation was the first to print, the C library allocates its buffer inside, as it did in vivo.

use crate::heap;
use crate::library::Origins;
use crate::pages::{PAGE, Pages};
use cere_format::package::Manifest;
use cere_format::replay::Difference;

/// Size of the large buffer.
const BUFFER: usize = 1 << 20;
/// Bytes of the C library's stream that say which buffer it has and what is in it.
const STREAM: usize = 0x70;
/// Offsets in it: the text not yet written out, up to where it goes on; the buffer and its end.
const WRITE_BASE: u64 = 32;
const WRITE_POINTER: u64 = 40;
const BUFFER_BASE: u64 = 56;
const BUFFER_END: u64 = 64;
/// Bit of its first word: it is being written to, and the offsets above hold.
const WRITING: u64 = 0x800;
/// Its symbol.
const NAME: &str = "_IO_2_1_stdout_";
/// The packager's reason for a mask over such a buffer.
const REASON: &str = "buffer of a standard stream";

unsafe extern "C" {
    static stdout: *mut libc::FILE;
}

/// Captured buffers of standard streams.
fn masks_of(manifest: &Manifest) -> impl Iterator<Item = (u64, u64)> {
    let masks = manifest.masks.iter().filter(|m| m.reason == REASON);
    masks.map(|m| (m.start, m.end))
}

/// How standard output starts each repetition.
pub struct Output {
    /// The untouched stream, if the region allocates its buffer.
    untouched: Option<[u8; STREAM]>,
    /// Where the captured invocation put its first byte, and the end of its buffer. None where the capture does not
    /// show what it printed: it wrote out in between, or the C library is another one.
    text: Option<(u64, u64)>,
}

impl Output {
    /// Before anything is printed, with the region heap as at entry.
    pub fn new(manifest: &Manifest, origins: &Origins, pages: &Pages) -> Self {
        let heap = manifest.heap.0..manifest.heap.1;
        let buffer = masks_of(manifest).find(|m| heap.contains(&m.0));
        // What the captured stream had at entry tells; without it, whether the heap reached so far.
        let inside = buffer.is_some_and(|m| match origins.captured(pages, NAME, BUFFER_BASE) {
            Some(base) => base == 0,
            None => m.0 >= heap::used(),
        });
        let wrote = |number: i64| {
            manifest
                .system_calls
                .iter()
                .any(|c| c.number as i64 == number)
        };
        let word = |offset| origins.captured(pages, NAME, offset);
        let text = if wrote(libc::SYS_write) || wrote(libc::SYS_writev) {
            None
        } else if inside {
            masks_of(manifest).find(|m| heap.contains(&m.0))
        } else {
            // Without `WRITING` the first byte goes to the start of the buffer.
            let at = match word(0) {
                Some(flags) if flags & WRITING != 0 => word(WRITE_POINTER),
                _ => word(BUFFER_BASE),
            };
            at.zip(word(BUFFER_END)).filter(|t| t.0 != 0 && t.0 <= t.1)
        };
        // SAFETY: the C library's stream, longer than the part that is read.
        unsafe {
            if !inside {
                libc::setvbuf(stdout, std::ptr::null_mut(), libc::_IOFBF, BUFFER);
            }
            Self {
                untouched: inside.then(|| std::ptr::read(stdout.cast())),
                text,
            }
        }
    }

    /// What the repetition printed against what the captured invocation printed: bytes compared, and the first
    /// place where they differ.
    pub fn compare(&self, pages: &Pages) -> (u64, Option<Difference>) {
        let Some((start, end)) = self.text else {
            return (0, None);
        };
        // SAFETY: the C library's stream and the text in its buffer, both at rest.
        let printed = unsafe {
            let stream = stdout as *const u8;
            let word = |offset: u64| *(stream.add(offset as usize) as *const u64);
            let (from, to) = (word(WRITE_BASE), word(WRITE_POINTER));
            if word(0) & WRITING == 0 || from >= to {
                &[]
            } else {
                std::slice::from_raw_parts(from as *const u8, (to - from) as usize)
            }
        };
        let difference = |at: u64, in_vivo: &[u8], in_vitro: &[u8]| {
            let word = |bytes: &[u8]| {
                let mut word = [0; 8];
                let length = bytes.len().min(8);
                word[..length].copy_from_slice(&bytes[..length]);
                u64::from_le_bytes(word)
            };
            Some(Difference {
                address: start + at,
                place: "standard output".to_owned(),
                in_vivo: word(in_vivo),
                in_vitro: word(in_vitro),
            })
        };
        let length = printed.len() as u64;
        let Some((exit, _)) = pages.both(start, end.min(start + length)) else {
            return (length, difference(0, &[], printed));
        };
        let alike = exit.iter().zip(printed).take_while(|(a, b)| a == b).count();
        if alike < printed.len() {
            return (
                length,
                difference(alike as u64, &exit[alike..], &printed[alike..]),
            );
        }
        // What the captured invocation printed after that changed the buffer.
        let mut at = start + length;
        while at < end {
            let next = end.min((at & !(PAGE - 1)) + PAGE);
            if let Some((exit, entry)) = pages.both(at, next)
                && let Some(more) = exit.iter().zip(&entry).position(|(a, b)| a != b)
            {
                return (
                    length,
                    difference(at + more as u64 - start, &exit[more..], &[]),
                );
            }
            at = next;
        }
        (length, None)
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

//! Memory aligned to one boundary and not to a greater one: `amalloc` of Whaley and Castaldo, figure 7.

use crate::error::TimerError;
use std::io;
use std::ptr::NonNull;

/// Bytes that have their own mapping: aligned to `align`, not aligned to `misalign`. Unmapped on drop. The pages are
/// zero and untouched.
#[derive(Debug)]
pub struct Aligned {
    map: NonNull<u8>,
    mapped: usize,
    at: usize,
    bytes: usize,
}

// SAFETY: it owns its mapping, as a vector owns its elements.
unsafe impl Send for Aligned {}
// SAFETY: through a shared reference only its address can be had.
unsafe impl Sync for Aligned {}

/// Checks a pair of alignments.
pub(crate) fn check(align: usize, misalign: usize) -> Result<(), TimerError> {
    if !align.is_power_of_two() {
        return Err(TimerError::Align(align));
    }
    if misalign != 0 && (misalign <= align || !misalign.is_power_of_two()) {
        return Err(TimerError::Misalign { align, misalign });
    }
    Ok(())
}

impl Aligned {
    /// Maps `bytes` (1 or more) at an address that is a multiple of `align`, a power of two, and no multiple of
    /// `misalign`, a power of two above `align`; with 0 any multiple of `align` will do.
    ///
    /// # Errors
    /// [`TimerError::ZeroBytes`], [`TimerError::Align`], [`TimerError::Misalign`]; [`TimerError::Memory`] if the machine
    /// has less left, [`TimerError::Map`] if the system refuses.
    pub fn new(bytes: usize, align: usize, misalign: usize) -> Result<Self, TimerError> {
        check(align, misalign)?;
        if bytes == 0 {
            return Err(TimerError::ZeroBytes);
        }
        let wanted = bytes.checked_add(align).and_then(|n| n.checked_add(align));
        let available = available();
        let mapped = wanted
            .filter(|&n| n <= available)
            .ok_or(TimerError::Memory {
                wanted: wanted.unwrap_or(usize::MAX),
                available,
            })?;
        // SAFETY: a new private mapping, of which no one knows yet.
        let map = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        let refused = || TimerError::Map {
            bytes: mapped,
            source: io::Error::last_os_error(),
        };
        let map = match NonNull::new(map.cast::<u8>()) {
            Some(map) if map.as_ptr().cast() != libc::MAP_FAILED => map,
            _ => return Err(refused()),
        };
        let start = map.as_ptr() as usize;
        let mut address = start.next_multiple_of(align);
        if misalign != 0 && address.is_multiple_of(misalign) {
            address += align;
        }
        Ok(Self {
            map,
            mapped,
            at: address - start,
            bytes,
        })
    }

    /// Its first byte.
    pub fn as_ptr(&self) -> *mut u8 {
        // SAFETY: `at` plus `bytes` is at most `mapped`: `at` is below twice `align`.
        unsafe { self.map.as_ptr().add(self.at) }
    }

    /// Its size in bytes.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Its bytes.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: mapped readable and writable for as long as `self` lives, which is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.as_ptr(), self.bytes) }
    }
}

impl Drop for Aligned {
    fn drop(&mut self) {
        // SAFETY: the mapping that `new` made; whoever has its address has it from a borrow that has ended.
        unsafe { libc::munmap(self.map.as_ptr().cast(), self.mapped) };
    }
}

/// Bytes that can be had without swapping: what the system says, or the control group's limit if that leaves less.
pub(crate) fn available() -> usize {
    let system = std::fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
            let kib: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
            kib.checked_mul(1024)
        });
    let number = |name: &str| -> Option<usize> {
        let text = std::fs::read_to_string(format!("/sys/fs/cgroup/memory.{name}")).ok()?;
        text.trim().parse().ok()
    };
    let group = number("max").map(|max| max.saturating_sub(number("current").unwrap_or(0)));
    system
        .unwrap_or(usize::MAX)
        .min(group.unwrap_or(usize::MAX))
}

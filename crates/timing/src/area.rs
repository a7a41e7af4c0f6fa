//! Memory of a probe, in pages of a chosen size.

use rand::seq::SliceRandom;
use rand::{SeedableRng, rngs::SmallRng};

/// Memory that the kernel refuses to a probe.
#[derive(Debug, thiserror::Error)]
#[error(
    "no memory for {bytes} bytes of a probe: {source}; free memory, or raise the limit of the container"
)]
pub struct NoMemory {
    /// Bytes.
    pub bytes: usize,
    /// The kernel's answer.
    pub source: std::io::Error,
}

/// Bytes of a huge page.
pub const HUGE: usize = 2 << 20;
/// Bytes of a small one.
pub const SMALL: usize = 4096;

/// What pages are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// Of 2 MiB where the kernel gives them.
    Huge,
    /// Of 4 KiB.
    Small,
    /// What the kernel gives to memory that asks for nothing.
    Plain,
}

/// Memory that starts at a border of 2 MiB. All of it is there and zero.
pub struct Area {
    mapping: (*mut libc::c_void, usize),
    start: *mut u64,
    bytes: usize,
}

// SAFETY: the area owns its mapping; shared references only read.
unsafe impl Send for Area {}
// SAFETY: shared references only read the mapping.
unsafe impl Sync for Area {}

impl Area {
    /// Of `bytes`, rounded up to pages of 4 KiB, every page touched.
    pub fn new(bytes: usize, pages: Pages) -> Result<Self, NoMemory> {
        let area = Self::untouched(bytes, pages)?;
        for page in (0..area.bytes).step_by(SMALL) {
            // SAFETY: inside the mapping.
            unsafe { area.start.cast::<u8>().add(page).write_volatile(0) };
        }
        Ok(area)
    }

    /// Likewise; no page is there yet.
    pub fn untouched(bytes: usize, pages: Pages) -> Result<Self, NoMemory> {
        let bytes = bytes.max(1).next_multiple_of(SMALL);
        let refused = || NoMemory {
            bytes,
            source: std::io::Error::last_os_error(),
        };
        let whole = bytes.checked_add(HUGE).ok_or_else(refused)?;
        // SAFETY: a fresh mapping of our own.
        let found = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                whole,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if found == libc::MAP_FAILED {
            return Err(refused());
        }
        let start = (found as usize).next_multiple_of(HUGE) as *mut u64;
        let advice = match pages {
            Pages::Huge => Some(libc::MADV_HUGEPAGE),
            Pages::Small => Some(libc::MADV_NOHUGEPAGE),
            Pages::Plain => None,
        };
        if let Some(advice) = advice {
            // SAFETY: the mapping above. The kernel may not know the advice: `huge` tells what came of it.
            unsafe { libc::madvise(start.cast(), bytes, advice) };
        }
        Ok(Self {
            mapping: (found, whole),
            start,
            bytes,
        })
    }

    /// Bytes.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "no area is empty")]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Address of its first byte.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.start as u64
    }

    /// Its words.
    pub fn words(&mut self) -> &mut [u64] {
        // SAFETY: the mapping holds them, it is zero or was written through this, and `self` is borrowed.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.bytes / 8) }
    }

    /// The share of it that lies in huge pages, by the kernel's word; 0 where it says nothing.
    #[must_use]
    pub fn huge(&self) -> f64 {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
        let (mut inside, mut kilobytes) = (false, 0u64);
        for line in maps.lines() {
            if let Some((from, to)) = line.split(' ').next().and_then(|w| w.split_once('-')) {
                let number = |text| u64::from_str_radix(text, 16);
                if let (Ok(from), Ok(to)) = (number(from), number(to)) {
                    // Advice splits the mapping: the part that it was given for lies within.
                    inside = from <= self.address() && self.address() < to;
                    continue;
                }
            }
            if inside && let Some(rest) = line.strip_prefix("AnonHugePages:") {
                let value = rest.trim().trim_end_matches("kB").trim().parse::<u64>();
                kilobytes += value.unwrap_or(0);
            }
        }
        ((kilobytes << 10) as f64 / self.bytes as f64).min(1.0)
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: the mapping of `untouched`, which nothing refers to any more.
        unsafe { libc::munmap(self.mapping.0, self.mapping.1) };
    }
}

/// Takes a word's line out of all caches.
pub fn flush(word: &u64) {
    // SAFETY: a word that can be read.
    unsafe { cere_arch::lines::ALWAYS.line(&raw const *word as u64) };
}

/// All lines of the first `bytes`, in words, at random.
#[must_use]
pub fn lines(bytes: usize, line: usize, seed: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..bytes)
        .step_by(line)
        .map(|at| (at / size_of::<u64>()) as u32)
        .collect();
    order.shuffle(&mut SmallRng::seed_from_u64(seed));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_are_aligned_and_zero() {
        for pages in [Pages::Huge, Pages::Small, Pages::Plain] {
            let mut area = Area::new(3 * HUGE + 5, pages).unwrap();
            assert_eq!(area.address() % HUGE as u64, 0);
            assert_eq!(area.len(), 3 * HUGE + SMALL);
            assert!(area.words().iter().all(|word| *word == 0));
            let huge = area.huge();
            assert!((0.0..=1.0).contains(&huge));
            assert!(pages != Pages::Small || huge == 0.0, "{huge}");
        }
    }

    #[test]
    fn too_much_memory_is_named() {
        let error = Area::new(1 << 60, Pages::Small).err().unwrap().to_string();
        assert!(error.contains("1152921504606846976 bytes"), "{error}");
    }
}

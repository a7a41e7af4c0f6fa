//! Private memory whose walk pushes out what caches hold.

use crate::error::Error;
use crate::lines::Lines;
use crate::space;
use cere_format::caches::Cache;
use cere_format::replay::CacheLevel;

/// Bytes of the first area to try where the sizes of the caches are not known.
const FIRST: u64 = 1 << 20;
/// Bytes of the largest.
const LAST: u64 = 1 << 30;

/// Bytes of the cache next to `level` on the core's side: what has to be emptied. `wanted` names for what, `others` what is
/// possible without.
pub fn nearer(
    caches: &[Cache],
    level: CacheLevel,
    wanted: &'static str,
    others: &'static str,
) -> Result<u64, Error> {
    let outer = match level {
        CacheLevel::L2 => caches.iter().position(|c| c.level == 2),
        CacheLevel::Llc => caches.len().checked_sub(1),
    };
    outer
        .and_then(|at| at.checked_sub(1))
        .map(|at| caches[at].size)
        .ok_or(Error::NoCache {
            level,
            wanted,
            others,
        })
}

/// Bytes of the largest cache of at most this level; 0 if none is known.
pub fn nearest(caches: &[Cache], level: u32) -> u64 {
    let near = caches.iter().filter(|cache| cache.level <= level);
    near.map(|cache| cache.size).max().unwrap_or(0)
}

/// Private memory.
pub struct Area {
    start: u64,
    size: u64,
}

impl Area {
    /// Of `size` bytes, every page of its own: populated for writing, so none is the shared page of zeros.
    pub fn new(size: u64) -> Result<Self, Error> {
        let start = space::fresh(size as usize, libc::MAP_POPULATE).ok_or_else(|| {
            Error::system(format!(
                "no memory for {size} bytes in addition to the codelet's"
            ))
        })?;
        Ok(Self {
            start: start as u64,
            size,
        })
    }

    /// The range.
    pub fn range(&self) -> (u64, u64) {
        (self.start, self.start + self.size)
    }

    /// Gives its pages back to the kernel; they come back as zeros.
    pub fn give_back(&self) {
        // SAFETY: the mapping of `new`. By the bare call: `madvise` is the region's.
        unsafe {
            libc::syscall(
                libc::SYS_madvise,
                self.start,
                self.size,
                libc::MADV_DONTNEED,
            )
        };
    }

    /// Reads all of it, twice: caches that do not replace the oldest line keep some of what was there at the first.
    pub fn walk(&self, lines: &Lines) {
        for _ in 0..2 {
            // SAFETY: the mapping of `new`.
            unsafe { lines.read(self.range()) };
        }
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`, which nobody uses any more. By the bare call: `munmap` is the region's.
        unsafe { libc::syscall(libc::SYS_munmap, self.start, self.size) };
    }
}

/// Cycles to follow a chain through `probe` in an order that prefetching does not guess, after `area` was walked.
fn latency(probe: &[u64], area: &Area, lines: &Lines) -> u64 {
    const STEP: usize = 8;
    let slots = probe.len() / STEP;
    // SAFETY: the slice's own memory.
    unsafe {
        lines.read((
            probe.as_ptr() as u64,
            probe.as_ptr() as u64 + 8 * probe.len() as u64,
        ))
    };
    area.walk(lines);
    let from = cere_timing::clock::start();
    let mut at = 0usize;
    for _ in 0..slots {
        // An odd factor over a power of two visits every slot. The read feeds the next place: one after the other.
        let read = std::hint::black_box(probe[at * STEP]) as usize;
        at = (at * 5 + 1 + read) % slots;
    }
    cere_timing::clock::stop().saturating_sub(from)
}

/// An area whose walk empties every cache: from what the machine tells, or [`FIRST`], doubled for as long as what
/// was read before the walk takes noticeably longer to read again after it (Whaley and Castaldo, 3).
pub fn emptying(caches: &[Cache], lines: &Lines) -> Result<Area, Error> {
    let known: u64 = caches.iter().map(|c| c.size).sum();
    let mut area = Area::new((2 * known).clamp(FIRST, LAST))?;
    let probe = vec![0u64; 512 * 8];
    let least = |area: &Area| {
        let once = |_| latency(&probe, area, lines);
        (0..5).map(once).min().unwrap_or(0)
    };
    let mut slow = least(&area);
    while area.size < LAST {
        let larger = Area::new((2 * area.size).min(LAST))?;
        let found = least(&larger);
        if found < slow + slow / 10 {
            break;
        }
        (area, slow) = (larger, found);
    }
    Ok(area)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(level: u32, size: u64) -> Cache {
        Cache {
            level,
            size,
            ..Cache::default()
        }
    }

    #[test]
    fn what_lies_nearer() {
        let near = |caches: &[Cache], level| {
            nearer(caches, level, "--warm-to", "others").map_err(|e| e.to_string())
        };
        let three = [cache(1, 32), cache(2, 1024), cache(3, 4096)];
        assert_eq!(near(&three, CacheLevel::Llc), Ok(1024));
        assert_eq!(near(&three, CacheLevel::L2), Ok(32));
        assert_eq!(near(&three[..2], CacheLevel::Llc), Ok(32));
        for caches in [&three[..1], &[]] {
            for level in [CacheLevel::L2, CacheLevel::Llc] {
                let message = near(caches, level).unwrap_err();
                assert!(
                    message.contains("sysfs") || message.contains("/sys/"),
                    "{message}"
                );
            }
        }
    }

    #[test]
    fn an_area_is_found_whatever_the_machine_tells() {
        let lines = Lines::new();
        let area = emptying(&[], &lines).unwrap();
        assert!((FIRST..=LAST).contains(&area.size));
    }
}

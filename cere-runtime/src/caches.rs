//! Caches by size: what the machine tells of them, and private memory whose walk pushes out what they hold.

use crate::lines::Lines;
use cere_format::replay::CacheLevel;
use std::path::Path;

/// Bytes of the first area to try where the machine does not tell its caches' sizes.
const FIRST: u64 = 1 << 20;
/// Bytes of the largest.
const LAST: u64 = 1 << 30;

/// A cache that data goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cache {
    level: u32,
    size: u64,
}

/// `32K` in bytes.
fn size(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, shift) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 10),
        b'M' => (&text[..text.len() - 1], 20),
        b'G' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    digits.parse::<u64>().ok()?.checked_shl(shift)
}

/// The caches in a processor's `cache` directory of sysfs, by rising level; empty where the system shows none.
fn listed(directory: &Path) -> Vec<Cache> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let read = |name: &str| std::fs::read_to_string(entry.path().join(name)).ok();
        let cache = || {
            let kind = read("type")?;
            let level = read("level")?.trim().parse().ok()?;
            let size = size(&read("size")?)?;
            (kind.trim() != "Instruction" && size > 0).then_some(Cache { level, size })
        };
        found.extend(cache());
    }
    found.sort_by_key(|c| c.level);
    found
}

/// The caches of a processor.
pub fn of(processor: u32) -> Vec<Cache> {
    let path = format!("/sys/devices/system/cpu/cpu{processor}/cache");
    listed(Path::new(&path))
}

/// Bytes of the cache next to `level` on the core's side: what has to be emptied.
pub fn nearer(caches: &[Cache], level: CacheLevel) -> Result<u64, String> {
    let name = match level {
        CacheLevel::L2 => "l2",
        CacheLevel::Llc => "llc",
    };
    let outer = match level {
        CacheLevel::L2 => caches.iter().position(|c| c.level == 2),
        CacheLevel::Llc => caches.len().checked_sub(1),
    };
    outer
        .and_then(|at| at.checked_sub(1))
        .map(|at| caches[at].size)
        .ok_or_else(|| {
            format!(
                "this machine does not tell its caches' sizes (/sys/devices/system/cpu/cpu*/cache), or has no such \
                 cache: --warm-to {name} is not possible here; --warmup cold, working-set and page-trace are"
            )
        })
}

/// Private memory.
pub struct Area {
    start: u64,
    size: u64,
}

impl Area {
    /// Of `size` bytes, every page of its own.
    pub fn new(size: u64) -> Result<Self, String> {
        // SAFETY: a fresh mapping; it is written, so every page is there and none is the shared page of zeros.
        unsafe {
            let start = libc::mmap(
                std::ptr::null_mut(),
                size as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
                -1,
                0,
            );
            if start == libc::MAP_FAILED {
                let error = std::io::Error::last_os_error();
                return Err(format!(
                    "no memory for {size} bytes beside the codelet's: {error}"
                ));
            }
            Ok(Self {
                start: start as u64,
                size,
            })
        }
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
    let from = cere_clock::start();
    let mut at = 0usize;
    for _ in 0..slots {
        // An odd factor over a power of two visits every slot. The read feeds the next place: one after the other.
        let read = std::hint::black_box(probe[at * STEP]) as usize;
        at = (at * 5 + 1 + read) % slots;
    }
    cere_clock::stop().saturating_sub(from)
}

/// An area whose walk empties every cache: from what the machine tells, or [`FIRST`], doubled for as long as what
/// was read before the walk takes noticeably longer to read again after it (Whaley and Castaldo, 3).
pub fn emptying(caches: &[Cache], lines: &Lines) -> Result<Area, String> {
    let told: u64 = caches.iter().map(|c| c.size).sum();
    let mut area = Area::new((2 * told).clamp(FIRST, LAST))?;
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

    #[test]
    fn sizes_as_sysfs_writes_them() {
        assert_eq!(size("32K\n"), Some(32 << 10));
        assert_eq!(size("3M"), Some(3 << 20));
        assert_eq!(size("77"), Some(77));
        assert_eq!((size(""), size("K"), size("x")), (None, None, None));
    }

    fn cache(level: u32, size: u64) -> Cache {
        Cache { level, size }
    }

    #[test]
    fn what_lies_nearer() {
        let three = [cache(1, 32), cache(2, 1024), cache(3, 4096)];
        assert_eq!(nearer(&three, CacheLevel::Llc), Ok(1024));
        assert_eq!(nearer(&three, CacheLevel::L2), Ok(32));
        assert_eq!(nearer(&three[..2], CacheLevel::Llc), Ok(32));
        for caches in [&three[..1], &[]] {
            for level in [CacheLevel::L2, CacheLevel::Llc] {
                let message = nearer(caches, level).unwrap_err();
                assert!(
                    message.contains("sysfs") || message.contains("/sys/"),
                    "{message}"
                );
            }
        }
    }

    #[test]
    fn a_directory_of_sysfs() {
        let directory = std::env::temp_dir().join(format!("cere-caches.{}", std::process::id()));
        for (index, kind, level, size) in [
            (0, "Data", 1, "32K"),
            (1, "Instruction", 1, "32K"),
            (2, "Unified", 3, "8192K"),
            (3, "Unified", 2, "512K"),
            (4, "Unified", 4, "nonsense"),
        ] {
            let at = directory.join(format!("index{index}"));
            std::fs::create_dir_all(&at).unwrap();
            std::fs::write(at.join("type"), kind).unwrap();
            std::fs::write(at.join("level"), level.to_string()).unwrap();
            std::fs::write(at.join("size"), size).unwrap();
        }
        let found = listed(&directory);
        std::fs::remove_dir_all(&directory).unwrap();
        let expected = [cache(1, 32 << 10), cache(2, 512 << 10), cache(3, 8 << 20)];
        assert_eq!(found, expected);
        assert_eq!(listed(&directory), []);
    }

    #[test]
    fn an_area_is_found_whatever_the_machine_tells() {
        let lines = Lines::new();
        let area = emptying(&[], &lines).unwrap();
        assert!((FIRST..=LAST).contains(&area.size));
    }
}

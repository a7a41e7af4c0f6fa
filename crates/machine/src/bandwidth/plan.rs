//! Which working sets show which level.

use cere_format::machine::{Cache, USABLE};

/// A working set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spot {
    /// Cache level; 0 for memory.
    pub level: u32,
    /// Bytes of all arrays of a core.
    pub set: u64,
    /// Whether it is as large as it should be.
    pub whole: bool,
}

/// Bytes that one core at least uses of memory.
const LEAST: u64 = 64 << 20;

/// The working set of each level, and of memory; why a level has none. `users` gives how many of the cores in use have a level
/// together; `free` are the bytes that all cores may take.
#[must_use]
pub fn spots(
    caches: &[Cache],
    cores: u64,
    users: impl Fn(u32) -> u64,
    free: u64,
) -> Vec<Result<Spot, (u32, String)>> {
    let mut nearer = 0;
    let mut found: Vec<_> = caches
        .iter()
        .map(|cache| {
            let level = cache.level;
            if cache.size_bytes == 0 || cache.confidence < USABLE {
                return Err((level, format!("the size of level {level} is not known well enough")));
            }
            let own = cache.size_bytes / users(level).max(1);
            let set = (own / 2).max(2 * nearer);
            nearer = cache.size_bytes;
            if set > own / 5 * 4 {
                return Err((
                    level,
                    format!(
                        "level {level} holds {own} bytes for each of {cores} cores, too little beside what the nearer level holds"
                    ),
                ));
            }
            if set * cores > free / 4 {
                return Err((
                    level,
                    format!("half of level {level} for {cores} cores is more than a quarter of the {free} bytes of free memory"),
                ));
            }
            Ok(Spot {
                level,
                set,
                whole: true,
            })
        })
        .collect();
    found.push(Ok(memory(caches, cores, free)));
    found
}

/// The working set in memory: all cores together take at least four times the last level, the greater of what was measured and what
/// the system tells, but no more than a quarter of what is free.
fn memory(caches: &[Cache], cores: u64, free: u64) -> Spot {
    let sizes = caches
        .iter()
        .map(|c| c.size_bytes.max(c.system_bytes.unwrap_or(0)));
    let wanted = (4 * sizes.max().unwrap_or(0) / cores.max(1)).max(LEAST);
    let set = wanted.min(free / 4 / cores.max(1)).max(1 << 20);
    Spot {
        level: 0,
        set,
        whole: set >= wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(level: u32, size_bytes: u64, confidence: f64) -> Cache {
        Cache {
            level,
            size_bytes,
            confidence,
            ..Cache::default()
        }
    }

    fn sets(caches: &[Cache], cores: u64, shared: u32, free: u64) -> Vec<Option<(u32, u64)>> {
        let users = |level| if level >= shared { cores } else { 1 };
        let found = spots(caches, cores, users, free);
        found
            .into_iter()
            .map(|s| s.ok().map(|s| (s.level, s.set)))
            .collect()
    }

    #[test]
    fn half_of_each_level_and_four_times_the_last() {
        let caches = [
            cache(1, 32 << 10, 0.9),
            cache(2, 512 << 10, 0.9),
            cache(3, 32 << 20, 0.9),
        ];
        let expected = [(1, 16 << 10), (2, 256 << 10), (3, 16 << 20), (0, 128 << 20)];
        assert_eq!(sets(&caches, 1, 3, 1 << 40), expected.map(Some));
        // Eight cores have the last together: a half of a share each.
        let expected = [(1, 16 << 10), (2, 256 << 10), (3, 2 << 20), (0, 64 << 20)];
        assert_eq!(sets(&caches, 8, 3, 1 << 40), expected.map(Some));
        // 64 cores: no share of the last is beyond the second level.
        assert_eq!(sets(&caches, 64, 3, 1 << 40)[2], None);
    }

    #[test]
    fn unknown_sizes_and_little_memory() {
        let mut caches = vec![
            cache(1, 32 << 10, 0.9),
            cache(2, 0, 0.0),
            cache(3, 32 << 20, 0.3),
        ];
        let found = spots(&caches, 1, |_| 1, 1 << 40);
        assert!(found[1].is_err() && found[2].is_err());
        caches[2].confidence = 0.9;
        caches[2].system_bytes = Some(480 << 20);
        assert_eq!(sets(&caches, 1, 9, 1 << 40)[3], Some((0, 1920 << 20)));
        let found = spots(&caches, 1, |_| 1, 1 << 30);
        assert_eq!(
            found[3],
            Ok(Spot {
                level: 0,
                set: 256 << 20,
                whole: false
            })
        );
        assert_eq!(sets(&[], 1, 9, 1 << 40), [Some((0, LEAST))]);
    }
}

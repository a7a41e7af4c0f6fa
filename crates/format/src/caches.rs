//! The caches that sysfs describes, for every stage that needs their sizes.

use std::ops::RangeInclusive;
use std::path::Path;

/// A cache of a processor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cache {
    /// 1 is next to the core.
    pub level: u32,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: String,
    /// Bytes.
    pub size: u64,
    /// Bytes of a line; 0 where the system does not say.
    pub line: u32,
    /// Lines of a set; 0 where the system does not say.
    pub ways: u32,
    /// Processors that share it, as the kernel lists them: `0-3,8`. Empty where the system does not say.
    pub shared: String,
}

impl Cache {
    /// How many processors share it; 1 where the system does not say.
    pub fn sharers(&self) -> u64 {
        let ranges = ranges(&self.shared).map(|range| u64::from(range.end() - range.start()) + 1);
        ranges.fold(0, u64::saturating_add).max(1)
    }
}

/// The ranges of a list of processors such as `0-3,8`; what is none is left out.
fn ranges(list: &str) -> impl Iterator<Item = RangeInclusive<u32>> {
    list.trim().split(',').filter_map(|range| {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        let range = from.trim().parse().ok()?..=to.trim().parse().ok()?;
        Some(range).filter(|range| !range.is_empty())
    })
}

/// The processors of a list such as `0-3,8`, as the kernel writes them; what is no number is left out.
pub fn processors(list: &str) -> Vec<u32> {
    ranges(list).flatten().collect()
}

/// Parses a size such as `32K`; in bytes.
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

/// The caches in a processor's `cache` directory of sysfs, by rising level and by kind; empty where the system shows
/// none.
pub fn listed(directory: &Path) -> Vec<Cache> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let read = |name: &str| std::fs::read_to_string(entry.path().join(name)).ok();
        let number = |name: &str| read(name)?.trim().parse::<u32>().ok();
        let cache = || {
            Some(Cache {
                level: number("level")?,
                kind: read("type")?.trim().to_owned(),
                size: size(&read("size")?).filter(|&s| s > 0)?,
                line: number("coherency_line_size").unwrap_or(0),
                ways: number("ways_of_associativity").unwrap_or(0),
                shared: read("shared_cpu_list")
                    .unwrap_or_default()
                    .trim()
                    .to_owned(),
            })
        };
        found.extend(cache());
    }
    found.sort_by(|a, b| (a.level, &a.kind).cmp(&(b.level, &b.kind)));
    found
}

/// The caches of a processor that data goes through, by rising level; none where the system shows none.
pub fn of(processor: u32) -> Vec<Cache> {
    let path = format!("/sys/devices/system/cpu/cpu{processor}/cache");
    let mut found = listed(Path::new(&path));
    found.retain(|c| c.kind != "Instruction");
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_as_sysfs_writes_them() {
        assert_eq!(size("32K\n"), Some(32 << 10));
        assert_eq!(size("3M"), Some(3 << 20));
        assert_eq!(size("12"), Some(12));
        assert_eq!(size("77"), Some(77));
        assert_eq!((size(""), size("K"), size("x")), (None, None, None));
    }

    fn cache(level: u32, kind: &str, size: u64) -> Cache {
        Cache {
            level,
            kind: kind.to_owned(),
            size,
            ..Cache::default()
        }
    }

    #[test]
    fn sharers_as_sysfs_lists_them() {
        for (list, sharers) in [
            ("0", 1),
            ("0-3,8", 5),
            ("", 1),
            ("x,3-1", 1),
            ("1,3,5-6\n", 4),
        ] {
            let shared = list.to_owned();
            let cache = Cache {
                shared,
                ..Cache::default()
            };
            assert_eq!(cache.sharers(), sharers, "{list}");
        }
    }

    #[test]
    fn lists_of_processors() {
        assert_eq!(processors("0-3,8\n"), [0, 1, 2, 3, 8]);
        assert_eq!(processors("5"), [5]);
        assert!(processors("").is_empty() && processors("x-2").is_empty());
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
        let last = directory.join("index2");
        std::fs::write(last.join("coherency_line_size"), "64\n").unwrap();
        std::fs::write(last.join("ways_of_associativity"), "16\n").unwrap();
        std::fs::write(last.join("shared_cpu_list"), "0-1\n").unwrap();
        let found = listed(&directory);
        std::fs::remove_dir_all(&directory).unwrap();
        let expected = [
            cache(1, "Data", 32 << 10),
            cache(1, "Instruction", 32 << 10),
            cache(2, "Unified", 512 << 10),
            Cache {
                line: 64,
                ways: 16,
                shared: "0-1".into(),
                ..cache(3, "Unified", 8 << 20)
            },
        ];
        assert_eq!(found, expected);
        assert_eq!(listed(&directory), []);
    }
}

//! The caches that sysfs describes, for every stage that needs their sizes.

use std::path::Path;

/// A cache that data goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cache {
    /// 1 is next to the core.
    pub level: u32,
    /// Bytes.
    pub size: u64,
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

/// The caches of a processor that data goes through, by rising level; none where the system shows none.
pub fn of(processor: u32) -> Vec<Cache> {
    let path = format!("/sys/devices/system/cpu/cpu{processor}/cache");
    listed(Path::new(&path))
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
}

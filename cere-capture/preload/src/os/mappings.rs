//! What `/proc` says of the process's memory. Ordinary code: for hooks with everything open.

use super::files::{self, File, FileError};
use super::sys::PAGE;
use cere_format::capture::Mapping;
use std::path::Path;

fn parse_hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

/// A line that opens a mapping: `start-end permissions offset device inode path`.
pub fn parse_header(line: &str) -> Option<Mapping> {
    let mut rest = line;
    let mut field = || {
        let trimmed = rest.trim_start_matches(' ');
        let (field, after) = trimmed.split_once(' ').unwrap_or((trimmed, ""));
        rest = after;
        field
    };
    let (start, end) = field().split_once('-')?;
    let (start, end) = (parse_hexadecimal(start)?, parse_hexadecimal(end)?);
    let permissions = field().to_owned();
    let offset = parse_hexadecimal(field())?;
    let (_, _) = (field(), field());
    let path = rest.trim_start_matches(' ').to_owned();
    Some(Mapping {
        start,
        end,
        permissions,
        offset,
        path,
        huge: false,
    })
}

/// Mappings of a text in the form of `/proc/self/smaps` or `maps`.
pub fn parse_mappings(text: &str) -> Vec<Mapping> {
    let mut list: Vec<Mapping> = Vec::new();
    for line in text.lines() {
        if let Some(mapping) = parse_header(line) {
            list.push(mapping);
        } else if let Some(last) = list.last_mut() {
            let given = |prefix| line.strip_prefix(prefix).map(str::trim);
            last.huge |= given("AnonHugePages:").is_some_and(|size| size != "0 kB")
                || given("VmFlags:").is_some_and(|flags| flags.split(' ').any(|f| f == "hg"));
        }
    }
    list
}

/// [start, end) of mappings that grow down.
pub type Growing = Vec<(u64, u64)>;

/// Addresses of the mappings of such a text, the main thread's stack left out, that the kernel lets grow down.
fn parse_growing(text: &str) -> Growing {
    let mut found = Vec::new();
    let mut last = None;
    for line in text.lines() {
        if let Some(mapping) = parse_header(line) {
            last = Some(mapping);
        } else if let (Some(mapping), Some(flags)) = (&last, line.strip_prefix("VmFlags:"))
            && mapping.path != STACK
            && flags.split_ascii_whitespace().any(|flag| flag == "gd")
        {
            found.push((mapping.start, mapping.end));
        }
    }
    found
}

/// All mappings, with huge pages if the kernel reports them.
pub fn read_smaps() -> Result<Vec<Mapping>, FileError> {
    read_all().map(|all| all.0)
}

/// The same, and [start, end) of those that the kernel lets grow down, the main thread's stack left out.
pub fn read_all() -> Result<(Vec<Mapping>, Growing), FileError> {
    let text = read_file("/proc/self/smaps").or_else(|_| read_file(MAPS))?;
    let text = String::from_utf8_lossy(&text);
    Ok((parse_mappings(&text), parse_growing(&text)))
}

/// All mappings, without huge pages: faster.
pub fn read_maps() -> Result<Vec<Mapping>, FileError> {
    let text = read_file(MAPS)?;
    Ok(parse_mappings(&String::from_utf8_lossy(&text)))
}

/// The calling process's mappings.
pub const MAPS: &str = "/proc/self/maps";

fn read_file(path: &str) -> Result<Vec<u8>, FileError> {
    files::read(path).map_err(files::failed("read", Path::new(path)))
}

/// A facility of the program through which the kernel or another process reaches its memory at any time: they would find
/// it closed. None if it has no such facility; an error if that cannot be found out.
pub fn reached_by_others() -> Result<Option<&'static str>, FileError> {
    /// Names of descriptors and mappings in the kernel.
    const NAMES: [(&str, &str); 3] = [
        ("anon_inode:[io_uring]", "an io_uring"),
        ("anon_inode:[userfaultfd]", "a userfaultfd"),
        ("/[aio]", "a context of io_setup (aio)"),
    ];
    let known = |name: &[u8]| {
        let name = name.strip_suffix(b" (deleted)").unwrap_or(name);
        let found = NAMES.iter().find(|n| name.ends_with(n.0.as_bytes()));
        found.map(|n| n.1)
    };
    let directory = files::of_process("fd");
    let open = files::list(&directory).map_err(files::failed("list", &directory))?;
    let mut names = open
        .iter()
        .filter_map(|d| files::read_link(directory.join(d)).ok());
    if let Some(found) = names.find_map(|name| known(name.as_os_str().as_encoded_bytes())) {
        return Ok(Some(found));
    }
    let text = read_file(MAPS)?;
    Ok(text.split(|byte| *byte == b'\n').find_map(known))
}

/// [start, end) of the main thread's stack, which grows down.
pub fn stack_range() -> Option<(usize, usize)> {
    let text = files::read_text(MAPS).ok()?;
    let mut all = text.lines().filter_map(parse_header);
    let stack = all.find(|m| m.path == STACK)?;
    Some((stack.start as usize, stack.end as usize))
}

/// The kernel's name of the main thread's stack.
pub const STACK: &str = "[stack]";

/// Maximum number of mappings that the kernel allows.
pub fn mapping_limit() -> usize {
    files::read_text("/proc/sys/vm/max_map_count")
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(65530)
}

/// Bytes of memory that are available without swapping.
pub fn available_memory() -> usize {
    let text = files::read_text("/proc/meminfo").unwrap_or_default();
    let size = |line: &str| {
        let size = line.strip_prefix("MemAvailable:")?.trim();
        size.strip_suffix(" kB")?.parse().ok()
    };
    let found: Option<usize> = text.lines().find_map(size);
    found.map_or(usize::MAX / 2, |kib| kib * 1024)
}

/// Maximum number of pages to look up: 16 GiB, which takes tens of milliseconds.
const ASKED: u64 = 1 << 22;

/// The pages of the rising `ranges` that do not exist yet. Pages that the kernel does not report count as existing.
pub fn find_absent(ranges: &[(u64, u64)]) -> Vec<(u64, u64)> {
    /// In memory, or swapped out.
    const SOMEWHERE: u64 = 3 << 62;
    let mut found: Vec<(u64, u64)> = Vec::new();
    let Ok(file) = File::open(Path::new("/proc/self/pagemap"), libc::O_RDONLY) else {
        return found;
    };
    let mut words = vec![0u8; 8 << 12];
    let mut asked = 0;
    for &(start, end) in ranges {
        let pages = (end - start) / PAGE as u64;
        if asked + pages > ASKED {
            continue;
        }
        asked += pages;
        let mut at = start;
        while at < end {
            let count = ((end - at) as usize / PAGE).min(words.len() / 8);
            let words = &mut words[..8 * count];
            if file.read_exact_at(words, at / PAGE as u64 * 8).is_err() {
                break;
            }
            for (word, page) in words.as_chunks::<8>().0.iter().zip((at..).step_by(PAGE)) {
                if u64::from_le_bytes(*word) & SOMEWHERE != 0 {
                    continue;
                }
                match found.last_mut() {
                    Some(last) if last.1 == page => last.1 += PAGE as u64,
                    _ => found.push((page, page + PAGE as u64)),
                }
            }
            at += (count * PAGE) as u64;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smaps_with_names_and_huge_pages() {
        let list = parse_mappings(
            "55e0-55f0 r-xp 00001000 08:01 12 /a b/c (deleted)\nSize: 64 kB\nVmFlags: rd ex \n\
             7f00-8f00 rw-p 00000000 00:00 0 \nAnonHugePages: 2048 kB\n\
             9f00-af00 rw-p 00000000 00:00 0 [stack]\nVmFlags: rd wr hg\n",
        );
        assert_eq!(list.len(), 3);
        let first = (list[0].start, list[0].end, list[0].offset);
        assert_eq!(first, (0x55e0, 0x55f0, 0x1000));
        assert_eq!(list[0].path, "/a b/c (deleted)");
        assert_eq!(list[0].permissions, "r-xp");
        assert!(!list[0].huge && list[1].huge && list[2].huge);
        assert_eq!([&list[1].path, &list[2].path], ["", "[stack]"]);
        let growing = parse_growing(
            "1000-2000 rw-p 00000000 00:00 0 \nVmFlags: rd wr mr mw me gd ac \n\
             3000-4000 rw-p 00000000 00:00 0 \nVmFlags: rd wr mr mw me ac \n\
             5000-6000 rw-p 00000000 00:00 0 [stack]\nVmFlags: rd wr gd\n",
        );
        assert_eq!(growing, [(0x1000, 0x2000)]);
    }
}

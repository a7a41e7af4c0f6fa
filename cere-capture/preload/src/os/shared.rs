//! Shared memory: which of it has two addresses, which of it others change. Ordinary code, with everything open.

use super::mappings::{MAPS, parse_header};
use super::{aside, files, process};
use cere_format::capture::Mapping;

/// A shared mapping, and its file as device and number.
struct Shared {
    file: (String, String),
    mapping: Mapping,
}

/// Starts of shared mappings that are not the program's alone at their addresses.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// They overlap another mapping of the program in their file: a write to one changes the other.
    pub twice: Vec<u64>,
    /// Another process has them mapped, to write them, or they are a device's.
    pub outside: Vec<u64>,
}

fn parse_shared(text: &str) -> Vec<Shared> {
    let parse = |line: &str| {
        let mapping = parse_header(line).filter(|m| m.permissions.ends_with('s'))?;
        let mut fields = line.split_ascii_whitespace().skip(3);
        let file = (fields.next()?.to_owned(), fields.next()?.to_owned());
        Some(Shared { file, mapping })
    };
    text.lines().filter_map(parse).collect()
}

impl Shared {
    /// Whether both show a part of one file.
    fn meets(&self, other: &Shared) -> bool {
        let last = |m: &Mapping| m.offset + (m.end - m.start);
        let (one, two) = (&self.mapping, &other.mapping);
        self.file == other.file && one.offset < last(two) && two.offset < last(one)
    }

    /// Whether it is memory of a device.
    fn is_device(&self) -> bool {
        const MEMORY: [&str; 3] = ["/dev/shm/", "/dev/zero", "/dev/hugepages/"];
        let path = &self.mapping.path;
        path.starts_with("/dev/") && !MEMORY.iter().any(|memory| path.starts_with(memory))
    }
}

/// Looks at all shared mappings of the program, and at those of the processes that it may look at.
pub fn find_shared() -> Found {
    let own = parse_shared(&files::read_text(MAPS).unwrap_or_default());
    let mut found = Found::default();
    if own.is_empty() {
        return found;
    }
    let theirs = list_others();
    for one in &own {
        let start = one.mapping.start;
        if own.iter().any(|o| o.mapping.start != start && o.meets(one)) {
            found.twice.push(start);
        }
        if one.is_device() || theirs.iter().any(|other| other.meets(one)) {
            found.outside.push(start);
        }
    }
    found
}

/// Shared mappings of other processes that may be written.
fn list_others() -> Vec<Shared> {
    let mut all = Vec::new();
    let ours = [process::id(), aside::id()];
    for name in files::list("/proc".as_ref()).unwrap_or_default() {
        let id = name.to_str().and_then(|name| name.parse::<i32>().ok());
        let Some(id) = id.filter(|id| !ours.contains(id)) else {
            continue;
        };
        let path = format!("/proc/{id}/maps");
        let text = std::fs::read(&path).or_else(|_| files::read(&path));
        let mut theirs = parse_shared(&String::from_utf8_lossy(&text.unwrap_or_default()));
        theirs.retain(|other| other.mapping.permissions.contains('w'));
        all.append(&mut theirs);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_one_file_meet() {
        let all = parse_shared(
            "1000-3000 rw-s 00000000 00:01 7 /dev/zero (deleted)\n\
             3000-4000 rw-p 00000000 00:00 0 \n\
             5000-6000 r--s 00001000 00:01 7 /dev/zero (deleted)\n\
             6000-7000 rw-s 00002000 00:01 7 /dev/zero (deleted)\n\
             7000-8000 rw-s 00000000 00:05 9 /dev/dri/card0\n",
        );
        assert_eq!(all.len(), 4);
        assert!(all[0].meets(&all[1]) && !all[0].meets(&all[2]) && !all[0].meets(&all[3]));
        assert!(all[3].is_device() && !all[0].is_device());
    }
}

//! The input of a run as far as it is known beforehand, to decide whether another run would read the same.

use cere_format::profile::{FileState, RunInput, Stdin};
use std::fs::{File, Metadata};
use std::io::{Read, Seek};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// The input that a run of `command` would read now.
pub fn of(command: &[String]) -> RunInput {
    let named = |argument: &String| {
        let tail = argument.split_once('=').map(|(_, tail)| tail.to_owned());
        std::iter::once(argument.clone()).chain(tail)
    };
    let files = command.iter().skip(1).flat_map(named);
    // A script decides what runs.
    let first = command.first().filter(|name| begins(name, b"#!"));
    let files = first.cloned().into_iter().chain(files);
    // A program that an argument of a launcher names is no input.
    let files = files.filter(|name| !begins(name, b"\x7fELF"));
    RunInput {
        stdin: stdin(),
        files: files.map(|name| (name.clone(), file(&name))).collect(),
    }
}

/// The input that a run has read: `before`, without the files that the run wrote itself.
pub fn without_own_output(mut before: RunInput, after: &RunInput) -> RunInput {
    before.files.retain(|file| after.files.contains(file));
    before
}

/// Whether a run that reads `now` reads the same as an earlier one.
pub fn would_read_same(read: &RunInput, now: &RunInput) -> bool {
    read.stdin == now.stdin
        && read.stdin != Stdin::Unknown
        && read.files.iter().all(|file| now.files.contains(file))
}

/// Whether the regular file `name` begins with `bytes`.
fn begins(name: &str, bytes: &[u8]) -> bool {
    let mut start = vec![0; bytes.len()];
    let regular = std::fs::metadata(name).is_ok_and(|found| found.is_file());
    let file = || File::open(name).ok();
    let read = |mut file: File| file.read_exact(&mut start).is_ok();
    regular && file().is_some_and(read) && start == bytes
}

fn state(file: &Metadata) -> FileState {
    FileState {
        device: file.dev(),
        inode: file.ino(),
        size: file.size(),
        modified: file
            .mtime()
            .saturating_mul(1_000_000_000)
            .saturating_add(file.mtime_nsec()),
    }
}

fn file(name: &str) -> Option<FileState> {
    let found = std::fs::metadata(Path::new(name)).ok()?;
    found.is_file().then(|| state(&found))
}

/// This command's standard input, which stays open.
fn stdin() -> Stdin {
    use std::os::fd::FromRawFd;
    // SAFETY: descriptor 0 is never closed here, and the file does not close it.
    let mut open = std::mem::ManuallyDrop::new(unsafe { File::from_raw_fd(0) });
    let Ok(found) = open.metadata() else {
        return Stdin::Nothing;
    };
    let null = std::fs::metadata("/dev/null").is_ok_and(|null| null.rdev() == found.rdev());
    let terminal = std::io::IsTerminal::is_terminal(&std::io::stdin());
    if found.is_file() {
        Stdin::File(state(&found), open.stream_position().unwrap_or(0))
    } else if found.file_type().is_char_device() && (null || terminal) {
        Stdin::Nothing
    } else {
        Stdin::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_arguments_name() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name).display().to_string();
        std::fs::write(at("in"), "1").expect("a file");
        let command = [
            "program".into(),
            at("in"),
            format!("--to={}", at("out")),
            "3".into(),
        ];
        let mut before = of(&command);
        before.stdin = Stdin::Nothing;
        std::fs::write(at("out"), "2").expect("a file");
        let now = || RunInput {
            stdin: Stdin::Nothing,
            ..of(&command)
        };
        // The run's own output may change.
        let read = without_own_output(before.clone(), &now());
        std::fs::write(at("out"), "333").expect("a file");
        assert!(would_read_same(&read, &now()) && !would_read_same(&before, &now()));
        std::fs::write(at("in"), "22").expect("a file");
        assert!(!would_read_same(&read, &now()));
        let unknown = RunInput::default();
        assert!(!would_read_same(&unknown, &unknown));
    }
}

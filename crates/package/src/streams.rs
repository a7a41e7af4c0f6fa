//! The C library's standard streams: their buffers, and what was in them.

use crate::PackError;
use crate::library::inside;
use crate::program::Loaded;
use crate::raw::Raw;
use cere_format::answers::{
    ANSWER_HEAD, ANSWERS_MOST, Answers, Buffering, Head, Stream, TEXT_AFTER, TEXT_BEFORE, TEXT_MOST,
};
use std::collections::BTreeSet;

/// The streams by descriptor.
const STREAMS: [&str; 3] = ["_IO_2_1_stdin_", "_IO_2_1_stdout_", "_IO_2_1_stderr_"];
/// Bytes of glibc's `FILE` that are looked at.
const LOOKED_AT: u64 = 72;
/// Words of it: flags; text that waits, and where it goes on; the buffer, and its end.
const FLAGS: usize = 0;
const WRITE_BASE: usize = 4;
const WRITE_POINTER: usize = 5;
const BUFFER_BASE: usize = 7;
const BUFFER_END: usize = 8;
/// Flags: no buffer; writes out each line; is being written to, so that the words of the text hold.
const UNBUFFERED: u64 = 0x2;
const LINES: u64 = 0x200;
const WRITING: u64 = 0x800;

/// The streams of a captured process.
pub struct Streams {
    /// Addresses of the streams by descriptor; of the library that the program uses.
    at: [Option<u64>; 3],
    /// That library.
    library: (u64, u64),
}

impl Streams {
    /// Finds them.
    pub fn find(images: &[Loaded]) -> Result<Self, PackError> {
        let mut found = Self {
            at: [None; 3],
            library: (0, 0),
        };
        for loaded in images.iter().filter(|l| !l.image.program) {
            for symbol in loaded.elf.dynamic_symbols()? {
                let descriptor = STREAMS.iter().position(|name| *name == symbol.name);
                if let Some(descriptor) = descriptor.filter(|_| symbol.defined) {
                    found.at[descriptor] = Some(loaded.address(symbol.value));
                    found.library = loaded.image.range;
                }
            }
        }
        Ok(found)
    }

    /// The words of a stream; zeros where its page was not captured.
    fn words(&self, raw: &Raw, at: u64, at_exit: bool) -> Result<Vec<u64>, PackError> {
        let bytes = raw.bytes(at, LOOKED_AT, at_exit)?;
        let words = bytes.as_chunks::<8>().0.iter();
        Ok(words.map(|w| u64::from_le_bytes(*w)).collect())
    }

    /// Their buffers at entry and at exit: a replay's own streams have their own.
    pub fn buffers(&self, raw: &Raw) -> Result<BTreeSet<(u64, u64)>, PackError> {
        let mut buffers = BTreeSet::new();
        for at in self.at.into_iter().flatten() {
            for at_exit in [false, true] {
                let words = self.words(raw, at, at_exit)?;
                let (start, end) = (words[BUFFER_BASE], words[BUFFER_END]);
                // Not the one byte inside an unbuffered stream.
                if start != 0 && start + 1 < end && !inside(self.library, start) {
                    buffers.insert((start, end));
                }
            }
        }
        Ok(buffers)
    }

    /// Adds to the `answers`, with their `list`, how the output streams stood at entry, and what waited in them at both ends.
    pub fn describe(
        &self,
        raw: &Raw,
        answers: &mut Answers,
        list: &mut Vec<u8>,
    ) -> Result<(), PackError> {
        // In front: answers to other threads are known by their number at the end.
        let answered = std::mem::take(list);
        for descriptor in [1, 2] {
            let Some(at) = self.at[descriptor] else {
                continue;
            };
            let ends = [self.words(raw, at, false)?, self.words(raw, at, true)?];
            let found = (
                pending(raw, &ends[0], false)?,
                pending(raw, &ends[1], true)?,
            );
            let (before, after) = match found {
                (Some(before), Some(after)) => (before, after),
                // What waits in a stream that the region left alone plays no part.
                _ if ends[0] == ends[1] => Default::default(),
                _ => continue,
            };
            let room = 2 * (before.len() + after.len()) + ANSWER_HEAD;
            if (answered.len() + list.len() + room) as u64 > ANSWERS_MOST {
                continue;
            }
            append(list, descriptor, TEXT_BEFORE, &before);
            append(list, descriptor, TEXT_AFTER, &after);
            let [entry, exit] = &ends;
            answers.streams.push(Stream {
                descriptor: descriptor as u32,
                buffering: match entry[FLAGS] {
                    flags if flags & UNBUFFERED != 0 => Buffering::None,
                    flags if flags & LINES != 0 => Buffering::Lines,
                    _ => Buffering::Full,
                },
                size: entry[BUFFER_END].saturating_sub(entry[BUFFER_BASE]),
                allocates: entry[BUFFER_BASE] == 0 && exit[BUFFER_BASE] != 0,
            });
        }
        list.extend(answered);
        answers.bytes = list.len() as u64;
        Ok(())
    }
}

/// The text that waits in a stream; none if that is too much. What lies on pages that the region did not touch is zeros, at both ends.
fn pending(raw: &Raw, words: &[u64], at_exit: bool) -> Result<Option<Vec<u8>>, PackError> {
    let (start, end) = (words[WRITE_BASE], words[WRITE_POINTER]);
    if words[FLAGS] & WRITING == 0 || start >= end {
        return Ok(Some(Vec::new()));
    }
    let size = end - start;
    if size > ANSWERS_MOST {
        return Ok(None);
    }
    raw.bytes(start, size, at_exit).map(Some)
}

fn append(list: &mut Vec<u8>, descriptor: usize, flags: u32, text: &[u8]) {
    for part in text.chunks(TEXT_MOST) {
        list.extend(Head::text(descriptor as u32, part.len(), flags).encode());
        list.extend(part);
        list.resize(list.len().next_multiple_of(8), 0);
    }
}

//! Reads the stream of counted code.

use crate::error::CountError;
use cere_format::count::{CHUNK_HEAD, Code, END_THREAD, MARK_IMAGES, Segment};
use std::io::Read;

/// Who gets what the stream says.
pub trait Sink {
    /// Segment `index` of `code` ran.
    fn segment(&mut self, code: &Code, index: u32, ran: Ran);
    /// A mark was sent.
    fn mark(&mut self, code: u64) {
        let _ = code;
    }
    /// The images of the process are known: `text` is as [`MARK_IMAGES`] says.
    ///
    /// # Errors
    /// Their code cannot be read.
    fn images(&mut self, text: &[u8], code: &mut Code) -> Result<(), CountError> {
        let _ = (text, code);
        Ok(())
    }
}

/// An execution of a segment.
#[derive(Debug, Clone, Copy)]
pub struct Ran<'a> {
    /// The segment.
    pub segment: &'a Segment,
    /// The thread.
    pub thread: u32,
    /// Address of the thread's control block.
    pub control: u64,
    /// The words of its accesses.
    pub words: &'a [u64],
}

/// Bytes of a chunk, at most: what a segment may add to a full one included.
const LARGEST: u64 = 16 << 20;
/// Threads, at most.
const THREADS: u32 = 1 << 16;

/// Reads until the stream ends; whether its last chunk was complete.
///
/// # Errors
/// What is not a stream of this code, with where it stops being one.
pub fn read(mut from: impl Read, code: &mut Code, sink: &mut impl Sink) -> Result<(), CountError> {
    let mut words: Vec<u64> = Vec::new();
    let mut bytes = Vec::new();
    let mut position = 0;
    loop {
        let mut head = [0; CHUNK_HEAD];
        if !fill(&mut from, &mut head, position)? {
            return Ok(());
        }
        let at =
            |i: usize| u64::from_le_bytes(head[8 * i..8 * i + 8].try_into().unwrap_or_default());
        let (length, thread, control) = (at(0), at(1), at(2));
        let start = position;
        let bad = |what| {
            Err(CountError::Stream {
                position: start,
                what,
            })
        };
        position += CHUNK_HEAD as u64;
        if thread == u64::from(END_THREAD) && length == 0 {
            sink.mark(control);
            continue;
        }
        if length > LARGEST || !length.is_multiple_of(8) {
            return bad("a chunk has an impossible size");
        }
        let mark = thread == u64::from(END_THREAD) && control == MARK_IMAGES;
        let thread = if mark { 0 } else { thread };
        let Some(thread) = u32::try_from(thread).ok().filter(|t| *t < THREADS) else {
            return bad("a chunk names an impossible thread");
        };
        bytes.resize(length as usize, 0);
        if !fill(&mut from, &mut bytes, position)? {
            return bad("a chunk is cut short");
        }
        words.clear();
        words.extend(
            bytes
                .as_chunks::<8>()
                .0
                .iter()
                .map(|w| u64::from_le_bytes(*w)),
        );
        if mark {
            sink.images(&bytes, code)?;
            position += length;
            continue;
        }
        chunk(&words, code, thread, control, sink, position)?;
        position += length;
    }
}

fn chunk(
    words: &[u64],
    code: &Code,
    thread: u32,
    control: u64,
    sink: &mut impl Sink,
    position: u64,
) -> Result<(), CountError> {
    let mut at = 0;
    while let Some(head) = words.get(at) {
        let bad = |what| CountError::Stream {
            position: position + 8 * at as u64,
            what,
        };
        let index = code
            .segment_at(*head)
            .ok_or_else(|| bad("it names code that is not counted"))?;
        let segment = &code.segments[index as usize];
        let own = words
            .get(at + 1..at + 1 + segment.words)
            .ok_or_else(|| bad("a segment is cut short"))?;
        let ran = Ran {
            segment,
            thread,
            control,
            words: own,
        };
        sink.segment(code, index, ran);
        at += 1 + segment.words;
    }
    Ok(())
}

/// Fills `buffer`; false if the stream ended before its first byte.
fn fill(from: &mut impl Read, buffer: &mut [u8], position: u64) -> Result<bool, CountError> {
    let mut done = 0;
    while done < buffer.len() {
        match from.read(&mut buffer[done..]) {
            Ok(0) if done == 0 => return Ok(false),
            Ok(0) => {
                return Err(CountError::Stream {
                    position: position + done as u64,
                    what: "it is cut short",
                });
            }
            Ok(n) => done += n,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(CountError::Read(error)),
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cere_format::count::{MAGIC, MARK_END};

    /// Where the description of the only segment is loaded.
    const START: u64 = 0x1000;
    const SEGMENT: u64 = START + 32;

    /// A function of one segment that loads through one address.
    fn code() -> Code {
        let mut bytes = MAGIC.to_vec();
        let words = [96, 1, 80, 0, 0, 0, 0];
        let segment = [48, 0, 0, 0, 1, 1];
        for word in words.into_iter().chain(segment) {
            bytes.extend(u32::to_le_bytes(word));
        }
        bytes.extend([0, 0, 0, 1, 8, 0, 0, 0, 1, 0]);
        bytes.resize(96, 0);
        Code::parse(&bytes, START).unwrap()
    }

    #[derive(Default)]
    struct Seen {
        segments: Vec<(u32, u32, Vec<u64>)>,
        marks: Vec<u64>,
        images: Vec<Vec<u8>>,
    }

    impl Sink for Seen {
        fn segment(&mut self, _: &Code, index: u32, ran: Ran) {
            self.segments.push((ran.thread, index, ran.words.to_vec()));
        }
        fn mark(&mut self, code: u64) {
            self.marks.push(code);
        }
        fn images(&mut self, text: &[u8], _: &mut Code) -> Result<(), CountError> {
            self.images.push(text.to_vec());
            Ok(())
        }
    }

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    fn all(words: &[u64]) -> Result<Seen, CountError> {
        let mut seen = Seen::default();
        read(&bytes(words)[..], &mut code(), &mut seen).map(|()| seen)
    }

    fn position(words: &[u64]) -> u64 {
        match all(words) {
            Err(CountError::Stream { position, .. }) => position,
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("{words:x?} was read"),
        }
    }

    const MARK: u64 = END_THREAD as u64;

    #[test]
    fn chunks_and_marks() {
        let seen = all(&[
            32,
            0,
            0x77,
            0,
            SEGMENT,
            1,
            SEGMENT,
            2, // two segments of thread 0
            0,
            5,
            0,
            0, // nothing of thread 5
            16,
            3,
            0,
            0,
            SEGMENT,
            3, // one of thread 3
            8,
            MARK,
            MARK_IMAGES,
            0,
            0x41, // images
            0,
            MARK,
            MARK_END,
            0,
        ])
        .unwrap();
        assert_eq!(
            seen.segments,
            [(0, 0, vec![1]), (0, 0, vec![2]), (3, 0, vec![3])]
        );
        assert_eq!(seen.marks, [MARK_END]);
        assert_eq!(seen.images, [vec![0x41, 0, 0, 0, 0, 0, 0, 0]]);
        assert!(all(&[]).unwrap().marks.is_empty());
    }

    #[test]
    fn streams_cut_short_anywhere() {
        let whole = bytes(&[16, 0, 0, 0, SEGMENT, 1, 0, MARK, MARK_END, 0]);
        for length in 0..whole.len() {
            let mut seen = Seen::default();
            let result = read(&whole[..length], &mut code(), &mut seen);
            // Between chunks only the missing mark tells.
            assert_eq!(result.is_ok(), matches!(length, 0 | 48), "{length}");
            assert!(seen.marks.is_empty());
        }
    }

    #[test]
    fn addresses_that_no_segment_has() {
        for address in [0, START, SEGMENT + 1, SEGMENT + 8, u64::MAX] {
            assert_eq!(position(&[16, 0, 0, 0, address, 1]), 32, "{address:#x}");
        }
        assert_eq!(position(&[32, 0, 0, 0, SEGMENT, 1, 7, 1]), 48);
    }

    #[test]
    fn lengths_and_threads_that_no_chunk_has() {
        for length in [4, 12, LARGEST + 8, 1 << 40, u64::MAX - 7, u64::MAX] {
            assert_eq!(position(&[length, 0, 0, 0, SEGMENT, 1]), 0, "{length:#x}");
        }
        for thread in [u64::from(THREADS), MARK - 1, MARK, u64::MAX] {
            assert_eq!(position(&[16, thread, 0, 0, SEGMENT, 1]), 0, "{thread:#x}");
        }
        // The words of the access are missing.
        assert_eq!(position(&[8, 0, 0, 0, SEGMENT]), 32);
    }
}

//! Answers of the kernel to a region that asks for the time, process numbers and the like: recorded at capture, repeated in a
//! replay. Beside them the text that the region wrote to standard output and standard error, and what it had registered to run
//! at the end of the thread or the process: a replay has to do the same. `<n>.answers` of a raw capture, member `answers` of a package.

use crate::FormatError;
use cere_arch::numbers;
use serde::{Deserialize, Serialize};

/// Bytes of [`Head`] on disk.
pub const ANSWER_HEAD: usize = 24;
/// Maximum bytes of answers that a capture keeps.
pub const ANSWERS_MOST: u64 = 16 << 20;
/// The longest answer of `getrandom` that is kept: a region that asks for more is refused.
pub const RANDOM_MOST: usize = 64 << 10;
/// The longest part of a text that is kept as one record: longer ones are several.
pub const TEXT_MOST: usize = 64 << 10;
/// Flag of an answer: asked for by a system call, not through the kernel's shared page.
pub const ANSWER_CALL: u32 = 1;
/// Flag of a text: the call that wrote it wrote the record before as well.
pub const TEXT_GOES_ON: u32 = 2;
/// Flag of a text: it was in the stream's buffer at entry. In packages only, as the next one.
pub const TEXT_BEFORE: u32 = 4;
/// Flag of a text: it was in the stream's buffer at exit.
pub const TEXT_AFTER: u32 = 8;
/// Stands for a system call where the time stamp counter is read (`rdtsc`; [`Question::key`] 1: `rdtscp`).
pub const COUNTER: usize = 1 << 16;
/// Stands for a call that registers a function to run at an end: [`Head::key`] is its place in [`REGISTERS`].
pub const REGISTERED: usize = (1 << 16) + 1;
/// Functions that do that.
pub const REGISTERS: [&str; 4] = [
    "__cxa_thread_atexit_impl",
    "__cxa_atexit",
    "__cxa_at_quick_exit",
    "on_exit",
];
/// What such a call registers: the function, its argument, and the image that it is for; 0 for what the call has not.
pub type Registration = [u64; 3];
/// Bytes of that on disk.
pub const REGISTRATION: usize = size_of::<Registration>();

/// The registration of a call of the function at `key` in [`REGISTERS`] with these arguments.
pub fn registration(key: u32, [what, on, image]: [u64; 3]) -> Registration {
    match key {
        0 | 1 => [what, on, image],
        2 => [what, 0, on],
        _ => [what, on, 0],
    }
}

/// The clocks that are read at entry.
pub const CLOCKS: [i32; 9] = [
    libc::CLOCK_REALTIME,
    libc::CLOCK_MONOTONIC,
    libc::CLOCK_PROCESS_CPUTIME_ID,
    libc::CLOCK_THREAD_CPUTIME_ID,
    libc::CLOCK_MONOTONIC_RAW,
    libc::CLOCK_REALTIME_COARSE,
    libc::CLOCK_MONOTONIC_COARSE,
    libc::CLOCK_BOOTTIME,
    libc::CLOCK_TAI,
];

/// Metadata of a capture's answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answers {
    /// Bytes of them.
    pub bytes: u64,
    /// [`CLOCKS`] at entry.
    pub clocks: Vec<Clock>,
    /// The functions of the kernel's shared page (vDSO) that ask, and their addresses.
    pub functions: Vec<(String, u64)>,
    /// Why answers are missing, if any are.
    pub cut: Option<String>,
    /// Whether registrations are missing: those of other threads of a team, and those beyond the room for answers.
    #[serde(default)]
    pub unregistered: bool,
    /// The C library's output streams, in packages: those of which it is known what they held at both ends.
    #[serde(default)]
    pub streams: Vec<Stream>,
    /// Answers to other threads of the team, at the end of the list: number of the thread, and how many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub team: Vec<(u32, u64)>,
}

/// A stream of the C library's at entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream {
    /// Its descriptor: 1 or 2.
    pub descriptor: u32,
    /// When it writes out.
    pub buffering: Buffering,
    /// Bytes of its buffer, 0 if it has none yet.
    pub size: u64,
    /// Whether the region allocated the buffer.
    pub allocates: bool,
}

/// When a stream writes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Buffering {
    /// When its buffer is full.
    Full,
    /// At the end of a line.
    Lines,
    /// At once.
    None,
}

/// A clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// Its number, `CLOCK_MONOTONIC` and so on.
    pub id: i32,
    /// Seconds.
    pub seconds: i64,
    /// Nanoseconds beside them.
    pub nanoseconds: i64,
}

/// One answer. On disk its fields little endian in this order, then `length` bytes, then zeros up to a multiple of 8.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Number of the system call that asks, one of [`numbers`].
    pub number: u32,
    /// As [`Question::key`]; the descriptor of a text.
    pub key: u32,
    /// [`ANSWER_CALL`]; of a text [`TEXT_GOES_ON`], [`TEXT_BEFORE`], [`TEXT_AFTER`].
    pub flags: u32,
    /// Bytes that the call wrote: those at its first pointer, then those at its second. Of a text, its bytes.
    pub length: u32,
    /// What it returned.
    pub result: i64,
}

impl Head {
    /// The bytes on disk.
    pub fn encode(&self) -> [u8; ANSWER_HEAD] {
        let mut bytes = [0; ANSWER_HEAD];
        bytes[..4].copy_from_slice(&self.number.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.key.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.flags.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.length.to_le_bytes());
        bytes[16..].copy_from_slice(&self.result.to_le_bytes());
        bytes
    }

    /// Of a text of `length` bytes for the `descriptor`.
    pub fn text(descriptor: u32, length: usize, flags: u32) -> Self {
        Self {
            number: numbers::WRITE as u32,
            key: descriptor,
            flags,
            length: length as u32,
            result: length as i64,
        }
    }

    /// Of a registration by the function at `key` in [`REGISTERS`].
    pub fn registration(key: u32) -> Self {
        Self {
            number: REGISTERED as u32,
            key,
            flags: 0,
            length: REGISTRATION as u32,
            result: 0,
        }
    }

    /// Whether it is a registration, not an answer.
    pub fn is_registration(&self) -> bool {
        self.number as usize == REGISTERED && (self.key as usize) < REGISTERS.len()
    }

    /// Whether it is a text that the region wrote, not an answer.
    pub fn is_text(&self) -> bool {
        is_write(self.number as usize, self.key as usize)
    }

    fn decode(bytes: &[u8; ANSWER_HEAD]) -> Self {
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        Self {
            number: word(0),
            key: word(4),
            flags: word(8),
            length: word(12),
            result: (u64::from(word(20)) << 32 | u64::from(word(16))) as i64,
        }
    }
}

/// Whether the system call `number` writes text to the `descriptor` of standard output or standard error.
pub fn is_write(number: usize, descriptor: usize) -> bool {
    let writes = [numbers::WRITE, numbers::WRITEV].contains(&(number as i64));
    writes && [1, 2].contains(&descriptor)
}

/// The answers of a file that `what` names, in order, each with the bytes that the call wrote.
pub fn decode(what: &str, bytes: &[u8]) -> Result<Vec<(Head, Vec<u8>)>, FormatError> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let short = |needed: usize| FormatError::TooShort {
            what: "list of answers",
            offset: at as u64,
            needed: needed as u64,
            available: rest.len() as u64,
        };
        let (head, rest) = rest.split_first_chunk().ok_or_else(|| short(ANSWER_HEAD))?;
        let head = Head::decode(head);
        let length = head.length as usize;
        let padded = length.next_multiple_of(8);
        let content = rest
            .get(..padded)
            .ok_or_else(|| short(ANSWER_HEAD + padded))?;
        let known = match head.is_text() {
            true => length <= TEXT_MOST,
            false if head.is_registration() => length == REGISTRATION,
            false => length <= RANDOM_MOST && ask(head.number as usize, head.key).is_some(),
        };
        if !known {
            return Err(FormatError::Invalid {
                what: what.to_owned(),
                field: "answers",
                value: format!("call {} with {length} bytes at offset {at}", head.number),
                why: "no capture keeps such an answer",
            });
        }
        found.push((head, content[..length].to_vec()));
        at += ANSWER_HEAD + padded;
    }
    Ok(found)
}

/// The question of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question {
    /// Distinguishes questions of the same call: the number of a clock, for example.
    pub key: u32,
    /// Memory that the kernel writes: address (0: none) and bytes.
    pub writes: [(usize, usize); 2],
}

/// The question of the system call `number` (or [`COUNTER`]) with these arguments, if its answer can be recorded and
/// repeated: the time, or the identity of the process and its processor.
pub fn question(number: usize, a: [usize; 6]) -> Option<Question> {
    const NONE: (usize, usize) = (0, 0);
    let one = |key: usize, at, length| {
        Some(Question {
            key: key as u32,
            writes: [(at, length), NONE],
        })
    };
    if number == COUNTER {
        return one(a[0], a[1], 4);
    }
    match number as i64 {
        numbers::CLOCK_GETTIME | numbers::CLOCK_GETRES => one(a[0], a[1], 16),
        numbers::GETTIMEOFDAY => Some(Question {
            key: 0,
            writes: [(a[0], 16), (a[1], 8)],
        }),
        numbers::TIME => one(0, a[0], 8),
        numbers::TIMES => one(0, a[0], 32),
        numbers::GETRUSAGE => one(a[0], a[1], 144),
        numbers::GETCPU => Some(Question {
            key: 0,
            writes: [(a[0], 4), (a[1], 4)],
        }),
        numbers::SYSINFO => one(0, a[0], 112),
        numbers::UNAME => one(0, a[0], 390),
        numbers::GETRLIMIT => one(a[0], a[1], 16),
        numbers::GETRANDOM if a[1] <= RANDOM_MOST => one(a[1], a[0], a[1]),
        numbers::GETPID
        | numbers::GETTID
        | numbers::GETPPID
        | numbers::GETUID
        | numbers::GETEUID
        | numbers::GETGID
        | numbers::GETEGID => one(0, 0, 0),
        _ => None,
    }
}

/// The question of `number` in words; `None` if its answers are not kept.
pub fn ask(number: usize, key: u32) -> Option<String> {
    question(number, [0; 6])?;
    if number == COUNTER {
        return Some("the time stamp counter".into());
    }
    Some(match number as i64 {
        numbers::CLOCK_GETTIME => match key as i32 {
            libc::CLOCK_PROCESS_CPUTIME_ID | libc::CLOCK_THREAD_CPUTIME_ID => {
                "the processor time".into()
            }
            _ => "the time".into(),
        },
        numbers::GETTIMEOFDAY | numbers::TIME => "the time".into(),
        numbers::TIMES | numbers::GETRUSAGE => "the processor time".into(),
        numbers::CLOCK_GETRES => "the clock's resolution".into(),
        numbers::GETRANDOM => "random bytes".into(),
        numbers::GETCPU => "the processor that it runs on".into(),
        numbers::SYSINFO | numbers::UNAME => "the system".into(),
        numbers::GETRLIMIT => "a limit".into(),
        numbers::GETPID | numbers::GETPPID => "the number of its process".into(),
        numbers::GETTID => "the number of its thread".into(),
        _ => "the user".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(length: u32) -> Head {
        Head {
            number: numbers::GETRANDOM as u32,
            key: 7,
            flags: ANSWER_CALL,
            length,
            result: -3,
        }
    }

    #[test]
    fn answers_come_back() {
        let mut file = answer(3).encode().to_vec();
        file.extend([1, 2, 3, 0, 0, 0, 0, 0]);
        file.extend(answer(0).encode());
        let expected = [(answer(3), vec![1, 2, 3]), (answer(0), vec![])];
        assert_eq!(decode("a", &file).unwrap(), expected);
    }

    #[test]
    fn what_is_no_answer() {
        let whole = [&answer(3).encode()[..], &[1, 2, 3, 0, 0, 0, 0, 0]].concat();
        for length in 1..whole.len() {
            assert!(matches!(
                decode("a", &whole[..length]),
                Err(FormatError::TooShort { .. })
            ));
        }
        let text = Head {
            number: numbers::WRITE as u32,
            key: 2,
            flags: TEXT_GOES_ON,
            ..answer(0)
        };
        assert_eq!(decode("a", &text.encode()).unwrap(), [(text, vec![])]);
        let registered = Head::registration(1);
        let file = [&registered.encode()[..], &[7; REGISTRATION]].concat();
        let expected = [(registered, vec![7; REGISTRATION])];
        assert_eq!(decode("a", &file).unwrap(), expected);
        let other = Head { key: 7, ..text };
        assert!(matches!(
            decode("a", &other.encode()),
            Err(FormatError::Invalid { .. })
        ));
    }
}

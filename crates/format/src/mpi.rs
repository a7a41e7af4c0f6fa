//! Calls of MPI in a captured invocation: what each was given, and what had changed when it returned. A replay answers them without
//! MPI: it compares what it is asked with, and puts in place what was received. `<n>.mpi` of a raw capture, member `mpi` of a
//! package.
//!
//! A call, little endian, in words of 8 bytes:
//!
//! | words | what |
//! |---|---|
//! | 1 | its function in [`MpiCalls::functions`] (4 bytes), number of arguments (4) |
//! | 1 | what it returned |
//! | 1 | number of sent pieces (4), of left pieces (4) |
//! | 2 an argument | how it is read ([`Reading`]), its value |
//! | 4 a piece, and its bytes up to a multiple of 8 | calls back (4), argument (4); offset or address; [`Element`]; length |
//!
//! A piece is memory behind the pointer that an argument of this call, or of one so many calls back, holds; or memory at an
//! [`ABSOLUTE`] address. Sent ones hold what the call was given, left ones what was there when it returned.

use crate::FormatError;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Maximum bytes of calls that a capture keeps.
pub const MPI_MOST: u64 = 2 << 30;
/// [`Piece::argument`] of a piece at an address.
pub const ABSOLUTE: u32 = u32::MAX;
/// Maximum number of functions of MPI that a program is followed in.
pub const FUNCTIONS_MOST: usize = 512;
/// Maximum number of arguments.
pub const ARGUMENTS_MOST: usize = 16;

/// Metadata of the calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MpiCalls {
    /// How many.
    pub calls: u64,
    /// Bytes of the list.
    pub bytes: u64,
    /// The functions that the program refers to.
    pub functions: Vec<MpiFunction>,
}

/// A function of MPI.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MpiFunction {
    /// Its name in the program: `MPI_Send`, `mpi_send_`.
    pub name: String,
    /// Addresses by which the program called it: the library's, and that of what stood in its place.
    pub addresses: Vec<u64>,
}

/// How an argument is read where a replay compares it.
#[repr(u64)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// It is not compared: the address of a variable of the region's own frames, which other code lays out otherwise.
    Not = 0,
    /// Its low 32 bits.
    Half = 1,
    /// All of it.
    Word = 2,
    /// 32 bits at the address that it is.
    HalfAt = 3,
    /// 64 bits at the address that it is.
    WordAt = 4,
}

/// What a piece consists of, as far as it matters for rounding.
#[repr(u64)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// Something else.
    Other = 0,
    /// Floats of 32 bits.
    Single = 1,
    /// Floats of 64 bits.
    Double = 2,
}

/// An argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Argument {
    /// How it is read.
    pub reading: Reading,
    /// What it was.
    pub value: u64,
}

/// A piece of memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The call whose argument it lies behind, counted back from this one.
    pub back: u32,
    /// That argument, from 0, or [`ABSOLUTE`].
    pub argument: u32,
    /// Offset behind the argument, negative ones as two's complement; or the address.
    pub at: u64,
    /// What it consists of.
    pub element: Element,
    /// Place of its bytes in the list.
    pub bytes: Range<usize>,
}

/// A call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Its function.
    pub function: u32,
    /// What it returned.
    pub result: u64,
    /// What it was given.
    pub arguments: Vec<Argument>,
    /// Memory that it was given.
    pub sent: Vec<Piece>,
    /// Memory as it was when it returned, where it may have changed.
    pub left: Vec<Piece>,
}

/// Appends a call that was given these `arguments` to a `list`; its `result` and its pieces follow.
pub fn begin(list: &mut Vec<u8>, function: u32, arguments: &[Argument]) -> Begun {
    let at = list.len();
    let half = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    let words = [half(function, arguments.len() as u32), 0, 0];
    let arguments = arguments.iter().flat_map(|a| [a.reading as u64, a.value]);
    for word in words.into_iter().chain(arguments) {
        list.extend_from_slice(&word.to_le_bytes());
    }
    Begun { at, pieces: [0; 2] }
}

/// A call whose pieces are being appended: the sent ones first.
#[derive(Debug, Clone)]
pub struct Begun {
    at: usize,
    pieces: [u32; 2],
}

impl Begun {
    /// Appends a piece that was sent, or that was left.
    pub fn piece(
        &mut self,
        list: &mut Vec<u8>,
        sent: bool,
        (back, argument, at): (u32, u32, u64),
        element: Element,
        bytes: &[u8],
    ) {
        self.pieces[usize::from(!sent)] += 1;
        let place = u64::from(back) | u64::from(argument) << 32;
        for word in [place, at, element as u64, bytes.len() as u64] {
            list.extend_from_slice(&word.to_le_bytes());
        }
        list.extend_from_slice(bytes);
        list.resize(list.len().next_multiple_of(8), 0);
    }

    /// The call has returned, and all of it is appended.
    pub fn end(self, list: &mut [u8], result: u64) {
        let pieces = u64::from(self.pieces[0]) | u64::from(self.pieces[1]) << 32;
        for (place, word) in [(1, result), (2, pieces)] {
            let at = self.at + 8 * place;
            list[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
    }
}

/// Reads a list.
struct Reader<'a> {
    what: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn word(&mut self) -> Result<u64, FormatError> {
        let rest = &self.bytes[self.at..];
        let word = rest.first_chunk().ok_or(FormatError::TooShort {
            what: "list of calls of MPI",
            offset: self.at as u64,
            needed: 8,
            available: rest.len() as u64,
        })?;
        self.at += 8;
        Ok(u64::from_le_bytes(*word))
    }

    fn halves(&mut self) -> Result<[u32; 2], FormatError> {
        let word = self.word()?;
        Ok([word as u32, (word >> 32) as u32])
    }

    fn invalid(&self, value: String) -> FormatError {
        FormatError::Invalid {
            what: self.what.to_owned(),
            field: "calls of MPI",
            value: format!("{value} before offset {}", self.at),
            why: "no capture keeps such a call",
        }
    }

    fn argument(&mut self) -> Result<Argument, FormatError> {
        let (reading, value) = (self.word()?, self.word()?);
        let reading = match reading {
            0 => Reading::Not,
            1 => Reading::Half,
            2 => Reading::Word,
            3 => Reading::HalfAt,
            4 => Reading::WordAt,
            _ => return Err(self.invalid(format!("an argument of kind {reading}"))),
        };
        Ok(Argument { reading, value })
    }

    /// A piece of the call after those of these numbers of `arguments`.
    fn piece(&mut self, arguments: &[u32]) -> Result<Piece, FormatError> {
        let ([back, argument], at) = (self.halves()?, self.word()?);
        let (element, length) = (self.word()?, self.word()?);
        let element = match element {
            0 => Element::Other,
            1 => Element::Single,
            2 => Element::Double,
            _ => return Err(self.invalid(format!("an element of kind {element}"))),
        };
        let of = arguments.len().checked_sub(1 + back as usize);
        let known = match argument {
            ABSOLUTE => back == 0,
            _ => of.is_some_and(|call| argument < arguments[call]),
        };
        if !known {
            return Err(self.invalid(format!("argument {argument} of {back} calls back")));
        }
        let start = self.at;
        let end = usize::try_from(length)
            .ok()
            .and_then(|length| start.checked_add(length)?.checked_next_multiple_of(8))
            .filter(|end| *end <= self.bytes.len());
        let end = end.ok_or_else(|| self.invalid(format!("a piece of {length} bytes")))?;
        self.at = end;
        Ok(Piece {
            back,
            argument,
            at,
            element,
            bytes: start..start + length as usize,
        })
    }
}

/// The calls of a list that `what` names, of a program with so many `functions`.
pub fn decode(what: &str, bytes: &[u8], functions: usize) -> Result<Vec<Call>, FormatError> {
    let mut reader = Reader { what, bytes, at: 0 };
    let (mut calls, mut counts) = (Vec::new(), Vec::new());
    while reader.at < bytes.len() {
        let ([function, count], result) = (reader.halves()?, reader.word()?);
        let [sent, left] = reader.halves()?;
        if function as usize >= functions || count as usize > ARGUMENTS_MOST {
            return Err(reader.invalid(format!("function {function} with {count} arguments")));
        }
        let arguments = (0..count)
            .map(|_| reader.argument())
            .collect::<Result<_, _>>()?;
        counts.push(count);
        let mut pieces = |count: u32| {
            let each = (0..count).map(|_| reader.piece(&counts));
            each.collect::<Result<Vec<_>, _>>()
        };
        let (sent, left) = (pieces(sent)?, pieces(left)?);
        calls.push(Call {
            function,
            result,
            arguments,
            sent,
            left,
        });
    }
    Ok(calls)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argument(reading: Reading, value: u64) -> Argument {
        Argument { reading, value }
    }

    fn two_calls() -> Vec<u8> {
        let mut list = Vec::new();
        let given = [argument(Reading::Not, 0), argument(Reading::Half, 7)];
        let mut call = begin(&mut list, 1, &given);
        call.piece(&mut list, true, (0, 0, 16), Element::Double, &[1; 16]);
        call.end(&mut list, 5);
        let mut call = begin(&mut list, 0, &given[..1]);
        call.piece(&mut list, false, (1, 1, 0), Element::Other, &[2; 3]);
        call.piece(&mut list, false, (0, ABSOLUTE, 4096), Element::Other, &[]);
        call.end(&mut list, 0);
        list
    }

    #[test]
    fn calls_come_back() {
        let list = two_calls();
        let calls = decode("a", &list, 2).unwrap();
        let [first, second] = &calls[..] else {
            panic!("{calls:?}")
        };
        assert_eq!((first.function, first.result), (1, 5));
        assert_eq!(first.arguments[1], argument(Reading::Half, 7));
        assert_eq!(list[first.sent[0].bytes.clone()], [1; 16]);
        assert_eq!(first.sent[0].element, Element::Double);
        assert!(first.left.is_empty() && second.sent.is_empty());
        let left = &second.left;
        assert_eq!((left[0].back, left[0].argument), (1, 1));
        assert_eq!(list[left[0].bytes.clone()], [2; 3]);
        assert_eq!((left[1].argument, left[1].at), (ABSOLUTE, 4096));
    }

    #[test]
    fn what_no_capture_keeps() {
        let list = two_calls();
        let first = 8 * (3 + 4 + 4 + 2);
        for length in (1..list.len()).filter(|length| *length != first) {
            assert!(decode("a", &list[..length], 2).is_err(), "{length}");
        }
        assert!(decode("a", &list, 1).is_err(), "a function beyond the list");
        // Each word with all bits set, but for values, results, offsets and bytes.
        let free = [1, 4, 6, 8, 11, 12, 14, 17, 19, 22, 24];
        for word in (0..list.len() / 8).filter(|word| !free.contains(word)) {
            let mut list = list.clone();
            list[8 * word..8 * word + 8].fill(0xff);
            assert!(decode("a", &list, 2).is_err(), "word {word}");
        }
    }
}

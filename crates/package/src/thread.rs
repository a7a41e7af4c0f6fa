//! The captured thread: its thread-local block, and what of the captured memory leads to its control block or to thread-local
//! variables.

use crate::PackError;
use crate::program::{Loaded, RegionImage};
use crate::raw::Raw;
use cere_format::package::{CapturedThread, LibraryLocals, TlsBlock};

/// A thread-local block's bytes at entry and at exit.
type Blocks = (Vec<u8>, Vec<u8>);

/// The thread-local block of the region's image, with its content.
pub fn block(
    raw: &Raw,
    image: &RegionImage<'_>,
) -> Result<(Option<TlsBlock>, Option<Blocks>), PackError> {
    let (Some((address, size)), Some((_, _, align))) =
        (image.loaded.image.tls, image.loaded.elf.template()?)
    else {
        return Ok((None, None));
    };
    let block = TlsBlock {
        size,
        align,
        address,
        variables: image.thread_locals(),
    };
    let bytes = |at_exit| raw.bytes(address, size, at_exit);
    Ok((Some(block), Some((bytes(false)?, bytes(true)?))))
}

/// Where the thread's variables and its control block lie, and the words that hold addresses there.
pub struct Locals {
    libraries: Vec<LibraryLocals>,
    ranges: Vec<(u64, u64)>,
    bounds: (u64, u64),
    words: Vec<u64>,
}

impl Locals {
    /// From the images.
    pub fn find(raw: &Raw, images: &[Loaded], own: &RegionImage<'_>) -> Result<Self, PackError> {
        /// Bytes of the control block, at most.
        const CONTROL: u64 = 0xc00;
        let mut libraries = Vec::new();
        for loaded in images.iter().filter(|l| !l.image.program) {
            if let Some((address, size)) = loaded.image.tls {
                libraries.push(LibraryLocals {
                    library: loaded.elf.soname()?,
                    address,
                    size,
                });
            }
        }
        let pointer = raw.capture.thread_pointer;
        let ranges = libraries.iter().map(|l| (l.address, l.size));
        let ranges = ranges
            .chain(own.loaded.image.tls)
            .chain([(pointer, CONTROL)]);
        let ranges = ranges.map(|(start, size)| (start, start.saturating_add(size)));
        let ranges: Vec<(u64, u64)> = ranges.collect();
        let low = ranges.iter().map(|r| r.0).min().unwrap_or(0);
        let high = ranges.iter().map(|r| r.1).max().unwrap_or(0);
        Ok(Self {
            libraries,
            ranges,
            bounds: (low, high),
            words: Vec::new(),
        })
    }

    /// Looks at the captured word `value` at `address`; a word in memory that a replay takes fresh is not rewritten.
    #[inline]
    pub fn word(&mut self, address: u64, value: u64, foreign: bool) {
        let inside = |r: &(u64, u64)| r.0 <= value && value < r.1;
        if inside(&self.bounds) && !foreign && self.ranges.iter().any(inside) {
            self.words.push(address);
        }
    }

    /// What a package keeps of it; none if the capture does not tell.
    pub fn finish(self, raw: &Raw) -> Result<Option<CapturedThread>, PackError> {
        /// Offsets of both guards in the control block.
        const GUARDS: [u64; 2] = [0x28, 0x30];
        let pointer = raw.capture.thread_pointer;
        if pointer == 0 || raw.capture.thread_number == 0 {
            return Ok(None);
        }
        let mut guards = [0; 2];
        for (guard, offset) in guards.iter_mut().zip(GUARDS) {
            *guard = raw.word(pointer.saturating_add(offset))?.unwrap_or(0);
        }
        Ok(Some(CapturedThread {
            pointer,
            number: raw.capture.thread_number,
            guards,
            locals: self.libraries,
            words: self.words,
        }))
    }
}

//! The memory that a segment reaches, for the simulator.

use crate::class;
use cere_format::count::{self, Code, LOAD, NON_TEMPORAL, PREFETCH, STORE, Segment, Shape, THREAD};
use cere_memory::{Access, Kind};
use serde::Serialize;

/// Accesses to memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Accesses that read.
    pub loads: u64,
    /// And that write.
    pub stores: u64,
    /// Bytes read.
    pub load_bytes: u64,
    /// Bytes written.
    pub store_bytes: u64,
}

impl Memory {
    /// More of the same.
    pub fn add(&mut self, times: u64, flags: u8, bytes: u64) {
        let all = bytes.saturating_mul(times);
        if flags & LOAD != 0 {
            self.loads = self.loads.saturating_add(times);
            self.load_bytes = self.load_bytes.saturating_add(all);
        }
        if flags & STORE != 0 {
            self.stores = self.stores.saturating_add(times);
            self.store_bytes = self.store_bytes.saturating_add(all);
        }
    }
}

/// Accesses whose number or size only a run shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dynamic {
    /// Of the code.
    pub code: Memory,
    /// Of the code, past the caches.
    pub non_temporal: Memory,
    /// Of memcpy and the like.
    pub library: Memory,
}

/// An access of a segment, as far as it is known before the code runs.
#[derive(Debug, Clone, Copy)]
struct Known {
    shape: Shape,
    thread: bool,
    kind: Kind,
    /// Bytes: of one lane or element, where there are several.
    size: u32,
    index_words: usize,
    index_bits: u32,
    mask: Mask,
    /// Lanes of the vector.
    lanes: usize,
    scale: u64,
    words: usize,
}

/// How a mask chooses lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mask {
    /// It lets all through.
    None,
    /// By a bit of a word.
    Bits,
    /// By the sign of each lane of a vector.
    Signs,
}

/// The accesses of all segments.
#[derive(Debug)]
pub struct Accesses {
    segments: Vec<Vec<Known>>,
    /// Whether a segment has accesses whose number or size only its words show.
    dynamic: Vec<bool>,
}

/// Bytes of an access, from the compiler or the instruction's name.
pub fn size(access: &count::Access, name: &str) -> u32 {
    match access.size {
        0 => class::bytes(name),
        size => size.into(),
    }
}

fn kind(access: &count::Access) -> Kind {
    match () {
        () if access.is(PREFETCH) => Kind::Prefetch,
        () if access.is(NON_TEMPORAL) && access.is(STORE) => Kind::NonTemporal,
        () if access.is(STORE) && access.is(LOAD) => Kind::ReadModifyWrite,
        () if access.is(STORE) => Kind::Store,
        () => Kind::Load,
    }
}

impl Accesses {
    /// Of `code`.
    #[must_use]
    pub fn of(code: &Code) -> Self {
        let known = |segment: &Segment, access: &count::Access| {
            let instruction = segment.instructions.get(usize::from(access.instruction));
            let name = instruction.map_or("", |i| code.name(i.name));
            let several = matches!(access.shape, Shape::Masked | Shape::Gather);
            let (bits, index_bits) = (class::lane_bits(name), class::index_bits(name));
            let width = class::class(name).width.lanes(bits) as usize;
            let positions = 64 * usize::from(access.index_words) / index_bits as usize;
            Known {
                shape: access.shape,
                thread: access.is(THREAD),
                kind: kind(access),
                size: match several {
                    true => bits / 8,
                    false => size(access, name),
                },
                index_words: access.index_words.into(),
                index_bits,
                mask: match access.mask_words {
                    0 => Mask::None,
                    1 => Mask::Bits,
                    _ => Mask::Signs,
                },
                lanes: match access.shape {
                    Shape::Gather => width.min(positions),
                    _ => width,
                },
                scale: access.scale.into(),
                words: access.words(),
            }
        };
        let of = |segment: &Segment| segment.accesses.iter().map(|a| known(segment, a)).collect();
        let segments: Vec<Vec<Known>> = code.segments.iter().map(of).collect();
        let dynamic = |known: &Vec<Known>| known.iter().any(|k| k.is_dynamic());
        Self {
            dynamic: segments.iter().map(dynamic).collect(),
            segments,
        }
    }

    /// Adds the accesses of segment `index` whose number or size only its words show.
    #[inline]
    pub fn add_dynamic(&self, index: u32, words: &[u64], to: &mut Dynamic) {
        if !self.dynamic[index as usize] {
            return;
        }
        let mut at = 0;
        for known in &self.segments[index as usize] {
            known.add_dynamic(&words[at..at + known.words], to);
            at += known.words;
        }
    }

    /// Calls `each` with the accesses of segment `index`, whose words are `words`, each after its number in the segment's
    /// description; `control`: the thread's control block.
    #[inline]
    pub fn each(
        &self,
        index: u32,
        control: u64,
        words: &[u64],
        mut each: impl FnMut(usize, Access),
    ) {
        let mut at = 0;
        for (number, known) in self.segments[index as usize].iter().enumerate() {
            let own = &words[at..at + known.words];
            at += known.words;
            if known.shape == Shape::Plain && !known.thread {
                let access = Access {
                    address: own[0],
                    size: known.size,
                    kind: known.kind,
                };
                each(number, access);
            } else {
                known.others(control, own, &mut |access| each(number, access));
            }
        }
    }
}

/// Lane `n` of a vector, sign-extended.
fn lane(vector: &[u64], bits: u32, n: usize) -> i64 {
    match bits {
        32 => {
            let word = vector.get(n / 2).copied().unwrap_or(0);
            i64::from((word >> (32 * (n % 2))) as u32 as i32)
        }
        _ => vector.get(n).copied().unwrap_or(0) as i64,
    }
}

impl Known {
    fn is_dynamic(&self) -> bool {
        !matches!(self.shape, Shape::Plain | Shape::Push | Shape::Pop)
    }

    fn add_dynamic(&self, words: &[u64], to: &mut Dynamic) {
        let flags = match self.kind {
            Kind::Load => LOAD,
            Kind::Store | Kind::NonTemporal => STORE,
            Kind::ReadModifyWrite => LOAD | STORE,
            Kind::Prefetch => return,
        };
        let size = u64::from(self.size);
        let non_temporal = self.kind == Kind::NonTemporal;
        match self.shape {
            Shape::Plain | Shape::Push | Shape::Pop => {}
            Shape::Copy | Shape::Set => to.library.add(1, flags, words[0]),
            Shape::RepeatedCopy | Shape::RepeatedSet => to.code.add(words[0], flags, size),
            Shape::Masked | Shape::Gather => {
                let mask = &words[1 + self.index_words..];
                let lanes = (0..self.lanes).filter(|n| self.lets(mask, *n)).count() as u64;
                to.code.add(1, flags, lanes * size);
                if non_temporal {
                    to.non_temporal.add(1, flags, lanes * size);
                }
            }
        }
    }

    #[cold]
    fn others(&self, control: u64, words: &[u64], each: &mut impl FnMut(Access)) {
        let (size, kind) = (self.size, self.kind);
        let access = |address, size, kind| Access {
            address,
            size,
            kind,
        };
        // Lengths that no memory has are those of calls that fail.
        let range = |address: u64, count: u64, kind, each: &mut dyn FnMut(Access)| {
            const PIECE: u64 = 1 << 30;
            const MOST: u64 = 1 << 40;
            let bytes = count.saturating_mul(size.into()).min(MOST);
            for at in (0..bytes).step_by(PIECE as usize) {
                let piece = PIECE.min(bytes - at) as u32;
                each(access(address.wrapping_add(at), piece, kind));
            }
        };
        match self.shape {
            Shape::Plain => each(access(words[0].wrapping_add(control), size, kind)),
            Shape::Push => each(access(words[0], size, Kind::Store)),
            Shape::Pop => each(access(words[0], size, Kind::Load)),
            Shape::Copy | Shape::RepeatedCopy => {
                range(words[2], words[0], Kind::Load, each);
                range(words[1], words[0], Kind::Store, each);
            }
            Shape::Set | Shape::RepeatedSet => range(words[1], words[0], Kind::Store, each),
            Shape::Masked => {
                for n in (0..self.lanes).filter(|n| self.lets(&words[1..], *n)) {
                    let offset = n as u64 * u64::from(size);
                    each(access(words[0].wrapping_add(offset), size, kind));
                }
            }
            Shape::Gather => {
                let (positions, mask) = words[1..].split_at(self.index_words);
                for n in (0..self.lanes).filter(|n| self.lets(mask, *n)) {
                    let position = lane(positions, self.index_bits, n) as u64;
                    let offset = position.wrapping_mul(self.scale);
                    each(access(words[0].wrapping_add(offset), size, kind));
                }
            }
        }
    }

    /// Whether the mask lets lane `n` through.
    fn lets(&self, mask: &[u64], n: usize) -> bool {
        match self.mask {
            Mask::None => true,
            Mask::Bits => mask.first().is_some_and(|word| word >> n & 1 == 1),
            Mask::Signs => lane(mask, 8 * self.size, n) < 0,
        }
    }
}

//! Operands in states of their own before a timed repetition (Whaley and Castaldo, 3.1): each is put where the caller says it
//! lies, in an order that keeps the states reached before.

use crate::caches::{self, Area};
use crate::error::Error;
use crate::lines::{Lines, flush_translations};
use crate::space::{bytes, union, without};
use crate::team::{Team, each};
use cere_format::caches::Cache;
use cere_format::replay::{CacheLevel, CacheState, OperandMemory, PlacedOperand};

type Range = (u64, u64);

/// The replay's memory.
pub struct Memory<'a> {
    /// What the region uses, rising and apart.
    pub data: &'a [Range],
    /// This executable and its libraries.
    pub images: &'a [Range],
    /// Captured code, within `data`.
    pub code: Vec<Range>,
    /// Recompiled functions, within `images`.
    pub recompiled: Vec<Range>,
    /// Whether the warm-up before leaves nothing in the caches nearest to the core.
    pub all_cold: bool,
}

/// What is done for the operands, after the warm-up of the whole.
pub struct Placing<'a> {
    lines: Lines,
    /// Flushed at first: what is to lie beyond the nearest cache.
    away: Vec<Range>,
    /// Read after that: all code that may run, before the functions that did.
    images: Vec<Range>,
    llc: Vec<Range>,
    l2: Vec<Range>,
    warm: Vec<Range>,
    /// Flushed at last.
    cold: Vec<Range>,
    /// Whether translations go as well.
    translations: bool,
    /// Empties the caches nearer than the last level.
    beyond_l2: Option<Area>,
    /// Empties the first level.
    beyond_l1: Option<Area>,
    team: Option<&'a Team>,
    /// Bytes of each operand.
    pub bytes: Vec<u64>,
}

/// An area whose walk empties what is nearer than `level`.
fn emptying(caches: &[Cache], level: CacheLevel) -> Result<Area, Error> {
    let others = "warm and cold";
    Area::new(2 * caches::nearer(caches, level, "an operand in the state", others)?)
}

impl<'a> Placing<'a> {
    /// Prepares for `operands`.
    pub fn new(
        operands: &[PlacedOperand],
        memory: Memory<'_>,
        caches: &[Cache],
        lines: Lines,
        team: Option<&'a Team>,
    ) -> Result<Self, Error> {
        let mut placing = Self {
            lines,
            away: Vec::new(),
            images: Vec::new(),
            llc: Vec::new(),
            l2: Vec::new(),
            warm: Vec::new(),
            cold: Vec::new(),
            translations: false,
            beyond_l2: None,
            beyond_l1: None,
            team,
            bytes: Vec::new(),
        };
        if operands.iter().any(|o| o.state != CacheState::Warm) && !lines.can_flush() {
            return Err(Error::NoFlush);
        }
        let mut named = Vec::new();
        for operand in operands {
            if let OperandMemory::Ranges(ranges) = &operand.memory {
                named = union(&named, &lines.whole(ranges));
            }
        }
        let taken = union(&named, &memory.code);
        for operand in operands {
            let state = operand.state;
            let ranges = match &operand.memory {
                OperandMemory::Ranges(ranges) => ranges.clone(),
                OperandMemory::Data => {
                    placing.translations = state == CacheState::Cold;
                    without(memory.data, &taken)
                }
                OperandMemory::Code if state == CacheState::Cold => {
                    union(memory.images, &memory.code)
                }
                OperandMemory::Code => {
                    // Libraries lie farther away than what the capture saw run.
                    if state != CacheState::Warm {
                        placing.away = union(&placing.away, memory.images);
                    }
                    if state != CacheState::Warm || memory.all_cold {
                        // Libraries lie above: the executable with the region's constants is read after them.
                        placing.images = memory.images.iter().rev().copied().collect();
                    }
                    union(&memory.recompiled, &memory.code)
                }
            };
            placing.bytes.push(bytes(&ranges));
            if matches!(state, CacheState::L2 | CacheState::Llc) {
                placing.away = union(&placing.away, &ranges);
            }
            let all = match state {
                CacheState::Warm => &mut placing.warm,
                CacheState::L2 => &mut placing.l2,
                CacheState::Llc => &mut placing.llc,
                CacheState::Cold => &mut placing.cold,
            };
            *all = union(all, &ranges);
        }
        if !placing.llc.is_empty() {
            placing.beyond_l2 = Some(emptying(caches, CacheLevel::Llc)?);
        }
        if !placing.l2.is_empty() {
            placing.beyond_l1 = Some(emptying(caches, CacheLevel::L2)?);
        }
        Ok(placing)
    }

    /// Puts the operands into their states: the farthest that is read first, what is flushed last. With a team each thread
    /// reads and walks, so that they hold in the caches of every core.
    pub fn apply(&self) {
        if self.bytes.is_empty() {
            return;
        }
        if self.translations {
            flush_translations();
        }
        // SAFETY: memory of the region and images, mapped for reading as long as the process lives.
        unsafe { self.lines.flush(&self.away) };
        each(self.team, |_| self.read());
        // SAFETY: lines of the region and of images, mapped as long as the process lives.
        unsafe { self.lines.flush(&self.cold) };
    }

    /// The part of each thread.
    fn read(&self) {
        let read = |ranges: &[Range]| {
            // SAFETY: memory of the region and images, mapped for reading as long as the process lives.
            ranges.iter().for_each(|r| unsafe { self.lines.read(*r) });
        };
        read(&self.images);
        read(&self.llc);
        if let Some(area) = &self.beyond_l2 {
            area.walk(&self.lines);
        }
        read(&self.l2);
        if let Some(area) = &self.beyond_l1 {
            area.walk(&self.lines);
        }
        // Twice: caches that do not replace the oldest line drop some of what was read once.
        read(&self.warm);
        read(&self.warm);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(operands: &[PlacedOperand]) -> Result<Placing<'static>, Error> {
        let memory = Memory {
            data: &[(0x1000, 0x3000), (0x8000, 0x9000)],
            images: &[(0x5_0000, 0x6_0000)],
            code: vec![(0x8000, 0x9000)],
            recompiled: vec![(0x5_1000, 0x5_1100)],
            all_cold: false,
        };
        Placing::new(
            operands,
            memory,
            &cere_format::caches::of(0),
            Lines::new(),
            None,
        )
    }

    fn operand(memory: OperandMemory, state: CacheState) -> PlacedOperand {
        PlacedOperand { memory, state }
    }

    #[test]
    fn what_is_named_is_not_of_the_rest() {
        let named = OperandMemory::Ranges(vec![(0x1008, 0x1010), (0x2000, 0x2080)]);
        let placed = placed(&[
            operand(OperandMemory::Data, CacheState::Cold),
            operand(named, CacheState::Warm),
            operand(OperandMemory::Code, CacheState::Warm),
        ])
        .unwrap();
        assert_eq!(placed.cold, [(0x1040, 0x2000), (0x2080, 0x3000)]);
        assert_eq!(
            placed.warm,
            [
                (0x1008, 0x1010),
                (0x2000, 0x2080),
                (0x8000, 0x9000),
                (0x5_1000, 0x5_1100)
            ]
        );
        assert_eq!(placed.bytes, [0x1f40, 0x88, 0x1100]);
        assert!(placed.images.is_empty() && placed.away.is_empty() && placed.translations);
    }

    #[test]
    fn cold_code_is_all_of_it() {
        let placed = placed(&[operand(OperandMemory::Code, CacheState::Cold)]).unwrap();
        assert_eq!(placed.cold, [(0x8000, 0x9000), (0x5_0000, 0x6_0000)]);
        assert!(!placed.translations);
    }
}

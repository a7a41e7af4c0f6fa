//! Brings every operand into its state before a timed part.

use crate::error::TimerError;
use crate::memory::{self, Area, Range, Streams};
use crate::operand::{Operand, State};
use crate::sizing::{self, FlushArea};
use crate::{aligned, team};

/// How operands get out of all caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flush {
    /// Their addresses are flushed, by an instruction. Their translations stay in the TLB.
    Address,
    /// An area is read that is larger than the caches. The kernel's code leaves the unified caches too.
    Walk,
}

impl Flush {
    /// [`Flush::Address`] where the processor can, else [`Flush::Walk`].
    pub fn available() -> Self {
        if memory::flushes_addresses() {
            Self::Address
        } else {
            Self::Walk
        }
    }
}

/// Brings states about, on this machine, for one set of operands.
pub(crate) struct Flusher {
    flush: Flush,
    /// Bytes of the caches, by level from 1.
    caches: Vec<usize>,
    area: Option<Area>,
    /// None if all operands are warm.
    streams: Option<Streams>,
    pub(crate) sized: Vec<FlushArea>,
    /// Processors to flush on: empty for the calling thread's alone.
    processors: Vec<usize>,
}

/// Whether there are such levels, and whether each operand fits in its own.
pub(crate) fn check(caches: &[usize], operands: &[Operand<'_>]) -> Result<(), TimerError> {
    if let Some((at, &bytes)) = caches.iter().enumerate().find(|(_, size)| **size < 1024) {
        return Err(TimerError::Cache {
            level: at + 1,
            bytes,
        });
    }
    for (index, operand) in operands.iter().enumerate() {
        let State::InLevel(level) = operand.state else {
            continue;
        };
        let room = (level as usize)
            .checked_sub(1)
            .and_then(|at| caches.get(at));
        let &room = room.ok_or(TimerError::Level {
            operand: index,
            level,
            levels: caches.len(),
        })?;
        let bytes = operand.bytes;
        if bytes > room {
            return Err(TimerError::DoesNotFit { bytes, level, room });
        }
    }
    Ok(())
}

/// The last level's size where the system shows no caches.
const UNKNOWN: usize = 4 << 20;

impl Flusher {
    /// Finds the sizes of the areas that `operands`, which passed [`check`], need.
    pub(crate) fn new(
        flush: Flush,
        caches: &[usize],
        parallel: bool,
        operands: &[Operand<'_>],
    ) -> Result<Self, TimerError> {
        if flush == Flush::Address && !memory::flushes_addresses() {
            return Err(TimerError::NoAddressFlush);
        }
        let processors = if parallel {
            team::processors()?
        } else {
            Vec::new()
        };
        let near = |o: &Operand<'_>| matches!(o.state, State::Warm | State::InLevel(1));
        let streams = (!operands.iter().all(near))
            .then(Streams::new)
            .transpose()?;
        let mut found = Self {
            flush,
            caches: caches.to_vec(),
            area: None,
            streams,
            sized: Vec::new(),
            processors,
        };
        found.find_sizes(operands)?;
        Ok(found)
    }

    /// Bytes of the cache of `level`, from 1.
    fn cache(&self, level: u32) -> usize {
        self.caches[level as usize - 1]
    }

    /// Level and size of each cache to walk out of, with the largest area allowed.
    fn wanted(&self, operands: &[Operand<'_>]) -> Vec<(u32, usize, usize)> {
        let has = |state| operands.iter().any(|o| o.state == state);
        let levels = 2..=self.caches.len() as u32;
        let nearer = levels.filter(|&level| has(State::InLevel(level)));
        // What stays in the farther cache needs room there.
        let mut wanted: Vec<_> = nearer
            .map(|level| (level - 1, self.cache(level - 1), self.cache(level) / 4))
            .collect();
        if has(State::Cold) && self.flush == Flush::Walk {
            let most = self.last().saturating_mul(8).min(aligned::available() / 4);
            wanted.push((self.caches.len() as u32, self.last(), most));
        }
        wanted
    }

    fn find_sizes(&mut self, operands: &[Operand<'_>]) -> Result<(), TimerError> {
        let wanted = self.wanted(operands);
        let Some(most) = wanted.iter().map(|w| w.2).max() else {
            return Ok(());
        };
        let mut area = Area::new(most)?;
        for (level, bytes, most) in wanted {
            self.sized
                .push(sizing::size(level, bytes, most, &mut area)?);
        }
        self.area = Some(area);
        Ok(())
    }

    /// Bytes of the last level.
    fn last(&self) -> usize {
        self.caches.last().copied().unwrap_or(UNKNOWN)
    }

    /// Bytes of the area that flushes the cache of `level`.
    fn area(&self, level: u32) -> usize {
        let found = self.sized.iter().find(|s| s.level == level);
        found.map_or(self.last().saturating_mul(2), |s| s.bytes)
    }

    /// How many copies of each operand `invocations` need so that none is used before it is flushed again: by the
    /// others if there are many, by [`Flusher::prepare`] if each is used once.
    pub(crate) fn copies(
        &self,
        operands: &[Operand<'_>],
        invocations: usize,
    ) -> Result<Vec<usize>, TimerError> {
        let last = self.caches.len() as u32;
        let one = |operand: &Operand<'_>| match operand.state {
            State::Warm | State::InLevel(1) => 1,
            State::Cold => self.sets(operands, State::Cold, last, invocations),
            state @ State::InLevel(level) => self.sets(operands, state, level - 1, invocations),
        };
        let copies: Vec<usize> = operands.iter().map(one).collect();
        self.check_room(operands, &copies)?;
        Ok(copies)
    }

    fn sets(
        &self,
        operands: &[Operand<'_>],
        state: State,
        flushed: u32,
        invocations: usize,
    ) -> usize {
        let set = bytes(operands.iter().filter(|o| o.state == state).map(|o| (o, 1)));
        let area = self
            .area(flushed)
            .saturating_mul(self.processors.len().max(1));
        invocations.min(area.div_ceil(set) + 1).max(1)
    }

    /// All that shall be in a cache, with what flushes the nearer one, must fit in it.
    fn check_room(&self, operands: &[Operand<'_>], copies: &[usize]) -> Result<(), TimerError> {
        for level in 1..=self.caches.len() as u32 {
            let here = operands.iter().zip(copies);
            let here = here.filter(|(o, _)| o.state == State::InLevel(level));
            let bytes = bytes(here.map(|(o, &copies)| (o, copies)));
            let area = if level > 1 { self.area(level - 1) } else { 0 };
            let room = self.cache(level).saturating_sub(area);
            if bytes > 0 && bytes > room {
                return Err(TimerError::DoesNotFit { bytes, level, room });
            }
        }
        Ok(())
    }

    /// Brings the ranges into their states, the farthest first.
    ///
    /// # Safety
    /// All ranges are mapped and readable.
    pub(crate) unsafe fn prepare(&self, ranges: &[(State, Range)]) -> Result<(), TimerError> {
        let of = |state| ranges.iter().filter(move |r| r.0 == state).map(|r| r.1);
        let read = |state| {
            for range in of(state) {
                // SAFETY: the range is mapped and readable.
                unsafe { range.read() };
            }
        };
        if of(State::Cold).next().is_some() {
            match self.flush {
                // SAFETY: mapped by the contract; `new` asked the processor.
                Flush::Address => of(State::Cold).for_each(|range| unsafe { range.flush() }),
                Flush::Walk => self.walk(self.caches.len() as u32)?,
            }
        }
        for level in (2..=self.caches.len() as u32).rev() {
            if of(State::InLevel(level)).next().is_some() {
                team::on_each(&self.processors, || read(State::InLevel(level)))?;
                self.walk(level - 1)?;
            }
        }
        team::on_each(&self.processors, || {
            if let Some(streams) = &self.streams {
                streams.forget();
            }
            read(State::InLevel(1));
            read(State::Warm);
        })
    }

    fn walk(&self, level: u32) -> Result<(), TimerError> {
        let bytes = self.area(level);
        match &self.area {
            Some(area) => team::on_each(&self.processors, || area.walk(bytes)),
            None => Ok(()),
        }
    }
}

/// Bytes of cache that some copies of each operand fill.
fn bytes<'o, 'f: 'o>(operands: impl Iterator<Item = (&'o Operand<'f>, usize)>) -> usize {
    operands.fold(0, |sum: usize, (operand, copies)| {
        sum.saturating_add(operand.footprint().saturating_mul(copies))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operand(bytes: usize, state: State) -> Operand<'static> {
        Operand::new(bytes, 64, 0, state).unwrap()
    }

    fn flusher(processors: usize) -> Flusher {
        let sized = |level, bytes| FlushArea {
            level,
            bytes,
            tried: Vec::new(),
        };
        Flusher {
            flush: Flush::Address,
            caches: vec![32 << 10, 1 << 20, 8 << 20],
            area: None,
            streams: None,
            sized: vec![sized(1, 64 << 10), sized(2, 2 << 20)],
            processors: (0..processors).collect(),
        }
    }

    #[test]
    fn copies_overflow_the_cache_or_are_used_once() {
        let operands = [
            operand(1 << 20, State::Cold),
            operand(16 << 10, State::InLevel(2)),
            operand(16 << 10, State::InLevel(2)),
            operand(100, State::Warm),
            operand(100, State::InLevel(1)),
        ];
        let copies = |processors, n| flusher(processors).copies(&operands, n).unwrap();
        assert_eq!(copies(0, 1), [1, 1, 1, 1, 1]);
        assert_eq!(copies(0, 2), [2, 2, 2, 1, 1]);
        // 16 MiB of 1 MiB sets, 64 KiB of 32 KiB sets, and one more.
        assert_eq!(copies(0, 1000), [17, 3, 3, 1, 1]);
        assert_eq!(copies(3, 1000), [49, 7, 7, 1, 1]);
    }

    #[test]
    fn what_stays_in_a_cache_has_room_beside_the_walk() {
        let fits = |bytes| flusher(0).copies(&[operand(bytes, State::InLevel(2))], 1);
        assert!(fits((1 << 20) - (64 << 10)).is_ok());
        let found = fits(1 << 20);
        assert!(
            matches!(found, Err(TimerError::DoesNotFit { level: 2, .. })),
            "{found:?}"
        );
    }
}

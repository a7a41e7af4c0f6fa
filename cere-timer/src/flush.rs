//! Brings every operand into its state before a timed part.

use crate::error::TimerError;
use crate::memory::{self, Area, Range};
use crate::operand::{Operand, State};
use crate::sizing::{self, Sized};
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
    pub(crate) sized: Vec<Sized>,
    /// Processors to flush on: empty for the calling thread's alone.
    processors: Vec<usize>,
}

/// The last level's size where the system shows no caches.
const UNKNOWN: usize = 4 << 20;

impl Flusher {
    /// Finds the sizes of the areas that `operands` need.
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
        let mut found = Self {
            flush,
            caches: caches.to_vec(),
            area: None,
            sized: Vec::new(),
            processors,
        };
        found.check_levels(operands)?;
        found.find_sizes(operands)?;
        Ok(found)
    }

    fn check_levels(&self, operands: &[Operand<'_>]) -> Result<(), TimerError> {
        let levels = self.caches.len();
        for (operand, Operand { state, .. }) in operands.iter().enumerate() {
            match *state {
                State::InLevel(level) if level == 0 || level as usize > levels => {
                    return Err(TimerError::Level {
                        operand,
                        level,
                        levels,
                    });
                }
                _ => {}
            }
        }
        Ok(())
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
            let most = (self.last() * 8).min(aligned::available() / 4);
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
        found.map_or(2 * self.last(), |s| s.bytes)
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
                // SAFETY: by the contract.
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

/// Bytes that some copies of each operand take.
fn bytes<'o, 'f: 'o>(operands: impl Iterator<Item = (&'o Operand<'f>, usize)>) -> usize {
    operands.fold(0, |sum: usize, (operand, copies)| {
        let stride = if copies > 1 {
            operand.stride()
        } else {
            Some(operand.bytes)
        };
        sum.saturating_add(stride.unwrap_or(usize::MAX).saturating_mul(copies))
    })
}

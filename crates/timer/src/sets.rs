//! The operands in memory: copies of a working set, walked backwards (Whaley and Castaldo, section 4).

use crate::aligned::Aligned;
use crate::error::TimerError;
use crate::memory::{self, Range};
use crate::operand::{self, Operand, State};

/// Types whose every pattern of bits is a value.
pub trait Value: sealed::Sealed + Copy + 'static {}

mod sealed {
    /// Keeps the list of types here.
    pub trait Sealed {}
}

macro_rules! values {
    ($($t:ty)*) => { $( impl sealed::Sealed for $t {} impl Value for $t {} )* };
}
values!(u8 i8 u16 i16 u32 i32 u64 i64 usize isize f32 f64);

/// A pointer that moves to the copy below after each invocation, and from the lowest to the highest.
#[derive(Debug)]
struct Moving {
    index: usize,
    low: *mut u8,
    top: *mut u8,
    stride: usize,
}

/// The operands of one invocation, as the kernel gets them, by index in the order in which the timer got them.
#[derive(Debug)]
pub struct Operands {
    /// What the pointers point into: together, so that whoever moves them away takes the memory along.
    memory: Vec<Aligned>,
    ranges: Vec<(State, Range)>,
    pointers: Vec<*mut u8>,
    bytes: Vec<usize>,
    moving: Vec<Moving>,
}

impl Operands {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.pointers.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pointers.is_empty()
    }

    /// Addresses of all, which are valid for this invocation.
    pub fn pointers(&self) -> &[*mut u8] {
        &self.pointers
    }

    /// Operand `index` as values; bytes behind the last whole one are left out.
    ///
    /// # Panics
    /// If there is no such operand, or if it is not aligned for the type.
    #[inline(always)]
    pub fn values<T: Value>(&self, index: usize) -> &[T] {
        let (first, count) = self.checked::<T>(index);
        // SAFETY: `checked`; no exclusive borrow of the operands exists beside the one of `self`.
        unsafe { std::slice::from_raw_parts(first, count) }
    }

    /// Operand `index` as values to write.
    ///
    /// # Panics
    /// As [`Operands::values`].
    #[inline(always)]
    pub fn values_mut<T: Value>(&mut self, index: usize) -> &mut [T] {
        let (first, count) = self.checked::<T>(index);
        // SAFETY: `checked`; `self` is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(first, count) }
    }

    /// Operand `read` as values, and operand `write` as values to write.
    ///
    /// # Panics
    /// As [`Operands::values`], and if both are the same.
    #[inline(always)]
    pub fn read_write<T: Value>(&mut self, read: usize, write: usize) -> (&[T], &mut [T]) {
        assert_ne!(read, write, "an operand is either read or written");
        let (from, of) = self.checked::<T>(read);
        let (to, count) = self.checked::<T>(write);
        // SAFETY: `checked`; two operands do not overlap, and `self` is borrowed alone.
        unsafe {
            (
                std::slice::from_raw_parts(from, of),
                std::slice::from_raw_parts_mut(to, count),
            )
        }
    }

    /// The first value of an operand and their number: they lie in its copy, initialised and aligned.
    #[inline(always)]
    fn checked<T: Value>(&self, index: usize) -> (*mut T, usize) {
        let first = self.pointers[index].cast::<T>();
        assert!(
            first.is_aligned(),
            "an operand that is not aligned for its type"
        );
        (first, self.bytes[index] / size_of::<T>())
    }
}

impl Operands {
    /// Lays out `copies` of each operand and writes their values, the highest copies first. All pages are touched.
    pub(crate) fn new(operands: &[Operand<'_>], copies: &[usize]) -> Result<Self, TimerError> {
        let mut found = Self {
            memory: Vec::new(),
            ranges: Vec::new(),
            pointers: Vec::new(),
            bytes: operands.iter().map(|o| o.bytes).collect(),
            moving: Vec::new(),
        };
        for (operand, &copies) in operands.iter().zip(copies) {
            found.place(operand, copies)?;
        }
        for copy in (0..copies.iter().copied().max().unwrap_or(0)).rev() {
            for (index, operand) in operands.iter().enumerate() {
                if copy < copies[index] {
                    found.write(index, copy, operand);
                }
            }
        }
        Ok(found)
    }

    /// Each copy of each operand, the highest first, with the state that it shall have: all in memory of its own.
    pub(crate) fn ranges(&self) -> &[(State, Range)] {
        &self.ranges
    }

    /// Goes to the next working set.
    #[inline(always)]
    pub(crate) fn step(&mut self) {
        for moving in &self.moving {
            let at = &mut self.pointers[moving.index];
            *at = if *at == moving.low {
                moving.top
            } else {
                at.wrapping_sub(moving.stride)
            };
        }
    }

    /// Goes to the highest copies.
    pub(crate) fn rewind(&mut self) {
        for moving in &self.moving {
            self.pointers[moving.index] = moving.top;
        }
    }

    fn place(&mut self, operand: &Operand<'_>, copies: usize) -> Result<(), TimerError> {
        let stride = operand.stride();
        let before = stride.saturating_mul(copies - 1);
        let bytes = before.saturating_add(operand.bytes);
        let mut memory = Aligned::new(bytes, operand.align, operand.misalign)?;
        memory::touch_pages(&mut memory);
        let low = memory.as_ptr();
        let top = low.wrapping_add(before);
        if copies > 1 {
            self.moving.push(Moving {
                index: self.pointers.len(),
                low,
                top,
                stride,
            });
        }
        let copy = |number: usize| Range {
            first: low as usize + number * stride,
            bytes: operand.bytes,
        };
        let copies = (0..copies).rev().map(copy);
        self.ranges
            .extend(copies.map(|range| (operand.state, range)));
        self.pointers.push(top);
        self.memory.push(memory);
        Ok(())
    }

    fn write(&mut self, index: usize, copy: usize, operand: &Operand<'_>) {
        let from = copy.saturating_mul(operand.stride());
        let bytes = &mut self.memory[index].bytes_mut()[from..from + operand.bytes];
        match &operand.fill {
            Some(fill) => fill(bytes),
            None => operand::fill_values(bytes),
        }
    }
}

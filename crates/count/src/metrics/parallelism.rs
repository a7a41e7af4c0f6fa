//! Instruction-level parallelism after Hoste and Eeckhout, "Comparing benchmarks using key microarchitecture-independent
//! characteristics" (2006): an ideal machine whose only limits are the window and data dependences through registers and
//! memory. Each instruction takes a cycle; branches and caches are perfect.
//!
//! What runs is cut into pieces, each of which begins with nothing known. Of long codelets every n-th piece is looked at.

use crate::metrics::values::Values;
use rustc_hash::FxHashMap;

/// Instructions in the window.
pub const WINDOWS: [usize; 5] = [32, 64, 128, 256, 512];
/// Instructions in a piece.
pub const PIECE: u64 = 65_536;
/// Distances of register dependences.
const DISTANCES: [u64; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Instructions within which a store feeds a load.
const NEAR: u32 = 512;
/// Bytes of a word of memory.
const WORD: u64 = 8;
/// Accesses with more bytes are those of library calls, which nothing here waits for.
const WIDEST: u32 = 64;

/// The five windows, the unlimited one, and the chain of floating-point arithmetic.
const LANES: usize = 7;
const UNLIMITED: usize = 5;
const FLOAT: usize = 6;
/// When something is there, for each lane.
type Times = [u32; LANES];

/// What an instruction needs and makes.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// Registers, by small numbers.
    pub reads: &'a [u16],
    /// And those that it writes.
    pub writes: &'a [u16],
    /// Whether it is floating-point arithmetic.
    pub float: bool,
}

/// An access of an instruction.
#[derive(Debug, Clone, Copy)]
pub struct Touch {
    /// Address.
    pub address: u64,
    /// Bytes.
    pub size: u32,
    /// Whether it reads.
    pub load: bool,
    /// Whether it writes.
    pub store: bool,
}

impl Touch {
    /// Whether `next` goes on where this one ends.
    pub fn continues(&self, next: &Self) -> bool {
        let end = self.address.wrapping_add(self.size.into());
        (self.load, self.store, end) == (next.load, next.store, next.address)
            && self.size + next.size <= WIDEST
    }

    /// The words that it reaches, each with a bit for each of its bytes.
    fn words(&self) -> impl Iterator<Item = (u64, u8)> + use<> {
        let (from, end) = (self.address, self.address.saturating_add(self.size.into()));
        (from / WORD..end.div_ceil(WORD)).map(move |word| {
            let first = from.saturating_sub(word * WORD);
            let after = (end - word * WORD).min(WORD);
            (word, (0xff << first & 0xff >> (WORD - after)) as u8)
        })
    }
}

/// A value's writer.
#[derive(Debug, Clone, Copy, Default)]
struct Written {
    /// When it is there.
    ready: Times,
    /// Number of the writer in its piece, from 1; 0: none.
    by: u32,
}

/// The writers of the bytes of a word, the last one first.
#[derive(Debug, Clone, Default)]
struct Word {
    bytes: u8,
    last: Written,
    /// What is left of earlier ones.
    older: Vec<(u8, Written)>,
}

impl Word {
    fn write(&mut self, bytes: u8, by: Written) {
        for (mask, _) in &mut self.older {
            *mask &= !bytes;
        }
        self.older.retain(|(mask, _)| *mask != 0);
        let left = self.bytes & !bytes;
        if left != 0 {
            self.older.push((left, self.last));
        }
        (self.bytes, self.last) = (bytes, by);
    }

    /// The writers of `bytes`.
    fn writers(&self, bytes: u8) -> impl Iterator<Item = &Written> {
        let last = (self.bytes & bytes != 0).then_some(&self.last);
        let older = self.older.iter().filter(move |(mask, _)| mask & bytes != 0);
        last.into_iter().chain(older.map(|(_, written)| written))
    }
}

/// What was added up.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sums {
    instructions: u64,
    cycles: [u64; LANES],
    floats: u64,
    reads: u64,
    writes: u64,
    dependences: u64,
    near: [u64; DISTANCES.len()],
    loads: u64,
    fed: u64,
}

/// The parallelism of one thread.
#[derive(Debug)]
pub struct Parallelism {
    /// One of so many pieces is looked at.
    every: u64,
    pieces: u64,
    /// Instructions of this piece.
    at: u64,
    registers: Vec<Written>,
    memory: FxHashMap<u64, Word>,
    /// When the last instructions retired, for each window.
    retired: [Vec<u32>; WINDOWS.len()],
    last: Times,
    sums: Sums,
}

impl Parallelism {
    /// With `registers` registers; one of `every` pieces is looked at.
    #[must_use]
    pub fn new(registers: usize, every: u64) -> Self {
        Self {
            every: every.max(1),
            pieces: 0,
            at: 0,
            registers: vec![Written::default(); registers],
            memory: FxHashMap::default(),
            retired: WINDOWS.map(|window| vec![0; window]),
            last: [0; LANES],
            sums: Sums::default(),
        }
    }

    /// Whether this piece is looked at.
    #[must_use]
    pub fn looks(&self) -> bool {
        self.pieces.is_multiple_of(self.every)
    }

    /// So many instructions ran, all of which [`Self::step`] got if the piece is looked at. A piece may end.
    pub fn advance(&mut self, instructions: u64) {
        self.at += instructions;
        if self.at >= PIECE {
            self.close();
            self.pieces += 1;
        }
    }

    /// Ends the piece.
    fn close(&mut self) {
        if self.looks() {
            for (sum, last) in self.sums.cycles.iter_mut().zip(self.last) {
                *sum += u64::from(last);
            }
            self.registers.fill(Written::default());
            self.memory.clear();
            self.retired.iter_mut().for_each(|ring| ring.fill(0));
            self.last = [0; LANES];
        }
        self.at = 0;
    }

    /// The instruction number `nth` (from 0) since the last [`Self::advance`].
    pub fn step(&mut self, nth: u64, step: Step, touches: &[Touch]) {
        let number = (self.at + nth) as u32 + 1;
        let sums = &mut self.sums;
        sums.instructions += 1;
        sums.floats += u64::from(step.float);
        sums.reads += step.reads.len() as u64;
        sums.writes += step.writes.len() as u64;
        let mut ready = [0; LANES];
        let wait = |ready: &mut Times, on: &Written| {
            for (mine, other) in ready.iter_mut().zip(on.ready) {
                *mine = (*mine).max(other);
            }
        };
        for &register in step.reads {
            let written = &self.registers[usize::from(register)];
            if written.by > 0 {
                let distance = u64::from(number - written.by);
                sums.dependences += 1;
                for (count, most) in sums.near.iter_mut().zip(DISTANCES) {
                    *count += u64::from(distance <= most);
                }
                wait(&mut ready, written);
            }
        }
        for touch in touches.iter().filter(|t| t.load) {
            sums.loads += 1;
            let mut fed = false;
            for (word, bytes) in touch.words().filter(|_| touch.size <= WIDEST) {
                for written in self
                    .memory
                    .get(&word)
                    .into_iter()
                    .flat_map(|w| w.writers(bytes))
                {
                    fed |= number - written.by <= NEAR;
                    wait(&mut ready, written);
                }
            }
            sums.fed += u64::from(fed);
        }
        let mut done = ready;
        for (lane, ring) in self.retired.iter_mut().enumerate() {
            let slot = (number as usize - 1) % ring.len();
            // The window has room when the oldest in it has retired; instructions retire in order.
            done[lane] = ready[lane].max(ring[slot]) + 1;
            self.last[lane] = self.last[lane].max(done[lane]);
            ring[slot] = self.last[lane];
        }
        done[UNLIMITED] += 1;
        done[FLOAT] += u32::from(step.float);
        for lane in [UNLIMITED, FLOAT] {
            self.last[lane] = self.last[lane].max(done[lane]);
        }
        let written = Written {
            ready: done,
            by: number,
        };
        for &register in step.writes {
            self.registers[usize::from(register)] = written;
        }
        for touch in touches.iter().filter(|t| t.store) {
            if touch.size > WIDEST {
                let end = touch.address.saturating_add(touch.size.into());
                let over = touch.address / WORD..end.div_ceil(WORD);
                self.memory.retain(|word, _| !over.contains(word));
                continue;
            }
            for (word, bytes) in touch.words() {
                self.memory.entry(word).or_default().write(bytes, written);
            }
        }
    }

    /// Ends the last piece, and adds the sums to `all`.
    pub fn finish(&mut self, all: &mut Sums) {
        self.close();
        let own = std::mem::take(&mut self.sums);
        all.instructions += own.instructions;
        all.floats += own.floats;
        all.reads += own.reads;
        all.writes += own.writes;
        all.dependences += own.dependences;
        all.loads += own.loads;
        all.fed += own.fed;
        for (sum, own) in all.cycles.iter_mut().zip(own.cycles) {
            *sum += own;
        }
        for (sum, own) in all.near.iter_mut().zip(own.near) {
            *sum += own;
        }
    }
}

impl Sums {
    /// Writes the metrics of the group.
    pub fn fill(&self, values: &mut Values) {
        let none = "nothing was executed";
        for (window, cycles) in WINDOWS.iter().zip(self.cycles) {
            values.share(&format!("ilp_{window}"), self.instructions, cycles, none);
        }
        let unlimited = self.cycles[UNLIMITED];
        values.share("ilp_unlimited", self.instructions, unlimited, none);
        let float = "it has no floating-point arithmetic";
        values.share("float_chain", self.cycles[FLOAT], self.floats, float);
        let read = "it reads no register that it wrote";
        values.histogram("dependence", &DISTANCES, &self.near, self.dependences, read);
        values.share("register_inputs", self.reads, self.instructions, none);
        let written = "it writes no register";
        values.share("register_uses", self.reads, self.writes, written);
        values.share("memory_dependence", self.fed, self.loads, "it has no loads");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(steps: impl Iterator<Item = (Vec<u16>, Vec<u16>, bool, Vec<Touch>)>) -> Values {
        let mut parallelism = Parallelism::new(64, 1);
        for (reads, writes, float, touches) in steps {
            let step = Step {
                reads: &reads,
                writes: &writes,
                float,
            };
            parallelism.step(0, step, &touches);
            parallelism.advance(1);
        }
        let mut sums = Sums::default();
        parallelism.finish(&mut sums);
        let mut values = Values::default();
        sums.fill(&mut values);
        values
    }

    /// `n` independent chains, round robin.
    fn chains(n: u16) -> Values {
        let steps = (0..3 * PIECE).map(|i| {
            let register = (i % u64::from(n)) as u16;
            (vec![register], vec![register], true, Vec::new())
        });
        metrics(steps)
    }

    fn close(values: &Values, name: &str, expected: f64) {
        let found = values.value(name).unwrap();
        assert!(
            (found - expected).abs() <= 1e-3 * expected,
            "{name}: {found}, not {expected}"
        );
    }

    #[test]
    fn as_many_as_there_are_chains() {
        for n in [1, 2, 7, 31] {
            let values = chains(n);
            for window in WINDOWS {
                close(&values, &format!("ilp_{window}"), n.into());
            }
            close(&values, "ilp_unlimited", n.into());
            close(&values, "float_chain", 1.0 / f64::from(n));
            for distance in DISTANCES {
                let near = f64::from(u8::from(distance >= u64::from(n)));
                close(&values, &format!("dependence_{distance}"), near);
            }
        }
    }

    #[test]
    fn no_more_than_the_window_holds() {
        let values = metrics((0..PIECE).map(|_| (Vec::new(), vec![1], false, Vec::new())));
        for window in WINDOWS {
            close(&values, &format!("ilp_{window}"), window as f64);
        }
        close(&values, "ilp_unlimited", PIECE as f64);
        assert!(values.value("float_chain").is_none());
        assert!(values.value("dependence_1").is_none());
    }

    #[test]
    fn dependences_through_memory() {
        // Each loads the upper half of what the one before stored, at changing addresses.
        let touch = |address, load| Touch {
            address,
            size: 8,
            load,
            store: !load,
        };
        let steps = (0..PIECE).map(|i| {
            let touches = vec![touch(16 * i + 4, true), touch(16 * (i + 1), false)];
            (Vec::new(), Vec::new(), false, touches)
        });
        let values = metrics(steps);
        close(&values, "ilp_512", 1.0);
        close(&values, "memory_dependence", 1.0);
        // Stores elsewhere feed nothing.
        let steps = (0..PIECE).map(|i| {
            let touches = vec![touch(16 * i + 8, true), touch(16 * (i + 1), false)];
            (Vec::new(), Vec::new(), false, touches)
        });
        let values = metrics(steps);
        close(&values, "ilp_512", 512.0);
        assert_eq!(values.value("memory_dependence"), Some(0.0));
    }

    #[test]
    fn neighbours_in_a_word_are_not_mixed_up() {
        // Each element of one byte, or of four that cross words, is updated in place.
        for (size, start) in [(1, 0), (2, 1), (4, 2)] {
            let steps = (0..PIECE).map(|i| {
                let touch = Touch {
                    address: start + u64::from(size) * i,
                    size,
                    load: true,
                    store: true,
                };
                (Vec::new(), Vec::new(), true, vec![touch])
            });
            let values = metrics(steps);
            assert_eq!(values.value("memory_dependence"), Some(0.0), "{size}");
            close(&values, "ilp_128", 128.0);
        }
        // Eight writers of a byte each feed one load; a copy over them hides them.
        for (copy, fed) in [(false, 1.0), (true, 0.0)] {
            let steps = (0..10).map(|i| {
                let touch = |address, size, load| Touch {
                    address,
                    size,
                    load,
                    store: !load,
                };
                let touches = match i {
                    8 if copy => vec![touch(0, 4096, false)],
                    8 => Vec::new(),
                    9 => vec![touch(64, 8, true)],
                    i => vec![touch(64 + i, 1, false)],
                };
                (Vec::new(), Vec::new(), false, touches)
            });
            assert_eq!(metrics(steps).value("memory_dependence"), Some(fed));
        }
    }

    #[test]
    fn a_slow_instruction_holds_the_window() {
        // A chain of one in 64: the others wait for room behind it, not for it.
        let steps = (0..PIECE).map(|i| match i % 64 {
            0 => (vec![1], vec![1], false, Vec::new()),
            _ => (vec![2], vec![3], false, Vec::new()),
        });
        let values = metrics(steps);
        close(&values, "ilp_32", 32.0);
        close(&values, "ilp_64", 64.0);
        close(&values, "ilp_512", 64.0);
    }

    #[test]
    fn pieces_that_are_left_out() {
        let mut parallelism = Parallelism::new(4, 3);
        let mut looked = 0;
        for _ in 0..6 * PIECE {
            if parallelism.looks() {
                looked += 1;
                let step = Step {
                    reads: &[0],
                    writes: &[0],
                    float: false,
                };
                parallelism.step(0, step, &[]);
            }
            parallelism.advance(1);
        }
        assert_eq!(looked, 2 * PIECE);
        let mut sums = Sums::default();
        parallelism.finish(&mut sums);
        assert_eq!(sums.instructions, 2 * PIECE);
        assert_eq!(sums.cycles[0], 2 * PIECE);
    }
}

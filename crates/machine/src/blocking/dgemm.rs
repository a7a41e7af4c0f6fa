//! Blocks of a product of matrices: registers and TILE after BlackjackBench, the loops around them after Goto and van de Geijn
//! (Anatomy of high-performance matrix multiplication, ACM TOMS 34(3), 2008).

use super::parameters::Parameters;
use super::sizes::{Blocking, ELEMENT, down, size};

/// A block of m by n by k.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tile {
    /// Rows of C and A.
    pub m: u64,
    /// Columns of C and B.
    pub n: u64,
    /// Columns of A, rows of B.
    pub k: u64,
}

impl Tile {
    /// Values of C, A and B: mn + mk + nk.
    #[must_use]
    pub fn values(self) -> u64 {
        self.m * self.n + self.m * self.k + self.n * self.k
    }

    /// Operations over operations and values: the paper's 2mnk / (2mnk + mn + mk + nk).
    #[must_use]
    pub fn reuse(self) -> f64 {
        let operations = (2 * self.m * self.n * self.k) as f64;
        operations / (operations + self.values() as f64)
    }
}

/// Sides of a register block: even, as matrices have them mostly; 1 where nothing even fits.
fn tiles(registers: u64) -> impl Iterator<Item = Tile> {
    let sides = move || (1..=registers).filter(|n| *n == 1 || n % 2 == 0);
    sides().flat_map(move |n| sides().map(move |m| Tile { m, n, k: 1 }))
}

/// The tile with the highest reuse; those of at least `streams` accumulators, which hide the latency of an accumulation, come before
/// all others, and of two alike the one that needs fewer registers.
fn best(tiles: impl Iterator<Item = Tile>, streams: u64, used: impl Fn(Tile) -> u64) -> Tile {
    let rank = |t: &Tile| ((t.m * t.n).min(streams), t.reuse(), used(*t));
    let best = tiles.reduce(|best, t| {
        let ((a, x, more), (b, y, less)) = (rank(&best), rank(&t));
        let better = b > a || (b == a && (y > x || (y == x && less < more)));
        if better { t } else { best }
    });
    best.unwrap_or(Tile { m: 1, n: 1, k: 1 })
}

/// The paper's register block: all values in registers, mn + mk + nk <= R, k = 1, m >= n.
#[must_use]
pub fn register_block(registers: u64, streams: u64) -> Tile {
    let fits = tiles(registers).filter(|t| t.m >= t.n && t.values() <= registers);
    best(fits, streams, Tile::values)
}

/// Registers of a block whose values of B are broadcast one after the other, or taken from memory: mn + m + 1.
fn broadcast(tile: Tile) -> u64 {
    tile.m * tile.n + tile.m + 1
}

/// The register block of a kernel that broadcasts the values of B: mn + m + 1 <= R, k = 1.
#[must_use]
pub fn broadcast_block(registers: u64, streams: u64) -> Tile {
    let fits = tiles(registers).filter(|t| broadcast(*t) <= registers);
    best(fits, streams, broadcast)
}

/// The largest n of a block of n by n by 1 in a cache of `words` elements: n² + n + n·`stride` <= words, where an element of the
/// strided operand brings a line of `stride` elements (1 if all operands are contiguous). A multiple of `step`.
#[must_use]
pub fn square(words: u64, stride: u64, step: u64) -> u64 {
    let fits = |n: u64| n * n + n + n * stride <= words;
    let most = (1..=words.isqrt()).rev().find(|n| fits(*n));
    down(most.unwrap_or(1), step)
}

/// Blocks of C += A B in `f64`, A and B packed in slivers of MR rows and NR columns.
///
/// KC follows Low et al. (Analytical modeling is enough for high-performance BLIS, ACM TOMS 43(2), 2016), MC Goto's half of L2.
#[must_use]
pub fn dgemm(machine: &Parameters) -> Blocking {
    let lanes = u64::from(machine.bits / 8) / ELEMENT;
    let words = |bytes: u64| bytes / ELEMENT;
    let line = words(machine.line);
    let block = broadcast_block(machine.registers.into(), machine.streams.into());
    let (mr, nr) = (block.m * lanes, block.n);
    let (l1, l2) = (words(machine.l1), words(machine.l2));
    let tile = square(l1, line, lanes);
    // Between two uses of a value of B one sliver of A comes in, and the block of C.
    let kc = down(l1.saturating_sub(mr * nr) / (nr + mr), 8);
    // Half of L2 keeps the block of A: slivers of B and C pass, and replacement is not by age alone.
    let mc = down(l2 / 2 / kc, mr);
    // L3 keeps the panel of B and streams blocks of A.
    let nc = machine
        .l3
        .and_then(|bytes| words(bytes).checked_sub(2 * mc * kc));
    let nc = nc.map(|left| down(left / kc, nr));
    let registers = format!(
        "{}x{}x1 vectors of {} bits: {} of {} registers; {} accumulators, {} hide the latency of an FMA",
        block.m,
        block.n,
        machine.bits,
        broadcast(block),
        machine.registers,
        block.m * block.n,
        machine.streams
    );
    let kib = |bytes: u64| format!("{} KiB", bytes >> 10);
    Blocking {
        kernel: "dgemm".to_owned(),
        vector_bits: machine.bits,
        sizes: vec![
            size(
                "MR",
                Some(mr),
                "rows of the register block",
                registers.clone(),
            ),
            size("NR", Some(nr), "columns of the register block", registers),
            size(
                "TILE",
                Some(tile),
                "side of a square tile, nothing packed",
                format!(
                    "L1, {}: n² + n + {line} n <= {l1}, a line for each strided element",
                    kib(machine.l1)
                ),
            ),
            size(
                "KC",
                Some(kc),
                "depth of a panel",
                format!("L1, {}: KC (NR + MR) + MR NR <= {l1}", kib(machine.l1)),
            ),
            size(
                "MC",
                Some(mc),
                "rows of the block of A",
                format!("half of L2, {}: 2 MC KC <= {l2}", kib(machine.l2)),
            ),
            size(
                "NC",
                nc,
                "columns of the panel of B",
                match machine.l3 {
                    Some(l3) => format!("L3, {}: KC (NC + 2 MC) <= {}", kib(l3), words(l3)),
                    None => "nothing: L3 is not known well enough, or there is none".to_owned(),
                },
            ),
        ],
    }
}

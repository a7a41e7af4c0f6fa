//! How many accesses a second the simulator of caches takes.

use anyhow::Result;
use cere_memory::geometry::Replacement;
use cere_memory::options::Frames;
use cere_memory::{Access, Geometry, Hierarchy, Options};

/// Accesses generated at once, untimed.
const BATCH: usize = 16384;
/// Accesses of a round.
const ACCESSES: usize = 4_000_000;

/// Accesses without end, of 8 bytes each.
type Stream = Box<dyn Iterator<Item = Access>>;
/// A stream's name, and the stream from its start.
type Named = (&'static str, fn() -> Stream);

/// y = a x + y, again and again, both of `n` doubles.
fn daxpy(n: u64) -> Stream {
    let y = 8 * n + 4096;
    let of = move |i| {
        let (x, y) = ((1 << 30) + 8 * i, (1 << 30) + y + 8 * i);
        [Access::load(x, 8), Access::load(y, 8), Access::store(y, 8)]
    };
    Box::new((0..n).cycle().flat_map(of))
}

/// The stencil of five points on a square of `n` doubles a side.
fn jacobi(n: u64) -> Stream {
    let of = move |k: u64| {
        let (i, j) = (1 + k / (n - 2), 1 + k % (n - 2));
        let at = move |i: u64, j: u64| (1 << 30) + 8 * (i * n + j);
        [
            Access::load(at(i - 1, j), 8),
            Access::load(at(i, j - 1), 8),
            Access::load(at(i, j), 8),
            Access::load(at(i, j + 1), 8),
            Access::load(at(i + 1, j), 8),
            Access::store((1 << 32) + 8 * (i * n + j), 8),
        ]
    };
    Box::new((0..(n - 2) * (n - 2)).cycle().flat_map(of))
}

/// Loads of any of `lines` lines.
fn random(lines: u64) -> Stream {
    let mut state = 1u64;
    let load = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        Some(Access::load((1 << 30) + 64 * ((state >> 32) % lines), 8))
    };
    Box::new(std::iter::from_fn(load))
}

/// One chain through all of `lines` lines, a power of two, whose order prefetchers do not guess.
fn chase(lines: u64) -> Stream {
    let next = move |at: &u64| Some((at * 5 + 1234567) % lines);
    let chain = std::iter::successors(Some(0), next);
    Box::new(chain.map(|line| Access::load((1 << 30) + 64 * line, 8)))
}

/// Seconds of processor time of this thread: other programs do not count.
fn processor_seconds() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes to `time`, which is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Million accesses a second, by the median of all batches of all rounds, each round on fresh caches; and L1 misses per
/// access.
fn measure(of: fn() -> Stream, options: &Options, rounds: usize) -> Result<(f64, f64)> {
    let (mut seconds, mut misses) = (Vec::new(), 0.0);
    for _ in 0..rounds {
        let mut memory = Hierarchy::new(&Geometry::named("zen3")?, options)?;
        let mut stream = of();
        let mut batch = Vec::with_capacity(BATCH);
        for _ in 0..ACCESSES / BATCH {
            batch.clear();
            batch.extend(stream.by_ref().take(BATCH));
            let start = processor_seconds();
            memory.run(0, &batch);
            seconds.push(processor_seconds() - start);
        }
        misses = memory.counters().levels[0].miss_rate().unwrap_or(0.0);
    }
    seconds.sort_by(f64::total_cmp);
    let median = seconds[seconds.len() / 2];
    Ok((BATCH as f64 / median / 1e6, misses))
}

/// Prints the table.
pub fn run(rounds: usize) -> Result<()> {
    println!(
        "### Simulated memory\n\nMillion accesses per second of processor time: median of batches of {BATCH} accesses of 8 bytes, {rounds} rounds of {ACCESSES}\nfrom empty caches; geometry zen3 with its TLBs, one core. Generating the accesses is not timed.\n"
    );
    println!(
        "| stream | L1 misses per access | LRU | random replacement | random frames | sampled 1 in 8 |\n|---|---|---|---|---|---|"
    );
    let streams: [Named; 6] = [
        ("daxpy in L1 (16 KiB)", || daxpy(1024)),
        ("daxpy in L2 (256 KiB)", || daxpy(16 << 10)),
        ("daxpy beyond L3 (64 MiB)", || daxpy(4 << 20)),
        ("stencil of 5 points, 1000 x 1000", || jacobi(1000)),
        ("random loads, 128 MiB", || random(2 << 20)),
        ("pointer chase, 128 MiB", || chase(2 << 20)),
    ];
    let plain = Options::default();
    let variants = [
        plain.clone(),
        Options {
            replacement: Some(Replacement::Random),
            ..plain.clone()
        },
        Options {
            frames: Frames::Random,
            ..plain.clone()
        },
        Options {
            sampling: Some(8),
            ..plain
        },
    ];
    for (name, stream) in streams {
        let found: Result<Vec<_>> = (variants.iter())
            .map(|options| measure(stream, options, rounds))
            .collect();
        let found = found?;
        let rates: Vec<String> = found.iter().map(|f| format!("{:.0}", f.0)).collect();
        println!("| {name} | {:.3} | {} |", found[0].1, rates.join(" | "));
    }
    println!();
    Ok(())
}

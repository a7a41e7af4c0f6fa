//! Messages between cores through shared memory (Servet, III.D).

use super::cores::{self, disjoint};
use super::group::{Pair, mean, separation, similar};
use super::lockstep::{lockstep, typical, valid};
use super::part::{Cores, Part};
use crate::Error;
use crate::bandwidth::Deadline;
use crate::document::{self, by_pair, curve};
use crate::session::Session;
use cere_format::machine::{Curve, Layer};
use cere_timing::area::{Area, Pages};
use std::sync::atomic::{AtomicU64, Ordering};

/// Pairs whose latencies differ by no more than this are in one layer.
pub const ALIKE: f64 = 0.15;
/// Bytes of long messages.
pub const LONG: [u64; 3] = [64 << 10, 256 << 10, 1 << 20];

/// A line of its own.
#[repr(align(128))]
struct Line(AtomicU64);

impl Line {
    /// Waits until it is `value`.
    fn wait(&self, value: u64) {
        let mut turns = 0u32;
        while self.0.load(Ordering::Acquire) != value {
            turns += 1;
            if turns.is_multiple_of(1 << 14) {
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
    }
}

/// Turns of two threads, in each of which one does its part. The first thread of a pair has even turns.
pub struct Turns(Line);

impl Turns {
    /// Nobody's turn is over.
    #[must_use]
    pub fn new() -> Self {
        Self(Line(AtomicU64::new(0)))
    }

    /// `rounds` of `work`, side 0 or 1, after `before` rounds in all.
    pub fn take(&self, side: u64, before: u64, rounds: u64, mut work: impl FnMut()) {
        for round in before..before + rounds {
            let turn = 2 * round + side;
            self.0.wait(turn);
            work();
            self.0.0.store(turn + 1, Ordering::Release);
        }
        // Both end when the last turn is over.
        if side == 0 {
            self.0.wait(2 * (before + rounds));
        }
    }
}

impl Default for Turns {
    fn default() -> Self {
        Self::new()
    }
}

/// Nanoseconds of a message of `bytes`, one way, of each of `pairs` at once; `None` where threads were stopped too often. Of no bytes: of the
/// line that says whose turn it is.
pub fn messages(
    session: &Session,
    pairs: &[Pair],
    bytes: u64,
    deadline: &Deadline,
) -> Result<Vec<Option<super::lockstep::Typical>>, Error> {
    let cores: Vec<u32> = pairs.iter().flat_map(|(a, b)| [*a, *b]).collect();
    let rounds = ((128 << 10) / bytes.max(2048)).clamp(2, 64);
    let turns: Vec<Turns> = pairs.iter().map(|_| Turns::new()).collect();
    let shared = pairs
        .iter()
        .map(|_| Area::new(bytes.max(1) as usize, Pages::Huge))
        .collect::<Result<Vec<_>, _>>()?;
    let windows = session.pick(10, 30);
    let spans = lockstep(&cores, (2, windows), deadline, |index| {
        let own = Area::new(bytes.max(1) as usize, Pages::Huge)?;
        let (turns, middle) = (&turns[index / 2], shared[index / 2].address());
        let (side, mut before) = ((index % 2) as u64, 0);
        Ok(move |_| {
            let (own, middle) = (own.address() as *mut u8, middle as *mut u8);
            turns.take(side, before, rounds, || {
                // SAFETY: both areas have `bytes`; the turns order all use of the shared one.
                unsafe {
                    if before + side > 0 {
                        own.copy_from_nonoverlapping(middle, bytes as usize);
                    }
                    middle.copy_from_nonoverlapping(own, bytes as usize);
                }
            });
            before += rounds;
        })
    })?;
    let times = valid(&spans);
    let of = |pair: usize| {
        let ways = (2 * rounds) as f64;
        let one = times
            .iter()
            .map(|t| session.nanoseconds(t[2 * pair]) / ways);
        typical(one.collect())
    };
    Ok((0..pairs.len()).map(of).collect())
}

/// Layers from the latencies of pairs, seconds: pairs alike, the fastest first; and how well they are apart, 0 to 1.
#[must_use]
pub fn layers(by: &str, bytes: u64, pairs: &[Pair], latencies: &[f64]) -> (Vec<Layer>, f64) {
    let groups = similar(latencies, ALIKE);
    let apart = (separation(&groups, latencies) - 1.0) / ALIKE;
    let layer = |group: &Vec<usize>| {
        let mut pairs: Vec<Pair> = group.iter().map(|at| pairs[*at]).collect();
        pairs.sort_unstable();
        Layer {
            by: by.to_owned(),
            latency_seconds: mean(group, latencies),
            bytes,
            pairs,
            ..Layer::default()
        }
    };
    (groups.iter().map(layer).collect(), apart.clamp(0.0, 1.0))
}

/// Measures the layers of communication between cores, for messages of `bytes`.
pub fn measure(
    session: &Session,
    bytes: u64,
    all: &Cores,
    deadline: &Deadline,
) -> Result<Part<Vec<Layer>>, Error> {
    session.step("messages between cores");
    let pairs = cores::pairs(&all.measured);
    let each = |bytes: u64, deadline: Deadline| -> Result<Vec<_>, Error> {
        let mut found = Vec::new();
        for (at, pair) in pairs.iter().enumerate() {
            let share = deadline.part(1.0 / (pairs.len() - at) as f64);
            let one = messages(session, &[*pair], bytes, &share)?[0];
            found.extend(one.map(|one| (*pair, one)));
        }
        Ok(found)
    };
    let lines = each(0, deadline.part(0.25))?;
    let found = each(bytes, deadline.part(0.4))?;
    let measured: Vec<Pair> = found.iter().map(|(pair, _)| *pair).collect();
    let latencies: Vec<f64> = found.iter().map(|(_, one)| one.time * 1e-9).collect();
    let (mut layers, apart) = layers("cores", bytes, &measured, &latencies);
    let title = "A line passed between two cores";
    let lines = lines.iter().map(|(pair, one)| (*pair, one.time));
    let mut curves = vec![by_pair(title, "nanoseconds one way", lines)];
    let count = layers.len();
    for (at, layer) in layers.iter_mut().enumerate() {
        let share = deadline.part(1.0 / (count - at) as f64);
        curves.extend(fill(session, layer, &share)?);
    }
    let repeated = found.iter().map(|(_, one)| one.repeated);
    let mut confidence = repeated.sum::<f64>() / found.len().max(1) as f64 * apart;
    let mut how = "a message copied through shared memory, there and back; latencies within 15 % are one layer".to_owned();
    if found.len() < pairs.len() {
        how += "; threads of some pairs were stopped too often";
        confidence *= 0.5;
    }
    let named =
        (0..count).map(|at| document::found(format!("cores.layers[{at}]"), confidence, &how));
    Ok(Part {
        value: layers,
        found: named.collect(),
        curves,
    })
}

/// Bandwidth of long messages of a layer's first pair, and how much slower as many pairs as have no core in common are at once.
fn fill(session: &Session, layer: &mut Layer, deadline: &Deadline) -> Result<Option<Curve>, Error> {
    let Some(first) = layer.pairs.first().copied() else {
        return Ok(None);
    };
    let mut points = Vec::new();
    for (at, bytes) in LONG.into_iter().enumerate() {
        let share = deadline.part(1.0 / (LONG.len() + 1 - at) as f64);
        if let Some(one) = messages(session, &[first], bytes, &share)?[0] {
            points.push((bytes as f64, bytes as f64 / one.time * 1e9));
        }
    }
    layer.bytes_per_second = points.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let many = disjoint(&layer.pairs);
    if many.len() > 1 {
        let found = messages(session, &many, layer.bytes, deadline)?;
        let times: Vec<f64> = found.iter().flatten().map(|one| one.time * 1e-9).collect();
        let mean = times.iter().sum::<f64>() / times.len().max(1) as f64;
        layer.slowdown = (!times.is_empty()).then(|| mean / layer.latency_seconds);
    }
    let name = format!("Messages between cores {} and {}", first.0, first.1);
    let titles: [&str; 3] = [&name, "bytes of a message", "bytes per second"];
    Ok(Some(curve(titles, points, None)))
}

#[cfg(test)]
mod tests {
    use super::super::group::tests::{noise, pairs};
    use super::*;

    #[test]
    fn layers_of_a_modelled_machine() {
        // Two packages of four cores, two of which have a cache together.
        for seed in 1..100 {
            let mut random = noise(seed);
            let all = pairs(8);
            let time = |(a, b): &Pair, r: f64| {
                let base = match () {
                    () if a / 2 == b / 2 => 2e-6,
                    () if a / 4 == b / 4 => 4e-6,
                    () => 9e-6,
                };
                base * (1.0 + 0.1 * r)
            };
            let times: Vec<f64> = all.iter().map(|pair| time(pair, random())).collect();
            let (found, apart) = layers("cores", 4096, &all, &times);
            let sizes: Vec<usize> = found.iter().map(|l| l.pairs.len()).collect();
            assert_eq!(sizes, [4, 8, 16], "seed {seed}");
            assert!(apart > 0.9 && found[0].latency_seconds < 2.2e-6);
            assert_eq!(found[0].pairs, [(0, 1), (2, 3), (4, 5), (6, 7)]);
        }
    }

    #[test]
    fn turns_alternate() {
        let (turns, log) = (Turns::new(), std::sync::Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for side in 0..2 {
                let (turns, log) = (&turns, &log);
                scope.spawn(move || {
                    turns.take(side, 0, 3, || log.lock().unwrap().push(side));
                    turns.take(side, 3, 2, || log.lock().unwrap().push(side));
                });
            }
        });
        assert_eq!(*log.lock().unwrap(), [0, 1, 0, 1, 0, 1, 0, 1, 0, 1]);
    }
}

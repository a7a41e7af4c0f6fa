//! Peaks of arithmetic: the ceilings of a roofline.

use super::probe::{Chain, agreement};
use super::target::{Element, Kind, Target};
use crate::session::Session;
use crate::{Error, document, place};
use cere_format::machine::{Found, Peak};

/// Most streams that are tried.
const STREAMS: usize = 24;
/// Operations of a stream in a round.
const LENGTH: usize = 8;
/// Nanoseconds of a window.
const WINDOW: f64 = 20_000.0;

/// A mix of independent operations.
#[derive(Debug, Clone)]
pub struct Mix {
    name: &'static str,
    /// Streams have them in turns.
    targets: Vec<Target>,
}

impl Mix {
    /// Floating-point operations of the streams' instructions, once each. A fused one is two; a packed one counts each element.
    #[must_use]
    pub fn flops(&self, streams: usize) -> f64 {
        let of = |stream: usize| {
            let target = self.targets[stream % self.targets.len()];
            f64::from(target.elements()) * if target.kind == Kind::Fma { 2.0 } else { 1.0 }
        };
        (0..streams).map(of).sum()
    }
}

/// All mixes of this processor, the widest first.
#[must_use]
pub fn mixes() -> Vec<Mix> {
    let names = [
        ("add", &[Kind::Add][..]),
        ("mul", &[Kind::Mul]),
        ("fma", &[Kind::Fma]),
        ("fma+add", &[Kind::Fma, Kind::Add]),
    ];
    let mut mixes = Vec::new();
    for bits in [512, 256, 128, 0] {
        for element in [Element::F64, Element::F32] {
            let bits = if bits == 0 { element.bits() } else { bits };
            for (name, kinds) in names {
                let targets = kinds.iter().map(|kind| Target::new(*kind, element, bits));
                let targets: Vec<Target> = targets.collect();
                if targets.iter().all(|t| t.exists()) {
                    mixes.push(Mix { name, targets });
                }
            }
        }
    }
    mixes
}

/// Windows of a core: when each ended, by the counter, from a start on.
#[derive(Debug, Clone, Default)]
pub struct Windows {
    /// Ticks: the start, then the end of each window.
    pub ticks: Vec<u64>,
}

/// Windows in time in which all cores did most together: the most of the windows of one core, with the parts of the others' windows
/// that lie within; in windows per tick. Only moments count in which no core was interrupted. 0 if there were none.
#[must_use]
pub fn most_together(cores: &[Windows]) -> f64 {
    let Some(first) = cores.first() else {
        return 0.0;
    };
    let longest: Vec<u64> = cores.iter().map(|core| 4 * core.shortest()).collect();
    let undisturbed = |pair: &&[u64]| {
        let all = cores.iter().zip(&longest);
        all.into_iter().all(|(core, longest)| {
            let touched = core.touched(pair[0], pair[1]);
            let whole = touched.first().is_some_and(|t| *t <= pair[0])
                && touched.last().is_some_and(|t| pair[1] <= *t);
            whole
                && touched
                    .windows(2)
                    .all(|w| w[1].saturating_sub(w[0]) <= *longest)
        })
    };
    let rate = |pair: &[u64]| {
        let others = cores[1..].iter().map(|core| done(core, pair[0], pair[1]));
        (1.0 + others.sum::<f64>()) / pair[1].saturating_sub(pair[0]).max(1) as f64
    };
    let pairs = first.ticks.windows(2).filter(undisturbed);
    pairs.map(rate).fold(0.0, f64::max)
}

impl Windows {
    /// The borders of the windows that have a part between two ticks.
    fn touched(&self, from: u64, to: u64) -> &[u64] {
        let first = self.ticks.partition_point(|t| *t <= from).saturating_sub(1);
        let last = self
            .ticks
            .partition_point(|t| *t < to)
            .min(self.ticks.len().saturating_sub(1));
        self.ticks.get(first..=last).unwrap_or_default()
    }

    fn shortest(&self) -> u64 {
        let lengths = self.ticks.windows(2).map(|w| w[1].saturating_sub(w[0]));
        lengths.min().unwrap_or(0)
    }
}

/// Windows that a core did between two ticks.
fn done(core: &Windows, from: u64, to: u64) -> f64 {
    let part = |pair: &[u64]| {
        let both = to.min(pair[1]).saturating_sub(from.max(pair[0]));
        both as f64 / pair[1].saturating_sub(pair[0]).max(1) as f64
    };
    core.touched(from, to).windows(2).map(part).sum()
}

fn run(chain: &Chain, rounds: u64, windows: usize) -> Windows {
    let mut ticks = vec![cere_timing::clock::start()];
    for _ in 0..windows {
        chain.run(rounds);
        ticks.push(cere_timing::clock::start());
    }
    Windows { ticks }
}

/// A chain with its rate.
struct Tried {
    streams: usize,
    rounds: u64,
    /// Floating-point operations of a window.
    flops: f64,
    /// Per nanosecond, in the best window.
    rate: f64,
    /// How well the best of the even and of the odd windows agree.
    agree: f64,
}

fn attempt(session: &Session, chain: &Chain, mix: &Mix, streams: usize, windows: usize) -> Tried {
    let once = session.least(3, || chain.run(20)) / 20.0;
    let rounds = (WINDOW / once.max(0.1)).clamp(4.0, 20_000.0) as u64;
    let flops = mix.flops(streams) * (rounds * LENGTH as u64) as f64;
    let ticks = run(chain, rounds, windows).ticks;
    let lengths: Vec<u64> = ticks.windows(2).map(|w| w[1] - w[0]).collect();
    let least = |odd: usize| lengths.iter().skip(odd).step_by(2).min();
    let times = [0, 1].map(|odd| session.nanoseconds(least(odd).copied().unwrap_or(u64::MAX)));
    Tried {
        streams,
        rounds,
        flops,
        rate: flops / times[0].min(times[1]),
        agree: agreement(times[0], times[1]),
    }
}

/// The number of streams with the highest rate on the core of the calling thread; `None` where there are no registers for one.
fn search(session: &Session, mix: &Mix) -> Result<Option<(Chain, Tried)>, Error> {
    let most = mix.targets.iter().map(|t| t.streams()).min().unwrap_or(0);
    // Of a mix as many of each: one more would be another mix.
    let share = mix.targets.len();
    let counts: Vec<usize> = (share..=most.min(STREAMS)).step_by(share).collect();
    let chains = counts.iter().map(|n| Chain::new(&mix.targets, *n, LENGTH));
    let mut chains = chains.collect::<Result<Vec<Chain>, Error>>()?;
    let (few, many) = session.pick((6, 30), (16, 100));
    if let Some(chain) = chains.last() {
        // Wide instructions run slowly at first.
        attempt(session, chain, mix, most, many);
    }
    let counted = chains.iter().zip(&counts);
    let mut tried: Vec<Tried> = counted
        .map(|(chain, n)| attempt(session, chain, mix, *n, few))
        .collect();
    tried.sort_by(|a, b| b.rate.total_cmp(&a.rate));
    let again = tried.iter().take(3).map(|t| {
        attempt(
            session,
            &chains[t.streams / share - 1],
            mix,
            t.streams,
            many,
        )
    });
    let best = again.max_by(|a, b| a.rate.total_cmp(&b.rate));
    Ok(best.map(|best| (chains.swap_remove(best.streams / share - 1), best)))
}

/// The rate of all `cores` at once, operations per second, and how well two halves of the time agree.
fn at_once(
    session: &Session,
    cores: &[u32],
    chain: &Chain,
    tried: &Tried,
) -> Result<(f64, f64), Error> {
    let windows = session.pick(200, 800);
    let all = place::together(cores, |_, barrier| {
        barrier.wait();
        run(chain, tried.rounds, windows)
    })?;
    let second = 1e9 / session.nanoseconds(1_000_000) * 1e6;
    let rates = [0, 1].map(|half| {
        let mut part = all.clone();
        let middle = part[0].ticks.len() / 2;
        part[0].ticks = if half == 0 {
            all[0].ticks[..=middle].to_vec()
        } else {
            all[0].ticks[middle..].to_vec()
        };
        most_together(&part) * tried.flops * second
    });
    Ok((rates[0].max(rates[1]), agreement(rates[0], rates[1])))
}

/// Peaks of one core and of all of `cores` at once. Ends early at `until`, by [`Session::elapsed`].
pub fn measure(
    session: &Session,
    cores: &[u32],
    until: f64,
) -> Result<(Vec<Peak>, Vec<Found>), Error> {
    let (mut peaks, mut found) = (Vec::new(), Vec::new());
    let Some(core) = cores.last().copied() else {
        return Ok((peaks, found));
    };
    let mut add = |mix: &Mix, tried: &Tried, cores: usize, rate: f64, confidence: f64| {
        let how = format!(
            "the best of many windows of {:.0} us, {} independent streams",
            WINDOW / 1e3,
            tried.streams
        );
        let what = format!("peaks[{}]", peaks.len());
        found.push(document::found(what, confidence, how));
        peaks.push(Peak {
            name: mix.name.to_owned(),
            element: mix.targets[0].element.name().to_owned(),
            bits: mix.targets[0].bits,
            cores: cores as u32,
            flops_per_second: rate,
            streams: tried.streams as u32,
        });
    };
    for mix in mixes() {
        if session.left() == 0.0 || session.elapsed() > until {
            break;
        }
        let Some((chain, tried)) = place::on(core, || search(session, &mix))?? else {
            continue;
        };
        add(&mix, &tried, 1, tried.rate * 1e9, tried.agree);
        if cores.len() > 1 {
            let (mut rate, mut agree) = at_once(session, cores, &chain, &tried)?;
            // Other programs may have kept the cores from running at once.
            for _ in 0..2 {
                if agree < 0.5 {
                    let again = at_once(session, cores, &chain, &tried)?;
                    agree = agreement(rate, again.0).max(again.1);
                    rate = rate.max(again.0);
                }
            }
            if rate > 0.0 {
                add(&mix, &tried, cores.len(), rate, agree);
            }
        }
    }
    Ok((peaks, found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_of_cores() {
        let core = |ticks: &[u64]| Windows {
            ticks: ticks.to_vec(),
        };
        // Both do a window in 10 ticks, at other times.
        let even = core(&[0, 10, 20, 30, 40]);
        let odd = core(&[5, 15, 25, 35, 45]);
        assert!((most_together(&[even.clone(), odd.clone()]) - 0.2).abs() < 1e-12);
        assert!((most_together(&[odd, even.clone()]) - 0.2).abs() < 1e-12);
        // One was interrupted until the last window, as long as 14 others.
        let late = core(&[2, 170, 180, 190]);
        let even = core(&(0..20).map(|i| i * 10).collect::<Vec<u64>>());
        assert_eq!(most_together(&[core(&[10, 20, 30]), late.clone()]), 0.0);
        assert!((most_together(&[even.clone(), late]) - 0.2).abs() < 1e-12);
        // Never at once.
        assert_eq!(most_together(&[even, core(&[1000, 1010])]), 0.0);
        assert_eq!(most_together(&[]), 0.0);
    }

    #[test]
    fn flops_of_mixes() {
        let of = |name: &str, element, bits, streams| {
            let mix = mixes().into_iter().find(|m| {
                m.name == name && m.targets[0].element == element && m.targets[0].bits == bits
            });
            mix.map(|m| m.flops(streams))
        };
        assert_eq!(of("add", Element::F64, 64, 3), Some(3.0));
        // Four in 128 bits of singles, not two.
        assert_eq!(of("mul", Element::F32, 128, 5), Some(20.0));
        if let Some(flops) = of("fma+add", Element::F64, 256, 3) {
            assert_eq!(flops, 20.0);
        }
    }
}

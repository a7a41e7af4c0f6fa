//! Windows that cores run at the same time, and which of them count.

use crate::bandwidth::Deadline;
use crate::bandwidth::spin::Spin;
use crate::session::Session;
use crate::{Error, place};

/// A window of one thread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// First tick.
    pub from: u64,
    /// Last.
    pub to: u64,
    /// Whether the kernel let the thread run all the time.
    pub whole: bool,
}

/// Least share of the longest window of a round that all others have to cover: a thread whose partner is kept off its core is alone.
const COVER: f64 = 0.75;

/// Rounds whatever the time: some of them count.
const FEW: usize = 12;
/// Rounds of a warm-up from which on it may be broken off.
const LONG: usize = 64;

/// Spans by core and round. On each of `cores`, `prepare` makes a closure, which then runs once a round with the number of the
/// round. The first `skipped` rounds warm up. Up to `rounds` more follow, fewer once `deadline` is over, but at least [`FEW`] unless the
/// warm-up takes long.
pub fn lockstep<W: FnMut(usize)>(
    cores: &[u32],
    (skipped, rounds): (usize, usize),
    deadline: &Deadline,
    prepare: impl Fn(usize) -> Result<W, Error> + Sync,
) -> Result<Vec<Vec<Span>>, Error> {
    let (ready, spin) = (Spin::new(cores.len()), Spin::new(cores.len()));
    let results = place::together(cores, |index, _| -> Result<_, Error> {
        let work = prepare(index);
        if work.is_err() {
            ready.end_at(0);
        }
        let all = ready.meet(0);
        let mut work = work?;
        let mut spans = Vec::new();
        for round in 0.. {
            let enough = round == skipped + rounds || round >= skipped + FEW && deadline.over();
            // A warm-up through a large array may not take what others need: it ends without a span.
            let late = skipped > LONG && deadline.over();
            if index == 0 && (enough || late) {
                spin.end_at(round);
            }
            if !all || !spin.meet(round) {
                break;
            }
            let before = cere_timing::clock::usage().switches;
            let from = cere_timing::clock::start();
            work(round);
            let to = cere_timing::clock::stop();
            let whole = cere_timing::clock::usage().switches == before;
            if round >= skipped {
                spans.push(Span { from, to, whole });
            }
        }
        Ok(spans)
    })?;
    results.into_iter().collect()
}

/// Ticks of the rounds in which all threads ran at once and none was stopped: by round and thread.
#[must_use]
pub fn valid(spans: &[Vec<Span>]) -> Vec<Vec<u64>> {
    let rounds = spans.iter().map(Vec::len).min().unwrap_or(0);
    let round = |at: usize| {
        let all: Vec<Span> = spans.iter().map(|thread| thread[at]).collect();
        let ticks: Vec<u64> = all.iter().map(|s| s.to.saturating_sub(s.from)).collect();
        let from = all.iter().map(|s| s.from).max()?;
        let to = all.iter().map(|s| s.to).min()?;
        let longest = *ticks.iter().max()?;
        let covered = to.saturating_sub(from) as f64 >= COVER * longest as f64;
        (covered && all.iter().all(|s| s.whole)).then_some(ticks)
    };
    (0..rounds).filter_map(round).collect()
}

/// A time that comes again, and how well: the lower quartile of times, and 1 if the lower half is within it, 0 if a third above it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Typical {
    /// In the unit of the times.
    pub time: f64,
    /// 0 to 1.
    pub repeated: f64,
}

/// Of times; `None` of fewer than three. What others do adds to times, but in a pair a partner that is slowed down takes away: so not
/// the least.
#[must_use]
pub fn typical(mut times: Vec<f64>) -> Option<Typical> {
    times.sort_by(f64::total_cmp);
    let (quarter, half) = (times.get(times.len() / 4)?, times.get(times.len() / 2)?);
    (times.len() > 2).then(|| Typical {
        time: *quarter,
        repeated: (1.0 - 3.0 * (half / quarter - 1.0)).clamp(0.0, 1.0),
    })
}

/// Of the nanoseconds of each thread, in the rounds that count.
#[must_use]
pub fn nanoseconds(session: &Session, spans: &[Vec<Span>]) -> Vec<Option<Typical>> {
    let rounds = valid(spans);
    let of = |thread: usize| {
        let times = rounds
            .iter()
            .map(|ticks| session.nanoseconds(ticks[thread]));
        typical(times.collect())
    };
    (0..spans.len()).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(from: u64, to: u64, whole: bool) -> Span {
        Span { from, to, whole }
    }

    #[test]
    fn rounds_count_if_all_ran_together() {
        let one = vec![
            span(0, 100, true),
            span(200, 300, true),
            span(400, 500, true),
        ];
        let other = vec![
            span(5, 104, true),
            span(280, 400, true),
            span(400, 500, false),
        ];
        assert_eq!(valid(&[one.clone(), other]), [[100, 99]]);
        assert_eq!(valid(&[one]).len(), 3);
        assert!(valid(&[]).is_empty());
    }

    #[test]
    fn typical_times() {
        assert_eq!(typical(vec![1.0, 2.0]), None);
        let found = typical(vec![10.0, 10.0, 11.0, 30.0]).unwrap();
        assert_eq!(found.time, 10.0);
        assert!((found.repeated - 0.7).abs() < 1e-9);
        assert_eq!(typical(vec![1.0, 1.0, 5.0, 5.0]).unwrap().repeated, 0.0);
    }

    #[test]
    fn threads_run_in_rounds() {
        let session = Session::new(true, 5.0, &|_| {});
        let cores = place::allowed();
        let deadline = Deadline::within(&session, 2.0);
        let spans = lockstep(&cores, (1, 5), &deadline, |index| {
            let mut sum = index as u64;
            Ok(move |_| (0..20_000).for_each(|i| sum = std::hint::black_box(sum * 3 + i)))
        });
        let spans = spans.unwrap();
        assert!(spans.iter().all(|s| s.len() == 5) && spans.len() == cores.len());
        let refused = lockstep(&cores, (1, 5), &deadline, |index| match index {
            0 => Err(Error::Encode("no".to_owned())),
            _ => Ok(|_| ()),
        });
        assert!(refused.is_err(), "and nobody waits for ever");
    }
}

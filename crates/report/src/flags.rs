//! The best known flags of a region: those that `cere tune` chose, else the fastest of its replays under other flags.

use super::codelet::Codelet;
use super::format::{faster, words};
use cere_format::replay::Verdict;
use cere_store::results::{Record, Setting, Times};
use cere_tune::choices::{Choices, Chosen};
use std::collections::HashMap;

/// Flags that are faster than those of the build, with the right result.
#[derive(Debug, Clone, PartialEq)]
pub struct Best {
    /// The flags after those of the build; empty if only `passes` are others.
    pub flags: String,
    /// The `opt` pipeline, if it is not the compiler's own.
    pub passes: Option<String>,
    /// Time under the build's flags over time under these, above 1.
    pub gain: f64,
    /// Ends of its interval; none for a tuned choice, whose file has none.
    pub interval: Option<(f64, f64)>,
    /// Codelets of the region that were replayed under them, and all that it has; none for a tuned choice.
    pub of: Option<(usize, usize)>,
}

impl Best {
    /// Flags and passes as one would type them.
    pub fn words(&self) -> String {
        let passes = self.passes.iter().map(|p| format!("passes {p}"));
        let flags = (!self.flags.is_empty()).then(|| self.flags.clone());
        let all: Vec<String> = flags.into_iter().chain(passes).collect();
        all.join(", ")
    }

    /// What they gain, in words.
    pub fn gained(&self) -> String {
        let gain = faster(self.gain);
        let interval = self.interval.map_or(String::new(), |(low, high)| {
            format!(" ({low:.2} to {high:.2})")
        });
        let part = match self.of {
            Some((some, all)) if some < all => format!(", on {some} of {all} codelets"),
            _ => String::new(),
        };
        format!("{gain}{interval}{part}")
    }

    /// Where they come from, in words.
    pub fn source(&self) -> &'static str {
        match self.of {
            None => "chosen by cere tune",
            Some(_) => "the fastest replay so far; cere tune measures the best again",
        }
    }

    fn tuned(chosen: &Chosen) -> Option<Self> {
        let gain = chosen.gain.filter(|gain| *gain > 1.0)?;
        Some(Self {
            flags: chosen.flags.clone(),
            passes: chosen.passes.clone(),
            gain,
            interval: None,
            of: None,
        })
    }
}

/// Records by the SHA-256 of their codelet, the oldest first.
pub type BySha<'a> = HashMap<&'a str, Vec<&'a Record>>;

/// `records` by codelet.
pub fn by_codelet(records: &[Record]) -> BySha<'_> {
    let mut found = BySha::new();
    for record in records {
        found.entry(&record.sha256).or_default().push(record);
    }
    found
}

/// The best known flags of the region `name` with these codelets.
pub fn best(
    name: &str,
    codelets: &[&Codelet],
    choices: Option<&Choices>,
    records: &BySha,
) -> Option<Best> {
    let chosen = choices.and_then(|c| c.regions.iter().find(|c| c.name == name));
    let tuned = chosen.and_then(Best::tuned);
    tuned.or_else(|| replayed(codelets, records))
}

/// Seconds with the ends of their interval.
type Interval = (f64, f64, f64);

fn interval(times: &Times) -> Option<Interval> {
    let (low, high) = times.interval?;
    (low > 0.0).then_some((low, times.seconds_median, high))
}

/// What has to be alike for two replays to differ by their flags alone.
fn is_alike(a: &Record, b: &Record) -> bool {
    let rest = |s: &Setting| (s.warmup, s.threads, s.placement.clone(), s.operands.clone());
    a.machine.id == b.machine.id && a.tool == b.tool && rest(&a.setting) == rest(&b.setting)
}

fn is_of_build(setting: &Setting) -> bool {
    setting.flags.is_empty() && setting.passes.is_none()
}

/// The last replay under other flags, with the replay under the build's flags that was nearest to it.
type Pairs<'a> = HashMap<(&'a [String], Option<&'a str>), (&'a Record, Option<&'a Record>)>;

fn pairs<'a>(records: &[&'a Record]) -> Pairs<'a> {
    let mut found = Pairs::new();
    for (place, record) in records.iter().enumerate() {
        let setting = &record.setting;
        if is_of_build(setting) || !setting.operands.is_empty() {
            continue;
        }
        let alike = records.iter().enumerate().filter(|(_, base)| {
            is_of_build(&base.setting) && base.times.is_some() && is_alike(base, record)
        });
        let nearest = alike.min_by_key(|(at, _)| at.abs_diff(place));
        let key = (&setting.flags[..], setting.passes.as_deref());
        found.insert(key, (record, nearest.map(|(_, base)| *base)));
    }
    found
}

/// The flags whose replays are right and, with regard to intervals, fastest.
fn replayed(codelets: &[&Codelet], records: &BySha) -> Option<Best> {
    let mut sums: HashMap<_, (Interval, Interval, usize, bool)> = HashMap::new();
    for codelet in codelets {
        let Some(of_codelet) = records.get(codelet.sha256.as_str()) else {
            continue;
        };
        let weight = weight(codelet);
        for (key, (record, base)) in pairs(of_codelet) {
            let sum = sums
                .entry(key)
                .or_insert(((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0, true));
            let right = matches!(record.verdict, Verdict::Exact | Verdict::Tolerance);
            let times = record.times.as_ref().and_then(interval);
            let base = base.and_then(|b| interval(b.times.as_ref()?));
            let (Some(times), Some(base), true) = (times, base, right) else {
                sum.3 = false;
                continue;
            };
            sum.0 = add(sum.0, base, weight);
            sum.1 = add(sum.1, times, weight);
            sum.2 += 1;
        }
    }
    let all = codelets.len();
    let best = sums
        .into_iter()
        .filter_map(|(key, (base, times, some, right))| {
            let low = base.0 / times.2;
            (right && low > 1.0).then(|| Best {
                flags: words(key.0),
                passes: key.1.map(str::to_owned),
                gain: base.1 / times.1,
                interval: Some((low, base.2 / times.0)),
                of: Some((some, all)),
            })
        });
    best.max_by(|a, b| a.gain.total_cmp(&b.gain).then(b.flags.cmp(&a.flags)))
}

/// How often what a codelet stands for runs.
fn weight(codelet: &Codelet) -> f64 {
    let represents = codelet.manifest.represents;
    represents.map_or(1.0, |r| (r.invocations as f64).max(1.0))
}

fn add(sum: Interval, one: Interval, weight: f64) -> Interval {
    (
        sum.0 + weight * one.0,
        sum.1 + weight * one.1,
        sum.2 + weight * one.2,
    )
}

//! Two stores side by side, region by region.

use super::codelet::Codelet;
use super::data::Data;
use super::first::program;
use super::flags::Best;
use super::format::{Cell, brief, error, name, share};
use super::ids::Ids;
use super::verdict;
use cere_format::profile::RegionProfile;
use cere_guard::records::ratio;
use cere_measure::matching::Row as Matched;
use cere_store::results::{Record, counting};
use cere_timing::stats::Gain;
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// Rows, at most.
const MOST: usize = 500;

/// A region on both sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pair {
    /// Its name here; none if only the other store has it.
    pub region: Option<String>,
    /// Its name there; none if only this store has it.
    pub other: Option<String>,
    /// Self seconds in the profiled run, here and there.
    pub seconds: [Option<f64>; 2],
    /// Share of the run time, 0 to 1.
    pub shares: [Option<f64>; 2],
    /// Verdicts of the replays.
    pub verdicts: [Option<&'static str>; 2],
    /// Best known flags.
    pub flags: [Option<String>; 2],
    /// Time of a replay there over that here, if both were measured on one machine under the flags of the build.
    pub replay: Option<Ratio>,
}

/// A ratio with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ratio {
    /// The ratio.
    pub ratio: f64,
    /// Ends of its interval.
    pub interval: (f64, f64),
}

/// What the page shows of it.
pub(crate) struct Beside {
    /// Names of the sides.
    pub sides: [String; 2],
    /// The whole run, here and there, and the difference.
    pub run: [String; 3],
    pub rows: Vec<Row>,
    /// Pairs that are left out.
    pub more: usize,
    /// What to know.
    pub notes: Vec<String>,
}

/// A row of the page.
pub(crate) struct Row {
    pub id: Option<String>,
    pub name: String,
    /// Its other name, if it has one.
    pub other: String,
    pub times: [Cell; 2],
    /// Difference of the times of the runs.
    pub change: Cell,
    /// Class of its colour: `less`, `more` or empty.
    pub class: &'static str,
    pub shares: [Cell; 2],
    /// Times of replays: ratio and interval.
    pub replay: Cell,
    pub replay_class: &'static str,
    /// In words and the class of the colour.
    pub verdicts: [(&'static str, &'static str); 2],
    pub flags: [String; 2],
}

/// One side.
struct Side<'a> {
    data: &'a Data,
    matched: HashMap<&'a str, &'a Matched>,
    codelets: HashMap<&'a cere_format::profile::RegionKey, Vec<&'a Codelet>>,
}

impl<'a> Side<'a> {
    fn of(data: &'a Data) -> Self {
        let mut codelets: HashMap<_, Vec<&Codelet>> = HashMap::new();
        for codelet in &data.codelets {
            codelets
                .entry(&codelet.manifest.key)
                .or_default()
                .push(codelet);
        }
        Self {
            data,
            matched: data.matched(),
            codelets,
        }
    }

    fn verdict(&self, region: &RegionProfile) -> Option<cere_format::replay::Verdict> {
        self.matched.get(region.name.as_str())?.verdict
    }

    /// The codelet that stands for most of the region's time.
    fn largest(&self, region: &RegionProfile) -> Option<&'a Codelet> {
        let all = self.codelets.get(&region.key)?.iter();
        let seconds = |c: &&&Codelet| c.manifest.represents.map_or(0.0, |r| r.seconds);
        all.max_by(|a, b| seconds(a).total_cmp(&seconds(b)))
            .copied()
    }

    /// The last replays of a codelet that count, the newest last.
    fn replays(&self, codelet: &Codelet) -> Vec<&'a Record> {
        let own = self.data.records.iter();
        own.filter(|r| r.sha256 == codelet.sha256).collect()
    }
}

/// The times of the largest codelets' last replays, there over here.
fn replay(sides: [&Side; 2], regions: [&RegionProfile; 2]) -> Option<Gain> {
    let first = sides[0].largest(regions[0])?;
    let second = sides[1].largest(regions[1])?;
    let (a, b) = (sides[0].replays(first), sides[1].replays(second));
    let alike = |x: &Record, y: &Record| {
        x.machine.id == y.machine.id && x.tool == y.tool && x.setting == y.setting
    };
    let last = b
        .iter()
        .rev()
        .find_map(|there| Some((a.iter().rev().find(|here| alike(here, there))?, there)))?;
    let of = |all: &[&Record], one: &Record| {
        let same: Vec<&Record> = all.iter().filter(|r| alike(r, one)).copied().collect();
        let times = counting(&same).last()?.times.as_ref()?;
        Some((times.seconds_median, times.interval?))
    };
    ratio(of(&a, last.0)?, of(&b, last.1)?)
}

/// `function@file` of `function@file:line`.
fn without_line(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(start, _)| start)
}

/// Indices of the regions of both profiles that are the same: by name, else the only ones of their function and file.
fn same(sides: [&Data; 2]) -> Vec<(Option<usize>, Option<usize>)> {
    let [here, there] = sides.map(|s| &s.profile.regions);
    let by_name: HashMap<&str, usize> = there
        .iter()
        .enumerate()
        .map(|(place, r)| (r.name.as_str(), place))
        .collect();
    let mut taken: HashSet<usize> = HashSet::new();
    let mut found: Vec<(Option<usize>, Option<usize>)> = Vec::new();
    for (place, region) in here.iter().enumerate() {
        let other = by_name.get(region.name.as_str()).copied();
        taken.extend(other);
        found.push((Some(place), other));
    }
    let mut lone: HashMap<&str, [Vec<usize>; 2]> = HashMap::new();
    for (place, _) in found.iter().filter(|(_, other)| other.is_none()) {
        let place = place.unwrap_or_default();
        lone.entry(without_line(&here[place].name)).or_default()[0].push(place);
    }
    for place in (0..there.len()).filter(|p| !taken.contains(p)) {
        lone.entry(without_line(&there[place].name)).or_default()[1].push(place);
    }
    for [one, other] in lone.values() {
        match (&one[..], &other[..]) {
            ([place], [other]) => found[*place].1 = Some(*other),
            _ => found.extend(other.iter().map(|o| (None, Some(*o)))),
        }
    }
    found
}

/// The pairs, those with the largest difference first.
pub fn pairs(here: &Data, there: &Data) -> Vec<Pair> {
    let sides = [Side::of(here), Side::of(there)];
    let mut found: Vec<Pair> = same([here, there])
        .into_iter()
        .map(|places| pair([&sides[0], &sides[1]], places))
        .collect();
    let difference = |p: &Pair| {
        let [a, b] = p.seconds.map(|s| s.unwrap_or(0.0));
        (b - a).abs()
    };
    found.sort_by(|a, b| {
        let order = difference(b).total_cmp(&difference(a));
        order.then_with(|| (&a.region, &a.other).cmp(&(&b.region, &b.other)))
    });
    found
}

fn pair(sides: [&Side; 2], places: (Option<usize>, Option<usize>)) -> Pair {
    let region = |side: usize, place: Option<usize>| {
        place.map(|place| &sides[side].data.profile.regions[place])
    };
    let regions = [region(0, places.0), region(1, places.1)];
    let best = |side: usize| {
        let best = sides[side].data.best.get(&regions[side]?.key)?;
        Some(Best::words(best))
    };
    let verdict = |side: usize| Some(sides[side].verdict(regions[side]?)?.name());
    let gain = match regions {
        [Some(a), Some(b)] => replay(sides, [a, b]),
        _ => None,
    };
    Pair {
        region: regions[0].map(|r| r.name.clone()),
        other: regions[1].map(|r| r.name.clone()),
        seconds: regions.map(|r| r.map(|r| r.self_seconds)),
        shares: regions.map(|r| r.map(|r| r.share)),
        verdicts: [verdict(0), verdict(1)],
        flags: [best(0), best(1)],
        replay: gain.map(|g| Ratio {
            ratio: g.ratio,
            interval: (g.low, g.high),
        }),
    }
}

/// What the page shows of `here` beside `there`, which is called `label`.
pub(crate) fn beside(here: &Data, there: &Data, label: &str) -> Beside {
    let pairs = pairs(here, there);
    let ids = Ids::of_report(here);
    let places: HashMap<&str, usize> = here
        .profile
        .regions
        .iter()
        .enumerate()
        .map(|(place, r)| (r.name.as_str(), place))
        .collect();
    let [a, b] = [here.profile.seconds, there.profile.seconds];
    let mut notes = Vec::new();
    if here.profile.command != there.profile.command {
        notes.push(format!(
            "The runs differ: {} here, {} there.",
            shell_words::join(&here.profile.command),
            shell_words::join(&there.profile.command)
        ));
    }
    if let (Some(one), Some(other)) = (&here.machine, &there.machine)
        && one.id != other.id
    {
        notes.push(format!(
            "The machines differ: {} here, {} there. Times of replays are not compared.",
            one.cpu, other.cpu
        ));
    }
    Beside {
        sides: [program(&here.profile), name(label)],
        run: [brief(a), brief(b), error(b / a - 1.0)],
        rows: pairs
            .iter()
            .take(MOST)
            .map(|p| row(p, &ids, &places))
            .collect(),
        more: pairs.len().saturating_sub(MOST),
        notes,
    }
}

/// The class of a difference's colour.
fn class(low: f64, high: f64) -> &'static str {
    match (high < 1.0, low > 1.0) {
        (true, _) => "less",
        (_, true) => "more",
        _ => "",
    }
}

fn row(pair: &Pair, ids: &Ids, places: &HashMap<&str, usize>) -> Row {
    let own = pair.region.as_deref();
    let place = own.and_then(|name| places.get(name));
    let both = [pair.seconds[0], pair.seconds[1]];
    let change = match both {
        [Some(a), Some(b)] if a > 0.0 => Some(b / a - 1.0),
        _ => None,
    };
    let shown = |name: &Option<String>| {
        name.as_deref()
            .map_or_else(String::new, super::format::name)
    };
    let verdict = |name: Option<&'static str>| {
        let known = cere_format::replay::Verdict::ALL;
        let found = known.into_iter().find(|v| Some(v.name()) == name);
        (verdict::short(found), name.unwrap_or_default())
    };
    Row {
        id: place.and_then(|place| ids.of(*place)),
        name: match own {
            Some(_) => shown(&pair.region),
            None => shown(&pair.other),
        },
        other: match (own, pair.other.as_deref()) {
            (Some(_), None) => "only here".to_owned(),
            (None, Some(_)) => "only there".to_owned(),
            (Some(a), Some(b)) if a != b => format!("there {}", name(b)),
            _ => String::new(),
        },
        times: both.map(|s| Cell::known(s, brief)),
        change: Cell::known(change, error),
        // One run each has no interval: what is below a tenth is not coloured.
        class: change.map_or("", |c| class(1.0 + c - 0.1, 1.0 + c + 0.1)),
        shares: pair.shares.map(|s| Cell::known(s, share)),
        replay: Cell::known(pair.replay.map(|r| r.ratio), |ratio| {
            let interval = pair.replay.map_or((ratio, ratio), |r| r.interval);
            format!("{ratio:.3} ({:.3} to {:.3})", interval.0, interval.1)
        }),
        replay_class: pair
            .replay
            .map_or("", |r| class(r.interval.0, r.interval.1)),
        verdicts: pair.verdicts.map(verdict),
        flags: pair.flags.clone().map(Option::unwrap_or_default),
    }
}

//! The first screen: what the program is, where its time goes, and for the largest regions why, what helps, and what a replay is worth.

use super::data::Data;
use super::format::{brief, marked, name, percent, share, words};
use super::ids::Ids;
use super::verdict;
use super::why::Why;
use cere_format::profile::{OverThreads, Profile, RegionKey, RegionProfile};
use cere_measure::matching::Row as Matched;
use std::path::Path;

/// Regions on the first screen, at most.
pub const TOP: usize = 5;

/// A part of a bar.
pub struct Part {
    pub name: String,
    /// Anchor of its page, if it has one.
    pub id: Option<String>,
    /// Share of the run time.
    pub share: String,
    pub time: String,
    /// Length, per cent of the longest bar.
    pub width: String,
    /// Class of its colour.
    pub class: String,
}

/// A bar of parts.
pub struct Lane {
    /// Whose time the bar shows: the run, or all threads.
    pub title: String,
    pub parts: Vec<Part>,
    /// What it shows, in one sentence.
    pub label: String,
}

/// A region on the first screen.
pub struct Card {
    /// Number of its colour.
    pub colour: usize,
    pub id: Option<String>,
    pub name: String,
    pub share: String,
    pub time: String,
    /// HTML: why it takes its time; empty: nobody has looked.
    pub sentence: String,
    /// HTML: what one can do about it; may be empty.
    pub advice: String,
    /// HTML: why there is no sentence, and how to get one.
    pub ask: String,
    /// The best known flags; empty: none.
    pub flags: String,
    /// HTML: what they gain, or how to search some.
    pub gain: String,
    /// Where they come from.
    pub source: &'static str,
    /// HTML: what a replay is worth.
    pub verdict: String,
    /// Class of the verdict's colour.
    pub class: &'static str,
}

/// The name of the program: a launcher's is not meant.
pub fn program(profile: &Profile) -> String {
    let command = profile.command.first().map(Path::new);
    let names = [Some(profile.process.program.as_path()), command];
    let found = names.into_iter().flatten().find_map(Path::file_name);
    found.map_or("program".to_owned(), |n| name(&n.to_string_lossy()))
}

/// Program, machine and build: labels and values.
pub fn facts(data: &Data) -> Vec<(&'static str, String)> {
    let profile = &data.profile;
    let runs = match profile.runs {
        1 => "one run".to_owned(),
        n => format!("median of {n} runs"),
    };
    let mut facts = vec![
        ("Takes", format!("{} ({runs})", brief(profile.seconds))),
        match &data.machine {
            Some(machine) => ("Replayed on", machine.cpu.clone()),
            None => ("Page made on", cere_store::results::this_machine().cpu),
        },
    ];
    let files = |n: usize| match n {
        1 => "1 file".to_owned(),
        n => format!("{n} files"),
    };
    let ways = data.build.iter().take(2);
    let ways: Vec<String> = ways.map(|(w, n)| format!("{w} ({})", files(*n))).collect();
    let others: usize = data.build.iter().skip(2).map(|(_, n)| n).sum();
    let others = (others > 0).then(|| format!("{} in other ways", files(others)));
    let build: Vec<String> = ways.into_iter().chain(others).collect();
    if !build.is_empty() {
        facts.push(("Built with", build.join(", ")));
    }
    facts
}

/// Share of the run from which on a region is on the first screen; the largest is in any case.
const LEAST: f64 = 0.01;

/// The regions with the largest share of the run, as indices in [`Profile::regions`].
pub fn top(profile: &Profile) -> Vec<usize> {
    let mut places: Vec<usize> = (0..profile.regions.len()).collect();
    let own = |place: &usize| profile.regions[*place].self_seconds;
    places.sort_by(|a, b| own(b).total_cmp(&own(a)));
    let least = profile.seconds * LEAST;
    places.retain(|place| own(place) > 0.0);
    let notable = places.iter().filter(|place| own(place) >= least).count();
    places.truncate(notable.clamp(1, TOP));
    places
}

/// A part before it is drawn: name, page, seconds, class.
type Raw = (String, Option<String>, f64, String);

/// Where the time of the first thread goes, and that of the others if they do much.
pub fn lanes(profile: &Profile, ids: &Ids) -> Vec<Lane> {
    let first = first_thread(profile, ids);
    let others = other_threads(profile, ids);
    let sum = |parts: &[Raw]| parts.iter().map(|p| p.2).sum::<f64>();
    let longest = sum(&first).max(sum(&others)).max(f64::MIN_POSITIVE);
    let whole = |title: &str, parts: Vec<Raw>| {
        let all = sum(&parts);
        lane(title, parts, all, longest)
    };
    let mut lanes = vec![match others.is_empty() {
        true => whole("The run", first),
        false => whole("The first thread", first),
    }];
    if !others.is_empty() {
        lanes.push(whole("Other threads, time on processors", others));
    }
    lanes
}

fn lane(title: &str, parts: Vec<Raw>, all: f64, longest: f64) -> Lane {
    let drawn = |(name, id, seconds, class): Raw| Part {
        share: percent(seconds / all.max(f64::MIN_POSITIVE)),
        time: brief(seconds),
        width: format!("{:.3}", 100.0 * seconds / longest),
        name,
        id,
        class,
    };
    let parts: Vec<Part> = parts.into_iter().map(drawn).collect();
    let words: Vec<String> = parts
        .iter()
        .map(|p| format!("{} {}", p.name, p.share))
        .collect();
    Lane {
        title: format!("{title}: {}", brief(all)),
        label: format!("{title}, {}: {}", brief(all), words.join(", ")),
        parts,
    }
}

fn first_thread(profile: &Profile, ids: &Ids) -> Vec<Raw> {
    let mut parts = Vec::new();
    let top = top(profile);
    for (number, place) in (1..).zip(&top) {
        let region = &profile.regions[*place];
        parts.push((
            name(&region.name),
            ids.of(*place),
            region.self_seconds,
            format!("k{number}"),
        ));
    }
    let shown: f64 = parts.iter().map(|p| p.2).sum();
    let all: f64 = profile
        .regions
        .iter()
        .map(|r| r.self_seconds.max(0.0))
        .sum();
    let mpi = profile.mpi_seconds;
    let rest = [
        (
            other(profile.regions.len() - top.len()),
            all - shown,
            "rest",
        ),
        ("MPI".to_owned(), mpi, "mpi"),
        (
            "not in regions".to_owned(),
            profile.seconds - all - mpi,
            "out",
        ),
    ];
    let least = profile.seconds * 0.0005;
    let rest = rest.into_iter().filter(|(_, seconds, _)| *seconds > least);
    parts.extend(rest.map(|(name, seconds, class)| (name, None, seconds, class.to_owned())));
    parts
}

fn other(regions: usize) -> String {
    match regions {
        1 => "1 other region".to_owned(),
        n => format!("{n} other regions"),
    }
}

fn other_threads(profile: &Profile, ids: &Ids) -> Vec<Raw> {
    let Some(processor) = profile
        .processor
        .filter(|_| profile.others_at_work().is_some())
    else {
        return Vec::new();
    };
    let top = top(profile);
    let place = |key: &RegionKey| profile.regions.iter().position(|r| r.key == *key);
    let mut left = processor.others();
    let mut parts: Vec<Raw> = Vec::new();
    let mut largest: Vec<_> = profile.over_threads.iter().collect();
    let elsewhere = |r: &OverThreads| r.work() * (1.0 - r.first_share);
    largest.sort_by(|a, b| elsewhere(b).total_cmp(&elsewhere(a)));
    for (number, region) in (1..).zip(largest.into_iter().take(TOP)) {
        // Where a thread waits is not known by thread.
        let seconds = elsewhere(region).min(left);
        if seconds <= processor.others() * 0.0005 {
            break;
        }
        left -= seconds;
        let place = place(&region.key);
        let colour = place.and_then(|p| top.iter().position(|t| *t == p));
        let class = colour.map_or(TOP + number, |c| c + 1);
        parts.push((
            name(&region.name),
            place.and_then(|p| ids.of(p)),
            seconds,
            format!("k{class}"),
        ));
    }
    if left > processor.others() * 0.0005 {
        parts.push((
            "other work of these threads".to_owned(),
            None,
            left,
            "out".to_owned(),
        ));
    }
    parts
}

/// The largest regions.
pub fn cards<'a>(
    data: &'a Data,
    ids: &Ids,
    matched: impl Fn(&RegionProfile) -> Option<&'a Matched>,
) -> Vec<Card> {
    let places = top(&data.profile);
    let one = |(number, place): (usize, &usize)| {
        let region = &data.profile.regions[*place];
        card(data, region, matched(region), number + 1, ids.of(*place))
    };
    places.iter().enumerate().map(one).collect()
}

fn card(
    data: &Data,
    region: &RegionProfile,
    matched: Option<&Matched>,
    colour: usize,
    id: Option<String>,
) -> Card {
    let why = data.why.get(&region.key);
    let known = why.and_then(Why::known);
    let best = data.best.get(&region.key);
    let word = name(&region.name);
    let captured = data.codelets_of(&region.key).count();
    let refused = data.refused.get(&region.name).map(String::as_str);
    Card {
        colour,
        id,
        share: share(region.share),
        time: amount(region),
        sentence: known.map_or_else(String::new, |k| marked(&k.sentence)),
        advice: known.map_or_else(String::new, |k| marked(&k.advice)),
        ask: marked(&ask(why, &word, captured)),
        flags: best.map_or_else(String::new, super::flags::Best::words),
        gain: best.map_or_else(
            || marked(&no_flags(&word, captured)),
            super::flags::Best::gained,
        ),
        source: best.map_or("", super::flags::Best::source),
        verdict: marked(&verdict::sentence(matched, captured, refused)),
        class: matched.and_then(|m| m.verdict).map_or("", |v| v.name()),
        name: word,
    }
}

/// Its own time, and how much of that the thread waited, if that is notable.
fn amount(region: &RegionProfile) -> String {
    let (own, waiting) = (region.self_seconds, region.waiting_seconds);
    match waiting > 0.05 * own {
        true => format!("{}, of which it waits {}", brief(own), brief(waiting)),
        false => brief(own),
    }
}

/// Why there is no sentence, and how to get one.
pub fn ask(why: Option<&Why>, name: &str, captured: usize) -> String {
    let command = command("explain", name);
    match why {
        Some(Why::Older) => format!("What was found is of older code: `{command}` looks again."),
        _ if captured == 0 => {
            "Not looked at yet: `cere capture` first, then `cere explain`.".to_owned()
        }
        _ => format!("Not looked at yet: `{command}` says why it takes its time."),
    }
}

/// How to search flags.
fn no_flags(name: &str, captured: usize) -> String {
    match captured {
        0 => "None tried: `cere capture` first, then `cere tune`.".to_owned(),
        _ => format!(
            "None known that are faster: `{}` searches.",
            command("tune", name)
        ),
    }
}

/// A command as one would type it.
fn command(subcommand: &str, name: &str) -> String {
    match name.contains('…') {
        true => format!("cere {subcommand}"),
        false => format!("cere {subcommand} {}", words(&[name.to_owned()])),
    }
}

//! The search of all regions on their codelets.

mod advise;
mod ahead;
mod arms;
mod baseline;
mod batches;
pub mod budget;
mod common;
mod confirm;
mod course;
mod drive;
mod evaluator;
mod explain;
mod fewest;
mod found;
mod journal;
mod minimise;
pub mod nodes;
mod request;
mod searches;
pub mod space;
mod spent;
mod task;
#[cfg(test)]
mod tests;

pub use advise::{Advice, SourceLine, advise};
pub use common::Common;
pub use found::{Effect, Failure, Found, Winner};
pub use request::{Request, Spread};
pub use spent::Spent;

use crate::{AWAITED, Choices, Chosen, Search, Space, Start, Suspect};
use anyhow::{Context, Result, bail};
use cere_capture::whole::over_all_threads;
use cere_format::profile::Profile;
use cere_format::replay::Repetitions;
use cere_format::store::Store;
use cere_measure::{Goal, Lab, Replays, Shares, Target};
use cere_store::current::{self, Codelet, codelets};
use cere_store::missing;
use cere_store::names::{Named, named, select};
use cere_store::state;
use course::Course;
use nodes::Nodes;
use searches::{elsewhere, here};
use std::path::PathBuf;
use std::time::Instant;

/// Repetitions of a replay, unless others are asked for: many variants are better than much about one.
pub const REPETITIONS: Repetitions = Repetitions {
    least: 10,
    most: 200,
    precision: 0.005,
    seconds: 0.03,
};

/// The outcome of all searches.
pub struct Outcome {
    /// Region by region.
    pub found: Vec<Found>,
    /// One set of flags for all regions, if it gains nearly as much.
    pub common: Option<Common>,
    /// Choices that break code.
    pub suspects: Vec<Suspect>,
    /// Seconds of one run of the program.
    pub program: f64,
    /// Seconds of the searches.
    pub searched: f64,
    /// Seconds of the whole command, with the replays as built before and those of the winners after.
    pub seconds: f64,
}

/// Searches, measures the best variants again, and keeps the confirmed ones in the store.
pub fn tune(request: &Request) -> Result<Outcome> {
    let store = request.store;
    let start = Instant::now();
    let mut text = space::text(request.space)?;
    let opened = space::open(request.space, &text, request.change_values)?;
    for choice in &opened.left_out {
        let why = "is not tried: this processor cannot run it";
        request.events.note(format!("{choice} {why}"));
        // Without it the search is another one.
        text.push_str(&format!("\n# without {choice}"));
    }
    let starts = starts(request, &opened.space);
    for start in &starts {
        // With it the search is another one.
        text.push_str(&format!("\n# from {:?}", start.choices));
    }
    let profile = current::profile(store)?;
    let known = named(&state::current_units(store)?);
    let replays = Replays::open(store, request.events)?;
    let chosen = codelets(store, &profile)?;
    for note in &chosen.notes {
        request.events.note(note);
    }
    let targets = targets(request, &replays, &profile, &known, &chosen.codelets)?;
    let _lock = state::lock(store)?;
    let lab = Lab {
        store,
        replays: &replays,
        settings: request.replays.clone(),
        rounds: request.change_values,
        goal: request.goal,
    };
    let crew = request.spread.map(|spread| {
        let paths: Vec<PathBuf> = targets.iter().map(|t| journal(request, &text, t)).collect();
        let stem = state::hash(&format!("{paths:?}"));
        let stem = store.root().join("tune").join(stem);
        Nodes::new(spread, stem, &targets, &lab, request)
    });
    let begin = |(place, target)| {
        let search = Search::new(
            opened.space.clone(),
            opened.pipeline.clone(),
            request.search,
            request.seed,
        )?;
        let batch = request.spread.and_then(|spread| spread.batch);
        let search = search.awaiting(batch.unwrap_or(AWAITED));
        let search = search.starting_with(starts.iter().map(|s| &s.choices[..]));
        let path = journal(request, &text, target);
        if request.again {
            let _ = std::fs::remove_file(&path);
        }
        Course::begin((place, target), search, &path)
    };
    let (mut found, suspects, searched) = match crew {
        Some(mut crew) => elsewhere(request, &mut crew, &targets, &opened.space, &begin)?,
        None => here(request, &lab, &targets, &opened.space, &begin)?,
    };
    write(store, &found, request.goal)?;
    let end = request.budget.and_then(|budget| budget.end(start));
    let is_over = || end.is_some_and(|end| Instant::now() >= end);
    // Elsewhere is where times count.
    let common = match request.spread {
        // Shares of a run are of its time.
        None if request.goal == Goal::Time && !is_over() => {
            let _work = request
                .events
                .work("looking for one set of flags for all regions");
            common::common(&lab, &targets, &found, &is_over)
        }
        _ => None,
    };
    say_why(&lab, &targets, &mut found, &is_over);
    Ok(Outcome {
        found,
        common,
        suspects,
        program: profile.seconds,
        searched,
        seconds: start.elapsed().as_secs_f64(),
    })
}

/// Says what the winners' flags do, and what the source may say instead.
fn say_why(lab: &Lab, targets: &[Target], found: &mut [Found], is_over: &dyn Fn() -> bool) {
    let events = lab.replays.events();
    let target = |name: &str| targets.iter().find(|t| t.name == name);
    for found in found.iter_mut() {
        if let (Some(winner), Some(target)) = (&mut found.winner, target(&found.name)) {
            let _work = events.work(format!("counting what the flags of {} do", found.name));
            winner.effects = explain::explain(lab, target, winner, is_over);
        }
    }
    for found in found {
        if let (Some(winner), Some(target)) = (&found.winner, target(&found.name)) {
            let what = "looking for lines of source in the place of the flags of";
            let _work = events.work(format!("{what} {}", found.name));
            found.advice = Some(advise(lab, target, &winner.variant, is_over));
        }
    }
}

/// Where searches of `space` start, which it notes.
fn starts(request: &Request, space: &Space) -> Vec<Start> {
    let starts = request
        .machine
        .map_or(Vec::new(), |machine| crate::starts(machine, space));
    for start in &starts {
        let flags = shell_words::join(start.choices.iter().flatten());
        let why = &start.why;
        let text = format!("from the measured machine: {flags}: {why}");
        request.events.note(text);
    }
    starts
}

/// The journal of a region's search: another space, method, seed, codelet or size of batches is another search.
fn journal(request: &Request, space: &str, target: &Target) -> PathBuf {
    let tolerance = &request.replays.tolerance;
    let codelets: Vec<&str> = target.members.iter().map(|m| m.sha256.as_str()).collect();
    let told = format!(
        "{}\0{space}\0{}\0{}\0{}\0{:?}",
        target.name,
        request.search,
        request.seed,
        request.change_values,
        (codelets, tolerance.double, tolerance.single)
    );
    let told = match request.spread {
        None => told,
        Some(spread) => format!("{told}\0batch {:?}", spread.batch),
    };
    let told = match request.goal {
        Goal::Time => told,
        goal => format!("{told}\0goal {}", goal.name()),
    };
    let name = format!("{}.jsonl", state::hash(&told));
    request.store.root().join("tune").join(name)
}

/// The regions to tune.
fn targets(
    request: &Request,
    replays: &Replays,
    profile: &Profile,
    known: &[Named],
    codelets: &[Codelet],
) -> Result<Vec<Target>> {
    let whole = over_all_threads(profile);
    let shares = Shares::of(&whole)?;
    let has = |n: &&Named| codelets.iter().any(|c| c.1.key == n.key);
    let chosen: Vec<&Named> = match request.regions.is_empty() {
        true => shares.mostly_own(known).filter(has).collect(),
        false => select(known, request.regions)?,
    };
    if chosen.is_empty() {
        return Err(missing::codelets(
            request.store,
            cere_catalogue::codes::E6401,
            &[],
            |line| format!("no region that matters has a codelet: `{line}` takes some"),
        ));
    }
    let mut targets = Vec::new();
    for named in chosen {
        match Target::of(replays, named, shares.of_region(&named.key), codelets) {
            Ok(target) => targets.push(target),
            Err(error) if request.regions.is_empty() => request.events.note(error.to_string()),
            Err(error) => return Err(error),
        }
    }
    targets.sort_by(|a, b| b.share.total_cmp(&a.share));
    if targets.is_empty() {
        bail!("no region can be tuned: see the reasons above");
    }
    Ok(targets)
}

/// Keeps the choices, with those of regions that were tuned before.
fn write(store: &Store, found: &[Found], goal: Goal) -> Result<()> {
    let file = store.tuned();
    let mut choices = match file.is_file() {
        true => Choices::read(&file)?,
        false => Choices::of(Vec::new()),
    };
    for found in found {
        let name = &found.name;
        choices.regions.retain(|r| r.name != *name);
        if found.winner.is_none() && found.threads.is_none() {
            continue;
        }
        let variant = found
            .winner
            .as_ref()
            .map(|w| w.variant.clone())
            .unwrap_or_default();
        choices.regions.push(Chosen {
            name: name.clone(),
            flags: shell_words::join(&variant.flags),
            passes: variant.passes,
            threads: found.threads.map(|(n, _)| n),
            bind: None,
            // It is of time, for whoever reads the file.
            gain: (goal == Goal::Time).then(|| found.gain()),
        });
    }
    choices
        .write(&file)
        .context("what was found cannot be kept")
}

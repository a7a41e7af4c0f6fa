//! `cere select`: the cheapest regions to replay that cover the run.

use crate::options::Common;
use crate::show;
use anyhow::{Context, Result, bail};
use cere_capture::capture::Refused;
use cere_capture::classes;
use cere_capture::selection::tree_nodes;
use cere_cluster::{Goal, Rule, cover};
use cere_format::profile::{Profile, RegionProfile};
use cere_store::current;
use cere_store::notes::Notes;
use cere_system::console::note;
use cere_system::console::print::{self, tell};
use std::collections::BTreeMap;

/// Choose the cheapest regions to replay that cover the run
#[derive(clap::Args)]
#[command(after_help = "\
Uses the last profile. A region covers its inclusive time. Its cost is one run of each representative of its invocations.\n\
No chosen region is called from inside another, so nothing counts twice. The choice is the optimum of an integer program;\n\
if that cannot be proved in --seconds, the gap is printed. Regions whose invocations are too short to be timed alone,\n\
or whose capture was refused, are not chosen. --names prints names only, one a line, for `cere capture`.\n\
\n\
Examples:\n\
\x20 cere select --coverage 95\n\
\x20 cere select --coverage 80 --json")]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Part of the run time to cover, in per cent
    #[arg(long, value_name = "PERCENT", default_value = "95", value_parser = percent)]
    coverage: f64,
    /// Longest search for the optimum, in seconds
    #[arg(long, value_name = "S", default_value = "30", value_parser = crate::options::seconds)]
    seconds: f64,
    /// Print names only
    #[arg(long, conflicts_with = "json")]
    names: bool,
}

fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').parse::<f64>() {
        Ok(value) if value > 0.0 && value <= 100.0 => Ok(value),
        _ => Err("a number above 0 and up to 100 is needed".into()),
    }
}

/// Share of the run from which on a region that was left out is named.
const NOTABLE: f64 = 0.01;

/// A chosen region.
#[derive(Debug, serde::Serialize)]
struct Chosen {
    name: String,
    /// Inclusive time over the run time, 0 to 1.
    share: f64,
    classes: usize,
    invocations: u64,
    /// Seconds that one run of each representative takes in vivo.
    cost_seconds: f64,
}

/// One run of each of a region's representatives.
struct Replay {
    classes: usize,
    /// In vivo.
    seconds: f64,
}

/// The cost of replaying each region; `None` where it cannot be replayed: also those that a capture refused.
fn replays(profile: &Profile, refused: &BTreeMap<String, String>) -> Vec<Option<Replay>> {
    let taken = |r: &&RegionProfile| !refused.contains_key(&r.name);
    let long = |r: &&RegionProfile| r.cycles_mean >= Rule::default().cycles;
    let replay = |region: &RegionProfile| {
        let found = classes::of(region).ok()?.classes;
        let cycles: u64 = found.iter().map(|c| c.cycles).sum();
        Some(Replay {
            classes: found.len(),
            seconds: cycles as f64 / profile.tsc_hz,
        })
    };
    let regions = profile.regions.iter();
    regions
        .map(|r| Some(r).filter(long).filter(taken).and_then(replay))
        .collect()
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    let store = options.common.store()?;
    let profile = current::profile(&store)?;
    let notes = Notes::of(&store)?.on_profile(&profile);
    let refused = Refused::of_profile(&store, &profile);
    let replays = replays(&profile, &refused);
    for region in profile.regions.iter().filter(|r| r.share >= NOTABLE) {
        if let Some(reason) = refused.get(&region.name) {
            note!(
                "left out: {}: its capture was refused: {reason}",
                region.name
            );
        }
    }
    let costs: Vec<Option<f64>> = replays
        .iter()
        .map(|r| r.as_ref().map(|r| r.seconds))
        .collect();
    let goal = Goal {
        coverage: options.coverage / 100.0,
        seconds: options.seconds,
    };
    let found = cover(&tree_nodes(&profile), &costs, goal).context("no regions were chosen")?;
    let chosen: Vec<Chosen> = found
        .regions
        .iter()
        .filter_map(|place| {
            let (region, replay) = (&profile.regions[*place], replays[*place].as_ref()?);
            Some(Chosen {
                name: region.name.clone(),
                share: region.inclusive_seconds / profile.seconds,
                classes: replay.classes,
                invocations: region.invocations,
                cost_seconds: replay.seconds,
            })
        })
        .collect();
    if chosen.is_empty() {
        bail!("no regions were chosen: the profile holds none that could be replayed");
    }
    let reduction = profile.seconds / found.cost;
    if options.common.json {
        print::json(
            &serde_json::json!({"coverage": found.coverage, "cost_seconds": found.cost,
            "reduction": reduction, "gap": found.gap, "regions": chosen, "notes": notes}),
        )?;
        tell(&notes);
        return Ok(0);
    }
    if options.names {
        let names: Vec<String> = chosen.iter().map(|c| format!("{}\n", c.name)).collect();
        print::out(&names.concat())?;
        tell(&notes);
        return Ok(0);
    }
    let rows: Vec<Vec<String>> = chosen
        .iter()
        .map(|c| {
            vec![
                c.name.clone(),
                format!("{:.2} %", c.share * 100.0),
                c.invocations.to_string(),
                c.classes.to_string(),
                print::time(c.cost_seconds),
            ]
        })
        .collect();
    let heading = [
        "region",
        "share",
        "invocations",
        "classes",
        "one run of each",
    ];
    print::out(&print::table_of_names(&heading, rows))?;
    print::out(&format!(
        "\n{:.2} % of {} covered by {} of replays, {:.1} times less; {}\n",
        found.coverage * 100.0,
        print::time(profile.seconds),
        print::time(found.cost),
        reduction,
        match found.gap {
            0.0 => "no choice is cheaper".to_owned(),
            gap => format!("a choice may be cheaper by up to {:.1} %", gap * 100.0),
        }
    ))?;
    if let Some(share) = show::profile::share_of_others(&profile) {
        note!(
            "that is the first thread's time: {share} of the processor time is in other threads, whose regions are not captured"
        );
    }
    tell(&notes);
    Ok(0)
}

//! `cere select`: the cheapest regions to replay that cover the run.

use crate::options::{self, Common};
use anyhow::Result;
use cere_capture::capture::Refused;
use cere_capture::classes;
use cere_capture::selection::tree_nodes;
use cere_capture::whole::over_all_threads;
use cere_catalogue::{OrCoded, bail, codes};
use cere_cluster::{ClassError, Cover, Goal, Rule, cover};
use cere_format::profile::{Profile, RegionProfile};
use cere_store::current;
use cere_store::notes::Notes;
use cere_system::console::print::{self, tell};
use cere_system::console::{note, short};
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
    #[arg(long, value_name = "PERCENT", default_value = "95", value_parser = options::share)]
    coverage: f64,
    /// Longest search for the optimum, in seconds
    #[arg(long, value_name = "S", default_value = "30", value_parser = options::seconds)]
    seconds: f64,
    /// Print names only
    #[arg(long, conflicts_with = "json")]
    names: bool,
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
        let found = match classes::of(region) {
            // Of other threads than the first there are no traces: one invocation stands for all.
            Err(ClassError::NoTimes) if region.cycles_mean > 0.0 => {
                return Some(Replay {
                    classes: 1,
                    seconds: region.cycles_mean / profile.tsc_hz,
                });
            }
            found => found.ok()?.classes,
        };
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

/// What is chosen of a profile.
struct Choice {
    /// Of all threads.
    profile: Profile,
    /// Of the run.
    seconds: f64,
    cover: Cover,
    chosen: Vec<Chosen>,
}

impl Choice {
    /// The cheapest regions of `profile`, which is of all threads, to replay, for a run of so many seconds.
    fn of(profile: Profile, seconds: f64, replays: &[Option<Replay>], goal: Goal) -> Result<Self> {
        let cost = |replay: &Option<Replay>| replay.as_ref().map(|r| r.seconds);
        let costs: Vec<Option<f64>> = replays.iter().map(cost).collect();
        let cover = cover(&tree_nodes(&profile), &costs, goal)
            .or_coded(codes::E6020, || "no regions were chosen")?;
        let chosen = |place: &usize| {
            let (region, replay) = (&profile.regions[*place], replays[*place].as_ref()?);
            Some(Chosen {
                name: region.name.clone(),
                // Medians over several runs need not fit together.
                share: (region.inclusive_seconds / profile.seconds).min(1.0),
                classes: replay.classes,
                invocations: region.invocations,
                cost_seconds: replay.seconds,
            })
        };
        let chosen: Vec<Chosen> = cover.regions.iter().filter_map(chosen).collect();
        if chosen.is_empty() {
            bail!(
                E6020,
                "no regions were chosen: the profile holds none that could be replayed; `cere profile` shows those that ran, `cere capture` why one is refused"
            );
        }
        Ok(Self {
            profile,
            seconds,
            cover,
            chosen,
        })
    }

    fn reduction(&self) -> f64 {
        self.seconds / self.cover.cost
    }

    /// The coverage, if it is of the processor time of all threads.
    fn of_all_threads(&self) -> Option<f64> {
        self.profile.others_at_work().map(|_| self.cover.coverage)
    }

    fn json(&self, notes: &[String]) -> serde_json::Value {
        serde_json::json!({"coverage": self.cover.coverage, "of_all_threads": self.of_all_threads(), "cost_seconds": self.cover.cost,
            "reduction": self.reduction(), "gap": self.cover.gap, "regions": self.chosen, "notes": notes})
    }

    fn text(&self) -> String {
        let row = |c: &Chosen| {
            vec![
                c.name.clone(),
                print::percent(c.share),
                c.invocations.to_string(),
                c.classes.to_string(),
                print::time(c.cost_seconds),
            ]
        };
        let heading = [
            "region",
            "share",
            "invocations",
            "classes",
            "one run of each",
        ];
        let rows = self.chosen.iter().map(row).collect();
        let certainty = match self.cover.gap {
            0.0 => "no choice is cheaper".to_owned(),
            gap => format!("a choice may be cheaper by up to {:.1} %", gap * 100.0),
        };
        print::table_of_names(&heading, rows)
            + &format!(
                "\n{:.2} % of {}{} covered by {} of replays, {:.1} times less; {certainty}\n",
                self.cover.coverage * 100.0,
                print::time(self.profile.seconds),
                match self.of_all_threads() {
                    Some(_) => " of processor time in all threads",
                    None => "",
                },
                print::time(self.cover.cost),
                self.reduction(),
            )
    }
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    let store = options.common.store()?;
    let run = current::profile(&store)?;
    let profile = over_all_threads(&run).into_owned();
    let notes = Notes::of(&store)?.on_profile(&profile);
    let refused = Refused::of_profile(&store, &profile);
    let notable = profile.regions.iter().filter(|r| r.share >= NOTABLE);
    let left_out: Vec<(&str, _)> = notable
        .filter_map(|r| Some((r.name.as_str(), refused.get(&r.name)?)))
        .collect();
    let names: Vec<&str> = left_out.iter().map(|(name, _)| *name).collect();
    for (name, (_, reason)) in short::names(&names, short::SENTENCE).iter().zip(left_out) {
        note!(
            "left out: {name}: its capture was refused: {}",
            print::reason(reason)
        );
    }
    let goal = Goal {
        coverage: options.coverage / 100.0,
        seconds: options.seconds,
    };
    let replays = replays(&profile, &refused);
    let choice = Choice::of(profile, run.seconds, &replays, goal)?;
    if options.common.json {
        print::json(&choice.json(&notes))?;
    } else if options.names {
        let names = choice.chosen.iter().map(|c| format!("{}\n", c.name));
        print::out(&names.collect::<String>())?;
    } else {
        print::text(&choice.text())?;
    }
    tell(&notes);
    Ok(0)
}

//! The energy of a run as built: of each region the invocations of its classes times the joules of the codelets that stand for them, as
//! replays measured these (`cere replay --energy`).

use anyhow::{Context, Result};
use cere_capture::whole::over_all_threads;
use cere_catalogue::bail;
use cere_format::profile::{Profile, RegionKey};
use cere_format::store::Store;
use cere_measure::matching::counting;
use cere_measure::{Replays, Settings, Shares};
use cere_store::current::{Codelet, codelets};
use cere_store::names::{Named, named};
use cere_store::results::Energy;
use cere_store::{current, state};
use cere_system::console::print;
use cere_system::events::Events;
use serde::Serialize;

/// The energy of what codelets stand for.
#[derive(Debug, Serialize)]
pub struct Prediction {
    /// Joules of all regions together, without the rest of the run.
    pub joules: f64,
    /// The same with each region at the lower end of its interval; none if one has no interval.
    pub low: Option<f64>,
    /// With each at the upper end.
    pub high: Option<f64>,
    /// Joules times the seconds of the run that they stand for.
    pub joule_seconds: f64,
    /// Share of the run's time that they stand for, 0 to 1.
    pub covered: f64,
    /// Region by region, by falling energy.
    pub regions: Vec<Region>,
    /// Regions that matter and do not count, with the reason.
    pub left_out: Vec<LeftOut>,
    /// What its user should know of the codelets.
    pub notes: Vec<String>,
}

/// A region.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Region {
    /// Its name.
    pub name: String,
    /// Its share of the run's time, 0 to 1.
    pub share: f64,
    /// Invocations.
    pub invocations: u64,
    /// Joules of all of them, without what counts for regions inside.
    pub joules: f64,
    /// Lower end of the interval, if it is known.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Mean power of the replays in watts.
    pub watts: f64,
}

/// A region that does not count.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LeftOut {
    /// Its name.
    pub region: String,
    /// Why.
    pub reason: String,
}

/// The sum over classes, each with its invocations and the energy of one of them; `own` is the part of the region's time that counts
/// for it and not for regions inside.
fn region(name: &str, share: f64, own: f64, classes: &[(u64, Energy)]) -> Region {
    let sum = |value: &dyn Fn(&Energy) -> Option<f64>| -> Option<f64> {
        let each = classes
            .iter()
            .map(|(n, energy)| Some(*n as f64 * value(energy)?));
        each.sum::<Option<f64>>()
    };
    let joules = sum(&|e| Some(e.joules)).unwrap_or(0.0);
    let seconds = sum(&|e| Some(e.seconds)).unwrap_or(0.0);
    Region {
        name: name.to_owned(),
        share,
        invocations: classes.iter().map(|class| class.0).sum(),
        joules: joules * own,
        low: sum(&|e| Some(e.interval?.0)).map(|low| low * own),
        high: sum(&|e| Some(e.interval?.1)).map(|high| high * own),
        watts: joules / seconds.max(f64::MIN_POSITIVE),
    }
}

/// Of the regions of `store` that matter, by the records of replays with `settings`. Nothing is replayed.
///
/// # Errors
/// There is no profile, or no region whose codelets have a record with energy.
pub fn predict(store: &Store, settings: &Settings, events: &Events) -> Result<Prediction> {
    let profile = current::profile(store)?;
    let whole = over_all_threads(&profile);
    let shares = Shares::of(&whole)?;
    let known = named(&state::current_units(store)?);
    let chosen = codelets(store, &profile)?;
    let replays = Replays::open(store, events)?;
    let (mut regions, mut left_out) = (Vec::new(), Vec::new());
    for named in shares.mostly_own(&known) {
        let share = shares.of_region(&named.key);
        match classes(&replays, settings, &profile, named, &chosen.codelets)? {
            Ok(classes) => {
                let inclusive = whole
                    .region(&named.key)
                    .map_or(0.0, |r| r.inclusive_seconds);
                let own = (share * whole.seconds / inclusive.max(f64::MIN_POSITIVE)).min(1.0);
                regions.push(region(&named.name, share, own, &classes));
            }
            Err(reason) => left_out.push(LeftOut {
                region: named.name.clone(),
                reason,
            }),
        }
    }
    if regions.is_empty() {
        let why = left_out.first().map_or(String::new(), |first| {
            format!(" ({}: {})", first.region, first.reason)
        });
        bail!(
            E6004,
            "no region's energy is known{why}: `cere replay '*' --energy` measures what codelets take"
        );
    }
    Ok(Prediction::of(
        regions,
        left_out,
        whole.seconds,
        chosen.notes,
    ))
}

/// Invocations and energy of each class of a region, or why they are not known.
fn classes(
    replays: &Replays,
    settings: &Settings,
    profile: &Profile,
    region: &Named,
    codelets: &[Codelet],
) -> Result<Result<Vec<(u64, Energy)>, String>> {
    let own: Vec<&Codelet> = codelets.iter().filter(|c| c.1.key == region.key).collect();
    if own.is_empty() {
        return Ok(Err("it has no codelet".to_owned()));
    }
    let chosen = match counting(&own, |codelet| codelet.1.represents) {
        Ok((_, chosen)) => chosen,
        Err(why) => return Ok(Err(why.to_string())),
    };
    let mut classes = Vec::new();
    for (file, manifest) in chosen {
        let energy = replays.known_energy(settings, file);
        let energy =
            energy.with_context(|| format!("cannot read the records of {}", manifest.name))?;
        let Some(energy) = energy else {
            return Ok(Err(format!(
                "no replay of {} measured energy with these settings on this machine",
                manifest.name
            )));
        };
        let invocations = match manifest.represents {
            Some(class) => class.invocations,
            None => all_invocations(profile, &region.key),
        };
        classes.push((invocations, energy));
    }
    // Without classes each of several codelets would stand for all.
    match classes.len() > 1 && own.iter().any(|codelet| codelet.1.represents.is_none()) {
        true => Ok(Err(
            "it has several codelets, and none stands for a class".to_owned()
        )),
        false => Ok(Ok(classes)),
    }
}

fn all_invocations(profile: &Profile, key: &RegionKey) -> u64 {
    profile.region(key).map_or(0, |region| region.invocations)
}

impl Prediction {
    fn of(
        mut regions: Vec<Region>,
        left_out: Vec<LeftOut>,
        seconds: f64,
        notes: Vec<String>,
    ) -> Self {
        regions.sort_by(|a, b| b.joules.total_cmp(&a.joules));
        let joules: f64 = regions.iter().map(|r| r.joules).sum();
        let covered: f64 = regions.iter().map(|r| r.share).sum();
        Self {
            joules,
            low: regions.iter().map(|r| r.low).sum(),
            high: regions.iter().map(|r| r.high).sum(),
            joule_seconds: joules * covered * seconds,
            covered,
            regions,
            left_out,
            notes,
        }
    }

    /// As a table.
    pub fn text(&self) -> String {
        let interval = |low: Option<f64>, high: Option<f64>| match low.zip(high) {
            Some((low, high)) => format!("{} to {}", print::joules(low), print::joules(high)),
            None => "-".to_owned(),
        };
        let row = |r: &Region| {
            vec![
                r.name.clone(),
                print::percent(r.share),
                r.invocations.to_string(),
                print::joules(r.joules),
                interval(r.low, r.high),
                format!("{:.1}", r.watts),
            ]
        };
        let heading = [
            "region",
            "time",
            "invocations",
            "energy",
            "95 % interval",
            "W",
        ];
        let rows = self.regions.iter().map(row).collect();
        let mut text = print::table_of_names(&heading, rows);
        for left_out in &self.left_out {
            text += &format!("not counted: {}: {}\n", left_out.region, left_out.reason);
        }
        text + &format!(
            "\n{} ({}) in {:.1} % of the run's time; the rest is not predicted\n",
            print::joules(self.joules),
            interval(self.low, self.high),
            self.covered * 100.0
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn energy(joules: f64, interval: Option<(f64, f64)>) -> Energy {
        Energy {
            joules,
            interval,
            seconds: joules / 50.0,
        }
    }

    #[test]
    fn classes_and_regions_add_up() {
        let classes = [
            (10, energy(2.0, Some((1.0, 3.0)))),
            (1, energy(5.0, Some((4.0, 6.0)))),
        ];
        let first = region("f", 0.5, 1.0, &classes);
        assert_eq!((first.invocations, first.joules), (11, 25.0));
        assert_eq!((first.low, first.high), (Some(14.0), Some(36.0)));
        assert!((first.watts - 50.0).abs() < 1e-9);
        // Half of its time is in regions that count for themselves.
        let second = region("g", 0.2, 0.5, &[(4, energy(20.0, None))]);
        assert_eq!((second.joules, second.low), (40.0, None));
        let all = Prediction::of(vec![first, second], Vec::new(), 10.0, Vec::new());
        assert_eq!(
            (all.joules, all.low, all.regions[0].name.as_str()),
            (65.0, None, "g")
        );
        assert!((all.joule_seconds - 65.0 * 7.0).abs() < 1e-9);
        assert!(
            all.text()
                .contains("65.000 J (-) in 70.0 % of the run's time")
        );
    }
}

//! In-vitro time against in-vivo time, region by region (CERE thesis, 3.4 and 5.3).

use anyhow::Result;
use cere_capture::selection::{Selection, own_seconds, tree_nodes};
use cere_capture::whole::over_all_threads;
use cere_cluster::{PredictError, Replayed, predict};
use cere_format::package::Represents;
use cere_format::profile::{Profile, RegionKey};
use cere_format::replay::Verdict;
use cere_store::results::Record;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Tolerated errors that totals are given for.
pub const LEVELS: [f64; 3] = [0.15, 0.10, 0.05];

/// Why a region's codelets cannot be compared with it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NotCompared {
    /// There are none.
    #[error("it has no codelet")]
    NoCodelet,
    /// A class has none.
    #[error(
        "class {missing} of {classes} has no codelet: `cere capture` takes the representatives"
    )]
    NoClass {
        /// The first class without one.
        missing: u32,
        /// How many classes there are.
        classes: u32,
    },
    /// Several represent one class.
    #[error(
        "its codelets come from several captures: `cere codelets --prune`, or capture it again"
    )]
    SeveralCaptures,
    /// A codelet has no replays; why.
    #[error("{0}")]
    NotReplayed(String),
    /// There is nothing to compare with.
    #[error("its time in vivo is not known")]
    NoTime,
    /// The times make no sum.
    #[error(transparent)]
    Predict(#[from] PredictError),
}

/// A codelet and the results of its replays at the flags of the capture.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Its region.
    pub key: RegionKey,
    /// The class that it represents; `None` if it was chosen by number.
    pub represents: Option<Represents>,
    /// Its replays, at least one, or why there is none.
    pub replays: Result<Vec<Pair>, String>,
}

/// A replay and the time in vivo that it is compared with.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// Median seconds in vitro.
    pub in_vitro: f64,
    /// Quantiles of the repetitions, as in a record; only for one of several rounds.
    pub spread: Vec<f64>,
    /// Seconds in vivo, if they are known.
    pub in_vivo: Option<f64>,
    /// The verdict on the replay's result.
    pub verdict: Verdict,
}

impl Pair {
    /// The times of a record; `None` if its replay failed.
    pub fn of(record: &Record) -> Option<Self> {
        let mut pair = Self::in_round(record)?;
        if record.session.is_none() {
            pair.spread.clear();
        }
        Some(pair)
    }

    /// The same, for a record of one of several rounds.
    pub fn in_round(record: &Record) -> Option<Self> {
        let times = record.times.as_ref()?;
        Some(Self {
            in_vitro: times.seconds_median,
            spread: times.quantiles.clone(),
            in_vivo: record.in_vivo_seconds,
            verdict: record.verdict,
        })
    }
}

/// Seconds in vitro from the replays of `pairs`, to be compared with the time in vivo. For rounds between runs of the program
/// the time in vivo is a minimum over runs, in the median of many invocations. The quantile 1 - 0.5^(1 / runs) of the
/// repetitions corresponds to it. Without quantiles: the minimum of the medians.
pub fn in_vitro(pairs: &[Pair], runs: usize) -> f64 {
    let mut all: Vec<f64> = pairs.iter().flat_map(|p| &p.spread).copied().collect();
    all.sort_by(f64::total_cmp);
    let share = 1.0 - 0.5f64.powf(1.0 / runs as f64);
    match all.get((share * all.len() as f64) as usize) {
        Some(seconds) => *seconds,
        None => minimum(pairs.iter().map(|p| p.in_vitro)),
    }
}

/// A region of the table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Its self time over the run time, including dropped regions that it calls; 0 to 1.
    pub share: f64,
    /// Number of performance classes of its invocations; 0 if it has no codelet.
    pub classes: u32,
    /// Absolute error of the predicted time, as a fraction of the time in vivo.
    pub error: Option<f64>,
    /// Predicted time over time in vivo.
    pub ratio: Option<f64>,
    /// Minimum and maximum of the ratios of single rounds and of all together.
    pub ratio_range: Option<(f64, f64)>,
    /// Number of rounds of replays.
    pub rounds: u32,
    /// The worst verdict of its codelets.
    pub verdict: Option<Verdict>,
    /// Whether predictions may use it.
    pub accepted: bool,
    /// Why it is not accepted.
    pub reason: Option<String>,
    /// Seconds that one run of each of its codelets takes.
    #[serde(skip)]
    pub cost: f64,
}

/// The table and its totals, all of them shares of the run time from 0 to 1, or of the processor time of all threads.
#[derive(Debug, Clone, PartialEq)]
pub struct Matching {
    /// By falling share.
    pub rows: Vec<Row>,
    /// Time in captured regions whose replays leave the original's result.
    pub coverage: f64,
    /// The same, if shares are of the processor time of all threads, as others than the first do much.
    pub of_all_threads: Option<f64>,
    /// Time in regions accurately replayed, for each of [`LEVELS`].
    pub accurate: [f64; 3],
    /// Tolerated errors at which the share accurately replayed changes, rising, each with the share from there on.
    pub curve: Vec<(f64, f64)>,
    /// Run time over the time that one run of each codelet of the accepted regions takes (thesis, 1.2); none without
    /// accepted regions.
    pub reduction: Option<f64>,
}

/// The joint result of a region's codelets.
#[derive(Default)]
struct Judged {
    classes: u32,
    verdict: Option<Verdict>,
    cost: f64,
    range: Option<(f64, f64)>,
    rounds: usize,
}

fn minimum(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(f64::INFINITY, f64::min)
}

fn worst(a: Verdict, b: Verdict) -> Verdict {
    let rank = |v| match v {
        Verdict::Exact => 0,
        Verdict::Tolerance => 1,
        Verdict::Partly => 2,
        Verdict::Unchecked => 3,
        Verdict::Different => 4,
    };
    if rank(a) >= rank(b) { a } else { b }
}

/// The codelets of a region that count: one for each of its classes or, if none represents a class, all.
pub fn counting<'a, T>(
    all: &[&'a T],
    represents: impl Fn(&T) -> Option<Represents>,
) -> Result<(u32, Vec<&'a T>), NotCompared> {
    let mut chosen: Vec<&T> = all
        .iter()
        .filter(|m| represents(m).is_some())
        .copied()
        .collect();
    let class = |m: &&T| represents(m).map_or(0, |r| r.class);
    chosen.sort_by_key(class);
    let Some(classes) = chosen
        .iter()
        .filter_map(|m| represents(m))
        .map(|r| r.classes)
        .max()
    else {
        return Ok((1, all.to_vec()));
    };
    if let Some(missing) = (1..=classes).find(|c| !chosen.iter().any(|m| class(m) == *c)) {
        return Err(NotCompared::NoClass { missing, classes });
    }
    if chosen.len() > classes as usize {
        return Err(NotCompared::SeveralCaptures);
    }
    Ok((classes, chosen))
}

/// Predicted time over time in vivo; fills `judged` as far as possible.
fn judge(all: &[&Measured], judged: &mut Judged) -> Result<f64, NotCompared> {
    if all.is_empty() {
        return Err(NotCompared::NoCodelet);
    }
    let (classes, counting) = counting(all, |m| m.represents)?;
    judged.classes = classes;
    let mut classes: Vec<(f64, f64, Vec<f64>)> = Vec::new();
    let mut unknown = false;
    for measured in counting {
        let pairs = measured.replays.clone();
        let pairs = pairs.map_err(NotCompared::NotReplayed)?;
        for pair in &pairs {
            let verdict = judged
                .verdict
                .map_or(pair.verdict, |v| worst(v, pair.verdict));
            judged.verdict = Some(verdict);
        }
        let runs = pairs.len() + 1;
        judged.cost += in_vitro(&pairs, runs);
        let in_vivo = pairs.iter().map(|p| p.in_vivo);
        let Some(in_vivo) = in_vivo.collect::<Option<Vec<f64>>>() else {
            unknown = true;
            continue;
        };
        let in_vivo = minimum(in_vivo.into_iter());
        let total = measured.represents.map_or(in_vivo, |r| r.seconds);
        let rounds = pairs
            .iter()
            .map(|p| in_vitro(std::slice::from_ref(p), runs) / in_vivo);
        classes.push((total, in_vitro(&pairs, runs) / in_vivo, rounds.collect()));
    }
    if unknown {
        return Err(NotCompared::NoTime);
    }
    // All classes together, each with its weight.
    type Class = (f64, f64, Vec<f64>);
    let whole = |ratio: &dyn Fn(&Class) -> f64| -> Result<f64, PredictError> {
        let of = |class: &Class| Replayed {
            total: class.0,
            reference: 1.0,
            target: ratio(class),
        };
        let replayed: Vec<Replayed> = classes.iter().map(of).collect();
        let total: f64 = replayed.iter().map(|r| r.total).sum();
        Ok(predict(&replayed)? / total)
    };
    judged.rounds = classes.iter().map(|c| c.2.len()).min().unwrap_or(0);
    if judged.rounds > 1 {
        let rounds = (0..judged.rounds).map(|round| whole(&|class| class.2[round]));
        let rounds = rounds.collect::<Result<Vec<f64>, _>>()?;
        let most = rounds.iter().copied().fold(0.0, f64::max);
        judged.range = Some((minimum(rounds.into_iter()), most));
    }
    let ratio = whole(&|class| class.1)?;
    // Of several classes each may have its fast round.
    judged.range = judged
        .range
        .map(|(low, high)| (low.min(ratio), high.max(ratio)));
    Ok(ratio)
}

impl Matching {
    /// Judges the regions that `profile` selects by their codelets. A region whose error is above `most` is ill-behaved: its
    /// time goes to the regions that call it. `refused` gives by name why regions have no codelets.
    pub fn of(
        profile: &Profile,
        codelets: &[Measured],
        refused: &BTreeMap<String, String>,
        most: f64,
    ) -> Result<Self> {
        let seconds = profile.seconds;
        let whole = over_all_threads(profile);
        let profile = &*whole;
        let mut by_key: HashMap<&RegionKey, Vec<&Measured>> = HashMap::new();
        for measured in codelets {
            by_key.entry(&measured.key).or_default().push(measured);
        }
        // What was captured counts for itself, however small: else its time would fall to a caller, which may be the whole run.
        let selection = Selection::with(profile, |key| by_key.contains_key(key))?;
        let mut rows = Vec::new();
        let mut errors: Vec<Option<f64>> = vec![None; profile.regions.len()];
        let mut right = vec![false; profile.regions.len()];
        for kept in &selection.kept {
            let region = &profile.regions[kept.region];
            let mut judged = Judged::default();
            let codelets = by_key.get(&region.key).map_or(&[][..], Vec::as_slice);
            let ratio = judge(codelets, &mut judged);
            let good = matches!(judged.verdict, Some(Verdict::Exact | Verdict::Tolerance));
            let error = ratio.as_ref().ok().map(|ratio| (ratio - 1.0).abs());
            right[kept.region] = good && ratio.is_ok();
            errors[kept.region] = error.filter(|_| good);
            let reason = match (&ratio, error) {
                (Err(_), _) if codelets.is_empty() && refused.contains_key(&region.name) => {
                    Some(format!("not captured: {}", refused[&region.name]))
                }
                (Err(reason), _) => Some(reason.to_string()),
                _ if judged.verdict == Some(Verdict::Partly) => {
                    Some("part of its result is not compared".into())
                }
                _ if !good => Some("its result is not the original's".into()),
                (_, Some(error)) if error > most => {
                    Some("ill-behaved: its time is not the original's".into())
                }
                _ => None,
            };
            rows.push(Row {
                name: region.name.clone(),
                share: kept.seconds / profile.outside_mpi(),
                classes: judged.classes,
                error,
                ratio: ratio.ok(),
                ratio_range: judged.range,
                rounds: judged.rounds as u32,
                verdict: judged.verdict,
                accepted: reason.is_none(),
                reason,
                cost: judged.cost,
            });
        }
        let tree = tree_nodes(profile);
        let covered = |keep: &[bool]| -> Result<f64> {
            Ok((own_seconds(&tree, keep)?.iter().sum::<f64>() / profile.outside_mpi()).min(1.0))
        };
        let within = |level: f64| -> Result<f64> {
            let is_within = |e: &Option<f64>| e.is_some_and(|e| e <= level);
            covered(&errors.iter().map(is_within).collect::<Vec<_>>())
        };
        let mut accurate = [0.0; LEVELS.len()];
        for (share, level) in accurate.iter_mut().zip(LEVELS) {
            *share = within(level)?;
        }
        let mut levels: Vec<f64> = errors.iter().flatten().copied().collect();
        levels.sort_by(f64::total_cmp);
        levels.dedup();
        let curve = levels.into_iter().map(|level| Ok((level, within(level)?)));
        let curve = curve.collect::<Result<_>>()?;
        let coverage = covered(&right)?;
        let cost: f64 = rows.iter().filter(|r| r.accepted).map(|r| r.cost).sum();
        Ok(Self {
            coverage,
            of_all_threads: profile.others_at_work().map(|_| coverage),
            accurate,
            curve,
            reduction: (cost > 0.0).then(|| seconds / cost),
            rows,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cere_testing::profile as fixture;

    fn measured(
        profile: &Profile,
        region: usize,
        class: (u32, u32, f64),
        times: (f64, f64),
    ) -> Measured {
        Measured {
            key: profile.regions[region].key.clone(),
            represents: Some(Represents {
                classes: class.1,
                class: class.0,
                invocations: 1,
                seconds: class.2,
            }),
            replays: Ok(vec![pair(times.0, times.1)]),
        }
    }

    fn pair(in_vivo: f64, in_vitro: f64) -> Pair {
        Pair {
            in_vitro,
            spread: Vec::new(),
            in_vivo: Some(in_vivo),
            verdict: Verdict::Exact,
        }
    }

    #[test]
    fn what_was_captured_counts_however_small() {
        let profile = fixture::profile(&[
            ("whole", None, 0.002, 1e9),
            ("large", Some(0), 0.9, 1e6),
            ("small", Some(0), 0.006, 1e6),
            ("other", Some(0), 0.008, 1e6),
        ]);
        let all = [(1, 0.9), (2, 0.006), (3, 0.008)]
            .map(|(region, time)| measured(&profile, region, (1, 1, time), (time, time)));
        let of = |all: &[Measured]| Matching::of(&profile, all, &BTreeMap::new(), 0.15).unwrap();
        let names = |found: &Matching| -> Vec<String> {
            found.rows.iter().map(|row| row.name.clone()).collect()
        };
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        // The small ones' time falls to their caller, which has no codelet.
        let found = of(&all[..1]);
        assert_eq!(names(&found), ["large", "whole"]);
        assert!(near(found.coverage, 0.9));
        let found = of(&all);
        assert_eq!(names(&found), ["large", "other", "small"]);
        assert!(near(found.coverage, 0.914) && near(found.accurate[0], 0.914));
    }

    #[test]
    fn what_is_ill_behaved_goes_to_its_caller() {
        let profile = fixture::profile(&[
            ("outer", None, 0.2, 1e6),
            ("good", Some(0), 0.3, 1e6),
            ("bad", Some(0), 0.4, 1e6),
            ("alone", None, 0.1, 1e6),
        ]);
        let mut all = vec![
            measured(&profile, 0, (1, 1, 0.9), (0.9, 0.9)),
            measured(&profile, 1, (1, 2, 0.2), (0.1, 0.112)),
            measured(&profile, 1, (2, 2, 0.1), (0.1, 0.1)),
            measured(&profile, 2, (1, 1, 0.4), (0.4, 0.8)),
        ];
        let of = |all: &[Measured]| Matching::of(&profile, all, &BTreeMap::new(), 0.15).unwrap();
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        let found = of(&all);
        let row = |found: &Matching, name: &str| {
            found.rows.iter().find(|r| r.name == name).unwrap().clone()
        };
        assert!(near(row(&found, "good").error.unwrap(), 0.08));
        assert_eq!(row(&found, "good").classes, 2);
        assert!(near(row(&found, "bad").error.unwrap(), 1.0) && !row(&found, "bad").accepted);
        assert!(row(&found, "alone").reason.unwrap().contains("no codelet"));
        // The caller is replayed with what it calls.
        assert!(near(found.coverage, 0.9) && near(found.accurate[0], 0.9));
        assert!(near(found.accurate[2], 0.9));
        // Without the caller, what is ill-behaved is lost, and what is a little off at the strictest level too.
        let found = of(&all[1..]);
        assert!(near(found.coverage, 0.7));
        assert!(
            near(found.accurate[0], 0.3)
                && near(found.accurate[1], 0.3)
                && near(found.accurate[2], 0.0)
        );
        assert!(near(found.reduction.unwrap(), 1.0 / 0.212));
        // Rounds: the machine is twice as slow in one of them.
        let round = |times: [f64; 4]| Pair {
            spread: times.to_vec(),
            ..pair(0.1, 9.0)
        };
        let rounds = [[0.103, 0.104, 0.105, 0.2], [0.2, 0.21, 0.22, 0.23]];
        all[2].replays = Ok(rounds.map(round).to_vec());
        all[1].replays = Ok([[0.11; 4], [0.22; 4]].map(round).to_vec());
        let good = row(&of(&all), "good");
        // Three runs: the least but 21 %.
        assert!(near(good.ratio.unwrap(), (0.22 + 0.104) / 0.3));
        let (least, most) = good.ratio_range.unwrap();
        assert!(near(least, (0.22 + 0.103) / 0.3) && near(most, (0.44 + 0.2) / 0.3));
        assert_eq!(good.rounds, 2);
        all[2].replays = Ok(vec![Pair {
            verdict: Verdict::Different,
            ..pair(0.1, 0.1)
        }]);
        assert!(row(&of(&all), "good").reason.unwrap().contains("result"));
        all.remove(2);
        assert!(
            row(&of(&all), "good")
                .reason
                .unwrap()
                .contains("class 2 of 2")
        );
    }
}

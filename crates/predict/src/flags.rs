//! Predicts the run's time under other flags for the whole program, from its codelets.

use super::outcome::{HEADING, Outcome};
use super::ranks::{self, OverRanks};
use super::ratios::{Found, Reason, by_shares, ratios};
use anyhow::{Context, Result};
use cere_catalogue::bail;
use cere_format::profile::{Profile, RegionKey};
use cere_format::store::Store;
use cere_measure::{Build, Goal, Lab, Replays, Shares, Target, Trial, decide};
use cere_package::{lacks, machine};
use cere_store::build::image::Program;
use cere_store::current::{self, codelets};
use cere_store::missing;
use cere_store::names::named;
use cere_store::state;
use cere_system::console::{print, short};
use cere_system::events::Events;
use cere_timing::stats::median;
use cere_timing::stats::spearman;
use cere_toolchain::Variant;
use cere_tune::hybrid::{Choice, Image, Recipe, scratch};
use serde::Serialize;
use std::path::Path;

/// Largest relative error of a number in the output under flags that may change rounding.
const NUMBERS: f64 = 1e-6;

/// The run under one set of flags.
#[derive(Debug, Serialize)]
struct Row {
    /// Line of the list, from 1.
    line: usize,
    /// Flags after those of the build, then the pipeline in brackets.
    flags: String,
    /// Its time.
    #[serde(flatten)]
    outcome: Outcome,
    /// Regions that count as profiled, and why.
    notes: Vec<String>,
    /// The lines below the table.
    #[serde(skip)]
    told: Vec<String>,
}

/// The run under all sets of flags.
#[derive(Debug, Serialize)]
pub struct Flags {
    /// Seconds of the plain build.
    plain_seconds: f64,
    /// Whether that was measured beside the replays; if not, it is the profile's.
    measured: bool,
    /// Share of the run's time in regions that are replayed.
    covered: f64,
    rows: Vec<Row>,
    /// The rank that the codelets are of; none if the program has no ranks.
    rank: Option<String>,
    /// How the time of the plain build is composed over ranks, by the profile; none if the program has none.
    ranks: Option<OverRanks>,
    /// What its user should know of the codelets, the ranks and the runs.
    pub notes: Vec<String>,
    /// Mean of 1 - |error|.
    accuracy: Option<f64>,
    /// Spearman's rank correlation of predictions and measurements.
    rank_correlation: Option<f64>,
    /// Split-half agreement of the runs: one half of their rounds as a prediction of the other. This is the noise floor: a
    /// prediction that agrees as well cannot be improved on this machine.
    runs: Option<Repeated>,
    /// Seconds that compiling the codelets took, on all processors together.
    compiling_seconds: f64,
    /// Seconds that replaying them took, all rounds together.
    replaying_seconds: f64,
    /// Time of the runs over the time of the replays in as many rounds, compiling excluded on both sides.
    reduction: Option<f64>,
}

/// Agreement of runs with other runs of the same builds.
#[derive(Debug, Serialize)]
struct Repeated {
    /// Mean of 1 - |difference|.
    accuracy: f64,
    /// Spearman's rank correlation.
    rank_correlation: Option<f64>,
}

/// Sets of flags with their lines in the file, from 1.
#[derive(Debug)]
pub struct Sets {
    lines: Vec<usize>,
    variants: Vec<Variant>,
}

/// Reads sets of flags, one a line: flags, then a pipeline in brackets; `#` begins a comment.
pub fn read(path: &Path, events: &Events) -> Result<Sets> {
    let text = state::read_text(path)
        .with_context(|| format!("cannot read the list of flags {}", path.display()))?;
    let machine = machine();
    let (mut lines, mut variants) = (Vec::new(), Vec::new());
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let place = || format!("{}, line {}", path.display(), number + 1);
        let (flags, passes) = match line.split_once('[') {
            Some((flags, rest)) => {
                let passes = rest.strip_suffix(']').with_context(|| {
                    format!("{}: the bracket before the pipeline is not closed", place())
                })?;
                (flags, Some(passes.to_owned()))
            }
            None => (line, None),
        };
        let flags = cere_toolchain::flags::split(flags).with_context(place)?;
        cere_toolchain::flags::check(&flags)
            .and_then(|()| cere_toolchain::flags::known(&flags))
            .with_context(place)?;
        let lacking = lacks(&machine, &flags);
        if !lacking.is_empty() {
            let all = lacking.join(", ");
            let place = place();
            events.note(format!(
                "{place}: {line} is skipped: this processor lacks {all}"
            ));
            continue;
        }
        lines.push(number + 1);
        variants.push(Variant { flags, passes });
    }
    if variants.is_empty() {
        bail!(
            E6033,
            "{} lists no flags that this processor can run: one set a line is needed",
            path.display()
        );
    }
    Ok(Sets { lines, variants })
}

/// How to predict.
pub struct Request<'a> {
    /// The store with codelets and records.
    pub store: &'a Store,
    /// How to replay, at the flags of the build.
    pub replays: cere_measure::Settings,
    /// Number of rounds; `None` derives it from the program's time.
    pub rounds: Option<u32>,
    /// Whether the program is built with each set, and run.
    pub measure: bool,
    /// Lines of its output that contain one of these are not compared.
    pub ignore: &'a [String],
    /// What is said meanwhile.
    pub events: &'a Events,
}

/// Predicts the run under each of `sets`.
pub fn predict(request: &Request, sets: &Sets) -> Result<Flags> {
    let variants = &sets.variants;
    let store = request.store;
    let profile = current::profile(store)?;
    let known = named(&state::current_units(store)?);
    let chosen = codelets(store, &profile)?;
    let replays = Replays::open(store, request.events)?;
    let (mut targets, mut weights) = (Vec::new(), Vec::new());
    let shares = Shares::of(&profile)?;
    for region in shares.mostly_own(&known) {
        let share = shares.of_region(&region.key);
        match Target::of(&replays, region, share, &chosen.codelets) {
            Ok(target) => {
                targets.push(target);
                weights.push((region.key.clone(), share));
            }
            Err(error) => {
                let text = format!("{error}: its time counts as in the profile");
                request.events.note(text);
            }
        }
    }
    if targets.is_empty() {
        return Err(missing::codelets(
            store,
            cere_catalogue::codes::E6401,
            &[],
            |line| format!("no region that matters has a codelet: `{line}` takes some"),
        ));
    }
    let rounds = request
        .rounds
        .unwrap_or_else(|| decide::rounds(profile.seconds).min(5));
    let lab = Lab {
        goal: Goal::Time,
        store,
        replays: &replays,
        settings: request.replays.clone(),
        rounds: true,
    };
    let ranks = ranks::by_shares(&profile, &weights);
    let as_built = ranks::compose_ratios(&ranks, &vec![1.0; targets.len()]);
    let alone = by_shares(&targets);
    let of_run = |each: &[f64]| match (ranks::compose_ratios(&ranks, each), &as_built) {
        (Some(now), Some(built)) => now.seconds() / built.seconds(),
        _ => alone(each),
    };
    let replayed = ratios(&lab, &targets, variants, rounds, &of_run, request.events);
    if replayed.covered < 1e-9 {
        bail!(
            E6404,
            "no region can be replayed as built: see the reasons above"
        );
    }
    let mut measured = match request.measure {
        true => Some(measure(request, &lab, &profile, variants, rounds)?),
        false => None,
    };
    let plain = measured.as_ref().map_or(profile.seconds, |m| m.plain);
    let of_runs = measured.as_mut().map(|m| std::mem::take(&mut m.notes));
    let mut found = table((plain, rounds), sets, replayed, measured);
    let elsewhere = |key: &RegionKey| profile.region(key).is_none();
    found.notes = chosen.notes;
    found
        .notes
        .extend(ranks::notes(&profile, "regions", elsewhere));
    found.notes.extend(of_runs.into_iter().flatten());
    found.rank = ranks::own(&ranks);
    found.ranks = as_built;
    Ok(found)
}

/// Why a variant was not run.
#[derive(Debug, Clone, thiserror::Error)]
enum NotRun {
    /// It could not be built.
    #[error("{0}")]
    Build(String),
    /// Its times are those of something else.
    #[error("its output differs: {0}")]
    Output(String),
}

/// Runs of the program.
struct Measured {
    /// Seconds of the plain build.
    plain: f64,
    /// Seconds of each variant, round by round, or why it was not run.
    each: Vec<Result<Vec<f64>, NotRun>>,
    /// What was compared, and what not.
    notes: Vec<String>,
}

impl Measured {
    /// The even rounds as a prediction of the odd ones, for the variants `counted`; `None` with a single round.
    fn split_half_agreement(&self, counted: impl Fn(usize) -> bool) -> Option<Repeated> {
        let half = |seconds: &[f64], odd: usize| {
            let some: Vec<f64> = seconds.iter().copied().skip(odd).step_by(2).collect();
            (!some.is_empty()).then(|| median(&some).unwrap_or(f64::NAN))
        };
        let each = self.each.iter().enumerate();
        let each = each.filter_map(|(place, seconds)| {
            let seconds = seconds.as_ref().ok().filter(|_| counted(place))?;
            Some((half(seconds, 0)?, half(seconds, 1)?))
        });
        let (even, odd): (Vec<f64>, Vec<f64>) = each.unzip();
        Some(Repeated {
            accuracy: accuracy(&even, &odd)?,
            rank_correlation: spearman(&even, &odd),
        })
    }
}

/// Mean of 1 - |error| of predictions.
fn accuracy(predicted: &[f64], seconds: &[f64]) -> Option<f64> {
    let errors = predicted.iter().zip(seconds);
    let errors: f64 = errors.map(|(p, s)| (p / s - 1.0).abs()).sum();
    (!predicted.is_empty()).then(|| 1.0 - errors / predicted.len() as f64)
}

fn measure(
    request: &Request,
    lab: &Lab,
    profile: &Profile,
    variants: &[Variant],
    rounds: u32,
) -> Result<Measured> {
    std::env::set_current_dir(&profile.directory)
        .with_context(|| format!("cannot go to {}", profile.directory.display()))?;
    let program = Program::open(&profile.command, lab.store)?;
    let plain = program.image()?.path.clone();
    let image = Image::open(lab.store, lab.replays, &plain, request.events)?;
    let scratch = scratch(lab.store)?;
    let mut builds = vec![Build {
        name: "plain".into(),
        path: plain,
    }];
    let mut places = Vec::new();
    let bar = request.events.steps("building", variants.len() as u64);
    for (number, variant) in variants.iter().enumerate() {
        let path = scratch.path().join(number.to_string());
        let recipe = Recipe {
            rest: Choice {
                flags: variant.flags.clone(),
                passes: variant.passes.clone(),
                team: None,
            },
            ..Recipe::default()
        };
        places.push(match image.make(&recipe, &path) {
            Ok(()) => {
                builds.push(Build {
                    name: variant.to_string(),
                    path,
                });
                Ok(builds.len() - 1)
            }
            Err(error) => Err(NotRun::Build(print::error(&error))),
        });
        bar.step();
    }
    drop(bar);
    let mut trial = Trial::new(
        lab.store,
        &program,
        &profile.command,
        None,
        request.ignore,
        NUMBERS,
        request.events,
    )?;
    let runs = trial.run(&builds, rounds)?;
    let plain = median(&runs.plain).unwrap_or(f64::NAN);
    let each = places.into_iter().map(|place| {
        let place = place?;
        match &runs.differs[place] {
            Some(why) => Err(NotRun::Output(why.clone())),
            None => Ok(runs.ratios[place].iter().map(|r| plain * r).collect()),
        }
    });
    let ranks = trial.ranks().map(ToString::to_string).unwrap_or_default();
    let ranks = ranks.lines().map(str::to_owned);
    Ok(Measured {
        plain,
        each: each.collect(),
        notes: ranks.chain(trial.varying()?.note()).collect(),
    })
}

fn table(
    (plain, rounds): (f64, u32),
    sets: &Sets,
    replayed: Found,
    measured: Option<Measured>,
) -> Flags {
    let each = sets.lines.iter().zip(&sets.variants);
    let rows: Vec<Row> = each
        .zip(replayed.ratios)
        .enumerate()
        .map(|(place, ((line, variant), ratios))| {
            let own = measured.as_ref().map(|m| &m.each[place]);
            let as_profiled = &replayed.as_profiled[place];
            let apart: f64 = as_profiled.iter().map(|apart| apart.share).sum();
            let outcome = match &ratios {
                Ok(ratios) => {
                    let rounds: Vec<f64> = ratios.iter().map(|r| plain * r).collect();
                    Outcome::of_rounds(
                        median(&rounds).unwrap_or(f64::NAN),
                        &rounds,
                        replayed.covered - apart,
                    )
                }
                Err(_) => Outcome::default(),
            };
            let not_run = own.and_then(|m| Some(m.as_ref().err()?.to_string()));
            let lines = |name: &dyn Fn(&str) -> String| -> (Option<String>, Vec<String>) {
                let failed = ratios.as_ref().err();
                let failed =
                    failed.map(|reason| format!("{}: {}", name(&reason.region), reason.why));
                let notes = as_profiled.iter().map(|apart| {
                    let Reason { region, why } = &apart.reason;
                    let share = apart.share * 100.0;
                    format!(
                        "{} counts as profiled ({share:.1} % of the run): {why}",
                        name(region)
                    )
                });
                (failed.or_else(|| not_run.clone()), notes.collect())
            };
            let (reason, notes) = lines(&str::to_owned);
            let (told, more) = lines(&short::name);
            Row {
                line: *line,
                flags: variant.to_string(),
                outcome: Outcome {
                    measured_seconds: own
                        .and_then(|m| Some(median(m.as_ref().ok()?).unwrap_or(f64::NAN))),
                    reason,
                    ..outcome
                },
                notes,
                told: told.into_iter().chain(more).collect(),
            }
        })
        .collect();
    let both = rows
        .iter()
        .filter_map(|r| Some((r.outcome.predicted_seconds?, r.outcome.measured_seconds?)));
    let (predicted, seconds): (Vec<f64>, Vec<f64>) = both.unzip();
    let ran = f64::from(rounds) * seconds.iter().sum::<f64>();
    Flags {
        plain_seconds: plain,
        measured: measured.is_some(),
        covered: replayed.covered,
        accuracy: accuracy(&predicted, &seconds),
        rank_correlation: spearman(&predicted, &seconds),
        runs: measured.as_ref().and_then(|m| {
            m.split_half_agreement(|place| rows[place].outcome.predicted_seconds.is_some())
        }),
        compiling_seconds: replayed.compiled,
        replaying_seconds: replayed.replayed,
        reduction: (ran > 0.0 && replayed.replayed > 0.0).then(|| ran / replayed.replayed),
        rows,
        rank: None,
        ranks: None,
        notes: Vec::new(),
    }
}

/// The prediction as a table.
pub fn text(found: &Flags) -> String {
    let row = |r: &Row| {
        let [predicted, measured, error] = r.outcome.cells();
        let gain = r.outcome.predicted_seconds;
        vec![
            r.line.to_string(),
            r.flags.clone(),
            predicted,
            measured,
            error,
            gain.map_or("-".to_owned(), |p| {
                format!("{:.3}", found.plain_seconds / p)
            }),
        ]
    };
    let [predicted, measured, error] = HEADING;
    let heading = ["line", "<flags", predicted, measured, error, "gain"];
    let mut text = print::table(&heading, &found.rows.iter().map(row).collect::<Vec<_>>());
    for row in &found.rows {
        for why in &row.told {
            text.push_str(&format!(
                "line {}: {}\n",
                row.line,
                why.replace('\n', "\n    ")
            ));
        }
    }
    let of = match found.measured {
        true => "measured with them",
        false => "as profiled",
    };
    text.push_str(&format!(
        "\nas built: {} ({of}), {:.1} % of it in regions that are replayed\n",
        print::time(found.plain_seconds),
        found.covered * 100.0
    ));
    if let Some(ranks) = &found.ranks {
        text.push_str(&format!(
            "of {} ranks a run takes the work of the slowest (as built rank {}: {}), by the ratios of the codelets of rank {}, and that rank's \
             time in MPI as profiled ({})\n",
            ranks.ranks.len(),
            ranks.slowest,
            print::time(ranks.work_seconds),
            found.rank.as_deref().unwrap_or("?"),
            print::time(ranks.mpi_seconds)
        ));
    }
    if let Some(accuracy) = found.accuracy {
        text.push_str(&format!("accuracy {:.1} %", accuracy * 100.0));
        if let Some(rank) = found.rank_correlation {
            text.push_str(&format!(", rank correlation {rank:.2}"));
        }
        if let Some(reduction) = found.reduction {
            let times = print::times(reduction);
            text.push_str(&format!("; the replays take {times} than the runs"));
        }
        text.push('\n');
    }
    if let Some(runs) = &found.runs {
        let rank = runs.rank_correlation;
        let rank = rank.map_or(String::new(), |r| format!(", rank correlation {r:.2}"));
        text.push_str(&format!(
            "split-half agreement of the runs: accuracy {:.1} %{rank}\n",
            runs.accuracy * 100.0
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_tell_of_runs() {
        let measured = Measured {
            plain: 1.0,
            each: vec![
                Ok(vec![1.0, 1.0, 1.0]),
                Err(NotRun::Output("a line".into())),
                Ok(vec![2.2, 2.0, 2.2, 2.0]),
                Ok(vec![9.0, 1.0]),
                Ok(vec![3.0, 4.0]),
            ],
            notes: Vec::new(),
        };
        let runs = measured.split_half_agreement(|place| place != 3).unwrap();
        assert!((runs.accuracy - (1.0 - (0.0 + 0.1 + 0.25) / 3.0)).abs() < 1e-9);
        assert!((runs.rank_correlation.unwrap() - 1.0).abs() < 1e-9);
        assert!(measured.split_half_agreement(|place| place == 1).is_none());
        let once = vec![Ok(vec![1.0])];
        let once = Measured {
            plain: 1.0,
            each: once,
            notes: Vec::new(),
        };
        assert!(once.split_half_agreement(|_| true).is_none());
    }

    #[test]
    fn lists_of_flags() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("list");
        let of = |text: &str| {
            std::fs::write(&file, text).unwrap();
            read(&file, &Events::ignored())
        };
        let Sets { lines, variants } = of("# levels\n-O2\n\n-O1 [default<O1>]\n").unwrap();
        assert_eq!(lines, [2, 4]);
        assert_eq!(variants[0].flags, ["-O2"]);
        assert_eq!(variants[1].passes.as_deref(), Some("default<O1>"));
        let Sets { lines, .. } = of("-mavx512vbmi -ffp-contract=off\n-O2\n").unwrap();
        let kernel = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        match kernel.split_whitespace().any(|w| w == "avx512vbmi") {
            true => assert_eq!(lines, [1, 2]),
            false => assert_eq!(lines, [2]),
        }
        for (bad, word) in [
            ("-O2\n-fno-such-flag\n", "line 2"),
            ("-O1 [x\n", "closed"),
            ("\n", "lists no flags"),
            ("-flto\n", "-flto"),
        ] {
            let error = format!("{:#}", of(bad).unwrap_err());
            assert!(error.contains(word), "{bad}: {error}");
        }
    }
}

//! `cere predict --flags-file FILE`: the run's time under other flags for all of the program, from its codelets.

use super::Options;
use crate::check::{current, enough};
use crate::hybrid::{Build, Image, Recipe, Trial, middle, scratch};
use crate::names::named;
use crate::replay::Replays;
use crate::selection::Selection;
use crate::tune::{AGAIN, Lab, Target};
use crate::{image as program, print, progress, state, words};
use anyhow::{Context, Result, bail};
use cere_cluster::spearman;
use cere_compile::several::several;
use cere_format::profile::Profile;
use cere_hybrid::Choice;
use cere_replay::Team;
use cere_tune::Variant;
use serde::Serialize;
use std::path::Path;
use std::time::Instant;

/// Largest relative error of a number in the output under flags that may change rounding.
const NUMBERS: f64 = 1e-6;

/// The run under one set of flags.
#[derive(Debug, Serialize)]
struct Row {
    /// Flags after those of the build, and a pipeline in brackets.
    flags: String,
    /// Predicted seconds; none: it cannot be predicted.
    predicted_seconds: Option<f64>,
    /// Measured seconds.
    measured_seconds: Option<f64>,
    /// Least and largest prediction of single rounds.
    range: Option<(f64, f64)>,
    /// Why it is not predicted or measured.
    reason: Option<String>,
}

/// All of it.
#[derive(Debug, Serialize)]
struct Flags {
    /// Seconds of the plain build.
    plain_seconds: f64,
    /// Whether that is of runs beside the replays, not of the profile.
    measured: bool,
    /// Share of the run's time in regions that are replayed.
    covered: f64,
    rows: Vec<Row>,
    /// Mean of 1 - |error|.
    accuracy: Option<f64>,
    /// Spearman's rank correlation of predictions and measurements.
    rank_correlation: Option<f64>,
    /// Time of one run of each build over that of one round of replays, compiling excluded on both sides.
    reduction: Option<f64>,
}

/// Sets of flags, one a line: flags, and a pipeline in brackets behind them; `#` begins a comment.
fn read(path: &Path) -> Result<Vec<Variant>> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the list of flags {}", path.display()))?;
    let mut all = Vec::new();
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
        let flags = words::split(flags).with_context(place)?;
        cere_compile::flags::check(&flags)
            .and_then(|()| cere_compile::flags::known(&flags))
            .with_context(place)?;
        all.push(Variant { flags, passes });
    }
    if all.is_empty() {
        bail!(
            "{} lists no flags: one set a line is needed",
            path.display()
        );
    }
    Ok(all)
}

/// Runs the subcommand in this form.
pub fn run(options: &Options, file: &Path) -> Result<u8> {
    let variants = read(file)?;
    let store = options.common.store()?;
    let profile = state::current_profile(&store)?;
    let known = named(&state::current_units(&store)?);
    let codelets = current(&store)?;
    let replays = Replays::open(&store)?;
    let mut targets = Vec::new();
    for kept in Selection::of(&profile)?.kept {
        let region = &profile.regions[kept.region];
        let Some(own) = known.iter().find(|n| n.key == region.key) else {
            continue;
        };
        let share = kept.seconds / profile.seconds;
        match Target::of(
            &replays,
            &own.name,
            &own.key,
            own.region.kind,
            share,
            &codelets,
        ) {
            Ok(target) => targets.push(target),
            Err(error) => eprintln!("cere: {error}: its time counts as in the profile"),
        }
    }
    if targets.is_empty() {
        bail!(
            "no region that matters has a codelet: `cere capture -- PROGRAM ARGUMENTS` takes some"
        );
    }
    let rounds = options
        .rounds
        .unwrap_or_else(|| enough(profile.seconds).min(5));
    let mut request = options.timing.request(Team::default())?;
    request.repetitions.seconds =
        (request.repetitions.seconds / f64::from(rounds)).clamp(0.05, 0.15);
    let lab = Lab {
        store: &store,
        replays: &replays,
        request,
        rounds: true,
    };
    let (rounds_of, replayed) = ratios(&lab, &targets, &variants, rounds);
    let measured = match options.measure {
        true => Some(measure(options, &lab, &profile, &variants, rounds)?),
        false => None,
    };
    let plain = measured.as_ref().map_or(profile.seconds, |m| m.0);
    let found = table(plain, &targets, &variants, rounds_of, measured, replayed);
    if options.common.json {
        print::json(&found)?;
    } else {
        print::out(&text(&found))?;
    }
    Ok(0)
}

/// Of each variant in each round the run's time over that of the plain build, or why it cannot be told; and the seconds
/// that a round of its replays takes.
type Ratios = Vec<Result<Vec<f64>, String>>;

fn ratios(lab: &Lab, targets: &[Target], variants: &[Variant], rounds: u32) -> (Ratios, f64) {
    let bar = progress::bar("replaying", targets.len() as u64 * variants.len() as u64);
    let mut all: Ratios = vec![Ok(vec![1.0; rounds as usize]); variants.len()];
    let mut replayed = 0.0;
    for target in targets {
        bar.set_message(target.name.clone());
        let default = Variant::default();
        let as_built = lab.build(target, &default);
        let built = several(variants.len(), |place| lab.build(target, &variants[place]));
        let mut of: Ratios = vec![Ok(Vec::new()); variants.len()];
        let start = Instant::now();
        for round in 0..rounds {
            for (number, some) in variants.chunks(AGAIN).enumerate() {
                let first = number * AGAIN;
                if of[first..first + some.len()].iter().all(Result::is_err) {
                    continue;
                }
                let before = as_built.as_ref().map_err(Clone::clone);
                let before =
                    before.and_then(|builds| lab.time(target, &default, builds, false, None));
                for (place, variant) in (first..).zip(some) {
                    if of[place].is_err() {
                        continue;
                    }
                    let ratio = || -> Result<f64, String> {
                        let before = before.as_ref().map_err(Clone::clone)?;
                        let builds = built[place].as_ref().map_err(Clone::clone)?;
                        let now = lab.time(target, variant, builds, round == 0, None)?;
                        Ok(target.ratio(&before.seconds, &now.seconds))
                    };
                    match ratio() {
                        Ok(ratio) => of[place].iter_mut().for_each(|found| found.push(ratio)),
                        Err(why) => of[place] = Err(why),
                    }
                    if round == 0 {
                        bar.inc(1);
                    }
                }
            }
        }
        replayed += start.elapsed().as_secs_f64() / f64::from(rounds);
        for (found, all) in of.into_iter().zip(&mut all) {
            match (found, &mut *all) {
                (Ok(ratios), Ok(sums)) => {
                    for (ratio, sum) in ratios.into_iter().zip(sums) {
                        *sum += target.share * (ratio - 1.0);
                    }
                }
                (Err(why), Ok(_)) => *all = Err(format!("{}: {why}", target.name)),
                (_, Err(_)) => {}
            }
        }
    }
    bar.finish_and_clear();
    (all, replayed)
}

/// Seconds of the plain build, and those of each variant or why there are none.
type Measured = (f64, Vec<Result<f64, String>>);

fn measure(
    options: &Options,
    lab: &Lab,
    profile: &Profile,
    variants: &[Variant],
    rounds: u32,
) -> Result<Measured> {
    std::env::set_current_dir(&profile.directory)
        .with_context(|| format!("cannot go to {}", profile.directory.display()))?;
    let name = profile
        .command
        .first()
        .context("the profile names no program")?;
    let plain = program::locate(name)?;
    let image = Image::open(lab.store, lab.replays, &plain)?;
    let scratch = scratch(lab.store)?;
    let mut builds = vec![Build {
        name: "plain".into(),
        path: plain,
    }];
    let mut places = Vec::new();
    let bar = progress::bar("building", variants.len() as u64);
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
            Err(error) => Err(print::error(&error)),
        });
        bar.inc(1);
    }
    bar.finish_and_clear();
    let mut trial = Trial::new(&profile.command, None, &options.ignore, NUMBERS)?;
    let shown = trial.run(&builds, rounds)?;
    let seconds = |place: usize| middle(&shown[place].seconds);
    let found = places.into_iter().map(|place| {
        let place = place?;
        match &shown[place].differs {
            Some(why) => Err(format!("its output is another: {why}")),
            None => Ok(seconds(place)),
        }
    });
    Ok((seconds(0), found.collect()))
}

fn table(
    plain: f64,
    targets: &[Target],
    variants: &[Variant],
    ratios: Ratios,
    measured: Option<Measured>,
    replayed: f64,
) -> Flags {
    let real = measured.as_ref().map(|m| &m.1);
    let rows: Vec<Row> = variants
        .iter()
        .zip(ratios)
        .enumerate()
        .map(|(place, (variant, ratios))| {
            let own = real.map(|m| &m[place]);
            let failed = ratios.as_ref().err().cloned();
            let seconds = |ratios: &Vec<f64>| plain * middle(ratios);
            let range = |ratios: Vec<f64>| {
                let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
                let most = ratios.iter().copied().fold(0.0, f64::max);
                (plain * least, plain * most)
            };
            Row {
                flags: variant.to_string(),
                predicted_seconds: ratios.as_ref().ok().map(seconds),
                measured_seconds: own.and_then(|m| m.as_ref().ok().copied()),
                reason: failed.or_else(|| own.and_then(|m| m.as_ref().err().cloned())),
                range: ratios.ok().map(range),
            }
        })
        .collect();
    let both = rows
        .iter()
        .filter_map(|r| Some((r.predicted_seconds?, r.measured_seconds?)));
    let (predicted, seconds): (Vec<f64>, Vec<f64>) = both.unzip();
    let errors: Vec<f64> = predicted
        .iter()
        .zip(&seconds)
        .map(|(p, m)| (p / m - 1.0).abs())
        .collect();
    let ran: f64 = seconds.iter().sum();
    Flags {
        plain_seconds: plain,
        measured: measured.is_some(),
        covered: targets.iter().map(|t| t.share).sum(),
        accuracy: (!errors.is_empty())
            .then(|| 1.0 - errors.iter().sum::<f64>() / errors.len() as f64),
        rank_correlation: spearman(&predicted, &seconds),
        reduction: (ran > 0.0 && replayed > 0.0).then(|| ran / replayed),
        rows,
    }
}

fn text(found: &Flags) -> String {
    let time = |s: Option<f64>| s.map_or("-".to_owned(), print::time);
    let row = |r: &Row| {
        let error = r
            .predicted_seconds
            .zip(r.measured_seconds)
            .map(|(p, m)| p / m - 1.0);
        vec![
            r.flags.clone(),
            time(r.predicted_seconds),
            time(r.measured_seconds),
            error.map_or("-".to_owned(), |e| format!("{:+.1} %", e * 100.0)),
            r.predicted_seconds.map_or("-".to_owned(), |p| {
                format!("{:.3}", found.plain_seconds / p)
            }),
            r.reason.clone().unwrap_or_default(),
        ]
    };
    let heading = ["flags", "predicted", "measured", "error", "gain", "<"];
    let mut text = print::table(&heading, &found.rows.iter().map(row).collect::<Vec<_>>());
    let of = match found.measured {
        true => "measured beside them",
        false => "as profiled",
    };
    text.push_str(&format!(
        "\nas built: {} ({of}), {:.1} % of it in regions that are replayed\n",
        print::time(found.plain_seconds),
        found.covered * 100.0
    ));
    if let Some(accuracy) = found.accuracy {
        text.push_str(&format!("accuracy {:.1} %", accuracy * 100.0));
        if let Some(rank) = found.rank_correlation {
            text.push_str(&format!(", rank correlation {rank:.2}"));
        }
        if let Some(reduction) = found.reduction {
            let times = print::times(reduction);
            text.push_str(&format!("; a round of replays takes {times} than the runs"));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_flags() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("list");
        let of = |text: &str| {
            std::fs::write(&file, text).unwrap();
            read(&file)
        };
        let found = of("# levels\n-O2\n\n-O1 [default<O1>]\n").unwrap();
        assert_eq!(found[0].flags, ["-O2"]);
        assert_eq!(found[1].passes.as_deref(), Some("default<O1>"));
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

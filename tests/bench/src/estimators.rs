//! Which estimator compares two subjects best: bias, width and error rates of each candidate on modelled and recorded noise.

use crate::program::least;
use anyhow::{Context, Result};
use cere_measure::decide::{Answer, Rule};
use cere_testing::noise::{Machine, Noise};
use cere_timing::stats::{Series, median, round};
use std::time::Instant;

/// Experiments for each cell of the table.
const TIMES: u64 = 4000;
/// Rounds of a comparison.
const ROUNDS: [usize; 3] = [7, 14, 21];
/// The true ratio of the variant's time to the baseline's.
const TRUTH: f64 = 0.9;
/// Recorded series of one and the same work, one number a line.
const SERIES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/series");

/// A candidate: the times of the baseline and of the variant, and the ratios of neighbours.
type Estimator = fn(&[f64], &[f64], &[f64]) -> f64;

fn quantile(values: &[f64], share: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[(share * values.len() as f64) as usize]
}

/// Median of the means of all pairs of logarithms (Hodges and Lehmann 1963).
fn hodges_lehmann(ratios: &[f64]) -> f64 {
    let logs: Vec<f64> = ratios.iter().map(|r| r.ln()).collect();
    let mut means = Vec::new();
    for (i, a) in logs.iter().enumerate() {
        means.extend(logs[i..].iter().map(|b| (a + b) / 2.0));
    }
    median(&means).unwrap_or(f64::NAN).exp()
}

/// Mean without the lowest and the highest fifth.
fn trimmed(ratios: &[f64]) -> f64 {
    let mut ratios = ratios.to_vec();
    ratios.sort_by(f64::total_cmp);
    let cut = ratios.len() / 5;
    let kept = &ratios[cut..ratios.len() - cut];
    kept.iter().sum::<f64>() / kept.len() as f64
}

const CANDIDATES: [(&str, Estimator); 7] = [
    ("minimum / minimum", |a, b, _| least(b) / least(a)),
    ("20 % quantiles", |a, b, _| {
        quantile(b, 0.2) / quantile(a, 0.2)
    }),
    ("median / median", |a, b, _| {
        median(b).unwrap_or(f64::NAN) / median(a).unwrap_or(f64::NAN)
    }),
    ("mean of neighbours' ratios", |_, _, r| {
        r.iter().sum::<f64>() / r.len() as f64
    }),
    ("trimmed mean of neighbours' ratios", |_, _, r| trimmed(r)),
    ("Hodges-Lehmann of neighbours' ratios", |_, _, r| {
        hodges_lehmann(r)
    }),
    ("median of neighbours' ratios", |_, _, r| {
        median(r).unwrap_or(f64::NAN)
    }),
];

/// One comparison: baseline and variant in turns.
fn comparison(machine: &mut Machine, rounds: usize) -> Series {
    let mut series = Series::default();
    let mut sample = |subject: usize| {
        let own = if subject == 0 { 1.0 } else { TRUTH };
        series.add(subject, vec![own * machine.factor()]);
    };
    for number in 0..rounds {
        round(&[1], 1, number).into_iter().for_each(&mut sample);
    }
    sample(0);
    series
}

/// Bias of each candidate, and half the width of the range of 95 % of its values, in per cent of the truth.
fn errors(noise: &Noise, rounds: usize) -> Vec<(f64, f64)> {
    let mut found = vec![Vec::new(); CANDIDATES.len()];
    for seed in 0..TIMES {
        let series = comparison(&mut Machine::new(noise.clone(), seed), rounds);
        let (base, own) = (series.times(0, 0), series.times(1, 0));
        let ratios = series.part_ratios(1, 0);
        for ((_, estimate), found) in CANDIDATES.iter().zip(&mut found) {
            found.push(estimate(&base, &own, &ratios) / TRUTH - 1.0);
        }
    }
    let of = |errors: &Vec<f64>| {
        let bias = errors.iter().sum::<f64>() / errors.len() as f64;
        let width = (quantile(errors, 0.975) - quantile(errors, 0.025)) / 2.0;
        (bias * 100.0, width * 100.0)
    };
    found.iter().map(of).collect()
}

/// The recorded series by name, each over its median.
fn recorded() -> Result<Vec<(String, Noise)>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(SERIES).with_context(|| format!("cannot read {SERIES}"))? {
        let path = entry?.path();
        let text = std::fs::read_to_string(&path)?;
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let times: Vec<f64> = lines.map(str::parse).collect::<Result<_, _>>()?;
        let usual = median(&times).unwrap_or(f64::NAN);
        let series = times.iter().map(|time| time / usual).collect();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        all.push((name.into_owned(), Noise::Recorded(series)));
    }
    all.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(all)
}

/// Share of comparisons in which one of `rivals` with this true ratio is accepted as faster.
fn believed(rule: &Rule, rivals: usize, truth: f64, noise: &Noise) -> f64 {
    let one = |machine: &mut Machine| {
        let mut series = Series::default();
        for number in 0.. {
            for subject in round(&[1], 1, number) {
                let own = if subject == 0 { 1.0 } else { truth };
                series.add(subject, vec![own * machine.factor()]);
            }
            match rule.look(&series.part_ratios(1, 0)) {
                Answer::Faster(_) => return true,
                Answer::NotFaster(_) => return false,
                Answer::Open => {}
            }
        }
        false
    };
    let any = |seed: &u64| {
        let mut machine = Machine::new(noise.clone(), *seed);
        (0..rivals).any(|_| one(&mut machine))
    };
    (0..TIMES).filter(any).count() as f64 / TIMES as f64
}

/// How often decisions are wrong without a gain, and right with one.
fn decisions(all: &[(String, Noise)]) {
    let rules = [
        ("four finalists, no gain", Rule::for_rivals(), 4, 1.0),
        ("finalist, 2 % gain", Rule::for_rivals(), 1, 0.98),
        ("finalist, 5 % gain", Rule::for_rivals(), 1, 0.95),
        ("program, 9 rounds, no gain", Rule::for_program(9), 1, 1.0),
        ("program, 9 rounds, 2 % gain", Rule::for_program(9), 1, 0.98),
        ("program, 3 rounds, no gain", Rule::for_program(3), 1, 1.0),
        ("program, 3 rounds, 2 % gain", Rule::for_program(3), 1, 0.98),
        ("program, 3 rounds, 5 % gain", Rule::for_program(3), 1, 0.95),
    ];
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    println!("Share of {TIMES} comparisons in which a gain is believed, in per cent.\n");
    println!("| decision | {} |", names.join(" | "));
    println!("|---|{}", "--:|".repeat(all.len()));
    for (name, rule, rivals, truth) in rules {
        let cell = |(_, noise): &(String, Noise)| {
            format!("{:.1}", 100.0 * believed(&rule, rivals, truth, noise))
        };
        let cells: Vec<String> = all.iter().map(cell).collect();
        println!("| {name} | {} |", cells.join(" | "));
    }
    println!();
}

/// Prints the tables.
pub fn run() -> Result<()> {
    let modelled = [
        ("steady", Noise::Steady),
        ("two speeds", Noise::TwoSpeeds),
        ("bursts", Noise::Bursts),
        ("drift", Noise::Drift),
        ("all three", Noise::All),
    ];
    let mut all: Vec<(String, Noise)> = Vec::new();
    all.extend(modelled.map(|(name, noise)| (name.to_owned(), noise)));
    all.extend(recorded()?);
    println!(
        "### Estimators\n\nBias and, behind it, the half width that holds 95 % of {TIMES} comparisons, both in per cent of the true ratio ({TRUTH}).\n"
    );
    for rounds in ROUNDS {
        let found: Vec<_> = all.iter().map(|(_, noise)| errors(noise, rounds)).collect();
        let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
        println!("| {rounds} rounds | {} |", names.join(" | "));
        println!("|---|{}", "--:|".repeat(all.len()));
        for (place, (name, _)) in CANDIDATES.iter().enumerate() {
            let cell = |of: &Vec<(f64, f64)>| format!("{:+.2} ± {:.2}", of[place].0, of[place].1);
            let cells: Vec<String> = found.iter().map(cell).collect();
            println!("| {name} | {} |", cells.join(" | "));
        }
        println!();
    }
    decisions(&all);
    Ok(())
}

/// Writes a series of this machine: times of one and the same work of about 5 ms, for `seconds`.
pub fn record(name: &str, machine: &str, seconds: f64) -> Result<()> {
    /// Steps of the work, about 5 ms.
    const STEPS: usize = 2_000_000;
    let mut text = format!("# Seconds of one and the same work, one after the other. {machine}\n");
    let start = Instant::now();
    let mut values = vec![1.0f64; 4096];
    while start.elapsed().as_secs_f64() < seconds {
        let begin = Instant::now();
        for step in 0..STEPS {
            let at = step % values.len();
            values[at] = values[at].mul_add(0.999_999, 1e-6);
        }
        std::hint::black_box(&values);
        text.push_str(&format!("{:.7}\n", begin.elapsed().as_secs_f64()));
    }
    let path = format!("{SERIES}/{name}.csv");
    std::fs::create_dir_all(SERIES)?;
    std::fs::write(&path, text).with_context(|| format!("cannot write {path}"))
}

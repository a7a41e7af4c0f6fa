//! A genetic algorithm that chooses some of many, as bits: R's genalg, `rbga.bin` (CERE thesis, 4.3.3).

use crate::point::ClusterError;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::collections::HashMap;
use std::panic::resume_unwind;
use std::thread::{available_parallelism, scope};

/// How to search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Genetic {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Individuals of a generation, at least 2.
    pub population: usize,
    /// Generations, at least 1.
    pub generations: usize,
    /// Probability that a bit of a child flips.
    pub mutation: f64,
    /// Share of the best that live on unchanged; the best one always does.
    pub elite: f64,
    /// Probability that a bit of the first generation is set.
    pub ones: f64,
}

/// The thesis's population, generations and mutation; genalg's elite of a fifth, and one bit in eleven set at first (its
/// `zeroToOneRatio` of 10).
impl Default for Genetic {
    fn default() -> Self {
        Self {
            seed: 1,
            population: 1000,
            generations: 100,
            mutation: 0.01,
            elite: 0.2,
            ones: 1.0 / 11.0,
        }
    }
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Evolved {
    /// The best individual.
    pub bits: Vec<bool>,
    /// Its fitness.
    pub fitness: f64,
    /// The generation in which it was found, from 0.
    pub generation: usize,
    /// Individuals whose fitness was computed; equal ones count once.
    pub evaluations: usize,
    /// Best fitness of each generation.
    pub history: Vec<f64>,
}

/// Searches for the `bits` bits with the least `fitness`; what is not finite is the worst. Equal individuals are evaluated once,
/// new ones on all processors. The result depends on the settings and `fitness` alone, not on the number of threads, so
/// `fitness` must give the same for the same bits.
///
/// # Errors
/// There are no bits, or fewer than two individuals; a probability or share is not from 0 to 1.
///
/// # Panics
/// `fitness` does.
pub fn genetic(
    bits: usize,
    settings: &Genetic,
    fitness: impl Fn(&[bool]) -> f64 + Sync,
) -> Result<Evolved, ClusterError> {
    let threads = available_parallelism().map_or(1, usize::from);
    search(bits, settings, threads, &fitness)
}

fn search(
    bits: usize,
    settings: &Genetic,
    threads: usize,
    fitness: &(impl Fn(&[bool]) -> f64 + Sync),
) -> Result<Evolved, ClusterError> {
    if bits == 0 || settings.population < 2 {
        return Err(ClusterError::Population {
            bits,
            population: settings.population,
        });
    }
    for (what, value) in [
        ("mutation", settings.mutation),
        ("elite", settings.elite),
        ("share of ones", settings.ones),
    ] {
        if !(0.0..=1.0).contains(&value) {
            return Err(ClusterError::Share { what, value });
        }
    }
    let mut random = Xoshiro256PlusPlus::seed_from_u64(settings.seed);
    let mut known: HashMap<Vec<bool>, f64> = HashMap::new();
    let mut population: Vec<Vec<bool>> = (0..settings.population)
        .map(|_| {
            (0..bits)
                .map(|_| random.random_bool(settings.ones))
                .collect()
        })
        .collect();
    let mut best: Option<(f64, Vec<bool>, usize)> = None;
    let mut history = Vec::new();
    for generation in 0..settings.generations.max(1) {
        evaluate(&population, &mut known, threads, fitness);
        // A stable sort: of equal ones the earlier comes first.
        population.sort_by(|a, b| known[a].total_cmp(&known[b]));
        let first = known[&population[0]];
        history.push(first);
        if best.as_ref().is_none_or(|b| first < b.0) {
            best = Some((first, population[0].clone(), generation));
        }
        if generation + 1 < settings.generations {
            population = next(&population, settings, &mut random);
        }
    }
    let (fitness, bits, generation) = best.ok_or(ClusterError::NoPoints)?;
    Ok(Evolved {
        bits,
        fitness,
        generation,
        evaluations: known.len(),
        history,
    })
}

/// Computes the fitness of the individuals that have none yet.
fn evaluate(
    population: &[Vec<bool>],
    known: &mut HashMap<Vec<bool>, f64>,
    threads: usize,
    fitness: &(impl Fn(&[bool]) -> f64 + Sync),
) {
    let mut new: Vec<&Vec<bool>> = population
        .iter()
        .filter(|i| !known.contains_key(*i))
        .collect();
    new.sort();
    new.dedup();
    let part = new.len().div_ceil(threads).max(1);
    let found: Vec<f64> = scope(|scope| {
        let of = |part: &[&Vec<bool>]| -> Vec<f64> {
            let finite = |f: f64| if f.is_finite() { f } else { f64::INFINITY };
            part.iter().map(|bits| finite(fitness(bits))).collect()
        };
        let workers: Vec<_> = new
            .chunks(part)
            .map(|part| scope.spawn(move || of(part)))
            .collect();
        let all = workers.into_iter();
        all.flat_map(|w| w.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    });
    for (individual, fitness) in new.into_iter().zip(found) {
        known.insert(individual.clone(), fitness);
    }
}

/// The next generation of a sorted one: the elite, and children of two parents crossed over at one point. As in genalg, a normal
/// distribution over the ranks, with a third of them as its deviation, draws the parents. Unlike there a mutated bit flips, it is
/// not drawn anew: that would set bits ten times rarer than clear them, and settles sooner, for a fitness that is never better
/// (six searches for 6 metrics among 70 of noise: up to 11 % worse).
fn next(
    sorted: &[Vec<bool>],
    settings: &Genetic,
    random: &mut Xoshiro256PlusPlus,
) -> Vec<Vec<bool>> {
    let size = sorted.len();
    let elite = ((settings.elite * size as f64) as usize).clamp(1, size);
    let weight = |rank: usize| (-0.5 * (3.0 * rank as f64 / size as f64).powi(2)).exp();
    let mut sums = Vec::with_capacity(size);
    let mut sum = 0.0;
    for rank in 0..size {
        sum += weight(rank);
        sums.push(sum);
    }
    let mut children: Vec<Vec<bool>> = sorted[..elite].to_vec();
    while children.len() < size {
        let mut parent = || {
            let at = random.random_range(0.0..sum);
            &sorted[sums.partition_point(|s| *s <= at).min(size - 1)]
        };
        let (one, other) = (parent(), parent());
        let point = random.random_range(0..=one.len());
        let mut child = [&one[..point], &other[point..]].concat();
        for bit in &mut child {
            *bit ^= random.random_bool(settings.mutation);
        }
        children.push(child);
    }
    children
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Transform, elbow, medoids, variances, ward, z_scores};

    fn small() -> Genetic {
        Genetic {
            population: 60,
            generations: 60,
            mutation: 0.02,
            ..Genetic::default()
        }
    }

    #[test]
    fn a_known_set_is_found() {
        let wanted: Vec<bool> = (0..40).map(|bit| [3, 7, 21, 38].contains(&bit)).collect();
        let wrong = |bits: &[bool]| bits.iter().zip(&wanted).filter(|(a, b)| a != b).count() as f64;
        let found = genetic(40, &small(), wrong).unwrap();
        assert_eq!((found.bits.clone(), found.fitness), (wanted.clone(), 0.0));
        assert!(found.generation < 60 && found.history.len() == 60);
        assert!(found.history.windows(2).all(|w| w[1] <= w[0]));
        assert_eq!(found, genetic(40, &small(), wrong).unwrap());
        let other = Genetic { seed: 2, ..small() };
        assert_ne!(found.history, genetic(40, &other, wrong).unwrap().history);
        assert!(found.evaluations <= 60 * 60);
    }

    #[test]
    fn what_is_not_finite_is_the_worst() {
        let fitness = |bits: &[bool]| match bits.iter().filter(|b| **b).count() {
            0 => f64::NEG_INFINITY,
            1 => f64::NAN,
            count => count as f64,
        };
        let found = genetic(12, &small(), fitness).unwrap();
        assert_eq!(found.fitness, 2.0);
        let nothing = genetic(3, &small(), |_| f64::NAN).unwrap();
        assert_eq!(nothing.fitness, f64::INFINITY);
    }

    /// The whole method on 45 points of nine kinds with six metrics that tell kinds apart and 30 that are noise.
    #[test]
    fn noise_is_left_out() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(4);
        let mut noise = |most: f64| random.random_range(-most..most);
        let mut row = |kind: usize| -> Vec<f64> {
            let known = |metric: usize| ((kind * (metric + 3) * 7) % 11) as f64;
            let mut metric = |m| {
                if m < 6 {
                    known(m) + noise(0.3)
                } else {
                    noise(3.0)
                }
            };
            (0..36).map(&mut metric).collect()
        };
        let rows: Vec<Vec<f64>> = (0..45).map(|point| row(point % 9)).collect();
        let speed = |point: usize| 1.0 + 0.37 * (point % 9) as f64;
        let fitness = |bits: &[bool]| {
            let chosen = |row: &Vec<f64>| -> Vec<Option<f64>> {
                let each = row.iter().zip(bits).filter(|(_, bit)| **bit);
                each.map(|(value, _)| Some(*value)).collect()
            };
            let rows: Vec<_> = rows.iter().map(chosen).collect();
            let points = z_scores(&rows, Transform::None).unwrap().values;
            let tree = ward(&points).unwrap();
            let clusters = elbow(&variances(&points, &tree).unwrap());
            let labels = tree.cut(clusters).unwrap();
            let medoids = medoids(&points, &labels).unwrap();
            let error = |p: usize| (speed(medoids[labels[p]]) / speed(p) - 1.0).abs();
            // Without the 0.01 a set that makes no error would be as good with any number of clusters.
            ((0..45).map(error).sum::<f64>() / 45.0 + 0.01) * clusters as f64
        };
        let settings = Genetic {
            population: 200,
            generations: 40,
            ..Genetic::default()
        };
        let found = genetic(36, &settings, fitness).unwrap();
        assert!(
            found.bits[..6].contains(&true) && !found.bits[6..].contains(&true),
            "{found:?}"
        );
        assert!((found.fitness - 0.09).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn threads_change_nothing() {
        let ones = |bits: &[bool]| -(bits.iter().filter(|b| **b).count() as f64);
        let one = search(30, &small(), 1, &ones).unwrap();
        assert_eq!((one.fitness, one.bits.clone()), (-30.0, vec![true; 30]));
        for threads in [2, 3, 64] {
            assert_eq!(search(30, &small(), threads, &ones).unwrap(), one);
        }
    }

    #[test]
    fn equal_individuals_are_evaluated_once() {
        let calls = std::sync::atomic::AtomicUsize::new(0);
        let count = |_: &[bool]| calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) as f64;
        let found = genetic(3, &small(), count).unwrap();
        assert!(found.evaluations <= 8);
        assert_eq!(found.evaluations, calls.into_inner());
    }

    #[test]
    fn settings_without_a_search() {
        assert!(genetic(0, &small(), |_| 0.0).is_err());
        let one = Genetic {
            population: 1,
            ..small()
        };
        assert!(genetic(4, &one, |_| 0.0).is_err());
        for wrong in [-0.1, 1.1, f64::NAN] {
            let ones = Genetic {
                ones: wrong,
                ..small()
            };
            let mutation = Genetic {
                mutation: wrong,
                ..small()
            };
            let elite = Genetic {
                elite: wrong,
                ..small()
            };
            for settings in [ones, mutation, elite] {
                let error = genetic(4, &settings, |_| 0.0).unwrap_err().to_string();
                assert!(error.ends_with("must be from 0 to 1"), "{error}");
            }
        }
        let once = Genetic {
            generations: 0,
            ..small()
        };
        assert_eq!(genetic(4, &once, |_| 0.0).unwrap().history.len(), 1);
    }
}

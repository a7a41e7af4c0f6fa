//! Finds the fastest of many variants whose single times are noisy.

use crate::stats::median;

/// Rounds of a heat.
const ROUNDS: usize = 2;

/// The `left` fastest of the runners, the fastest first; fewer if runners fail. `time` times the given runners once and returns
/// each one's time over that of the code as built, or `None` if it failed. All run in the first heat. After each heat the
/// slower half leaves, by the medians over all heats (successive halving; Karnin, Koren and Somekh 2013). So most of the time
/// goes to runners between which it is hard to choose.
pub fn race<E>(
    runners: usize,
    left: usize,
    mut time: impl FnMut(&[usize]) -> Result<Vec<Option<f64>>, E>,
) -> Result<Vec<usize>, E> {
    let mut running: Vec<usize> = (0..runners).collect();
    let mut ratios = vec![Vec::new(); runners];
    while running.len() > 1 {
        for _ in 0..ROUNDS {
            let told = time(&running)?;
            let failed: Vec<bool> = told.iter().map(Option::is_none).collect();
            for (place, ratio) in running.iter().zip(told) {
                ratios[*place].extend(ratio);
            }
            let mut failed = failed.into_iter();
            running.retain(|_| !failed.next().unwrap_or(true));
        }
        // Without ratios it sorts last.
        let ratio = |at: usize| median(&ratios[at]).unwrap_or(f64::INFINITY);
        running.sort_by(|a, b| ratio(*a).total_cmp(&ratio(*b)));
        if running.len() <= left {
            break;
        }
        running.truncate((running.len() / 2).max(left));
    }
    Ok(running)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};
    use std::convert::Infallible;

    fn always(ratios: &[Option<f64>], left: usize) -> Result<(Vec<usize>, Vec<usize>), Infallible> {
        let mut heats = Vec::new();
        let found = race(ratios.len(), left, |running| {
            heats.push(running.len());
            Ok::<_, Infallible>(running.iter().map(|r| ratios[*r]).collect())
        })?;
        Ok((found, heats))
    }

    #[test]
    fn the_slower_half_leaves() {
        let ratios: Vec<Option<f64>> = (0..9).map(|i| Some(2.0 - 0.1 * f64::from(i))).collect();
        let (found, heats) = always(&ratios, 2).unwrap();
        assert_eq!(found, [8, 7]);
        assert_eq!(heats, [9, 9, 4, 4, 2, 2]);
    }

    #[test]
    fn who_fails_leaves() {
        let (found, _) = always(&[Some(0.9), None, Some(0.8), None], 4).unwrap();
        assert_eq!(found, [2, 0]);
        assert_eq!(always(&[None, None], 4).unwrap().0, [0; 0]);
    }

    #[test]
    fn nobody_to_race() {
        assert_eq!(always(&[], 4).unwrap(), (vec![], vec![]));
        assert_eq!(always(&[None], 4).unwrap(), (vec![0], vec![]));
    }

    #[test]
    fn what_cannot_be_timed_ends_it() {
        assert_eq!(race(3, 1, |_| Err("no")), Err("no"));
    }

    /// One of 12 takes 0.9 and the others 1, times 0.8 to 1.25.
    #[test]
    fn luck_does_not_last() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let mut noisy = |place: &usize| {
            let truth = if *place == 7 { 0.9 } else { 1.0 };
            truth * (0.8 + 0.45 * rng.random::<f64>())
        };
        let (mut once, mut raced) = (0, 0);
        for _ in 0..500 {
            let mut luck: Vec<(f64, usize)> = (0..12).map(|place| (noisy(&place), place)).collect();
            luck.sort_by(|a, b| a.0.total_cmp(&b.0));
            once += usize::from(luck[0].1 == 7);
            let found = race(12, 4, |running: &[usize]| {
                Ok::<_, Infallible>(running.iter().map(|place| Some(noisy(place))).collect())
            })
            .unwrap();
            raced += usize::from(found[0] == 7);
        }
        assert!(2 * raced > 3 * once, "{once} and {raced} of 500");
    }
}

//! Choices that break code: a compiler has options that few use, and some of them miscompile, now and then.

use crate::{Space, Variant};

/// Of a choice that breaks nothing, as many failures as that would be seen with this probability at most.
const CHANCE: f64 = 1e-4;

/// A choice with which variants fail more often than by chance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspect {
    /// Its flags.
    pub choice: Vec<String>,
    /// Variants with it that failed.
    pub failed: usize,
    /// Variants with it.
    pub tried: usize,
    /// Variants without it that failed, but for those with a suspect told before.
    pub failed_without: usize,
    /// Variants without it, likewise.
    pub tried_without: usize,
}

impl Suspect {
    /// Whether `variant` has the choice.
    pub fn is_in(&self, variant: &Variant) -> bool {
        has(variant, &self.choice)
    }
}

fn has(variant: &Variant, choice: &[String]) -> bool {
    variant.flags.windows(choice.len()).any(|w| w == choice)
}

/// What came of the variants of one region.
#[derive(Debug, Clone, Copy)]
pub struct Outcomes<'a> {
    /// Variants that were measured, each with a code of its own.
    pub right: &'a [Variant],
    /// Likewise, those that failed.
    pub failed: &'a [Variant],
}

/// The choices of `space` with which variants failed more often than without (Fisher's exact test, one-sided), in one of the
/// regions or in all of them together, the surest first; what one of them explains is no evidence against another. Levels are
/// none, for everybody uses them, nor is what may change values, for what that does depends on the region.
pub fn suspects(space: &Space, regions: &[Outcomes]) -> Vec<Suspect> {
    let groups = space.groups.iter();
    let groups = groups.filter(|g| g.name != "level" && !g.changes_values);
    let choices: Vec<&[String]> = groups.flat_map(|g| &g.choices).map(Vec::as_slice).collect();
    let mut pools: Vec<Pool> = regions.iter().map(Pool::of).collect();
    pools.push(Pool(pools.iter().flat_map(|p| p.0.clone()).collect()));
    let mut found = Vec::new();
    loop {
        let tests = pools
            .iter()
            .flat_map(|pool| choices.iter().map(|choice| pool.test(choice)));
        let Some((_, suspect)) = tests
            .filter(|(chance, _)| *chance < CHANCE)
            .min_by(|a, b| a.0.total_cmp(&b.0))
        else {
            return found;
        };
        for pool in &mut pools {
            pool.0.retain(|(variant, _)| !suspect.is_in(variant));
        }
        found.push(suspect);
    }
}

/// Variants, and whether they failed.
struct Pool<'a>(Vec<(&'a Variant, bool)>);

impl<'a> Pool<'a> {
    fn of(outcomes: &Outcomes<'a>) -> Self {
        let right = outcomes.right.iter().map(|v| (v, false));
        let failed = outcomes.failed.iter().map(|v| (v, true));
        Self(right.chain(failed).collect())
    }

    /// What tells against `choice`, and the probability that chance does.
    fn test(&self, choice: &[String]) -> (f64, Suspect) {
        let fails = self.0.iter().filter(|v| v.1).count();
        let with = self.0.iter().filter(|v| has(v.0, choice));
        let (tried, failed) = with.fold((0, 0), |(n, f), v| (n + 1, f + usize::from(v.1)));
        let suspect = Suspect {
            choice: choice.to_vec(),
            failed,
            tried,
            failed_without: fails - failed,
            tried_without: self.0.len() - tried,
        };
        (by_chance(failed, tried, fails, self.0.len()), suspect)
    }
}

/// Probability that `failed` or more of `tried`, drawn from `all` of which `fails` failed, are failures.
fn by_chance(failed: usize, tried: usize, fails: usize, all: usize) -> f64 {
    let mut logs = vec![0.0; all + 1];
    for n in 1..=all {
        logs[n] = logs[n - 1] + (n as f64).ln();
    }
    let choose = |n: usize, k: usize| logs[n] - logs[k] - logs[n - k];
    let least = failed.max((tried + fails).saturating_sub(all));
    let ways = (least..=tried.min(fails))
        .map(|k| choose(fails, k) + choose(all - fails, tried - k) - choose(all, tried));
    ways.map(f64::exp).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space() -> Space {
        Space::parse(
            "
            [[group]]
            name = \"level\"
            choices = [\"-O1\", \"-O2\"]
            [[group]]
            name = \"order\"
            choices = [\"-mllvm -bad\", \"-mllvm -good\"]
            [[group]]
            name = \"width\"
            choices = [\"-narrow\", \"-wide\"]
            ",
        )
        .unwrap()
    }

    fn variant(text: &str) -> Variant {
        Variant {
            flags: text.split_whitespace().map(str::to_owned).collect(),
            passes: None,
        }
    }

    fn of(right: &[Variant], failed: &[Variant]) -> Vec<Suspect> {
        suspects(&space(), &[Outcomes { right, failed }])
    }

    #[test]
    fn probabilities() {
        // 4 red of 10; of 3 drawn, 2 or more are red: (6 * 6 + 4) / 120.
        assert!((by_chance(2, 3, 4, 10) - 40.0 / 120.0).abs() < 1e-12);
        assert!((by_chance(0, 3, 4, 10) - 1.0).abs() < 1e-12);
        assert!((by_chance(3, 9, 4, 10) - 1.0).abs() < 1e-12);
        assert_eq!(by_chance(0, 0, 0, 0), 1.0);
    }

    /// What fails has the wide flag too, but fails for the bad one.
    #[test]
    fn one_culprit() {
        let mut right: Vec<Variant> = (0..40)
            .map(|n| variant(["-O1 -mllvm -good -wide", "-O2 -narrow", "-wide"][n % 3]))
            .collect();
        right.push(variant("-mllvm -bad -narrow"));
        let failed = vec![variant("-O1 -mllvm -bad -wide"); 6];
        let found = of(&right, &failed);
        assert_eq!(found.len(), 1, "{found:?}");
        let suspect = &found[0];
        assert_eq!(suspect.choice, ["-mllvm", "-bad"]);
        assert_eq!((suspect.failed, suspect.tried), (6, 7));
        assert_eq!((suspect.failed_without, suspect.tried_without), (0, 40));
        assert!(suspect.is_in(&failed[0]) && !suspect.is_in(&right[0]));
    }

    #[test]
    fn no_culprit() {
        let right = vec![variant("-mllvm -good"); 30];
        assert!(of(&right, &[]).is_empty());
        assert!(of(&[], &right).is_empty());
        // A level that the codelet cannot follow.
        let failed = vec![variant("-O1"); 20];
        assert!(of(&right, &failed).is_empty());
        // Once is no evidence.
        assert!(of(&right, &[variant("-mllvm -bad")]).is_empty());
    }

    /// Some failures in each region, or all of one region's and none of another's.
    #[test]
    fn several_regions() {
        let mut right = vec![variant("-mllvm -good"); 30];
        right.extend(vec![variant("-mllvm -bad -wide"); 4]);
        let failed = vec![variant("-mllvm -bad"); 2];
        let one = Outcomes {
            right: &right,
            failed: &failed,
        };
        assert!(suspects(&space(), &[one]).is_empty());
        let found = suspects(&space(), &[one; 4]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].failed, found[0].tried), (8, 24));
        let (fine, broken) = (
            vec![variant("-wide"); 20],
            vec![variant("-wide -mllvm -good"); 20],
        );
        let other = Outcomes {
            right: &broken,
            failed: &[],
        };
        let one = Outcomes {
            right: &fine,
            failed: &broken,
        };
        let found = suspects(&space(), &[one, other]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].failed, found[0].tried), (20, 20));
    }
}

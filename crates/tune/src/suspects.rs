//! Choices that break code: rarely used compiler options sometimes miscompile.

use crate::Space;
use cere_timing::stats::fisher;
use cere_toolchain::Variant;

/// Significance level: the maximum probability of so many failures for a choice that breaks nothing.
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
    /// Variants without it that failed, except those with a suspect reported before.
    pub failed_without: usize,
    /// Variants without it, likewise.
    pub tried_without: usize,
}

impl Suspect {
    /// Whether `variant` has the choice.
    pub fn is_in(&self, variant: &Variant) -> bool {
        has_choice(variant, &self.choice)
    }
}

fn has_choice(variant: &Variant, choice: &[String]) -> bool {
    variant.flags.windows(choice.len()).any(|w| w == choice)
}

/// A variant with machine code of its own in its region, and whether it failed.
pub type Outcome<'a> = (&'a Variant, bool);

/// The choices of `space` with which variants failed more often than without (Fisher's exact test, one-sided), in one region
/// or in all regions together, the most significant first. A failure that one suspect explains is no evidence against
/// another. Levels are never suspects because everybody uses them, nor are choices that may change values, whose effect
/// depends on the region.
pub fn suspects(space: &Space, mut regions: Vec<Vec<Outcome>>) -> Vec<Suspect> {
    let groups = space.groups.iter();
    let groups = groups.filter(|g| g.name != "level" && !g.changes_values);
    let choices: Vec<&[String]> = groups.flat_map(|g| &g.choices).map(Vec::as_slice).collect();
    regions.push(regions.concat());
    let mut pools = regions;
    let mut found = Vec::new();
    loop {
        let tests = pools
            .iter()
            .flat_map(|pool| choices.iter().map(|choice| test(pool, choice)));
        let Some((_, suspect)) = tests
            .filter(|(chance, _)| *chance < CHANCE)
            .min_by(|a, b| a.0.total_cmp(&b.0))
        else {
            return found;
        };
        for pool in &mut pools {
            pool.retain(|(variant, _)| !suspect.is_in(variant));
        }
        found.push(suspect);
    }
}

/// The evidence against `choice` in `pool`, and the probability that it is chance.
fn test(pool: &[Outcome], choice: &[String]) -> (f64, Suspect) {
    let fails = pool.iter().filter(|v| v.1).count();
    let with = pool.iter().filter(|v| has_choice(v.0, choice));
    let (tried, failed) = with.fold((0, 0), |(n, f), v| (n + 1, f + usize::from(v.1)));
    let suspect = Suspect {
        choice: choice.to_vec(),
        failed,
        tried,
        failed_without: fails - failed,
        tried_without: pool.len() - tried,
    };
    (fisher(failed, tried, fails, pool.len()), suspect)
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

    fn outcomes<'a>(right: &'a [Variant], failed: &'a [Variant]) -> Vec<Outcome<'a>> {
        let right = right.iter().map(|v| (v, false));
        right.chain(failed.iter().map(|v| (v, true))).collect()
    }

    fn of(right: &[Variant], failed: &[Variant]) -> Vec<Suspect> {
        suspects(&space(), vec![outcomes(right, failed)])
    }

    /// The failing variants have the wide flag too, but the bad one is the cause.
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
        // A single failure is no evidence.
        assert!(of(&right, &[variant("-mllvm -bad")]).is_empty());
    }

    /// Some failures in each region, or all of one region's and none of another's.
    #[test]
    fn several_regions() {
        let mut right = vec![variant("-mllvm -good"); 30];
        right.extend(vec![variant("-mllvm -bad -wide"); 4]);
        let failed = vec![variant("-mllvm -bad"); 2];
        assert!(of(&right, &failed).is_empty());
        let found = suspects(&space(), vec![outcomes(&right, &failed); 4]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].failed, found[0].tried), (8, 24));
        let (fine, broken) = (
            vec![variant("-wide"); 20],
            vec![variant("-wide -mllvm -good"); 20],
        );
        let regions = vec![outcomes(&fine, &broken), outcomes(&broken, &[])];
        let found = suspects(&space(), regions);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].failed, found[0].tried), (20, 20));
    }
}

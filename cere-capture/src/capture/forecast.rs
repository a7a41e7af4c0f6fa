//! What a capture will take, before it runs.

use super::choose::Choice;
use cere_format::profile::Profile;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A run that captures takes so many plain runs: the median of the tests of `docs/measured.md`, with page traces.
const CAPTURED: f64 = 1.5;
/// Seconds to make a package.
const PACKAGE: f64 = 0.01;

/// What a capture will take.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Forecast {
    /// Seconds of a run of the program.
    pub program_seconds: f64,
    /// Regions that are captured.
    pub regions: usize,
    /// Invocations that are captured.
    pub codelets: usize,
    /// Runs for that, of which the first may show that more are needed: blocks that stay in use are not known before.
    pub runs: usize,
    /// Seconds for that.
    pub seconds: f64,
}

impl Forecast {
    /// Of a run like `profile` in which `choices` are captured.
    pub(super) fn of(profile: &Profile, choices: &[Choice]) -> Self {
        let codelets = choices.iter().map(|c| c.invocations.len()).sum::<usize>();
        let runs = depth(profile, choices);
        Self {
            program_seconds: profile.seconds,
            regions: choices.len(),
            codelets,
            runs,
            seconds: runs as f64 * CAPTURED * profile.seconds + codelets as f64 * PACKAGE,
        }
    }
}

/// The most regions of `choices` that lie in one another, each of which takes a run.
fn depth(profile: &Profile, choices: &[Choice]) -> usize {
    let wanted: BTreeSet<_> = choices.iter().map(|c| &c.key).collect();
    let wanted = |region: usize| wanted.contains(&profile.regions[region].key);
    let around = |node: usize| {
        let mut regions = BTreeSet::new();
        let mut at = Some(node);
        while let Some(node) = at.and_then(|at| profile.tree.get(at)) {
            regions.extend(node.region.filter(|r| wanted(*r)));
            at = node.parent;
        }
        regions.len()
    };
    let deepest = (0..profile.tree.len()).map(around).max().unwrap_or(0);
    deepest.max(usize::from(!choices.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cere_testing::profile as fixture;

    #[test]
    fn regions_in_one_another_take_a_run_each() {
        let profile = fixture::profile(&[
            ("outer", None, 0.5, 1e9),
            ("inner", Some(0), 0.3, 1e9),
            ("beside", None, 0.2, 1e9),
        ]);
        let choice = |place: usize, invocations: u64| Choice {
            name: profile.regions[place].name.clone(),
            key: profile.regions[place].key.clone(),
            thread: 0,
            named: false,
            invocations: (1..=invocations).map(|i| (i, None)).collect(),
        };
        let of = |choices: &[Choice]| {
            let found = Forecast::of(&profile, choices);
            (found.regions, found.codelets, found.runs)
        };
        assert_eq!(of(&[]), (0, 0, 0));
        assert_eq!(of(&[choice(0, 1), choice(2, 3)]), (2, 4, 1));
        assert_eq!(of(&[choice(0, 1), choice(1, 1), choice(2, 3)]), (3, 5, 2));
    }
}

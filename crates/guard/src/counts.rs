//! Counts of a side, and which of them grew.

use cere_count::{Counts, Settings};
use cere_measure::sides::Side;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Accesses that are simulated, at most; of codelets with more, a sample of the cache lines.
pub const BUDGET: u64 = 200_000_000;

/// Counts by name, summed over the codelets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Counted(pub BTreeMap<String, u64>);

/// A count that grew.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Growth {
    /// Its name.
    pub what: String,
    /// Of the baseline.
    pub before: u64,
    /// Now.
    pub now: u64,
}

impl Growth {
    /// In per cent; infinite from nothing.
    pub fn percent(&self) -> f64 {
        100.0 * (self.now as f64 / self.before as f64 - 1.0)
    }
}

const INSTRUCTIONS: &str = "instructions";
/// What ends the names of counts of bytes.
const BYTES: &str = "bytes";

/// Instructions of which one more is no growth of any count, and for counts of bytes so many more as a word has.
const SMALL: u64 = 1000;
const WORD: u64 = 8;

impl Counted {
    fn add(&mut self, counts: &Counts) {
        let mut add = |name: &str, number: u64| {
            let sum = self.0.entry(name.to_owned()).or_default();
            *sum = sum.saturating_add(number);
        };
        add(INSTRUCTIONS, counts.instructions);
        add("loads", counts.memory.loads);
        add("stores", counts.memory.stores);
        add("branches", counts.branches);
        add("flops", counts.flops.total);
        if let Some(found) = &counts.simulation {
            for level in &found.levels {
                add(&format!("{} {BYTES}", level.name), level.bytes);
            }
            add(
                &format!("memory {BYTES}"),
                found.memory_read.saturating_add(found.memory_written),
            );
        }
    }

    /// Of all codelets of `side`; the error says why there are none.
    pub fn of(side: &Side, settings: &Settings) -> Result<Self, String> {
        let mut all = Self::default();
        for part in &side.parts {
            let counts = cere_count::count(&part.member.package, settings, &part.options)
                .map_err(|error| cere_system::console::print::error(&error.into()))?;
            all.add(&counts);
        }
        Ok(all)
    }

    /// The counts of `now` that are more than `percent` above these. Growth by less than a thousandth of the instructions is none:
    /// a store more is much of a count of three.
    pub fn grown(&self, now: &Self, percent: f64) -> Vec<Growth> {
        let instructions = self.0.get(INSTRUCTIONS).copied().unwrap_or(0);
        let each = now.0.iter().filter_map(|(what, &now)| {
            let before = *self.0.get(what)?;
            let unit = if what.ends_with(BYTES) { WORD } else { 1 };
            let counts = now.saturating_sub(before) > instructions / SMALL * unit;
            let above = now as f64 > before as f64 * (1.0 + percent / 100.0);
            (counts && above).then(|| Growth {
                what: what.clone(),
                before,
                now,
            })
        });
        each.collect()
    }

    /// Names of counts that both have, and that are not the same.
    pub fn differing(&self, other: &Self) -> Vec<String> {
        let differs =
            |(what, number): &(&String, &u64)| other.0.get(*what).is_some_and(|now| now != *number);
        let own = self.0.iter().filter(differs);
        own.map(|(what, _)| what.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(all: &[(&str, u64)]) -> Counted {
        Counted(all.iter().map(|(n, c)| ((*n).to_owned(), *c)).collect())
    }

    #[test]
    fn growth_is_by_share_and_of_some_size() {
        let base = counted(&[
            ("instructions", 100_000),
            ("stores", 3),
            ("memory bytes", 64_000),
        ]);
        let names = |now: &[(&str, u64)]| -> Vec<String> {
            let grown = base.grown(&counted(now), 1.0);
            grown.into_iter().map(|g| g.what).collect()
        };
        assert!(
            names(&[
                ("instructions", 101_000),
                ("stores", 9),
                ("memory bytes", 64_640)
            ])
            .is_empty()
        );
        assert_eq!(names(&[("instructions", 101_001)]), ["instructions"]);
        assert_eq!(names(&[("stores", 104)]), ["stores"]);
        assert_eq!(names(&[("memory bytes", 65_000)]), ["memory bytes"]);
        assert!(names(&[("instructions", 50_000)]).is_empty());
        let other = counted(&[("instructions", 100_000), ("stores", 4)]);
        assert_eq!(base.differing(&other), ["stores"]);
    }
}

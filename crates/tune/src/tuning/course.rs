//! The search of one region: proposals, outcomes, and the journal of both.

use super::journal::{Event, Journal, Told};
use super::spent::Spent;
use crate::{Outcome, Search, Variant};
use anyhow::{Result, anyhow};
use cere_measure::Target;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, VecDeque};
use std::path::Path;

/// Why a search ended before its budget.
pub const ALL_TRIED: &str = "all was tried";
/// Likewise.
pub const TARGET_REACHED: &str = "the target is reached";

/// Likewise.
pub const NOTHING_GAINS: &str = "nothing gains";

/// Outcomes with machine code of their own after which it is looked whether anything gains. The first proposals try each choice
/// of each group, so what helps alone is among them.
const LOOK_AFTER: usize = 25;
/// Variants that are then measured again.
const LOOK_AT: usize = 6;

/// A variant that failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// The variant.
    pub variant: Variant,
    /// The reason.
    pub reason: String,
    /// Whether the failure was that of another variant with the same machine code.
    pub same: bool,
}

/// The search of one region.
pub struct Course<'a> {
    /// Index of the region among all that are tuned.
    pub place: usize,
    /// The region.
    pub target: &'a Target,
    search: Search,
    journal: Journal,
    open: HashMap<u64, Variant>,
    /// Variants that were measured, with their ratios.
    pub ranked: Vec<(f64, Variant)>,
    /// Outcomes.
    pub told: u64,
    /// Of those, outcomes of earlier searches.
    pub earlier: u64,
    /// Of those, variants that were not measured because another variant has the same machine code.
    pub same: u64,
    /// Variants that failed.
    pub failed: Vec<Failure>,
    /// Whether it was looked whether anything gains.
    looked: bool,
    /// Why the search ended.
    pub ended: Option<&'static str>,
    /// Where the time went.
    pub spent: Spent,
    /// Proposals of an earlier run without an outcome.
    pub pending: VecDeque<u64>,
}

impl<'a> Course<'a> {
    /// Starts a search, or continues the one recorded in the file at `path`.
    pub fn begin(
        (place, target): (usize, &'a Target),
        search: Search,
        path: &Path,
    ) -> Result<Self> {
        let (journal, events) = Journal::open(path)?;
        let mut course = Self {
            place,
            target,
            search,
            journal,
            open: HashMap::new(),
            ranked: Vec::new(),
            told: 0,
            earlier: 0,
            same: 0,
            failed: Vec::new(),
            looked: false,
            ended: None,
            spent: Spent::default(),
            pending: VecDeque::new(),
        };
        course.resume(events)?;
        Ok(course)
    }

    fn resume(&mut self, events: Vec<Event>) -> Result<()> {
        for event in events {
            match event {
                Event::Proposed(number, variant) => match self.search.propose() {
                    Some((n, v)) if n == number && v == variant => {
                        self.open.insert(number, variant);
                        self.pending.push_back(number);
                    }
                    _ => {
                        return Err(anyhow!(
                            "the earlier search of {} was made by another version of cere: start again with --again",
                            self.target.name
                        ));
                    }
                },
                Event::Told(number, told) => {
                    self.pending.retain(|n| *n != number);
                    self.learn(number, told);
                }
            }
        }
        self.earlier = self.told;
        Ok(())
    }

    /// The next variant, if one can be proposed now.
    pub fn propose(&mut self) -> Result<Option<(u64, Variant)>> {
        let Some((number, variant)) = self.search.propose() else {
            return Ok(None);
        };
        self.open.insert(number, variant.clone());
        self.journal
            .add(&Event::Proposed(number, variant.clone()))?;
        Ok(Some((number, variant)))
    }

    /// A variant that was proposed; the one as built if it has an outcome.
    pub fn variant(&self, number: u64) -> Variant {
        self.open.get(&number).cloned().unwrap_or_default()
    }

    /// Whether this variant was proposed with this number and has no outcome.
    pub fn awaits(&self, number: u64, variant: &Variant) -> bool {
        self.open.get(&number) == Some(variant)
    }

    /// The variants with machine code of their own, and whether they failed.
    pub fn outcomes(&self) -> Vec<Outcome<'_>> {
        let failed = self.failed.iter().filter(|f| !f.same);
        let right = self.ranked.iter().map(|(_, variant)| (variant, false));
        right.chain(failed.map(|f| (&f.variant, true))).collect()
    }

    /// Weight for dividing the budget: the region's share of the run, with a small minimum.
    pub fn weight(&self) -> f64 {
        self.target.share.max(1e-6)
    }

    /// The number of proposals, those of earlier searches included.
    pub fn proposed(&self) -> u64 {
        self.told + self.open.len() as u64
    }

    /// Whether proposals are pending.
    pub fn waits(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether the search has ended.
    pub fn exhausted(&self) -> bool {
        !self.waits() && self.search.exhausted()
    }

    /// The best ratio so far; 1 without outcomes.
    pub fn best(&self) -> f64 {
        self.search.best().map_or(1.0, |(_, ratio)| ratio.min(1.0))
    }

    /// The best variant so far, if its ratio reaches the target.
    pub fn promising(&self, wanted: Option<f64>) -> Option<(Variant, f64)> {
        let (wanted, (variant, ratio)) = (wanted?, self.search.best()?);
        (ratio <= 1.0 / wanted).then(|| (variant.clone(), wanted))
    }

    /// The best variants, once there are so many outcomes that something should have gained.
    pub fn look_at_best(&mut self) -> Option<Vec<Variant>> {
        let enough = self.outcomes().len() >= LOOK_AFTER;
        if !enough || self.looked {
            return None;
        }
        self.looked = true;
        let mut best: Vec<&(f64, Variant)> = self.ranked.iter().filter(|r| r.0 < 1.0).collect();
        best.sort_by(|a, b| a.0.total_cmp(&b.0));
        Some(
            best.into_iter()
                .take(LOOK_AT)
                .map(|(_, v)| v.clone())
                .collect(),
        )
    }

    /// Whether there is something to measure again.
    pub fn hopes(&self) -> bool {
        self.ended != Some(NOTHING_GAINS) && self.ranked.iter().any(|(ratio, _)| *ratio < 1.0)
    }

    /// Records the outcome of a proposal. If its machine code has an outcome by now, that one counts.
    pub fn settle(&mut self, number: u64, mut told: Told) -> Result<()> {
        let known = told.code.as_ref().and_then(|code| self.target.known(code));
        if let (Some(ratio), Some(code)) = (known, &told.code) {
            told = Told::same_as(ratio, code.clone());
        }
        self.pending.retain(|n| *n != number);
        self.journal.add(&Event::Told(number, told.clone()))?;
        self.learn(number, told);
        Ok(())
    }

    fn learn(&mut self, number: u64, told: Told) {
        let variant = self.open.remove(&number).unwrap_or_default();
        self.search.tell(number, told.ratio);
        self.told += 1;
        self.same += u64::from(told.same);
        match (told.ratio, told.reason) {
            (Some(ratio), _) if !told.same => self.ranked.push((ratio, variant)),
            (Some(_), _) => {}
            (None, reason) => self.failed.push(Failure {
                variant,
                reason: reason.unwrap_or_default(),
                same: told.same,
            }),
        }
        if let Some(code) = told.code {
            self.target.learn(code, told.ratio);
        }
    }
}

//! The search of one region: proposals, outcomes, and the journal of both.

use super::budget::Left;
use super::found::{Failure, Found};
use super::journal::{Event, Journal, Told};
use crate::{Outcome, Search, Variant};
use anyhow::Result;
use cere_catalogue::anyhow;
use cere_measure::Target;
use std::collections::{HashMap, VecDeque};
use std::path::Path;

/// Why a search ended before its budget.
const ALL_TRIED: &str = "all was tried";
/// Likewise.
pub const TARGET_REACHED: &str = "the target is reached";

/// Likewise.
pub const NOTHING_GAINS: &str = "nothing gains";

/// Outcomes with machine code of their own after which it is looked whether anything gains. The first proposals try each choice
/// of each group, so what helps alone is among them.
const LOOK_AFTER: usize = 25;
/// Variants that are then measured again.
const LOOK_AT: usize = 6;

/// What came of a turn of a search.
pub enum Turn {
    /// A variant, with its number.
    Proposed(u64, Variant),
    /// The search proposes no more before it is told outcomes.
    Waits,
    /// It has ended.
    Ended,
    /// The budget is used up.
    NoBudget,
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
    /// What was found so far.
    pub found: Found,
    /// Whether it was looked whether anything gains.
    looked: bool,
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
            found: Found {
                name: target.name.clone(),
                share: target.share,
                ..Found::default()
            },
            looked: false,
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
                            E6415,
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
        self.found.earlier = self.found.evaluations;
        Ok(())
    }

    /// Proposes a variant, if the budget that is `left` and the search have one.
    pub fn take_turn(&mut self, left: &mut Left) -> Result<Turn> {
        if self.exhausted() {
            self.found.ended.get_or_insert(ALL_TRIED);
        }
        if self.found.ended.is_some() {
            return Ok(Turn::Ended);
        }
        if !left.take() {
            return Ok(Turn::NoBudget);
        }
        if let Some((number, variant)) = self.propose()? {
            return Ok(Turn::Proposed(number, variant));
        }
        left.put_back();
        if self.waits() {
            return Ok(Turn::Waits);
        }
        self.found.ended = Some(ALL_TRIED);
        Ok(Turn::Ended)
    }

    /// The next variant, if one can be proposed now.
    fn propose(&mut self) -> Result<Option<(u64, Variant)>> {
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
        let failed = self.found.failed.iter().filter(|f| !f.same);
        let right = self
            .found
            .ranked
            .iter()
            .map(|(_, variant)| (variant, false));
        right.chain(failed.map(|f| (&f.variant, true))).collect()
    }

    /// Weight for dividing the budget: the region's share of the run, with a small minimum.
    pub fn weight(&self) -> f64 {
        self.target.share.max(1e-6)
    }

    /// The number of proposals, those of earlier searches included.
    pub fn proposed(&self) -> u64 {
        self.found.evaluations + self.open.len() as u64
    }

    /// Whether proposals are pending.
    fn waits(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether the search has ended.
    fn exhausted(&self) -> bool {
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
        let mut best: Vec<&(f64, Variant)> =
            self.found.ranked.iter().filter(|r| r.0 < 1.0).collect();
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
        self.found.ended != Some(NOTHING_GAINS)
            && self.found.ranked.iter().any(|(ratio, _)| *ratio < 1.0)
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
        self.found.evaluations += 1;
        self.found.same_code += u64::from(told.same);
        match (told.ratio, told.reason) {
            (Some(ratio), _) if !told.same => self.found.ranked.push((ratio, variant)),
            (Some(_), _) => {}
            (None, reason) => self.found.failed.push(Failure {
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

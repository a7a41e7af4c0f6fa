//! Variants as points of a space: a choice of each group, or a sequence.

use crate::pipeline::Pipeline;
use crate::space::{Group, Sequences, Space, SpaceError};
use cere_toolchain::Variant;
use rand::{Rng, RngExt};

/// A point of a space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Point {
    /// A choice of each group, from 1; 0 is no choice.
    Choices(Vec<usize>),
    /// A sequence.
    Sequence {
        /// The code generator's flags, from 1; 0 is no choice.
        level: usize,
        /// Pipelines that run one after the other.
        rounds: Vec<String>,
    },
}

impl Point {
    pub(super) fn choices(&self) -> Option<&[usize]> {
        match self {
            Point::Choices(choices) => Some(choices),
            Point::Sequence { .. } => None,
        }
    }

    pub(super) fn is_sequence(&self) -> bool {
        matches!(self, Point::Sequence { .. })
    }
}

/// A space with the pipeline that its sequences sample.
#[derive(Debug, Clone)]
pub(super) struct Ground {
    space: Space,
    sequences: Option<(Sequences, Pipeline)>,
}

impl Ground {
    pub(super) fn new(mut space: Space, pipeline: Option<Pipeline>) -> Result<Self, SpaceError> {
        let sequences = match (space.sequences.take(), pipeline) {
            (None, _) => None,
            (Some(sequences), Some(pipeline)) => Some((sequences, pipeline)),
            (Some(Sequences { pipeline, .. }), None) => {
                return Err(SpaceError::PassesUnknown { pipeline });
            }
        };
        Ok(Self { space, sequences })
    }

    /// Number of groups.
    pub(super) fn groups(&self) -> usize {
        self.space.groups.len()
    }

    /// Number of choices of a group, without the empty one.
    pub(super) fn choices(&self, group: usize) -> usize {
        self.space.groups[group].choices.len()
    }

    pub(super) fn has_sequences(&self) -> bool {
        self.sequences.is_some()
    }

    /// The variant of a point. `None` for a sequence without passes, which `opt` refuses.
    pub(super) fn variant(&self, point: &Point) -> Option<Variant> {
        match point {
            Point::Choices(choices) => {
                let groups = self.space.groups.iter().zip(choices);
                let chosen = groups.filter_map(|(g, c)| g.choices.get(c.checked_sub(1)?));
                Some(Variant {
                    flags: chosen.flatten().cloned().collect(),
                    passes: None,
                })
            }
            Point::Sequence { level, rounds } => {
                let (sequences, _) = self.sequences.as_ref()?;
                let rounds: Vec<&str> = rounds
                    .iter()
                    .map(String::as_str)
                    .filter(|r| !r.is_empty())
                    .collect();
                let level = level.checked_sub(1).and_then(|l| sequences.levels.get(l));
                (!rounds.is_empty()).then(|| Variant {
                    flags: level.cloned().unwrap_or_default(),
                    passes: Some(rounds.join(",")),
                })
            }
        }
    }

    /// The choices of the group `level`, each alone.
    pub(super) fn levels(&self) -> Vec<Point> {
        let named = self.space.groups.iter().position(|g| g.name == "level");
        let Some(group) = named else {
            return Vec::new();
        };
        let alone = |choice| {
            let mut choices = vec![0; self.groups()];
            choices[group] = choice;
            Point::Choices(choices)
        };
        (1..=self.choices(group)).map(alone).collect()
    }

    /// The point with these choices, without those that no group has; `None` if there are none.
    pub(super) fn point_of(&self, choices: &[Vec<String>]) -> Option<Point> {
        let place = |g: &Group| g.choices.iter().position(|c| choices.contains(c));
        let groups = self.space.groups.iter();
        let found: Vec<usize> = groups.map(|g| place(g).map_or(0, |c| c + 1)).collect();
        found
            .iter()
            .any(|c| *c > 0)
            .then_some(Point::Choices(found))
    }

    /// Advances to the next combination of choices, like a counter with a digit for each group; false at the end.
    pub(super) fn advance(&self, choices: &mut [usize]) -> bool {
        for (group, choice) in choices.iter_mut().enumerate() {
            if *choice < self.choices(group) {
                *choice += 1;
                return true;
            }
            *choice = 0;
        }
        false
    }

    /// A sample of the passes, with a level or none.
    pub(super) fn sequence(&self, rng: &mut impl Rng) -> Option<Point> {
        let (sequences, pipeline) = self.sequences.as_ref()?;
        Some(Point::Sequence {
            level: rng.random_range(0..=sequences.levels.len()),
            rounds: (0..sequences.rounds)
                .map(|_| pipeline.round(sequences.drop, rng))
                .collect(),
        })
    }
}

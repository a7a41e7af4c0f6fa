//! Search spaces: groups of flags that exclude each other, and orders of passes.

use crate::pipeline::PipelineError;

/// Names and texts of the spaces that come with CERE.
const BUILT_IN: [(&str, &str); 4] = [
    ("levels", include_str!("../spaces/levels.toml")),
    ("codegen", include_str!("../spaces/codegen.toml")),
    ("passes", include_str!("../spaces/passes.toml")),
    (
        "full",
        concat!(
            include_str!("../spaces/codegen.toml"),
            "\n",
            include_str!("../spaces/passes.toml")
        ),
    ),
];

/// All variants that a search may propose. A variant is a choice, or none, of each group; or a sequence.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Space {
    /// Groups, in the order of their flags on the command line.
    pub groups: Vec<Group>,
    /// Orders of passes, if the space has any.
    pub sequences: Option<Sequences>,
}

/// Flags of which at most one choice is taken.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Its name in files and messages. Searches begin with the choices of the group `level`.
    pub name: String,
    /// Lists of flags. No flags at all is a further choice, which is not listed.
    pub choices: Vec<Vec<String>>,
    /// Whether results may differ, even in the last bit.
    pub changes_values: bool,
}

/// Orders of passes: samples of a pipeline (CERE thesis, 5.4.4).
#[derive(Debug, Clone, PartialEq)]
pub struct Sequences {
    /// A pipeline for `opt -passes=`: `default<O3>`, or a full list.
    pub pipeline: String,
    /// Probability that a pass is left out, 0 to 1.
    pub drop: f64,
    /// How often the pipeline is sampled for one sequence, 1 to 100.
    pub rounds: u32,
    /// Lists of flags for the code generator. No flags is a further choice, which is not listed.
    pub levels: Vec<Vec<String>>,
}

/// Why a text is not a space, or a space cannot be searched.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SpaceError {
    /// A line of it is wrong.
    #[error("line {line} of the space: {fault}")]
    Line {
        /// Which, from 1.
        line: usize,
        /// What is wrong.
        fault: Fault,
    },
    /// Neither groups nor sequences.
    #[error("the space is empty: give it a [[group]] or [sequences]")]
    Empty,
    /// A search of sequences needs the passes that they are samples of.
    #[error(
        "the space has sequences of {pipeline:?}, and its passes are not known; ask `opt -passes={pipeline:?} -print-pipeline-passes`"
    )]
    PassesUnknown {
        /// The space's pipeline.
        pipeline: String,
    },
}

/// What is wrong with a line of a space.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Not TOML, or a key that is unknown, missing or of another type, as the parser says.
    #[error("{0}")]
    Syntax(String),
    /// A group without choices.
    #[error("group {0:?} has no choices; list flags, or remove the group")]
    NoChoices(String),
    /// Two groups of one name.
    #[error("there is another group {0:?} before; rename one or join their choices")]
    GroupTwice(String),
    /// A choice that is listed twice.
    #[error("{0:?} is listed before; remove one")]
    ChoiceTwice(String),
    /// A choice without a flag.
    #[error("an empty choice; remove it, for a variant may go without any choice of a group")]
    NoFlag,
    /// A word that is not a flag.
    #[error("{0:?} is no flag; a flag starts with a dash, or is the value of {list}", list = WITH_VALUE.join(", "))]
    Flag(String),
    /// A flag whose value is missing.
    #[error("{0} needs a value after it, in the same choice")]
    Value(String),
    /// A probability that is not between 0 and 1.
    #[error("drop is {0}; it is a probability, from 0 to 1")]
    Drop(f64),
    /// No rounds, or more than a compiler could take.
    #[error("rounds is {0}; take 1 to {ROUNDS}")]
    Rounds(u32),
    /// A pipeline that cannot be read.
    #[error("the pipeline cannot be read: {0}")]
    Pipeline(PipelineError),
}

/// Flags that take the next word as their value.
pub(crate) const WITH_VALUE: [&str; 3] = ["-mllvm", "-Xclang", "--param"];
/// Maximum rounds: a round of -O3 has about 40 passes and 1500 characters.
pub(crate) const ROUNDS: u32 = 100;

impl Space {
    /// The text of a space that comes with CERE: `levels`, `codegen`, `passes` or `full`.
    pub fn built_in(name: &str) -> Option<&'static str> {
        let found = BUILT_IN.iter().find(|(n, _)| *n == name);
        found.map(|(_, text)| *text)
    }

    /// Names that [`Space::built_in`] knows.
    pub fn built_in_names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// This space without the groups that change values.
    pub fn values_kept(mut self) -> Space {
        self.groups.retain(|g| !g.changes_values);
        self
    }

    /// Number of variants, the one without any flag not counted; infinite with sequences.
    pub fn size(&self) -> f64 {
        if self.sequences.is_some() {
            return f64::INFINITY;
        }
        let choices = self.groups.iter().map(|g| g.choices.len() as f64 + 1.0);
        choices.product::<f64>() - 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn built_in(name: &str) -> Space {
        Space::parse(Space::built_in(name).unwrap()).unwrap()
    }

    #[test]
    fn built_in_spaces_are_spaces() {
        for name in Space::built_in_names() {
            let space = built_in(name);
            let level = space.groups.iter().any(|g| g.name == "level");
            assert_eq!(level, name != "passes", "{name}");
            assert_eq!(
                space.sequences.is_some(),
                ["passes", "full"].contains(&name),
                "{name}"
            );
        }
        assert_eq!(built_in("full").groups, built_in("codegen").groups);
        assert_eq!(Space::built_in("nothing"), None);
    }

    #[test]
    fn sizes() {
        assert_eq!(built_in("levels").size(), 5.0);
        assert_eq!(built_in("passes").size(), f64::INFINITY);
        assert_eq!(Space::default().size(), 0.0);
        let codegen = built_in("codegen").size();
        assert!(codegen > 1e15 && codegen.is_finite());
    }

    #[test]
    fn values_are_kept() {
        let kept = built_in("full").values_kept();
        assert!(kept.sequences.is_some());
        let flags: Vec<&str> = kept
            .groups
            .iter()
            .flat_map(|g| &g.choices)
            .flatten()
            .map(String::as_str)
            .collect();
        for start in [
            "-ffast-math",
            "-fassoc",
            "-freciprocal",
            "-fno-math-errno",
            "-mfma",
        ] {
            assert!(!flags.iter().any(|f| f.starts_with(start)), "{start}");
        }
        for choice in kept.groups.iter().flat_map(|g| &g.choices) {
            let fuses = choice.iter().any(|f| f.starts_with("-march"));
            let parts = choice.iter().any(|f| f == "-ffp-contract=off");
            assert!(!fuses || parts, "{choice:?}");
        }
        let parts = |f: &&str| !f.starts_with("-ffp-") || *f == "-ffp-contract=off";
        assert!(flags.iter().all(parts));
        assert!(flags.contains(&"-mavx2"));
    }

    /// LLVM refuses an option that is given twice, so choices of two groups must not share one.
    #[test]
    fn options_are_of_one_group() {
        let mut owners = BTreeMap::new();
        for group in built_in("codegen").groups {
            for choice in &group.choices {
                for pair in choice.windows(2).filter(|p| p[0] == "-mllvm") {
                    let option = pair[1].split('=').next().unwrap().to_owned();
                    let owner = owners
                        .entry(option.clone())
                        .or_insert_with(|| group.name.clone());
                    assert_eq!(*owner, group.name, "{option}");
                }
            }
        }
        assert!(owners.len() > 30);
    }
}

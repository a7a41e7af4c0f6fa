//! Spaces as files: TOML, each fault with its line.

use crate::pipeline::Pipeline;
use crate::space::{Group, ROUNDS, Sequences, Space, SpaceError, WITH_VALUE};
use serde::Deserialize;
use toml::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SpaceText {
    #[serde(default, rename = "group")]
    groups: Vec<GroupText>,
    sequences: Option<SequencesText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct GroupText {
    name: Spanned<String>,
    choices: Vec<Spanned<String>>,
    #[serde(default)]
    changes_values: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SequencesText {
    pipeline: Spanned<String>,
    drop: Spanned<f64>,
    rounds: Spanned<u32>,
    #[serde(default)]
    levels: Vec<Spanned<String>>,
}

/// Lines of offsets.
struct Lines<'a>(&'a str);

impl Lines<'_> {
    fn at(&self, offset: usize) -> usize {
        let before = self.0.bytes().take(offset);
        before.filter(|b| *b == b'\n').count() + 1
    }

    fn of<T>(&self, value: &Spanned<T>) -> usize {
        self.at(value.span().start)
    }

    fn group(&self, group: GroupText, before: &[Group]) -> Result<Group, SpaceError> {
        let (line, name) = (self.of(&group.name), group.name.into_inner());
        if before.iter().any(|g| g.name == name) {
            return Err(SpaceError::GroupTwice { line, name });
        }
        if group.choices.is_empty() {
            return Err(SpaceError::NoChoices { line, name });
        }
        Ok(Group {
            name,
            choices: self.choices(&group.choices)?,
            changes_values: group.changes_values,
        })
    }

    fn choices(&self, texts: &[Spanned<String>]) -> Result<Vec<Vec<String>>, SpaceError> {
        let mut choices = Vec::new();
        for text in texts {
            let line = self.of(text);
            let choice = flags(text.get_ref(), line)?;
            if choices.contains(&choice) {
                return Err(SpaceError::ChoiceTwice {
                    line,
                    choice: choice.join(" "),
                });
            }
            choices.push(choice);
        }
        Ok(choices)
    }

    fn sequences(&self, text: SequencesText) -> Result<Sequences, SpaceError> {
        let line = self.of(&text.pipeline);
        Pipeline::parse(text.pipeline.get_ref())
            .map_err(|source| SpaceError::Pipeline { line, source })?;
        let line = self.of(&text.drop);
        let drop = text.drop.into_inner();
        if !(0.0..=1.0).contains(&drop) {
            return Err(SpaceError::Drop { line, drop });
        }
        let line = self.of(&text.rounds);
        let rounds = text.rounds.into_inner();
        if !(1..=ROUNDS).contains(&rounds) {
            return Err(SpaceError::Rounds { line, rounds });
        }
        Ok(Sequences {
            pipeline: text.pipeline.into_inner(),
            drop,
            rounds,
            levels: self.choices(&text.levels)?,
        })
    }
}

fn flags(text: &str, line: usize) -> Result<Vec<String>, SpaceError> {
    let mut flags: Vec<String> = Vec::new();
    // Whether the last word still needs its value.
    let mut waits = false;
    for word in text.split_whitespace() {
        if !waits && (!word.starts_with('-') || word.len() < 2) {
            let flag = word.to_owned();
            return Err(SpaceError::Flag { line, flag });
        }
        waits = !waits && WITH_VALUE.contains(&word);
        flags.push(word.to_owned());
    }
    match flags.last() {
        None => Err(SpaceError::NoFlag { line }),
        Some(flag) if waits => Err(SpaceError::Value {
            line,
            flag: flag.clone(),
        }),
        Some(_) => Ok(flags),
    }
}

impl Space {
    /// The space of a text in TOML, as the built-in ones are.
    pub fn parse(text: &str) -> Result<Space, SpaceError> {
        let lines = Lines(text);
        let file: SpaceText = toml::from_str(text).map_err(|e| SpaceError::Syntax {
            line: lines.at(e.span().map_or(0, |s| s.start)),
            message: e.message().to_owned(),
        })?;
        let mut groups = Vec::new();
        for group in file.groups {
            groups.push(lines.group(group, &groups)?);
        }
        let sequences = file.sequences.map(|s| lines.sequences(s)).transpose()?;
        if groups.is_empty() && sequences.is_none() {
            return Err(SpaceError::Empty);
        }
        Ok(Space { groups, sequences })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::PipelineError;

    const GOOD: &str = r#"
[[group]]
name = "level"
choices = ["-O1", "-O2"]

[[group]]
name = "values"
choices = [
    "-ffast-math",
    "-mllvm -unroll-count=2 -Xclang value --param a",
]
changes-values = true

[sequences]
pipeline = "default<O3>"
drop = 0.7
rounds = 4
levels = ["-O1"]
"#;

    /// The error of the valid text with one part replaced.
    fn error(part: &str, with: &str) -> SpaceError {
        assert!(GOOD.contains(part), "{part}");
        Space::parse(&GOOD.replacen(part, with, 1)).unwrap_err()
    }

    #[test]
    fn all_there_is() {
        let space = Space::parse(GOOD).unwrap();
        assert_eq!(space.groups[0].choices, [["-O1"], ["-O2"]]);
        assert_eq!(space.groups[1].choices[1].len(), 6);
        assert!(space.groups[1].changes_values && !space.groups[0].changes_values);
        let sequences = space.sequences.unwrap();
        assert_eq!((sequences.drop, sequences.rounds), (0.7, 4));
        assert_eq!(sequences.levels, [["-O1"]]);
        let whole =
            Space::parse("[sequences]\npipeline = \"sroa\"\ndrop = 1\nrounds = 1\n").unwrap();
        assert_eq!(whole.sequences.unwrap().drop, 1.0);
    }

    #[test]
    fn faults_with_lines() {
        let flag = |line, flag: &str| SpaceError::Flag {
            line,
            flag: flag.to_owned(),
        };
        assert_eq!(error("-O2", "O2"), flag(4, "O2"));
        assert_eq!(error("-O2", "-"), flag(4, "-"));
        assert_eq!(error("-ffast-math", "-O1 fast"), flag(9, "fast"));
        assert_eq!(error("--param a", "--param a b"), flag(10, "b"));
        let value = SpaceError::Value {
            line: 10,
            flag: "--param".to_owned(),
        };
        assert_eq!(error("--param a", "--param"), value);
        assert_eq!(error("\"-O2\"", "\" \""), SpaceError::NoFlag { line: 4 });
        let twice = SpaceError::ChoiceTwice {
            line: 4,
            choice: "-O1".to_owned(),
        };
        assert_eq!(error("-O2", " -O1"), twice);
        let none = SpaceError::NoChoices {
            line: 3,
            name: "level".to_owned(),
        };
        assert_eq!(error("\"-O1\", \"-O2\"", ""), none);
        let group = SpaceError::GroupTwice {
            line: 7,
            name: "level".to_owned(),
        };
        assert_eq!(error("\"values\"", "\"level\""), group);
        assert_eq!(
            error("0.7", "1.5"),
            SpaceError::Drop {
                line: 16,
                drop: 1.5
            }
        );
        assert!(matches!(error("0.7", "nan"), SpaceError::Drop { .. }));
        assert_eq!(
            error("= 4", "= 0"),
            SpaceError::Rounds {
                line: 17,
                rounds: 0
            }
        );
        assert_eq!(
            error("= 4", "= 101"),
            SpaceError::Rounds {
                line: 17,
                rounds: 101
            }
        );
        let pipeline = SpaceError::Pipeline {
            line: 15,
            source: PipelineError::Open { open: '<', at: 7 },
        };
        assert_eq!(error("<O3>", "<O3"), pipeline);
        assert_eq!(Space::parse("# nothing\n").unwrap_err(), SpaceError::Empty);
    }

    #[test]
    fn syntax() {
        let at = |part: &str, with: &str, expected: usize, word: &str| match error(part, with) {
            SpaceError::Syntax { line, message } => {
                assert_eq!(line, expected, "{message}");
                assert!(message.contains(word), "{message}");
            }
            other => panic!("{other}"),
        };
        at("changes-values", "changes-value", 12, "changes-values");
        at("drop", "dorp", 16, "dorp");
        at("rounds = 4", "rounds = -4", 17, "");
        at("\"-O2\"]", "\"-O2\"", 6, "");
        at("rounds = 4", "", 14, "rounds");
    }
}

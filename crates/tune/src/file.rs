//! Spaces as files: TOML, each fault with its line.

use crate::pipeline::Pipeline;
use crate::space::{Fault, Group, ROUNDS, Sequences, Space, SpaceError, WITH_VALUE};
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

    fn error<T>(&self, value: &Spanned<T>, fault: Fault) -> SpaceError {
        let line = self.at(value.span().start);
        SpaceError::Line { line, fault }
    }

    fn group(&self, group: GroupText, before: &[Group]) -> Result<Group, SpaceError> {
        let name = group.name.get_ref().clone();
        if before.iter().any(|g| g.name == name) {
            return Err(self.error(&group.name, Fault::GroupTwice(name)));
        }
        if group.choices.is_empty() {
            return Err(self.error(&group.name, Fault::NoChoices(name)));
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
            let choice = flags(text.get_ref()).map_err(|fault| self.error(text, fault))?;
            if choices.contains(&choice) {
                return Err(self.error(text, Fault::ChoiceTwice(choice.join(" "))));
            }
            choices.push(choice);
        }
        Ok(choices)
    }

    fn sequences(&self, text: SequencesText) -> Result<Sequences, SpaceError> {
        if let Err(why) = Pipeline::parse(text.pipeline.get_ref()) {
            return Err(self.error(&text.pipeline, Fault::Pipeline(why)));
        }
        let (drop, rounds) = (*text.drop.get_ref(), *text.rounds.get_ref());
        if !(0.0..=1.0).contains(&drop) {
            return Err(self.error(&text.drop, Fault::Drop(drop)));
        }
        if !(1..=ROUNDS).contains(&rounds) {
            return Err(self.error(&text.rounds, Fault::Rounds(rounds)));
        }
        Ok(Sequences {
            pipeline: text.pipeline.into_inner(),
            drop,
            rounds,
            levels: self.choices(&text.levels)?,
        })
    }
}

fn flags(text: &str) -> Result<Vec<String>, Fault> {
    let mut flags: Vec<String> = Vec::new();
    // Whether the last word still needs its value.
    let mut waits = false;
    for word in text.split_whitespace() {
        if !waits && (!word.starts_with('-') || word.len() < 2) {
            return Err(Fault::Flag(word.to_owned()));
        }
        waits = !waits && WITH_VALUE.contains(&word);
        flags.push(word.to_owned());
    }
    match flags.last() {
        None => Err(Fault::NoFlag),
        Some(flag) if waits => Err(Fault::Value(flag.clone())),
        Some(_) => Ok(flags),
    }
}

impl Space {
    /// The space of a text in TOML, as the built-in ones are.
    pub fn parse(text: &str) -> Result<Space, SpaceError> {
        let lines = Lines(text);
        let file: SpaceText = toml::from_str(text).map_err(|e| SpaceError::Line {
            line: lines.at(e.span().map_or(0, |s| s.start)),
            fault: Fault::Syntax(e.message().to_owned()),
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

    /// The line and the fault of the valid text with one part replaced.
    fn error(part: &str, with: &str) -> (usize, Fault) {
        assert!(GOOD.contains(part), "{part}");
        match Space::parse(&GOOD.replacen(part, with, 1)) {
            Err(SpaceError::Line { line, fault }) => (line, fault),
            other => panic!("{other:?}"),
        }
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
        let level = || "level".to_owned();
        let flag = |flag: &str| Fault::Flag(flag.to_owned());
        let source = PipelineError::Open { open: '<', at: 7 };
        for (part, with, line, fault) in [
            ("-O2", "O2", 4, flag("O2")),
            ("-O2", "-", 4, flag("-")),
            ("-ffast-math", "-O1 fast", 9, flag("fast")),
            ("--param a", "--param a b", 10, flag("b")),
            ("--param a", "--param", 10, Fault::Value("--param".into())),
            ("\"-O2\"", "\" \"", 4, Fault::NoFlag),
            ("-O2", " -O1", 4, Fault::ChoiceTwice("-O1".into())),
            ("\"-O1\", \"-O2\"", "", 3, Fault::NoChoices(level())),
            ("\"values\"", "\"level\"", 7, Fault::GroupTwice(level())),
            ("0.7", "1.5", 16, Fault::Drop(1.5)),
            ("= 4", "= 0", 17, Fault::Rounds(0)),
            ("= 4", "= 101", 17, Fault::Rounds(101)),
            ("<O3>", "<O3", 15, Fault::Pipeline(source)),
        ] {
            assert_eq!(error(part, with), (line, fault));
        }
        assert!(matches!(error("0.7", "nan"), (16, Fault::Drop(_))));
        assert_eq!(Space::parse("# nothing\n").unwrap_err(), SpaceError::Empty);
    }

    #[test]
    fn syntax() {
        let at = |part: &str, with: &str, expected: usize, word: &str| match error(part, with) {
            (line, Fault::Syntax(message)) => {
                assert_eq!(line, expected, "{message}");
                assert!(message.contains(word), "{message}");
            }
            (_, other) => panic!("{other}"),
        };
        at("changes-values", "changes-value", 12, "changes-values");
        at("drop", "dorp", 16, "dorp");
        at("rounds = 4", "rounds = -4", 17, "");
        at("\"-O2\"]", "\"-O2\"", 6, "");
        at("rounds = 4", "", 14, "rounds");
    }
}

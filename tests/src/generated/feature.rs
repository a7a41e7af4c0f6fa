//! Features of odd programs: files of `tests/odd/`, each with a function that uses something unusual and returns a checksum.
//!
//! Directives in comments, `//@ ` or `!@ `:
//!
//! | directive | meaning |
//! |---|---|
//! | `vary: NAME 10 90` | `$NAME` is a number from 10 to 90 |
//! | `pick: NAME a \| b` | `$NAME` is one of these texts |
//! | `flags: -fopenmp` | flags of the whole program |
//! | `allowed: TEXT` | a refusal, a failed replay under other flags, or `partly`, may have `TEXT` in its reason |
//! | `part: unit \| library \| plugin \| plain` | what follows is another unit: of the program, of a shared library, of one that `dlopen` loads, or compiled without CERE |
//!
//! `@` is the number of the feature in its program.

use super::random::Random;
use anyhow::{Context, Result, bail, ensure};
use std::path::Path;

/// The languages of features, by the ends of their files' names.
pub const LANGUAGES: [&str; 3] = ["c", "cpp", "f90"];

/// Where a unit lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// An object of the program.
    Unit,
    /// A shared library that the program is linked with. Only what other images need is visible.
    Library,
    /// A shared library that the program opens.
    Plugin,
    /// An object of the program, compiled without CERE.
    Plain,
}

/// A part of a feature.
#[derive(Debug)]
pub struct Part {
    /// Where it may lie.
    pub places: Vec<Place>,
    /// Its text.
    pub text: String,
}

/// A feature.
#[derive(Debug)]
pub struct Feature {
    /// The file's name without its end.
    pub name: String,
    /// One of [`LANGUAGES`].
    pub language: &'static str,
    /// Flags of the whole program.
    pub flags: Vec<String>,
    /// What reasons may say.
    pub allowed: Vec<String>,
    /// The first part has the function.
    pub parts: Vec<Part>,
    variables: Vec<Variable>,
}

#[derive(Debug)]
enum Values {
    Numbers(usize, usize),
    Texts(Vec<String>),
}

#[derive(Debug)]
struct Variable {
    name: String,
    values: Values,
}

/// All features of a directory, by name.
pub fn features(directory: &Path) -> Result<Vec<Feature>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let end = path.extension().and_then(|e| e.to_str()).unwrap_or("");
        if let Some(language) = LANGUAGES.into_iter().find(|l| *l == end) {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let text = std::fs::read_to_string(&path)?;
            let read = Feature::read(name.into_owned(), language, &text);
            all.push(read.with_context(|| path.display().to_string())?);
        }
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}

fn places(text: &str) -> Result<Vec<Place>> {
    let place = |word: &str| {
        Ok(match word.trim() {
            "unit" => Place::Unit,
            "library" => Place::Library,
            "plugin" => Place::Plugin,
            "plain" => Place::Plain,
            other => bail!("{other} is no place"),
        })
    };
    text.split('|').map(place).collect()
}

impl Feature {
    fn read(name: String, language: &'static str, text: &str) -> Result<Self> {
        let first = Part {
            places: vec![Place::Unit],
            text: String::new(),
        };
        let mut feature = Self {
            name,
            language,
            flags: Vec::new(),
            allowed: Vec::new(),
            parts: vec![first],
            variables: Vec::new(),
        };
        for (number, line) in text.lines().enumerate() {
            let directive = line.strip_prefix("//@ ").or(line.strip_prefix("!@ "));
            match directive {
                Some(directive) => feature
                    .directive(directive)
                    .with_context(|| format!("line {}", number + 1))?,
                None => {
                    let part = feature.parts.last_mut().context("a part")?;
                    part.text += line;
                    part.text.push('\n');
                }
            }
        }
        let function = if language == "f90" {
            "function f@"
        } else {
            "word f@(word"
        };
        ensure!(feature.parts[0].text.contains(function), "no {function}");
        Ok(feature)
    }

    fn directive(&mut self, line: &str) -> Result<()> {
        let (kind, rest) = line.split_once(": ").context("no directive")?;
        let words: Vec<&str> = rest.split_whitespace().collect();
        match (kind, &words[..]) {
            ("vary", [name, low, high]) => self.variables.push(Variable {
                name: (*name).to_owned(),
                values: Values::Numbers(low.parse()?, high.parse()?),
            }),
            ("pick", [name, ..]) => {
                let texts = rest[name.len()..].split('|').map(|t| t.trim().to_owned());
                self.variables.push(Variable {
                    name: (*name).to_owned(),
                    values: Values::Texts(texts.collect()),
                });
            }
            ("flags", flags) => self.flags.extend(flags.iter().map(|f| (*f).to_owned())),
            ("allowed", _) => self.allowed.push(rest.to_owned()),
            ("part", _) => self.parts.push(Part {
                places: places(rest)?,
                text: String::new(),
            }),
            _ => bail!("{line:?} is no directive"),
        }
        Ok(())
    }

    /// The texts of its parts, with `number` and values from `random`.
    pub fn made(&self, random: &mut Random, number: usize) -> Vec<String> {
        let mut values = vec![("@".to_owned(), number.to_string())];
        for variable in &self.variables {
            let value = match &variable.values {
                Values::Numbers(low, high) => (low + random.below(high - low + 1)).to_string(),
                Values::Texts(texts) => texts[random.below(texts.len())].clone(),
            };
            values.push((format!("${}", variable.name), value));
        }
        let fill = |part: &Part| {
            let text = part.text.clone();
            values
                .iter()
                .rev()
                .fold(text, |text, (name, value)| text.replace(name, value))
        };
        self.parts.iter().map(fill).collect()
    }
}

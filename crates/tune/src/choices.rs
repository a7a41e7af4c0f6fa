//! The flags file: which flags each region gets. It is kept with the program's source and used by later builds.

use anyhow::{Context, Result};
use cere_catalogue::{OrCoded, bail, codes};
use cere_store::names::{Named, pick};
use cere_store::state;
use cere_system::events::Events;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Version of the file.
const VERSION: u32 = 1;
/// Its first lines.
const HEADER: &str = "\
# Compiler flags of single regions, beside those of the build.
# Use: cere instrument -- <build command>; cere hybrid --flags-file THIS -o app.tuned
";

/// What a region is compiled with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chosen {
    /// Name of the region.
    pub name: String,
    /// Flags after those of the build, as a shell would split them.
    #[serde(default)]
    pub flags: String,
    /// An `opt` pipeline instead of the compiler's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passes: Option<String>,
    /// Threads of a parallel region's team.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// Where they go: `close` or `spread`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bind: Option<String>,
    /// How many times faster its codelets ran, if they were tuned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain: Option<f64>,
}

/// The file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choices {
    version: u32,
    /// Flags of all other code, after those of the build.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rest: String,
    /// The regions.
    #[serde(default, rename = "region", skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<Chosen>,
}

impl Choices {
    /// The choices for these regions.
    pub fn of(regions: Vec<Chosen>) -> Self {
        Self {
            version: VERSION,
            rest: String::new(),
            regions,
        }
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self> {
        let text = state::read_text(path)
            .with_context(|| format!("cannot read the flags file {}", path.display()))?;
        let choices: Self = toml::from_str(&text).or_coded(codes::E6510, || {
            format!("the flags file {} has an error", path.display())
        })?;
        if choices.version != VERSION {
            bail!(
                E6510,
                "the flags file {} has version {}, this cere reads {VERSION}",
                path.display(),
                choices.version
            );
        }
        Ok(choices)
    }

    /// Writes a file atomically.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = format!("{HEADER}{}", toml::to_string(self)?);
        state::write_text(path, &text)
    }

    /// The regions of the current build that the choices name, each with its choice. If lines have moved since, a name stands
    /// for the only region of the same function and file.
    pub fn find<'a>(
        &'a self,
        known: &'a [Named],
        events: &Events,
    ) -> Result<Vec<(&'a Named, &'a Chosen)>> {
        let names: Vec<&str> = known.iter().map(|n| n.name.as_str()).collect();
        let mut found: Vec<(&Named, &Chosen)> = Vec::new();
        for chosen in &self.regions {
            let place = match names.iter().position(|n| *n == chosen.name) {
                Some(place) => place,
                None => {
                    let place = find_moved(&names, &chosen.name)?;
                    events.note(format!(
                        "{} is taken for {}, which the flags file has flags for",
                        names[place], chosen.name
                    ));
                    place
                }
            };
            if found.iter().any(|(n, _)| n.key == known[place].key) {
                bail!(E6510, "the flags file has flags for {} twice", names[place]);
            }
            found.push((&known[place], chosen));
        }
        Ok(found)
    }
}

/// The only region of the function and file in `name`.
fn find_moved(names: &[&str], name: &str) -> Result<usize> {
    let start = name.rsplit_once(':').map_or(name, |(start, _)| start);
    let same = |n: &&str| n.rsplit_once(':').is_some_and(|(other, _)| other == start);
    let places: Vec<usize> = (0..names.len()).filter(|i| same(&names[*i])).collect();
    match places[..] {
        [only] => Ok(only),
        [] => pick(names, name)
            .and_then(|found| match found[..] {
                [only] => Ok(only),
                _ => bail!(E6510, "{name} names several regions: give the file and the line as well, as `cere regions` shows them"),
            })
            .or_coded(codes::E6510, || {
                format!("the flags file has flags for {name}")
            }),
        _ => bail!(
            E6510,
            "the flags file has flags for {name}, which this build does not have; {} regions are of that function: \
             name one of them there, or tune again",
            places.len()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_that_moved() {
        let names = ["f@a.c:10", "g@a.c:20", "g@a.c:30"];
        assert_eq!(find_moved(&names, "f@a.c:12").unwrap(), 0);
        let error = find_moved(&names, "g@a.c:21").unwrap_err().to_string();
        assert!(error.contains("2 regions"), "{error}");
        assert!(find_moved(&names, "h@a.c:1").is_err());
    }

    #[test]
    fn files_are_read_as_they_are_written() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("flags");
        let choices = Choices::of(vec![Chosen {
            name: "f@a.c:10".into(),
            flags: "-O2 \"-mllvm\" x".into(),
            passes: Some("default<O1>".into()),
            gain: Some(1.25),
            ..Chosen::default()
        }]);
        choices.write(&file).unwrap();
        assert_eq!(Choices::read(&file).unwrap(), choices);
        std::fs::write(&file, "version = 1\n[[region]]\nnam = \"f\"\n").unwrap();
        let error = format!("{:#}", Choices::read(&file).unwrap_err());
        assert!(error.contains("nam") && error.contains("3"), "{error}");
        std::fs::write(&file, "version = 9\n").unwrap();
        assert!(Choices::read(&file).is_err());
    }

    #[test]
    fn changed_at_random() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.flags");
        let text = "version = 1\nrest = \"-O2\"\n\n[[region]]\nname = \"f@a.c:1\"\nflags = \"-O3\"\nthreads = 2\nbind = \"close\"\n";
        cere_testing::campaign("flags files", 1000, |random| {
            let mut text = text.to_owned();
            (0..=random.below(4)).for_each(|_| cere_testing::change::words(&mut text, random));
            std::fs::write(&path, &text).unwrap();
            Choices::read(&path).is_ok()
        });
    }
}

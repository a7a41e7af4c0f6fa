//! The tools: what they take, and the command that each stands for.

use crate::budget::Cost;
use crate::{flags, schemas};
use anyhow::{Context, Result};
use cere_catalogue::ensure;
use cere_format::store::Store;
use cere_store::state;
use rmcp::model::ToolAnnotations;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

/// The name of the tool that no command stands for.
pub const SOURCE: &str = "source";

/// What any tool takes.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    pub region: Option<String>,
    pub file: Option<String>,
    pub line: Option<usize>,
    patch: Option<String>,
    text: Option<String>,
    flags: Option<String>,
}

/// A tool.
pub struct Tool {
    pub name: &'static str,
    about: &'static str,
    /// The schema of its result.
    schema: &'static str,
    /// Its parameters: name, type, what it means, and whether it is needed.
    takes: &'static [(&'static str, &'static str, &'static str, bool)],
    pub costs: Cost,
    /// Whether it tries something.
    pub tries: bool,
}

const REGION: (&str, &str, &str, bool) = ("region", "string", "name of a region or codelet", true);
const REGIONS: (&str, &str, &str, bool) = (
    "region",
    "string",
    "name or glob of regions or codelets; all that the change is about if it is not given",
    false,
);

impl Tool {
    pub const ALL: [Self; 7] = [
        Self {
            name: "regions",
            about: "Regions of the current build: hot loops, parallel regions and functions.",
            schema: include_str!("../../../docs/schemas/regions.json"),
            takes: &[],
            costs: Cost::Nothing,
            tries: false,
        },
        Self {
            name: "codelets",
            about: "Captured executions of regions, on which edits are tried.",
            schema: include_str!("../../../docs/schemas/codelets.json"),
            takes: &[],
            costs: Cost::Nothing,
            tries: false,
        },
        Self {
            name: SOURCE,
            about: "The source that a region is in, or another file of the build.",
            schema: schemas::SOURCE,
            takes: &[
                ("region", "string", "name of a region or codelet", false),
                (
                    "file",
                    "string",
                    "a source or header of the build, by the end of its path",
                    false,
                ),
                (
                    "line",
                    "integer",
                    "of a long file, what is around this line is shown",
                    false,
                ),
            ],
            costs: Cost::Nothing,
            tries: false,
        },
        Self {
            name: "asm",
            about: "Machine code of a region beside its source: executions, remarks of the optimiser in plain words, a bound of its cycles.",
            schema: include_str!("../../../docs/schemas/asm.json"),
            takes: &[REGION],
            costs: Cost::Time,
            tries: false,
        },
        Self {
            name: "counts",
            about: "Exact counts of what codelets execute: instructions, floating-point operations, loads and stores, traffic of simulated caches.",
            schema: include_str!("../../../docs/schemas/count.json"),
            takes: &[REGION],
            costs: Cost::Time,
            tries: false,
        },
        Self {
            name: "try_patch",
            about: "Compiles an edit, runs it on captured memory and compares all that it leaves; times it in turns with the code as captured. \
                    Either `patch`, or `file` and its whole new `text`.",
            schema: include_str!("../../../docs/schemas/try.json"),
            takes: &[
                REGIONS,
                (
                    "patch",
                    "string",
                    "a patch of sources or headers of the build, as `diff -u` or `git diff` writes it",
                    false,
                ),
                (
                    "file",
                    "string",
                    "a source or header of the build, by the end of its path",
                    false,
                ),
                ("text", "string", "all of that file's new text", false),
                (
                    "flags",
                    "string",
                    "compiler flags after those of the build",
                    false,
                ),
            ],
            costs: Cost::Try,
            tries: true,
        },
        Self {
            name: "try_flags",
            about: "Compiles with other flags, and compares and times like try_patch.",
            schema: include_str!("../../../docs/schemas/try.json"),
            takes: &[
                REGIONS,
                (
                    "flags",
                    "string",
                    "compiler flags after those of the build: -O, -f and -m",
                    true,
                ),
            ],
            costs: Cost::Try,
            tries: true,
        },
    ];

    /// For the client.
    pub fn described(&self) -> rmcp::model::Tool {
        let properties: Map<String, Value> = self
            .takes
            .iter()
            .map(|(name, kind, about, _)| {
                (
                    (*name).to_owned(),
                    json!({ "type": kind, "description": about }),
                )
            })
            .collect();
        let needed = self.takes.iter().filter(|takes| takes.3);
        let input = json!({
            "type": "object",
            "additionalProperties": false,
            "properties": properties,
            "required": needed.map(|takes| takes.0).collect::<Vec<_>>(),
        });
        let reads = ToolAnnotations::new()
            .read_only(true)
            .destructive(false)
            .open_world(false);
        rmcp::model::Tool::new(self.name, self.about, Arc::new(schemas::object(input)))
            .with_raw_output_schema(Arc::new(schemas::answer(self.schema, self.tries)))
            .annotate(reads)
    }

    /// The command line of a call.
    pub fn prepare(&self, call: &Call, store: &Store) -> Result<Prepared> {
        let place = state::scratch(store);
        state::make_directory(&place)?;
        let scratch = tempfile::Builder::new().prefix("mcp.").tempdir_in(&place);
        let scratch = scratch.with_context(|| format!("cannot write in {}", place.display()))?;
        let mut words = Vec::new();
        match self.name {
            "counts" => words.push("count".to_owned()),
            "try_patch" | "try_flags" => {
                words.extend(["try", "--untrusted"].map(str::to_owned));
                words.extend(change(self.name, call, scratch.path())?);
            }
            name => words.push(name.to_owned()),
        }
        if let Some(region) = &call.region {
            ensure!(
                !Path::new(region).exists() && !region.ends_with(".codelet"),
                E5308,
                "{region}: a region or a codelet of the store is needed, not a file"
            );
            words.extend(["--".to_owned(), region.clone()]);
        }
        Ok(Prepared {
            words,
            _scratch: scratch,
        })
    }
}

/// A command line with the files that it names.
pub struct Prepared {
    pub words: Vec<String>,
    _scratch: TempDir,
}

/// The options that name what is tried.
fn change(tool: &str, call: &Call, scratch: &Path) -> Result<Vec<String>> {
    let mut words = Vec::new();
    if let Some(given) = &call.flags {
        flags::check(given)?;
        words.push(format!("--flags={given}"));
    }
    let written = |name: &str, text: &str| {
        let path = scratch.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        anyhow::Ok(path.display().to_string())
    };
    match (tool, &call.patch, &call.file, &call.text) {
        ("try_flags", ..) => ensure!(!words.is_empty(), E8003, "`flags` are needed"),
        (_, Some(patch), None, None) => {
            words.push(format!("--patch={}", written("change.patch", patch)?));
        }
        (_, None, Some(file), Some(text)) => {
            ensure!(
                !file.contains('='),
                E5308,
                "{file}: no source of the build is called so"
            );
            words.push(format!("--source={file}={}", written("source", text)?));
        }
        _ => cere_catalogue::bail!(E8003, "either `patch` is needed, or both `file` and `text`"),
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_a_patch_or_a_text() {
        let scratch = tempfile::tempdir().expect("a directory");
        let words = |call: Value| {
            let call: Call = serde_json::from_value(call).expect("a call");
            change("try_patch", &call, scratch.path())
        };
        let patch = words(json!({ "patch": "--- a\n+++ b\n", "flags": "-O3" })).expect("a patch");
        assert_eq!(patch[0], "--flags=-O3");
        assert!(patch[1].starts_with("--patch="), "{patch:?}");
        assert!(words(json!({ "file": "k.c", "text": "" })).is_ok());
        for bad in [
            json!({}),
            json!({ "file": "k.c" }),
            json!({ "patch": "", "text": "" }),
            json!({ "file": "k.c=/etc/passwd", "text": "" }),
            json!({ "patch": "", "flags": "-I/etc" }),
        ] {
            assert!(words(bad.clone()).is_err(), "{bad}");
        }
    }
}

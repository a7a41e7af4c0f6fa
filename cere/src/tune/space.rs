//! Opens spaces.

use super::processor::only_runnable;
use anyhow::{Context, Result, anyhow, bail};
use cere_compile::command::{Line, run};
use cere_compile::unit::OPT;
use cere_tune::{Pipeline, Space};

/// The text of the space `name`, built in or a file.
pub fn text(name: &str) -> Result<String> {
    if let Some(text) = Space::built_in(name) {
        return Ok(text.to_owned());
    }
    let known: Vec<&str> = Space::built_in_names().collect();
    std::fs::read_to_string(name).with_context(|| {
        format!(
            "there is no space {name}: name one of {}, or a file",
            known.join(", ")
        )
    })
}

/// A space to search.
pub struct Opened {
    /// What may be tried on this processor.
    pub space: Space,
    /// If it makes pipelines, the one that they are made from.
    pub pipeline: Option<Pipeline>,
    /// Choices that are not tried: this processor cannot run their code.
    pub left_out: Vec<String>,
}

/// The space `name`, whose text is `text`.
pub fn open(name: &str, text: &str, change_values: bool) -> Result<Opened> {
    let mut space = Space::parse(text).with_context(|| format!("the space {name}"))?;
    if !change_values {
        space = space.values_kept();
    }
    if space.size() == 0.0 {
        bail!("the space {name} has nothing to try: its flags change values (--change-values)");
    }
    let known = clang_knows(&space).with_context(|| format!("the space {name}"));
    known?;
    let left_out = only_runnable(&mut space);
    if space.size() == 0.0 {
        bail!("the space {name} has nothing that this processor can run");
    }
    let pipeline = match &space.sequences {
        None => None,
        Some(sequences) => {
            let line = Line::new(OPT)
                .arg(format!("-passes={}", sequences.pipeline))
                .args(["-print-pipeline-passes", "-disable-output", "/dev/null"]);
            let printed = run(&line, &format!("the pipeline {}", sequences.pipeline))?;
            Some(Pipeline::parse(printed.trim()).map_err(|e| anyhow!("the pipeline: {e}"))?)
        }
    };
    Ok(Opened {
        space,
        pipeline,
        left_out,
    })
}

/// Fails on the first choice that clang does not take, or that replays cannot follow.
fn clang_knows(space: &Space) -> Result<()> {
    for group in &space.groups {
        for choice in &group.choices {
            let known = || -> Result<()> {
                cere_compile::flags::check(choice)?;
                cere_compile::flags::known(choice)?;
                Ok(())
            };
            known().with_context(|| format!("group {}", group.name))?;
        }
    }
    Ok(())
}

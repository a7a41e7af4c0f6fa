//! Opens spaces.

use crate::{Pipeline, Space};
use anyhow::{Context, Result, anyhow};
use cere_catalogue::{OrCoded, bail, codes};
use cere_package::{lacks, machine};
use cere_store::state;
use cere_toolchain::command::{Line, run};
use cere_toolchain::unit::OPT;

/// The text of the space `name`, built in or a file.
pub fn text(name: &str) -> Result<String> {
    if let Some(text) = Space::built_in(name) {
        return Ok(text.to_owned());
    }
    let known: Vec<&str> = Space::built_in_names().collect();
    state::read_text(name.as_ref()).or_coded(codes::E6406, || {
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
        bail!(
            E6412,
            "the space {name} has nothing to try: its flags change values (--change-values)"
        );
    }
    let known = clang_knows(&space).with_context(|| format!("the space {name}"));
    known?;
    let left_out = only_runnable(&mut space);
    if space.size() == 0.0 {
        bail!(
            E6413,
            "the space {name} has nothing that this processor can run"
        );
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

/// Takes out of `space` the choices whose code this processor cannot run, and tells them: each would cost an evaluation,
/// and tell nothing.
fn only_runnable(space: &mut Space) -> Vec<String> {
    let machine = machine();
    let mut left_out = Vec::new();
    for group in &mut space.groups {
        group.choices.retain(|choice| {
            let runs = lacks(&machine, choice).is_empty();
            if !runs {
                left_out.push(shell_words::join(choice));
            }
            runs
        });
    }
    space.groups.retain(|group| !group.choices.is_empty());
    left_out
}

/// Fails on the first choice that clang does not take, or that replays cannot follow.
fn clang_knows(space: &Space) -> Result<()> {
    for group in &space.groups {
        for choice in &group.choices {
            let known = || -> Result<()> {
                cere_toolchain::flags::check(choice)?;
                cere_toolchain::flags::known(choice)?;
                Ok(())
            };
            known().with_context(|| format!("group {}", group.name))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_processor_lacks_is_left_out() {
        let text = "
            [[group]]
            name = \"wide\"
            choices = [\"-O2\", \"-march=x86-64-v4 -ffp-contract=off\", \"-mavx2\"]
            [[group]]
            name = \"wider\"
            choices = [\"-mavx512vbmi\"]
        ";
        let mut space = Space::parse(text).unwrap();
        let left_out = only_runnable(&mut space);
        let groups: Vec<usize> = space.groups.iter().map(|g| g.choices.len()).collect();
        let of = |name: &str| left_out.iter().any(|l| l.contains(name));
        let kernel = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let there = |name: &str| kernel.split_whitespace().any(|word| word == name);
        assert_eq!(of("-march=x86-64-v4"), !there("avx512vl"));
        assert_eq!(of("-mavx2"), !there("avx2"));
        assert_eq!(of("-mavx512vbmi"), !there("avx512vbmi"));
        assert!(!of("-O2"));
        assert_eq!(groups.iter().sum::<usize>() + left_out.len(), 4);
        assert!(!groups.contains(&0));
    }
}

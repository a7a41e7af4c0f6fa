//! A replay under other flags compiles only what its region reaches.

use anyhow::{Result, ensure};
use cere_tests::prepare::instrumented;
use cere_tests::tools::{cere, json, output, succeed};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Regions' functions in an object file.
fn outlined(object: &Path) -> Result<Vec<String>> {
    let listed = output(Command::new("llvm-nm-22").arg("-j").arg(object))?;
    let text = String::from_utf8(listed.stdout)?;
    let found = text.lines().filter(|n| n.starts_with("cere.outlined."));
    Ok(found.map(str::to_owned).collect())
}

/// A directory with `split.c` built at -O2, and the third invocation of each of `regions` captured.
fn captured(regions: &[&str]) -> Result<TempDir> {
    let source = include_str!("../../programs/split.c");
    let directory = instrumented(&[("split.c", source)], "$CC -O2 split.c -o program")?;
    let at = directory.path();
    for region in regions {
        let capture = ["capture", region, "--invocation", "3", "--", "./program"];
        succeed(cere(at).args(capture))?;
    }
    Ok(directory)
}

/// `ready` is a byte in the captured program, `state` two variables: no function alone tells that.
#[test]
fn the_variables_that_a_build_reshaped_are_known_without_the_whole_unit() -> Result<()> {
    let directory = captured(&["lazy*"])?;
    let at = directory.path();
    for region in ["lazy@*", "lazy_flag@*"] {
        for flags in ["-O0", "-O1"] {
            let line = ["replay", region, "--reps", "2", "--flags", flags];
            let (found, _) = json(cere(at).args(line).args(["--json", "--keep", "kept"]))?;
            ensure!(found["verdict"] == "exact", "{region} {flags}: {found}");
            let kept = outlined(&at.join("kept/unit0.o"))?;
            ensure!(kept.len() == 1, "{region} {flags}: {kept:?}");
            std::fs::remove_dir_all(at.join("kept"))?;
        }
    }
    Ok(())
}

/// The build keeps `half` in a register: no other code needs it. `accumulators` is in memory in parts.
#[test]
fn what_a_build_removed_or_split_is_there_in_a_replay() -> Result<()> {
    let directory = captured(&["temporaries*", "aligned*"])?;
    let at = directory.path();
    let replay = |region: &str, options: &[&str]| {
        let mut command = cere(at);
        command.args(["replay", region, "--reps", "2", "--flags", "-O0", "--json"]);
        command.args(options);
        command
    };
    let (found, _) = json(&mut replay("temporaries*", &["--keep", "kept"]))?;
    ensure!(found["verdict"] == "exact", "{found}");
    let notes = found["notes"].to_string();
    ensure!(notes.contains("does not have half"), "{notes}");
    let kept = outlined(&at.join("kept/unit0.o"))?;
    ensure!(kept.len() == 1, "{kept:?}");
    let (found, _) = json(&mut replay("temporaries*", &["--no-check"]))?;
    let notes = found["notes"].to_string();
    ensure!(notes.contains("nothing was compared"), "{found}");
    let (found, _) = json(&mut replay("aligned*", &[]))?;
    ensure!(found["verdict"] == "exact", "{found}");
    let notes = found["notes"].to_string();
    ensure!(!notes.contains("does not have"), "{notes}");
    Ok(())
}

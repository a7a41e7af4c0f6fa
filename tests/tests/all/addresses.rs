//! Addresses of code in captured memory, under flags other than the build's: no replay runs the machine code in vivo of a
//! function with IR.

use anyhow::{Result, ensure};
use cere_tests::prepare::codelets;
use cere_tests::tools::{cere, json, succeed};
use std::path::Path;
use tempfile::TempDir;

/// A directory with a program of `tests/programs`, built, and its `regions` captured.
fn captured(name: &str, build: &str, regions: &[&str]) -> Result<TempDir> {
    let directory = tempfile::tempdir()?;
    let at = directory.path();
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("programs")
        .join(name);
    std::fs::copy(source, at.join(name))?;
    succeed(cere(at).args(["instrument", "--all-loops", "--", "sh", "-c", build]))?;
    for region in regions {
        succeed(cere(at).args(["capture", region, "--", "./program"]))?;
    }
    Ok(directory)
}

/// Fused multiply-add changes what each region computes: a replay that finds nothing ran the code in vivo.
#[test]
fn labels_lead_to_the_code_of_the_flags() -> Result<()> {
    if !has_fma() {
        return Ok(());
    }
    for build in [
        "$CC -O2 labels.c -o program",
        "$CC -O1 -no-pie -fno-pie labels.c -o program",
    ] {
        let directory = captured("labels.c", build, &["main@*"])?;
        let at = directory.path();
        let listed = codelets(at)?;
        let names: Vec<&str> = listed.iter().map(|(name, _)| &**name).collect();
        // The loop on the last line prints what the others have computed.
        let prints = names.iter().max_by_key(|name| (name.len(), **name));
        let mut seen = 0;
        for &name in &names {
            let line = ["replay", name, "--reps", "2", "--json"];
            let same = json(cere(at).args(line))?.0;
            ensure!(same["verdict"] == "exact", "{build}: {name}: {same}");
            let flags = ["--flags=-mfma -ffp-contract=fast"];
            let fused = json(cere(at).args(line).args(flags))?.0;
            let expected = match prints == Some(&name) {
                true => "exact",
                false => "different",
            };
            ensure!(fused["verdict"] == expected, "{build}: {name}: {fused}");
            seen += 1;
        }
        ensure!(seen == 6, "{build}: {seen} codelets");
    }
    Ok(())
}

/// Whether this processor can run what the flags make.
fn has_fma() -> bool {
    std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains(" fma "))
}

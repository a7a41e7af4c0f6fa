//! Links a program with own flags for some regions and runs it: it must do what the plain program does.

use crate::study::{Study, array, same, string};
use crate::tools::{cere, json};
use anyhow::{Context, Result, ensure};
use std::fmt::Write;
use std::process::Output;

/// Regions from which on a program is large, and how many of its regions get flags of their own.
const LARGE: usize = 100;
const FEW: usize = 5;

/// The optimisation level among the flags of a build.
fn level(flags: &str) -> &str {
    let mut words = flags.split_whitespace();
    words.find(|f| f.starts_with("-O")).unwrap_or("-O0")
}

/// Flags for every other region: another level than the build's. The regions between keep the build's flags.
fn others(flags: &str) -> &'static str {
    match level(flags) {
        "-O0" => "-O2",
        "-O2" => "-O1 -mllvm -force-vector-width=4",
        "-O3" => "-O0",
        _ => "-O3 -funroll-loops",
    }
}

impl Study<'_> {
    /// Links the hybrid binary of all outlined regions in the program and runs it.
    pub fn hybrid(&self, expected: &Output) -> Result<()> {
        let (regions, _) = json(cere(self.directory).args(["regions", "--json"]))?;
        let mut text = "version = 1\n".to_owned();
        let regions = array(&regions, "regions")?.iter();
        let regions: Vec<_> = regions.filter(|r| r["outlined"] == true).collect();
        // Of large programs a few from everywhere: each leads to much of the program.
        let step = match regions.len() {
            ..LARGE => 1,
            many => many / FEW,
        };
        for (place, region) in regions.into_iter().step_by(step).enumerate() {
            let flags = match place % 2 {
                0 => others(self.flags),
                // As the build has it.
                _ => level(self.flags),
            };
            let name = string(region, "name")?;
            let _ = writeln!(text, "[[region]]\nname = {name:?}\nflags = {flags:?}");
        }
        let file = self.directory.join("choices");
        std::fs::write(&file, text).context("writing the choices")?;
        let program = self.directory.join("program.hybrid");
        let mut command = cere(self.directory);
        command
            .args(["hybrid", "--json", "--image", "program", "-o"])
            .arg(&program);
        let (found, _) = json(command.arg("--flags-file").arg(&file))?;
        let kept = array(&found["regions"], "regions")?
            .iter()
            .filter(|r| r["kept"] == true);
        ensure!(kept.count() > 0, "no region is in the hybrid: {found}");
        let hybrid = self.program(&program)?;
        same(expected, &hybrid, "the hybrid binary")
    }
}

//! The cost of a captured page against the bare protect-and-fault round trip, and of a captured run.

use crate::program::{all, kernel, least, seconds};
use anyhow::{Context, Result};
use cere_tests::tools::{cere, output};
use std::path::Path;
use std::process::Command;

const PAGES: &str = "20000";

/// `read` and `write` nanoseconds a page that a probe printed.
fn printed(command: &mut Command) -> Result<(f64, f64)> {
    let output = output(command)?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let line = text
        .lines()
        .find(|l| l.starts_with("read "))
        .with_context(|| format!("no figures in: {text}"))?;
    let words: Vec<&str> = line.split_whitespace().collect();
    Ok((words[1].parse()?, words[3].parse()?))
}

/// Prints the tables.
pub fn run(rounds: usize) -> Result<()> {
    pages(rounds)?;
    runs(rounds.min(3))
}

fn pages(rounds: usize) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let floor = kernel("floor.c").plain(&directory.path().join("floor"), "-O2")?;
    let home = directory.path().join("pages");
    kernel("pages.c").instrumented(&home, "-O2")?;
    println!(
        "### A captured page\n\nNanoseconds a page, {PAGES} pages, least of {rounds} alternating runs.\n"
    );
    println!(
        "| pages | bare fault | with copy | captured | ratio to bare |\n|---|---|---|---|---|"
    );
    for (place, order) in [("in order", "order"), ("at random", "random")] {
        let (mut bare, mut copy, mut taken) = (
            [Vec::new(), Vec::new()],
            [Vec::new(), Vec::new()],
            [Vec::new(), Vec::new()],
        );
        let keep = |list: &mut [Vec<f64>; 2], pair: (f64, f64)| {
            list[0].push(pair.0);
            list[1].push(pair.1);
        };
        for _ in 0..rounds {
            keep(
                &mut bare,
                printed(Command::new(&floor).args([PAGES, order]))?,
            );
            keep(
                &mut copy,
                printed(Command::new(&floor).args([PAGES, order, "copy"]))?,
            );
            keep(
                &mut taken,
                printed(captured(&home).args(["./program", PAGES, order]))?,
            );
        }
        for (i, what) in ["read", "written"].into_iter().enumerate() {
            let (b, c, t) = (least(&bare[i]), least(&copy[i]), least(&taken[i]));
            println!(
                "| {what} {place} | {b:.0} | {c:.0} | {t:.0} | {:.2} |",
                t / b
            );
        }
    }
    println!();
    Ok(())
}

fn captured(home: &Path) -> Command {
    let mut command = cere(home);
    command.args(["capture", "read_pages@*", "write_pages@*", "--"]);
    command
}

fn runs(rounds: usize) -> Result<()> {
    println!(
        "### A captured run\n\nThe first invocation of each region that matters, capture and packages included, least of {rounds}.\n"
    );
    println!("| program | plain s | captured s | ratio |\n|---|---|---|---|");
    for program in all() {
        let directory = tempfile::tempdir()?;
        let home = directory.path().join("instrumented");
        let plain = program.plain(&directory.path().join("plain"), "-O3")?;
        program.instrumented(&home, "-O3")?;
        seconds(cere(&home).args(["profile", "--", "./program"]))?;
        // Where every region is too short to matter, the defaults take none.
        if !output(cere(&home).args(["capture", "--", "./program"]))?
            .status
            .success()
        {
            println!("| {} | | no region passes the defaults | |", program.name);
            continue;
        }
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            a.push(seconds(&mut Command::new(&plain))?);
            b.push(seconds(cere(&home).args(["capture", "--", "./program"]))?);
        }
        println!(
            "| {} | {:.3} | {:.3} | {:.2} |",
            program.name,
            least(&a),
            least(&b),
            least(&b) / least(&a)
        );
    }
    println!();
    Ok(())
}

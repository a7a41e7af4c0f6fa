//! The cost of a captured page against the bare protect-and-fault round trip, and of a captured run.

use crate::program::{all, kernel, least, seconds};
use anyhow::{Context, Result};
use cere_tests::tools::{cere, json, output};
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
    teams(rounds)?;
    runs(rounds.min(3))
}

fn teams(rounds: usize) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let floor = kernel("floor.c").plain(&directory.path().join("floor"), "-O2")?;
    let home = directory.path().join("team");
    kernel("team.c").instrumented(&home, "-O2 -fopenmp")?;
    println!(
        "### A captured page of a team\n\nNanoseconds a page, {PAGES} pages at random, each thread its part, from the first to the last \
         touch; bare: faults of one thread. Least of {rounds} alternating runs.\n"
    );
    println!("| threads | read | ratio to bare | written | ratio to bare |\n|---|---|---|---|---|");
    const THREADS: [&str; 3] = ["1", "2", "8"];
    let mut bare = (f64::INFINITY, f64::INFINITY);
    let mut taken = [bare; THREADS.len()];
    let least = |kept: &mut (f64, f64), new: (f64, f64)| {
        *kept = (kept.0.min(new.0), kept.1.min(new.1));
    };
    for _ in 0..rounds {
        least(
            &mut bare,
            printed(Command::new(&floor).args([PAGES, "random"]))?,
        );
        for (threads, taken) in THREADS.iter().zip(&mut taken) {
            let mut command = captured(&home);
            command
                .args(["./program", PAGES, "random"])
                .env("OMP_NUM_THREADS", threads);
            least(taken, printed(&mut command)?);
        }
    }
    for (threads, (read, written)) in THREADS.iter().zip(taken) {
        println!(
            "| {threads} | {read:.0} | {:.2} | {written:.0} | {:.2} |",
            read / bare.0,
            written / bare.1
        );
    }
    println!();
    Ok(())
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

/// Runs the program and adds the seconds that it took to a file.
const SCRIPT: &str =
    "#!/bin/sh\nfrom=$(date +%s%N)\n./program\nto=$(date +%s%N)\necho $((to - from)) >> seconds\n";

/// Seconds that the program itself took under `command`, which runs the script in `home`, and those of the whole command.
fn timed(home: &Path, command: &mut Command) -> Result<(f64, f64)> {
    let whole = seconds(command)?;
    let text = std::fs::read_to_string(home.join("seconds"))?;
    let last = text.lines().last().context("the script wrote nothing")?;
    Ok((last.parse::<f64>()? * 1e-9, whole))
}

/// A region that matters and an invocation that represents it.
fn representative(home: &Path) -> Result<Option<(String, String)>> {
    let (captured, _) = json(cere(home).args(["capture", "--json", "--", "./run.sh"]))?;
    let first = &captured["codelets"][0];
    let region = first["region"].as_str().map(str::to_owned);
    Ok(region.zip(first["invocation"].as_u64().map(|i| i.to_string())))
}

fn runs(rounds: usize) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    println!(
        "### A captured run\n\nOne representative invocation of the region that comes first, without and with its page trace: the program's own \
         run over a plain one, and the whole command, packages included, least of {rounds}.\n"
    );
    println!(
        "| program | plain s | captured s | ratio | with page trace s | ratio | whole command s |\n|---|---|---|---|---|---|---|"
    );
    let mut ratios = [Vec::new(), Vec::new()];
    for program in all() {
        let directory = tempfile::tempdir()?;
        let home = directory.path().join("instrumented");
        let plain = directory.path().join("plain");
        program.plain(&plain, "-O3")?;
        program.instrumented(&home, "-O3")?;
        for place in [&plain, &home] {
            std::fs::write(place.join("run.sh"), SCRIPT)?;
            let executable = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(place.join("run.sh"), executable)?;
        }
        // Where every region is too short to matter, the defaults take none.
        let Some((region, invocation)) = representative(&home)? else {
            println!(
                "| {} | | no region passes the defaults | | | | |",
                program.name
            );
            continue;
        };
        let capture = |more: &[&str]| {
            let mut command = cere(&home);
            command.args(["capture", &region, "--invocation", &invocation]);
            command.args(more).args(["--", "./run.sh"]);
            command
        };
        let (mut own, mut bare, mut traced) = (Vec::new(), Vec::new(), Vec::new());
        let mut whole = Vec::new();
        for _ in 0..rounds {
            let mut command = Command::new("./run.sh");
            own.push(timed(&plain, command.current_dir(&plain))?.0);
            bare.push(timed(&home, &mut capture(&["--no-trace"]))?.0);
            let (run, all) = timed(&home, &mut capture(&[]))?;
            traced.push(run);
            whole.push(all);
        }
        let own = least(&own);
        let pair = [least(&bare) / own, least(&traced) / own];
        for (list, ratio) in ratios.iter_mut().zip(pair) {
            list.push(ratio);
        }
        println!(
            "| {} | {own:.3} | {:.3} | {:.2} | {:.3} | {:.2} | {:.3} |",
            program.name,
            least(&bare),
            pair[0],
            least(&traced),
            pair[1],
            least(&whole)
        );
    }
    for list in &mut ratios {
        list.sort_by(f64::total_cmp);
    }
    let middle = |list: &[f64]| list.get(list.len() / 2).copied().unwrap_or(f64::NAN);
    println!(
        "| median | | | {:.2} | | {:.2} | |\n",
        middle(&ratios[0]),
        middle(&ratios[1])
    );
    Ok(())
}

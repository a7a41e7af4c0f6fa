//! Package sizes, machine code and results, for every region of every program that ran.

use crate::program::all;
use anyhow::{Context, Result};
use cere_tests::tools::{cere, json};
use std::path::Path;

/// Largest resident memory of a run in bytes.
fn resident(home: &Path) -> Result<u64> {
    let child = std::process::Command::new(home.join("program"))
        .stdout(std::process::Stdio::null())
        .spawn()?;
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    let mut status = 0;
    // SAFETY: waits for the child started above; both results are filled in.
    let usage = unsafe {
        libc::wait4(child.id() as i32, &mut status, 0, usage.as_mut_ptr());
        usage.assume_init()
    };
    Ok(usage.ru_maxrss as u64 * 1024)
}

/// Prints the table.
pub fn run() -> Result<()> {
    println!(
        "### Packages, machine code, results\n\nEvery region that ran, first invocation, at -O3, replayed at equal flags.\n"
    );
    println!(
        "| program | codelets | pages | package bytes / page bytes | identical code | exact results |\n|---|---|---|---|---|---|"
    );
    let mut odd = Vec::new();
    let (mut codelets_all, mut identical_all, mut exact_all) = (0, 0, 0);
    for program in all() {
        let directory = tempfile::tempdir()?;
        let home = directory.path();
        program.instrumented(home, "-O3")?;
        let (captured, _) = json(cere(home).args(["capture", "--json", "*", "--", "./program"]))?;
        let (listed, _) = json(cere(home).args(["codelets", "--json"]))?;
        let listed = listed.as_array().context("codelets is no array")?;
        let (mut pages, mut bytes) = (0, 0);
        for codelet in listed {
            pages += codelet["pages"].as_u64().unwrap_or(0);
            bytes += std::fs::metadata(home.join(codelet["file"].as_str().unwrap_or("")))?.len();
        }
        let codelets = captured["codelets"].as_array().context("no codelets")?;
        let (mut identical, mut exact) = (0, 0);
        for codelet in codelets {
            let name = codelet["name"].as_str().context("a codelet has a name")?;
            let (result, _) = json(cere(home).args(["replay", "--json", "--reps", "3", name]))?;
            identical += usize::from(result["identical_code"] == true);
            exact += usize::from(result["verdict"] == "exact");
            if result["identical_code"] != true || result["verdict"] != "exact" {
                odd.push(format!(
                    "{}: {name}: {} {} {}",
                    program.name, result["verdict"], result["reason"], result["error"]
                ));
            }
        }
        println!(
            "| {} | {} | {pages} | {:.3} | {identical} | {exact} |",
            program.name,
            codelets.len(),
            bytes as f64 / (pages * 4096) as f64
        );
        codelets_all += codelets.len();
        identical_all += identical;
        exact_all += exact;
    }
    println!("| all | {codelets_all} | | | {identical_all} | {exact_all} |\n");
    for line in odd {
        println!("- {line}");
    }
    sizes()
}

fn sizes() -> Result<()> {
    println!(
        "\n### Package against a full memory image\n\n| program | largest package | resident memory of the program | ratio |\n|---|---|---|---|"
    );
    for program in all() {
        let directory = tempfile::tempdir()?;
        let home = directory.path();
        program.instrumented(home, "-O3")?;
        json(cere(home).args(["capture", "--json", "--", "./program"]))?;
        let (listed, _) = json(cere(home).args(["codelets", "--json"]))?;
        let mut largest = 0;
        for codelet in listed.as_array().context("codelets is no array")? {
            largest = largest
                .max(std::fs::metadata(home.join(codelet["file"].as_str().unwrap_or("")))?.len());
        }
        let resident = resident(home)?;
        println!(
            "| {} | {largest} | {resident} | {:.3} |",
            program.name,
            largest as f64 / resident as f64
        );
    }
    println!();
    Ok(())
}

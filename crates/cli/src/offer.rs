//! Offers to run the command that makes a missing codelet or profile: on a terminal, if the program to run is known.

use crate::{ask, options};
use anyhow::{Context, Result};
use cere_store::missing::{self, Maker};
use cere_system::console::print;
use cere_system::process::supervise::shell_code;
use std::process::{Command, Stdio};

/// If the user agrees, runs the command that makes what `error` names as missing, then runs this command again. `None` if
/// there is nothing to offer, or the user declines.
pub fn offer_to_make(error: &anyhow::Error) -> Option<Result<u8>> {
    let maker = missing::maker(error)?;
    if !ask::can() || !maker.runs_alone {
        return None;
    }
    print::failed(error);
    match ask::user_agrees(&format!("cere: run `{}` now?", maker.line())) {
        true => Some(run_maker(maker)),
        false => Some(Ok(1)),
    }
}

/// Runs the command that makes the missing file, then this command again.
fn run_maker(maker: &Maker) -> Result<u8> {
    let own = std::env::current_exe().context("cannot find this command's own file")?;
    let failed = || format!("cannot start {}", own.display());
    // stdout belongs to the reader of this command's output.
    let made = Command::new(&own)
        .args(options::messages())
        .args(&maker.arguments[..1])
        .arg("--store")
        .arg(&maker.store)
        .args(&maker.arguments[1..])
        .current_dir(&maker.directory)
        .stdout(Stdio::from(std::io::stderr()))
        .status()
        .with_context(failed)?;
    if !made.success() {
        return Ok(shell_code(made));
    }
    let again = Command::new(&own)
        .args(std::env::args_os().skip(1))
        .status()
        .with_context(failed)?;
    Ok(shell_code(again))
}

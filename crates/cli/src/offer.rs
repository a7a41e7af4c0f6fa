//! Offers to run the command that makes a missing codelet or profile: on a terminal, if the program to run is known.

use crate::options;
use anyhow::{Context, Result};
use cere_store::missing::{self, Maker};
use cere_system::console::print;
use cere_system::process::supervise::shell_code;
use std::io::{BufRead, IsTerminal, Write};
use std::process::{Command, Stdio};

/// If the user agrees, runs the command that makes what `error` names as missing, then runs this command again. `None` if
/// there is nothing to offer, or the user declines.
pub fn offer_to_make(error: &anyhow::Error) -> Option<Result<u8>> {
    let maker = missing::maker(error)?;
    let asks = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if !asks || !maker.runs_alone {
        return None;
    }
    print::failed(error);
    match user_agrees(&maker.line()) {
        true => Some(run_maker(maker)),
        false => Some(Ok(1)),
    }
}

fn user_agrees(line: &str) -> bool {
    let mut stderr = std::io::stderr().lock();
    let asked = write!(stderr, "cere: run `{line}` now? [y/N] ").and_then(|()| stderr.flush());
    let mut answer = String::new();
    asked.is_ok() && std::io::stdin().lock().read_line(&mut answer).is_ok() && is_yes(&answer)
}

fn is_yes(answer: &str) -> bool {
    ["y", "yes"].contains(&answer.trim().to_lowercase().as_str())
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

#[cfg(test)]
mod tests {
    use super::is_yes;

    #[test]
    fn only_yes_is_yes() {
        assert!(["y\n", "Y", " yes \n"].into_iter().all(is_yes));
        assert!(!["", "\n", "n", "yo", "no"].into_iter().any(is_yes));
    }
}

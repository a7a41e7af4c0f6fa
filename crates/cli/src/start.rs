//! `cere` alone: what to type in this folder.

use anyhow::{Context, Result};
use cere_format::store::Store;
use cere_store::project::Way;
use cere_store::project::next::{Place, Stage, look};
use cere_system::console::print;
use std::path::{Path, PathBuf};

/// The status of a command line without a subcommand.
const NO_COMMAND: u8 = 2;

/// Proposes a command, or shows the short help where nothing is known.
pub fn run(cli: &mut clap::Command) -> Result<u8> {
    let here = std::env::current_dir().context("the working directory is gone")?;
    let place = look(&here, &Store::new(here.join(".cere")))?;
    match proposal(&place, &here) {
        Some(text) => print::line(&text),
        None => print::line(cli.render_help().to_string().trim_end()),
    }
    Ok(NO_COMMAND)
}

/// What to type, and why.
fn proposal(place: &Place, here: &Path) -> Option<String> {
    let (line, why) = match &place.stage {
        Stage::Fresh => return place.ways.first().map(|way| study(way, &place.ways[1..])),
        Stage::Built(programs) => (
            format!("cere profile -- {}", run_of(programs.first(), here)),
            "The build has regions, and no profile yet. This shows where the time goes, region by region:",
        ),
        Stage::Profiled(command) => (
            format!("cere capture -- {command}"),
            "There is a profile (`cere profile --show`), and no codelet yet. This takes the regions that matter:",
        ),
        Stage::Captured => (
            "cere check".to_owned(),
            "There are codelets (`cere codelets`), and none was replayed yet. This compares their times and results with the run:",
        ),
        Stage::Replayed => (
            "cere report".to_owned(),
            "Codelets were replayed (`cere results`). This writes all that is known as one page; `cere tune` searches better flags:",
        ),
    };
    Some(framed(why, &line, ""))
}

fn framed(why: &str, line: &str, more: &str) -> String {
    format!("{why}\n\n    {line}\n\n{more}`cere --help` lists all commands.")
}

/// The study of a program that `way` builds; `others` would do it too.
fn study(way: &Way, others: &[Way]) -> String {
    let name = |way: &Way| {
        let name = way.file.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    };
    let line = format!(
        "cere study --build {} -- {}",
        shell_words::quote(&way.command),
        run_of(way.programs.first(), &way.directory)
    );
    let why = format!(
        "{} is here. This builds the program, finds where its time goes, replays its hot regions and writes report.html:",
        name(way)
    );
    let mut more =
        "ARGUMENTS are what the program takes; leave the word out if that is nothing.\n".to_owned();
    more += &match &way.programs[..] {
        [] => format!(
            "{} does not plainly name the program: write it in place of PROGRAM.\n",
            name(way)
        ),
        [_] => String::new(),
        [_, others @ ..] => {
            let shown = others.iter().take(SHOWN).map(|p| p.display().to_string());
            let shown: Vec<String> = shown.collect();
            let rest = match others.len() - shown.len() {
                0 => String::new(),
                rest => format!(" and {rest} more"),
            };
            format!("It makes {}{rest} as well.\n", shown.join(", "))
        }
    };
    for other in others {
        more += &format!("{} is here too: `{}`.\n", name(other), other.command);
    }
    framed(&why, &line, &more)
}

/// Programs that are named, at most.
const SHOWN: usize = 5;

/// The program as a shell in `here` starts it.
fn run_of(program: Option<&PathBuf>, here: &Path) -> String {
    let Some(program) = program else {
        return "./PROGRAM ARGUMENTS".to_owned();
    };
    let program = program.strip_prefix(here).unwrap_or(program);
    let text = program.to_string_lossy();
    let text = match text.contains('/') {
        true => text.into_owned(),
        false => format!("./{text}"),
    };
    format!("{} ARGUMENTS", shell_words::quote(&text))
}

//! The `cere` command: parses, runs, prints the error chain. Under a compiler's name it is that compiler's wrapper.
//!
//! | subcommand | what it does |
//! |---|---|
//! | `instrument` | runs a build with the wrappers ahead in PATH |
//! | `regions` | lists the regions of the current build |
//! | `profile` | times every region of a run |
//! | `capture` | takes codelets out of a run |
//! | `codelets` | lists the codelets in the store |
//! | `replay` | runs codelets alone: time and verdict |

mod capture;
mod codelets;
mod components;
mod current;
mod image;
mod instrument;
mod launch;
mod names;
mod options;
mod print;
mod profile;
mod progress;
mod regions;
mod replay;
mod state;
mod supervise;
mod words;
mod wrapper;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Takes a program apart into codelets: hot loops that run alone.
#[derive(Parser)]
#[command(name = "cere", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Instrument(instrument::Options),
    Regions(regions::Options),
    Profile(profile::Options),
    Capture(capture::Options),
    Codelets(codelets::Options),
    Replay(replay::Options),
}

fn main() -> ExitCode {
    let outcome = match wrapper::tool_of_argv0() {
        Some(tool) => wrapper::run(tool),
        None => match Cli::parse().command {
            Command::Instrument(options) => instrument::run(&options),
            Command::Regions(options) => regions::run(&options),
            Command::Profile(options) => profile::run(&options),
            Command::Capture(options) => capture::run(&options),
            Command::Codelets(options) => codelets::run(&options),
            Command::Replay(options) => replay::run(&options),
        },
    };
    match outcome {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("cere: error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

//! `cere manual DIR`: man pages and shell completions, for `make install`.

use anyhow::{Context, Result};
use clap_complete::{Shell, generate_to};
use std::path::PathBuf;

/// Write man pages and shell completions
#[derive(clap::Args)]
#[command(hide = true)]
pub struct Options {
    /// Where they go: `man1/`, `bash/`, `zsh/`, `fish/`
    directory: PathBuf,
}

/// Runs the subcommand for the command line `cli`.
pub fn run(options: &Options, cli: clap::Command) -> Result<u8> {
    let mut cli = cli.disable_help_subcommand(true);
    let below = |name: &str| -> Result<PathBuf> {
        let directory = options.directory.join(name);
        std::fs::create_dir_all(&directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
        Ok(directory)
    };
    for (shell, name) in [
        (Shell::Bash, "bash"),
        (Shell::Zsh, "zsh"),
        (Shell::Fish, "fish"),
    ] {
        let directory = below(name)?;
        generate_to(shell, &mut cli, "cere", &directory)
            .with_context(|| format!("cannot write in {}", directory.display()))?;
    }
    let directory = below("man1")?;
    clap_mangen::generate_to(cli, &directory)
        .with_context(|| format!("cannot write in {}", directory.display()))?;
    Ok(0)
}

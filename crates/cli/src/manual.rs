//! `cere manual DIR`: man pages and completions of shells, for installing. Hidden: `make install` and the Debian package
//! call it.

use anyhow::{Context, Result, bail};
use clap_complete::Shell;
use std::fs;
use std::path::{Path, PathBuf};

/// Write man pages and completions of shells
#[derive(clap::Args)]
#[command(
    hide = true,
    after_help = "\
DIR corresponds to /usr/share: man/man1, bash-completion/completions, zsh/site-functions and\n\
fish/vendor_completions.d are created in it.\n\
\n\
Example:\n\
\x20 cere manual /usr/local/share"
)]
pub struct Options {
    /// Directory to write to
    directory: PathBuf,
}

/// The directory that each shell searches, and the name of the file there.
const SHELLS: [(Shell, &str, &str); 3] = [
    (Shell::Bash, "bash-completion/completions", "cere"),
    (Shell::Zsh, "zsh/site-functions", "_cere"),
    (Shell::Fish, "fish/vendor_completions.d", "cere.fish"),
];

/// Runs the subcommand; `cli` is the whole command's parser.
pub fn run(options: &Options, cli: &clap::Command) -> Result<u8> {
    let shown = without_hidden_commands(cli);
    for (shell, directory, name) in SHELLS {
        let directory = create_directory(&options.directory.join(directory))?;
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut shown.clone(), "cere", &mut text);
        let text = with_names(shell, &String::from_utf8_lossy(&text))?;
        let file = directory.join(name);
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    let pages = create_directory(&options.directory.join("man/man1"))?;
    clap_mangen::generate_to(shown, &pages)
        .with_context(|| format!("cannot write in {}", pages.display()))?;
    Ok(0)
}

/// The completion of options with that of names of regions and codelets, which asks `cere complete`.
fn with_names(shell: Shell, options: &str) -> Result<String> {
    Ok(match shell {
        Shell::Bash => options.to_owned() + include_str!("complete/names.bash"),
        Shell::Fish => options.to_owned() + include_str!("complete/names.fish"),
        Shell::Zsh => {
            let own = options.split_once(ZSH.0).zip(options.rsplit_once(ZSH.1));
            let ((head, _), (body, _)) = own.context(
                "clap_complete makes other functions for zsh: `cere manual` has to follow",
            )?;
            let body = &body[head.len() + ZSH.0.len()..];
            let names = include_str!("complete/names.zsh");
            format!("{head}\n_cere_options() {{{body}\n{names}")
        }
        other => bail!("names are not completed in {other}"),
    })
}

/// Where zsh's function for options begins, and where it is called.
const ZSH: (&str, &str) = ("\n_cere() {", "\nif [ \"$funcstack[1]\"");

/// `cli` without hidden subcommands.
fn without_hidden_commands(cli: &clap::Command) -> clap::Command {
    let shown = cli.get_subcommands().filter(|s| !s.is_hide_set()).cloned();
    clap::Command::new("cere")
        .version(env!("CARGO_PKG_VERSION"))
        .about(cli.get_about().cloned().unwrap_or_default())
        .after_help(cli.get_after_help().cloned().unwrap_or_default())
        .args(cli.get_arguments().cloned())
        .subcommand_required(true)
        .subcommands(shown)
}

fn create_directory(directory: &Path) -> Result<PathBuf> {
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot create {}", directory.display()))?;
    Ok(directory.to_owned())
}

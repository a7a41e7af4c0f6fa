//! `cere explain`: what a message means.

use anyhow::Result;
use cere_catalogue::{Entry, bail, ensure};
use cere_system::console::print;

/// Explain a message by its code
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
\x20 cere explain CERE-2003     # what the message means, and what to do
\x20 cere explain --list")]
pub struct Options {
    /// Codes of messages, such as CERE-2003
    words: Vec<String>,
    /// List all codes
    #[arg(long, conflicts_with = "words")]
    list: bool,
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    if options.list {
        let line = |entry: &Entry| format!("{}  {}\n", entry.code, entry.title);
        print::out(&cere_catalogue::entries().map(line).collect::<String>())?;
    } else {
        ensure!(
            !options.words.is_empty(),
            E8003,
            "the code of a message is needed, such as CERE-2003: `cere explain --list` prints all"
        );
        let texts: Result<Vec<String>> = options.words.iter().map(|word| text(word)).collect();
        print::out(&texts?.join("\n"))?;
    }
    Ok(0)
}

/// The entry of a code.
fn text(word: &str) -> Result<String> {
    match cere_catalogue::entry(word) {
        Some(entry) => Ok(entry.text()),
        None => bail!(
            E4025,
            "there is no message {word}: `cere explain --list` prints all codes"
        ),
    }
}

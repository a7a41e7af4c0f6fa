//! `cere complete`: what the completions of shells ask for names of regions and codelets. Hidden.

use crate::options::existing_store;
use anyhow::Result;
use cere_store::complete::{Line, Wanted, candidates};
use cere_system::console::print;
use clap::{Arg, ArgAction, Command};
use std::path::PathBuf;

/// Print names that complete a word, for shells
#[derive(clap::Args)]
#[command(
    hide = true,
    after_help = "\
The completions that `cere manual` writes call it. It prints one name a line; nothing where no name can stand.\n\
\n\
Example:\n\
\x20 cere complete words -- cere replay solve"
)]
pub struct Options {
    #[command(subcommand)]
    shell: Shell,
}

#[derive(clap::Subcommand)]
enum Shell {
    /// For bash: names as it takes them in place of the last word
    Bash {
        /// Characters at which it ends words
        breaks: String,
        /// The line up to the cursor
        line: String,
    },
    /// For shells that quote what they are given
    Words {
        /// The words up to the cursor; the last one is begun
        #[arg(last = true)]
        words: Vec<String>,
    },
}

/// Runs the subcommand; `cli` is the whole command's parser.
pub fn run(options: &Options, cli: &Command) -> Result<u8> {
    let lines = match &options.shell {
        Shell::Bash { breaks, line } => {
            let line = Line::read(line);
            let names = names(cli, &line.words).into_iter();
            names.map(|name| line.reply(&name, breaks)).collect()
        }
        Shell::Words { words } => names(cli, words),
    };
    print::out(
        &lines
            .iter()
            .map(|line| format!("{line}\n"))
            .collect::<String>(),
    )?;
    Ok(0)
}

/// The names with which `words` may go on.
fn names(cli: &Command, words: &[String]) -> Vec<String> {
    let Some((begun, before)) = words.split_last() else {
        return Vec::new();
    };
    let before = before.get(1..).unwrap_or_default();
    let place = Place::after(cli, before);
    let store = place.store.clone().unwrap_or_else(|| ".cere".into());
    match (place.wanted(), existing_store(&store)) {
        (Some(wanted), Ok(store)) if !begun.starts_with('-') => candidates(&store, wanted, begun),
        _ => Vec::new(),
    }
}

/// A place of a command line.
struct Place<'a> {
    command: &'a Command,
    /// The option whose value stands there.
    option: Option<&'a Arg>,
    /// How many arguments without an option are before it.
    positionals: usize,
    /// Whether a program's command has begun.
    program: bool,
    store: Option<PathBuf>,
}

impl<'a> Place<'a> {
    /// The one behind `words`, which are without the command's own name.
    fn after(cli: &'a Command, words: &[String]) -> Self {
        let mut place = Self {
            command: cli,
            option: None,
            positionals: 0,
            program: false,
            store: None,
        };
        for word in words {
            place.pass(word);
        }
        place
    }

    fn pass(&mut self, word: &str) {
        if let Some(option) = self.option.take() {
            if option.get_id() == "store" {
                self.store = Some(word.into());
            }
            return;
        }
        if word == "--" {
            self.program = true;
        } else if let Some(option) = word.strip_prefix("--") {
            match option.split_once('=') {
                Some(("store", path)) => self.store = Some(path.into()),
                Some(_) => {}
                None => self.option = self.argument(option),
            }
        } else if let Some(inner) = self.command.find_subcommand(word) {
            self.command = inner;
        } else if !word.starts_with('-') {
            self.positionals += 1;
        }
    }

    /// The option of this name that takes a value.
    fn argument(&self, name: &str) -> Option<&'a Arg> {
        let mut all = self.command.get_arguments();
        all.find(|arg| arg.get_long() == Some(name) && arg.get_action().takes_values())
    }

    /// Which names can stand there.
    fn wanted(&self) -> Option<Wanted> {
        if self.program {
            return None;
        }
        // The last one takes all that follow, if it takes several.
        let own = || {
            let all = self.command.get_positionals();
            all.filter(|arg| !arg.is_last_set())
        };
        let several = |arg: &&Arg| matches!(arg.get_action(), ArgAction::Append);
        let positional = || own().nth(self.positionals).or(own().last().filter(several));
        let argument = self.option.or_else(positional)?;
        let name = argument.get_value_names().and_then(|names| names.first());
        match (
            name.map_or("", |name| name.as_str()),
            argument.get_id().as_str(),
        ) {
            ("REGION", _) | (_, "patterns" | "regions") => Some(Wanted::Region),
            ("CODELET", _) | (_, "what") => Some(Wanted::Codelet),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn wanted(line: &str) -> Option<Wanted> {
        let cli = crate::Cli::command();
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Place::after(&cli, &words).wanted()
    }

    #[test]
    fn where_names_can_stand() {
        for (line, names) in [
            ("regions", Some(Wanted::Region)),
            ("capture --store x", Some(Wanted::Region)),
            ("capture a b --skip-known", Some(Wanted::Region)),
            ("capture a -- ./app", None),
            ("tune", Some(Wanted::Region)),
            ("results x", Some(Wanted::Region)),
            ("instrument --split", Some(Wanted::Region)),
            ("replay", Some(Wanted::Codelet)),
            ("replay --flags -O3 -q", Some(Wanted::Codelet)),
            ("replay --flags", None),
            ("replay solve", None),
            ("export", Some(Wanted::Codelet)),
            ("export solve", None),
            ("compare a b", Some(Wanted::Codelet)),
            ("count a", Some(Wanted::Codelet)),
            ("guard add", Some(Wanted::Region)),
            ("profile", None),
            ("machine", None),
            ("", None),
        ] {
            assert_eq!(wanted(line), names, "{line}");
        }
    }

    #[test]
    fn the_store_that_the_line_names() {
        let cli = crate::Cli::command();
        for line in [["replay", "--store", "x"], ["replay", "-q", "--store=x"]] {
            let place = Place::after(&cli, &line.map(str::to_owned));
            assert_eq!(place.store, Some("x".into()));
        }
    }
}

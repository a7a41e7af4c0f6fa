//! `cere doctor`: whether this machine has what CERE needs, and how well it measures now.

use crate::ask;
use crate::health::{Findings, mend};
use crate::options::Common;
use crate::show;
use anyhow::{Result, bail};
use cere_format::store::Store;
use cere_system::console::{note, print, progress};

/// Check what this machine has, and how well it measures now
#[derive(clap::Args)]
#[command(after_help = "\
Tries what CERE asks the kernel for, looks for LLVM 22 and CERE's own parts, and says what the machine is. Then it times one\n\
kernel against itself for two seconds: all that differs is noise, and smaller differences between two builds\n\
cannot be detected here. Takes less than five seconds.\n\
\n\
Ends with status 1 if something is missing that CERE needs. Each such item says what to do. On a terminal it offers to run\n\
the commands that mend an item, asks before each, and checks again.\n\
\n\
Examples:\n\
\x20 cere doctor\n\
\x20 cere doctor --fix\n\
\x20 cere doctor --json")]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Offer to run what mends an item; fails where no terminal is there to ask at
    #[arg(long, conflicts_with = "json")]
    fix: bool,
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    if options.fix && !ask::can() {
        bail!(
            "--fix asks before each command, and there is no terminal to ask at: `cere doctor` names the commands"
        );
    }
    let store = options.common.store()?;
    let mut findings = look(&store);
    if options.common.json {
        print::json(&show::doctor::json(&findings))?;
        return Ok(u8::from(findings.is_lacking()));
    }
    print::text(&show::doctor::text(&findings))?;
    let commands = mend::commands(findings.items());
    if !commands.is_empty() && ask::can() && mend::offer(&commands)? {
        findings = look(&store);
        print::text(&show::doctor::text(&findings))?;
    } else if commands.is_empty() && options.fix {
        note!("no item has a command that would mend it");
    }
    Ok(u8::from(findings.is_lacking()))
}

fn look(store: &Store) -> Findings {
    let spinner = progress::spinner("looking, and measuring for 2 s".into());
    let findings = Findings::here(store);
    spinner.finish_and_clear();
    findings
}

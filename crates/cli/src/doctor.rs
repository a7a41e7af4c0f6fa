//! `cere doctor`: whether this machine has what CERE needs, and how well it measures now.

use crate::health::Findings;
use crate::options::Common;
use crate::show;
use anyhow::Result;
use cere_system::console::{print, progress};

/// Check what this machine has, and how well it measures now
#[derive(clap::Args)]
#[command(after_help = "\
Tries what CERE asks the kernel for, looks for LLVM 22 and CERE's own parts, and says what the machine is. Then it times one\n\
kernel against itself for two seconds: all that differs is noise, and smaller differences between two builds\n\
cannot be detected here. Takes less than five seconds.\n\
\n\
Ends with status 1 if something is missing that CERE needs. Each such item says what to do.\n\
\n\
Examples:\n\
\x20 cere doctor\n\
\x20 cere doctor --json")]
pub struct Options {
    #[command(flatten)]
    common: Common,
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    let store = options.common.store()?;
    let spinner = progress::spinner("looking, and measuring for 2 s".into());
    let findings = Findings::here(&store);
    spinner.finish_and_clear();
    if options.common.json {
        print::json(&show::doctor::json(&findings))?;
    } else {
        print::text(&show::doctor::text(&findings))?;
    }
    Ok(u8::from(findings.is_lacking()))
}

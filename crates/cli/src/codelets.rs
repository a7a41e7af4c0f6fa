//! `cere codelets`: lists the codelets in the store.

use crate::options::Common;
use crate::show;
use anyhow::{Context, Result};
use cere_catalogue::bail;
use cere_package::io::read_manifest;
use cere_store::codelets::{Listed, Verdicts, files};
use cere_store::notes::{Notes, grouped};
use cere_store::state;
use cere_system::console::{note, print};

/// List the codelets in the store
#[derive(clap::Args)]
#[command(
    after_help = "A codelet stays in the store when the program is built again. It is `current` while the last build has its region under\nthe same name, else `older`. The last verdict is that of the last replay without --flags, --passes and --no-check.\n\nExamples:\n  cere codelets --json\n  cere codelets --prune"
)]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Remove the codelets that are not of the current build
    #[arg(long)]
    prune: bool,
}

/// Removes the files of those `codelets` that do not belong to the current build. Returns the others.
fn prune(codelets: Vec<Listed>) -> Result<Vec<Listed>> {
    if codelets.iter().any(|c| c.current.is_none()) {
        bail!(
            E4020,
            "the store records no build whose sources are there, so that no codelet is older than it: run `cere instrument -- <build command>` first"
        );
    }
    let (current, older): (Vec<_>, Vec<_>) =
        codelets.into_iter().partition(|c| c.current == Some(true));
    for codelet in older {
        std::fs::remove_file(&codelet.file)
            .with_context(|| format!("cannot remove {}", codelet.file.display()))?;
        note!("removed {}", codelet.name);
    }
    Ok(current)
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    let store = options.common.existing_store()?;
    let _lock = options.prune.then(|| state::lock(&store)).transpose()?;
    let notes = Notes::of(&store)?;
    let verdicts = Verdicts::of(&store)?;
    let (mut sound, mut damaged) = (Vec::new(), Vec::new());
    for file in files(&store)? {
        let listed = read_manifest(&file)
            .map_err(anyhow::Error::from)
            .and_then(|manifest| {
                let current = notes.current().holds(&manifest);
                Listed::of(&manifest, &file, (current, notes.on(&manifest)), &verdicts)
            });
        match listed {
            Ok(listed) => sound.push(listed),
            Err(error) => damaged.push((file, error)),
        }
    }
    if options.prune {
        sound = prune(sound)?;
    }
    if options.common.json {
        print::json(&sound)?;
    } else if sound.is_empty() && damaged.is_empty() {
        note!("no codelets yet: `cere capture -- ./app` takes some");
    } else {
        print::text(&show::codelets::table(&sound))?;
    }
    let told = sound.iter().map(|c| (c.name.as_str(), c.notes.clone()));
    for note in grouped(told) {
        note!("{note}");
    }
    for (file, error) in &damaged {
        note!("damaged: {}: {}", file.display(), print::error(error));
    }
    if !damaged.is_empty() {
        bail!(
            E6013,
            "{} codelets are damaged: remove them and capture again",
            damaged.len()
        );
    }
    Ok(0)
}

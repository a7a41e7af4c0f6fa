//! `cere export CODELET DIR`: a folder that builds and runs without CERE.

use crate::options::{Common, Replaying};
use anyhow::Result;
use cere_catalogue::bail;
use cere_export::folder::{self, Folder};
use cere_format::package::Manifest;
use cere_format::replay::Verdict;
use cere_measure::Replays;
use cere_replay::plain::Plain;
use cere_store::{codelets, find};
use cere_system::console::{note, print, progress};
use std::path::{Path, PathBuf};

/// Write a codelet as a folder that builds and runs without CERE
#[derive(clap::Args)]
#[command(after_help = "\
The folder has the codelet's IR, its data, the harness that runs it, a Makefile and a README.md: for bug reports, gdb, perf,\n\
valgrind and simulators. It needs LLVM 22 and make. The codelet is built and run once from the folder's IR, in the sandbox.\n\
The data are the captured program's: look before you send them to others.\n\
\n\
Exit status: 0 if that run is exact; 1 if not (the folder is there all the same).\n\
\n\
Examples:\n\
\x20 cere export solve@solver.c:41 solve\n\
\x20 cere export solve@solver.c:41 solve --flags \"-O3 -march=native\"\n\
\x20 cere export some.codelet folder")]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// A codelet, or a .codelet file
    what: String,
    /// The folder, which is created
    folder: PathBuf,
    #[command(flatten)]
    replaying: Replaying,
}

/// The only codelet that a name means.
pub fn only(store: &cere_format::store::Store, what: &str) -> Result<PathBuf> {
    let files = find::packages(store, what, &cere_system::console::events())?;
    match &files[..] {
        [only] => Ok(only.clone()),
        several => {
            let names: Vec<String> = several.iter().map(|f| codelets::display_name(f)).collect();
            bail!(
                E6409,
                "{what} names {} codelets: name one of {}",
                several.len(),
                names.join(", ")
            )
        }
    }
}

/// Refuses codelets whose flags name files that a folder does not have.
pub fn check_files(manifest: &Manifest) -> Result<()> {
    if let Some(flag) = folder::files_of_flags(manifest).first() {
        bail!(
            E6422,
            "{} was built with {flag}: a folder would need the profile, which is not part of a codelet; capture a build without it",
            manifest.name
        );
    }
    Ok(())
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    let store = options.common.store()?;
    let settings = options.replaying.settings()?;
    let file = only(&store, &options.what)?;
    let path = folder::create(&options.folder)?;
    let replays = Replays::open(&store, &cere_system::console::events())?;
    let (package, manifest, _) = replays.unpack(&file)?;
    check_files(&manifest)?;
    let settings = replays.options(&settings, None)?;
    let spinner = progress::spinner(format!("exporting {}", manifest.name));
    let done = write(&path, &package, &manifest, &settings);
    spinner.finish_and_clear();
    let (written, replay) = done?;
    if options.common.json {
        print::json(&serde_json::json!({
            "codelet": manifest.name,
            "folder": options.folder,
            "bytes": written.bytes,
            "sources": written.sources.copied.iter().map(|s| &s.0).collect::<Vec<_>>(),
            "missing_sources": written.sources.missing,
            "verdict": replay.verdict,
            "reason": replay.reason,
            "seconds": replay.seconds_median,
        }))?;
    } else {
        let folder = options.folder.display();
        print::out(&format!(
            "{folder}: {}, {:.1} MB; from its IR: {}, {} ({})\nrun it: make -C {folder} run\n",
            manifest.name,
            written.bytes as f64 / 1e6,
            print::time(replay.seconds_median),
            replay.verdict.name(),
            replay.reason
        ))?;
    }
    for missing in &written.sources.missing {
        note!(
            "not in the folder: {}, which is gone or has changed since it was compiled, or has no checksum in the debug information",
            missing.display()
        );
    }
    Ok(u8::from(replay.verdict != Verdict::Exact))
}

fn write(
    path: &Path,
    package: &Path,
    manifest: &Manifest,
    options: &cere_replay::Options,
) -> Result<(folder::Written, cere_replay::Replay)> {
    let plain = Plain::of(package, manifest, options)?;
    let folder = Folder {
        path,
        package,
        manifest,
        plain: &plain,
        options,
        reduced: None,
    };
    let written = folder.write()?;
    let built = plain.build(manifest, &plain.units, options)?;
    let mut replay = cere_replay::run::run(package, manifest, &built, options)?;
    cere_replay::judge(package, manifest, &built, &mut replay, options)?;
    Ok((written, replay))
}

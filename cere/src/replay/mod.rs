//! `cere replay CODELET|REGION|FILE`: runs codelets alone, for their time and the verdict on the result.

mod bound;
mod cache;
mod find;
mod show;

use crate::codelets::{self, LastReplay};
use crate::options::{self, Common};
use crate::{components, print, progress, state, words};
use anyhow::{Context, Result, bail};
use cache::Cache;
use cere_format::replay::Verdict;
use cere_format::store::Store;
use cere_replay::Replay;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use show::word;

/// Run codelets alone: time and verdict
#[derive(clap::Args)]
#[command(after_help = "\
Ends with status 0 if the result is exact, differs within --tolerance in floating-point words only,\n\
or was not to be checked. Of a pattern's codelets, those of an older build are left out if there are current ones.\n\
\n\
Unpacked codelets (up to 2 GiB) and what was built of them (up to 512 MiB) are kept in the store's cache/, or in\n\
~/.cache/cere without a store; what was not used for longest goes first. It may be removed at any time when no\n\
replay runs.\n\
\n\
Examples:\n\
\x20 cere replay solve@solver.c:41\n\
\x20 cere replay solve@solver.c:41 --flags \"-O2 -march=native\"\n\
\x20 cere replay some.codelet --keep kept")]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// A codelet, a region, or a .codelet file
    what: String,
    /// Compiler flags after those of the build
    #[arg(
        long,
        value_name = "FLAGS",
        default_value = "",
        allow_hyphen_values = true
    )]
    flags: String,
    /// An `opt` pipeline instead of the compiler's own
    #[arg(long, value_name = "PIPELINE")]
    passes: Option<String>,
    /// Timed repetitions
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    reps: u32,
    /// Keep objects, glue, link line and executable in this directory
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Longest run of the replay in seconds
    #[arg(long, value_name = "S", value_parser = options::seconds, default_value = "600")]
    timeout: f64,
    /// Largest relative error of a floating-point word that is still accepted
    #[arg(long, value_name = "X", default_value_t = 1e-9, value_parser = tolerance)]
    tolerance: f64,
    /// Do not compare the result
    #[arg(long)]
    no_check: bool,
}

fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..1.0).contains(&value) => Ok(value),
        _ => Err("a relative error from 0 up to 1 is needed".into()),
    }
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    let mut results = Vec::new();
    let outcome = all(options, &mut results);
    if let (Err(error), true) = (&outcome, results.is_empty()) {
        results.push(show::failure(&options.what, &options.flags, error));
    }
    if options.common.json {
        match &results[..] {
            [only] => print::json(only)?,
            all => print::json(&all)?,
        }
    }
    outcome
}

/// Replays what is named; `results` gets an entry for each codelet, whatever became of it.
fn all(options: &Options, results: &mut Vec<serde_json::Value>) -> Result<u8> {
    let store = options.common.store()?;
    let flags = words::split(&options.flags).context("--flags")?;
    let files = find::packages(&store, &options.what)?;
    let cache = Cache::open(&store)?;
    let mut failures = 0;
    for file in &files {
        cache.trim();
        match one(options, &store, &flags, &cache, file, files.len() > 1) {
            Ok(replay) => {
                if !options.common.json {
                    print::out(&show::text(&replay))?;
                }
                failures += u32::from(!passes(&replay, options));
                results.push(show::json(&replay, &options.flags));
            }
            Err(error) => {
                let name = codelets::called(file);
                results.push(show::failure(&name, &options.flags, &error));
                if files.len() == 1 {
                    return Err(error);
                }
                failures += 1;
                eprintln!("cere: not replayed: {name}: {error:#}");
            }
        }
    }
    cache.trim();
    Ok(u8::from(failures > 0))
}

fn passes(replay: &Replay, options: &Options) -> bool {
    match replay.verdict {
        Verdict::Exact | Verdict::Tolerance => true,
        Verdict::Unchecked => options.no_check,
        Verdict::Different => false,
    }
}

fn one(
    options: &Options,
    store: &Store,
    flags: &[String],
    cache: &Cache,
    file: &Path,
    several: bool,
) -> Result<Replay> {
    let (package, manifest) = cache
        .unpack(file)
        .with_context(|| format!("the codelet {} cannot be used", file.display()))?;
    // SAFETY: sysconf takes no pointers.
    let page_size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
    cere_package::fits(&manifest, &cere_package::machine(), page_size)?;
    let keep = options.keep.as_ref().map(|keep| match several {
        true => keep.join(file.file_stem().unwrap_or_default()),
        false => keep.clone(),
    });
    let spinner = progress::spinner(format!("replaying {}", manifest.name));
    let replay = cere_replay::replay(
        &package,
        &cere_replay::Options {
            flags: flags.to_vec(),
            passes: options.passes.clone(),
            repetitions: options.reps,
            compare: !options.no_check,
            tolerance: options.tolerance,
            keep,
            cache: cache.builds(),
            plugin: components::find(components::PLUGIN)?,
            runtime: components::find(components::RUNTIME)?,
            timeout: Duration::from_secs_f64(options.timeout),
        },
    );
    spinner.finish_and_clear();
    let replay = replay?;
    bound::touch(&replay.executable);
    if file.starts_with(store.codelets()) {
        let last = LastReplay {
            verdict: replay.verdict,
            flags: options.flags.clone(),
        };
        // A store that cannot be written still replays; its list then shows no verdict.
        let _ = state::write_json(&codelets::verdict_of(file), &last);
    }
    if replay.cycles.is_empty() {
        bail!("the replay of {} measured nothing", replay.codelet);
    }
    Ok(replay)
}

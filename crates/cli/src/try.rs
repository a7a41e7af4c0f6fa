//! `cere try [REGION..]`: edited sources on captured codelets.

use crate::options::{Common, Replaying};
use crate::show;
use crate::watch::{self, Watched};
use anyhow::{Context, Result};
use cere_catalogue::{bail, ensure};
use cere_measure::edits::captured::{Captured, Region};
use cere_measure::edits::given::Sources;
use cere_measure::edits::kept::Best;
use cere_measure::edits::{Edits, Tried, Variant};
use cere_measure::{Effort, Replays};
use cere_system::console::{print, progress};
use std::path::PathBuf;

/// Edited loops on captured data: is the result right, and how fast is it?
#[derive(clap::Args)]
#[command(after_help = "\
Compiles what changed since the codelets were captured as the build compiled it, beside the build: no file of the\n\
build is written. The new code runs on the captured memory, in turns with the code as captured. Loops may be split,\n\
interchanged, moved into functions or replaced; code that the loop gets its values from has to stay.\n\
\n\
Exit status: 0 if all results are exact, or differ by rounding alone (tolerance).\n\
\n\
Examples:\n\
\x20 cere try                               # after saving a source\n\
\x20 cere try 'solve@*' --flags \"-O3\"\n\
\x20 cere try --source faster/solver.c      # instead of the build's solver.c\n\
\x20 cere try --watch                       # after each save\n\
\x20 cere try --patch idea.diff\n\
\x20 cere try --dir ../tree1 --dir ../tree2 # copies of the source tree, such as git worktrees")]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Codelets or regions; all whose sources changed if none is given
    what: Vec<String>,
    /// A file in the place of the source of the same name; ORIGINAL=FILE where that is called otherwise
    #[arg(long, value_name = "FILE")]
    source: Vec<String>,
    /// A patch (`diff -u`, `git diff`) of the sources
    #[arg(long, value_name = "FILE")]
    patch: Vec<PathBuf>,
    /// A copy of the source tree
    #[arg(long, value_name = "TREE")]
    dir: Vec<PathBuf>,
    /// A function that is renamed: the symbol OLD is called NEW now
    #[arg(long = "as", value_name = "OLD=NEW", value_parser = pair)]
    renamed: Vec<(String, String)>,
    /// Seconds of replays for each region, after which no round of them begins
    #[arg(long, value_name = "S", default_value_t = Effort::default().seconds)]
    seconds: f64,
    /// Try again whenever a source is saved. Keys: b takes the sources as the baseline of the next ones, r tries again, q quits
    #[arg(long, conflicts_with_all = ["source", "patch", "dir"])]
    watch: bool,
    /// For edits that nobody has read: compilers read the units' own sources alone, and the code makes no system call that was not
    /// captured, has no assembly of its own, and does not find the expected result in its memory
    #[arg(long)]
    untrusted: bool,
    #[command(flatten)]
    replaying: Replaying,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((old, new)) if !old.is_empty() && !new.is_empty() => Ok((old.into(), new.into())),
        _ => Err("two symbols are needed: OLD=NEW".into()),
    }
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    let store = options.common.existing_store()?;
    let events = cere_system::console::events();
    let replays = Replays::open(&store, &events)?;
    let captured = Captured::find(&replays, &options.what)?;
    let scratch = tempfile::tempdir().context("cannot write temporary files")?;
    let variants = variants(options, &captured.sources(), &scratch)?;
    let mut settings = options.replaying.settings()?;
    settings.flags.clear();
    if options.untrusted {
        ensure!(
            settings.sandbox.is_on(),
            E8001,
            "--untrusted runs in the sandbox, which --no-sandbox leaves out"
        );
        settings.sandbox = settings.sandbox.sealed();
    }
    if settings.repetitions == Default::default() {
        settings.repetitions.least = 3;
        settings.repetitions.seconds = 0.05;
    }
    let effort = Effort {
        seconds: options.seconds,
        ..Effort::default()
    };
    if let (true, [variant]) = (options.watch, &variants[..]) {
        let watched = Watched {
            replays: &replays,
            captured: &captured,
            settings,
            effort,
            variant: variant.clone(),
            json: options.common.json,
        };
        return watch::run(watched, Best::new(&store, &captured));
    }
    let mut edits = Edits::new(&replays, settings)?;
    let mut regions = Vec::new();
    for (name, target) in captured.regions() {
        let spinner = progress::spinner(format!("trying {name}"));
        let region = captured.attempt(&mut edits, target, &variants, effort);
        spinner.finish_and_clear();
        regions.extend(region?);
    }
    if regions.is_empty() {
        bail!(
            E5301,
            "nothing to try: no source of the chosen codelets changed since they were captured. Edit one, or name a variant by --source, --patch, --dir or --flags"
        );
    }
    finish(options, &regions)
}

fn finish(options: &Options, regions: &[Region]) -> Result<u8> {
    match options.common.json {
        true => print::json(&show::edits::json(regions))?,
        false => print::text(&show::edits::text(regions))?,
    }
    let mut tried = regions.iter().flat_map(|r| &r.tried);
    Ok(u8::from(!tried.all(Tried::is_right)))
}

/// The variants that the options name; the sources as they are if they name none.
fn variants(
    options: &Options,
    sources: &Sources,
    scratch: &tempfile::TempDir,
) -> Result<Vec<Variant>> {
    let mut found = Vec::new();
    for file in &options.source {
        found.push(sources.file(file)?);
    }
    for (number, patch) in options.patch.iter().enumerate() {
        let place = scratch.path().join(number.to_string());
        std::fs::create_dir(&place)
            .with_context(|| format!("cannot create {}", place.display()))?;
        found.push(sources.patch(patch, &place)?);
    }
    for tree in &options.dir {
        found.push(sources.tree(tree)?);
    }
    if found.is_empty() {
        found.push(Variant::default());
    }
    for variant in &mut found {
        variant.flags.clone_from(&options.replaying.flags.words);
        variant.renamed = options.renamed.iter().cloned().collect();
    }
    Ok(found)
}

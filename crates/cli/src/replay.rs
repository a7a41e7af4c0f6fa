//! `cere replay CODELET|REGION|FILE`: runs codelets alone, for their time and the verdict on the result.

use crate::options::{self, Common, CrossOptions, Replaying, pipeline};
use crate::show;
use anyhow::Result;
use cere_catalogue::anyhow;
use cere_format::replay::{Operand, Verdict};
use cere_measure::{Replays, Settings};
use cere_replay::{Replay, Tolerance, operand};
use cere_store::{codelets, find};
use cere_system::console::{note, print, progress};
use std::path::PathBuf;

/// Run codelets alone: time and verdict
#[derive(clap::Args)]
#[command(after_help = "\
Exit status: 0 if the result is exact; if it is the same where it was compared (partly); if only floating-point words\n\
differ, within the tolerances; or with --no-check.\n\
--flags come after those of the build. They apply to the units that `cere instrument` built into the region's image;\n\
functions that may have run as captured machine code are named.\n\
If a pattern matches codelets of the current build, older ones are left out.\n\
With --target, operations are made as the captured processor had them for the verdict, and as the target's compiler\n\
makes them for the time; what only the captured architecture has is refused by name.\n\
\n\
Repetitions go on until the median is known to 1 % (95 % confidence): 10 to 1000 of them, for 2 seconds at most. Of long\n\
regions three are enough after 2 seconds, and one after 20. Repetitions with a page fault, a context switch or a\n\
migration, and single ones far above all others, are discarded and counted. A region of less than about a millisecond\n\
first runs 100 times untimed, or for 0.02 seconds, so that the processor has learnt its branches, as in the program.\n\
\n\
Unpacked codelets (up to 2 GiB; during a command up to a quarter of the free space) and their builds (up to 512 MiB) are\n\
kept in the store's cache/, or in ~/.cache/cere without a store. The least recently used go first. The directory may be\n\
removed whenever no replay runs.\n\
\n\
Every replay leaves a record in the store (`cere results`), if there is one. So do .codelet files from elsewhere.\n\
\n\
Examples:\n\
\x20 cere replay solve@solver.c:41\n\
\x20 cere replay solve@solver.c:41 --flags \"-O2 -march=native\"\n\
\x20 cere replay solve@solver.c:41 --warmup cold --warm-to llc\n\
\x20 cere replay solve@solver.c:41 --operand list
\x20 cere replay solve@solver.c:41 --operand grid=cold,work=l2
\x20 cere replay solve@solver.c:41 --energy
\x20 cere replay solve@solver.c:41 --target aarch64-linux-gnu --runner qemu-aarch64
\x20 cere replay some.codelet --keep kept")]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// A codelet, a region, or a .codelet file
    what: String,
    /// An `opt` pipeline instead of the compiler's own, e.g. `default<O3>`
    #[arg(long, value_name = "PIPELINE", value_parser = pipeline)]
    passes: Option<String>,
    /// State of single operands after the warm-up: `NAME=warm|l2|llc|cold`; `data` is the rest of the memory, `code` what runs; `list` prints the names
    #[arg(long, value_name = "NAME=STATE,...", value_delimiter = ',')]
    operand: Vec<String>,
    #[command(flatten)]
    replaying: Replaying,
    #[command(flatten)]
    cross: CrossOptions,
    /// Also measure energy: joules of an invocation, watts and energy-delay product, by the counters of whole packages (RAPL)
    #[arg(long)]
    energy: bool,
    /// Keep objects, glue, link line and executable in this directory
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Largest relative error of a double that is accepted, for other flags' rounding
    #[arg(long, value_name = "X", default_value_t = 1e-9, value_parser = options::tolerance)]
    tolerance: f64,
    /// Likewise, of a float
    #[arg(long, value_name = "X", default_value_t = 1e-5, value_parser = options::tolerance)]
    float_tolerance: f64,
    /// Do not compare the result
    #[arg(long)]
    no_check: bool,
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    if options.operand == ["list"] || options.operand == ["?"] {
        return list(options).map(|()| 0);
    }
    let mut results = Vec::new();
    let outcome = replay_all(options, &mut results);
    if let (Err(error), true) = (&outcome, results.is_empty()) {
        results.push(show::replay::failure(
            &options.what,
            &options.replaying.flags.text,
            error,
        ));
    }
    if options.common.json {
        match &results[..] {
            [only] => print::json(only)?,
            all => print::json(&all)?,
        }
    }
    outcome
}

/// Replays the named codelets; `results` gets an entry for each one, also for those that fail.
fn replay_all(options: &Options, results: &mut Vec<serde_json::Value>) -> Result<u8> {
    let store = options.common.store()?;
    let settings = options.settings()?;
    let events = cere_system::console::events();
    let files = find::packages(&store, &options.what, &events)?;
    let replays = Replays::open(&store, &events)?;
    let mut failures = 0;
    for file in &files {
        let keep = options.keep.as_ref().map(|keep| match files.len() {
            1 => keep.clone(),
            _ => keep.join(file.file_stem().unwrap_or_default()),
        });
        let spinner = progress::spinner(format!("replaying {}", codelets::display_name(file)));
        let replay = replays.replay(&settings, file, keep);
        spinner.finish_and_clear();
        match replay {
            Ok(replay) => {
                if !options.common.json {
                    print::text(&show::replay::text(&replay))?;
                }
                failures += u32::from(!passes(&replay, options));
                results.push(show::replay::json(&replay, &options.replaying.flags.text));
            }
            Err(error) => {
                let name = codelets::display_name(file);
                results.push(show::replay::failure(
                    &name,
                    &options.replaying.flags.text,
                    &error,
                ));
                if files.len() == 1 {
                    return Err(error);
                }
                failures += 1;
                note!("not replayed: {name}: {}", print::error(&error));
            }
        }
    }
    Ok(u8::from(failures > 0))
}

fn passes(replay: &Replay, options: &Options) -> bool {
    match replay.verdict {
        Verdict::Unchecked => options.no_check,
        verdict => verdict.is_right(),
    }
}

/// What can be named of the codelets: text, or a value for each.
fn list(options: &Options) -> Result<()> {
    let store = options.common.store()?;
    let replays = Replays::open(&store, &cere_system::console::events())?;
    let mut all = Vec::new();
    for file in find::packages(&store, &options.what, &cere_system::console::events())? {
        let (package, manifest, _) = replays.unpack(&file)?;
        let known = operand::list(&package, &manifest)?;
        if !options.common.json {
            print::text(&show::replay::operands(&manifest.name, &known))?;
        }
        all.push(serde_json::json!({"codelet": manifest.name, "operands": known}));
    }
    match (options.common.json, &all[..]) {
        (false, _) => Ok(()),
        (true, [only]) => print::json(only),
        (true, all) => print::json(&all),
    }
}

impl Options {
    /// Operands with states of their own.
    fn operands(&self) -> Result<Vec<Operand>> {
        let parse =
            |text: &String| operand::parse(text).map_err(|why| anyhow!(E5020, "--operand: {why}"));
        self.operand.iter().map(parse).collect()
    }

    fn settings(&self) -> Result<Settings> {
        Ok(Settings {
            passes: self.passes.clone(),
            operands: self.operands()?,
            energy: options::energy_rounds(self.energy)?,
            compare: !self.no_check,
            cross: self.cross.cross()?,
            tolerance: Tolerance {
                double: self.tolerance,
                single: self.float_tolerance,
            },
            ..self.replaying.settings()?
        })
    }
}

//! `cere reduce CODELET --flags FLAGS`: the least IR that keeps what flags do wrong.

use crate::export::{check_files, only};
use crate::options::{Common, Flags, Replaying};
use anyhow::{Context, Result};
use cere_catalogue::{OrCoded, bail, codes};
use cere_export::folder::{self, Folder, Reproducer};
use cere_export::keeps::Keeps;
use cere_export::probe::Probe;
use cere_export::reduce::{self, Reduced};
use cere_measure::Replays;
use cere_replay::plain::Plain;
use cere_system::console::{print, progress};
use std::path::PathBuf;
use std::time::Duration;

/// Reduce a codelet to the least IR that flags compile wrongly, or slowly
#[derive(clap::Args)]
#[command(after_help = "\
llvm-reduce removes parts of the codelet's IR. What is left is compiled under each set of flags and runs on the captured\n\
memory, in the sandbox. --keeps different: it ends alike at -O0 and under the build's flags (or --baseline), and otherwise\n\
under --flags. --keeps slow: it ends alike, and takes --ratio times as long under --flags.\n\
\n\
The folder is that of `cere export` with the reduced IR; REPRODUCER.md there has the commands that show the difference.\n\
\n\
Examples:\n\
\x20 cere reduce solve@solver.c:41 --flags \"-O3 -mllvm -enable-some-pass\" -o bug\n\
\x20 cere reduce solve@solver.c:41 --flags \"-O3\" --keeps slow --ratio 1.2 -o slow")]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// A codelet, or a .codelet file
    what: String,
    #[command(flatten)]
    replaying: Replaying,
    /// What the reduced IR keeps
    #[arg(long, value_enum, default_value = "different")]
    keeps: Kept,
    /// Flags after those of the build that are right, or fast
    #[arg(
        long,
        value_name = "FLAGS",
        default_value = "",
        allow_hyphen_values = true
    )]
    baseline: Flags,
    /// With --keeps slow: so many times as long at least; by default seven tenths of what is measured first
    #[arg(long, value_name = "X", value_parser = ratio)]
    ratio: Option<f64>,
    /// Seconds after which no further candidate is tried
    #[arg(long, value_name = "S", default_value_t = 600.0)]
    seconds: f64,
    /// The folder, which is created
    #[arg(short, long, value_name = "DIR", default_value = "reduced")]
    output: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Kept {
    /// Another result
    Different,
    /// A longer time
    Slow,
}

fn ratio(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(ratio) if (1.02..1e6).contains(&ratio) => Ok(ratio),
        _ => Err("a ratio of 1.02 or more is needed: less cannot be told from noise".to_owned()),
    }
}

impl Options {
    fn keeps(&self) -> Result<Keeps> {
        match (self.keeps, self.ratio) {
            (Kept::Slow, ratio) => Ok(Keeps::Slow(ratio)),
            (Kept::Different, None) => Ok(Keeps::Different),
            (Kept::Different, Some(_)) => bail!(E8001, "--ratio needs --keeps slow"),
        }
    }

    /// The sets of flags whose results are right; the first one's time counts.
    fn references(&self, keeps: Keeps) -> Vec<Vec<String>> {
        let own = self.baseline.words.clone();
        match keeps {
            Keeps::Different => vec![vec!["-O0".to_owned()], own],
            Keeps::Slow(_) => vec![own],
        }
    }
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    let keeps = options.keeps()?;
    if options.replaying.flags.words.is_empty() {
        bail!(
            E8003,
            "--flags is needed: the flags that compile the codelet wrongly, or slowly"
        );
    }
    let limit = Duration::try_from_secs_f64(options.seconds).or_coded(codes::E8002, || {
        format!("--seconds {} is no time", options.seconds)
    })?;
    let store = options.common.store()?;
    let settings = options.replaying.settings()?;
    let file = only(&store, &options.what)?;
    let path = folder::create(&options.output)?;
    let replays = Replays::open(&store, &cere_system::console::events())?;
    let (package, manifest, _) = replays.unpack(&file)?;
    check_files(&manifest)?;
    let scratch = tempfile::tempdir().context("cannot write temporary files")?;
    let replaying = cere_replay::Options {
        // Candidates are many, and of no use afterwards.
        cache: scratch.path().join("cache"),
        ..replays.options(&settings, None)?
    };
    let plain = Plain::of(&package, &manifest, &replaying)?;
    let spinner = progress::spinner(format!("reducing {}", manifest.name));
    let references = options.references(keeps);
    let mut probe = Probe::new(&package, &manifest, &plain, keeps, references, &replaying)?;
    let whole = plain.units[probe.unit].ir.clone();
    let reduced = reduce::reduce(&mut probe, &whole, keeps, scratch.path(), limit, &replaying)?;
    let small = scratch.path().join("small.ll");
    std::fs::write(&small, &reduced.ir)
        .with_context(|| format!("cannot write {}", small.display()))?;
    let ends = probe.ends(&small);
    spinner.finish_and_clear();
    Folder {
        path: &path,
        package: &package,
        manifest: &manifest,
        plain: &plain,
        options: &replaying,
        reduced: Some(Reproducer {
            unit: probe.unit,
            reduced: &reduced,
            ends: &ends,
            ratio: probe.ratio,
        }),
    }
    .write()?;
    show(options, &manifest.name, &probe, &reduced, &ends)?;
    Ok(0)
}

fn show(
    options: &Options,
    codelet: &str,
    probe: &Probe,
    reduced: &Reduced,
    ends: &[(String, Option<cere_export::keeps::End>)],
) -> Result<()> {
    if options.common.json {
        let ends: Vec<_> = ends
            .iter()
            .map(|(flags, end)| serde_json::json!({"flags": flags, "end": end.map(|e| e.to_string())}))
            .collect();
        return print::json(&serde_json::json!({
            "codelet": codelet,
            "folder": options.output,
            "unit": probe.unit,
            "instructions": [reduced.instructions.0, reduced.instructions.1],
            "lines": [reduced.lines.0, reduced.lines.1],
            "tried": reduced.tried,
            "finished": reduced.finished,
            "without_promises": reduced.without_promises,
            "ratio": probe.ratio.map(|(found, _)| found),
            "ends": ends,
        }));
    }
    let mut text = format!(
        "{}: {} instructions instead of {}, {} lines instead of {}; {} candidates tried{}\n",
        options.output.display(),
        reduced.instructions.1,
        reduced.instructions.0,
        reduced.lines.1,
        reduced.lines.0,
        reduced.tried,
        match reduced.finished {
            true => "",
            false => ", ended by --seconds",
        }
    );
    for (flags, end) in ends {
        let end = end.map_or("not always alike".to_owned(), |end| end.to_string());
        text += &format!("  {flags}: {end}\n");
    }
    text += &format!("show it: make -C {} show\n", options.output.display());
    print::out(&text)
}

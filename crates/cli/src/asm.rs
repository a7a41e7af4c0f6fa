//! `cere asm REGION...`: machine code beside its source, with executions, remarks of the optimiser and a model's bound.

use crate::each::{Shown, each, one_of_each_region};
use crate::options::{Common, Flags, Replaying, pipeline};
use crate::show;
use crate::show::asm::{Compared, json, text};
use anyhow::Result;
use cere_count::listing::{self, Listing, diff};
use cere_format::package::Manifest;
use cere_measure::{Replays, Settings};
use cere_store::{find, lines};
use std::path::Path;

/// Show machine code beside its source: executions, remarks, bounds
#[derive(clap::Args)]
#[command(after_help = "\
The region is compiled as for a replay, and replayed once with counters, as `cere count` does: the counts of the instructions\n\
are exact. Each line of source stands beside its instructions, however the compiler has mixed them; bN is the block of machine\n\
code, * marks the loop that executed most, > the line. What was inlined is shown where it is; functions that were called and have\n\
IR follow. Above: what works on vectors, what was spilled, why the optimiser did what it did, and the cycles of an iteration that\n\
llvm-mca bounds (data in the first cache).\n\
\n\
--against compiles the code a second time with other flags, and shows what goes (-), comes (+) and stays. Of a region with several\n\
codelets the first is shown.\n\
\n\
Exit status: 1 if a codelet could not be counted or ended in another state.\n\
\n\
Examples:\n\
\x20 cere asm 'solve@*'\n\
\x20 cere asm 'solve@*' --against '-O3 -march=native'\n\
\x20 cere asm 'solve@*:50' --flags -O1 --model znver4 --json")]
pub struct Options {
    /// Codelets, regions or .codelet files
    #[arg(required = true, value_name = "CODELET")]
    what: Vec<String>,
    /// Compare with the code of these flags, after those of the build; '' is the code as built
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true)]
    against: Option<Flags>,
    /// An `opt` pipeline instead of the compiler's own, e.g. `default<O3>`
    #[arg(long, value_name = "PIPELINE", value_parser = pipeline)]
    passes: Option<String>,
    /// Show instructions that never ran as well
    #[arg(long)]
    all: bool,
    /// Processor that llvm-mca models, as LLVM calls it: native, znver4, icelake-server
    #[arg(long, value_name = "CPU", default_value = "native")]
    model: String,
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    replays: Replaying,
}

/// What is listed, and from where.
struct Lister<'a> {
    replays: &'a Replays<'a>,
    store: &'a cere_format::store::Store,
    options: &'a Options,
    settings: Settings,
}

impl Lister<'_> {
    /// The listing under `settings`, without texts of lines.
    fn list(&self, package: &Path, manifest: &Manifest, settings: &Settings) -> Result<Listing> {
        let units = manifest.units.iter().map(|unit| unit.id.as_str());
        let lined = lines::lined(self.store, units);
        let how = self.replays.options(settings, None)?;
        Ok(listing::listing(
            package,
            &lined,
            &self.options.model,
            &how,
        )?)
    }

    /// The listings of the codelet in `file`.
    fn compared(&self, file: &Path) -> Result<Compared> {
        let (package, manifest, _) = self.replays.unpack(file)?;
        let mut before = self.list(&package, &manifest, &self.settings)?;
        let against = self.options.against.as_ref().map(|flags| Settings {
            flags: flags.words.clone(),
            passes: None,
            ..self.settings.clone()
        });
        let after = against.map(|settings| self.list(&package, &manifest, &settings));
        let mut after = after.transpose()?;
        let units = manifest.units.iter().map(|unit| unit.id.as_str());
        let mut sources = lines::Sources::of(self.store, units);
        for listing in std::iter::once(&mut before).chain(after.as_mut()) {
            listing.set_texts(|file, line| sources.line(file, line));
        }
        before.notes.extend(sources.notes());
        before.notes.extend(before.missing_texts());
        before.notes.extend(self.replays.notes(&manifest));
        self.keep(&before)?;
        let changes = after.as_ref().map(|after| diff::diff(&before, after));
        Ok(Compared {
            before,
            after,
            changes,
            all: self.options.all,
        })
    }

    /// Keeps the code as built for `cere report`.
    fn keep(&self, listing: &Listing) -> Result<()> {
        let as_built = listing.flags.is_empty() && listing.passes.is_none();
        match as_built && self.store.unit_record(&listing.unit).is_file() {
            true => cere_report::listing::keep(self.store, listing),
            false => Ok(()),
        }
    }
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    let store = options.common.store()?;
    let events = cere_system::console::events();
    let files = one_of_each_region(find::all(&store, &options.what, &events)?);
    let replays = Replays::open(&store, &events)?;
    let lister = Lister {
        replays: &replays,
        store: &store,
        options,
        settings: Settings {
            passes: options.passes.clone(),
            ..options.replays.settings()?
        },
    };
    let shown = Shown {
        words: ["listing", "not listed"],
        text,
        json: &json,
        csv: |_| String::new(),
        is_different: show::asm::is_different,
    };
    each(&files, (options.common.json, false), &shown, |file| {
        lister.compared(file)
    })
}

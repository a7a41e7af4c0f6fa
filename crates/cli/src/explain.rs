//! `cere explain CODELET...`: why a region takes its time; `cere explain CODE`: what a message means.

use crate::each::{Shown, each, one_of_each_region};
use crate::options::{self, Common, Replaying, caches};
use crate::show;
use anyhow::Result;
use cere_catalogue::{Entry, bail, ensure};
use cere_explain::{Settings, explanation, facts, kept};
use cere_format::explain::Explanation;
use cere_format::machine::Machine;
use cere_format::store::Store;
use cere_measure::Replays;
use cere_package::io::read_manifest;
use cere_store::{find, lines};
use cere_system::console::print;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Say why a region takes its time, and what would be gained without the cause
#[derive(clap::Args)]
#[command(after_help = "\
Causes are taken out one by one, and the codelet is replayed without them: all data in the first cache, iterations that do not\n\
wait for one another, no divisions, no stores, full vectors, huge pages, pages that are there, one thread. What is gained then\n\
is what they cost. A changed replay that does not do the same work is left out, with the reason. Exact counts, simulated caches,\n\
a branch predictor, llvm-mca's model and the limits that `cere machine` measured say the rest.\n\
\n\
Of a region with several codelets that of the class with the most time is taken. What is found is kept for `cere report`.\n\
\n\
Exit status: 1 if a codelet could not be explained.\n\
\n\
Examples:\n\
\x20 cere explain 'solve@*'\n\
\x20 cere explain 'solve@*:50' --flags '-O3 -march=native'\n\
\x20 cere explain --top 3 --within 60 --json\n\
\x20 cere explain CERE-2003     # what a message means, and what to do")]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Codelets, regions or .codelet files; or codes of messages, such as CERE-2003
    #[arg(value_name = "CODELET")]
    what: Vec<String>,
    /// List the codes of all messages
    #[arg(long, conflicts_with_all = ["what", "top"])]
    list: bool,
    /// The N regions with codelets that take most of the run
    #[arg(long, value_name = "N", conflicts_with = "what", value_parser = clap::value_parser!(u32).range(1..))]
    top: Option<u32>,
    /// Begin no other replay after this many seconds in all
    #[arg(long, value_name = "S", value_parser = options::seconds)]
    within: Option<f64>,
    /// One line a region
    #[arg(long, conflicts_with = "json")]
    brief: bool,
    /// Caches to simulate: here, a name or a file
    #[arg(long, value_name = "WHICH", default_value = "here")]
    geometry: String,
    /// Instructions and accesses whose order is looked at, at most: of codelets with more, a sample
    #[arg(long, value_name = "N", default_value_t = 20_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    budget: u64,
    #[command(flatten)]
    replays: Replaying,
}

/// Time in vivo that a codelet stands for.
fn weight(file: &Path) -> f64 {
    let manifest = read_manifest(file).ok();
    let represents = manifest.and_then(|m| m.represents);
    represents.map_or(0.0, |r| r.seconds)
}

/// One codelet of each region that is asked for, those that stand for the most time first.
fn chosen(store: &Store, options: &Options) -> Result<Vec<PathBuf>> {
    ensure!(
        options.top.is_some() || !options.what.is_empty(),
        E8003,
        "a region, a codelet or the code of a message is needed: `cere codelets` lists what there is, `cere explain --list` the codes"
    );
    let all = ["*".to_owned()];
    let what = match options.top {
        Some(_) => &all[..],
        None => &options.what,
    };
    let mut files = find::all(store, what, &cere_system::console::events())?;
    files.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    let mut files = one_of_each_region(files);
    if let Some(most) = options.top {
        files.truncate(most as usize);
    }
    Ok(files)
}

/// The entries of the messages that are asked for; none if codelets are.
fn messages(options: &Options) -> Option<Result<String>> {
    if options.list {
        let line = |entry: &Entry| format!("{}  {}\n", entry.code, entry.title);
        return Some(Ok(cere_catalogue::entries().map(line).collect()));
    }
    let is_code = |word: &String| word.to_uppercase().starts_with("CERE-");
    if options.what.is_empty() || !options.what.iter().all(is_code) {
        return None;
    }
    let text = |word: &String| match cere_catalogue::entry(word) {
        Some(entry) => Ok(entry.text()),
        None => bail!(
            E4025,
            "there is no message {word}: `cere explain --list` prints all codes"
        ),
    };
    let texts: Result<Vec<String>> = options.what.iter().map(text).collect();
    Some(texts.map(|texts| texts.join("\n")))
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    if let Some(text) = messages(options) {
        print::out(&text?)?;
        return Ok(0);
    }
    let store = options.common.store()?;
    let events = cere_system::console::events();
    let until = options
        .within
        .map(|s| Instant::now() + Duration::from_secs_f64(s));
    let files = chosen(&store, options)?;
    let replays = Replays::open(&store, &events)?;
    let settings = options.replays.settings()?;
    let machine = Machine::kept();
    let explain = |file: &Path| -> Result<Explanation> {
        let (package, manifest, sha256) = replays.unpack(file)?;
        let units = manifest.units.iter().map(|unit| unit.id.as_str());
        let looking = Settings {
            geometry: caches(&options.geometry, "an explanation needs")?,
            machine: machine.clone(),
            budget: options.budget,
            until,
            lined: lines::lined(&store, units),
        };
        let how = replays.options(&settings, None)?;
        let notes = replays.notes(&manifest);
        let mut found = explanation(&facts::facts(&package, (manifest, sha256), &how, &looking)?);
        found.notes.extend(notes);
        if found.flags.is_empty() && store.unit_record(&found.unit).is_file() {
            kept::keep(&store, &found)?;
        }
        Ok(found)
    };
    let shown = Shown {
        words: ["explaining", "not explained"],
        text: match options.brief {
            true => show::explain::brief,
            false => show::explain::text,
        },
        json: &|found| serde_json::json!(found),
        csv: |_| String::new(),
        is_different: |_| false,
    };
    each(&files, (options.common.json, false), &shown, explain)
}

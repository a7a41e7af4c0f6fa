//! `cere profile -- CMD`: where the time of a run goes, region by region.

use crate::options::ranks::RankOptions;
use crate::options::{self, Common};
use crate::show;
use crate::show::profile::Energy;
use anyhow::Result;
use cere_capture::energy::Metered;
use cere_capture::input::Input;
use cere_capture::launch::Output;
use cere_capture::profile::Command;
use cere_catalogue::anyhow;
use cere_format::profile::Profile;
use cere_format::store::Store;
use cere_report::exchange::{self, Format};
use cere_store::build::image::{Program, plain_in};
use cere_store::build::plain::Plain;
use cere_store::notes::Notes;
use cere_store::state;
use cere_system::console::{self, note, print, warning};
use cere_system::process::supervise;
use cere_timing::energy::Counters;
use clap::builder::TypedValueParser as _;
use std::path::{Path, PathBuf};

/// Time every region of a run
#[derive(clap::Args)]
#[command(after_help = "\
The store keeps the profile. If the program fails, its profile is kept as well, and the command ends with the\n\
program's exit status.\n\
\n\
Examples:\n\
\x20 cere profile -- ./app input\n\
\x20 cere profile --csv -- ./app input > profile.csv\n\
\x20 cere profile --energy --runs 5 -- ./app input\n\
\x20 cere profile --show                   # the kept one again
\x20 cere profile --show --export speedscope -o app.speedscope.json")]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Write the table as CSV to stdout
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Write the profile in another tool's format to stdout. `folded`: stacks for flame graphs; `perf`: the text of `perf script`;
    /// `speedscope`; `chrome`: trace events, for Perfetto too; `hatchet`: trees for Hatchet and Thicket; `prometheus`; `series`: each
    /// kept invocation as CSV
    #[arg(long, value_name = "FORMAT", conflicts_with_all = ["json", "csv", "energy"], value_parser = clap::builder::PossibleValuesParser::new(Format::ALL.map(Format::name)).try_map(|name| Format::named(&name).ok_or("it is no format")))]
    export: Option<Format>,
    /// With --export: write to this file in place of stdout
    #[arg(short, long, value_name = "FILE", requires = "export")]
    output: Option<PathBuf>,
    /// Print the profile that the store keeps, and run nothing
    #[arg(long, conflicts_with_all = ["timeout", "runs", "energy", "ranks", "process_key", "command"])]
    show: bool,
    /// Kill the program after this many seconds
    #[arg(long, value_name = "S", value_parser = options::seconds)]
    timeout: Option<f64>,
    /// Number of runs: each time is the median over the runs, invocation by invocation. From 2 on, if the probes take much of
    /// the run, as many runs without probes measure their cost
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Also measure the energy of the whole run, by the counters of whole packages (RAPL); it is printed, and not kept
    #[arg(long, conflicts_with = "csv")]
    energy: bool,
    #[command(flatten)]
    ranks: RankOptions,
    /// The program and its arguments
    #[arg(required_unless_present = "show", last = true)]
    command: Vec<String>,
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    if options.show {
        return show_kept(options);
    }
    let store = options.common.store()?;
    let mut program = Program::open(&options.command, &store)?;
    options.ranks.set_key(&mut program);
    let _lock = state::lock(&store)?;
    if let Some(output) = &options.output {
        options::writable(output)?;
    }
    let machine = options.common.json || options.csv || options.export.is_some();
    let output = if machine {
        Output::ToStderr
    } else {
        Output::Kept
    };
    let events = console::events();
    let mut input = match options.runs {
        1 => Input::Passed,
        _ => Input::open(&events)?,
    };
    let metered = match options.energy {
        true => Some(Metered::new(Counters::find()?)),
        false => None,
    };
    let command = Command {
        store: &store,
        program: &program,
        words: &options.command,
        timeout: options.timeout,
        trace: &[],
        which: options.ranks.one()?,
        captured: None,
        energy: metered.as_ref(),
        events: &events,
    };
    let collected = command.profile(Some(options.runs), output, &mut input)?;
    let profile = &collected.profile;
    if program.image.is_none() {
        program = Program::open(&options.command, &store)?;
    }
    let plain = program.plain(&store);
    let energy = metered.as_ref().map(Energy::of);
    let energy = energy.transpose()?;
    print_profile(
        options,
        profile,
        collected.code,
        &store,
        (&plain, energy.as_ref()),
    )?;
    for note in &collected.notes {
        note!("{note}");
    }
    for plain in &plain {
        warning!("{plain}; its time is that of the regions around it");
    }
    if collected.code != 0 {
        print::failed(&anyhow!(
            E2008,
            "{} ended with status {}; the profile up to there is in {}",
            options.command[0],
            supervise::described(collected.code),
            store.profile().display()
        ));
    }
    Ok(collected.code)
}

/// Prints the profile of the store, with notes on how it ended and on what changed since.
fn show_kept(options: &Options) -> Result<u8> {
    let store = options.common.existing_store()?;
    let profile = state::profile(&store)?;
    let plain = plain_in(state::profiled_program(&profile), &store);
    print_profile(options, &profile, profile.status(), &store, (&plain, None))?;
    for note in Notes::of(&store)?.on_profile(&profile) {
        note!("{note}");
    }
    Ok(0)
}

/// Writes the profile for another tool. Its text is not for a terminal: it stays as it is.
fn export(profile: &Profile, format: Format, output: Option<&Path>) -> Result<()> {
    let text = exchange::text(profile, format);
    let Some(file) = output else {
        return print::raw(&text);
    };
    state::write_text(file, &text)?;
    note!("{}: {}", format.name(), file.display());
    Ok(())
}

fn print_profile(
    options: &Options,
    profile: &Profile,
    code: u8,
    store: &Store,
    (plain, energy): (&[Plain], Option<&Energy>),
) -> Result<()> {
    if let Some(format) = options.export {
        export(profile, format, options.output.as_deref())
    } else if options.common.json {
        let file = store.profile();
        print::json(&show::profile::json(profile, code, &file, plain, energy))
    } else if options.csv {
        print::out(&show::profile::csv(profile))
    } else {
        let energy = energy.map_or(String::new(), Energy::text);
        print::text(&(show::profile::text(profile) + &energy))
    }
}

//! `cere hybrid -o FILE`: the binary in which each tuned region has its own flags, tried against the plain build.

use crate::options::{self, Common};
use crate::show;
use anyhow::Result;
use cere_system::console::note;
use cere_system::console::print::{self, tell};
use cere_tune::hybrid::make::{Request, make};
use std::path::PathBuf;

/// Link the binary in which each tuned region has its own flags
#[derive(clap::Args)]
#[command(after_help = "\
Each region with flags of its own is compiled as in its replays, the rest as in the build, from what `cere instrument`\n\
kept, and linked by the recorded link command. The choices are those of `cere tune` or of a file.\n\
\n\
With a program to run, the output must be the plain build's, and the time is compared with the plain build and with the\n\
whole program at -O1, -O2 and -O3, in turns. A region that does not gain in the linked program gets the build's flags\n\
back. So does one that costs others more than it gains. If the whole does not surely gain (chance of error 5 %), the\n\
output is the plain program. Words of the output that differ between runs of the plain build are not compared. Under a\n\
launcher of several ranks, each has to run the build, and the output of each is compared by itself.\n\
\n\
The kept choices are written to a flags file: keep it with the source, and a later build needs no tuning.\n\
\n\
Examples:\n\
\x20 cere hybrid -o app.tuned -- ./app input\n\
\x20 cere hybrid -o app.tuned --flags-file app.flags\n\
\x20 cere hybrid -o app.tuned --explain --ignore 'Time in seconds' -- ./app input")]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// The hybrid binary
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Choices to take instead of what `cere tune` found
    #[arg(long, value_name = "FILE")]
    flags_file: Option<PathBuf>,
    /// Where the kept choices are written [default: the output's name with .flags appended]
    #[arg(long, value_name = "FILE")]
    write_flags: Option<PathBuf>,
    /// Print the contribution of each region
    #[arg(long)]
    explain: bool,
    /// Runs of each build, and up to three times as many until it is decided whether the hybrid gains [default: 9; 6 for
    /// programs of 2 s or more, 3 of 5 s]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// Seconds that runs of the program may take; what is needed for a right answer is done in any case [default: 24 runs, 60 at least]
    #[arg(long, value_name = "S", value_parser = options::seconds)]
    budget: Option<f64>,
    /// Do not compare with the whole program at -O1, -O2 and -O3
    #[arg(long)]
    no_levels: bool,
    /// Lines of the output that contain TEXT are not compared; may be given several times
    #[arg(long, value_name = "TEXT")]
    ignore: Vec<String>,
    /// Largest relative error of a number in the output that is accepted, for flags that change values
    #[arg(long, value_name = "X", default_value_t = 0.0, value_parser = options::tolerance)]
    tolerance: f64,
    /// Kill a run of the program after this many seconds
    #[arg(long, value_name = "S", value_parser = options::seconds)]
    timeout: Option<f64>,
    /// The shared library or program to link again, without running it
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    image: Option<PathBuf>,
    /// The program and its arguments, for runs of it
    #[arg(last = true)]
    command: Vec<String>,
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    let made = make(&Request {
        store: &options.common.existing_store()?,
        output: &options.output,
        flags_file: options.flags_file.as_deref(),
        write_flags: options.write_flags.as_deref(),
        rounds: options.rounds,
        budget: options.budget,
        levels: !options.no_levels,
        ignore: &options.ignore,
        tolerance: options.tolerance,
        timeout: options.timeout,
        image: options.image.as_deref(),
        command: &options.command,
        events: &cere_system::console::events(),
    })?;
    let tuned = &made.tuned;
    let notes: Vec<String> = made.decision.iter().flat_map(|d| d.notes.clone()).collect();
    let notes: Vec<String> = options.without_program().into_iter().chain(notes).collect();
    tell(&notes);
    for (region, why) in tuned.iter().filter_map(|t| Some((t, t.back.as_ref()?))) {
        note!("{} keeps the flags of the build: {why}", region.chosen.name);
    }
    if options.common.json {
        print::json(&show::hybrid::json(&made, &notes))?;
    } else {
        print::text(&show::hybrid::text(&made, options.explain))?;
    }
    note!(
        "{}, {}",
        options.output.display(),
        made.flags_file.display()
    );
    Ok(0)
}

impl Options {
    /// A note on the options that are not followed because no program is run.
    fn without_program(&self) -> Option<String> {
        let of_runs = [
            ("--explain", self.explain),
            ("--rounds", self.rounds.is_some()),
            ("--budget", self.budget.is_some()),
            ("--no-levels", self.no_levels),
            ("--ignore", !self.ignore.is_empty()),
            ("--tolerance", self.tolerance > 0.0),
            ("--timeout", self.timeout.is_some()),
        ];
        let given = of_runs.into_iter().filter(|(_, given)| *given);
        let given: Vec<&str> = given.map(|(name, _)| name).collect();
        (self.command.is_empty() && !given.is_empty()).then(|| {
            format!(
                "{} had no effect, because no program was run: name it after --",
                given.join(", ")
            )
        })
    }
}

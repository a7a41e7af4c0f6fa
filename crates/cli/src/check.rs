//! `cere check`: replays every codelet at the flags of its capture and compares time and result with the original's.

use crate::options::{self, Common, Timing, geometry};
use crate::show;
use anyhow::Result;
use cere_capture::capture::Refused;
use cere_catalogue::bail;
use cere_format::profile::Profile;
use cere_format::replay::Verdict;
use cere_measure::Extent;
use cere_measure::check::Plan;
use cere_measure::decide::rounds;
use cere_measure::matching::{LEVELS, Matching};
use cere_replay::Team;
use cere_store::current::{self, codelets};
use cere_system::console;
use cere_system::console::color;
use cere_system::console::print::{self, tell};

/// Compare replays with the run: time and result of every region
#[derive(clap::Args)]
#[command(after_help = "\
Replays every codelet of the current build at the flags of its capture. Each codelet predicts the time of its class of\n\
invocations. The error of a region is the difference between the predicted time and the time in vivo. A region whose\n\
error is above --max-error is ill-behaved: predictions do without it, and its time counts for its callers.\n\
\n\
On a shared machine the speed changes. So the program runs before and after each round of replays, with only the regions\n\
timed that have codelets, and both sides use fast times: in vivo the minimum of each invocation over the runs, in vitro a\n\
low quantile of the repetitions that corresponds to it. `rounds` shows the errors of single rounds. Earlier records of\n\
this machine are used again, unless --again is given.\n\
Exit status: 0 if every result is the original's, whatever the times.\n\
\n\
--counted uses no clock. The program is linked again with code that reports what it executes, and runs once; so are the\n\
codelets. Every block has to run as often in the replay as in the program. All accesses of the program go to simulated\n\
caches, and the misses of the captured invocation are compared with the replay's for each warm-up.\n\
\n\
Examples:\n\
\x20 cere check\n\
\x20 cere check --counted\n\
\x20 cere check --max-error 10 --warmup working-set")]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Largest error of a region that predictions may use, in per cent
    #[arg(long, value_name = "PERCENT", default_value = "15", value_parser = options::percent)]
    max_error: f64,
    /// Replay again what was replayed before
    #[arg(long)]
    again: bool,
    /// Rounds: in each, every codelet is replayed between two runs of the program. 0: no runs, the profile's times are used
    /// [default: 9; 5 for programs of 2 s or more, 3 of 5 s, 1 of a minute]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1000))]
    rounds: Option<u32>,
    /// Take as many rounds as fit into so many seconds; one, with a run of the program, at least
    #[arg(long, value_name = "S", conflicts_with = "rounds", value_parser = options::seconds)]
    within: Option<f64>,
    /// Compare what is executed instead of times: blocks, instructions, simulated cache misses
    #[arg(long, conflicts_with_all = ["rounds", "within", "again", "max_error"])]
    counted: bool,
    /// With --counted: caches to simulate: here, a name, a file, or none
    #[arg(
        long,
        value_name = "WHICH",
        default_value = "here",
        requires = "counted"
    )]
    geometry: String,
    #[command(flatten)]
    timing: Timing,
}

/// Compares counts instead of times.
fn counted(options: &Options) -> Result<u8> {
    let store = options.common.store()?;
    let profile = current::profile(&store)?;
    let chosen = codelets(&store, &profile)?;
    let compared = cere_tune::hybrid::counted::Request {
        store: &store,
        profile: &profile,
        codelets: &chosen.codelets,
        settings: &options.timing.settings(Team::default())?,
        counting: &cere_count::Settings {
            geometry: geometry(&options.geometry)?,
            ..cere_count::Settings::default()
        },
        events: &console::events(),
    }
    .compare()?;
    match options.common.json {
        true => print::json(&show::counted::json(&compared, &chosen.notes))?,
        false => print::text(&show::counted::text(&compared))?,
    }
    tell(&chosen.notes);
    let same = compared.done.iter().all(|f| f.same_blocks);
    Ok(u8::from(!same || !compared.skipped.is_empty()))
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    if options.counted {
        return counted(options);
    }
    let store = options.common.store()?;
    let profile = current::profile(&store)?;
    let chosen = codelets(&store, &profile)?;
    let settings = options.timing.settings(Team::default())?;
    let plan = Plan {
        store: &store,
        profile: &profile,
        codelets: &chosen.codelets,
        settings,
        again: options.again,
        extent: match options.within {
            Some(seconds) => Extent::Seconds(seconds),
            None => Extent::Rounds(options.rounds.unwrap_or_else(|| rounds(profile.seconds))),
        },
        events: &console::events(),
    };
    let measured = plan.measure()?;
    let matching = Matching::of(
        &profile,
        &measured,
        &Refused::last(&store),
        options.max_error / 100.0,
    )?;
    if options.common.json {
        print::json(&json(&matching, &chosen.notes))?;
    } else {
        print::text(&text(&matching, options.max_error, &profile))?;
    }
    tell(&chosen.notes);
    let wrong = matching
        .rows
        .iter()
        .filter(|r| r.verdict == Some(Verdict::Different))
        .count();
    if wrong > 0 {
        bail!(
            E6016,
            "{wrong} regions have a codelet whose result is not the original's"
        );
    }
    Ok(0)
}

/// Of a program whose regions were profiled so, up to an error of `most` per cent.
fn text(matching: &Matching, most: f64, profile: &Profile) -> String {
    let rows: Vec<Vec<String>> = matching
        .rows
        .iter()
        .map(|row| {
            vec![
                row.name.clone(),
                print::percent(row.share),
                match row.classes {
                    0 => "-".to_owned(),
                    classes => classes.to_string(),
                },
                row.ratio
                    .map_or("-".to_owned(), |r| format!("{:+.1} %", (r - 1.0) * 100.0)),
                row.ratio_range.map_or("-".to_owned(), |(least, most)| {
                    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
                    format!("{:+.1} % to {:+.1} %", percent(least), percent(most))
                }),
                row.verdict.map_or("-".to_owned(), color::verdict),
                row.reason.clone().unwrap_or_else(|| "accepted".to_owned()),
            ]
        })
        .collect();
    let heading = [
        "region",
        "coverage",
        "classes",
        "error",
        "rounds",
        "<verdict",
        "<for predictions",
    ];
    let mut text = print::table_of_names(&heading, rows);
    text.push_str(&format!(
        "\ncovered by codelets with the original's result: {}{}\n",
        print::percent(matching.coverage),
        match (matching.of_all_threads, profile.mpi_seconds > 0.0) {
            (Some(_), _) => " of the processor time of all threads",
            (None, true) => " of the time outside MPI",
            (None, false) => "",
        },
    ));
    for (level, share) in LEVELS.iter().zip(matching.accurate) {
        text.push_str(&format!(
            "accurately replayed within {:>2.0} %: {:>26}\n",
            level * 100.0,
            print::percent(share)
        ));
    }
    if let Some(reduction) = matching.reduction {
        text.push_str(&format!(
            "one run of each codelet within {most} % takes {reduction:.1} times less than the run\n"
        ));
    }
    text
}

fn json(matching: &Matching, notes: &[String]) -> serde_json::Value {
    let accurate: serde_json::Map<String, serde_json::Value> = LEVELS
        .iter()
        .zip(matching.accurate)
        .map(|(level, share)| (format!("{:.0}", level * 100.0), share.into()))
        .collect();
    serde_json::json!({"coverage": matching.coverage, "of_all_threads": matching.of_all_threads, "accurate": accurate, "reduction": matching.reduction,
        "regions": matching.rows, "notes": notes})
}

//! A profile as text, CSV and JSON.

use anyhow::Result;
use cere_capture::energy::{Metered, RunEnergy};
use cere_format::profile::{OverThreads, Profile};
use cere_store::build::plain::Plain;
use cere_system::console::{print, screen, short};
use std::collections::HashMap;
use std::path::Path;

/// A column of the table: its heading and what it shows of each region.
type Column = (&'static str, Vec<String>);

/// Share of its time from which on a region that waits makes a column of that.
const WAITS: f64 = 0.25;
/// Share of the time of all regions that makes one notable for that.
const NOTABLE: f64 = 0.01;

/// The columns that this profile needs. Where other threads work, shares are of all threads' processor time.
fn columns(profile: &Profile) -> Vec<Column> {
    let all = || profile.over_threads.iter();
    let each = |shown: &dyn Fn(&OverThreads) -> String| all().map(shown).collect::<Vec<_>>();
    let times =
        |of: &dyn Fn(&OverThreads) -> f64| print::times_alike(&all().map(of).collect::<Vec<_>>());
    let mut columns: Vec<Column> = vec![("self", times(&|r| r.self_seconds))];
    let several = profile.has_other_threads();
    let whole = match several {
        true => profile.processor.map_or(profile.work(), |p| p.all),
        false => profile.outside_mpi(),
    };
    let share = |r: &OverThreads| match several {
        true => print::percent(r.work() / whole),
        false => print::percent(r.self_seconds / whole),
    };
    columns.push(("share", each(&share)));
    let percent = |part: f64, of: f64| match part / of {
        share if share >= 0.0005 => print::percent(share),
        _ => "-".to_owned(),
    };
    let seconds: f64 = all().map(|r| r.self_seconds).sum();
    let waits = |r: &OverThreads| {
        r.waiting_seconds > WAITS * r.self_seconds && r.self_seconds > NOTABLE * seconds
    };
    if all().any(waits) {
        let waiting = |r: &OverThreads| percent(r.waiting_seconds, r.self_seconds);
        columns.push(("waits", each(&waiting)));
    }
    if all().any(|r| r.mpi_seconds > 0.0) {
        columns.push(("MPI", times(&|r| r.mpi_seconds)));
    }
    if several {
        columns.push(("threads", each(&|r| r.threads.to_string())));
        columns.push(("first's", each(&|r| percent(r.first_share, 1.0))));
    }
    columns.push(("invocations", each(&|r| r.invocations.to_string())));
    columns.push(("inclusive", times(&|r| r.inclusive_seconds)));
    if !several {
        let mean = profile
            .regions
            .iter()
            .map(|own| (&own.key, own.cycles_mean));
        let mean: HashMap<_, _> = mean.collect();
        let cycles = |r: &OverThreads| mean.get(&r.key).copied().unwrap_or(0.0);
        columns.push(("cycles/invocation", each(&|r| format!("{:.0}", cycles(r)))));
    }
    columns
}

/// The table, the tree and the coverage.
pub fn text(profile: &Profile) -> String {
    let columns = columns(profile);
    let heading: Vec<&str> = ["region"]
        .into_iter()
        .chain(columns.iter().map(|column| column.0))
        .collect();
    let row = |(number, region): (usize, &OverThreads)| {
        let cells = columns.iter().map(|column| column.1[number].clone());
        std::iter::once(region.name.clone()).chain(cells).collect()
    };
    let rows = profile.over_threads.iter().enumerate().map(row).collect();
    let mut text = print::table_of_names(&heading, rows);
    let several = profile.has_other_threads();
    let whose = if several { " of the first thread" } else { "" };
    text.push_str(&format!(
        "\ntree of regions{whose} (inclusive time, invocations)\n"
    ));
    text.push_str(&Tree::of(profile).text());
    text.push_str(&over_ranks(profile));
    let of = match profile.mpi_seconds > 0.0 {
        true => format!(
            "{:.1} % of it in MPI, {:.1} % of the rest",
            profile.mpi_seconds / profile.seconds * 100.0,
            profile.coverage * 100.0
        ),
        false => format!("{:.1} % of it", profile.coverage * 100.0),
    };
    text.push_str(&format!(
        "\n{:.3} s in all, {of} in {} regions{whose}\n",
        profile.seconds,
        profile.regions.len(),
    ));
    if let Some(processor) = profile.processor.filter(|_| several) {
        text.push_str(&format!(
            "{:.3} s on processors, {:.1} % of it in {} regions of all threads; {:.1} % of it in threads other than the first\n",
            processor.all,
            processor.covered / processor.all * 100.0,
            profile.over_threads.len(),
            processor.other_share() * 100.0
        ));
    }
    text
}

/// The regions over all ranks of a parallel program; empty if it has none.
fn over_ranks(profile: &Profile) -> String {
    if profile.ranks.is_empty() {
        return String::new();
    }
    let own = profile.process.rank.as_deref().unwrap_or("?");
    let mut text = format!(
        "\nregions over {} ranks, self time (the table and the tree above are of rank {own})\n",
        profile.ranks.len()
    );
    let heading = [
        "region",
        "min",
        "mean",
        "max",
        "slowest rank",
        "imbalance",
        "in MPI",
    ];
    let rows = profile.over_ranks().into_iter().map(|region| {
        vec![
            region.name.clone(),
            print::time(region.least),
            print::time(region.mean),
            print::time(region.most),
            region.slowest.clone(),
            print::percent(region.imbalance()),
            print::time(region.mpi),
        ]
    });
    text.push_str(&print::table_of_names(&heading, rows.collect()));
    let rows = profile.ranks.iter().map(|rank| {
        vec![
            format!("rank {}", rank.rank),
            print::time(rank.seconds),
            print::time(rank.work_seconds),
            print::time(rank.mpi_seconds),
        ]
    });
    text.push('\n');
    let heading = ["process", "time", "work in regions", "in MPI"];
    text.push_str(&print::table_of_names(&heading, rows.collect()));
    text
}

/// The share of the processor time in threads that are neither the first nor of a team, for people; none if it is not
/// notable. Shares of the run and coverages are of the first thread alone.
pub fn share_of_others(profile: &Profile) -> Option<String> {
    let share = profile.others_at_work()?;
    Some(format!("{:.1} %", share * 100.0))
}

/// The tree of regions as lines.
struct Tree<'a> {
    profile: &'a Profile,
    /// Of the regions, cut to fit.
    names: Vec<String>,
    /// Nodes below each node, the slowest first.
    below: Vec<Vec<usize>>,
    times: Vec<String>,
    /// Maximum columns of indentation.
    indent: usize,
}

/// Columns of a line of the tree that neither the name nor the indentation gets: time, invocations.
const TREE: usize = 24;
/// Levels of the tree that are shown: no screen shows more.
const LEVELS: usize = 64;

impl<'a> Tree<'a> {
    fn of(profile: &'a Profile) -> Self {
        let nodes = &profile.tree;
        let mut below = vec![Vec::new(); nodes.len()];
        for (number, node) in nodes.iter().enumerate().skip(1) {
            let parent = node.parent.filter(|parent| *parent != number);
            if let Some(children) = parent.and_then(|parent| below.get_mut(parent)) {
                children.push(number);
            }
        }
        let seconds: Vec<f64> = nodes.iter().map(|node| node.inclusive_seconds).collect();
        let slower = |a: &usize, b: &usize| seconds[*b].total_cmp(&seconds[*a]);
        below.iter_mut().for_each(|nodes| nodes.sort_by(slower));
        let names: Vec<&str> = profile.regions.iter().map(|r| r.name.as_str()).collect();
        let columns = screen::columns().unwrap_or(usize::MAX);
        let indent = (columns / 4).min(2 * LEVELS);
        Self {
            profile,
            names: short::names(&names, columns - columns / 4 - TREE.min(columns / 4)),
            below,
            times: print::times_alike(seconds.get(1..).unwrap_or_default()),
            indent,
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        self.add(0, 1, &mut text);
        text
    }

    fn add(&self, parent: usize, depth: usize, text: &mut String) {
        let below = self.below.get(parent).filter(|_| depth <= LEVELS);
        for number in below.into_iter().flatten() {
            let node = &self.profile.tree[*number];
            let name = node.region.and_then(|region| self.names.get(region));
            *text += &format!(
                "{:indent$}{}  {}  {}\n",
                "",
                name.map_or("?", String::as_str),
                self.times[number - 1],
                node.invocations,
                indent = (2 * depth).min(self.indent)
            );
            self.add(*number, depth + 1, text);
        }
    }
}

/// What whole runs took.
pub struct Energy {
    runs: Vec<RunEnergy>,
    counters: String,
}

impl Energy {
    /// Of the runs that were measured.
    pub fn of(metered: &Metered) -> Result<Self> {
        Ok(Self {
            runs: metered.runs()?,
            counters: metered.names(),
        })
    }

    fn median(&self, of: impl Fn(&RunEnergy) -> f64) -> f64 {
        let all: Vec<f64> = self.runs.iter().map(of).collect();
        cere_timing::stats::median(&all).unwrap_or(0.0)
    }

    fn watts(&self) -> f64 {
        self.median(|run| run.joules / run.seconds)
    }

    fn joule_seconds(&self) -> f64 {
        self.median(|run| run.joules * run.seconds)
    }

    /// A line; the probes of the profile are in it.
    pub fn text(&self) -> String {
        let joules =
            |of: fn(f64, f64) -> f64, from| self.runs.iter().map(|r| r.joules).fold(from, of);
        let range = match self.runs.len() {
            1 => String::new(),
            runs => format!(
                " ({} to {}, {runs} runs)",
                print::joules(joules(f64::min, f64::INFINITY)),
                print::joules(joules(f64::max, 0.0))
            ),
        };
        format!(
            "energy of a run {}{range}, {:.1} W, energy-delay {:.4e} J*s; {} with all that ran there\n",
            print::joules(self.median(|run| run.joules)),
            self.watts(),
            self.joule_seconds(),
            self.counters
        )
    }

    fn json(&self) -> serde_json::Value {
        let run = |r: &RunEnergy| serde_json::json!({"joules": r.joules, "seconds": r.seconds});
        serde_json::json!({
            "joules": self.median(|run| run.joules),
            "watts": self.watts(),
            "joule_seconds": self.joule_seconds(),
            "runs": self.runs.iter().map(run).collect::<Vec<_>>(),
            "counters": self.counters,
        })
    }
}

/// The first thread's regions as CSV with a heading, times in seconds.
pub fn csv(profile: &Profile) -> String {
    let heading = [
        "name",
        "self_seconds",
        "share",
        "invocations",
        "inclusive_seconds",
        "cycles_min",
        "cycles_mean",
        "cycles_max",
        "waiting_seconds",
        "mpi_seconds",
    ];
    let rows = profile.regions.iter().map(|r| {
        vec![
            r.name.clone(),
            format!("{:.9}", r.self_seconds),
            format!("{:.6}", r.share),
            r.invocations.to_string(),
            format!("{:.9}", r.inclusive_seconds),
            r.cycles_min.to_string(),
            format!("{:.1}", r.cycles_mean),
            r.cycles_max.to_string(),
            format!("{:.9}", r.waiting_seconds),
            format!("{:.9}", r.mpi_seconds),
        ]
    });
    cere_system::console::csv::text(&heading, rows)
}

/// The profile for scripts; the traces stay in `file`.
pub fn json(
    profile: &Profile,
    code: u8,
    file: &Path,
    plain: &[Plain],
    energy: Option<&Energy>,
) -> serde_json::Value {
    let regions: Vec<_> = profile
        .regions
        .iter()
        .map(|r| {
            serde_json::json!({"name": r.name, "unit": r.key.unit, "index": r.key.index,
                "self_seconds": r.self_seconds, "inclusive_seconds": r.inclusive_seconds, "share": r.share,
                "invocations": r.invocations, "waiting_seconds": r.waiting_seconds, "mpi_seconds": r.mpi_seconds,
                "cycles": {"min": r.cycles_min, "mean": r.cycles_mean, "max": r.cycles_max}})
        })
        .collect();
    let tree: Vec<_> = profile
        .tree
        .iter()
        .map(|n| {
            let name = n
                .region
                .and_then(|r| profile.regions.get(r))
                .map(|r| &r.name);
            serde_json::json!({"region": name, "parent": n.parent, "invocations": n.invocations,
                "inclusive_seconds": n.inclusive_seconds, "self_seconds": n.self_seconds})
        })
        .collect();
    let over_threads: Vec<_> = profile
        .over_threads
        .iter()
        .map(|r| {
            serde_json::json!({"name": r.name, "unit": r.key.unit, "index": r.key.index, "threads": r.threads,
                "invocations": r.invocations, "self_seconds": r.self_seconds,
                "inclusive_seconds": r.inclusive_seconds, "waiting_seconds": r.waiting_seconds,
                "mpi_seconds": r.mpi_seconds, "first_share": r.first_share})
        })
        .collect();
    let threads: Vec<_> = profile
        .threads
        .iter()
        .map(|thread| {
            let regions = thread.regions.iter().map(|r| {
                serde_json::json!({"region": profile.over_threads.get(r.region).map(|over| &over.name),
                    "invocations": r.invocations, "self_seconds": r.self_seconds,
                    "inclusive_seconds": r.inclusive_seconds, "waiting_seconds": r.waiting_seconds,
                    "cycles": {"min": r.cycles_min, "mean": r.cycles_mean, "max": r.cycles_max}})
            });
            serde_json::json!({"number": thread.number, "users": thread.users,
                "processor_seconds": thread.processor_seconds, "mpi_seconds": thread.mpi_seconds,
                "regions": regions.collect::<Vec<_>>()})
        })
        .collect();
    let processor = profile.processor.map(|p| {
        serde_json::json!({"seconds": p.all, "first": p.first, "team": p.team, "others": p.others(),
            "covered": p.covered})
    });
    let over: Vec<_> = profile
        .over_ranks()
        .into_iter()
        .map(|r| {
            serde_json::json!({"name": r.name, "min": r.least, "mean": r.mean, "max": r.most,
                "slowest": r.slowest, "imbalance": r.imbalance(), "mpi": r.mpi})
        })
        .collect();
    let ranks: Vec<_> = profile
        .ranks
        .iter()
        .map(|rank| {
            serde_json::json!({"rank": rank.rank, "program": rank.program, "seconds": rank.seconds,
                "work_seconds": rank.work_seconds, "mpi_seconds": rank.mpi_seconds})
        })
        .collect();
    serde_json::json!({"seconds": profile.seconds, "coverage": profile.coverage, "status": code,
        "processor": processor, "over_threads": over_threads, "threads": threads,
        "mpi_seconds": profile.mpi_seconds,
        "command": profile.command, "tsc_hz": profile.tsc_hz,
        "probe_cycles": {"inside": profile.probe_inside, "outside": profile.probe_outside},
        "rank": profile.process.rank, "ranks": ranks, "over_ranks": over,
        "regions": regions, "tree": tree, "file": file, "energy": energy.map(Energy::json), "without_units": plain})
}

//! `cere results`, which shows the records of replays.

use crate::options::Common;
use anyhow::Result;
use cere_store::names;
use cere_store::results::{Database, Record, csv, warmup_name};
use cere_system::console::color::{self, Tone};
use cere_system::console::{note, print};
use std::collections::BTreeSet;

/// Show the records of replays
#[derive(clap::Args)]
#[command(after_help = "\
Every replay leaves a record in the store, in results.db, an SQLite file with one table `replays`: codelet and\n\
checksum of its file, flags, warm-up, machine, times, verdict. A .codelet file from elsewhere leaves one if there is\n\
a store (--store, or .cere here). A replay that failed has no times; the reason tells why.\n\
\n\
Examples:\n\
\x20 cere results 'solve@*'\n\
\x20 cere results --csv > results.csv")]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Write all columns as CSV (RFC 4180) to stdout
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Regions: names, globs or unique prefixes; all if none is given
    regions: Vec<String>,
}

/// Runs the subcommand.
pub fn run(options: &Options) -> Result<u8> {
    let store = options.common.existing_store()?;
    let all = match Database::existing(&store)? {
        Some(database) => database.all()?,
        None => Vec::new(),
    };
    let none = all.is_empty();
    let records = matching_records(all, &options.regions)?;
    if options.common.json {
        print::json(&records)?;
    } else if options.csv {
        print::out(&csv::text(&records))?;
    } else if !none {
        print::text(&table(&records))?;
    }
    if none {
        note!("no records yet: `cere replay` leaves some");
    }
    Ok(0)
}

/// The records of the regions that any of `patterns` picks; all without patterns.
fn matching_records(mut records: Vec<Record>, patterns: &[String]) -> Result<Vec<Record>> {
    if patterns.is_empty() {
        return Ok(records);
    }
    let regions: BTreeSet<String> = records.iter().map(|r| r.region.clone()).collect();
    let regions: Vec<&str> = regions.iter().map(String::as_str).collect();
    let mut wanted = BTreeSet::new();
    for pattern in patterns {
        let picked = names::pick(&regions, pattern)?;
        wanted.extend(picked.into_iter().map(|i| regions[i]));
    }
    records.retain(|r| wanted.contains(r.region.as_str()));
    Ok(records)
}

fn table(records: &[Record]) -> String {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let row = |r: &Record| {
        let mut flags = shell_words::join(&r.setting.flags);
        if let Some(passes) = &r.setting.passes {
            flags = format!("{flags} [{passes}]").trim_start().to_owned();
        }
        if !r.setting.operands.is_empty() {
            flags = format!("{flags} [{}]", r.setting.operands);
        }
        if let Some(threads) = r.setting.threads {
            let placement = &r.setting.placement;
            flags = format!("{flags} {threads} threads {placement}")
                .trim()
                .to_owned();
        }
        vec![
            r.codelet.clone(),
            or_dash(r.times.as_ref().map(|t| print::time(t.seconds_median))),
            or_dash(r.in_vivo_seconds.map(print::time)),
            or_dash(r.ratio().map(|ratio| format!("{ratio:.3}"))),
            match &r.times {
                Some(_) => color::verdict(r.verdict),
                None => color::paint(Tone::Bad, "failed"),
            },
            warmup_name(r.setting.warmup).to_owned(),
            r.when.clone(),
            r.machine.id.clone(),
            flags,
        ]
    };
    let heading = [
        "codelet", "median", "in vivo", "ratio", "<verdict", "<warm-up", "<when", "<machine",
        "<flags",
    ];
    print::table_of_names(&heading, records.iter().map(row).collect())
}

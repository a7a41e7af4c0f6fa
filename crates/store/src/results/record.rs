//! A measurement record and its columns.

use super::machine::Machine;
use anyhow::{Context, Result};
use cere_format::package::Manifest;
use cere_format::replay::{CacheLevel, REPLAYS, SetAside, Verdict, Warmup};
use rusqlite::Row;
use rusqlite::types::Value;
use serde::Serialize;

/// What decides what a replay of a codelet measures, beside the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// Flags after those of the build, one a word.
    pub flags: Vec<String>,
    /// The `opt` pipeline, if one took the compiler's place.
    pub passes: Option<String>,
    /// State of the caches.
    pub warmup: Warmup,
    /// Threads of a team; none: the program has no OpenMP runtime.
    pub threads: Option<u32>,
    /// Other settings of the OpenMP runtime; empty: none.
    pub placement: String,
    /// Operands with states of their own, as [`cere_format::replay::Operand::line`]; empty: none.
    pub operands: String,
}

/// What measures: the version of cere and, after a plus sign, [`REPLAYS`].
#[must_use]
pub fn tool() -> String {
    format!("{}+{REPLAYS}", env!("CARGO_PKG_VERSION"))
}

/// What a replay took.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Times {
    /// Minimum cycles of the time stamp counter.
    pub cycles_min: u64,
    /// Median cycles.
    pub cycles_median: u64,
    /// Minimum seconds.
    pub seconds_min: f64,
    /// Median seconds.
    pub seconds_median: f64,
    /// Seconds of the repetitions at [`QUANTILES`] places between the minimum and the maximum; none in records of older versions.
    pub quantiles: Vec<f64>,
    /// Confidence interval of the median in seconds, at [`cere_format::replay::CONFIDENCE`], if it is known.
    pub interval: Option<(f64, f64)>,
    /// Repetitions that count.
    pub samples: u64,
    /// Repetitions that do not.
    pub set_aside: SetAside,
    /// Whether those that count were disturbed as well, for want of others.
    pub disturbed: bool,
    /// Runs that shared one reading of the clock.
    pub batch: u32,
}

/// What an invocation took of energy.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Energy {
    /// Median joules.
    pub joules: f64,
    /// Confidence interval of the median in joules, at [`cere_format::replay::CONFIDENCE`], if it is known.
    pub interval: Option<(f64, f64)>,
    /// Seconds of an invocation while its energy was measured.
    pub seconds: f64,
}

/// What is known of a replay that ended.
pub struct Measured {
    /// See [`Record::times`].
    pub times: Option<Times>,
    /// See [`Record::energy`].
    pub energy: Option<Energy>,
    /// See [`Record::verdict`].
    pub verdict: Verdict,
    /// See [`Record::reason`].
    pub reason: String,
    /// See [`Record::same_code`].
    pub same_code: Option<bool>,
}

/// One replay.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Record {
    /// When it was recorded: UTC, as `2026-11-21T10:03:04Z`.
    pub when: String,
    /// The codelet's name.
    pub codelet: String,
    /// The region's name.
    pub region: String,
    /// Id of the region's unit.
    pub unit: String,
    /// The region's index in its unit.
    pub index: u32,
    /// Which invocation.
    pub invocation: u64,
    /// SHA-256 of the package file, in hexadecimal.
    pub sha256: String,
    /// Flags, passes, warm-up.
    pub setting: Setting,
    /// Where.
    pub machine: Machine,
    /// Version of cere.
    pub tool: String,
    /// The times; none if the replay failed, and `reason` says how.
    pub times: Option<Times>,
    /// The energy, if it was measured.
    pub energy: Option<Energy>,
    /// The invocation's time in the application, if it is known.
    pub in_vivo_seconds: Option<f64>,
    /// Verdict on the result.
    pub verdict: Verdict,
    /// Why.
    pub reason: String,
    /// Whether the machine code is the one that ran in vivo, if that is known.
    pub same_code: Option<bool>,
    /// The `cere check` that it belongs to, if it belongs to one that ran the program as well: `in_vivo_seconds` is then
    /// of the class of invocations that the codelet stands for, from the runs of that check.
    pub session: Option<String>,
}

/// The records that count of those of one codelet under one setting, the oldest first: those of the last check that ran
/// the program as well, or, if there was none since, the last one.
pub fn counting<'a>(records: &[&'a Record]) -> Vec<&'a Record> {
    let Some(last) = records.last() else {
        return Vec::new();
    };
    match records.iter().rev().find_map(|r| r.session.as_ref()) {
        Some(session) => {
            let of_session = records
                .iter()
                .filter(|r| r.session.as_ref() == Some(session));
            of_session.copied().collect()
        }
        None => vec![*last],
    }
}

/// Values that describe a distribution: the minimum, each twentieth, the maximum.
pub const QUANTILES: usize = 21;

/// Columns of the table, in order.
pub const COLUMNS: [&str; 40] = [
    "at",
    "codelet",
    "region",
    "unit",
    "region_index",
    "invocation",
    "sha256",
    "flags",
    "passes",
    "warmup",
    "cpu",
    "kernel",
    "machine",
    "tool",
    "cycles_min",
    "cycles_median",
    "seconds_min",
    "seconds_median",
    "seconds_low",
    "seconds_high",
    "samples",
    "faults",
    "switches",
    "migrations",
    "stolen",
    "disturbed",
    "batch",
    "in_vivo_seconds",
    "verdict",
    "reason",
    "same_code",
    "session",
    "quantiles",
    "threads",
    "placement",
    "operands",
    "joules",
    "joules_low",
    "joules_high",
    "joules_seconds",
];

const WARMUPS: [(&str, Warmup); 5] = [
    ("cold", Warmup::Cold),
    ("l2", Warmup::Partial(CacheLevel::L2)),
    ("llc", Warmup::Partial(CacheLevel::Llc)),
    ("working-set", Warmup::WorkingSet),
    ("page-trace", Warmup::PageTrace),
];

/// The name of a warm-up: `cold`, `l2`, `llc` (warm to there), `working-set`, `page-trace`.
pub fn warmup_name(warmup: Warmup) -> &'static str {
    let found = WARMUPS.iter().find(|w| w.1 == warmup);
    found.map_or("?", |w| w.0)
}

fn named<T: Copy>(all: &[(&str, T)], column: &str, name: &str) -> Result<T> {
    let found = all.iter().find(|entry| entry.0 == name);
    found
        .map(|entry| entry.1)
        .with_context(|| format!("{column} is `{name}`, which no cere writes"))
}

impl Record {
    /// The record of a replay that just ended; `when` is filled in as it is kept.
    pub fn of(manifest: &Manifest, sha256: &str, setting: Setting, measured: Measured) -> Self {
        Self {
            when: String::new(),
            codelet: manifest.name.clone(),
            region: manifest.region_name.clone(),
            unit: manifest.key.unit.clone(),
            index: manifest.key.index,
            invocation: manifest.invocation,
            sha256: sha256.to_owned(),
            setting,
            machine: super::machine::this(),
            tool: tool(),
            times: measured.times,
            energy: measured.energy,
            in_vivo_seconds: manifest.in_vivo.map(|t| t.seconds),
            verdict: measured.verdict,
            reason: measured.reason,
            same_code: measured.same_code,
            session: None,
        }
    }

    /// In vitro over in vivo, medians, if both are known.
    pub fn ratio(&self) -> Option<f64> {
        let in_vivo = self.in_vivo_seconds.filter(|s| *s > 0.0)?;
        Some(self.times.as_ref()?.seconds_median / in_vivo)
    }

    /// The values of [`COLUMNS`].
    pub fn values(&self) -> Vec<Value> {
        let text = |text: &str| Value::Text(text.to_owned());
        let whole = |number: u64| Value::Integer(i64::try_from(number).unwrap_or(i64::MAX));
        let times = self.times.as_ref();
        let energy = |f: &dyn Fn(&Energy) -> Option<f64>| {
            self.energy
                .as_ref()
                .and_then(f)
                .map_or(Value::Null, Value::Real)
        };
        let count = |f: &dyn Fn(&Times) -> u64| times.map_or(Value::Null, |t| whole(f(t)));
        let real =
            |f: &dyn Fn(&Times) -> Option<f64>| times.and_then(f).map_or(Value::Null, Value::Real);
        vec![
            text(&self.when),
            text(&self.codelet),
            text(&self.region),
            text(&self.unit),
            whole(self.index.into()),
            whole(self.invocation),
            text(&self.sha256),
            text(&shell_words::join(&self.setting.flags)),
            self.setting.passes.as_deref().map_or(Value::Null, text),
            text(warmup_name(self.setting.warmup)),
            text(&self.machine.cpu),
            text(&self.machine.kernel),
            text(&self.machine.id),
            text(&self.tool),
            count(&|t| t.cycles_min),
            count(&|t| t.cycles_median),
            real(&|t| Some(t.seconds_min)),
            real(&|t| Some(t.seconds_median)),
            real(&|t| t.interval.map(|i| i.0)),
            real(&|t| t.interval.map(|i| i.1)),
            count(&|t| t.samples),
            count(&|t| t.set_aside.faults),
            count(&|t| t.set_aside.switches),
            count(&|t| t.set_aside.migrations),
            count(&|t| t.set_aside.stolen),
            count(&|t| t.disturbed.into()),
            count(&|t| t.batch.into()),
            self.in_vivo_seconds.map_or(Value::Null, Value::Real),
            text(self.verdict.name()),
            text(&self.reason),
            self.same_code
                .map_or(Value::Null, |same| whole(same.into())),
            self.session.as_deref().map_or(Value::Null, text),
            times
                .filter(|t| !t.quantiles.is_empty())
                .map_or(Value::Null, |t| {
                    let words = t.quantiles.iter().map(f64::to_string);
                    Value::Text(words.collect::<Vec<_>>().join(" "))
                }),
            self.setting
                .threads
                .map_or(Value::Null, |n| whole(n.into())),
            text(&self.setting.placement),
            text(&self.setting.operands),
            energy(&|e| Some(e.joules)),
            energy(&|e| e.interval.map(|i| i.0)),
            energy(&|e| e.interval.map(|i| i.1)),
            energy(&|e| Some(e.seconds)),
        ]
    }

    /// The record in a row with the [`COLUMNS`].
    pub fn of_row(row: &Row) -> Result<Self> {
        let whole = |column| -> Result<Option<u64>> {
            let number: Option<i64> = row.get(column)?;
            let convert = |n| u64::try_from(n).with_context(|| format!("{column} is {n}"));
            number.map(convert).transpose()
        };
        let count = |column| Ok::<u64, anyhow::Error>(whole(column)?.unwrap_or(0));
        let real =
            |column| -> Result<f64> { Ok(row.get::<_, Option<f64>>(column)?.unwrap_or(0.0)) };
        let (low, high): (Option<f64>, Option<f64>) =
            (row.get("seconds_low")?, row.get("seconds_high")?);
        let times = match whole("cycles_median")? {
            Some(cycles_median) => Some(Times {
                cycles_min: count("cycles_min")?,
                cycles_median,
                seconds_min: real("seconds_min")?,
                seconds_median: real("seconds_median")?,
                quantiles: row
                    .get::<_, Option<String>>("quantiles")?
                    .unwrap_or_default()
                    .split_whitespace()
                    .map(str::parse)
                    .collect::<Result<_, _>>()
                    .context("quantiles are numbers")?,
                interval: low.zip(high),
                samples: count("samples")?,
                set_aside: SetAside {
                    faults: count("faults")?,
                    switches: count("switches")?,
                    migrations: count("migrations")?,
                    stolen: count("stolen")?,
                },
                disturbed: count("disturbed")? != 0,
                batch: u32::try_from(count("batch")?)?,
            }),
            None => None,
        };
        let (low, high): (Option<f64>, Option<f64>) =
            (row.get("joules_low")?, row.get("joules_high")?);
        let joules: Option<f64> = row.get("joules")?;
        let seconds = real("joules_seconds")?;
        let energy = joules.map(|joules| Energy {
            joules,
            interval: low.zip(high),
            seconds,
        });
        Ok(Self {
            when: row.get("at")?,
            codelet: row.get("codelet")?,
            region: row.get("region")?,
            unit: row.get("unit")?,
            index: u32::try_from(count("region_index")?)?,
            invocation: count("invocation")?,
            sha256: row.get("sha256")?,
            setting: Setting {
                flags: shell_words::split(&row.get::<_, String>("flags")?)?,
                passes: row.get("passes")?,
                warmup: named(&WARMUPS, "warmup", &row.get::<_, String>("warmup")?)?,
                threads: row.get("threads")?,
                placement: row
                    .get::<_, Option<String>>("placement")?
                    .unwrap_or_default(),
                operands: row
                    .get::<_, Option<String>>("operands")?
                    .unwrap_or_default(),
            },
            machine: Machine {
                cpu: row.get("cpu")?,
                kernel: row.get("kernel")?,
                id: row.get("machine")?,
            },
            tool: row.get("tool")?,
            times,
            energy,
            in_vivo_seconds: row.get("in_vivo_seconds")?,
            verdict: named(
                &Verdict::ALL.map(|v| (v.name(), v)),
                "verdict",
                &row.get::<_, String>("verdict")?,
            )?,
            reason: row.get("reason")?,
            same_code: whole("same_code")?.map(|same| same != 0),
            session: row.get("session")?,
        })
    }
}

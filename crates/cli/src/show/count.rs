//! Counts as text and CSV.

use cere_count::Counts;
use cere_count::accesses::Memory;
use cere_count::counts::{Level, Simulation};
use cere_count::hardware::{Hardware, names};
use cere_replay::names::demangle;
use cere_system::console::print::{self, number};
use cere_system::console::{color, short};

fn memory(m: &Memory) -> String {
    format!(
        "{} loads ({} bytes), {} stores ({} bytes)",
        number(m.loads),
        number(m.load_bytes),
        number(m.stores),
        number(m.store_bytes)
    )
}

/// Counts for people.
pub fn text(c: &Counts) -> String {
    let mut text = format!(
        "{}: {} ({})\n",
        c.codelet,
        color::verdict(c.verdict),
        c.reason
    );
    let mut line = |what: &str, value: String| text += &format!("  {what:<16}{value}\n");
    line(
        "instructions",
        format!(
            "{} in {} blocks, {} branches",
            number(c.instructions),
            number(c.blocks),
            number(c.branches)
        ),
    );
    line("flops", number(c.flops.total));
    for work in &c.work {
        let masked = match work.masked {
            0 => String::new(),
            n => format!(", {} of them masked", number(n)),
        };
        line(
            "",
            format!(
                "{} {:?} {:?} {:?}: {} instructions{masked}",
                number(work.flops),
                work.float,
                work.operation,
                work.width,
                number(work.instructions)
            )
            .to_lowercase(),
        );
    }
    line("memory", memory(&c.memory));
    if c.spills != Memory::default() {
        line("  spilled", memory(&c.spills));
    }
    if c.non_temporal != Memory::default() {
        line("  non-temporal", memory(&c.non_temporal));
    }
    if c.library != Memory::default() {
        line("memcpy, memset", memory(&c.library));
    }
    for called in &c.calls {
        line(
            "not counted",
            format!(
                "{} calls of {}",
                number(called.calls),
                short::name(&demangle(&called.name))
            ),
        );
    }
    if c.uncounted_calls > 0 {
        line(
            "not counted",
            format!(
                "{} calls of addresses without IR",
                number(c.uncounted_calls)
            ),
        );
    }
    if c.assembly > 0 {
        line(
            "not counted",
            format!("{} pieces of inline assembly", number(c.assembly)),
        );
    }
    if let Some(simulation) = &c.simulation {
        text += &simulated(simulation);
    }
    if let Some(found) = &c.hardware {
        text += &hardware(c, found);
    }
    let notes = c.hardware.iter().flat_map(|found| &found.notes);
    for note in c.notes.iter().chain(notes) {
        text += &format!("  {note}\n");
    }
    text
}

/// A mean count.
fn mean(value: f64) -> String {
    match value < 100.0 {
        true => format!("{value:.1}"),
        false => number(value.round() as u64),
    }
}

/// What the hardware counted beside what was counted exactly.
pub fn hardware(c: &Counts, found: &Hardware) -> String {
    let dash = || "-".to_owned();
    let rows = found.events.iter().map(|event| {
        let exact = c.beside(event.name);
        let ratio = event.value.zip(exact.filter(|exact| *exact > 0));
        let running = event.running.map(|share| format!("{:.1} %", 100.0 * share));
        vec![
            format!("    {}", event.name),
            exact.map_or_else(dash, number),
            event.value.map_or_else(dash, mean),
            ratio.map_or_else(dash, |(value, exact)| {
                format!("{:.3}", value / exact as f64)
            }),
            running.unwrap_or_else(dash),
        ]
    });
    let mut text = format!(
        "  hardware        mean of {} invocations\n",
        found.invocations
    );
    text += &print::table(
        &[
            "    event",
            "counted exactly",
            "hardware",
            "ratio",
            "running",
        ],
        &rows.collect::<Vec<_>>(),
    );
    for event in &found.events {
        if let Some(why) = &event.error {
            text += &format!("  not counted     {}: {why}\n", event.name);
        }
    }
    text
}

fn simulated(s: &Simulation) -> String {
    let sampled = match s.sampled {
        1 => String::new(),
        n => format!(", 1 line of {n}"),
    };
    let mut text = format!(
        "  caches          {} from {}{sampled}\n",
        s.geometry, s.warmup
    );
    let rows: Vec<Vec<String>> = s
        .levels
        .iter()
        .map(|level| {
            vec![
                format!("    {}", level.name),
                number(level.misses),
                level
                    .miss_rate
                    .map_or_else(|| "-".into(), |rate| format!("{:.2} %", 100.0 * rate)),
                number(level.fills),
                number(level.write_backs),
                number(level.bytes),
                level.bytes_random.map_or_else(|| "-".into(), number),
            ]
        })
        .collect();
    text += &print::table(
        &[
            "    level",
            "misses",
            "rate",
            "fills (bytes)",
            "write-backs (bytes)",
            "traffic (bytes)",
            "random replacement",
        ],
        &rows,
    );
    let walks = s.tlb.misses.iter().map(|m| number(*m)).collect::<Vec<_>>();
    text += &format!(
        "  memory traffic  {} bytes read, {} written\n  translations    {} misses, {} walks\n  footprint       {} bytes in lines, {} in pages\n",
        number(s.memory_read),
        number(s.memory_written),
        walks.join(", "),
        number(s.tlb.walks),
        number(s.footprint_bytes),
        number(s.footprint_page_bytes)
    );
    if let Some(intensity) = s.intensity {
        text += &format!("  intensity       {intensity:.4} flop/byte\n");
    }
    text
}

/// Fields of the simulation, which are null where there is none.
const SIMULATED: [&str; 10] = [
    "geometry",
    "warmup",
    "sampled",
    "levels",
    "memory_read",
    "memory_written",
    "tlb",
    "footprint_bytes",
    "footprint_page_bytes",
    "intensity",
];

/// Counts for programs.
pub fn json(c: &Counts) -> serde_json::Value {
    let mut value = serde_json::json!(c);
    let simulation = serde_json::json!(c.simulation);
    if let Some(fields) = value.as_object_mut() {
        for name in SIMULATED {
            let field = simulation.get(name).cloned();
            fields.insert(name.to_owned(), field.unwrap_or_default());
        }
    }
    value
}

/// Columns of what the hardware counted.
pub fn hardware_columns() -> impl Iterator<Item = String> {
    let events = names().into_iter().map(|name| format!("hw_{name}"));
    std::iter::once("hw_invocations".to_owned()).chain(events)
}

/// A row's cells of these columns; empty where nothing was counted.
pub fn hardware_cells(c: &Counts) -> Vec<String> {
    let found = c.hardware.as_ref();
    let value =
        |name: &str| cell(found.and_then(|h| h.events.iter().find(|e| e.name == name)?.value));
    let invocations = cell(found.map(|h| h.invocations));
    let values = names().into_iter().map(value);
    std::iter::once(invocations).chain(values).collect()
}

/// A column: its name, and the number in a row.
type Column<T> = (&'static str, fn(&T) -> u64);

/// Columns of every codelet.
const COUNTED: [Column<Counts>; 14] = [
    ("threads", |c| c.threads.into()),
    ("instructions", |c| c.instructions),
    ("blocks", |c| c.blocks),
    ("branches", |c| c.branches),
    ("taken", |c| c.taken),
    ("flops", |c| c.flops.total),
    ("flops_f32", |c| c.flops.f32),
    ("flops_f64", |c| c.flops.f64),
    ("loads", |c| c.memory.loads),
    ("stores", |c| c.memory.stores),
    ("load_bytes", |c| c.memory.load_bytes),
    ("store_bytes", |c| c.memory.store_bytes),
    ("spill_loads", |c| c.spills.loads),
    ("spill_stores", |c| c.spills.stores),
];

/// Columns of each simulated level, after its name.
const OF_LEVEL: [Column<Level>; 3] = [
    ("misses", |l| l.misses),
    ("fills", |l| l.fills),
    ("write_backs", |l| l.write_backs),
];

/// Columns of the memory behind them.
const OF_MEMORY: [Column<Simulation>; 3] = [
    ("memory_read", |s| s.memory_read),
    ("memory_written", |s| s.memory_written),
    ("footprint_bytes", |s| s.footprint_bytes),
];

/// A cell; empty without a value.
fn cell(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |v| v.to_string())
}

/// One row a codelet.
pub fn csv(all: &[Counts]) -> String {
    let mut levels: Vec<&str> = Vec::new();
    for level in all
        .iter()
        .flat_map(|c| &c.simulation)
        .flat_map(|s| &s.levels)
    {
        if !levels.contains(&level.name.as_str()) {
            levels.push(&level.name);
        }
    }
    let measured = all.iter().any(|c| c.hardware.is_some());
    let of_level = |level: &&str| OF_LEVEL.map(|(name, _)| format!("{level}_{name}"));
    let mut head = ["codelet", "flags", "verdict"].map(str::to_owned).to_vec();
    head.extend(COUNTED.map(|(name, _)| name.to_owned()));
    head.extend(levels.iter().flat_map(of_level));
    head.extend(OF_MEMORY.map(|(name, _)| name.to_owned()));
    head.push("intensity".to_owned());
    if measured {
        head.extend(hardware_columns());
    }
    let row = |c: &Counts| {
        let verdict = c.verdict.name().to_owned();
        let mut row = vec![c.codelet.clone(), c.flags.clone(), verdict];
        row.extend(COUNTED.map(|(_, of)| of(c).to_string()));
        let simulation = c.simulation.as_ref();
        for name in &levels {
            let level = simulation.and_then(|s| s.levels.iter().find(|l| l.name == *name));
            row.extend(OF_LEVEL.map(|(_, of)| cell(level.map(of))));
        }
        row.extend(OF_MEMORY.map(|(_, of)| cell(simulation.map(of))));
        row.push(cell(simulation.and_then(|s| s.intensity)));
        if measured {
            row.extend(hardware_cells(c));
        }
        row
    };
    cere_system::console::csv::text(&head, all.iter().map(row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cere_count::hardware::EventCount;
    use cere_format::replay::Verdict;

    fn counted(name: &'static str, value: Option<f64>, error: Option<&str>) -> EventCount {
        EventCount {
            name,
            value,
            error: error.map(str::to_owned),
            running: value.map(|_| 0.5),
        }
    }

    fn counts(hardware: Option<Hardware>) -> Counts {
        let code = cere_format::count::Code::default();
        let tally = cere_count::tally::Tally::new(&code);
        let empty = cere_count::accesses::Dynamic::default();
        let counts = Counts::of("c:1", &code, &tally, &empty).expect("no overflow");
        Counts {
            instructions: 1000,
            hardware,
            ..counts
        }
    }

    fn hardware() -> Hardware {
        Hardware {
            invocations: 10,
            events: vec![
                counted("instructions", Some(1234.4), None),
                counted("cycles", Some(99.96), None),
                counted("llc_loads", None, Some("the kernel has no such event")),
            ],
            notes: vec!["cycles: counted for 50.0 % of the time".to_owned()],
            verdict: Verdict::Exact,
        }
    }

    #[test]
    fn the_hardware_stands_beside_what_was_counted_exactly() {
        let text = text(&counts(Some(hardware())));
        let words: Vec<Vec<&str>> = text
            .lines()
            .map(|l| l.split_whitespace().collect())
            .collect();
        for row in [
            &["hardware", "mean", "of", "10", "invocations"][..],
            &["instructions", "1,000", "1,234", "1.234", "50.0"],
            &["cycles", "-", "100.0", "-", "50.0"],
            &["llc_loads", "-", "-", "-", "-"],
            &[
                "not",
                "counted",
                "llc_loads:",
                "the",
                "kernel",
                "has",
                "no",
                "such",
                "event",
            ],
            &[
                "cycles:", "counted", "for", "50.0", "%", "of", "the", "time",
            ],
        ] {
            assert!(
                words.iter().any(|found| found == row),
                "no {row:?} in\n{text}"
            );
        }
    }

    #[test]
    fn rows_have_columns_of_the_hardware_where_one_has_values() {
        let plain = csv(&[counts(None)]);
        assert!(!plain.contains("hw_"), "{plain}");
        let both = csv(&[counts(None), counts(Some(hardware()))]);
        let rows: Vec<Vec<&str>> = both.lines().map(|l| l.split(',').collect()).collect();
        let cell = |row: usize, name: &str| {
            let column = rows[0].iter().position(|head| *head == name);
            rows[row][column.expect(name)]
        };
        assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{both}");
        assert_eq!(cell(2, "hw_instructions"), "1234.4");
        assert_eq!(
            (cell(2, "hw_invocations"), cell(1, "hw_invocations")),
            ("10", "")
        );
        assert_eq!(
            (cell(2, "hw_llc_loads"), cell(1, "hw_instructions")),
            ("", "")
        );
        for name in names() {
            cell(0, &format!("hw_{name}"));
        }
    }

    #[test]
    fn json_has_null_where_the_hardware_was_not_asked() {
        assert!(json(&counts(None))["hardware"].is_null());
        let value = json(&counts(Some(hardware())));
        assert_eq!(value["hardware"]["events"][0]["value"], 1234.4);
        assert!(value["hardware"]["events"][2]["value"].is_null());
        assert!(value["hardware"].get("verdict").is_none());
    }

    /// `crates/cli/tests/all/schemas.rs` checks the rest; few machines that run tests have counters.
    #[test]
    fn the_schema_describes_the_hardware() {
        let schema = include_str!("../../../../docs/schemas/count.json");
        let schema: serde_json::Value = serde_json::from_str(schema).expect("JSON");
        let validator = jsonschema::draft202012::new(&schema).expect("a schema");
        let names = &schema["items"]["properties"]["hardware"]["oneOf"][1]["properties"]["events"];
        let names = &names["items"]["properties"]["name"]["enum"];
        assert_eq!(names, &serde_json::json!(super::names()));
        for hardware in [None, Some(hardware())] {
            let value = serde_json::json!([json(&counts(hardware))]);
            let wrong: Vec<String> = validator
                .iter_errors(&value)
                .map(|e| e.to_string())
                .collect();
            assert!(wrong.is_empty(), "{wrong:?}\n{value:#}");
        }
    }
}

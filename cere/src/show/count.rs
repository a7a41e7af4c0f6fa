//! Counts as text and CSV.

use cere_console::print;
use cere_count::Counts;
use cere_count::accesses::Memory;
use cere_count::counts::Simulation;

/// `1,234,567`.
fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

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
    let mut text = format!("{}: {} ({})\n", c.codelet, c.verdict.name(), c.reason);
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
                print::short(&called.name, 60)
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
    for note in &c.notes {
        text += &format!("  {note}\n");
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

/// One row a codelet.
pub fn csv(all: &[Counts]) -> String {
    let mut levels: Vec<&str> = Vec::new();
    for counts in all {
        for level in counts.simulation.iter().flat_map(|s| &s.levels) {
            if !levels.contains(&level.name.as_str()) {
                levels.push(&level.name);
            }
        }
    }
    let mut head: Vec<String> = [
        "codelet",
        "flags",
        "verdict",
        "threads",
        "instructions",
        "blocks",
        "branches",
        "taken",
        "flops",
        "flops_f32",
        "flops_f64",
        "loads",
        "stores",
        "load_bytes",
        "store_bytes",
        "spill_loads",
        "spill_stores",
    ]
    .map(str::to_owned)
    .into();
    for level in &levels {
        for what in ["misses", "fills", "write_backs"] {
            head.push(format!("{level}_{what}"));
        }
    }
    head.extend(
        [
            "memory_read",
            "memory_written",
            "footprint_bytes",
            "intensity",
        ]
        .map(str::to_owned),
    );
    let row = |c: &Counts| {
        let mut row = vec![
            c.codelet.clone(),
            c.flags.clone(),
            c.verdict.name().to_owned(),
        ];
        let numbers = [
            c.threads.into(),
            c.instructions,
            c.blocks,
            c.branches,
            c.taken,
            c.flops.total,
            c.flops.f32,
            c.flops.f64,
            c.memory.loads,
            c.memory.stores,
            c.memory.load_bytes,
            c.memory.store_bytes,
            c.spills.loads,
            c.spills.stores,
        ];
        row.extend(numbers.iter().map(u64::to_string));
        let simulation = c.simulation.as_ref();
        for name in &levels {
            let level = simulation.and_then(|s| s.levels.iter().find(|l| l.name == *name));
            for value in [
                level.map(|l| l.misses),
                level.map(|l| l.fills),
                level.map(|l| l.write_backs),
            ] {
                row.push(value.map_or_else(String::new, |v| v.to_string()));
            }
        }
        for value in [
            simulation.map(|s| s.memory_read),
            simulation.map(|s| s.memory_written),
            simulation.map(|s| s.footprint_bytes),
        ] {
            row.push(value.map_or_else(String::new, |v| v.to_string()));
        }
        let intensity = simulation.and_then(|s| s.intensity);
        row.push(intensity.map_or_else(String::new, |i| i.to_string()));
        row
    };
    cere_console::csv::text(&head, all.iter().map(row))
}

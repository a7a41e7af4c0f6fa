//! Metric vectors as text, JSON and CSV.

use super::count;
use cere_count::metrics::{METRICS, Vector};
use cere_system::console::{color, csv as table};

/// A value for people: four digits that count.
fn value(x: f64) -> String {
    let size = x.abs();
    match () {
        () if x == 0.0 => "0".into(),
        () if x.fract() == 0.0 && size < 1e15 => format!("{x:.0}"),
        () if size >= 1000.0 => format!("{x:.0}"),
        () if size >= 1e-3 => {
            let digits = (3 - size.log10().floor() as i32).clamp(0, 6) as usize;
            format!("{x:.digits$}")
        }
        () => format!("{x:.3e}"),
    }
}

/// Name of the simulated caches.
fn geometry(v: &Vector) -> &str {
    let simulation = v.counts.simulation.as_ref();
    simulation.map_or("", |simulation| &simulation.geometry)
}

/// One of so many groups of lines was simulated.
fn lines_simulated(v: &Vector) -> u32 {
    let simulation = v.counts.simulation.as_ref();
    simulation.map_or(1, |simulation| simulation.sampled)
}

/// The metrics of a codelet for people, by groups.
pub fn text(v: &Vector) -> String {
    let mut text = format!(
        "{}: {} ({})\n",
        v.counts.codelet,
        color::verdict(v.counts.verdict),
        v.counts.reason
    );
    let sampled = match (v.sampling.pieces, v.sampling.line_bits) {
        (1, 0) => "all of it".to_owned(),
        (pieces, bits) => format!(
            "1 of {pieces} pieces of instructions, 1 of {} lines",
            1u64 << bits
        ),
    };
    text += &format!(
        "  caches {}, model {}; looked at: {sampled}\n",
        geometry(v),
        v.model
    );
    let mut group = "";
    for metric in METRICS.iter() {
        if metric.group != group {
            group = metric.group;
            text += &format!("  {group}\n");
        }
        let shown = match v.values.get(metric.name) {
            Some(Ok(x)) if metric.unit == "1" => value(*x),
            Some(Ok(x)) => format!("{} {}", value(*x), metric.unit),
            Some(Err(why)) => format!("- ({why})"),
            None => "-".into(),
        };
        text += &format!("    {:<28}{shown}\n", metric.name);
    }
    if let Some(found) = &v.counts.hardware {
        text += &count::hardware(&v.counts, found);
    }
    let measured = v.counts.hardware.iter().flat_map(|found| &found.notes);
    for note in v.counts.notes.iter().chain(measured) {
        text += &format!("  {note}\n");
    }
    text
}

/// The metrics of a codelet for programs.
pub fn json(v: &Vector, budget: u64) -> serde_json::Value {
    let mut metrics = serde_json::Map::new();
    let mut missing = serde_json::Map::new();
    for metric in METRICS.iter() {
        let name = metric.name.to_owned();
        metrics.insert(name.clone(), serde_json::json!(v.values.value(metric.name)));
        if let Some(Err(why)) = v.values.get(metric.name) {
            missing.insert(name, serde_json::json!(why));
        }
    }
    serde_json::json!({
        "codelet": v.counts.codelet,
        "flags": v.counts.flags,
        "verdict": v.counts.verdict,
        "reason": v.counts.reason,
        "threads": v.counts.threads,
        "geometry": geometry(v),
        "model": v.model,
        "budget": budget,
        "pieces": v.sampling.pieces,
        "lines": 1u64 << v.sampling.line_bits,
        "lines_simulated": lines_simulated(v),
        "metrics": metrics,
        "missing": missing,
        "hardware": v.counts.hardware,
        "notes": v.counts.notes,
    })
}

/// One row a codelet; what has no value is empty.
pub fn csv(all: &[Vector]) -> String {
    let mut heading = vec![
        "codelet",
        "flags",
        "verdict",
        "threads",
        "geometry",
        "model",
        "pieces",
        "lines",
        "lines_simulated",
    ];
    heading.extend(METRICS.iter().map(|m| m.name));
    let mut heading: Vec<String> = heading.into_iter().map(str::to_owned).collect();
    let measured = all.iter().any(|v| v.counts.hardware.is_some());
    if measured {
        heading.extend(count::hardware_columns());
    }
    let row = |v: &Vector| {
        let mut row = vec![
            v.counts.codelet.clone(),
            v.counts.flags.clone(),
            v.counts.verdict.name().to_owned(),
            v.counts.threads.to_string(),
            geometry(v).to_owned(),
            v.model.to_owned(),
            v.sampling.pieces.to_string(),
            (1u64 << v.sampling.line_bits).to_string(),
            lines_simulated(v).to_string(),
        ];
        let cell = |name| {
            v.values
                .value(name)
                .map_or_else(String::new, |x| x.to_string())
        };
        row.extend(METRICS.iter().map(|m| cell(m.name)));
        if measured {
            row.extend(count::hardware_cells(&v.counts));
        }
        row
    };
    table::text(&heading, all.iter().map(row))
}

/// What each metric is, for people.
pub fn list() -> String {
    let mut text = String::new();
    let mut group = "";
    for metric in METRICS.iter() {
        if metric.group != group {
            group = metric.group;
            text += &format!("{group}\n");
        }
        text += &format!(
            "  {:<28}{} [{}] ({})\n",
            metric.name, metric.definition, metric.unit, metric.source
        );
    }
    text
}

/// What each metric is, for programs.
pub fn list_csv() -> String {
    let heading = ["name", "group", "unit", "definition", "source"];
    let rows = METRICS.iter().map(|m| {
        [m.name, m.group, m.unit, m.definition, m.source]
            .map(str::to_owned)
            .to_vec()
    });
    table::text(&heading, rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cere_count::hardware::{EventCount, Hardware};
    use cere_count::metrics::Values;
    use cere_count::metrics::trace::Sampling;

    /// Few machines that run tests have counters.
    fn vector(hardware: bool) -> Vector {
        let code = cere_format::count::Code::default();
        let tally = cere_count::tally::Tally::new(&code);
        let empty = cere_count::accesses::Dynamic::default();
        let mut counts = cere_count::Counts::of("c:1", &code, &tally, &empty).expect("no overflow");
        counts.flags = "-O2, odd".into();
        counts.hardware = hardware.then(|| Hardware {
            invocations: 3,
            events: vec![EventCount {
                name: "cycles",
                value: Some(12.5),
                error: None,
                running: Some(1.0),
            }],
            notes: Vec::new(),
            verdict: counts.verdict,
        });
        let mut values = Values::default();
        values.set("ilp_32", 2.5);
        values.missing("loads_per_store", "it stores nothing");
        Vector {
            counts,
            model: "icelake-server",
            sampling: Sampling::of(10, 10, 10, 5),
            values,
        }
    }

    #[test]
    fn what_the_hardware_counted_is_in_all_forms() {
        let both = [vector(false), vector(true)];
        let schema = include_str!("../../../../docs/schemas/metrics.json");
        let schema: serde_json::Value = serde_json::from_str(schema).expect("JSON");
        let validator = jsonschema::draft202012::new(&schema).expect("a schema");
        let values: Vec<_> = both.iter().map(|v| json(v, 5)).collect();
        let wrong = validator.iter_errors(&serde_json::json!(values)).count();
        assert_eq!(wrong, 0, "{values:#?}");
        assert!(values[0]["hardware"].is_null());
        assert_eq!(values[1]["hardware"]["events"][0]["value"], 12.5);
        let table = csv(&both);
        let rows: Vec<&str> = table.split_terminator("\r\n").collect();
        assert!(
            rows[0].contains(",hw_cycles,") && rows[2].contains(",12.5,"),
            "{table}"
        );
        assert!(rows[1].starts_with("c:1,\"-O2, odd\","), "{table}");
        assert!(!csv(&both[..1]).contains("hw_"));
        assert!(text(&both[1]).contains("12.5") && !text(&both[0]).contains("hardware"));
        assert!(text(&both[0]).contains("- (it stores nothing)"));
    }

    #[test]
    fn four_digits_count() {
        for (number, shown) in [
            (0.0, "0"),
            (3.0, "3"),
            (0.123_456, "0.1235"),
            (12.345_6, "12.35"),
            (123_456.7, "123457"),
            (0.000_012_3, "1.230e-5"),
        ] {
            assert_eq!(value(number), shown);
        }
    }
}

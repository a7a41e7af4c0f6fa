//! A measured machine as text.

use cere_format::machine::{Bandwidth, Locality, Machine, Operation, Peak, USABLE};
use cere_system::console::print;
use std::fmt::Write;

/// The machine for people.
pub fn text(machine: &Machine) -> String {
    let mut text = format!(
        "{} ({}{}), {} processors; measured in {:.0} s{}\n",
        machine.identity.cpu,
        machine.identity.signature,
        if machine.identity.hypervisor {
            ", virtual"
        } else {
            ""
        },
        machine.identity.processors,
        machine.seconds,
        if machine.quick { ", quick" } else { "" }
    );
    let sure = |bytes: u64, what| {
        let confidence = machine.confidence(what);
        format!("{bytes} bytes (confidence {confidence:.2})")
    };
    let line = machine.line_bytes.map(|n| sure(n, "line_bytes"));
    let page = machine.page_bytes.map(|n| sure(n, "page_bytes"));
    let addition = machine.add_ns.map(|ns| format!("{ns:.3} ns"));
    for (name, value, what) in [
        ("line", line, "line_bytes"),
        ("page", page, "page_bytes"),
        ("integer addition", addition, "add_ns"),
    ] {
        text += &fact(machine, name, value, what);
    }
    text += &caches(machine);
    text += &cores(machine);
    text += &operations(machine);
    text += &peaks(machine);
    text += &bandwidths(machine);
    for note in &machine.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

/// A line of a value or, where there is none, of the reason.
fn fact(machine: &Machine, name: &str, value: Option<String>, what: &str) -> String {
    let reason = || {
        let found = machine.found.iter().find(|found| found.what == what);
        found.map_or("not measured".into(), |found| found.how.clone())
    };
    let value = value.unwrap_or_else(reason);
    format!("  {name:<22} {value}\n")
}

fn bytes(bytes: u64) -> String {
    match bytes {
        0..0x40_0000 => format!("{} KiB", bytes >> 10),
        _ => format!("{:.4} MiB", bytes as f64 / f64::from(1 << 20)).replace(".0000", ""),
    }
}

fn caches(machine: &Machine) -> String {
    let mut rows = Vec::new();
    for (at, cache) in machine.caches.iter().enumerate() {
        let sure = machine.confidence(&format!("caches[{at}].ways")) >= USABLE;
        let ways = cache.ways.filter(|_| sure);
        let ways = ways.map_or("?".into(), |ways| ways.to_string());
        let told = cache.system_bytes.map_or("-".into(), bytes);
        let shared = cache.shared_by.as_ref().map_or("?".into(), |groups| {
            let groups: Vec<String> = groups.iter().map(|group| list(group)).collect();
            groups.join(" | ")
        });
        rows.push(vec![
            format!("  L{}", cache.level),
            bytes(cache.size_bytes),
            ways,
            format!("{:.2} ns", cache.latency_ns),
            format!("{:.1}", cache.latency_adds),
            format!("{:.2}", cache.confidence),
            told,
            shared,
        ]);
    }
    if let (Some(ns), Some(adds)) = (machine.memory.latency_ns, machine.memory.latency_adds) {
        let mut row = vec![String::new(); 8];
        row[0] = "  memory".to_owned();
        row[3] = format!("{ns:.2} ns");
        row[4] = format!("{adds:.1}");
        rows.push(row);
    }
    let heading = [
        "Caches",
        "size",
        "ways",
        "latency",
        "in additions",
        "confidence",
        "system says",
        "<shared by",
    ];
    let mut text = format!("\n{}", print::table(&heading, &rows));
    for tlb in &machine.tlb {
        let _ = writeln!(
            text,
            "  TLB {}  {:>6} pages; a miss adds {:.2} ns (confidence {:.2})",
            tlb.level, tlb.entries, tlb.miss_ns, tlb.confidence
        );
    }
    text
}

fn list(cores: &[u32]) -> String {
    let cores: Vec<String> = cores.iter().map(u32::to_string).collect();
    cores.join(",")
}

fn cores(machine: &Machine) -> String {
    let cores = &machine.cores;
    let mut text = String::from("\nCores\n");
    for (name, value, what) in [
        (
            "floating-point contexts",
            cores.float_contexts,
            "float_contexts",
        ),
        (
            "integer contexts",
            cores.integer_contexts,
            "integer_contexts",
        ),
        ("memory contexts", cores.memory_contexts, "memory_contexts"),
        (
            "integer variables",
            cores.integer_registers,
            "integer_registers",
        ),
        ("f64 variables", cores.float_registers, "float_registers"),
        (
            "f64, widest instructions",
            cores.vector_registers,
            "vector_registers",
        ),
    ] {
        let value = value.map(|n| n.to_string());
        text += &fact(machine, name, value, &format!("cores.{what}"));
    }
    let slot = cores.time_slot_seconds;
    let slot = slot.map(|s| format!("{:.2} ms", 1e3 * s));
    text += &fact(machine, "time slot", slot, "cores.time_slot_seconds");
    for layer in &cores.layers {
        let _ = writeln!(
            text,
            "  messages by {:<10} {:.2} us for {}, {:.2} GB/s; pairs {}",
            layer.by,
            1e6 * layer.latency_seconds,
            bytes(layer.bytes),
            layer.bytes_per_second / 1e9,
            layer.pairs.len()
        );
    }
    if let Some(tree) = &cores.tree {
        nearer(tree, 1, &mut text);
    }
    text
}

fn nearer(tree: &Locality, depth: usize, text: &mut String) {
    let _ = writeln!(
        text,
        "{:indent$}cores {}: {:.2} GB/s at {}",
        "",
        list(&tree.cores),
        tree.bytes_per_second / 1e9,
        bytes(tree.block_bytes),
        indent = 2 * depth
    );
    tree.within
        .iter()
        .for_each(|part| nearer(part, depth + 1, text));
}

fn operations(machine: &Machine) -> String {
    let most = machine.operations.iter().map(|op| op.bits).max();
    let shown = |op: &&Operation| op.bits <= 64 || Some(op.bits) == most;
    let row = |op: &Operation| {
        vec![
            format!("  {} {}", op.name, op.element),
            op.bits.to_string(),
            format!("{:.2}", op.latency_adds),
            format!("{:.2}", op.per_add),
            op.in_flight.map_or("?".into(), |n| n.to_string()),
            format!("{:.2}", op.confidence),
        ]
    };
    let rows = machine.operations.iter().filter(shown).map(row);
    let heading = [
        "Operations",
        "bits",
        "latency in additions",
        "each addition's time",
        "in flight",
        "confidence",
    ];
    format!("\n{}", print::table(&heading, &rows.collect::<Vec<_>>()))
}

fn peaks(machine: &Machine) -> String {
    let most = machine.peaks.iter().map(|peak| peak.bits).max();
    let shown = |peak: &&Peak| peak.bits <= 64 || Some(peak.bits) == most;
    let row = |peak: &Peak| {
        vec![
            format!("  {} {}", peak.name, peak.element),
            peak.bits.to_string(),
            peak.cores.to_string(),
            format!("{:.1}", peak.flops_per_second / 1e9),
            peak.streams.to_string(),
        ]
    };
    let rows = machine.peaks.iter().filter(shown).map(row);
    let heading = ["Peaks", "bits", "cores", "GFlop/s", "streams"];
    format!("\n{}", print::table(&heading, &rows.collect::<Vec<_>>()))
}

fn bandwidths(machine: &Machine) -> String {
    let mut text = String::from("\nBandwidths GB/s (of the program's bytes)\n");
    let of = |b: &Bandwidth| (b.level, b.cores);
    let mut rows: Vec<(u32, u32)> = machine.bandwidths.iter().map(of).collect();
    // Memory is level 0: it comes last.
    rows.sort_by_key(|(level, cores)| (level.wrapping_sub(1), *cores));
    rows.dedup();
    for row in rows {
        let place = if row.0 == 0 {
            "memory".to_owned()
        } else {
            format!("L{}", row.0)
        };
        let each = machine.bandwidths.iter().filter(|b| of(b) == row);
        let each: Vec<String> = each
            .map(|b| format!("{} {:.1}", b.name, b.bytes_per_second / 1e9))
            .collect();
        let _ = writeln!(
            text,
            "  {place:<7} {} core{}  {}",
            row.1,
            if row.1 == 1 { " " } else { "s" },
            each.join(", ")
        );
    }
    text
}

//! A replay as text and JSON.

use cere_format::package::CapturedFunction;
use cere_format::replay::{CacheLevel, SetAside, Verdict, Warmup};
use cere_replay::cross::Crossed;
use cere_replay::operand::Known;
use cere_replay::{Energy, Replay};
use cere_system::console::{color, print};
use std::collections::BTreeMap;

/// The quartiles' distance over the median.
fn spread(replay: &Replay) -> f64 {
    let cycles: Vec<f64> = replay.cycles.iter().map(|c| *c as f64).collect();
    cere_timing::stats::Spread::of(&cycles).map_or(0.0, |s| s.relative())
}

/// The warm-up as the command line spells it.
fn warmup(warmup: Warmup) -> &'static str {
    match warmup {
        Warmup::Cold => "cold",
        Warmup::Partial(CacheLevel::L2) => "cold, warm to l2",
        Warmup::Partial(CacheLevel::Llc) => "cold, warm to llc",
        Warmup::WorkingSet => "working-set",
        Warmup::PageTrace => "page-trace",
    }
}

/// `2 discarded: context switch`, or nothing.
fn set_aside(found: SetAside) -> String {
    let causes = [
        (found.faults, "page fault"),
        (found.switches, "context switch"),
        (found.migrations, "moved to another processor"),
        (found.stolen, "far above the others"),
    ];
    let total: u64 = causes.iter().map(|c| c.0).sum();
    let met: Vec<(u64, &str)> = causes.into_iter().filter(|c| c.0 > 0).collect();
    match &met[..] {
        [] => String::new(),
        [(_, cause)] => format!(", {total} discarded: {cause}"),
        several => {
            let each: Vec<String> = several.iter().map(|(n, c)| format!("{n} {c}")).collect();
            format!(", {total} discarded: {}", each.join(", "))
        }
    }
}

/// `1.234 ± 0.006 ms, median and 95 % interval of 37 runs, 2 discarded: context switch; min 1.229 ms`.
fn time(replay: &Replay) -> String {
    let runs = match replay.cycles.len() {
        1 => "1 run".to_owned(),
        n => format!("{n} runs"),
    };
    let discarded = set_aside(replay.set_aside);
    let min = print::time(replay.seconds_min);
    match replay.cycles.len() {
        0 | 1 => format!("{} ({runs}{discarded})", print::time(replay.seconds_median)),
        _ => format!(
            "{}, median and {:.0} % interval of {runs}{discarded}; min {min}",
            print::time_within(
                replay.seconds_median,
                replay.seconds_low,
                replay.seconds_high
            ),
            replay.confidence * 100.0,
        ),
    }
}

/// `median 1.234 J (98 % between 1.230 J and 1.241 J, 7 rounds), 45.2 W, energy-delay 3.3740e-2 J*s; package-0 with all that runs there`.
fn energy(energy: &Energy) -> String {
    let interval = match energy.rounds.len() {
        0 | 1 => String::new(),
        rounds => format!(
            " ({:.0} % between {} and {}, {rounds} rounds)",
            energy.confidence * 100.0,
            print::joules(energy.low),
            print::joules(energy.high)
        ),
    };
    format!(
        "median {}{interval}, {:.1} W, energy-delay {:.4e} J*s; {} with all that runs there",
        print::joules(energy.joules),
        energy.watts(),
        energy.joule_seconds(),
        energy.counters
    )
}

/// The replay as lines of text.
pub fn text(replay: &Replay) -> String {
    let mut text = format!("{}\n", replay.codelet);
    text.push_str(&format!(
        "  verdict  {}: {}\n",
        color::verdict(replay.verdict),
        replay.reason
    ));
    if let Some(crossed) = &replay.crossed {
        text.push_str(&self::crossed(crossed));
    }
    if replay.is_emulated() {
        text.push_str(&captured(replay.captured_code.as_deref().unwrap_or(&[])));
        for note in &replay.notes {
            text.push_str(&format!("  note     {note}\n"));
        }
        return text;
    }
    text.push_str(&format!("  time     {}\n", time(replay)));
    if let Some(energy) = &replay.energy {
        text.push_str(&format!("  energy   {}\n", self::energy(energy)));
    }
    let reach = replay.survival_ns.map_or_else(String::new, |time| {
        let time = print::time(time as f64 * 1e-9);
        format!(", as far as others on this machine leave it in the caches ({time})")
    });
    text.push_str(&format!("  warm-up  {}{reach}\n", warmup(replay.warmup)));
    for operand in &replay.operands {
        text.push_str(&format!(
            "  operand  {} {}, {} bytes ({})\n",
            operand.name,
            operand.state.name(),
            operand.bytes,
            operand.kind.name()
        ));
    }
    text.push_str(&match replay.in_vivo_seconds {
        Some(seconds) => format!(
            "  in vivo  {}, in vitro / in vivo {:.3}\n",
            print::time(seconds),
            replay.seconds_median / seconds
        ),
        None => "  in vivo  unknown\n".to_owned(),
    });
    let code = match replay.same_code.known() {
        Some(true) => "identical to the one in vivo",
        Some(false) => "other than in vivo",
        None => "not compared",
    };
    text.push_str(&format!("  code     {code}\n"));
    text.push_str(&captured(replay.captured_code.as_deref().unwrap_or(&[])));
    for note in &replay.notes {
        text.push_str(&format!("  note     {note}\n"));
    }
    text
}

/// Lines about a replay on another architecture.
fn crossed(crossed: &Crossed) -> String {
    let mut text = format!(
        "  target   {}, captured on {}",
        crossed.target, crossed.from
    );
    if let Some(emulator) = &crossed.emulator {
        text.push_str(&format!("; run by {emulator}: no times"));
    }
    text.push('\n');
    let contracted = crossed.contracted.zip(crossed.contracted_reason.as_deref());
    text.push_str(&match contracted {
        Some((verdict, why)) => format!(
            "  fused    with products and sums contracted as the target's compiler does: {}: {why}\n",
            color::verdict(verdict)
        ),
        None => "  fused    the target's compiler contracts nothing: the same code\n".to_owned(),
    });
    if contracted.is_some() && crossed.of_timed().is_none() && crossed.emulator.is_none() {
        text.push_str("  timed    the code with products and sums apart\n");
    }
    text
}

/// A line about the functions that flags do not change, or nothing.
fn captured(functions: &[CapturedFunction]) -> String {
    /// Maximum names shown for an image.
    const MOST: usize = 5;
    let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for function in functions {
        let whence = match function.other_image {
            true => format!("from {}", function.image),
            false => "built without the wrappers".to_owned(),
        };
        let name = match function.name.as_str() {
            "" => "code without symbols",
            name => name,
        };
        groups.entry(whence).or_default().push(name);
    }
    let groups: Vec<String> = groups
        .into_iter()
        .map(|(whence, names)| {
            let more = if names.len() > MOST { ", ..." } else { "" };
            let names = names[..names.len().min(MOST)].join(", ");
            format!("{names}{more} ({whence})")
        })
        .collect();
    match functions.len() {
        0 => String::new(),
        1 => format!(
            "  captured 1 function may have run as captured machine code, which flags do not change: {}\n",
            groups.join("; ")
        ),
        count => format!(
            "  captured {count} functions may have run as captured machine code, which flags do not change: {}\n",
            groups.join("; ")
        ),
    }
}

/// The replay for scripts.
pub fn json(replay: &Replay, flags: &str) -> serde_json::Value {
    let timed = !replay.is_emulated();
    serde_json::json!({
        "codelet": replay.codelet,
        "flags": flags,
        "verdict": replay.verdict,
        "reason": replay.reason,
        "crossed": replay.crossed,
        "seconds": timed.then(|| serde_json::json!({"min": replay.seconds_min, "median": replay.seconds_median,
            "low": replay.seconds_low, "high": replay.seconds_high})),
        "confidence": replay.confidence,
        "samples": replay.cycles.len(),
        "set_aside": replay.set_aside,
        "disturbed": replay.disturbed,
        "warmup": replay.warmup,
        "survival_seconds": replay.survival_ns.map(|time| time as f64 * 1e-9),
        "energy": replay.energy.as_ref().map(|energy| serde_json::json!({
            "joules": {"median": energy.joules, "low": energy.low, "high": energy.high},
            "confidence": energy.confidence,
            "seconds": energy.seconds,
            "watts": energy.watts(),
            "joule_seconds": energy.joule_seconds(),
            "rounds": energy.rounds,
            "counters": energy.counters,
        })),
        "operands": replay.operands,
        "batch": replay.batch,
        "notes": replay.notes,
        "spread": spread(replay),
        "cycles": replay.cycles,
        "in_vivo_seconds": replay.in_vivo_seconds,
        "ratio": replay.in_vivo_seconds.filter(|_| timed).map(|s| replay.seconds_median / s),
        "identical_code": replay.same_code.known(),
        "captured_code": replay.captured_code,
        "repeatable": replay.repeatable,
        "asked_more": replay.asked_more,
        "comparison": replay.comparison,
        "executable": replay.executable,
    })
}

/// The operands of a codelet as lines of text.
pub fn operands(codelet: &str, known: &[Known]) -> String {
    let row = |k: &Known| {
        let size = match k.bytes < k.size {
            true => format!("{} of {}", k.bytes, k.size),
            false => k.size.to_string(),
        };
        let kind = k.kind.name().to_owned();
        vec![k.name.clone(), kind, size, format!("{:#x}", k.address)]
    };
    let rows: Vec<Vec<String>> = known.iter().map(row).collect();
    let table = print::table(&["operand", "kind", "bytes", "address"], &rows);
    format!("{codelet}\n{table}Also: data (all other memory), code, 0xADDRESS, 0xADDRESS+BYTES\n")
}

/// A codelet that could not be replayed, for scripts.
pub fn failure(codelet: &str, flags: &str, error: &anyhow::Error) -> serde_json::Value {
    let code = cere_catalogue::of(error).map(|code| code.to_string());
    let error = print::error(error);
    serde_json::json!({"codelet": codelet, "flags": flags, "verdict": Verdict::Unchecked, "reason": error,
        "error": error, "code": code, "seconds": null, "in_vivo_seconds": null})
}

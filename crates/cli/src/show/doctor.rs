//! The findings of `cere doctor` as text and JSON.

use crate::health::machine::Machine;
use crate::health::noise::Noise;
use crate::health::{Findings, Item, State};
use cere_system::console::color::{self, Tone};
use cere_system::console::print;
use serde_json::{Value, json};

/// The findings for scripts.
pub fn json(findings: &Findings) -> Value {
    json!({
        "complete": !findings.is_lacking(),
        "kernel": findings.kernel,
        "tools": findings.tools,
        "room": findings.room,
        "machine": findings.machine,
        "noise": findings.noise.as_ref().map(|noise| json!({"measured": noise, "meaning": noise.meaning()})),
    })
}

/// The findings as text.
pub fn text(findings: &Findings) -> String {
    let mut text = String::new();
    for (heading, items) in [
        ("Kernel", &findings.kernel),
        ("Tools and parts", &findings.tools),
        ("Room", &findings.room),
    ] {
        text += &format!("{heading}\n{}\n", list(items));
    }
    text += &format!("Machine\n{}\n", machine(&findings.machine));
    text += &format!("Noise\n{}", noise(findings.noise.as_ref()));
    text += match findings.is_lacking() {
        true => "\nSomething that CERE needs is missing: see above.\n",
        false => "\nAll that CERE needs is here.\n",
    };
    text
}

fn list(items: &[Item]) -> String {
    let width = items.iter().map(|i| i.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for item in items {
        let (tone, state) = match item.state {
            State::Good => (Tone::Good, "ok     "),
            State::Limited => (Tone::Doubtful, "limited"),
            State::Missing => (Tone::Bad, "MISSING"),
        };
        let state = color::paint(tone, state);
        text += &format!("  {state}  {:<width$}  {}\n", item.name, item.found);
        if let Some(remedy) = &item.remedy {
            text += &format!("  {:<7}  {:<width$}  -> {remedy}\n", "", "");
        }
    }
    text
}

fn machine(machine: &Machine) -> String {
    let unknown = || "unknown".to_owned();
    let cores = machine.cores.map_or_else(unknown, |n| n.to_string());
    let allowed = machine.allowed.map(|n| format!(", {n} for this process"));
    let caches = machine.caches.iter().map(|c| {
        let kind = match c.kind.as_str() {
            "Data" => "d",
            "Instruction" => "i",
            _ => "",
        };
        format!(
            "L{}{kind} {} KiB (processors {})",
            c.level,
            c.bytes >> 10,
            c.shared
        )
    });
    let caches: Vec<String> = caches.collect();
    let lines = [
        (
            "processor",
            machine.processor.clone().unwrap_or_else(unknown),
        ),
        (
            "cores",
            format!(
                "{cores}, {} hardware threads{}",
                machine.threads,
                allowed.unwrap_or_default()
            ),
        ),
        (
            "caches",
            match caches.is_empty() {
                true => unknown(),
                false => caches.join(", "),
            },
        ),
        ("governor", machine.governor.clone().unwrap_or_else(unknown)),
        (
            "turbo",
            machine
                .boost
                .map_or_else(unknown, |on| if on { "on" } else { "off" }.into()),
        ),
        (
            "virtual machine",
            match &machine.hypervisor {
                Some(whose) => format!("yes ({whose}): other tenants' load is part of the noise"),
                None => "no".into(),
            },
        ),
    ];
    lines
        .map(|(name, value)| format!("  {name:<16} {value}\n"))
        .concat()
}

fn noise(noise: Option<&Noise>) -> String {
    let Some(noise) = noise else {
        return "  could not be measured: too few timings in two seconds; the machine is overloaded\n".into();
    };
    let percent = |share: f64| format!("{:+.2} %", 100.0 * share);
    format!(
        "  one kernel of {}, {} times as A and as B in turn\n\
         \x20 spread           {:.2} % (quartiles over median)\n\
         \x20 B against A      {}, 95 % interval {} to {}\n\
         \x20 {}\n",
        print::time(noise.median),
        noise.timings,
        100.0 * noise.spread,
        percent(noise.difference),
        percent(noise.low),
        percent(noise.high),
        noise.meaning()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_stands_out() {
        let item = Item {
            name: "clang-22",
            state: State::Missing,
            found: "is not in PATH".into(),
            remedy: Some("install it".into()),
            command: None,
        };
        let findings = Findings {
            kernel: Vec::new(),
            tools: vec![item],
            room: Vec::new(),
            machine: Machine::default(),
            noise: None,
        };
        let text = text(&findings);
        assert!(
            text.contains("  MISSING  clang-22  is not in PATH\n"),
            "{text}"
        );
        assert!(text.contains("-> install it"), "{text}");
        assert!(text.ends_with("is missing: see above.\n"), "{text}");
        assert_eq!(json(&findings)["complete"], false);
        assert_eq!(json(&findings)["tools"][0]["state"], "missing");
    }
}

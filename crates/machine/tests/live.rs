//! A short measurement of this machine, whatever else it does.

use cere_format::machine::{Machine, USABLE};
use cere_machine::whole;
use std::sync::OnceLock;

fn machine() -> &'static Machine {
    static MEASURED: OnceLock<Machine> = OnceLock::new();
    MEASURED.get_or_init(|| whole::measure(true, whole::SECONDS.0, &|_| ()).expect("a measurement"))
}

/// A value that claims to be sure must be right: the line and the first cache are the same under every hypervisor.
#[test]
fn what_is_sure_is_what_the_processor_says() {
    let machine = machine();
    let told = cere_format::caches::of(0);
    let told = told.first();
    if machine.confidence("line_bytes") >= USABLE
        && let Some(told) = told
    {
        assert_eq!(machine.line_bytes, Some(u64::from(told.line)));
    }
    let first = machine.caches.first().expect("a first cache");
    if first.confidence >= 0.9
        && let Some(told) = told
    {
        assert_eq!(first.size_bytes, told.size, "{:?}", machine.found);
        assert_eq!(
            first.ways.unwrap_or(told.ways),
            told.ways,
            "{:?}",
            machine.found
        );
    }
    for pair in machine.caches.windows(2) {
        let sure = pair.iter().all(|cache| cache.confidence >= USABLE);
        assert!(pair[0].size_bytes < pair[1].size_bytes, "{pair:?}");
        assert!(!sure || pair[0].latency_ns < pair[1].latency_ns, "{pair:?}");
    }
}

#[test]
fn every_value_says_how_it_was_found() {
    let machine = machine();
    let said = |what: &str| {
        machine
            .found
            .iter()
            .any(|f| f.what == what && !f.how.is_empty())
    };
    for what in [
        "line_bytes",
        "page_bytes",
        "memory.latency_ns",
        "cores.float_contexts",
        "cores.time_slot_seconds",
    ] {
        assert!(said(what), "{what}: {:?}", machine.found);
    }
    for at in 0..machine.caches.len() {
        assert!(said(&format!("caches[{at}].size_bytes")) && said(&format!("caches[{at}].ways")));
    }
    let sure = |confidence: f64| (0.0..=1.0).contains(&confidence);
    assert!(
        machine.found.iter().all(|f| sure(f.confidence)),
        "{:?}",
        machine.found
    );
    // No value is infinite or none: a reader gets back what was written.
    let text = serde_json::to_string(machine).expect("JSON");
    assert_eq!(
        serde_json::from_str::<Machine>(&text).expect("a machine"),
        *machine
    );
}

/// The whole takes about the time it was given: twice that on a machine that others use.
#[test]
fn a_budget_too_short_leaves_values_out() {
    let machine = whole::measure(true, whole::LEAST, &|_| ()).expect("a measurement");
    assert!(machine.line_bytes.is_some() && machine.add_ns.is_some());
    assert!(
        machine
            .found
            .iter()
            .all(|f| f.confidence > 0.0 || !f.how.is_empty())
    );
}

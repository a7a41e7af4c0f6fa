//! Chrome's trace events: invocations of the first thread with their times, as far as the profile keeps them.

use super::stacks::program;
use cere_format::profile::{Profile, RegionProfile};
use cere_format::untrusted::visible;
use serde_json::{Value, json};

/// An invocation in cycles since the program's start.
pub struct Event<'a> {
    pub region: &'a RegionProfile,
    pub invocation: u64,
    pub start: u64,
    pub end: u64,
}

/// The kept invocations by their start, callers first. The time in one is without the probes in it: what it calls never ends after it.
pub fn events(profile: &Profile) -> Vec<Event<'_>> {
    let mut events: Vec<Event> = profile.regions.iter().flat_map(of_region).collect();
    events.sort_by_key(|event| (event.start, std::cmp::Reverse(event.end)));
    let mut open: Vec<u64> = Vec::new();
    for event in &mut events {
        while open.last().is_some_and(|end| *end <= event.start) {
            open.pop();
        }
        if let Some(end) = open.last() {
            event.end = event.end.min(*end);
        }
        open.push(event.end);
    }
    events
}

fn of_region(region: &RegionProfile) -> impl Iterator<Item = Event<'_>> {
    let first = 1..=region.trace.first.len() as u64;
    let later = region
        .trace
        .sampled
        .iter()
        .map(|(invocation, _)| *invocation);
    first.chain(later).filter_map(move |invocation| {
        let start = region.trace.start(invocation)?;
        let cycles = region.trace.get(invocation)?;
        Some(Event {
            region,
            invocation,
            start,
            end: start.saturating_add(cycles),
        })
    })
}

/// The file. Times are microseconds.
pub fn text(profile: &Profile) -> String {
    let microseconds = |cycles: u64| cycles as f64 / profile.tsc_hz * 1e6;
    let name = |what: &str, name: &str| json!({"ph": "M", "name": what, "pid": 1, "tid": 1, "args": {"name": name}});
    let mut all: Vec<Value> = vec![
        name("process_name", &program(profile)),
        name("thread_name", "first thread"),
    ];
    let events = events(profile);
    let kept = events.len() as u64;
    for event in events {
        all.push(json!({
            "ph": "X", "cat": "region", "name": visible(&event.region.name), "pid": 1, "tid": 1,
            "ts": microseconds(event.start), "dur": microseconds(event.end - event.start),
            "args": {"invocation": event.invocation},
        }));
    }
    let invocations: u64 = profile.regions.iter().map(|r| r.invocations).sum();
    let file = json!({
        "traceEvents": all,
        "displayTimeUnit": "ms",
        "otherData": {
            "tool": concat!("cere ", env!("CARGO_PKG_VERSION")),
            "command": shell_words::join(&profile.command),
            "invocations": invocations.to_string(),
            "kept": kept.to_string(),
        },
    });
    format!("{file}\n")
}

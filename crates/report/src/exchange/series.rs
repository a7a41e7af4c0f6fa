//! Series: Prometheus' text format, and the kept invocations as CSV.

use super::chrome::events;
use super::stacks::program;
use cere_format::profile::{OverThreads, Profile};
use cere_format::untrusted::visible;

/// Name, help and value of a gauge of a region.
type Gauge = (&'static str, &'static str, fn(&OverThreads) -> f64);

/// The run and its regions over all threads as gauges.
pub fn prometheus(profile: &Profile) -> String {
    let program = quoted(&program(profile));
    let rank = profile.process.rank.as_deref();
    let rank = rank.map_or(String::new(), |rank| format!(",rank=\"{}\"", quoted(rank)));
    let mut text = String::new();
    let mut run = |name: &str, help: &str, value: f64| {
        text += &format!("# HELP cere_{name} {help}\n# TYPE cere_{name} gauge\n");
        text += &format!("cere_{name}{{program=\"{program}\"{rank}}} {value}\n");
    };
    run("run_seconds", "Run time of the program.", profile.seconds);
    run(
        "coverage_ratio",
        "Share of the run that the first thread spent inside regions.",
        profile.coverage,
    );
    run(
        "mpi_seconds",
        "Seconds of the first thread in calls of MPI.",
        profile.mpi_seconds,
    );
    let gauges: [Gauge; 5] = [
        (
            "region_self_seconds",
            "Seconds in a region, regions that it calls excluded, over all threads.",
            |r| r.self_seconds,
        ),
        (
            "region_inclusive_seconds",
            "Seconds in a region and in what it calls, over all threads.",
            |r| r.inclusive_seconds,
        ),
        (
            "region_waiting_seconds",
            "Part of the self time off the processor.",
            |r| r.waiting_seconds,
        ),
        (
            "region_mpi_seconds",
            "Seconds in calls of MPI from a region.",
            |r| r.mpi_seconds,
        ),
        (
            "region_invocations",
            "Times that a region was entered.",
            |r| r.invocations as f64,
        ),
    ];
    for (name, help, value) in gauges {
        text += &format!("# HELP cere_{name} {help}\n# TYPE cere_{name} gauge\n");
        for region in &profile.over_threads {
            let labels = format!(
                "program=\"{program}\",region=\"{}\"{rank}",
                quoted(&region.name)
            );
            text += &format!("cere_{name}{{{labels}}} {}\n", value(region));
        }
    }
    text
}

/// A value of a label.
fn quoted(text: &str) -> String {
    visible(text)
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// The first thread's kept invocations by their start; seconds, without the probes inside.
pub fn csv(profile: &Profile) -> String {
    let seconds = |cycles: u64| format!("{:.9}", cycles as f64 / profile.tsc_hz);
    let rows = events(profile).into_iter().map(|event| {
        let taken = event.region.trace.get(event.invocation).unwrap_or_default();
        vec![
            event.region.name.clone(),
            event.invocation.to_string(),
            seconds(event.start),
            seconds(taken),
        ]
    });
    let heading = ["region", "invocation", "start_seconds", "seconds"];
    cere_system::console::csv::text(&heading, rows)
}

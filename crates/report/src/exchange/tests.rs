//! What the formats say of one profile: nesting, a recursion, another thread, names with everything.

use super::*;
use serde_json::{Value, json};

/// 2 s: `outer` calls `inner` from two places; another thread enters `inner` too.
fn profile() -> Profile {
    let region = |name: &str, index: u32, own: f64, starts: &[u64], cycles: &[u64]| {
        json!({"key": {"unit": "u", "index": index}, "name": name, "invocations": starts.len(), "inclusive_seconds": own,
            "self_seconds": own, "share": own / 2.0, "cycles_min": 1, "cycles_mean": 1.0, "cycles_max": 1,
            "trace": {"first": cycles, "stride": 1, "sampled": [], "first_starts": starts, "sampled_starts": []}})
    };
    let node = |region: Option<usize>, parent: Option<usize>, own: f64, all: f64| json!({"region": region, "parent": parent, "invocations": 2, "inclusive_seconds": all, "self_seconds": own});
    let over = |name: &str, index: u32| {
        json!({"key": {"unit": "u", "index": index}, "name": name, "threads": 2, "invocations": 3, "self_seconds": 1.5,
            "inclusive_seconds": 1.5, "waiting_seconds": 0.0, "mpi_seconds": 0.0, "first_share": 0.5})
    };
    let value = json!({
        "version": 3, "command": ["/bin/my app", "x"], "directory": "/d", "seconds": 2.0, "coverage": 0.9, "tsc_hz": 1e9,
        "probe_inside": 0.0, "probe_outside": 0.0,
        "regions": [region("outer@a.c:3", 0, 0.5, &[1000], &[900]), region("in;ner\"<\u{202e}>@b.c:7#2", 1, 1.0, &[1100, 1800], &[300, 300])],
        "tree": [node(None, None, 0.5, 2.0), node(Some(0), Some(0), 0.5, 1.0), node(Some(1), Some(1), 0.5, 0.5), node(Some(1), Some(0), 0.5, 0.5)],
        "over_threads": [over("in;ner\"<\u{202e}>@b.c:7#2", 1), over("outer@a.c:3", 0)],
        "threads": [{"number": 0, "users": 1, "processor_seconds": 2.0, "mpi_seconds": 0.0, "regions": []},
            {"number": 4, "users": 1, "processor_seconds": 1.0, "mpi_seconds": 0.0, "regions": [{"region": 0, "caller": 0, "invocations": 1,
                "self_seconds": 0.25, "inclusive_seconds": 0.25, "waiting_seconds": 0.0, "cycles_min": 1, "cycles_mean": 1.0, "cycles_max": 1}]}],
    });
    serde_json::from_value(value).expect("a profile")
}

fn parsed(format: Format) -> Value {
    serde_json::from_str(&text(&profile(), format)).expect("JSON")
}

const INNER: &str = "in;ner\"<\\u{202e}>@b.c:7#2";

#[test]
fn stacks_add_up() {
    let folded = text(&profile(), Format::Folded);
    let lines: Vec<(&str, u64)> = folded
        .lines()
        .map(|line| line.rsplit_once(' ').expect("a count"))
        .map(|(stack, count)| (stack, count.parse().expect("a number")))
        .collect();
    let sum: u64 = lines
        .iter()
        .filter(|(stack, _)| stack.starts_with("first"))
        .map(|(_, n)| n)
        .sum();
    assert_eq!(sum, 2_000_000, "{folded}");
    let inner = INNER.replace(';', ":");
    let chains = [
        format!("first thread;my app;outer@a.c:3;{inner}"),
        format!("thread 4;my app;{inner}"),
    ];
    assert_eq!(
        chains.map(|chain| lines.iter().find(|(s, _)| *s == chain).map(|(_, n)| *n)),
        [Some(500_000), Some(250_000)],
        "{folded}"
    );
    let script = text(&profile(), Format::Perf);
    let samples = script
        .lines()
        .filter(|line| line.ends_with("task-clock:"))
        .count();
    // 2 s in the first thread, 0.25 in the other one.
    assert_eq!(samples, 11_250);
    assert!(script.starts_with(
        "my_app 1/1 [000] 0.000000: 200000 task-clock:\n\t               1 my app (my_app)\n\n"
    ));
}

#[test]
fn trees_and_events_nest() {
    let file = parsed(Format::Speedscope);
    let frames = &file["shared"]["frames"];
    assert_eq!(frames[1], json!({"name": INNER, "file": "b.c", "line": 7}));
    assert_eq!(file["profiles"][0]["endValue"], 2.0);
    let trees = parsed(Format::Hatchet);
    let outer = &trees[0]["children"][1];
    assert_eq!(
        (&outer["frame"]["name"], &outer["metrics"]["time (inc)"]),
        (&json!("outer@a.c:3"), &json!(1.0)),
        "{trees}"
    );
    assert_eq!(outer["children"][0]["metrics"]["time"], 0.5);
    assert_eq!(trees[1]["frame"]["name"], "my app, thread 4");
    let trace = parsed(Format::Chrome);
    let events = trace["traceEvents"].as_array().expect("events");
    let nanoseconds = |of: &Value| (of.as_f64().expect("a time") * 1e3).round();
    let spans = events[2..].iter();
    let spans: Vec<(f64, f64)> = spans
        .map(|event| (nanoseconds(&event["ts"]), nanoseconds(&event["dur"])))
        .collect();
    // The second inner one, cut where its caller ends.
    assert_eq!(
        spans,
        [(1000.0, 900.0), (1100.0, 300.0), (1800.0, 100.0)],
        "{trace}"
    );
}

#[test]
fn series_have_a_line_each() {
    let csv = text(&profile(), Format::Series);
    assert_eq!(csv.lines().count(), 4, "{csv}");
    assert!(
        csv.contains("outer@a.c:3,1,0.000001000,0.000000900"),
        "{csv}"
    );
    let gauges = text(&profile(), Format::Prometheus);
    assert!(
        gauges.contains("cere_run_seconds{program=\"my app\"} 2\n"),
        "{gauges}"
    );
    assert!(
        gauges.contains("region=\"in;ner\\\"<\\\\u{202e}>@b.c:7#2\"} 1.5\n"),
        "{gauges}"
    );
}

#[test]
fn deep_recursion_is_taken_together() {
    let mut profile = profile();
    let leaf = profile.tree[2].clone();
    for _ in 0..50_000 {
        let mut node = leaf.clone();
        node.parent = Some(profile.tree.len() - 1);
        profile.tree.push(node);
    }
    profile.seconds += 25_000.0;
    for format in Format::ALL {
        let text = text(&profile, format);
        assert!(text.len() < 100 << 20);
        if matches!(format, Format::Hatchet | Format::Folded) {
            assert!(text.contains("(deeper calls)"));
        }
    }
}

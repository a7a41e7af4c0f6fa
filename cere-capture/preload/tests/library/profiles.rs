//! Profiles of real programs.

use crate::support::{Profiled, Program};
use cere_format::capture::RunMode;
use cere_format::profile::is_sampled;
use cere_format::profile_raw::{
    PASSAGE_NANOSECONDS, RAW_DEPTH, RawHeader, RawTrace, TRACE_FIRST, TRACE_SAMPLED, TRACES_OFFSET,
};
use std::mem::offset_of;

#[test]
fn a_program_with_functions_named_like_system_calls() {
    let profile = Program::new("names.c", &["-O2"]).profile(&[]);
    assert_eq!(profile.region("work").invocations, 5);
}

#[test]
fn the_regions_that_are_asked_for_alone() {
    let program = Program::new("values.c", &["-O2"]);
    let all = program.profile(&[]);
    let (inner, outer) = (all.region("inner"), all.region("outer"));
    let mode = RunMode::Time(vec![inner.key.clone()]);
    let found = program.timed(&[], mode).profile;
    assert_eq!(found.regions.len(), 1);
    assert_eq!(found.regions[0].key, inner.key);
    assert_eq!(found.regions[0].invocations, inner.invocations);
    assert!(outer.invocations > 0);
}

/// Times that `interrupt.c` says the loops of its handler ran, beside the profile.
fn interrupted(how: &str) -> (Profiled, u64) {
    let program = Program::new("interrupt.c", &["-O2"]);
    let counts = program.path().with_extension("counts");
    let profile = program.profile(&[how, counts.to_str().unwrap()]);
    let count = std::fs::read_to_string(counts).unwrap();
    (profile, count.trim().parse().unwrap())
}

#[test]
fn handlers_that_run_regions_while_a_probe_is_at_work() {
    for how in ["plain", "stack"] {
        let (profile, count) = interrupted(how);
        let lost = profile.word(offset_of!(RawHeader, interrupted));
        assert!(lost > 0, "no signal came while the hook was at work");
        assert_eq!(profile.region("handle").invocations + lost, count, "{how}");
        assert_eq!(profile.region("work").invocations, 2_000_000, "{how}");
        assert_eq!(profile.word(offset_of!(RawHeader, abandoned)), 0, "{how}");
    }
}

#[test]
fn handlers_that_leave_a_probe_by_longjmp() {
    let (profile, count) = interrupted("jump");
    let lost = profile.word(offset_of!(RawHeader, interrupted));
    assert_eq!(profile.region("handle").invocations + lost, count);
    // Everything is counted again after the last of them.
    assert_eq!(profile.region("after").invocations, 1000);
    let mut regions = profile.profile.regions.iter();
    let after = regions.position(|r| r.name == "after");
    let nodes = profile.profile.tree.iter().filter(|n| n.region == after);
    assert_eq!(nodes.map(|n| n.invocations).collect::<Vec<_>>(), [1000]);
}

#[test]
fn recursion_deeper_than_the_table() {
    let program = Program::new("deep.c", &["-O2"]);
    let deep = RAW_DEPTH as u64;
    for (calls, booked) in [(5000, 5000), (deep + 100, deep)] {
        let profile = program.profile(&[&calls.to_string()]);
        assert_eq!(profile.region("descend").invocations, booked);
        let lost = profile.word(offset_of!(RawHeader, depth_lost));
        assert_eq!(lost, calls - booked);
        assert_eq!(profile.word(offset_of!(RawHeader, regions_lost)), 0);
    }
}

#[test]
fn traces_longer_than_the_table() {
    let (steps, slow) = (200_000, 20);
    let program = Program::new("steps.c", &["-O2"]);
    let profile = program.profile(&[&steps.to_string(), &slow.to_string()]);
    let region = profile.region("step");
    assert_eq!(region.invocations, steps);
    let trace = &region.trace;
    assert_eq!(trace.first.len(), TRACE_FIRST);
    let starts = [&trace.first_starts[..], &trace.sampled_starts].concat();
    assert_eq!(starts.len(), TRACE_FIRST + trace.sampled.len());
    assert!(starts[0] > 0 && starts.windows(2).all(|w| w[0] < w[1]));
    let later = TRACE_FIRST as u64 + 1..=steps;
    let chosen: Vec<u64> = later.filter(|i| is_sampled(*i, trace.stride)).collect();
    let kept: Vec<u64> = trace.sampled.iter().map(|s| s.0).collect();
    assert_eq!(kept, chosen);
    assert!(kept.len() <= TRACE_SAMPLED);
    assert_eq!(trace.start(kept[7]), Some(trace.sampled_starts[7]));
    let stands_for = trace.stride * kept.len() as u64 + TRACE_FIRST as u64;
    assert!((stands_for as f64 / steps as f64 - 1.0).abs() < 0.1);
    // Every fourth invocation is alike: a stride that is a power of two would meet one kind only.
    for kind in 0..4 {
        assert!(kept.iter().filter(|i| *i % 4 == kind).count() > kept.len() / 5);
    }
}

#[test]
fn the_timeline_holds_what_is_far_apart() {
    let program = Program::new("steps.c", &["-O2"]);
    let profile = program.profile(&["200000", "20"]).profile;
    let of = |name: &str| profile.regions.iter().position(|r| r.name == name).unwrap();
    let timeline = &profile.timeline;
    let spacing = (profile.tsc_hz * PASSAGE_NANOSECONDS as f64 / 1e9 * 0.9) as u64;
    for pair in timeline.windows(2) {
        assert!(pair[1].start > pair[0].start + spacing);
    }
    let passed = |name| {
        let region = of(name);
        let own = timeline.iter().filter(move |p| p.region == region);
        own.map(|p| p.invocation).collect::<Vec<u64>>()
    };
    // The first follows at once on the loop that calls it.
    let slow = passed("slow");
    let all: Vec<u64> = (1..=20).collect();
    assert!(slow == all || slow == all[1..], "{slow:?}");
    assert!(passed("step").windows(2).all(|w| w[0] < w[1]));
    for passage in timeline {
        let trace = &profile.regions[passage.region].trace;
        if let Some(start) = trace.start(passage.invocation) {
            // The clock is read once more after a passage was noted.
            assert!(start >= passage.start, "{passage:?}");
        }
    }
}

#[test]
fn a_full_disk_costs_times_and_not_the_program() {
    let program = Program::new("full.c", &["-O2"]);
    // The regions are, in the order of their traces: the loop of cut, a loop of main, often, the other loop of main, seldom.
    let often = TRACES_OFFSET + 2 * size_of::<RawTrace>();
    let within = often + offset_of!(RawTrace, first_starts) + 1024 * 8;
    let behind = (often + size_of::<RawTrace>()).next_multiple_of(4096);
    for (size, first) in [(within, 512..=1024), (behind, 4096..=4096)] {
        let profile = program.profile(&[&size.to_string()]);
        let (often, seldom) = (profile.region("often"), profile.region("seldom"));
        assert_eq!((often.invocations, seldom.invocations), (5000, 10));
        assert!(often.cycles_min > 0 && seldom.cycles_min > 0);
        let kept = &often.trace.first;
        assert!(first.contains(&kept.len()), "{}", kept.len());
        assert!(kept.iter().all(|cycles| *cycles > 0));
        assert_eq!(often.trace.first_starts.len(), kept.len());
        assert_eq!(seldom.trace.first.len(), 0);
        assert_eq!(profile.word(offset_of!(RawHeader, full)), 1);
        let later = often.trace.sampled.len() as u64;
        let lost = 5000 - kept.len() as u64 - later + 1 + 10;
        assert_eq!(profile.word(offset_of!(RawHeader, times_lost)), lost);
    }
}

#[test]
fn processes_that_libc_knows_nothing_of() {
    let program = Program::new("raw_fork.c", &["-O2"]);
    let profile = program.profile(&[]);
    assert_eq!(profile.region("work").invocations, 4);
    let run = program.capture(&[("work", &[4, 5])], &[]);
    assert_eq!(run.captures.len(), 1);
    assert_eq!(run.get("work", 4).raw.refused, None);
    assert_eq!(run.counts[0]["invocations"], 4);
}

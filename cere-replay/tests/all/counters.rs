//! Counters of the kernel around measured invocations: events of software stand for those of hardware, which few virtual
//! machines have. They are opened, switched and read alike.

use crate::common;

use cere_format::capture::{PAGE_ABSENT, PAGE_TOUCHED, PAGE_WRITTEN};
use cere_format::replay::{Repetitions, Verdict};
use cere_replay::counters::{Event, Reading};
use cere_replay::{ReplayError, measure};
use common::*;
use perf_event::events::Software;

fn faults() -> Event {
    Event::new("page_faults", Software::PAGE_FAULTS)
}

fn clock() -> Event {
    Event::new("task_clock", Software::TASK_CLOCK)
}

/// A region that writes `FRESH` pages that were not in memory, and computes for a while.
const SOURCE: &str = r#"
extern "C" { extern long table[512]; long helper(long);
void invoke(void *) __asm__("cere.u0.cere.invoke.0");
void invoke(void *) {
  for (long i = 0; i < FRESH; i++) *(volatile long *)(0x555555560000 + 4096 * i) = i;
  for (volatile long i = 0; i < 1000000; i = i + 1) ;
  table[0] = 7; } }
"#;
const HEAP: u64 = 0x5555_5556_0000;

/// Makes the package in which the region finds `fresh` absent pages.
fn fresh(at: &std::path::Path, fresh: u64, result: u64) {
    let mut manifest = manifest();
    let end = HEAP + 4096 * fresh;
    manifest.mappings.push(mapping(HEAP, end, "rw-p", "[heap]"));
    manifest.mappings.sort_by_key(|m| m.start);
    let mut pages = sum_pages(result);
    pages.extend((0..fresh).map(|i| Page {
        address: HEAP + 4096 * i,
        flags: PAGE_TOUCHED | PAGE_WRITTEN | PAGE_ABSENT,
        entry: Vec::new(),
        exit: words(&[i]),
    }));
    pages.sort_by_key(|p| p.address);
    manifest.pages = pages.len() as u64;
    let source = SOURCE.replace("FRESH", &fresh.to_string());
    package(at, &manifest, &source, &pages);
}

#[test]
fn page_faults_of_the_region_alone_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(directory.path());
    for (number, times) in [(1, 1), (40, 5)] {
        let at = directory.path().join(format!("p{number}"));
        fresh(&at, number, 7);
        options.settings.repetitions = Repetitions::exactly(times);
        // Two sets: the faults of the first and of the last event are of different invocations.
        let events = [faults(), clock(), clock(), faults()];
        let (replay, measured) = measure(&at, &events, &options).unwrap();
        assert_eq!(replay.verdict, Verdict::Exact, "{}", replay.reason);
        assert_eq!((measured.invocations, measured.readings.len()), (times, 4));
        for of in [measured.readings[0], measured.readings[3]] {
            assert_eq!(of.region.value, number * u64::from(times), "{measured:?}");
            assert_eq!(of.nothing.value, 0, "{measured:?}");
        }
        for of in &measured.readings {
            for Reading {
                enabled, running, ..
            } in [of.region, of.nothing]
            {
                assert!(enabled > 0 && enabled == running, "{measured:?}");
            }
        }
        // The clock stands still while the state is put back, and hardly moves where nothing runs.
        for of in &measured.readings[1..3] {
            assert!(of.region.value <= of.region.enabled, "{measured:?}");
            assert!(of.region.value > 10 * of.nothing.value, "{measured:?}");
        }
    }
}

#[test]
fn the_time_is_bounded_and_a_wrong_result_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(directory.path());
    let at = directory.path().join("p");
    fresh(&at, 2, 8);
    options.settings.repetitions = Repetitions {
        seconds: 0.0,
        ..Repetitions::exactly(1000)
    };
    let (replay, measured) = measure(&at, &[faults()], &options).unwrap();
    assert_eq!(replay.verdict, Verdict::Different, "{}", replay.reason);
    assert_eq!(
        (measured.invocations, measured.readings[0].region.value),
        (1, 2)
    );
}

#[test]
fn a_region_that_closes_the_counters_fails() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let at = directory.path().join("p");
    let source = SUM
        .replace("long helper(long);", "int close(int);")
        .replace("table[0] +=", "close(i + 2), table[0] +=");
    package(&at, &manifest(), &source, &sum_pages(9900));
    let Err(ReplayError::Run { message, .. }) = measure(&at, &[faults()], &options) else {
        panic!("it ran");
    };
    assert!(
        message.contains("refuses to switch the hardware counters"),
        "{message}"
    );
}

#[test]
fn an_event_that_the_kernel_does_not_know_is_not_started() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let at = directory.path().join("p");
    package(&at, &manifest(), SUM, &sum_pages(9900));
    let unknown = Event::new("unknown", Software(1 << 20));
    assert!(unknown.probe().is_err());
    let error = measure(&at, &[unknown], &options).unwrap_err();
    assert!(matches!(error, ReplayError::Counters { .. }), "{error}");
}

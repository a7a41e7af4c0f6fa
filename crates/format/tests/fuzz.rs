//! Raw profiles and JSON records, changed.

use cere_format::build::Unit;
use cere_format::package::Manifest;
use cere_format::profile::Profile;
use cere_format::profile_raw::*;
use cere_format::replay::ReplayOutcome;
use cere_format::untrusted;
use cere_testing::{Counting, campaign, change};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::mem::offset_of;
use std::os::unix::fs::FileExt;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The words of a structure, zero but for these.
fn words<T>(values: &[(usize, u64)]) -> Vec<u8> {
    let mut bytes = vec![0; size_of::<T>()];
    for (at, value) in values {
        bytes[*at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    bytes
}

fn header() -> Vec<u8> {
    words::<RawHeader>(&[
        (0, RAW_MAGIC),
        (8, u64::from(RAW_VERSION) | 7 << 32),
        (offset_of!(RawHeader, start_cycles), 1000),
        (offset_of!(RawHeader, start_nanoseconds), 1_000_000),
        (offset_of!(RawHeader, end_cycles), 900_000_000),
        (offset_of!(RawHeader, end_nanoseconds), 301_000_000),
        (offset_of!(RawHeader, tsc_hz), 3e9f64.to_bits()),
        (offset_of!(RawHeader, probe_inside), 20f64.to_bits()),
        (offset_of!(RawHeader, probe_outside), 20f64.to_bits()),
        (offset_of!(RawHeader, regions), 2),
        (offset_of!(RawHeader, nodes), 3),
        (offset_of!(RawHeader, threads), 2),
        (offset_of!(RawHeader, passages), 2),
        (offset_of!(RawHeader, spacing), 600_000),
    ])
}

/// The state of a thread that has so many active regions.
fn thread(depth: u64) -> Vec<u8> {
    words::<RawThread>(&[
        (0, u64::from(THREAD_RUNS)),
        (offset_of!(RawThread, users), 1),
        (offset_of!(RawThread, pairs), 10),
        (offset_of!(RawThread, depth), depth),
        (offset_of!(RawThread, last_cycles), 900_000_000),
        (offset_of!(RawThread, times_room), 40),
    ])
}

#[test]
fn raw_profiles() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("profile.1.0");
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .unwrap();
    file.set_len(RAW_SIZE as u64).unwrap();
    let parts = |random: Option<&mut cere_testing::Random>| {
        let region = |n: u8| [vec![b'a' + n; 32], vec![n, 0, 0, 0, 0, 0, 0, 0]].concat();
        let other = THREADS_OFFSET + THREAD_SIZE;
        let times = vec![5; 2 * size_of::<RawTimes>()];
        let mut parts = [
            (0, header(), 8),
            (REGIONS_OFFSET, [region(0), region(1)].concat(), 8),
            (THREADS_OFFSET, thread(0), 8),
            (other, thread(2), 8),
            (THREADS_OFFSET + TIMES_OFFSET, times.clone(), 8),
            (other + TIMES_OFFSET, times.clone(), 8),
            (
                other + THREAD_ACTIVE_OFFSET,
                vec![0; 2 * size_of::<RawActive>()],
                8,
            ),
            (NODES_OFFSET, vec![1; 3 * size_of::<RawNode>()], 8),
            (PASSAGES_OFFSET, vec![1; 2 * size_of::<RawPassage>()], 8),
            (TRACES_OFFSET, vec![0; 64], 8),
        ];
        if let Some(random) = random {
            for _ in 0..=random.below(4) {
                let at = random.below(parts.len());
                let before = parts[at].1.len();
                change::records(&mut parts[at].1, parts[at].2, random);
                parts[at].1.resize(before, 0);
            }
        }
        for (at, bytes, _) in parts {
            file.write_all_at(&bytes, at as u64).unwrap();
        }
    };
    let read = || read_raw(&path, Vec::new(), "/".into(), &mut |key| key.unit.clone());
    parts(None);
    read().unwrap();
    campaign("raw profiles", 300, |random| {
        let cut = random.once_in(20);
        file.set_len(if cut {
            random.number(4096) % RAW_SIZE as u64
        } else {
            RAW_SIZE as u64
        })
        .unwrap();
        if !cut {
            parts(Some(random));
        }
        read().is_ok()
    });
}

/// Self times whose sum overflows once came to nothing.
#[test]
fn a_sum_does_not_overflow() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("profile.1.0");
    let file = std::fs::File::create(&path).unwrap();
    file.set_len(RAW_SIZE as u64).unwrap();
    file.write_all_at(&header(), 0).unwrap();
    file.write_all_at(&thread(0), THREADS_OFFSET as u64)
        .unwrap();
    for slot in 0..2 {
        let at = THREADS_OFFSET + TIMES_OFFSET + slot * size_of::<RawTimes>();
        let half = [
            (offset_of!(RawTimes, own), 1u64 << 63),
            (offset_of!(RawTimes, invocations), 1),
        ];
        file.write_all_at(&words::<RawTimes>(&half), at as u64)
            .unwrap();
    }
    let name = &mut |_: &_| String::new();
    let profile = read_raw(&path, Vec::new(), "/".into(), name).unwrap();
    assert_eq!(profile.coverage, 1.0);
}

fn accepts<T: DeserializeOwned>(text: &[u8]) -> bool {
    untrusted::json::<T>("it", text).is_ok()
}

#[test]
fn json_records() {
    let unit = json!({
        "version": 1, "id": "0123456789abcdef0123456789abcdef", "source": "/a.c", "language": "c", "module": "a",
        "command": {"version": 1, "store": "/s", "directory": "/", "compiler": "clang-22", "arguments": ["a.c"],
            "codegen": ["-O2"], "output": "/a.o", "debug": false, "skip": []},
        "regions": [], "has_constructors": false,
    });
    let outcome = json!({
        "version": 3, "cycles": [1, 2, 3], "set_aside": {"faults": 0, "switches": 0, "migrations": 0, "stolen": 0},
        "disturbed": false, "batch": 1, "clock_cost": 44, "notes": ["n"], "tsc_hz": 1e9,
        "comparison": {"compared": 8, "changed": 8, "masked": [{"reason": "dead stack", "bytes": 8, "changed": 0}], "different_words": 0, "floating_words": 0,
            "largest_relative_error": 0.0, "largest_float_error": 0.0, "typed": false, "first": [], "same_end": true},
        "repeatable": true, "varied": null, "preparation": {"restoring": 0.0, "warming": 0.0}, "lacking": [],
    });
    assert!(accepts::<ReplayOutcome>(outcome.to_string().as_bytes()));
    campaign("JSON records", 3000, |random| {
        let mut values: [Value; 3] = [
            unit.clone(),
            outcome.clone(),
            cere_testing::package::manifest(),
        ];
        let at = random.below(3);
        (0..=random.below(3)).for_each(|_| change::json(&mut values[at], random));
        let mut text = values[at].to_string().into_bytes();
        if random.once_in(5) {
            change::records(&mut text, 1, random);
        }
        match at {
            0 => accepts::<Unit>(&text) | accepts::<Profile>(&text),
            1 => accepts::<ReplayOutcome>(&text),
            _ => accepts::<Manifest>(&text),
        }
    });
}

/// 87 million empty strings once took 2.3 GB.
#[test]
fn many_small_values_take_no_memory() {
    let text = [b"[\"\"".to_vec(), b",\"\"".repeat(5_000_000), b"]".to_vec()].concat();
    campaign("empty strings", 1, |_| accepts::<Vec<String>>(&text));
    let nested = [b"[[0".to_vec(), b"],[0".repeat(5_000_000), b"]]".to_vec()].concat();
    campaign("empty lists", 1, |_| accepts::<Vec<Vec<u64>>>(&nested));
}

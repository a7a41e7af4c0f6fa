//! Packages and raw captures, changed behind their checksums.

use cere_format::capture::CAPTURE_VERSION;
use cere_package::io::{decode_table, decode_trace, read_manifest, read_package, unpack_package};
use cere_package::raw::Raw;
use cere_testing::package::{Member, UNIT, listed, manifest, members, package};
use cere_testing::{Counting, Random, campaign, change};
use serde_json::{Value, json};
use std::path::Path;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Most bytes of members.
const LIMIT: u64 = 1 << 24;

/// A package with something changed, such that what is changed is not found out by its checksum.
fn changed(random: &mut Random) -> Vec<u8> {
    let (mut manifest, mut members): (Value, Vec<Member>) = (manifest(), members());
    for _ in 0..=random.below(3) {
        match random.below(8) {
            0 => change::records(&mut members[0].1, 16, random),
            1 => change::records(&mut members[3].1, 8, random),
            2 => {
                let at = random.below(members.len());
                change::records(&mut members[at].1, 8, random);
            }
            _ => change::json(&mut manifest, random),
        }
    }
    // What counts or lists the members follows, more often than not.
    if !random.once_in(4)
        && let Some(object) = manifest.as_object_mut()
    {
        object.insert("members".to_owned(), listed(&members));
        object.insert("pages".to_owned(), json!(members[0].1.len() / 16));
        if let Some(trace) = object.get_mut("trace").and_then(Value::as_object_mut) {
            trace.insert("pages".to_owned(), json!(members[3].1.len() / 8));
        }
    }
    let claim = random
        .once_in(10)
        .then(|| (random.below(members.len() + 1), random.number(512) >> 28));
    package(&serde_json::to_vec(&manifest).unwrap(), &members, claim)
}

fn read(path: &Path, directory: &Path) -> bool {
    let listed = read_manifest(path);
    let whole = read_package(path, LIMIT);
    let unpacked = unpack_package(path, directory, LIMIT);
    assert_eq!(whole.is_ok(), unpacked.is_ok());
    if let Ok(manifest) = &listed {
        let _ = cere_package::fits(manifest, &cere_package::machine(), 4096);
    }
    assert!(listed.is_ok() || whole.is_err());
    whole.is_ok()
}

#[test]
fn packages() {
    let directory = tempfile::tempdir().unwrap();
    let (path, out) = (
        directory.path().join("x.codelet"),
        directory.path().join("out"),
    );
    let plain = package(&serde_json::to_vec(&manifest()).unwrap(), &members(), None);
    std::fs::create_dir(&out).unwrap();
    std::fs::write(&path, plain).unwrap();
    read_package(&path, LIMIT).unwrap();
    campaign("packages", 150, |random| {
        std::fs::write(&path, changed(random)).unwrap();
        read(&path, &out)
    });
}

#[test]
fn tables_and_traces() {
    let members = members();
    campaign("tables and traces", 3000, |random| {
        let (mut table, mut trace) = (members[0].1.clone(), members[3].1.clone());
        change::records(&mut table, 16, random);
        change::records(&mut trace, 8, random);
        let size = if random.once_in(4) {
            random.number(4096)
        } else {
            4096
        };
        let table = decode_table("t", &table, size);
        let trace = decode_trace("t", &trace, size, random.once_in(2));
        table.is_ok() && trace.is_ok()
    });
}

fn capture() -> Value {
    let sample = manifest();
    let mut openmp = sample["openmp"].clone();
    openmp["runtime"] = json!("/usr/lib/libomp.so.5");
    json!({
        "version": CAPTURE_VERSION, "key": {"unit": UNIT, "index": 0}, "invocation": 1, "process": 0, "refused": null,
        "end": "returned", "page_size": 4096, "entry": sample["entry"], "thread_pointer": 0x7000,
        "images": [{"path": "/nowhere/a.out", "bias": 0, "range": [0x1000, 0x9000], "instrumented": true, "program": true, "tls": [0x7000, 64],
            "chosen": [[0x100, 0x1100]]}],
        "mappings": sample["mappings"], "fresh": sample["fresh"], "heap": sample["heap"], "interposed": sample["interposed"],
        "system_calls": sample["system_calls"], "disturbed_cycles": 5, "faults": 3, "trace": sample["trace"], "openmp": openmp,
    })
}

#[test]
fn raw_captures() {
    let directory = tempfile::tempdir().unwrap();
    let at = |extension: &str| directory.path().join("0").with_extension(extension);
    let write = |capture: &Value, members: &[Member], places: &[u8]| {
        std::fs::write(at("json"), serde_json::to_vec(capture).unwrap()).unwrap();
        for (extension, number) in [("table", 0), ("trace", 3), ("blocks", 8)] {
            std::fs::write(at(extension), &members[number].1).unwrap();
        }
        let pages = [&members[1].1[..], &members[2].1].concat();
        std::fs::write(at("places"), places).unwrap();
        std::fs::write(at("pages"), pages).unwrap();
    };
    let places: Vec<u8> = [1u32, 0, 2, 3, 0, 0, 0, 0]
        .iter()
        .flat_map(|place| place.to_le_bytes())
        .collect();
    write(&capture(), &members(), &places);
    Raw::open(&at("json"), "f").unwrap();
    campaign("raw captures", 500, |random| {
        let (mut capture, mut members) = (capture(), members());
        let mut places = places.clone();
        for _ in 0..=random.below(3) {
            match random.below(5) {
                0 => change::records(&mut members[0].1, 16, random),
                1 => change::records(&mut members[3].1, 8, random),
                2 => change::records(&mut places, 8, random),
                _ => change::json(&mut capture, random),
            }
        }
        write(&capture, &members, &places);
        let Ok(raw) = Raw::open(&at("json"), "f") else {
            return false;
        };
        for image in &raw.capture.images {
            let (address, size) = image
                .tls
                .unwrap_or((random.number(0x1000), random.number(64)));
            let _ = raw.bytes(address, size.min(1 << 26), random.once_in(2));
            let _ = raw.bytes(address, size.max(1 << 31), false).unwrap_err();
            let _ = raw.word(random.number(address));
        }
        true
    });
}

//! Manifests changed at random: a replay is planned or refused, without a panic and within bounds.

use cere_format::package::{MEMBER_ENTRY, MEMBER_TABLE, Manifest};
use cere_format::replay::{CacheState, Operand, Warmup};
use cere_replay::{check, compile, link, operand, plan};
use cere_testing::{Counting, campaign, change, package};
use std::path::Path;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What is done with a manifest before anything is compiled.
fn planned(package: &Path, manifest: &Manifest, size: u64) -> bool {
    let _ = operand::list(package, manifest);
    let operands = ["data", "grid", "*p", "0x21000000010"].map(|name| Operand {
        name: name.to_owned(),
        state: CacheState::Cold,
    });
    let _ = operand::resolve(package, manifest, &operands);
    if check::check(manifest).is_err() {
        return false;
    }
    for index in 0..manifest.units.len().min(3) {
        let _ = compile::bind_plan(manifest, index, Default::default(), true);
    }
    let _ = plan::threads(manifest, None);
    let _ = plan::warmup(manifest, Some(Warmup::Cold), Some(3));
    plan::warmup(manifest, None, None).is_ok() && link::base(manifest, size).is_ok()
}

#[test]
fn plans() {
    let sample: Manifest = serde_json::from_value(package::manifest()).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    // Pages with content that hold addresses of each other.
    let (mut table, mut entry) = (Vec::new(), Vec::new());
    let first = sample.variables.first().map_or(0x1000, |v| v.address);
    let places = [first, sample.heap.0, sample.entry.arguments].map(|a| a & !4095);
    let mut pages = places.to_vec();
    pages.sort_unstable();
    pages.dedup();
    for (number, page) in pages.iter().enumerate() {
        table.extend(page.to_le_bytes());
        table.extend(7u64.to_le_bytes());
        (0..512u64).for_each(|word| {
            let other = places[(number + word as usize) % 3];
            entry.extend((other + word * 16).to_le_bytes());
        });
    }
    std::fs::write(at.join(MEMBER_TABLE), table).unwrap();
    std::fs::write(at.join(MEMBER_ENTRY), entry).unwrap();
    assert!(operand::list(at, &sample).is_ok());
    assert!(planned(at, &sample, 1 << 24));
    campaign("plans", 3000, |random| {
        let mut value = package::manifest();
        (0..=random.below(4)).for_each(|_| change::json(&mut value, random));
        let size = random.number(1 << 20);
        serde_json::from_value(value).is_ok_and(|manifest| planned(at, &manifest, size))
    });
}

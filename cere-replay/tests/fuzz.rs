//! Manifests changed at random: a replay is planned or refused, without a panic and within bounds.

use cere_format::package::Manifest;
use cere_format::replay::Warmup;
use cere_fuzz::{Counting, campaign, change, package};
use cere_replay::{check, compile, link, plan};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What is done with a manifest before anything is compiled.
fn planned(manifest: &Manifest, size: u64) -> bool {
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
    assert!(planned(&sample, 1 << 24));
    campaign("plans", 3000, |random| {
        let mut value = package::manifest();
        (0..=random.below(4)).for_each(|_| change::json(&mut value, random));
        let size = random.number(1 << 20);
        serde_json::from_value(value).is_ok_and(|manifest| planned(&manifest, size))
    });
}

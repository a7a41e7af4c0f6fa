//! Instrumented programs, dormant and armed, do what plain ones do.

use crate::common;

use cere_format::build::RegionKind;
use common::Place;

const LEVELS: &[&[&str]] = &[
    &["-O0"],
    &["-O1", "-fno-pic"],
    &["-O2"],
    &["-O2", "-g", "-fPIC"],
    &["-O3", "-march=x86-64-v3"],
    &["-Os", "-g"],
    &["-Oz"],
    &["-O0", "-g", "-fno-pic"],
];

/// Why functions are no regions as a whole.
const FUNCTIONS: [&str; 4] = [
    "the function takes variable arguments",
    "the function has labels whose address is taken",
    "the function is always inlined: its code belongs to its callers",
    "the function asks for its frame or return address",
];

fn everywhere(names: &[&str], refused: &[&str]) {
    let fortran = names.iter().any(|name| name.contains(".f"));
    // flang knows neither -Os nor -Oz.
    let known = |flags: &&&[&str]| !fortran || !matches!(flags[0], "-Os" | "-Oz");
    for flags in LEVELS.iter().filter(known) {
        let places = [Place::new(), Place::splitting(), Place::choosing()];
        for built in places.iter().flat_map(|p| p.compare(names, flags)) {
            assert!(built.skipped.is_empty(), "{flags:?}: {:?}", built.skipped);
            for region in built.unit.regions.iter().filter(|r| !r.outlined) {
                let reason = region.reason.as_deref().expect("a reason");
                let whole = region.kind == RegionKind::Function;
                assert!(
                    refused.contains(&reason) || (whole && FUNCTIONS.contains(&reason)),
                    "{flags:?}: {}:{} is refused: {reason}",
                    region.function,
                    region.line
                );
            }
        }
    }
}

#[test]
fn control() {
    everywhere(
        &["control.c"],
        &["computed goto in the loop", "the loop has several entries"],
    );
}

#[test]
fn values() {
    everywhere(
        &["values.c"],
        &["setjmp in the loop", "alloca in the loop that outlives it"],
    );
}

#[test]
fn exceptions() {
    everywhere(
        &["throws.cpp"],
        &["exceptions in a function that is always inlined"],
    );
}

#[test]
fn loops_within_loops() {
    everywhere(&["nested.c"], &["the loop has several entries"]);
    everywhere(&["nested.cpp"], &[]);
}

#[test]
fn templates_in_two_units() {
    everywhere(&["shared_a.cpp", "shared_b.cpp"], &[]);
}

#[test]
fn fortran() {
    everywhere(&["fields.f90"], &[]);
    everywhere(&["fixed.f"], &[]);
}

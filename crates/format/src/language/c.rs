//! C.

use super::facts::{BackEnd, Facts, Front};

pub const FACTS: Facts = Facts {
    name: "C",
    extensions: &["c", "i"],
    drivers: &[
        ("cc", "clang-22"),
        ("gcc", "clang-22"),
        ("clang", "clang-22"),
    ],
    variables: &[("CC", "clang")],
    front: Front::Driver,
    form: "c",
    back_end: BackEnd::Clang,
    unwinds: false,
    is_library: |_| false,
};

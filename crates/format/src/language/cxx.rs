//! C++.

use super::facts::{BackEnd, Facts, Front};

pub const FACTS: Facts = Facts {
    name: "C++",
    extensions: &[
        "cc", "cpp", "cxx", "C", "c++", "CPP", "cp", "ii", "cppm", "ccm", "cxxm", "c++m",
    ],
    drivers: &[
        ("c++", "clang++-22"),
        ("g++", "clang++-22"),
        ("clang++", "clang++-22"),
    ],
    variables: &[("CXX", "clang++")],
    front: Front::Driver,
    form: "c++",
    back_end: BackEnd::Clang,
    unwinds: true,
    is_library: |_| false,
};

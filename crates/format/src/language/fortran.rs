//! Fortran.

use super::facts::{BackEnd, Facts, Front};

pub const FACTS: Facts = Facts {
    name: "Fortran",
    extensions: &[
        "f", "for", "ftn", "f77", "F", "FOR", "FTN", "F77", "f90", "f95", "f03", "f08", "f18",
        "F90", "F95", "F03", "F08", "F18", "fpp", "FPP",
    ],
    drivers: &[
        ("flang", "flang-22"),
        ("flang-new", "flang-22"),
        ("gfortran", "flang-22"),
        ("f77", "flang-22"),
        ("f90", "flang-22"),
        ("f95", "flang-22"),
    ],
    variables: &[("FC", "flang"), ("F77", "flang"), ("F90", "flang")],
    front: Front::Driver,
    form: "f95",
    back_end: BackEnd::Flang,
    unwinds: false,
    is_library: |_| false,
};

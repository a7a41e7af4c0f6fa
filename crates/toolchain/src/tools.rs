//! The tools of LLVM.

/// The compiler of C and C++ units, and the assembler.
pub const CLANG: &str = "clang-22";
/// The compiler of Fortran units.
pub const FLANG: &str = "flang-22";
/// What makes text of bitcode.
pub const DIS: &str = "llvm-dis-22";
/// The optimiser.
pub const OPT: &str = "opt-22";
/// The model of processors.
pub const MCA: &str = "llvm-mca-22";
/// The editor of symbol tables.
pub const OBJCOPY: &str = "llvm-objcopy-22";
/// The linker.
pub const LLD: &str = "ld.lld-22";

//! What a unit or a region is compiled with.

use cere_format::build::SplitTeam;

/// What a unit or a region is compiled with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    /// Flags after those of the build.
    pub flags: Vec<String>,
    /// An `opt` pipeline instead of the compiler's own.
    pub passes: Option<String>,
    /// The team of a parallel region of OpenMP.
    pub team: Option<SplitTeam>,
}

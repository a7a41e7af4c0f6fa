//! Why a compile cannot go on.

use std::path::PathBuf;

/// Why a compile cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum PassError {
    /// A plan cannot be read.
    #[error("cannot read {}, which {variable} names: {source}", .file.display())]
    Read {
        /// The plan's file.
        file: PathBuf,
        /// The environment variable.
        variable: &'static str,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A plan is not of this version.
    #[error(
        "{}, which {variable} names, is not what this version of the pass reads: {source}",
        .file.display()
    )]
    Plan {
        /// The plan's file.
        file: PathBuf,
        /// The environment variable.
        variable: &'static str,
        /// Where it differs.
        source: serde_json::Error,
    },
    /// A result cannot be written.
    #[error("cannot write {}: {source}", .file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// The system's answer, or why it is no JSON.
        source: std::io::Error,
    },
    /// LLVM refuses passes.
    #[error("LLVM cannot run {passes}: {message}")]
    Passes {
        /// The passes, as text.
        passes: String,
        /// What LLVM says.
        message: String,
    },
    /// A function that is needed cannot run on the other architecture.
    #[error("{function} cannot run on {triple}: {why}")]
    Crossing {
        /// The function.
        function: String,
        /// The architecture.
        triple: String,
        /// Why not.
        why: String,
    },
    /// The module is broken.
    #[error("LLVM's verifier rejects what the pass made: {0}")]
    Verifier(String),
    /// A region breaks the compile: the wrapper compiles again without it.
    #[error("region {index} in {function} ({place}): {reason}")]
    Region {
        /// Its index.
        index: u32,
        /// Its function.
        function: String,
        /// File and line.
        place: String,
        /// What is wrong, in one line.
        reason: String,
    },
    /// A plan names a region that the unit lacks.
    #[error("the unit has no region {0}")]
    NoRegion(u32),
    /// A region is no longer there.
    #[error("the pipeline has removed region {0}")]
    RegionRemoved(u32),
    /// A plan has labels of another function.
    #[error("the plan has {count} labels of {function}, which has others")]
    Labels {
        /// How many.
        count: usize,
        /// Their function.
        function: String,
    },
    /// A function has no symbol that says where it is.
    #[error("a function without its address: {0}")]
    NoAddress(String),
    /// A part needs what the rest lacks.
    #[error(
        "a region uses {0}, which the rest of the unit does not have: its flags make another variable of it"
    )]
    NotShared(String),
    /// Labels are in memory that a part does not have.
    #[error(
        "{0} keeps addresses of its labels in memory: its region has to keep the flags of the build"
    )]
    LabelsInMemory(String),
    /// Likewise, in a variable.
    #[error(
        "the variable {0} holds addresses of labels: its region has to keep the flags of the build"
    )]
    LabelsInVariable(String),
    /// A team is asked for where there is none.
    #[error("the region forks no team: leave threads and bind out for it")]
    NoTeam,
    /// Vectors are passed in a way that depends on the target.
    #[error(
        "vectors of more than 128 bits are passed to or from the region's code by value, which is done in another way \
         for another target: leave flags like -march out for this region"
    )]
    WideVectors,
}

/// What this crate's functions return.
pub type Result<T> = std::result::Result<T, PassError>;

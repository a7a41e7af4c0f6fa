//! Why a codelet has no listing.

use crate::error::CountError;
use cere_replay::ReplayError;
use cere_toolchain::CompileError;

/// Why a codelet has no listing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListingError {
    /// It could not be counted.
    #[error(transparent)]
    Count(#[from] CountError),
    /// Its assembly could not be made.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// A tool failed.
    #[error(transparent)]
    Tool(#[from] CompileError),
    /// llvm-mca printed something else than expected.
    #[error(
        "llvm-mca-22 printed what cannot be read ({0}): is it the one of the LLVM 22 that CERE was built for?"
    )]
    Model(String),
    /// llvm-mca does not know a processor.
    #[error(
        "llvm-mca-22 knows no processor {0}: `llvm-mca-22 -mcpu=help -mtriple=x86_64 /dev/null` lists those that it knows"
    )]
    Processor(String),
}

//! Why a codelet has no modelled time.

use crate::error::CountError;
use cere_replay::ReplayError;
use cere_toolchain::CompileError;

/// Why a codelet has no modelled time.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The code could not be counted.
    #[error(transparent)]
    Count(#[from] CountError),
    /// The code could not be made, or not run.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// A tool failed.
    #[error(transparent)]
    Tool(#[from] CompileError),
    /// No architecture has such a processor, or LLVM does not know how it works.
    #[error(
        "llvm-mca-22 has no model of a processor {name:?} of {architectures}: `llvm-mca-22 -mtriple=aarch64 -mcpu=help` lists names"
    )]
    Processor {
        /// Its name.
        name: String,
        /// Where it was looked for.
        architectures: String,
    },
    /// The frequency of a processor is not known.
    #[error("how fast {0} runs is not known: say it with --hertz, e.g. --hertz 3e9")]
    Hertz(String),
    /// llvm-mca printed something else than expected.
    #[error(
        "llvm-mca-22 printed what cannot be read ({0}): is it the one of the LLVM 22 that CERE was built for?"
    )]
    Printed(String),
    /// Several threads.
    #[error("it runs in {0} threads, and the model knows one")]
    Threads(u32),
    /// Its state differs.
    #[error("the modelled code's result is {verdict}: {reason}")]
    Result {
        /// The verdict.
        verdict: &'static str,
        /// Why.
        reason: String,
    },
    /// Too little of its code is known to the model.
    #[error(
        "the model of {processor} knows {percent:.1} % of its executed instructions, and 90 % are needed"
    )]
    Unknown {
        /// The processor.
        processor: String,
        /// What is known.
        percent: f64,
    },
    /// It calls code that the codelet does not hold.
    #[error("it calls {names} once every {cycles:.0} cycles, and their code is not modelled")]
    Calls {
        /// Names of the functions, the most frequent first.
        names: String,
        /// Modelled cycles between two calls.
        cycles: f64,
    },
    /// Nothing of it ran.
    #[error("none of its code was counted: the region did not run")]
    Nothing,
}

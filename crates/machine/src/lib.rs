//! The machine, measured: what its caches, TLBs, cores and operations do, seen from a program.
//!
//! | module | what |
//! |---|---|
//! | [`session`] | time left, progress, clocks |
//! | [`code`] | generated machine code |
//! | [`place`] | threads on cores |
//! | [`load`], [`system`] | what others do meanwhile; limits of memory and time |
//! | [`analysis`] | pure functions: what a curve says |
//! | [`hierarchy`] | caches and TLBs |
//! | [`operations`] | latencies, throughputs, peaks, contexts, registers, time slot |
//! | [`bandwidth`] | bandwidths of levels, first touch |
//! | [`sharing`] | what cores share, how they hinder each other, how they communicate |
//! | [`whole`], `document` | all of it, one document; its entries |
//! | [`roofs`] | ceilings of a measured machine, and which of them binds |
//! | [`blocking`] | pure functions: block sizes of kernels |
//!
//! A probe makes a curve; an analyser reads a value off it, with a confidence. Probes and analysers are apart, so that
//! analysers are tested on simulated machines.

pub mod analysis;
pub mod bandwidth;
pub mod blocking;
pub mod code;
pub mod hierarchy;
pub mod load;
pub mod operations;
pub mod place;
pub mod roofs;
pub mod session;
pub mod sharing;
pub mod system;
pub mod whole;

mod document;

use cere_arch::target::Target;
use thiserror::Error;

/// Why a probe is not run on `here`.
#[must_use]
pub fn not_here(here: Target) -> String {
    format!(
        "the probe is machine code for x86-64, this machine is {}",
        here.processor()
    )
}

/// What stops a measurement.
#[derive(Debug, Error)]
pub enum Error {
    /// Memory that the kernel refuses.
    #[error(transparent)]
    Memory(#[from] cere_timing::area::NoMemory),
    /// Generated code that cannot be made executable.
    #[error(
        "the kernel refuses memory for generated code: {0}; a security policy may forbid it (W^X, SELinux execmem)"
    )]
    Executable(std::io::Error),
    /// A probe of another architecture's instructions.
    #[error("{}", not_here(*.0))]
    Architecture(Target),
    /// An instruction that cannot be encoded.
    #[error("a probe cannot be encoded: {0}")]
    Encode(String),
    /// A core that a thread cannot be put on.
    #[error(
        "a thread cannot be put on processor {core}: {source}; its cpuset or the affinity may have changed"
    )]
    Place {
        /// The processor.
        core: u32,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// A thread that cannot be started.
    #[error("a thread of a probe cannot be started: {0}")]
    Thread(std::io::Error),
}

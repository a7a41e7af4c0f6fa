//! Why times in vivo are unknown.

use cere_system::console::print;

/// Why the time of a captured invocation is unknown.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Untimed {
    /// The profile is of another process.
    #[error(
        "it was captured in another process of the run ({captured}) than the one that was profiled ({profiled})"
    )]
    OtherProcess {
        /// Arguments of the captured process.
        captured: String,
        /// Arguments of the profiled process.
        profiled: String,
    },
    /// No variable distinguishes the process from others.
    #[error(
        "several processes of the run are alike, and which of them was captured is chance: name a variable that tells them apart by --process-key"
    )]
    Chance,
    /// The profile does not have the region.
    #[error("the region did not run in the profile's run")]
    NotRun,
    /// There is no end, or no time.
    #[error("it was not left by its end in the profile's run, or is too short to be timed")]
    NotLeft,
    /// The profile's run ended before it.
    #[error("the region ran only {0} times in the profile's run")]
    NotReached(u64),
    /// The profile does not keep it.
    #[error("the profile's trace has no place for so many invocations: capture fewer in one run")]
    NotKept,
    /// Which invocation a thread runs is chance, and they are not alike.
    #[error(
        "invocations in the profile's threads differ: a fifth takes less than {}, another fifth more than {}, and which of them a thread runs may be chance",
        print::time(*.least),
        print::time(*.most)
    )]
    Differ {
        /// Seconds that a fifth takes at most.
        least: f64,
        /// Seconds that a fifth takes at least.
        most: f64,
    },
    /// The times belong to different invocations.
    #[error(
        "the profile's run did other work in this invocation, or was disturbed: the invocation took {} in that run, and {} \
         in the captured one, which is never the faster for the same work; give both the same input and profile again",
        print::time(*.profiled),
        print::time(*.captured)
    )]
    Impossible {
        /// Seconds in the profile's run.
        profiled: f64,
        /// Seconds in the captured run.
        captured: f64,
    },
}

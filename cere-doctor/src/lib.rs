//! Whether this machine has what CERE needs, and how well it measures now. A crate of its own: it asks the sandbox, the
//! compilers' finder, the store and the clock, and none of these may know the others.
//!
//! | module | what |
//! |---|---|
//! | [`mod@kernel`] | what captures and replays ask the kernel for, each tried |
//! | [`tools`] | the programs of LLVM, the parts of CERE |
//! | [`machine`] | processor, caches, frequency, memory, disk |
//! | [`noise`] | one kernel against itself: what differences can be told here |

pub mod kernel;
pub mod machine;
pub mod noise;
pub mod tools;

use cere_format::store::Store;
use machine::Machine;
use noise::Noise;
use serde::Serialize;

/// Whether something is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It is.
    Good,
    /// It is not, and CERE works with less.
    Limited,
    /// It is not, and CERE needs it.
    Missing,
}

/// One thing that was looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Item {
    /// What.
    pub name: &'static str,
    /// Whether it is there.
    pub state: State,
    /// What was found, or why it is not there and what that means.
    pub found: String,
    /// What to do, unless it is there.
    pub remedy: Option<String>,
}

impl Item {
    fn good(name: &'static str, found: impl Into<String>) -> Self {
        Self {
            name,
            state: State::Good,
            found: found.into(),
            remedy: None,
        }
    }

    fn limited(name: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            name,
            state: State::Limited,
            found: found.into(),
            remedy: Some(remedy.into()),
        }
    }

    fn missing(name: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            state: State::Missing,
            ..Self::limited(name, found, remedy)
        }
    }
}

/// All that was found.
#[derive(Debug, Clone, Serialize)]
pub struct Findings {
    /// The kernel.
    pub kernel: Vec<Item>,
    /// LLVM and CERE's parts.
    pub tools: Vec<Item>,
    /// Memory, disk and what else may be scarce.
    pub room: Vec<Item>,
    /// The machine.
    pub machine: Machine,
    /// How well it measures now; none if the kernel could not be timed.
    pub noise: Option<Noise>,
}

impl Findings {
    /// Looks at everything; takes about three seconds.
    pub fn here(store: &Store) -> Self {
        Self {
            kernel: kernel::items(),
            tools: tools::items(),
            room: machine::room(store),
            machine: Machine::here(),
            noise: noise::measure(noise::SECONDS),
        }
    }

    /// Whether something is missing that CERE needs.
    pub fn is_lacking(&self) -> bool {
        let all = self.kernel.iter().chain(&self.tools).chain(&self.room);
        all.into_iter().any(|item| item.state == State::Missing)
    }
}

//! Checks whether this machine has what CERE needs, and how well it measures now. It is a crate of its own because it uses
//! the sandbox, the wrappers, the store and the clock, which must not depend on one another.
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

/// The state of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Present.
    Good,
    /// Absent, and CERE works with restrictions.
    Limited,
    /// Absent, and CERE needs it.
    Missing,
}

/// One checked item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Item {
    /// Its name.
    pub name: &'static str,
    /// Its state.
    pub state: State,
    /// What was found, or why it is absent and what that means.
    pub found: String,
    /// What to do; `None` if it is present.
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

/// All findings.
#[derive(Debug, Clone, Serialize)]
pub struct Findings {
    /// The kernel.
    pub kernel: Vec<Item>,
    /// LLVM and CERE's parts.
    pub tools: Vec<Item>,
    /// Memory, disk and limits.
    pub room: Vec<Item>,
    /// The machine.
    pub machine: Machine,
    /// The noise; `None` if the kernel could not be timed.
    pub noise: Option<Noise>,
}

impl Findings {
    /// Checks everything; takes about three seconds.
    pub fn here(store: &Store) -> Self {
        Self {
            kernel: kernel::items(),
            tools: tools::items(),
            room: machine::free_room(store),
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

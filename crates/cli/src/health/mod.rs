//! Checks whether this machine has what CERE needs, and how well it measures now.
//!
//! | module | what |
//! |---|---|
//! | [`mod@kernel`] | what captures and replays ask the kernel for, each tried |
//! | [`tools`] | the programs of LLVM, the parts of CERE |
//! | [`machine`] | processor, caches, frequency, memory, disk |
//! | [`mend`] | runs what mends an item, after a question |
//! | [`noise`] | one kernel against itself: what differences can be told here |

pub mod kernel;
pub mod machine;
pub mod mend;
pub mod noise;
pub mod tools;

mod item;

pub use item::{Item, State};

use cere_format::store::Store;
use machine::Machine;
use noise::Noise;
use serde::Serialize;

/// All findings.
#[derive(Debug, Clone, Serialize)]
pub struct Findings {
    pub kernel: Vec<Item>,
    /// LLVM and CERE's parts.
    pub tools: Vec<Item>,
    /// Memory, disk and limits.
    pub room: Vec<Item>,
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

    /// All items.
    pub fn items(&self) -> impl Iterator<Item = &Item> {
        self.kernel.iter().chain(&self.tools).chain(&self.room)
    }

    /// Whether something is missing that CERE needs.
    pub fn is_lacking(&self) -> bool {
        self.items().any(|item| item.state == State::Missing)
    }
}

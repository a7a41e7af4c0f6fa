//! What to search, and how.

use super::budget::Budget;
use crate::Method;
use cere_format::machine::Machine;
use cere_format::store::Store;
use cere_measure::Goal;
use cere_nodes::{Place, Worker};
use cere_system::events::Events;

/// What to search, and how.
pub struct Request<'a> {
    /// The store with codelets, records and searches.
    pub store: &'a Store,
    /// Names, globs or unique prefixes of regions; empty for those that matter and have codelets.
    pub regions: &'a [String],
    /// The name of a space, or a file.
    pub space: &'a str,
    /// The search method.
    pub search: Method,
    /// Evaluations or time for all regions together; `None` for 100 evaluations a region.
    pub budget: Option<Budget>,
    /// A region's search ends once it is this many times faster.
    pub target: Option<f64>,
    /// Variants compiled at a time; `None` for as many as processors.
    pub jobs: Option<usize>,
    /// Seed of the random numbers.
    pub seed: u64,
    /// The measured machine that searches start from; `None` to start from nothing.
    pub machine: Option<&'a Machine>,
    /// What variants are to take less of. `replays` measure it.
    pub goal: Goal,
    /// Whether flags that change values are tried.
    pub change_values: bool,
    /// Numbers of threads to try for parallel regions.
    pub threads: &'a [u32],
    /// Whether earlier searches are ignored.
    pub again: bool,
    /// Where evaluations are made, if not all here.
    pub spread: Option<Spread<'a>>,
    /// How to replay, at the flags of the build.
    pub replays: cere_measure::Settings,
    /// What is said meanwhile.
    pub events: &'a Events,
}

/// Where evaluations are made, and in what portions.
#[derive(Clone, Copy)]
pub struct Spread<'a> {
    /// Where.
    pub place: &'a Place,
    /// The command that does a chunk.
    pub worker: &'a Worker,
    /// Tasks in a chunk.
    pub per_chunk: usize,
    /// Evaluations that are proposed at a time; none: 20 a region.
    pub batch: Option<usize>,
}

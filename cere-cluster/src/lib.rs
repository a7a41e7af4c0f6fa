//! Pure functions: no file is opened here, and only the limit of [`cover`] depends on the clock.
//!
//! | question | answer |
//! |---|---|
//! | which regions are worth a codelet? | `select(&[Candidate], Rule) -> Vec<Result<(), Rejection>>` |
//! | which invocations of a region stand for all? | `classes(source: Fn() -> Iterator<Timed>, Whole, Criterion) -> Result<Classes, ClassError>`; `Classes::of(cycles) -> usize` tells any invocation's class |
//! | how long does the region take on the target? | `predict(&[Replayed]) -> Result<f64, PredictError>` |
//! | who gets the time of dropped regions? | `prune(&[Node], regions, keep: Fn(usize) -> bool) -> Result<Pruned, TreeError>` |
//! | which regions cover enough of the run at the least cost? | `cover(&[Node], costs: &[Option<f64>], Goal) -> Result<Cover, CoverError>` |
//!
//! Underneath: `pam(weights, clusters, distance: Fn(usize, usize) -> f64)` and `pam_points(points, weights, clusters)` for
//! what fits a distance matrix, `line(points, weights, clusters)` for the exact solution in one dimension (all three
//! `-> Result<Clustering, ClusterError>`), `clara(source: Fn() -> Iterator<(P, f64)>, clusters, Sampling) ->
//! Result<Medoids<P>, ClusterError>` for any number of points in bounded memory.
//! A [`Point`] is a number, an array of numbers, or what else has a distance. Weights say how many points one stands for.

mod clara;
mod classes;
mod cover;
mod line;
mod pam;
mod point;
mod predict;
mod select;
mod tree;

pub use clara::{Medoids, Sampling, clara};
pub use classes::{Class, ClassError, Classes, Criterion, EXACT_TIMES, Timed, Whole, classes};
pub use cover::{Cover, CoverError, Goal, cover};
pub use line::line;
pub use pam::{Clustering, pam, pam_points};
pub use point::{ClusterError, Point};
pub use predict::{PredictError, Replayed, predict};
pub use select::{Candidate, Rejection, Rule, select};
pub use tree::{Node, Pruned, TreeError, prune};

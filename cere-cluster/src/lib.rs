//! Pure functions: no file is opened here, and only the limit of [`cover`] depends on the clock.
//!
//! | question | answer |
//! |---|---|
//! | which regions are worth a codelet? | `select(&[Candidate], Rule) -> Vec<Result<(), Rejection>>` |
//! | which invocations of a region stand for all? | `classes(source: Fn() -> Iterator<Timed>, Whole, Criterion) -> Result<Classes, ClassError>`; `Classes::of(cycles) -> usize` tells any invocation's class |
//! | how long does the region take on the target? | `predict(&[Replayed]) -> Result<f64, PredictError>` |
//! | who gets the time of dropped regions? | `prune(&[Node], regions, keep: Fn(usize) -> bool) -> Result<Pruned, TreeError>` |
//! | which regions cover enough of the run at the least cost? | `cover(&[Node], costs: &[Option<f64>], Goal) -> Result<Cover, CoverError>` |
//! | which points are alike? | `z_scores(rows: &[Vec<Option<f64>>], Transform) -> Result<Scores, ClusterError>`, `ward(points: &[Vec<f64>]) -> Result<Dendrogram, ClusterError>`, `Dendrogram::cut(k) -> Result<Vec<usize>, ClusterError>` |
//! | ... by fewer coordinates? | `components(points) -> Result<Components, ClusterError>`, `Components::components_for(share) -> usize` |
//! | into how many clusters? | `elbow(&variances(points, tree)?) -> usize` |
//! | which points represent them, which check that? | `medoids(points, labels)`, `farthest(points, labels, medoids)`, `by_distance(points, labels)` |
//! | would chance, or another method, do as well? | `random_partition(points, clusters, seed)`, `kmeans(points, clusters, starts, seed)`: labels as of `cut` |
//! | which metrics are worth a place? | `genetic(bits, &Genetic, fitness: Fn(&[bool]) -> f64) -> Result<Evolved, ClusterError>` |
//!
//! Underneath: `pam(weights, clusters, distance: Fn(usize, usize) -> f64)` and `pam_points(points, weights, clusters)` for
//! what fits a distance matrix, `line(points, weights, clusters)` for the exact solution in one dimension (all three
//! `-> Result<Clustering, ClusterError>`), `clara(source: Fn() -> Iterator<(P, f64)>, clusters, Sampling) ->
//! Result<Medoids<P>, ClusterError>` for any number of points in bounded memory.
//! A [`Point`] is a number, an array of numbers, or what else has a distance. Weights say how many points one stands for.

mod clara;
mod classes;
mod cover;
mod genetic;
mod kmeans;
mod line;
mod pam;
mod pca;
mod point;
mod predict;
mod random;
mod scores;
mod select;
mod tree;
mod ward;
mod within;

pub use clara::{Medoids, Sampling, clara};
pub use classes::{Class, ClassError, Classes, Criterion, EXACT_TIMES, Timed, Whole, classes};
pub use cover::{Cover, CoverError, Goal, cover};
pub use genetic::{Evolved, Genetic, genetic};
pub use kmeans::kmeans;
pub use line::line;
pub use pam::{Clustering, pam, pam_points};
pub use pca::{Components, components};
pub use point::{ClusterError, Point};
pub use predict::{PredictError, Replayed, predict};
pub use random::random_partition;
pub use scores::{Dropped, Scores, Transform, z_scores};
pub use select::{Candidate, Rejection, Rule, select};
pub use tree::{Node, Pruned, TreeError, prune};
pub use ward::{Dendrogram, Merge, ward};
pub use within::{by_distance, centroids, elbow, farthest, medoids, variances, within};

//! A few codelets that stand for many programs, and what they take on other machines (CERE thesis, 4.3, 4.5 and 6.4).
//!
//! | module | what |
//! |---|---|
//! | [`programs`] | names of programs, by what tells them apart |
//! | [`collect`] | programs, regions and codelets of several stores |
//! | [`vectors`] | the metrics of codelets, kept in their stores |
//! | [`choose`] | metrics to clusters and representatives |
//! | [`document`] | the subset |
//! | [`archive`] | a subset and its packages as one file |
//! | [`times`] | the time of a codelet |
//! | [`machine`] | which machine measured |
//! | [`measure`] | measures an archive, here or elsewhere |
//! | [`modelled`] | a model of a processor in the place of a machine |
//! | [`measurement`] | what a machine measured of a subset |
//! | [`rounds`] | several replays of a codelet as one time |
//! | [`model`] | measured ratios to predicted programs |
//! | [`validate`] | errors by number of clusters, of random partitions, of what was left out |
//! | [`expect`] | what a subset promises |
//! | [`make`] | a subset from stores |
//! | [`train`] | metrics by a genetic algorithm |

pub mod archive;
pub mod choose;
pub mod collect;
pub mod document;
pub mod expect;
pub mod machine;
pub mod make;
pub mod measure;
pub mod measurement;
pub mod model;
pub mod modelled;
pub mod programs;
pub mod rounds;
pub mod times;
pub mod train;
pub mod validate;
pub mod vectors;

pub use document::{Choice, Cluster, Codelet, Point, Program, SUBSET_VERSION, Subset};
pub use machine::Machine;
pub use measurement::{Measured, Measurement, Round};
pub use modelled::Model;

//! Clusters, classes and covers against published ones and against slower methods.

mod clara;
mod classes;
mod cover;
mod pam;
mod published;

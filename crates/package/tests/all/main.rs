//! Packages of real captures, and their description.

mod formats;
mod programs;
mod support;

//! The preload library in real programs.

mod captures;
mod profiles;
mod support;
mod traces;

//! The preload library in real programs.

mod answers;
mod captures;
mod profiles;
mod support;
mod traces;
mod unchanged;

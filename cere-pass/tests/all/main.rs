//! The pass: what it outlines behaves as before, and its machine code is the same.

mod behaviour;
mod common;
mod identity;
mod units;

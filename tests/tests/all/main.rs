//! End to end, but for what has a harness of its own or times.

mod aarch64;
mod addresses;
mod bad_input;
mod broken_off;
mod count;
mod cross;
mod layers;
mod metrics;
mod openmp;
mod parts;
mod tuning_bad_input;

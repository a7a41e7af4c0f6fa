//! The preload library. What is allowed where:
//!
//! - constructor, `dlopen`, writing results: ordinary Rust, memory from [`os::arena`];
//! - hooks: the program's thread, no change of errno; what they begin or end runs on a stack of [`engine::pool`], with the
//!   program's memory open and its signals blocked;
//! - signal handlers: raw system calls and preallocated memory only: no libc, locks, allocation, errno, until the
//!   program's memory is open again.
//!
//! Without `CERE_RUN` in the environment it does nothing but pass calls on.

mod engine;
mod os;
mod policy;

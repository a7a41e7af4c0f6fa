//! What the kernel, the loader and the C library give: raw system calls, reserved memory, thread-local state, dispositions of
//! signals, what `/proc` says. Nothing here knows of captures or profiles.

pub mod allowance;
pub mod arena;
pub mod aside;
pub mod ends;
pub mod errno;
pub mod files;
pub mod futex;
pub mod guards;
pub mod images;
pub mod inside;
pub mod limits;
pub mod local;
pub mod mappings;
pub mod names;
pub mod process;
pub mod report;
pub mod resting;
pub mod section;
pub mod shared;
pub mod signals;
pub mod spare;
pub mod stacks;
pub mod symbols;
pub mod sys;
pub mod thread;

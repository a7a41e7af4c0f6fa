//! The runtime inside a replay executable: restores the captured memory at its captured addresses, runs the
//! region on the captured stack, times it, and compares what it left with what it left in vivo.
//!
//! | module | what |
//! |---|---|
//! | [`start`] | the entry point |
//! | [`run`] | the order of it all |
//! | [`check`] | whether what the package says can be true |
//! | [`pages`] | the page table and the pages' content |
//! | [`space`] | reserving and opening the captured addresses |
//! | [`code`] | jumps at the old addresses of functions |
//! | [`library`] | fresh library symbols in place of captured ones |
//! | [`state`] | the memory that every repetition starts from |
//! | [`thread`] | the thread-local block |
//! | [`glue`] | what the generator's glue defines |
//! | [`heap`] | `malloc` and family |
//! | [`mapping`] | `mmap` and family |
//! | [`output`] | standard output |
//! | [`trampoline`] | the switch to the captured stack and back, exceptions included |
//! | [`fault`] | what an access outside the capture ends with |
//! | [`compare`] | exit state in vitro against in vivo |

mod check;
mod code;
mod compare;
mod fault;
mod glue;
mod heap;
mod library;
mod mapping;
mod output;
mod pages;
mod run;
mod space;
pub mod start;
mod state;
mod thread;
mod trampoline;

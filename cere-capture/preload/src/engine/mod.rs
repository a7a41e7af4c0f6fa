//! The engine of captures and page traces: which memory is closed, what a touch of it does, what is kept. It knows nothing of
//! regions that are wanted, of the order in which captures begin and end, or of files.
//!
//! Most of it runs in signal handlers: raw system calls and reserved memory only, no copies that the compiler would leave to
//! libc, whose data may be closed.

pub mod answered;
pub mod calls;
pub mod clock;
pub mod dispatch;
pub mod exit;
pub mod gate;
pub mod heap;
pub mod in_turn;
pub mod layout;
pub mod lead;
pub mod level;
pub mod malloc;
pub mod memory;
pub mod pace;
pub mod pages;
pub mod parallel;
pub mod pool;
pub mod remap;
pub mod spans;
pub mod state;
pub mod status;
pub mod streams;
#[cfg(test)]
pub mod testing;
pub mod touch;
pub mod tracer;
pub mod turn;
pub mod wakes;

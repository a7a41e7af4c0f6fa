//! What runs inside programs and replays, in the preload libraries and in the replay's runtime alike.
//!
//! | module | what |
//! |---|---|
//! | [`heap`] | the region heap: an allocator that gives the same addresses again |
//! | [`rebind`] | binds a library's calls again |
//! | [`counter`] | what counted code writes to |
//! | [`clibrary`] | what the C library keeps for a program |

pub mod clibrary;
pub mod counter;
pub mod heap;
pub mod rebind;

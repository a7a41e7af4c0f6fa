//! What runs inside programs and replays, in the preload libraries and in the replay's runtime alike.
//!
//! | module | what |
//! |---|---|
//! | [`heap`] | the region heap: an allocator that gives the same addresses again |
//! | [`rebind`] | binds a library's calls again |
//! | [`counter`] | what counted code writes to |
//! | [`again`] | executing a program in the place of the one that runs |
//! | [`call`] | system calls without libc |
//! | [`vdso`] | the kernel's shared page |
//! | [`images`] | the images that the loader knows |
//! | [`malloc`] | what of the `malloc` family is the same everywhere |
//! | [`clibrary`] | what the C library keeps for a program |

pub mod again;
pub mod call;
pub mod clibrary;
pub mod counter;
pub mod heap;
pub mod images;
pub mod malloc;
pub mod rebind;
pub mod vdso;

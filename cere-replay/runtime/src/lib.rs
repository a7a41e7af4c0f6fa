//! The runtime inside a replay executable: restores the captured memory at its captured addresses, runs the
//! region on the captured stack, times it, and compares what it left with what it left in vivo.
//!
//! | module | what |
//! |---|---|
//! | [`start`] | the entry point |
//! | [`run`] | the order of it all |
//! | [`error`] | why there is no replay
//! | [`check`] | whether what the package says can be true |
//! | [`package`] | what is read of a package, and the addresses reserved for it |
//! | [`pages`] | the page table and the pages' content |
//! | [`keep`], [`kept`] | the process that keeps a captured state for replays that are its forks; what they find |
//! | [`enter`] | an executable takes the place of another, and its memory |
//! | [`space`] | reserving and opening the captured addresses |
//! | [`code`] | jumps at the old addresses of functions |
//! | [`images`] | the images of this process |
//! | [`library`] | fresh library symbols in place of captured ones |
//! | [`state`] | the memory that every repetition starts from |
//! | [`control`] | the thread's control block at its captured address |
//! | [`thread`] | the thread-local block |
//! | [`team`] | the OpenMP runtime's threads |
//! | [`glue`] | what the generator's glue defines |
//! | [`heap`] | `malloc` and family |
//! | [`clock`], [`pass`] | what the region asks the kernel: the time and the like |
//! | [`mapping`] | `mmap` and family |
//! | [`mpi`] | calls of MPI: answered as in vivo |
//! | [`output`], [`text`] | what the region prints: through streams, by system calls |
//! | [`streams`] | the C++ library's standard streams |
//! | [`trampoline`] | the switch to the captured stack and back, exceptions included |
//! | [`once`] | one run of the region, timed |
//! | [`counters`] | counters of the kernel around it, where a replay measures with them |
//! | [`mod@energy`] | what the region takes of energy, preparing it apart |
//! | [`samples`] | which repetitions count, and when there are enough |
//! | [`warm`] | the caches' state before a repetition |
//! | [`compact`] | memory that shares few frames, to see what it costs |
//! | [`operand`] | memory and code in states of their own |
//! | [`trace`] | the captured page trace |
//! | [`caches`], [`lines`], [`processor`] | the machine's caches, cache lines, where the replay runs |
//! | [`fault`] | what an access outside the capture ends with |
//! | [`guard`] | names the system call that the sandbox refuses the region |
//! | [`constants`] | constants of libraries, at their captured addresses |
//! | [`lost`] | room for variables that the captured image lacks |
//! | [`count`] | the stream of counted code |
//! | [`typed`] | the kinds of stored values, from code that reports its stores |
//! | [`stores`] | which store wrote what, from code that says where its stores are |
//! | [`report`] | times and verdict in words, for exported folders |
//! | [`compare`] | exit state in vitro against in vivo |

mod caches;
mod check;
mod clock;
mod code;
mod compact;
mod compare;
mod constants;
mod control;
mod count;
mod counters;
mod energy;
mod enter;
mod error;
mod fault;
#[cfg(test)]
mod fuzz;
mod glue;
mod guard;
mod heap;
mod images;
mod keep;
mod kept;
mod library;
mod lines;
mod lost;
mod mapping;
mod mpi;
mod once;
mod operand;
mod output;
mod owners;
mod package;
mod pages;
mod pass;
mod processor;
mod report;
mod run;
mod samples;
mod space;
pub mod start;
mod state;
mod stores;
mod streams;
mod team;
mod text;
mod thread;
mod trace;
mod trampoline;
mod typed;
mod unset;
mod unwind;
mod warm;

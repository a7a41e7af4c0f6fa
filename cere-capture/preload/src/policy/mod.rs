//! What is wanted of a run, and how it is done: profiles, captures and page traces from the probes, signals and system calls to
//! the written results. [`entry`] is the only way in.

mod all_open;
mod beside;
mod calls;
mod capture;
mod cause;
mod conflict;
mod elsewhere;
mod ending;
mod entry;
mod halt;
mod hooks;
mod kept;
mod locks;
mod mark;
mod mpi;
mod needs;
mod openmp;
mod outermost;
mod patience;
mod plan;
mod profile;
mod refusal;
mod regions;
mod register;
mod state;
mod stopping;
mod stub;
mod surroundings;
mod targets;
mod team;
mod threads;
mod windows;
mod write;

//! Starts processes and waits for them.
//!
//! | module | what |
//! |---|---|
//! | [`wait`] | the end of a child, or a time limit |
//! | [`inherited`] | the signals that this command's parent left ignored or blocked |
//! | [`supervise`] | a command in a process group of its own, with the terminal and the signals passed on |

pub mod inherited;
pub mod supervise;
pub mod wait;

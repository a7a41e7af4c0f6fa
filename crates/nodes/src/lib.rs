//! Spreads work over machines: one protocol of chunks for this machine, hosts by ssh, a Slurm cluster and HyperQueue.
//!
//! A [`Job`] is a directory with tasks in chunks. [`run`] starts a [`Worker`] for every chunk that has no result yet; the
//! worker calls [`work`], which writes the result to a file of its own and gives it its name when it is whole. So a lost node
//! costs its chunk, a second call goes on, and nothing is done twice.
//!
//! | module | what |
//! |---|---|
//! | `job` | the directory: tasks, results, the lock |
//! | `record` | what its files hold |
//! | `files` | files that are there whole or not at all |
//! | `work` | the worker's side |
//! | `place` | where work runs, and the options of each place |
//! | `worker` | the command that does a chunk, and its events |
//! | `run` | what is common to the places |
//! | `show` | the same with progress for people |
//! | `local`, `ssh`, `slurm`, `hq` | one place each |
//! | `queue` | chunks that wait for a host |
//! | `watch` | what is common to schedulers |

mod error;
mod files;
mod host;
mod hq;
mod job;
mod local;
mod place;
mod queue;
mod record;
mod run;
mod show;
mod slurm;
mod ssh;
mod watch;
mod work;
mod worker;

pub use error::{NoPlace, NodesError, Result};
pub use host::host_name;
pub use job::{Job, Outcome};
pub use place::{Host, HqOptions, Place, SlurmOptions, SshOptions};
pub use record::JOB_VERSION;
pub use run::{Rest, run};
pub use show::run_all;
pub use work::work;
pub use worker::{Event, Worker};

//! Where work is done: `--on` and what goes with it.

use anyhow::{Context, Result};
use cere_catalogue::bail;
use cere_nodes::{Place, Worker};
use std::path::PathBuf;

/// Machines for the chunks of a job.
#[derive(Debug, Clone, clap::Args)]
pub struct Nodes {
    /// Where replays run: local, ssh:HOST,..., slurm or hq [default: here]
    #[arg(long, value_name = "WHERE")]
    on: Option<String>,
    /// Replays in a chunk, which one machine does at a time [default: 16; of a search 10 evaluations]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    chunk: Option<u32>,
    /// With --on slurm: the partition
    #[arg(long, value_name = "NAME")]
    partition: Option<String>,
    /// With --on slurm: the account
    #[arg(long, value_name = "NAME")]
    account: Option<String>,
    /// With --on slurm: the limit of a chunk, as sbatch takes it
    #[arg(long, value_name = "TIME")]
    time_limit: Option<String>,
    /// With --on slurm: most chunks at a time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    at_once: Option<u32>,
    /// One more argument of ssh, sbatch or `hq submit`; may be given several times
    #[arg(long, value_name = "ARGUMENT", allow_hyphen_values = true)]
    node_option: Vec<String>,
    /// With --on ssh: cere on the hosts [default: found by their PATH]
    #[arg(long, value_name = "FILE")]
    remote_cere: Option<PathBuf>,
}

impl Nodes {
    /// The place.
    pub fn place(&self) -> Result<Place> {
        let mut place = Place::parse(self.on.as_deref().unwrap_or("local")).context("--on")?;
        let of_slurm = [&self.partition, &self.account, &self.time_limit];
        let slurm = of_slurm.iter().any(|o| o.is_some()) || self.at_once.is_some();
        let extra = self.node_option.clone();
        match &mut place {
            Place::Slurm(options) => {
                options.partition.clone_from(&self.partition);
                options.account.clone_from(&self.account);
                options.time_limit.clone_from(&self.time_limit);
                options.parallel = self.at_once.map(|n| n as usize);
                options.extra = extra;
            }
            _ if slurm => {
                bail!(
                    E8001,
                    "--partition, --account, --time-limit and --at-once go with --on slurm"
                )
            }
            Place::Ssh(options) => {
                options.options = extra;
                options.program.clone_from(&self.remote_cere);
            }
            _ if self.remote_cere.is_some() => {
                bail!(E8001, "--remote-cere goes with --on ssh:HOST")
            }
            Place::Hq(options) => options.extra = extra,
            Place::Local if !extra.is_empty() => {
                bail!(E8001, "--node-option goes with --on ssh:HOST, slurm or hq")
            }
            Place::Local => {}
        }
        Ok(place)
    }

    /// Whether a place was named.
    pub fn given(&self) -> bool {
        self.on.is_some()
    }

    /// Replays in a chunk, if that was said.
    pub fn chunk(&self) -> Option<usize> {
        self.chunk.map(|n| n as usize)
    }

    /// This command as a worker; `exclusive`: its chunks are timed.
    pub fn worker(&self, exclusive: bool) -> Result<Worker> {
        Ok(Worker {
            program: std::env::current_exe().context("cannot find this command's own file")?,
            arguments: vec!["work".to_owned()],
            exclusive,
        })
    }
}

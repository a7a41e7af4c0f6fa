//! Where work is done: `--on` and what goes with it.

use anyhow::{Context, Result, bail};
use cere_nodes::{Place, Worker};

/// Machines for the chunks of a job.
#[derive(Debug, Clone, clap::Args)]
pub struct Nodes {
    /// Where replays run: local, ssh:HOST,..., slurm or hq
    #[arg(long, value_name = "WHERE", default_value = "local")]
    on: String,
    /// Replays of a chunk
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    chunk: u32,
    /// With --on slurm or hq: an option of sbatch or `hq submit`, such as --partition=zen5; may be given several times. With ssh: of
    /// ssh
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    submit: Vec<String>,
    /// With --on slurm: chunks at a time, at most
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    at_once: usize,
    /// With --on ssh: the command there
    #[arg(long, value_name = "COMMAND", default_value = "cere")]
    remote: String,
}

impl Nodes {
    /// The place.
    pub fn place(&self) -> Result<Place> {
        let mut place = Place::parse(&self.on).context("--on")?;
        match &mut place {
            Place::Ssh(ssh) => {
                ssh.options.clone_from(&self.submit);
                ssh.remote.clone_from(&self.remote);
            }
            Place::Slurm(slurm) => {
                slurm.options.clone_from(&self.submit);
                slurm.at_once = self.at_once;
            }
            Place::Hq(hq) => hq.options.clone_from(&self.submit),
            Place::Local if !self.submit.is_empty() => {
                bail!("--submit goes with --on ssh, slurm or hq");
            }
            Place::Local => {}
        }
        Ok(place)
    }

    /// Replays of a chunk.
    pub fn per_chunk(&self) -> usize {
        self.chunk as usize
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

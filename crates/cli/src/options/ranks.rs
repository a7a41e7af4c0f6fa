//! `--rank` and `--process-key`: which process of a parallel program is meant.

use anyhow::Result;
use cere_capture::capture::Ranks;
use cere_capture::profile::Which;
use cere_catalogue::bail;
use cere_format::rank;
use cere_store::build::image::Program;

/// The processes of a parallel program.
#[derive(clap::Args, Debug, Clone)]
pub struct RankOptions {
    /// Ranks of a parallel program: `slowest` (the one with the most time in regions), `all`, or a list: `0,3`
    #[arg(long = "rank", value_name = "RANKS", default_value = "slowest", value_parser = ranks)]
    pub ranks: Ranks,
    /// Environment variable that distinguishes the processes of a run, where no rank of MPI or Slurm does
    #[arg(long, value_name = "VAR", value_parser = variable)]
    pub process_key: Option<String>,
}

impl RankOptions {
    /// The one process that a profile is of.
    pub fn one(&self) -> Result<Which> {
        match &self.ranks {
            Ranks::Slowest => Ok(Which::Main),
            Ranks::These(ranks) if ranks.len() == 1 => Ok(Which::Rank(ranks[0].clone())),
            _ => bail!(
                E8002,
                "a profile shows all ranks, and has the invocations of one: name one rank, or leave out --rank for the slowest"
            ),
        }
    }

    /// Has `program` tell its processes as the user says.
    pub fn set_key(&self, program: &mut Program) {
        if self.process_key.is_some() {
            program.process_key.clone_from(&self.process_key);
        }
    }
}

fn ranks(text: &str) -> Result<Ranks, String> {
    match text {
        "slowest" => Ok(Ranks::Slowest),
        "all" => Ok(Ranks::All),
        list => {
            let mut ranks: Vec<String> =
                list.split(',').map(|rank| rank.trim().to_owned()).collect();
            if ranks.iter().any(String::is_empty) {
                return Err("wanted: `slowest`, `all`, or ranks with commas between them".into());
            }
            ranks.sort_by(|a, b| rank::order(a, b));
            ranks.dedup();
            Ok(Ranks::These(ranks))
        }
    }
}

fn variable(name: &str) -> Result<String, String> {
    match name.is_empty() || name.contains('=') {
        true => Err("wanted: the name of an environment variable".into()),
        false => Ok(name.to_owned()),
    }
}

//! Where a job's chunks are done.

use anyhow::{Result, bail, ensure};
use std::path::PathBuf;

/// A place with machines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// This machine.
    Local,
    /// Hosts that `ssh` knows.
    Ssh(Ssh),
    /// A Slurm cluster.
    Slurm(Slurm),
    /// HyperQueue.
    Hq(Hq),
}

/// Hosts by ssh.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ssh {
    /// `[USER@]HOST[:PORT]`.
    pub hosts: Vec<String>,
    /// The command there.
    pub remote: String,
    /// More options of ssh.
    pub options: Vec<String>,
}

/// How to submit to Slurm.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Slurm {
    /// More options of `sbatch`, such as `--partition=zen5`.
    pub options: Vec<String>,
    /// Chunks at a time, at most; 0: no bound.
    pub at_once: usize,
}

/// How to submit to HyperQueue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hq {
    /// More options of `hq submit`.
    pub options: Vec<String>,
}

/// What does a chunk: the directory of the job and the number of the chunk come after its arguments.
#[derive(Debug, Clone)]
pub struct Worker {
    /// The command, as a file here; on other hosts see [`Ssh::remote`].
    pub program: PathBuf,
    /// Its first arguments.
    pub arguments: Vec<String>,
    /// Whether chunks are timed, so that nothing else may run on their machine.
    pub exclusive: bool,
}

impl Place {
    /// The place that `text` names: `local`, `ssh:HOST,...`, `slurm`, `hq`.
    ///
    /// # Errors
    /// It is none of these, or names no host.
    pub fn parse(text: &str) -> Result<Self> {
        if let Some(hosts) = text.strip_prefix("ssh:") {
            let hosts: Vec<String> = hosts.split(',').map(str::to_owned).collect();
            for host in &hosts {
                let plain = !host.is_empty()
                    && !host.starts_with('-')
                    && !host.contains(|c: char| c.is_whitespace() || c.is_control());
                ensure!(
                    plain,
                    "ssh:HOST,... names the host `{host}`, which cannot be one"
                );
            }
            return Ok(Self::Ssh(Ssh {
                hosts,
                remote: "cere".to_owned(),
                options: Vec::new(),
            }));
        }
        Ok(match text {
            "local" => Self::Local,
            "slurm" => Self::Slurm(Slurm::default()),
            "hq" => Self::Hq(Hq::default()),
            other => bail!("`{other}` is none of local, ssh:HOST,..., slurm, hq"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        assert_eq!(Place::parse("local").unwrap(), Place::Local);
        let Place::Ssh(ssh) = Place::parse("ssh:a,b:2222,u@c").unwrap() else {
            panic!("no hosts");
        };
        assert_eq!(ssh.hosts, ["a", "b:2222", "u@c"]);
        for bad in [
            "",
            "ssh",
            "ssh:",
            "ssh:a,",
            "ssh:-oProxyCommand=x",
            "ssh:a b",
            "pbs",
        ] {
            assert!(Place::parse(bad).is_err(), "{bad}");
        }
    }
}

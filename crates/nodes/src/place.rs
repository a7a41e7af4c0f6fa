//! Where work runs, and the options of each place.

use crate::error::{NoPlace, NodesError, Result};
use std::path::PathBuf;
use std::time::Duration;

/// Where the chunks of a job run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// This machine, one chunk at a time.
    Local,
    /// Other machines, one chunk at a time on each.
    Ssh(SshOptions),
    /// A Slurm cluster that shares the job's directory with this machine.
    Slurm(SlurmOptions),
    /// The HyperQueue server of this user; its workers share the job's directory with this machine.
    Hq(HqOptions),
}

/// What ssh needs to know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SshOptions {
    /// The machines, at least one.
    pub hosts: Vec<Host>,
    /// More arguments of each `ssh`, before the host: they win over those of this crate.
    pub options: Vec<String>,
    /// The worker's program on the hosts; none: the file name of the one here, found by the host's `PATH`.
    pub program: Option<PathBuf>,
}

/// A machine that ssh reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// What `ssh` takes: a name, an address, an alias of the configuration, `USER@` before it or not.
    pub name: String,
    /// The port, where it is not that of the configuration.
    pub port: Option<u16>,
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.port {
            Some(port) if self.name.contains(':') => write!(f, "[{}]:{port}", self.name),
            Some(port) => write!(f, "{}:{port}", self.name),
            None => write!(f, "{}", self.name),
        }
    }
}

/// What Slurm needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlurmOptions {
    /// The partition; none: the cluster's default.
    pub partition: Option<String>,
    /// The account; none: the user's default.
    pub account: Option<String>,
    /// The limit of one chunk, in Slurm's form (`90`: minutes, `1:30:00`); none: the partition's.
    pub time_limit: Option<String>,
    /// Most chunks at a time; none: as many as the cluster starts.
    pub parallel: Option<usize>,
    /// More arguments of `sbatch`.
    pub extra: Vec<String>,
    /// More variables for Slurm's commands, such as `SLURM_CONF`.
    pub environment: Vec<(String, String)>,
    /// How often to look for results. The queue is asked less often as time goes on, at most every 30 s.
    pub poll: Duration,
    /// How long a result may stay away after its chunk left the queue: file systems of clusters show files late.
    pub grace: Duration,
}

impl Default for SlurmOptions {
    fn default() -> Self {
        Self {
            partition: None,
            account: None,
            time_limit: None,
            parallel: None,
            extra: Vec::new(),
            environment: Vec::new(),
            poll: Duration::from_secs(2),
            grace: Duration::from_secs(20),
        }
    }
}

/// What HyperQueue needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HqOptions {
    /// More arguments of `hq submit`.
    pub extra: Vec<String>,
    /// More variables for `hq`, such as `HQ_SERVER_DIR`.
    pub environment: Vec<(String, String)>,
    /// As for [`SlurmOptions`].
    pub poll: Duration,
    /// As for [`SlurmOptions`].
    pub grace: Duration,
}

impl Default for HqOptions {
    fn default() -> Self {
        Self {
            extra: Vec::new(),
            environment: Vec::new(),
            poll: Duration::from_millis(500),
            grace: Duration::from_secs(20),
        }
    }
}

impl Place {
    /// Reads `local`, `ssh:a,b:2222,user@c`, `slurm` or `hq`. An IPv6 address with a port is in brackets.
    ///
    /// # Errors
    /// [`NodesError::Place`] for anything else.
    pub fn parse(text: &str) -> Result<Self> {
        let failed = |why| NodesError::Place {
            text: text.to_owned(),
            why,
        };
        match text.split_once(':') {
            None if text == "local" => Ok(Self::Local),
            None if text == "slurm" => Ok(Self::Slurm(SlurmOptions::default())),
            None if text == "hq" => Ok(Self::Hq(HqOptions::default())),
            None if text == "ssh" => Err(failed(NoPlace::NoHosts)),
            Some(("ssh", list)) => {
                let hosts = list.split(',').map(|name| host(name).map_err(&failed));
                let hosts = hosts.collect::<Result<Vec<Host>>>()?;
                for (at, host) in hosts.iter().enumerate() {
                    if hosts[..at].contains(host) {
                        return Err(failed(NoPlace::Twice(host.name.clone())));
                    }
                }
                Ok(Self::Ssh(SshOptions {
                    hosts,
                    ..SshOptions::default()
                }))
            }
            Some((kind @ ("local" | "slurm" | "hq"), _)) => {
                Err(failed(NoPlace::TakesNone(kind.to_owned())))
            }
            _ => Err(failed(NoPlace::Unknown)),
        }
    }
}

fn host(text: &str) -> std::result::Result<Host, NoPlace> {
    let text = text.trim();
    let (name, port) = match text.rsplit_once(':') {
        // More than one colon, and no brackets: an address.
        Some((before, _)) if before.contains(':') && !before.ends_with(']') => (text, None),
        Some((before, port)) => (before, Some(port)),
        None => (text, None),
    };
    let port = match port {
        Some(port) => match port.parse() {
            Ok(port) if port != 0 => Some(port),
            _ => return Err(NoPlace::Port(port.to_owned())),
        },
        None => None,
    };
    let name = name.replace(['[', ']'], "");
    // A name that begins with a dash would be an option of ssh.
    let host = name.rsplit('@').next().unwrap_or_default();
    if host.is_empty() || name.starts_with(['-', '@']) || host.starts_with('-') {
        return Err(NoPlace::Host(text.to_owned()));
    }
    if name.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(NoPlace::Host(text.to_owned()));
    }
    Ok(Host { name, port })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read() {
        assert_eq!(Place::parse("local").unwrap(), Place::Local);
        assert_eq!(Place::parse("hq").unwrap(), Place::Hq(HqOptions::default()));
        assert!(matches!(Place::parse("slurm").unwrap(), Place::Slurm(_)));
        let Place::Ssh(ssh) = Place::parse("ssh:a,b:2222,user@c,::1,u@[fe80::1]:23").unwrap()
        else {
            panic!("not ssh")
        };
        let found: Vec<_> = ssh
            .hosts
            .iter()
            .map(|h| (h.name.as_str(), h.port))
            .collect();
        let wanted = [
            ("a", None),
            ("b", Some(2222)),
            ("user@c", None),
            ("::1", None),
            ("u@fe80::1", Some(23)),
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn what_is_no_place_is_named() {
        for (text, why) in [
            ("", "unknown"),
            ("pbs", "unknown"),
            ("pbs:a", "unknown"),
            ("ssh", "needs hosts"),
            ("ssh:", "`` is no host"),
            ("ssh:a,,b", "`` is no host"),
            ("ssh:a:0", "`0` is no port"),
            ("ssh:a:x", "`x` is no port"),
            ("ssh:-oProxyCommand=x", "is no host"),
            ("ssh:user@-x", "is no host"),
            ("ssh:a b", "is no host"),
            ("ssh:a,b,a", "a is there twice"),
            ("slurm:a", "slurm takes no hosts"),
        ] {
            let error = Place::parse(text).unwrap_err().to_string();
            assert!(
                error.contains(why) && error.contains("`slurm`"),
                "{text}: {error}"
            );
        }
    }
}

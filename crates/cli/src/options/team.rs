//! How the teams of OpenMP regions are made: their size and where their threads run.

use anyhow::{Context, Result};
use cere_catalogue::{OrCoded, bail, codes, ensure};
use cere_replay::Team;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Settings of a replay's OpenMP runtime.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct TeamOptions {
    /// Threads of the teams that an OpenMP region forks, whatever it says itself; as when it was captured if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub threads: Option<u32>,
    #[command(flatten)]
    pub place: Placement,
}

/// Where threads run, and which runtime runs them.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Placement {
    /// Threads close together, far apart, or on these processors in turn: compact, scatter, or a list such as 0,2,4-7
    #[arg(long, value_name = "HOW", conflicts_with_all = ["places", "bind"])]
    affinity: Option<String>,
    /// Places of threads, as in OMP_PLACES: cores, sockets, {0,1},{2,3}
    #[arg(long, value_name = "PLACES")]
    places: Option<String>,
    /// How threads are bound to places, as in OMP_PROC_BIND: close, spread, primary, true, false
    #[arg(long, value_name = "HOW")]
    bind: Option<String>,
    /// Schedule of loops that leave it to the run (schedule(runtime)), as in OMP_SCHEDULE: dynamic,4
    #[arg(long, value_name = "KIND[,CHUNK]")]
    schedule: Option<String>,
    /// Use this library instead of the OpenMP runtime of the capture; it must have the same interface (__kmpc_fork_call)
    #[arg(long, value_name = "FILE")]
    runtime: Option<PathBuf>,
}

/// Processors that this process may run on.
fn processors() -> BTreeSet<u32> {
    // SAFETY: a set of zeros is empty; the call fills it; the numbers are those of the set.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of_val(&set), &mut set);
        let all = 0..libc::CPU_SETSIZE as u32;
        all.filter(|p| libc::CPU_ISSET(*p as usize, &set)).collect()
    }
}

/// A set of processors as text: `0-3,6`.
fn ranges(set: &BTreeSet<u32>) -> String {
    let mut found: Vec<(u32, u32)> = Vec::new();
    for &number in set {
        match found.last_mut() {
            Some(last) if last.1 + 1 == number => last.1 = number,
            _ => found.push((number, number)),
        }
    }
    let words = found.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    words.collect::<Vec<_>>().join(",")
}

fn check_present(wanted: impl IntoIterator<Item = u32>, present: &BTreeSet<u32>) -> Result<()> {
    let missing: BTreeSet<u32> = wanted
        .into_iter()
        .filter(|p| !present.contains(p))
        .collect();
    ensure!(
        missing.is_empty(),
        E5026,
        "processor {} is not there for this process: it may run on {}",
        ranges(&missing),
        ranges(present)
    );
    Ok(())
}

/// Parses a list of processors: `0,2,4-7`.
fn list(text: &str) -> Result<Vec<u32>> {
    let mut found = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| {
            let text = text.trim();
            text.parse::<u32>().or_coded(codes::E8002, || {
                format!("`{text}` is no number of a processor")
            })
        };
        let (first, last) = (number(first)?, number(last)?);
        ensure!(
            first <= last && last < 1 << 16,
            E8002,
            "`{part}` is no range"
        );
        found.extend(first..=last);
    }
    Ok(found)
}

/// Processors that explicit places name: `{0,1},{2:2}`; intervals of places (`{0,1}:4:2`) as well.
fn explicit(text: &str) -> Result<Vec<u32>> {
    let bad = || format!("`{text}` is no list of places, as {{0,1}},{{2,3}}");
    let interval = |text: &str| -> Result<(u32, u32, i64)> {
        let mut words = text.split(':').map(str::trim);
        let first = words
            .next()
            .and_then(|w| w.parse().ok())
            .with_context(bad)?;
        let count = words.next().map_or(Ok(1), str::parse).with_context(bad)?;
        let stride = words.next().map_or(Ok(1), str::parse).with_context(bad)?;
        ensure!(
            words.next().is_none() && count < 1 << 16,
            E8002,
            "{}",
            bad()
        );
        Ok((first, count, stride))
    };
    let mut found = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let inside = rest
            .trim_start_matches('!')
            .strip_prefix('{')
            .with_context(bad)?;
        let (place, after) = inside.split_once('}').with_context(bad)?;
        let (repeat, after) = match after.strip_prefix(':') {
            Some(after) => {
                let end = after.find(",{").or(after.find(",!")).unwrap_or(after.len());
                (format!("0:{}", &after[..end]), &after[end..])
            }
            None => ("0".to_owned(), after),
        };
        let (_, copies, apart) = interval(&repeat)?;
        for part in place.split(',') {
            let (first, count, stride) = interval(part)?;
            for copy in 0..i64::from(copies) {
                for n in 0..i64::from(count) {
                    let number = i64::from(first) + copy * apart + n * stride;
                    found.push(u32::try_from(number).ok().with_context(bad)?);
                }
            }
        }
        rest = after.trim_start_matches(',').trim();
    }
    Ok(found)
}

fn places(text: &str, present: &BTreeSet<u32>) -> Result<()> {
    const NAMED: [&str; 5] = ["threads", "cores", "ll_caches", "numa_domains", "sockets"];
    let name = text.split('(').next().unwrap_or_default().trim();
    if NAMED.contains(&name) {
        return Ok(());
    }
    ensure!(
        text.contains('{'),
        E8004,
        "`{text}` is none of {} and no list of places, as {{0,1}},{{2,3}}",
        NAMED.join(", ")
    );
    check_present(explicit(text)?, present)
}

fn schedule(text: &str) -> Result<()> {
    let kind = text.rsplit(':').next().unwrap_or_default();
    let (kind, chunk) = match kind.split_once(',') {
        Some((kind, chunk)) => (kind, Some(chunk)),
        None => (kind, None),
    };
    let chunk = chunk.is_none_or(|c| c.trim().parse::<u32>().is_ok_and(|c| c > 0));
    let known = ["static", "dynamic", "guided", "auto"].contains(&kind.trim());
    ensure!(
        known && chunk,
        E8004,
        "`{text}` is no schedule: static, dynamic, guided or auto, and a chunk size behind a comma"
    );
    Ok(())
}

impl Placement {
    /// The settings of the OpenMP runtime, checked against this machine.
    pub fn team(&self, threads: Option<u32>) -> Result<Team> {
        let present = processors();
        let mut environment = Vec::new();
        let mut tell =
            |name: &str, value: &str| environment.push((name.to_owned(), value.to_owned()));
        match self.affinity.as_deref() {
            None => {}
            Some(how @ ("compact" | "scatter")) => {
                tell("KMP_AFFINITY", &format!("granularity=fine,{how}"));
            }
            Some(text) => {
                let numbers = list(text)
                    .or_coded(codes::E8004, || "--affinity is compact, scatter or a list")?;
                check_present(numbers.iter().copied(), &present).context("--affinity")?;
                let words: Vec<String> = numbers.iter().map(u32::to_string).collect();
                let proclist = words.join(",");
                tell(
                    "KMP_AFFINITY",
                    &format!("granularity=fine,proclist=[{proclist}],explicit"),
                );
            }
        }
        if let Some(text) = &self.places {
            places(text, &present).context("--places")?;
            tell("OMP_PLACES", text);
        }
        if let Some(text) = &self.bind {
            let known = ["true", "false", "master", "primary", "close", "spread"];
            if !text.split(',').all(|word| known.contains(&word.trim())) {
                bail!(E8004, "--bind: `{text}` is none of {}", known.join(", "));
            }
            tell("OMP_PROC_BIND", text);
        }
        if let Some(text) = &self.schedule {
            schedule(text).context("--schedule")?;
            tell("OMP_SCHEDULE", text);
        }
        if let Some(file) = &self.runtime {
            ensure!(
                file.is_file(),
                E8005,
                "--runtime: there is no file {}",
                file.display()
            );
        }
        let runtime = self
            .runtime
            .as_ref()
            .map(std::fs::canonicalize)
            .transpose()?;
        Ok(Team {
            threads,
            environment,
            runtime,
        })
    }
}

impl TeamOptions {
    /// As [`Placement::team`].
    pub fn team(&self) -> Result<Team> {
        self.place.team(self.threads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_by_number() {
        assert_eq!(list("0,2,4-6").unwrap(), [0, 2, 4, 5, 6]);
        for bad in ["", "a", "3-1", "1,,2", "-1"] {
            assert!(list(bad).is_err(), "{bad}");
        }
        let present: BTreeSet<u32> = [0, 1, 2, 5].into();
        assert_eq!(ranges(&present), "0-2,5");
        let error = check_present([0, 3, 4, 9], &present)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("processor 3-4,9") && error.contains("0-2,5"),
            "{error}"
        );
    }

    #[test]
    fn places_by_number() {
        assert_eq!(explicit("{0,1},{2:2}").unwrap(), [0, 1, 2, 3]);
        assert_eq!(explicit("{0}:3:2").unwrap(), [0, 2, 4]);
        assert_eq!(explicit("{0,1}:2:4,{9}").unwrap(), [0, 4, 1, 5, 9]);
        for bad in ["{0", "0}", "{a}", "{0}:x", "{0};{1}"] {
            assert!(explicit(bad).is_err(), "{bad}");
        }
        let present: BTreeSet<u32> = [0, 1].into();
        assert!(places("cores(2)", &present).is_ok() && places("{0},{1}", &present).is_ok());
        assert!(
            places("{0},{7}", &present)
                .unwrap_err()
                .to_string()
                .contains("processor 7")
        );
        assert!(places("nonsense", &present).is_err());
    }

    #[test]
    fn schedules() {
        for good in ["static", "dynamic,4", "monotonic:guided,8", "auto"] {
            assert!(schedule(good).is_ok(), "{good}");
        }
        for bad in ["", "fast", "dynamic,0", "dynamic,x"] {
            assert!(schedule(bad).is_err(), "{bad}");
        }
    }
}

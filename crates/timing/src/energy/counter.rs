//! Counters and what they read.

use super::error::EnergyError;
use super::zones::{ENV_POWERCAP, POWERCAP, Zone, text, zones};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Seconds between two values of a counter, about.
pub const STEP: f64 = 1e-3;

/// Seconds of work from which on the steps at its two ends are at most 1 % of its energy.
pub const ENOUGH: f64 = 100.0 * STEP;

/// The counter of a zone, in microjoules.
#[derive(Debug)]
pub struct Counter {
    /// The zone: `package-0`, `package-0 dram`.
    pub name: String,
    /// Where it begins again at 0.
    pub range: u64,
    file: File,
    path: PathBuf,
    root: PathBuf,
}

/// What counters read at one moment, in microjoules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading(Vec<u64>);

/// Counters that are added up.
#[derive(Debug)]
pub struct Counters(Vec<Counter>);

impl Counter {
    /// One that another process has opened; `range` as there.
    pub fn inherited(name: &str, range: u64, file: File) -> Self {
        Self {
            name: name.to_owned(),
            range,
            file,
            path: PathBuf::from(name),
            root: PathBuf::from(POWERCAP),
        }
    }

    fn open(root: &Path, zone: &Path, name: String) -> Result<Self, EnergyError> {
        let (path, limit) = (zone.join("energy_uj"), zone.join("max_energy_range_uj"));
        let file = File::open(&path).map_err(|source| EnergyError::of(root, &path, source))?;
        let text = text(root, &limit)?;
        let range = text.parse().ok().filter(|range| *range > 0);
        let range = range.ok_or_else(|| EnergyError::Garbage {
            path: limit,
            text: start(&text),
            wanted: "a number of microjoules above 0".to_owned(),
        })?;
        Ok(Self {
            name,
            range,
            file,
            path,
            root: root.to_owned(),
        })
    }

    /// Its descriptor, for a process that inherits it.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The value now, in microjoules.
    ///
    /// # Errors
    /// The file cannot be read, or holds no number up to the range.
    pub fn read(&self) -> Result<u64, EnergyError> {
        let mut bytes = [0; 64];
        let length = self.file.read_at(&mut bytes, 0);
        let length = length.map_err(|source| EnergyError::of(&self.root, &self.path, source))?;
        let text = String::from_utf8_lossy(&bytes[..length]);
        let value = text.trim().parse().ok().filter(|v| *v <= self.range);
        value.ok_or_else(|| EnergyError::Garbage {
            path: self.path.clone(),
            text: start(text.trim()),
            wanted: format!("a number of microjoules up to {}", self.range),
        })
    }
}

/// As much of `text` as a message shows.
fn start(text: &str) -> String {
    text.chars().take(30).collect()
}

impl Counters {
    /// Those of this machine, or of the tree that [`ENV_POWERCAP`] names.
    ///
    /// # Errors
    /// There are none, or they cannot be read.
    pub fn find() -> Result<Self, EnergyError> {
        let root = std::env::var_os(ENV_POWERCAP);
        Self::under(Path::new(root.as_deref().unwrap_or(POWERCAP.as_ref())))
    }

    /// Those of the zones in a directory such as [`POWERCAP`]; all can be read.
    ///
    /// # Errors
    /// As [`Counters::find`].
    pub fn under(root: &Path) -> Result<Self, EnergyError> {
        let open = |zone: Zone| Counter::open(root, &zone.path, zone.name);
        let counters: Result<Vec<Counter>, _> = zones(root)?.into_iter().map(open).collect();
        let counters = Self(counters?);
        counters.read()?;
        Ok(counters)
    }

    /// Of counters that are there.
    pub fn of(counters: Vec<Counter>) -> Self {
        Self(counters)
    }

    /// Each of them.
    pub fn all(&self) -> &[Counter] {
        &self.0
    }

    /// Their names, with a plus sign in between.
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.0.iter().map(|c| c.name.as_str()).collect();
        names.join(" + ")
    }

    /// What they read now.
    ///
    /// # Errors
    /// One cannot be read.
    pub fn read(&self) -> Result<Reading, EnergyError> {
        let all: Result<_, _> = self.0.iter().map(Counter::read).collect();
        Ok(Reading(all?))
    }

    /// Joules between two readings, the first before the second by less than a counter takes to begin again: minutes at least.
    pub fn joules(&self, from: &Reading, to: &Reading) -> f64 {
        let each = self.0.iter().zip(from.0.iter().zip(&to.0));
        let each = each.map(|(counter, (from, to))| match to.checked_sub(*from) {
            Some(passed) => passed,
            None => counter.range.saturating_sub(*from) + to,
        });
        each.map(|microjoules| microjoules as f64 * 1e-6).sum()
    }

    /// Joules from `from` until now, of `seconds` of work.
    ///
    /// # Errors
    /// A counter cannot be read; none moved though the work took many of their steps.
    pub fn since(&self, from: &Reading, seconds: f64) -> Result<f64, EnergyError> {
        let joules = self.joules(from, &self.read()?);
        match joules > 0.0 || seconds < ENOUGH / 2.0 {
            true => Ok(joules),
            false => Err(self.still(seconds)),
        }
    }

    /// The error that they did not move in so many seconds of work.
    pub fn still(&self, seconds: f64) -> EnergyError {
        EnergyError::Still {
            names: self.names(),
            seconds,
        }
    }
}

#[cfg(test)]
mod tests;

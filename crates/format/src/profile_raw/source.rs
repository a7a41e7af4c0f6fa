//! The file of a raw profile, and its clock.

use super::layout::*;
use crate::FormatError;
use std::path::{Path, PathBuf};

/// The file of a raw profile.
pub struct Reader {
    file: std::fs::File,
    path: PathBuf,
}

impl Reader {
    /// Opens the file.
    pub fn open(path: &Path) -> Result<Self, FormatError> {
        let file = std::fs::File::open(path).map_err(FormatError::io("open", path))?;
        let path = path.to_owned();
        Ok(Self { file, path })
    }

    /// So many bytes from an offset on.
    pub fn words(&self, offset: usize, bytes: usize) -> Result<Vec<u8>, FormatError> {
        use std::os::unix::fs::FileExt;
        let mut data = vec![0; bytes];
        let mut done = 0;
        while done < bytes {
            match self.file.read_at(&mut data[done..], (offset + done) as u64) {
                Ok(0) => {
                    return Err(FormatError::TooShort {
                        what: "the raw profile",
                        offset: offset as u64,
                        needed: bytes as u64,
                        available: done as u64,
                    });
                }
                Ok(n) => done += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(FormatError::io("read", &self.path)(e)),
            }
        }
        Ok(data)
    }

    /// A count of entries, of which so many fit.
    pub fn count(
        &self,
        what: &'static str,
        count: u64,
        limit: usize,
    ) -> Result<usize, FormatError> {
        match usize::try_from(count) {
            Ok(n) if n <= limit => Ok(n),
            _ => Err(FormatError::Invalid {
                what: self.path.display().to_string(),
                field: what,
                value: count.to_string(),
                why: "its table holds fewer",
            }),
        }
    }
}

/// The word at an offset; 0 beyond the end.
pub fn u64_at(data: &[u8], offset: usize) -> u64 {
    data.get(offset..offset + 8)
        .map_or(0, |b| u64::from_le_bytes(b.try_into().unwrap_or([0; 8])))
}

/// The same for half a word.
pub fn u32_at(data: &[u8], offset: usize) -> u32 {
    data.get(offset..offset + 4)
        .map_or(0, |b| u32::from_le_bytes(b.try_into().unwrap_or([0; 4])))
}

/// A field of a structure that begins at an offset.
macro_rules! word {
    ($data:expr, $base:expr, $type:ty, $field:ident) => {
        $crate::profile_raw::source::u64_at($data, $base + std::mem::offset_of!($type, $field))
    };
}
pub(super) use word;

/// The run's cycles and what they are in seconds.
pub struct Clock {
    /// Of the counter when the profile began.
    pub start: u64,
    /// When it ended.
    pub end: u64,
    /// Cycles of the counter a second.
    pub hz: f64,
    /// Cycles of the run, without those of the probes.
    pub total: f64,
    /// Cycles of regions themselves.
    pub own: u64,
    /// Cycles of a probe inside what it measures, and outside.
    pub probe: (f64, f64),
}

impl Clock {
    /// `last` is the counter at the last probe of any thread.
    pub fn read(header: &[u8], last: u64) -> Self {
        let start = word!(header, 0, RawHeader, start_cycles);
        let ended = word!(header, 0, RawHeader, end_cycles);
        let end = match ended {
            0 => last.max(start),
            end => end,
        };
        let inside = f64::from_bits(word!(header, 0, RawHeader, probe_inside));
        let outside = f64::from_bits(word!(header, 0, RawHeader, probe_outside));
        let mut hz = f64::from_bits(word!(header, 0, RawHeader, tsc_hz));
        let began = word!(header, 0, RawHeader, start_nanoseconds);
        let elapsed = word!(header, 0, RawHeader, end_nanoseconds).saturating_sub(began);
        if elapsed > 50_000_000 && ended > start {
            hz = (end - start) as f64 * 1e9 / elapsed as f64;
        }
        Self {
            start,
            end,
            hz,
            total: 1.0,
            own: 0,
            probe: (inside, outside),
        }
    }

    /// The first thread has taken so many pairs of probes, and so many cycles in regions themselves; others it lost to the profile.
    pub fn of_first(mut self, pairs: u64, own: u64, lost: u64) -> Self {
        let passed = self.end.saturating_sub(self.start).saturating_sub(lost) as f64;
        let total = (passed - pairs as f64 * (self.probe.0 + self.probe.1)).max(1.0);
        // The probe's cost is known to a few cycles only: many short regions may add up to more than the remaining time.
        self.total = total.max(own as f64);
        self.own = own;
        self
    }

    /// Cycles in seconds.
    pub fn seconds(&self, cycles: u64) -> f64 {
        cycles as f64 / self.hz
    }
}

//! Profiles in the formats of other tools.
//!
//! | module | format |
//! |---|---|
//! | `stacks` | chains of regions with their times: what most formats hold |
//! | `folded` | folded stacks, and the text of `perf script`, for flame graphs |
//! | `speedscope` | speedscope's JSON |
//! | `chrome` | Chrome's trace events, which Perfetto reads |
//! | `hatchet` | literals of Hatchet and Thicket |
//! | `series` | Prometheus' text, and invocations as CSV |

mod chrome;
mod folded;
mod hatchet;
mod series;
mod speedscope;
mod stacks;
#[cfg(test)]
mod tests;

use cere_format::profile::Profile;

/// A format of another tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Folded stacks in microseconds of self time: flamegraph.pl, inferno.
    Folded,
    /// speedscope's JSON.
    Speedscope,
    /// Chrome's trace events of the first thread's kept invocations: Perfetto, chrome://tracing.
    Chrome,
    /// The text that `perf script` prints, a sample for each ten-thousandth of the run.
    Perf,
    /// A list of trees for `hatchet.GraphFrame.from_literal`, as JSON.
    Hatchet,
    /// Prometheus' text format.
    Prometheus,
    /// The first thread's kept invocations as CSV, a line each.
    Series,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Folded,
        Self::Speedscope,
        Self::Chrome,
        Self::Perf,
        Self::Hatchet,
        Self::Prometheus,
        Self::Series,
    ];

    /// The one of this name, if there is one.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Folded => "folded",
            Self::Speedscope => "speedscope",
            Self::Chrome => "chrome",
            Self::Perf => "perf",
            Self::Hatchet => "hatchet",
            Self::Prometheus => "prometheus",
            Self::Series => "series",
        }
    }
}

/// The profile as a text in `format`.
pub fn text(profile: &Profile, format: Format) -> String {
    match format {
        Format::Folded => folded::text(profile),
        Format::Perf => folded::perf_script(profile),
        Format::Speedscope => speedscope::text(profile),
        Format::Chrome => chrome::text(profile),
        Format::Hatchet => hatchet::text(profile),
        Format::Prometheus => series::prometheus(profile),
        Format::Series => series::csv(profile),
    }
}

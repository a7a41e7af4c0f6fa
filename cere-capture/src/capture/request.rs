//! What a capture is asked for, and what it gives.

use super::choose::Skipped;
use super::traces::Tracing;
use crate::launch::Output;
use cere_format::store::Store;
use cere_store::codelets::Listed;
use cere_system::events::Events;
use std::process::ExitStatus;

/// What to capture, and how.
pub struct Request<'a> {
    /// The store; its lock is taken.
    pub store: &'a Store,
    /// Program and arguments as given.
    pub command: &'a [String],
    /// Names, globs or unique prefixes of regions; empty for those that matter.
    pub patterns: &'a [String],
    /// Invocations, rising, from 1; `None` for the representatives.
    pub invocations: Option<Vec<u64>>,
    /// The thread that is captured, by its number among those that the program starts; 0: the first one; `None`: that, or where it
    /// does not enter a region the one with most time in it.
    pub thread: Option<u64>,
    /// The variable that tells processes from one another; `None`: the launchers' own, or the one of the profile.
    pub process_key: Option<String>,
    /// The processes of a parallel program that are captured.
    pub ranks: Ranks,
    /// Whether to skip what the store has and what could not be captured before.
    pub missing: bool,
    /// How pages are traced before captured invocations; `None` for no traces.
    pub tracing: Option<Tracing>,
    /// Seconds after which a run is killed.
    pub timeout: Option<f64>,
    /// Runs for the times in vivo; `None` for the number of [`crate::profile::sufficient_runs`].
    pub runs: Option<u32>,
    /// Where the output of the first run goes.
    pub output: Output,
    /// What is done.
    pub events: &'a Events,
}

/// Which processes of a parallel program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ranks {
    /// The one with the most time in regions. For a program without ranks, its own.
    Slowest,
    /// All that have a rank.
    All,
    /// Those of these ranks.
    These(Vec<String>),
}

/// The result of a capture.
pub struct Taken {
    /// New codelets.
    pub codelets: Vec<Listed>,
    /// Regions and invocations without one, and why.
    pub skipped: Vec<Skipped>,
    /// Codelets without a time in vivo, and why.
    pub untimed: Vec<String>,
    /// What became of other codelets.
    pub notes: Vec<String>,
    /// How it ended.
    pub end: End,
}

/// How a capture ended.
pub enum End {
    /// The store has all codelets that can be had.
    Complete,
    /// No region matters.
    Nothing {
        /// Number of regions that ran in threads other than the first alone, which are not captured.
        elsewhere: usize,
    },
    /// The program ran.
    Ran {
        /// How its first run ended.
        status: ExitStatus,
        /// Why not all needed runs came to their end, if so.
        cut: Option<String>,
        /// Whether a capture that should have become a codelet was lost.
        lost: bool,
    },
}

impl Taken {
    /// Both: of the ends the one that is farther from success.
    pub(super) fn and(mut self, mut other: Self) -> Self {
        let far = |end: &End| match end {
            End::Complete => 0,
            End::Nothing { .. } => 1,
            End::Ran { status, cut, lost } => match (cut, lost, status.success()) {
                (Some(_), _, _) => 5,
                (None, true, _) => 4,
                (None, false, false) => 3,
                (None, false, true) => 2,
            },
        };
        self.codelets.append(&mut other.codelets);
        self.skipped.append(&mut other.skipped);
        self.untimed.append(&mut other.untimed);
        self.notes.append(&mut other.notes);
        if far(&other.end) > far(&self.end) {
            self.end = other.end;
        }
        self
    }

    /// No codelets.
    pub(super) fn nothing(skipped: Vec<Skipped>, end: End) -> Self {
        Self {
            codelets: Vec::new(),
            skipped,
            untimed: Vec::new(),
            notes: Vec::new(),
            end,
        }
    }
}

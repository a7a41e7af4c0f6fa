//! Chunks that wait for a host.

use crate::error::NodesError;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Chunks, and who failed at them. Hosts take from it, each in a thread of its own.
pub struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    waiting: BTreeSet<usize>,
    /// How many chunks are being done.
    busy: usize,
    /// The hosts that failed at a chunk, and the last reason.
    failed: BTreeMap<usize, (BTreeSet<String>, String)>,
    /// What keeps every chunk from being kept here.
    fatal: Option<NodesError>,
}

impl Queue {
    pub fn of(chunks: Vec<usize>) -> Self {
        let state = State {
            waiting: chunks.into_iter().collect(),
            busy: 0,
            failed: BTreeMap::new(),
            fatal: None,
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A chunk at which `host` has not failed; waits while there is none but others may give one back.
    pub fn take(&self, host: &str) -> Option<usize> {
        let mut state = self.lock();
        loop {
            if state.fatal.is_some() {
                return None;
            }
            let fresh = |chunk: &usize| {
                let failed = state.failed.get(chunk);
                !failed.is_some_and(|(hosts, _)| hosts.contains(host))
            };
            let found = state.waiting.iter().copied().find(fresh);
            if let Some(chunk) = found {
                state.waiting.remove(&chunk);
                state.busy += 1;
                return Some(chunk);
            }
            if state.busy == 0 {
                return None;
            }
            let woken = self.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A chunk that was taken has its result.
    pub fn done(&self) {
        self.lock().busy -= 1;
        self.changed.notify_all();
    }

    /// A chunk that was taken has none: another host may do it.
    pub fn give_back(&self, chunk: usize, host: &str, why: &str) {
        let mut state = self.lock();
        state.busy -= 1;
        state.waiting.insert(chunk);
        let failed = state.failed.entry(chunk).or_default();
        failed.0.insert(host.to_owned());
        failed.1 = why.to_owned();
        self.changed.notify_all();
    }

    /// No further chunk is to be begun: its result could not be kept.
    pub fn stop(&self, error: NodesError) {
        let mut state = self.lock();
        state.busy -= 1;
        state.fatal = Some(error);
        self.changed.notify_all();
    }

    /// Why chunks have no result: what was said of them, else `otherwise`.
    ///
    /// # Errors
    /// What it was stopped with.
    pub fn left(self, otherwise: &str) -> Result<BTreeMap<usize, String>, NodesError> {
        let state = self.state.into_inner();
        let state = state.unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = state.fatal {
            return Err(error);
        }
        let reason = |chunk: usize| match state.failed.get(&chunk) {
            Some((_, why)) => (chunk, why.clone()),
            None => (chunk, otherwise.to_owned()),
        };
        Ok(state.waiting.iter().copied().map(reason).collect())
    }
}

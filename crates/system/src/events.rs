//! What libraries say while they work. They hand it over; only the command shows it ([`crate::console::events`]).

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Something that a user may want to know.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// What is done, or was found.
    Note(String),
    /// What is worse than asked for.
    Warning(String),
    /// A step, for those who ask for each.
    Detail(String),
    /// A task has begun. Tasks are numbered.
    Begun(u64, Task),
    /// What the task is at.
    At(u64, String),
    /// So many of the task's steps are done.
    Done(u64, u64),
    /// The task has ended.
    Ended(u64),
}

/// A task that takes a while.
#[derive(Debug, Clone, PartialEq)]
pub enum Task {
    /// A known number of steps.
    Steps {
        /// What is done in each.
        what: &'static str,
        /// How many there are.
        total: u64,
    },
    /// Work of unknown length.
    Work(String),
    /// One run of a program, and the seconds it should take, if known. It may be timed.
    Run(String, Option<f64>),
}

/// Takes events; clones hand them to the same taker.
#[derive(Clone)]
pub struct Events(Arc<Inner>);

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}

struct Inner {
    take: Box<dyn Fn(Event) + Send + Sync>,
    /// Warnings that are given once.
    warned: Mutex<BTreeSet<String>>,
    tasks: AtomicU64,
}

impl Events {
    /// Events that `take` gets, in any thread.
    pub fn new(take: impl Fn(Event) + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner {
            take: Box::new(take),
            warned: Mutex::default(),
            tasks: AtomicU64::new(0),
        }))
    }

    /// Events that nobody gets.
    pub fn ignored() -> Self {
        Self::new(|_| {})
    }

    /// See [`Event::Note`].
    pub fn note(&self, text: impl Into<String>) {
        (self.0.take)(Event::Note(text.into()));
    }

    /// See [`Event::Warning`].
    pub fn warning(&self, text: impl Into<String>) {
        (self.0.take)(Event::Warning(text.into()));
    }

    /// The same, unless it was given before.
    pub fn warning_once(&self, text: &str) {
        let warned = self.0.warned.lock();
        let new = warned
            .unwrap_or_else(PoisonError::into_inner)
            .insert(text.to_owned());
        if new {
            self.warning(text);
        }
    }

    /// See [`Event::Detail`].
    pub fn detail(&self, text: impl Into<String>) {
        (self.0.take)(Event::Detail(text.into()));
    }

    /// Begins a task of `total` steps.
    pub fn steps(&self, what: &'static str, total: u64) -> Progress {
        self.begin(Task::Steps { what, total })
    }

    /// Begins work of unknown length.
    pub fn work(&self, what: impl Into<String>) -> Progress {
        self.begin(Task::Work(what.into()))
    }

    /// Begins a run of a program, which should take `expected` seconds.
    pub fn run(&self, what: impl Into<String>, expected: Option<f64>) -> Progress {
        self.begin(Task::Run(what.into(), expected))
    }

    fn begin(&self, task: Task) -> Progress {
        let number = self.0.tasks.fetch_add(1, Ordering::Relaxed);
        (self.0.take)(Event::Begun(number, task));
        Progress {
            events: self.clone(),
            number,
        }
    }
}

/// A task, until this is dropped.
pub struct Progress {
    events: Events,
    number: u64,
}

impl Progress {
    /// Says what the task is at.
    pub fn at(&self, what: impl Into<String>) {
        (self.events.0.take)(Event::At(self.number, what.into()));
    }

    /// Another step is done.
    pub fn step(&self) {
        (self.events.0.take)(Event::Done(self.number, 1));
    }

    /// So many steps are done.
    pub fn steps(&self, count: u64) {
        (self.events.0.take)(Event::Done(self.number, count));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        (self.events.0.take)(Event::Ended(self.number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_end_and_warnings_are_given_once() {
        let heard: Arc<Mutex<Vec<Event>>> = Arc::default();
        let taken = heard.clone();
        let events = Events::new(move |event| taken.lock().unwrap().push(event));
        let progress = events.steps("replaying", 2);
        progress.at("a loop");
        events.clone().warning_once("late");
        events.warning_once("late");
        progress.step();
        drop(progress);
        let steps = Task::Steps {
            what: "replaying",
            total: 2,
        };
        let expected = [
            Event::Begun(0, steps),
            Event::At(0, "a loop".into()),
            Event::Warning("late".into()),
            Event::Done(0, 1),
            Event::Ended(0),
        ];
        assert_eq!(*heard.lock().unwrap(), expected);
    }
}

//! Output of the commands. A closed pipe ends the output, not the command. Control characters are made visible, because names
//! and messages may come from strangers.
//!
//! | module | what |
//! |---|---|
//! | [`mod@csv`] | tables for programs |
//! | [`keys`] | keys that people press meanwhile |
//! | [`mod@print`] | messages to stderr; text, tables and JSON to stdout |
//! | [`progress`] | bars and spinners |
//! | [`table`] | tables that fit the terminal |
//! | [`short`] | long names of regions and codelets, cut to fit |
//! | [`screen`] | columns of the terminal and of text; long lines folded |
//! | [`number`] | numbers and times with the digits that count |
//! | [`color`] | colours, where they are wanted |

pub use crate::{detail, note, warning};

pub mod color;
pub mod csv;
pub mod keys;
pub mod number;
pub mod print;
pub mod progress;
pub mod screen;
pub mod short;
pub mod table;

use crate::events::{Event, Events, Task};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Events that are shown: messages, and tasks as bars and spinners.
pub fn events() -> Events {
    let tasks = Mutex::new(BTreeMap::new());
    Events::new(move |event| {
        let mut tasks = tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let task = |number| tasks.get(&number);
        match event {
            Event::Note(text) => print::note(&text),
            Event::Warning(text) => warning!("{text}"),
            Event::Detail(text) => print::detail(&text),
            Event::At(number, what) => {
                let _ = task(number).map(|bar: &progress::ProgressBar| bar.set_message(what));
            }
            Event::Done(number, steps) => {
                let _ = task(number).map(|bar| bar.inc(steps));
            }
            Event::Begun(number, task) => {
                let shown = match task {
                    Task::Steps { what, total } => progress::bar(what, total),
                    Task::Work(what) => progress::spinner(what),
                    Task::Run(what, expected) => progress::run(what, expected),
                };
                tasks.insert(number, shown);
            }
            Event::Ended(number) => {
                let _ = tasks.remove(&number).map(|bar| bar.finish_and_clear());
            }
        }
    })
}

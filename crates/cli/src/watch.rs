//! `cere try --watch`: the table renews itself when a source is saved.

use crate::show;
use anyhow::{Context, Result};
use cere_measure::edits::captured::{Captured, Region};
use cere_measure::edits::contents::State;
use cere_measure::edits::given::Sources;
use cere_measure::edits::kept::Best;
use cere_measure::edits::{Edits, Tried, Variant};
use cere_measure::{Effort, Replays, Settings};
use cere_system::console::keys::{self, Key, Keys};
use cere_system::console::{print, progress};
use notify_debouncer_mini::notify::{RecommendedWatcher, RecursiveMode};
use notify_debouncer_mini::{Debouncer, new_debouncer};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// What is tried again and again.
pub struct Watched<'a> {
    pub replays: &'a Replays<'a>,
    pub captured: &'a Captured,
    pub settings: Settings,
    pub effort: Effort,
    /// The sources as they are, with flags and names.
    pub variant: Variant,
    pub json: bool,
}

/// What wakes the command.
enum Wake {
    /// Something was written beside the sources.
    Saved,
    /// Keys and signals.
    Key(Key),
}

/// A variant that the next ones are compared with.
struct Baseline {
    variant: Variant,
    /// Holds its files.
    _tree: tempfile::TempDir,
}

/// Several writes within this time are one save.
const SAVE: Duration = Duration::from_millis(50);

/// Prints a table, and another one after each save, until people end it.
pub fn run(watched: Watched, best: Best) -> Result<u8> {
    let sources = watched.captured.sources();
    let (tell, told) = channel();
    let _watcher = watch(&sources, tell.clone())?;
    let _keys = Keys::listen(move |key| drop(tell.send(Wake::Key(key))))?;
    let mut session = Session {
        watched,
        sources,
        told,
        best,
        shown: None,
        right: false,
        baseline: None,
        message: String::new(),
        ended: false,
    };
    session.renew()?;
    while !session.ended {
        match session.told.recv() {
            Ok(wake) => session.take(wake)?,
            Err(_) => break,
        }
    }
    Ok(0)
}

/// Editors save by renaming: the directories are watched, not the files.
fn watch(sources: &Sources, tell: Sender<Wake>) -> Result<Debouncer<RecommendedWatcher>> {
    let mut watcher = new_debouncer(SAVE, move |_| drop(tell.send(Wake::Saved)))
        .context("cannot watch the sources")?;
    let directories: BTreeSet<&Path> = sources.files().iter().filter_map(|f| f.parent()).collect();
    for directory in directories {
        let added = watcher
            .watcher()
            .watch(directory, RecursiveMode::NonRecursive);
        added.with_context(|| format!("cannot watch {}", directory.display()))?;
    }
    Ok(watcher)
}

struct Session<'a> {
    watched: Watched<'a>,
    sources: Sources,
    told: Receiver<Wake>,
    best: Best<'a>,
    /// The sources that the last table is of.
    shown: Option<State>,
    /// Whether all of that table is right.
    right: bool,
    baseline: Option<Baseline>,
    /// What the last key did.
    message: String,
    ended: bool,
}

impl Session<'_> {
    fn take(&mut self, wake: Wake) -> Result<()> {
        match wake {
            Wake::Saved if self.shown.as_ref() == Some(&State::now(&self.sources)) => Ok(()),
            Wake::Saved | Wake::Key(Key::Pressed(b'r')) => self.renew(),
            Wake::Key(Key::Pressed(b'b')) => {
                self.freeze()?;
                self.renew()
            }
            Wake::Key(Key::Pressed(b'q') | Key::End) => {
                self.ended = true;
                Ok(())
            }
            Wake::Key(Key::Pressed(_)) => Ok(()),
        }
    }

    /// Tries the sources as they are, until none was saved meanwhile, and shows what came of it.
    fn renew(&mut self) -> Result<()> {
        loop {
            let now = State::now(&self.sources);
            let tried = self.attempt();
            // Where stdin holds nothing there is one table all the same.
            let needed = self.shown.is_none() && !keys::is_terminal();
            if self.is_to_end() && !needed {
                return Ok(());
            }
            if State::now(&self.sources) != now && !self.ended {
                continue;
            }
            self.right = false;
            if let Ok(regions) = &tried {
                self.right = regions.iter().flat_map(|r| &r.tried).all(Tried::is_right);
                self.best.consider(regions, &now)?;
            }
            self.shown = Some(now);
            return self.show(tried);
        }
    }

    /// Whether people ended the command while it was busy. Saves are noticed by the content of the sources.
    fn is_to_end(&mut self) -> bool {
        let ends = |wake| matches!(wake, Wake::Key(Key::End | Key::Pressed(b'q')));
        self.ended |= self.told.try_iter().any(ends);
        self.ended
    }

    fn attempt(&self) -> Result<Vec<Region>> {
        let watched = &self.watched;
        let mut edits = Edits::new(watched.replays, watched.settings.clone())?;
        let mut variants = Vec::new();
        if let Some(baseline) = &self.baseline {
            variants.push(baseline.variant.clone());
            edits.compare_with(0);
        }
        variants.push(watched.variant.clone());
        let mut regions = Vec::new();
        for (name, target) in watched.captured.regions() {
            let spinner = progress::spinner(format!("trying {name}"));
            let region = watched
                .captured
                .attempt(&mut edits, target, &variants, watched.effort);
            spinner.finish_and_clear();
            regions.extend(region?);
        }
        Ok(regions)
    }

    /// What the sources are now is what the next ones are compared with.
    fn freeze(&mut self) -> Result<()> {
        let now = State::now(&self.sources);
        if !self.right || self.shown.as_ref() != Some(&now) {
            self.message = "Not frozen: a baseline has to be right.".to_owned();
            return Ok(());
        }
        let tree = tempfile::tempdir().context("cannot write temporary files")?;
        let frozen = now.freeze(tree.path())?;
        self.baseline = Some(Baseline {
            variant: Variant {
                edit: frozen.edit,
                ..self.watched.variant.clone()
            },
            _tree: tree,
        });
        self.message = "The baseline is this state of the sources.".to_owned();
        Ok(())
    }

    fn show(&mut self, tried: Result<Vec<Region>>) -> Result<()> {
        let (regions, error) = match tried {
            Ok(regions) => (regions, None),
            Err(error) => (Vec::new(), Some(print::error(&error))),
        };
        let best: Vec<_> = self.best.each().cloned().collect();
        if self.watched.json {
            let document = show::edits::watched(&regions, error.as_deref(), &best);
            return print::out(&format!("{document}\n"));
        }
        let mut text = match (&error, regions.is_empty()) {
            (Some(error), _) => format!("{error}\n"),
            (None, true) => {
                "No source of the chosen codelets differs from what was captured: edit one.\n"
                    .to_owned()
            }
            (None, false) => show::edits::text(&regions),
        };
        if !self.message.is_empty() {
            text += &format!("\n{}\n", std::mem::take(&mut self.message));
        }
        text += &show::edits::best(&best, &self.watched.variant.flags);
        if keys::is_terminal() {
            keys::clear()?;
            return print::text(&format!(
                "{text}\nb: new baseline   r: try again   q: quit\n"
            ));
        }
        print::text(&format!("{text}\n"))
    }
}

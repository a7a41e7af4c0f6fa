//! A checked item and its state.

use serde::Serialize;

/// The state of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Present.
    Good,
    /// Absent, and CERE works with restrictions.
    Limited,
    /// Absent, and CERE needs it.
    Missing,
}

/// One checked item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Item {
    pub name: &'static str,
    pub state: State,
    /// What was found, or why it is absent and what that means.
    pub found: String,
    /// What to do; `None` if it is present.
    pub remedy: Option<String>,
    /// What mends it, for a shell; `None` if no command does, or none is needed.
    pub command: Option<String>,
}

impl Item {
    pub fn good(name: &'static str, found: impl Into<String>) -> Self {
        Self {
            name,
            state: State::Good,
            found: found.into(),
            remedy: None,
            command: None,
        }
    }

    pub fn limited(
        name: &'static str,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            name,
            state: State::Limited,
            found: found.into(),
            remedy: Some(remedy.into()),
            command: None,
        }
    }

    pub fn missing(
        name: &'static str,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            state: State::Missing,
            ..Self::limited(name, found, remedy)
        }
    }

    /// Likewise, mended by `command`, which only root may run.
    pub fn mended_as_root(mut self, command: &str) -> Self {
        self.command = Some(format!("{}{command}", sudo()));
        self
    }

    /// Likewise, mended by `command`.
    pub fn mended_by(mut self, command: &str) -> Self {
        self.command = Some(command.to_owned());
        self
    }
}

/// What stands before a command for root.
pub fn sudo() -> &'static str {
    match is_root() {
        true => "",
        false => "sudo ",
    }
}

/// Whether this is root.
pub fn is_root() -> bool {
    // SAFETY: takes no pointers.
    unsafe { libc::geteuid() == 0 }
}

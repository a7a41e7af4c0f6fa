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
}

impl Item {
    pub fn good(name: &'static str, found: impl Into<String>) -> Self {
        Self {
            name,
            state: State::Good,
            found: found.into(),
            remedy: None,
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
}

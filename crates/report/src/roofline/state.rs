//! Where code and data lie when a timed repetition begins.

use anyhow::Result;
use cere_catalogue::{OrCoded, codes};
use cere_format::replay::{CacheState, Operand};

/// Code and data, each in no cache or in those that they fit in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct State {
    /// Whether data are warm.
    pub data: bool,
    /// Whether code is.
    pub code: bool,
}

fn word(warm: bool) -> &'static str {
    match warm {
        true => CacheState::Warm.name(),
        false => CacheState::Cold.name(),
    }
}

impl State {
    /// All four, the coldest first.
    pub const ALL: [Self; 4] = [
        Self::new(false, false),
        Self::new(false, true),
        Self::new(true, false),
        Self::new(true, true),
    ];

    const fn new(data: bool, code: bool) -> Self {
        Self { data, code }
    }

    /// Parses `data=cold,code=warm`, in either order.
    ///
    /// # Errors
    /// Both are needed once, with `cold` or `warm`.
    pub fn parse(text: &str) -> Result<Self> {
        let known = Self::ALL.into_iter().find(|state| {
            let (data, code) = (word(state.data), word(state.code));
            let words: Vec<&str> = text.split(',').map(str::trim).collect();
            let (data, code) = (format!("data={data}"), format!("code={code}"));
            words == [data.as_str(), code.as_str()] || words == [code.as_str(), data.as_str()]
        });
        known.or_coded(codes::E8004, || {
            format!("`{text}` is no state: data=cold or warm, and code=cold or warm, as data=cold,code=warm")
        })
    }

    /// As [`State::parse`] reads it.
    #[must_use]
    pub fn name(self) -> String {
        format!("data={},code={}", word(self.data), word(self.code))
    }

    /// What a replay puts into a state of its own.
    #[must_use]
    pub fn operands(self) -> Vec<Operand> {
        let operand = |name: &str, warm| Operand {
            name: name.to_owned(),
            state: match warm {
                true => CacheState::Warm,
                false => CacheState::Cold,
            },
        };
        vec![
            operand(Operand::DATA, self.data),
            operand(Operand::CODE, self.code),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for state in State::ALL {
            assert_eq!(State::parse(&state.name()).unwrap(), state);
        }
        let swapped = State::parse("code=warm, data=cold").unwrap();
        assert!(swapped.code && !swapped.data);
        for bad in [
            "",
            "cold",
            "data=cold",
            "data=cold,data=warm",
            "data=l2,code=cold",
        ] {
            assert!(
                State::parse(bad)
                    .unwrap_err()
                    .to_string()
                    .contains("data=cold,code=warm"),
                "{bad}"
            );
        }
    }
}

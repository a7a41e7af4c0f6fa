//! Search methods and their names.

use std::fmt;
use std::str::FromStr;

/// How a space is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// Independent draws, which learn nothing.
    Random,
    /// Learns which groups of flags matter, then tries those around the best variants.
    Groups,
}

impl Method {
    const ALL: [(Method, &str); 2] = [(Method::Random, "random"), (Method::Groups, "groups")];
}

/// An unknown name of a method.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no method {0:?}; take random or groups")]
pub struct MethodError(pub String);

impl FromStr for Method {
    type Err = MethodError;

    fn from_str(text: &str) -> Result<Self, MethodError> {
        let found = Self::ALL.iter().find(|(_, name)| *name == text);
        found
            .map(|(m, _)| *m)
            .ok_or_else(|| MethodError(text.to_owned()))
    }
}

/// The name that [`FromStr`] takes.
impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(match self {
            Method::Random => "random",
            Method::Groups => "groups",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for (method, name) in Method::ALL {
            assert_eq!(method.to_string(), name);
            assert_eq!(name.parse(), Ok(method));
        }
        let error = "Random".parse::<Method>().unwrap_err().to_string();
        assert!(error.contains("groups"), "{error}");
    }
}

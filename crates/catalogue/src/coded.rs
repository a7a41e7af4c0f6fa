//! Errors that carry the code of their entry.

use crate::entry::Code;
use crate::said::said;
#[doc(hidden)]
pub use crate::stages::codes;
/// What the macros need of other crates.
#[doc(hidden)]
pub use ::anyhow as anyhow_crate;
use anyhow::{Error, Result};
use std::fmt::{self, Display};
use std::io::{self, ErrorKind};

/// An error with a code.
#[derive(Debug)]
pub struct Coded {
    /// The code of its kind.
    pub code: Code,
    message: String,
    cause: Option<Error>,
}

impl Display for Coded {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Coded {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as _)
    }
}

/// The error `message` of the kind `code`.
pub fn coded(code: Code, message: String) -> Error {
    Error::new(Coded {
        code,
        message,
        cause: None,
    })
}

/// The error `message` of the kind `code`, with `cause` below it.
pub fn caused(code: Code, message: String, cause: impl Into<Error>) -> Error {
    Error::new(Coded {
        code,
        message,
        cause: Some(cause.into()),
    })
}

/// Gives an error, or a missing value, a message above it that has a code.
pub trait OrCoded<T> {
    /// The value, or an error of the kind `code` with this message and the cause below it.
    fn or_coded<M: Display>(self, code: Code, message: impl FnOnce() -> M) -> Result<T>;
}

impl<T, E: Into<Error>> OrCoded<T> for Result<T, E> {
    fn or_coded<M: Display>(self, code: Code, message: impl FnOnce() -> M) -> Result<T> {
        self.map_err(|cause| caused(code, message().to_string(), cause))
    }
}

impl<T> OrCoded<T> for Option<T> {
    fn or_coded<M: Display>(self, code: Code, message: impl FnOnce() -> M) -> Result<T> {
        self.ok_or_else(|| coded(code, message().to_string()))
    }
}

/// The code of an error: of the first in the chain that carries one, else of the first whose text an entry has, else of the
/// system's reason below it. None if no entry fits.
pub fn of(error: &Error) -> Option<Code> {
    let carried =
        |error: &(dyn std::error::Error + 'static)| Some(error.downcast_ref::<Coded>()?.code);
    let system = |error: &(dyn std::error::Error + 'static)| of_system(error.downcast_ref()?);
    let text = |error: &(dyn std::error::Error + 'static)| Some(said(&error.to_string())?.code);
    error
        .chain()
        .find_map(carried)
        .or_else(|| error.chain().find_map(text))
        .or_else(|| error.chain().find_map(system))
}

fn of_system(error: &io::Error) -> Option<Code> {
    match error.kind() {
        ErrorKind::NotFound => Some(codes::E7001),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Some(codes::E7002),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Some(codes::E7003),
        _ => None,
    }
}

/// Makes an error of a kind: `anyhow!(E2001, "there is no program {name}")`. Without a code it is `anyhow::anyhow!`.
#[macro_export]
macro_rules! anyhow {
    ($code:ident, $($message:tt)+) => {
        $crate::coded::coded($crate::coded::codes::$code, format!($($message)+))
    };
    ($($message:tt)+) => { $crate::coded::anyhow_crate::anyhow!($($message)+) };
}

/// Returns an error of a kind: `bail!(E2001, "there is no program {name}")`. Without a code it is `anyhow::bail!`.
#[macro_export]
macro_rules! bail {
    ($code:ident, $($message:tt)+) => {
        return Err($crate::coded::coded($crate::coded::codes::$code, format!($($message)+)))
    };
    ($($message:tt)+) => { return Err($crate::coded::anyhow_crate::anyhow!($($message)+)) };
}

/// Returns an error of a kind unless a condition holds: `ensure!(n > 0, E8002, "{n} is no size")`. Without a code it is
/// `anyhow::ensure!`.
#[macro_export]
macro_rules! ensure {
    ($holds:expr, $code:ident, $($message:tt)+) => {
        if !$holds {
            return Err($crate::coded::coded($crate::coded::codes::$code, format!($($message)+)));
        }
    };
    ($holds:expr, $($message:tt)+) => {
        if !$holds {
            return Err($crate::coded::anyhow_crate::anyhow!($($message)+));
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::anyhow::Context;

    fn fails(code: bool) -> Result<()> {
        ensure!(!code, E2001, "there is no program {}", "x");
        let text = "of no kind";
        crate::bail!(text)
    }

    #[test]
    fn codes_are_found_below_contexts() {
        let error = fails(true).context("cannot profile").unwrap_err();
        assert_eq!(of(&error), Some(codes::E2001));
        assert_eq!(
            format!("{error:#}"),
            "cannot profile: there is no program x"
        );
        let error = fails(false).unwrap_err();
        assert_eq!((of(&error), error.to_string()), (None, "of no kind".into()));
    }

    #[test]
    fn causes_stay_below() {
        let full = io::Error::from(ErrorKind::StorageFull);
        let error: Error = Err::<(), _>(full).context("cannot keep it").unwrap_err();
        assert_eq!(of(&error), Some(codes::E7002));
        let error = Err::<(), _>(error).or_coded(codes::E4009, || "x is damaged");
        let error = error.unwrap_err();
        assert_eq!(of(&error), Some(codes::E4009));
        assert_eq!(error.chain().count(), 3);
        let error = None::<u8>.or_coded(codes::E8003, || "a word is needed");
        assert_eq!(of(&error.unwrap_err()), Some(codes::E8003));
    }

    #[test]
    fn texts_of_enums_have_codes() {
        let error: Error = ::anyhow::anyhow!("its time in vivo is not known");
        assert_eq!(of(&error.context("solve")), Some(codes::E6018));
    }
}

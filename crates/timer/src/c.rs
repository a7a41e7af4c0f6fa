//! The library from C: `include/cere.h` describes every function. No panic leaves it.

mod memory;
mod timer;

use crate::error::TimerError;
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Why a function failed.
pub(crate) enum Failure {
    Null(&'static str),
    Value(String),
    Timer(TimerError),
}

impl From<TimerError> for Failure {
    fn from(error: TimerError) -> Self {
        Self::Timer(error)
    }
}

impl Failure {
    fn code(&self) -> c_int {
        match self {
            Self::Null(_) => 1,
            Self::Value(_) => 2,
            Self::Timer(error) => match error {
                TimerError::Memory { .. } | TimerError::Map { .. } => 3,
                TimerError::Level { .. }
                | TimerError::DoesNotFit { .. }
                | TimerError::NoAddressFlush => 4,
                TimerError::Pin(_) => 5,
                _ => 2,
            },
        }
    }

    fn message(&self) -> String {
        match self {
            Self::Null(what) => format!("{what} is NULL"),
            Self::Value(message) => message.clone(),
            Self::Timer(error) => match std::error::Error::source(error) {
                Some(cause) => format!("{error}: {cause}"),
                None => error.to_string(),
            },
        }
    }
}

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
}

fn set_message(message: String) {
    let text = CString::new(message.replace('\0', " ")).unwrap_or_default();
    MESSAGE.with(|last| last.replace(text));
}

/// Runs `work`; what it returns as a code, its message kept.
pub(crate) fn guard(work: impl FnOnce() -> Result<(), Failure>) -> c_int {
    const DEFECT: c_int = 6;
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => 0,
        Ok(Err(failure)) => {
            set_message(failure.message());
            failure.code()
        }
        Err(_) => {
            set_message("a defect of this library: please report it".to_owned());
            DEFECT
        }
    }
}

/// The message of the calling thread's last failure.
#[unsafe(no_mangle)]
pub extern "C" fn cere_error() -> *const c_char {
    MESSAGE.with(|last| last.borrow().as_ptr())
}

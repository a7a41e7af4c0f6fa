//! The formats that the stages of CERE share, and nothing else: no stage logic lives here.
//!
//! | module | written by | read by |
//! |---|---|---|
//! | [`abi`] | the pass, into the program's data | the preload library |
//! | [`build`] | the wrappers and the pass | every later stage |
//! | [`profile`] | the preload library | the command |
//! | [`capture`] | the command (plan), the preload library (raw capture) | the packager |
//! | [`package`] | the packager | the replay generator, on any machine |
//! | [`replay`] | the replay generator (plan), the replay runtime (outcome) | each other |
//! | [`store`] | everyone | everyone: where each file lies |

pub mod abi;
pub mod build;
pub mod capture;
pub mod error;
pub mod package;
pub mod profile;
pub mod profile_raw;
pub mod replay;
pub mod store;

pub use error::FormatError;

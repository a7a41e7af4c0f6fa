//! Results of commands as text and JSON.

pub mod asm;
pub mod blocking;
pub mod clean;
pub mod codelets;
pub mod compare;
pub mod count;
pub mod counted;
pub mod doctor;
pub mod edits;
pub mod explain;
pub mod guard;
pub mod hybrid;
pub mod machine;
pub mod metrics;
pub mod profile;
pub mod replay;
pub mod roofline;
pub mod subset;
pub mod tune;

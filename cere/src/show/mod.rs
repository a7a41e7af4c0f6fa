//! Results of commands as text and JSON.

pub mod codelets;
pub mod count;
pub mod counted;
pub mod doctor;
pub mod hybrid;
pub mod metrics;
pub mod profile;
pub mod replay;
pub mod roofline;
pub mod subset;
pub mod tune;

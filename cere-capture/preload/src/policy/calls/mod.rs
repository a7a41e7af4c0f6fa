//! System calls of the program while its memory is closed. They run in the SIGSYS handler.

pub mod captured;
mod leave;
mod making;
mod mapping;
mod reach;
pub mod registers;
pub mod traced;
mod waiting;

//! System calls of the program while its memory is closed. They run in the SIGSYS handler.

pub mod captured;
pub mod mapping;
pub mod reach;
pub mod registers;
pub mod traced;
pub mod waiting;

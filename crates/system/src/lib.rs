//! The machine's processes and the user's terminal.
//!
//! | module | what |
//! |---|---|
//! | [`process`] | starts processes and waits for them |
//! | [`console`] | messages, tables, progress |

pub mod console;
pub mod process;

//! The machine's processes and the user's terminal.
//!
//! | module | what |
//! |---|---|
//! | [`process`] | starts processes and waits for them |
//! | [`events`] | what libraries say while they work |
//! | [`console`] | messages, tables, progress |

pub mod console;
pub mod events;
pub mod process;

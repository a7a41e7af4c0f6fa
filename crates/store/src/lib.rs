//! The store: what the commands keep, and how it is found again.
//!
//! | module | what |
//! |---|---|
//! | [`state`] | JSON files, the lock, the profile, the units of the current build |
//! | [`names`] | the names of regions, and how people pick them |
//! | [`built`] | which codelets are of the current build |
//! | [`current`] | the profile and the codelets that commands work on |
//! | [`codelets`] | the files of codelets |
//! | [`sources`] | what became of the sources of a build since |
//! | [`lines`] | the text of source lines, and IR that knows them |
//! | [`notes`] | what a user should know of a codelet or a profile |
//! | [`commands`] | codelets of several commands beside one another |
//! | [`find`] | which codelets an argument names |
//! | [`missing`] | errors that another command would mend |
//! | [`results`] | records of replays in SQLite, as CSV |
//! | [`cache`] | unpacked packages and built replays, within bounds |
//! | [`clean`] | what a store can do without, and freeing it |
//! | [`processes`] | the processes that a run left records of |
//! | [`mod@build`] | the build: compiler wrappers, recorded links, images of programs |
//! | [`project`] | how a folder is built, how a program was |
//! | [`components`] | the plugin, the preload library, the replay runtime |

mod bound;
pub mod build;
pub mod built;
pub mod cache;
pub mod clean;
pub mod codelets;
pub mod commands;
pub mod complete;
pub mod components;
pub mod current;
pub mod find;
pub mod lines;
pub mod missing;
pub mod names;
pub mod notes;
pub mod processes;
pub mod project;
pub mod results;
pub mod sources;
pub mod state;

pub use bound::touch;

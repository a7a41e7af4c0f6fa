//! What users meet: the commands, run as they run them.

mod asm;
mod beside;
mod build;
mod captured_code;
mod check;
mod code;
#[path = "../common/mod.rs"]
mod common;
mod container;
mod doctor;
mod functions;
mod launchers;
mod manual;
mod mcp;
mod messages;
mod mpi;
mod nesting;
mod noticed;
mod offer;
mod operand;
mod report;
mod results;
mod roofline;
mod run;
mod sandbox;
mod schemas;
mod short;
mod split;
mod store;
mod threads;
mod tries;
mod vivo;
mod watch;
mod wrapper;

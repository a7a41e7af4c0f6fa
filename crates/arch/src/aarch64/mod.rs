//! AArch64, little-endian.

pub mod call;
pub mod counter;
#[path = "../lacking/counting.rs"]
pub mod counting;
#[path = "../lacking/feature.rs"]
pub mod feature;
pub mod float;
#[path = "../lacking/generic.rs"]
mod generic;
pub mod jump;
pub mod lines;
pub mod loops;
#[path = "../lacking/questions.rs"]
pub mod questions;
pub mod register;
pub mod switch;
pub mod thread;
#[path = "../lacking/unmoved.rs"]
mod unmoved;
#[path = "../lacking/unread.rs"]
mod unread;

use crate::target::Target;

/// The architecture that this is compiled for.
pub const HERE: Target = Target::Aarch64;

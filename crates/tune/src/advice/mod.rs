//! Lines of source that may do what flags do: whether they do is for a compile to say ([`crate::tuning`]).
//!
//! | module | what |
//! |---|---|
//! | [`wish`] | what a flag asks for, as pragmas, attributes and directives say it |
//! | `place` | places and loops in a text |
//! | `c`, `fortran` | loops and blocks in the text of a source |
//! | [`idea`] | which lines to try, the most likely first |
//! | [`text`] | lines put into a text |

mod c;
mod fortran;
pub mod idea;
mod place;
pub mod text;
pub mod wish;

pub use place::{Loop, Outline, Place};

/// The region at `line` of `text`, the one of number `ordinal` (from 1) there, in a function called `function` (`Grid::step`).
#[must_use]
pub fn outline(text: &str, fortran: bool, (line, ordinal): (u32, u32), function: &str) -> Outline {
    match fortran {
        true => Outline {
            loops: fortran::loops(text, line),
            ..Outline::default()
        },
        false => c::outline(text, (line, ordinal), function),
    }
}

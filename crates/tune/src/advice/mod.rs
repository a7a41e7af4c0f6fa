//! Lines of source that may do what flags do: whether they do is for a compile to say ([`crate::tuning`]).
//!
//! | module | what |
//! |---|---|
//! | [`wish`] | what a flag asks for, as pragmas, attributes and directives say it |
//! | `c`, `fortran` | loops and blocks in the text of a source |
//! | [`idea`] | which lines to try, the most likely first |
//! | [`text`] | lines put into a text |

mod c;
mod fortran;
pub mod idea;
pub mod text;
pub mod wish;

/// A place in a source, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Line.
    pub line: u32,
    /// Byte in the line before which the text comes; none: it is a line of its own, above this one.
    pub column: Option<u32>,
}

/// A loop in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loop {
    /// Where a line for it goes.
    pub place: Place,
    /// Where a line for its body goes, if that is a block.
    pub body: Option<Place>,
    /// Whether it has no loop inside.
    pub innermost: bool,
}

/// What a region is in the text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outline {
    /// Its loops, in the order of the text.
    pub loops: Vec<Loop>,
    /// Where an attribute of its function goes.
    pub function: Option<Place>,
    /// Where a line for the function's body goes.
    pub body: Option<Place>,
}

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

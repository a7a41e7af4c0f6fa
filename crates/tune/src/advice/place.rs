//! Places in the text of a source, and what of a region is there.

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

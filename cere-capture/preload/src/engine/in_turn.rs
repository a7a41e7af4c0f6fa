//! The engine in the hands of a thread that has its turn.

use super::state::Engine;
use super::turn::Turn;
use std::ops::{Deref, DerefMut};

/// The engine, until the turn is over.
pub struct InTurn<'a> {
    engine: &'a mut Engine,
    turn: Turn,
}

impl<'a> InTurn<'a> {
    /// The engine with the turn that it is used in.
    pub fn new(engine: &'a mut Engine, turn: Turn) -> InTurn<'a> {
        InTurn { engine, turn }
    }

    /// The turn: the engine is left.
    pub fn into_turn(self) -> Turn {
        self.turn
    }
}

impl Deref for InTurn<'_> {
    type Target = Engine;

    #[inline(always)]
    fn deref(&self) -> &Engine {
        self.engine
    }
}

impl DerefMut for InTurn<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Engine {
        self.engine
    }
}

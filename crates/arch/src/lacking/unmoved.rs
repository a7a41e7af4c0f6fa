//! A control block that stays where it is.

/// Words of a control block that is put in place of a captured one: none is (see [`MOVES`]).
pub const SELF: u64 = 0;
/// See [`SELF`].
pub const TABLE: u64 = 0;
/// See [`SELF`].
pub const GUARDS: u64 = 0;
/// Whether the control block lies where the thread pointer points, with the thread-local blocks below it, so that it can lie where
/// the captured one did: here it lies below, and the blocks above.
pub const MOVES: bool = false;

/// Refuses: the control block stays where it is.
///
/// # Safety
/// None is needed.
pub unsafe fn set_pointer(_to: usize) -> isize {
    -(libc::ENOSYS as isize)
}

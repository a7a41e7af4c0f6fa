//! Code is not counted on this architecture yet: the pass makes counted code for x86-64 alone.

/// Whether code can be counted on this architecture.
pub const SUPPORTED: bool = false;

/// What counted code calls when there may be no room: there is none.
#[must_use]
pub fn room() -> usize {
    0
}

/// Sends nothing.
///
/// # Safety
/// None is needed.
pub unsafe fn flush() {}

/// Says that there is no counted code.
///
/// # Safety
/// None is needed.
pub unsafe fn enter(_at: usize) -> bool {
    false
}

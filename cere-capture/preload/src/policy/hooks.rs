//! The hooks of the probes, registered at start.

use cere_format::abi::{Hook, KIND_PARALLEL, RegionDescriptor};
use std::sync::OnceLock;

static HOOKS: OnceLock<Hooks> = OnceLock::new();

/// What regions have as their hooks in a capture run.
pub struct Hooks {
    /// Of regions that are wanted, or listened to.
    pub capture: Hook,
    /// Of other parallel regions: what runs within one has to be known.
    pub parallel: Hook,
}

/// Registers the hooks, before the first region is armed.
pub fn register_hooks(hooks: Hooks) {
    let _ = HOOKS.set(hooks);
}

/// The hook of a region of which nothing is wanted.
///
/// # Safety
/// It is the descriptor of a loaded image.
pub unsafe fn dormant_hook(region: *const RegionDescriptor) -> Option<Hook> {
    // SAFETY: the descriptor of a loaded image.
    let parallel = unsafe { (*region).kind } == KIND_PARALLEL;
    HOOKS.get().filter(|_| parallel).map(|hooks| hooks.parallel)
}

/// Has the region call the capture hook, or be dormant. Neither allocates nor locks.
///
/// # Safety
/// It is the descriptor of a loaded image.
pub unsafe fn set_hook(region: *mut RegionDescriptor, capture: bool) {
    // SAFETY: the descriptor of a loaded image, whose hook's word is written at once.
    unsafe {
        let hook = match capture {
            true => HOOKS.get().map(|hooks| hooks.capture),
            false => dormant_hook(region),
        };
        (&raw mut (*region).hook).write_volatile(hook);
    }
}

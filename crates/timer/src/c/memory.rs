//! `amalloc` and `afree`.

use super::{Failure, guard};
use crate::aligned::Aligned;
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::{LazyLock, Mutex, PoisonError};

/// What `cere_amalloc` gave away, by address.
static GIVEN: LazyLock<Mutex<HashMap<usize, Aligned>>> = LazyLock::new(Mutex::default);

/// Memory aligned to one boundary and not to another; NULL on failure.
#[unsafe(no_mangle)]
pub extern "C" fn cere_amalloc(bytes: usize, align: usize, misalign: usize) -> *mut c_void {
    let mut found = std::ptr::null_mut();
    guard(|| {
        let memory = Aligned::new(bytes, align, misalign)?;
        let address = memory.as_ptr();
        let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
        given.insert(address as usize, memory);
        found = address.cast();
        Ok(())
    });
    found
}

/// Frees it.
#[unsafe(no_mangle)]
pub extern "C" fn cere_afree(memory: *mut c_void) -> c_int {
    guard(|| {
        let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
        if memory.is_null() || given.remove(&(memory as usize)).is_some() {
            return Ok(());
        }
        Err(Failure::Value(format!(
            "{memory:p} is no memory of cere_amalloc, or is free already: give the address that it returned, once"
        )))
    })
}

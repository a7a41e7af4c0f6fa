//! The functions of MPI whose references in the program are bound to stubs, by the numbers of these.

use super::signatures::{self, Form, Function};
use cere_format::mpi::{FUNCTIONS_MOST, MpiFunction};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};

/// What the stubs call.
static REAL: [AtomicUsize; FUNCTIONS_MOST] = [const { AtomicUsize::new(0) }; FUNCTIONS_MOST];
/// What that is.
static FUNCTION: [OnceLock<(&Function, Form)>; FUNCTIONS_MOST] =
    [const { OnceLock::new() }; FUNCTIONS_MOST];
/// Names in the program, and addresses of the stubs.
static KNOWN: Mutex<Vec<(String, usize)>> = Mutex::new(Vec::new());

/// The stub for the function of this name, which is at the address that `find` gives. None for others, and where no stub is left.
pub fn bind(
    name: &str,
    find: impl FnOnce() -> usize,
    stub: impl FnOnce(usize) -> usize,
) -> Option<usize> {
    let function = signatures::of_symbol(name)?;
    let mut known = KNOWN.lock().ok()?;
    if let Some((_, stub)) = known.iter().find(|k| k.0 == name) {
        return Some(*stub);
    }
    let (number, real) = (known.len(), find());
    if real == 0 || number == FUNCTIONS_MOST {
        return None;
    }
    REAL[number].store(real, Relaxed);
    FUNCTION[number].get_or_init(|| function);
    let stub = stub(number);
    known.push((name.to_owned(), stub));
    Some(stub)
}

/// The address of a function.
pub fn real(number: usize) -> usize {
    REAL[number].load(Relaxed)
}

/// What a function is.
pub fn function(number: usize) -> Option<(&'static Function, Form)> {
    FUNCTION[number].get().copied()
}

/// All of them.
pub fn list() -> Vec<MpiFunction> {
    let known = KNOWN.lock();
    let known = known.iter().flat_map(|known| known.iter()).enumerate();
    let each = known.map(|(number, (name, stub))| MpiFunction {
        name: name.clone(),
        addresses: vec![real(number) as u64, *stub as u64],
    });
    each.collect()
}

//! What a pipeline makes of the bytes of a unit's local variables: it may split a variable, or keep one bit of it.

use crate::error::Result;
use crate::shim::{self, MarkedBytes};
use crate::{ir, unit};
use cere_format::build::{Form, Piece, Shapes};
use libc::{c_char, c_void};
use llvm_sys::prelude::*;
use std::path::Path;

/// Describes the variables of the module as they are now.
pub fn mark(module: LLVMModuleRef) {
    // SAFETY: the module is live.
    unsafe { shim::cere_mark_bytes(module) }
}

/// Takes the descriptions off again.
pub fn unmark(module: LLVMModuleRef) {
    // SAFETY: the module is live.
    unsafe { shim::cere_unmark_bytes(module) }
}

/// What a variable consists of, in the order of its bytes. Nothing if it was not described.
pub fn pieces(variable: LLVMValueRef) -> Vec<Piece> {
    extern "C" fn sink(
        context: *mut c_void,
        name: *const c_char,
        length: usize,
        bytes: *const MarkedBytes,
    ) {
        // SAFETY: the context is the vector below, name and bytes are the shim's during the call.
        let (all, name, bytes) = unsafe {
            let name = std::slice::from_raw_parts(name.cast::<u8>(), length);
            (&mut *context.cast::<Vec<Piece>>(), name, *bytes)
        };
        all.push(Piece {
            variable: String::from_utf8_lossy(name).into_owned(),
            offset: bytes.offset,
            size: bytes.size,
            at: bytes.at,
            form: match bytes.form {
                0 => Form::Plain,
                1 => Form::OneOfTwo {
                    first: bytes.first,
                    other: bytes.other,
                },
                _ => Form::Unknown,
            },
        });
    }
    let mut all: Vec<Piece> = Vec::new();
    // SAFETY: the variable is live; the sink only sees the vector during the call.
    unsafe { shim::cere_marked_bytes(variable, sink, (&raw mut all).cast()) };
    all.sort_by(|a, b| (a.at, &a.variable, a.offset).cmp(&(b.at, &b.variable, b.offset)));
    let mut joined: Vec<Piece> = Vec::new();
    for piece in all {
        match joined.last_mut() {
            Some(last) if follows(last, &piece) => {
                last.size = piece.offset + piece.size - last.offset
            }
            _ => joined.push(piece),
        }
    }
    joined
}

/// Whether a piece lies behind another as it did in their variable, padding between them included.
fn follows(last: &Piece, piece: &Piece) -> bool {
    last.form == Form::Plain
        && piece.form == Form::Plain
        && last.variable == piece.variable
        && piece.offset >= last.offset + last.size
        && piece.offset - last.offset == piece.at - last.at
}

/// Writes what the variables of the module consist of.
pub fn write(module: LLVMModuleRef, path: &Path) -> Result<()> {
    let variables = ir::defined(ir::globals(module)).into_iter();
    let all = variables.map(|v| (ir::name(v), pieces(v)));
    let shapes: Shapes = all.filter(|(_, pieces)| !pieces.is_empty()).collect();
    unit::write_json(path, &shapes)
}

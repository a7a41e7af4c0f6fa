//! Variables that the code of a replay uses and the captured image does not have as such: the optimiser of its build split,
//! shrank or removed them. Each becomes a reference to a place of its own; rows tell the runtime what to put there before
//! the region runs, and where the image has it.

use crate::captured::{Captured, size};
use crate::symbols::{declare, make_plain, publish};
use crate::{ir, shapes, shim};
use cere_format::abi::OWN;
use cere_format::build::{Form, Piece};
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMLinkage, LLVMTypeKind};

/// Bytes of a lost variable and where they come from; a row in `cere-replay/runtime/src/glue.rs`.
struct Row {
    /// Offset in the variable.
    at: u64,
    /// Symbol that has them, and where there; none: zeroes.
    from: Option<(LLVMValueRef, u64)>,
    length: u64,
    how: How,
}

enum How {
    /// They are the variable's initial value.
    Initial,
    /// They are in the image.
    Plain,
    /// The image has a byte that is 0 for the first, 1 for the other value.
    OneOfTwo { first: u64, other: u64 },
}

/// Turns variables into references to places of their own.
pub fn lose_all(module: LLVMModuleRef, variables: Vec<LLVMValueRef>, captured: &Captured) {
    let mut number = 0;
    for variable in variables {
        // SAFETY: the variable is live and defined.
        unsafe {
            match LLVMIsThreadLocal(variable) {
                0 => lose(module, variable, captured, &mut number),
                _ => lose_thread_local(module, variable, captured),
            }
        }
    }
}

/// Nothing is known of what a thread-local variable held: using it ends the region.
///
/// # Safety
/// The variable is live and has an initialiser.
unsafe fn lose_thread_local(module: LLVMModuleRef, variable: LLVMValueRef, captured: &Captured) {
    let (prefix, name) = (&captured.plan.prefix, ir::name(variable));
    // SAFETY: a live variable with an initialiser.
    unsafe {
        let size = size(module, variable);
        declare(module, variable);
        make_plain(module, variable);
        publish(variable, &format!("{prefix}{OWN}lost.{size}.{name}"));
    }
}

/// # Safety
/// The variable is live and has an initialiser.
unsafe fn lose(
    module: LLVMModuleRef,
    variable: LLVMValueRef,
    captured: &Captured,
    number: &mut usize,
) {
    let prefix = &captured.plan.prefix;
    let name = ir::name(variable);
    // SAFETY: a live variable with an initialiser.
    unsafe {
        let size = size(module, variable);
        let initial = LLVMGetInitializer(variable);
        let mut rows = vec![Row {
            at: 0,
            from: match LLVMIsNull(initial) {
                0 => Some((copy_of(module, variable), 0)),
                _ => None,
            },
            length: size,
            how: How::Initial,
        }];
        let found = match block(module, variable, captured) {
            Some(address) => {
                rows[0].from = Some((address, 0));
                Some(size)
            }
            None => find_rows(module, variable, captured, &mut rows),
        };
        declare(module, variable);
        let kind = match found {
            None => "lost",
            Some(bytes) if bytes >= size => "whole",
            Some(_) => "removed",
        };
        publish(variable, &format!("{prefix}{OWN}{kind}.{size}.{name}"));
        for row in rows {
            add_row(
                module,
                variable,
                &row,
                &format!("{prefix}{OWN}bytes.{number}"),
            );
            *number += 1;
        }
    }
}

/// A constant with the initial value of a variable.
unsafe fn copy_of(module: LLVMModuleRef, variable: LLVMValueRef) -> LLVMValueRef {
    // SAFETY: the variable is live and has an initialiser.
    unsafe {
        let kind = LLVMGlobalGetValueType(variable);
        let copy = LLVMAddGlobal(module, kind, c"cere.initial".as_ptr());
        LLVMSetInitializer(copy, LLVMGetInitializer(variable));
        LLVMSetLinkage(copy, LLVMLinkage::LLVMInternalLinkage);
        copy
    }
}

/// What a variable held that the build's optimiser replaced: it was only ever set to the block of one call of `malloc`, and
/// that block is a variable of its own (`globalopt`, `<name>.body`). A constant with its address; none if it is not so, or if
/// the variable may have been null.
unsafe fn block(
    module: LLVMModuleRef,
    variable: LLVMValueRef,
    captured: &Captured,
) -> Option<LLVMValueRef> {
    let name = ir::name(variable);
    let body = format!("{name}.body");
    if !captured.knows(&body) || captured.knows(&format!("{name}.init")) {
        return None;
    }
    // SAFETY: the variable is live and of the module.
    unsafe {
        let kind = LLVMGlobalGetValueType(variable);
        if LLVMGetTypeKind(kind) != LLVMTypeKind::LLVMPointerTypeKind {
            return None;
        }
        let address = LLVMAddGlobal(module, kind, c"cere.block".as_ptr());
        LLVMSetInitializer(address, image_symbol(module, &body, captured));
        LLVMSetLinkage(address, LLVMLinkage::LLVMInternalLinkage);
        Some(address)
    }
}

/// Adds rows for the bytes of a variable that the image has. Returns their number; none if some are in the image in a form that
/// is not known.
fn find_rows(
    module: LLVMModuleRef,
    variable: LLVMValueRef,
    captured: &Captured,
    rows: &mut Vec<Row>,
) -> Option<u64> {
    let mut bytes = 0;
    for piece in shapes::pieces(variable) {
        let end = piece.offset + piece.size;
        for (symbol, there) in captured.places(&piece.variable) {
            let (first, last) = (
                piece.offset.max(there.offset),
                end.min(there.offset + there.size),
            );
            if first >= last {
                continue;
            }
            if !captured.knows(symbol) || piece.form != Form::Plain {
                return None;
            }
            let (how, from) = kept_as(there, first, last)?;
            rows.push(Row {
                at: piece.at + first - piece.offset,
                from: Some((image_symbol(module, symbol, captured), from)),
                length: last - first,
                how,
            });
            bytes += last - first;
        }
    }
    Some(bytes)
}

/// How the bytes of a variable from `first` to `last` are kept in a piece of the image, and at which offset.
fn kept_as(there: &Piece, first: u64, last: u64) -> Option<(How, u64)> {
    match there.form {
        Form::Plain => Some((How::Plain, there.at + first - there.offset)),
        Form::OneOfTwo { first: a, other: b } => {
            let all = first == there.offset && last == there.offset + there.size;
            let how = How::OneOfTwo { first: a, other: b };
            (all && there.size <= 8).then_some((how, there.at))
        }
        Form::Unknown => None,
    }
}

/// The image's variable `symbol`, a local one of this unit.
fn image_symbol(module: LLVMModuleRef, symbol: &str, captured: &Captured) -> LLVMValueRef {
    let name = format!("{}{symbol}", captured.plan.prefix);
    if let Some(known) = ir::variable(module, &name) {
        return known;
    }
    // SAFETY: the module is live.
    unsafe {
        let byte = LLVMInt8TypeInContext(LLVMGetModuleContext(module));
        let place = LLVMAddGlobal(module, byte, ir::c(&name).as_ptr());
        publish(place, &name);
        place
    }
}

/// Adds a row to the object, under a name.
unsafe fn add_row(module: LLVMModuleRef, variable: LLVMValueRef, row: &Row, name: &str) {
    // SAFETY: the module and all values are live and belong together.
    unsafe {
        let context = LLVMGetModuleContext(module);
        let long = LLVMInt64TypeInContext(context);
        let byte = LLVMInt8TypeInContext(context);
        let place = |base: LLVMValueRef, offset: u64| {
            let mut index = LLVMConstInt(long, offset, 0);
            LLVMConstGEP2(byte, base, &mut index, 1)
        };
        let number = |value: u64| LLVMConstInt(long, value, 0);
        let from = match row.from {
            Some((symbol, at)) => place(symbol, at),
            None => LLVMConstNull(LLVMPointerTypeInContext(context, 0)),
        };
        let (how, first, other) = match row.how {
            How::Initial => (0, 0, 0),
            How::Plain => (1, 0, 0),
            How::OneOfTwo { first, other } => (2, first, other),
        };
        let mut fields = [
            place(variable, row.at),
            from,
            number(row.length),
            number(how),
            number(first),
            number(other),
        ];
        let value = LLVMConstStructInContext(context, fields.as_mut_ptr(), fields.len() as u32, 0);
        let row = LLVMAddGlobal(module, LLVMTypeOf(value), ir::c(name).as_ptr());
        LLVMSetInitializer(row, value);
        LLVMSetAlignment(row, 8);
        publish(row, name);
        shim::cere_append_compiler_used(module, row);
    }
}

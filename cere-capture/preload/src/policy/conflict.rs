//! Conflicts between captures of one run. Inside a captured invocation `malloc` uses the region heap, so the program's allocator
//! is in another state there, and later, than without the capture. Invocations that this affects are postponed to another run.
//! Ordinary code.

use super::register;
use super::state::State;
use crate::engine::heap::{self, Usage};
use crate::engine::level::Captured;
use crate::os::files::{self, File, FileError};
use cere_format::capture::{Conflict, Postponed};
use std::io::{self, Write};

/// Bytes that the C library's allocator keeps or requests without need: its default `M_TRIM_THRESHOLD` and `M_TOP_PAD`.
const SLACK: usize = 128 << 10;

/// Faults of page traces beside blocks of a captured invocation: they may be given back at once.
const PATIENCE: u64 = 2000;

/// Notes that a capture has ended: what is traced beside its blocks is likely traced in vain.
pub fn note_blocks(state: &mut State) {
    let tracer = &mut state.engine.tracer;
    let last = state.past.last.filter(|_| heap::live_bytes() > 0);
    tracer.beside = last.map(|captured| (captured, tracer.faults + PATIENCE));
}

/// Notes that a capture begins, with the allocators in this state. Resets the region heap if it is unused, so that its state does
/// not depend on earlier captures.
pub fn note_capture(state: &mut State, wanted: usize, invocation: u64, heap: &Usage) {
    let past = &mut state.past;
    past.number += 1;
    past.freed = past.freed.max(heap.freed);
    let captured = Captured {
        number: past.number,
        wanted,
        invocation,
    };
    past.last = Some(captured);
    state.engine.tracer.beside = None;
    if past.freed <= SLACK {
        past.allocator = heap.memory.map(|memory| (captured, memory.all));
    }
    heap::renew_if_empty();
}

/// The earlier capture that prevents the capture of a wanted invocation, and why.
pub fn find_conflict(
    state: &State,
    wanted: usize,
    invocation: u64,
    heap: &Usage,
) -> Option<(Captured, Conflict)> {
    if let Some(captured) = state.captured() {
        return Some((captured, Conflict::Inside));
    }
    // No capture begins beside live blocks, so they are the last one's.
    if let Some(captured) = state.past.last.filter(|_| heap.live > 0) {
        return Some((captured, Conflict::Blocks));
    }
    if let Some(captured) = in_window(state, wanted, invocation) {
        return Some((captured, Conflict::Trace));
    }
    let (captured, before) = state.past.allocator?;
    let grown = heap.memory?.all.saturating_sub(before);
    let freed = state.past.freed.max(heap.freed);
    (freed > SLACK && grown > SLACK).then_some((captured, Conflict::Memory))
}

/// The capture inside which the invocation's page trace began, or earlier invocations of its region since then ran.
fn in_window(state: &State, wanted: usize, invocation: u64) -> Option<Captured> {
    let window = state.window(wanted, invocation)?;
    let began = state.engine.tracer.windows.iter();
    let began = began.into_iter().find(|w| w.plan == window)?;
    let inside = state.wanted[wanted].inside;
    began
        .inside
        .or(inside.filter(|captured| captured.number > began.captures))
}

/// Notes that another run has to take the invocation.
pub fn note_postponed(
    state: &State,
    wanted: usize,
    invocation: u64,
    (captured, conflict): (Captured, Conflict),
) -> Result<(), FileError> {
    let process = register::process_number().unwrap_or_default();
    let path = state.directory.join(format!("postponed.{process}.json"));
    let note = Postponed {
        key: state.wanted[wanted].key.clone(),
        invocation,
        thread: state.wanted[wanted].thread,
        process,
        captured: (
            state.wanted[captured.wanted].key.clone(),
            captured.invocation,
        ),
        conflict,
    };
    let append = || -> io::Result<()> {
        let mut text = serde_json::to_vec(&note)?;
        text.push(b'\n');
        File::open(&path, libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT)?.write_all(&text)
    };
    append().map_err(files::failed("write", &path))
}

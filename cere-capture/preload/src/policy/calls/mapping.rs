//! System calls that change what is mapped.

use crate::engine::layout;
use crate::engine::memory::{Access, Memory, READ, WRITE};
use crate::engine::spans::{KIND_FILE, KIND_GROWS};
use crate::engine::state::Engine;
use crate::os::guards;
use crate::os::sys::PAGE;
use crate::policy::halt::Halt;

/// The next multiple of the page size.
pub fn page_up(address: usize) -> usize {
    address.saturating_add(PAGE - 1) & !(PAGE - 1)
}

/// Makes a call that changes what is mapped.
pub fn change_mappings<M: Memory>(
    engine: &mut Engine<M>,
    number: i64,
    a: [usize; 6],
) -> Result<isize, Halt> {
    match number {
        libc::SYS_mmap => map(engine, a),
        libc::SYS_munmap => unmap(engine, a),
        libc::SYS_brk => move_break(engine, a),
        libc::SYS_madvise => advise(engine, a),
        libc::SYS_mprotect => change_rights(engine, a),
        _ => move_mapping(engine, a),
    }
}

/// The program's own call. What it changes is noted at once.
fn call<M: Memory>(engine: &mut Engine<M>, number: i64, a: [usize; 6]) -> isize {
    // SAFETY: the program's own call; the bookkeeping follows at once.
    unsafe { engine.pages.memory.call(number, a) }
}

/// Notes what a call with this result has done to [start, end): rights and kind of memory, none if it is unmapped.
fn note<M: Memory>(
    engine: &mut Engine<M>,
    result: isize,
    (start, end): (usize, usize),
    rights: Option<(u8, u8)>,
    fresh: bool,
) -> Result<isize, Halt> {
    engine
        .remap(start, end, rights, fresh)
        .map(|()| result)
        .map_err(|lack| Halt::Made(result, lack))
}

fn has_failed(result: isize) -> bool {
    (-4095..0).contains(&result)
}

/// `mmap`. What a file holds is no memory of the region.
fn map<M: Memory>(engine: &mut Engine<M>, a: [usize; 6]) -> Result<isize, Halt> {
    if a[3] & libc::MAP_ANONYMOUS as usize == 0 {
        return Err(Halt::Outside);
    }
    let result = call(engine, libc::SYS_mmap, a);
    if has_failed(result) {
        return Ok(result);
    }
    let (start, end) = (result as usize, result as usize + page_up(a[1]));
    let kind = match a[3] & libc::MAP_GROWSDOWN as usize {
        0 => 0,
        _ => KIND_GROWS,
    };
    let rights = Some((a[2] as u8 & 7, kind));
    note(engine, result, (start, end), rights, true)?;
    if kind != 0
        && let Some(level) = &mut engine.level
        && level.growing.len() < level.growing.capacity()
    {
        level.growing.push((start as u64, end as u64));
    }
    Ok(result)
}

fn unmap<M: Memory>(engine: &mut Engine<M>, a: [usize; 6]) -> Result<isize, Halt> {
    match call(engine, libc::SYS_munmap, a) {
        0 => note(engine, 0, (a[0], a[0] + page_up(a[1])), None, false),
        result => Ok(result),
    }
}

fn move_break<M: Memory>(engine: &mut Engine<M>, a: [usize; 6]) -> Result<isize, Halt> {
    let before = call(engine, libc::SYS_brk, [0; 6]) as usize;
    let result = call(engine, libc::SYS_brk, a);
    let after = result as usize;
    let range = (page_up(before.min(after)), page_up(before.max(after)));
    let grows = after > before;
    note(
        engine,
        result,
        range,
        grows.then_some((READ | WRITE, 0)),
        grows,
    )
}

fn advise<M: Memory>(engine: &mut Engine<M>, a: [usize; 6]) -> Result<isize, Halt> {
    const DONTNEED_LOCKED: i32 = 24;
    let captures = engine.level.is_some();
    if captures && [guards::INSTALL, guards::REMOVE].contains(&a[2]) {
        return Err(Halt::Guards);
    }
    let access = match a[2] as i32 {
        libc::MADV_DONTNEED | libc::MADV_FREE | libc::MADV_REMOVE | DONTNEED_LOCKED => {
            // A replay has private memory without a file there, which becomes zero.
            let end = a[0].saturating_add(a[1]);
            if captures && engine.pages.spans.any(a[0], end, KIND_FILE) {
                return Err(Halt::Drops);
            }
            Some(Access::Write)
        }
        libc::MADV_POPULATE_WRITE => Some(Access::Write),
        libc::MADV_POPULATE_READ => Some(Access::Read),
        _ => None,
    };
    if let Some(access) = access {
        engine.reach(a[0], a[1], access)?;
    }
    Ok(call(engine, libc::SYS_madvise, a))
}

/// `mprotect`. A call that fails half way has changed the first part of its range.
fn change_rights<M: Memory>(engine: &mut Engine<M>, a: [usize; 6]) -> Result<isize, Halt> {
    const HALF_WAY: &str = "a call of mprotect that fails half way";
    let (start, length) = (a[0], page_up(a[1]));
    if start.is_multiple_of(PAGE) && length > 0 && !engine.pages.memory.is_mapped(start, length) {
        return Err(Halt::HalfWay);
    }
    let result = call(engine, libc::SYS_mprotect, a);
    let known = engine.pages.spans.find(start);
    let alone = known.is_some_and(|s| start.saturating_add(length) <= s.end);
    if result == -(libc::ENOMEM as isize) || result == -(libc::EACCES as isize) && !alone {
        return Err(Halt::Made(result, HALF_WAY));
    }
    if result != 0 || length == 0 {
        return Ok(result);
    }
    let kind = match (known, engine.level.as_ref()) {
        (Some(span), _) => span.kind,
        (None, Some(level)) => layout::find_kind(&level.images, start as u64),
        (None, None) => 0,
    };
    let rights = Some((a[2] as u8 & 7, kind));
    note(
        engine,
        result,
        (start, start + length),
        rights,
        known.is_none(),
    )
}

/// `mremap`. It needs one mapping: protection may have split it.
fn move_mapping<M: Memory>(engine: &mut Engine<M>, a: [usize; 6]) -> Result<isize, Halt> {
    let (old, length, new) = (a[0], page_up(a[1]), page_up(a[2]));
    let Some(span) = engine.pages.spans.find(old) else {
        return Err(Halt::Outside);
    };
    let access = match span.protection & WRITE {
        0 => Access::Read,
        _ => Access::Write,
    };
    engine.reach(old, length, access)?;
    // SAFETY: the program's own protection, of memory that is open.
    unsafe {
        let memory = &mut engine.pages.memory;
        memory.protect(old, old + length, span.protection);
    }
    let result = call(engine, libc::SYS_mremap, a);
    if has_failed(result) {
        return Ok(result);
    }
    let start = result as usize;
    let rights = Some((span.protection, span.kind));
    if start != old || new < length {
        note(engine, result, (old, old + length), None, false)?;
    }
    if start != old {
        note(engine, result, (start, start + new), rights, true)
    } else if new < length {
        note(engine, result, (old, old + new), rights, false)
    } else {
        note(engine, result, (old + length, old + new), rights, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::Program;

    fn change(program: &mut Program, number: i64, a: [usize; 6]) -> Result<isize, Halt> {
        change_mappings(&mut program.engine, number, a)
    }

    #[test]
    fn fresh_memory_is_closed() {
        let mut program = Program::captured(1);
        let at = 0x5000_0000_0000;
        program.engine.pages.memory.result = at;
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
        let arguments = [0, 100, (READ | WRITE) as usize, flags, usize::MAX, 0];
        assert!(matches!(change(&mut program, libc::SYS_mmap, arguments), Ok(r) if r == at));
        let span = (at as usize, at as usize + PAGE, READ | WRITE);
        assert!(program.spans().contains(&span));
        assert_eq!(program.engine.pages.memory.rights[&(at as usize)], 0);
    }

    #[test]
    fn files_are_outside() {
        let mut program = Program::captured(1);
        let flags = libc::MAP_PRIVATE as usize;
        let outcome = change(&mut program, libc::SYS_mmap, [0, PAGE, 1, flags, 3, 0]);
        assert!(matches!(outcome, Err(Halt::Outside)));
        assert!(program.engine.pages.memory.made.is_empty());
    }

    #[test]
    fn what_fails_changes_nothing() {
        let mut program = Program::captured(2);
        program.engine.pages.memory.result = -(libc::EINVAL as isize);
        let arguments = [program.page(1), PAGE, 0, 0, 0, 0];
        let outcome = change(&mut program, libc::SYS_munmap, arguments);
        assert!(matches!(outcome, Ok(-22)));
        assert_eq!(program.spans()[0].1, program.page(2));
    }

    #[test]
    fn rights_that_would_change_half_way() {
        let mut program = Program::captured(2);
        let arguments = [program.page(1), 2 * PAGE, READ as usize, 0, 0, 0];
        let beyond = program.page(2);
        program.engine.pages.memory.unmapped.push(beyond);
        let outcome = change(&mut program, libc::SYS_mprotect, arguments);
        assert!(matches!(outcome, Err(Halt::HalfWay)));
        assert!(program.engine.pages.memory.made.is_empty());
    }

    #[test]
    fn moved_memory_is_whole_and_open_before() {
        let mut program = Program::captured(2);
        let to = 0x5000_0000_0000;
        program.engine.pages.memory.result = to;
        let old = program.start;
        let arguments = [old, 2 * PAGE, 3 * PAGE, libc::MREMAP_MAYMOVE as usize, 0, 0];
        assert!(matches!(change(&mut program, libc::SYS_mremap, arguments), Ok(r) if r == to));
        assert_eq!(program.touches().len(), 2);
        let whole = (old, old + 2 * PAGE, READ | WRITE);
        assert!(program.engine.pages.memory.calls.contains(&whole));
        let to = to as usize;
        assert_eq!(program.spans(), [(to, to + 3 * PAGE, READ | WRITE)]);
    }

    #[test]
    fn files_are_not_dropped_inside() {
        let mut program = Program::captured(1);
        let span = program.engine.pages.spans.all()[0];
        let file = crate::engine::spans::Span {
            kind: KIND_FILE,
            ..span
        };
        assert!(program.engine.pages.spans.insert(file));
        let arguments = [program.start, PAGE, libc::MADV_DONTNEED as usize, 0, 0, 0];
        let outcome = change(&mut program, libc::SYS_madvise, arguments);
        assert!(matches!(outcome, Err(Halt::Drops)));
    }
}

//! System calls that change what is mapped.

use crate::engine::layout;
use crate::engine::memory::{Access, Memory};
use crate::engine::spans::{KIND_FILE, KIND_GROWS};
use crate::engine::state::Engine;
use crate::os::guards;
use crate::os::sys::PAGE;
use crate::policy::halt::Halt;

const DONTNEED_LOCKED: usize = 24;

/// The next multiple of the page size.
pub fn page_up(address: usize) -> usize {
    address.saturating_add(PAGE - 1) & !(PAGE - 1)
}

/// mprotect. A call that fails half way has changed the first part of its range.
fn change_rights<M: Memory>(engine: &mut Engine<M>, a: [usize; 6]) -> Result<isize, Halt> {
    const HALF_WAY: &str = "a call of mprotect that fails half way";
    let length = page_up(a[1]);
    if a[0].is_multiple_of(PAGE) && length > 0 && !engine.pages.memory.is_mapped(a[0], length) {
        return Err(Halt::HalfWay);
    }
    // SAFETY: the program's own call; the bookkeeping follows at once.
    let result = unsafe { engine.pages.memory.call(libc::SYS_mprotect, a) };
    let end = a[0].saturating_add(length);
    let alone = engine.pages.spans.find(a[0]).is_some_and(|s| end <= s.end);
    match result {
        result if result == -(libc::ENOMEM as isize) => Err(Halt::Made(result, HALF_WAY)),
        result if result == -(libc::EACCES as isize) && !alone => Err(Halt::Made(result, HALF_WAY)),
        result => Ok(result),
    }
}

/// Calls that change what is mapped.
pub fn change_mappings<M: Memory>(
    engine: &mut Engine<M>,
    number: i64,
    a: [usize; 6],
) -> Result<isize, Halt> {
    let failed = |result: isize| (-4095..0).contains(&result);
    // SAFETY: the program's own calls; the bookkeeping follows at once.
    unsafe {
        match number {
            libc::SYS_mmap => {
                if a[3] & libc::MAP_ANONYMOUS as usize == 0 {
                    return Err(Halt::Outside);
                }
                let result = engine.pages.memory.call(number, a);
                if !failed(result) {
                    let (start, end) = (result as usize, result as usize + page_up(a[1]));
                    let kind = match a[3] & libc::MAP_GROWSDOWN as usize {
                        0 => 0,
                        _ => KIND_GROWS,
                    };
                    engine
                        .remap(start, end, Some((a[2] as u8 & 7, kind)), true)
                        .map_err(|lack| Halt::Made(result, lack))?;
                    if kind != 0
                        && let Some(level) = &mut engine.level
                        && level.growing.len() < level.growing.capacity()
                    {
                        level.growing.push((start as u64, end as u64));
                    }
                }
                Ok(result)
            }
            libc::SYS_munmap => {
                let result = engine.pages.memory.call(number, a);
                if result == 0 {
                    engine
                        .remap(a[0], a[0] + page_up(a[1]), None, false)
                        .map_err(|lack| Halt::Made(result, lack))?;
                }
                Ok(result)
            }
            libc::SYS_brk => {
                let before = engine.pages.memory.call(number, [0; 6]) as usize;
                let result = engine.pages.memory.call(number, a);
                let after = result as usize;
                if after > before {
                    let both = (libc::PROT_READ | libc::PROT_WRITE) as u8;
                    engine
                        .remap(page_up(before), page_up(after), Some((both, 0)), true)
                        .map_err(|lack| Halt::Made(result, lack))?;
                } else {
                    engine
                        .remap(page_up(after), page_up(before), None, false)
                        .map_err(|lack| Halt::Made(result, lack))?;
                }
                Ok(result)
            }
            libc::SYS_madvise => {
                let drops = [libc::MADV_DONTNEED, libc::MADV_FREE, libc::MADV_REMOVE];
                if engine.level.is_some() && [guards::INSTALL, guards::REMOVE].contains(&a[2]) {
                    return Err(Halt::Guards);
                }
                if drops.contains(&(a[2] as i32)) || a[2] == DONTNEED_LOCKED {
                    // A replay has private memory without a file there, which becomes zero.
                    let end = a[0].saturating_add(a[1]);
                    if engine.level.is_some() && engine.pages.spans.any(a[0], end, KIND_FILE) {
                        return Err(Halt::Drops);
                    }
                    engine.reach(a[0], a[1], Access::Write)?;
                } else if a[2] == libc::MADV_POPULATE_WRITE as usize {
                    engine.reach(a[0], a[1], Access::Write)?;
                } else if a[2] == libc::MADV_POPULATE_READ as usize {
                    engine.reach(a[0], a[1], Access::Read)?;
                }
                Ok(engine.pages.memory.call(number, a))
            }
            libc::SYS_mprotect => {
                let result = change_rights(engine, a)?;
                if result == 0 && a[1] > 0 {
                    let kind = match (engine.pages.spans.find(a[0]), engine.level.as_ref()) {
                        (Some(span), _) => span.kind,
                        (None, Some(level)) => layout::find_kind(&level.images, a[0] as u64),
                        (None, None) => 0,
                    };
                    let known = engine.pages.spans.find(a[0]).is_some();
                    engine
                        .remap(
                            a[0],
                            a[0] + page_up(a[1]),
                            Some((a[2] as u8 & 7, kind)),
                            !known,
                        )
                        .map_err(|lack| Halt::Made(result, lack))?;
                }
                Ok(result)
            }
            _ => {
                // mremap needs one mapping: protection may have split it.
                let (old, length, new) = (a[0], page_up(a[1]), page_up(a[2]));
                let Some(span) = engine.pages.spans.find(old) else {
                    return Err(Halt::Outside);
                };
                let access = match span.protection & libc::PROT_WRITE as u8 {
                    0 => Access::Read,
                    _ => Access::Write,
                };
                engine.reach(old, length, access)?;
                engine
                    .pages
                    .memory
                    .protect(old, old + length, span.protection);
                let result = engine.pages.memory.call(number, a);
                if !failed(result) {
                    let start = result as usize;
                    let rights = Some((span.protection, span.kind));
                    if start != old || new < length {
                        engine
                            .remap(old, old + length, None, false)
                            .map_err(|lack| Halt::Made(result, lack))?;
                    }
                    if start != old {
                        engine
                            .remap(start, start + new, rights, true)
                            .map_err(|lack| Halt::Made(result, lack))?;
                    } else if new < length {
                        engine
                            .remap(old, old + new, rights, false)
                            .map_err(|lack| Halt::Made(result, lack))?;
                    } else {
                        engine
                            .remap(old + length, old + new, rights, true)
                            .map_err(|lack| Halt::Made(result, lack))?;
                    }
                }
                Ok(result)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::memory::{READ, WRITE};
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
        let span = program
            .engine
            .pages
            .spans
            .find(at as usize)
            .expect("a span");
        assert_eq!(
            (span.end, span.protection),
            (at as usize + PAGE, READ | WRITE)
        );
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
        assert!(
            program
                .engine
                .pages
                .spans
                .find(program.start + PAGE)
                .is_some()
        );
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
        let spans = program.engine.pages.spans.all();
        let to = to as usize;
        assert_eq!(
            (spans.len(), spans[0].start, spans[0].end),
            (1, to, to + 3 * PAGE)
        );
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

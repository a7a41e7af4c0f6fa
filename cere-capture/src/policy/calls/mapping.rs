//! System calls that change what is mapped.

use crate::engine::layout;
use crate::engine::memory::{Access, Memory};
use crate::engine::spans::KIND_FILE;
use crate::engine::state::Engine;
use crate::os::sys::PAGE;
use crate::policy::halt::Halt;

const DONTNEED_LOCKED: usize = 24;

/// The next multiple of the page size.
pub fn page_up(address: usize) -> usize {
    address.saturating_add(PAGE - 1) & !(PAGE - 1)
}

/// mprotect. One that fails half way has changed what comes before.
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
                    let start = result as usize;
                    engine
                        .remap(
                            start,
                            start + page_up(a[1]),
                            Some((a[2] as u8 & 7, 0)),
                            true,
                        )
                        .map_err(|lack| Halt::Made(result, lack))?;
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
                if drops.contains(&(a[2] as i32)) || a[2] == DONTNEED_LOCKED {
                    // A replay has private memory without a file there.
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
                        (None, Some(level)) => layout::kind(&level.images, a[0] as u64),
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
                // mremap wants one mapping: what protection split has to be whole again.
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

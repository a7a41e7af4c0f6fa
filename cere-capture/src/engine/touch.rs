//! What a touch of protected memory does.

use super::memory::{Access, EXECUTE, Memory, READ, WRITE};
use super::pool::{DEAD, GUESSED, Page, TOUCHER_SHIFT, TOUCHERS, Touch};
use super::spans::{KIND_STACK, KIND_TWICE, Span};
use super::state::Engine;
use crate::os::sys::PAGE;

/// Pages opened together when mappings run out, smallest first.
const BLOCKS: [usize; 5] = [16, 256, 4096, 65536, usize::MAX / PAGE / 2];

/// Result of a touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touched {
    /// The page is open now.
    Opened,
    /// The program has no right to it.
    NotOurs,
    /// The page cannot be opened, for lack of this.
    Failed(&'static str),
}

impl<M: Memory> Engine<M> {
    /// Opens the page at `address` for `access` and lets the capture keep its content.
    pub fn touch(&mut self, address: usize, access: Access) -> Touched {
        let address = address & !(PAGE - 1);
        let Some(span) = self
            .pages
            .spans
            .find(address)
            .or_else(|| self.grow(address))
        else {
            return Touched::NotOurs;
        };
        let need = match access {
            Access::Read => READ,
            Access::Write => WRITE,
            Access::Execute => EXECUTE,
        };
        // On x86 memory that may be written or executed may be read.
        if span.protection & need == 0 && (need != READ || span.protection == 0) {
            return Touched::NotOurs;
        }
        // SAFETY: a page of the pool, or null.
        let Some(page) = (unsafe { self.pages.pool.page(address).as_mut() }) else {
            return Touched::Failed("more address space than can be noted");
        };
        let mut now = need | (span.protection & READ);
        let open = self.pages.rights(page);
        now |= open;
        let twice = span.kind & KIND_TWICE != 0 && self.level.is_some();
        if twice && access == Access::Write {
            return Touched::Failed("memory that is mapped at two addresses, to write it");
        }
        let new = !page.touched;
        // The first read of a page beside written ones is likely followed by a write: one fault for both.
        let guess = new
            && !twice
            && self.level.is_some()
            && access == Access::Read
            && span.protection & WRITE != 0
            && (self.pages.open_rights(address.wrapping_sub(PAGE))
                | self.pages.open_rights(address + PAGE))
                & WRITE
                != 0;
        let mut kind = u32::from(span.kind);
        if guess {
            now |= WRITE;
            kind |= GUESSED;
        }
        let shared = self.shared();
        if shared && open & need == need {
            // Another thread was first.
            return Touched::Opened;
        }
        if !self.pages.is_short() {
            let kept = self.level.is_none() || page.touched;
            let mut result = 0;
            if shared && !kept && now & WRITE != 0 {
                // SAFETY: within the program's rights. Nobody writes until the copy is made.
                result = unsafe {
                    self.pages
                        .memory
                        .protect(address, address + PAGE, now & !WRITE | READ)
                };
                if result == 0
                    && let Err(lack) = self.take(address, kind, page)
                {
                    return Touched::Failed(lack);
                }
            }
            if result == 0 {
                // SAFETY: within the program's rights.
                result = unsafe { self.pages.memory.protect(address, address + PAGE, now) };
            }
            if result == 0 {
                if now & WRITE != 0 && !kept {
                    // SAFETY: writable by now.
                    unsafe { self.pages.memory.populate(address) };
                }
                if let Err(lack) = self.took(&span, kind, address, page, now) {
                    return Touched::Failed(lack);
                }
                let toucher = self.toucher;
                self.tracer
                    .trace(&mut self.pages, address, page, open == 0, toucher);
                return Touched::Opened;
            }
            if result != -(libc::ENOMEM as isize) {
                return Touched::Failed("a page that cannot be opened");
            }
        }
        self.block(span, address, access)
    }

    /// Adds the page to the capture, if that has not touched it. The page is readable.
    fn take(&mut self, address: usize, kind: u32, page: &mut Page) -> Result<(), &'static str> {
        let Some(level) = self.level.as_mut().filter(|_| !page.touched) else {
            return Ok(());
        };
        let mut touch = Touch {
            address,
            copy: 0,
            kind: kind | self.toucher.min(TOUCHERS) << TOUCHER_SHIFT,
            exit: 0,
        };
        let dead = kind & u32::from(KIND_STACK) != 0
            && level.stack.0 <= address
            && address + PAGE <= level.entry.stack_pointer as usize;
        if dead {
            touch.kind |= DEAD;
        } else {
            // SAFETY: the page is readable.
            touch.copy = unsafe { self.pages.pool.copy(address) }
                .ok_or("more memory than the machine has left")?;
        }
        if !self.pages.pool.append(level.touched, touch) {
            return Err("more pages than can be noted");
        }
        level.touched += 1;
        page.touched = true;
        Ok(())
    }

    fn took(
        &mut self,
        span: &Span,
        kind: u32,
        address: usize,
        page: &mut Page,
        now: u8,
    ) -> Result<(), &'static str> {
        self.take(address, kind, page)?;
        let captures = self.level.is_some();
        page.written |= captures && now & WRITE != 0;
        page.executed |= captures && now & EXECUTE != 0;
        self.pages.note_rights(span, address, page, now);
        Ok(())
    }

    /// Mappings run out: opens a whole block around `address` with all the program's rights.
    fn block(&mut self, span: Span, address: usize, access: Access) -> Touched {
        let mut now = span.protection;
        if access != Access::Execute && now & WRITE != 0 {
            now &= !EXECUTE;
        }
        for pages in BLOCKS {
            let size = pages * PAGE;
            let start = (address / size * size).max(span.start);
            let end = start.saturating_add(size).min(span.end);
            // If other threads run, nobody may write until the copies are made.
            let first = if self.shared() {
                now & !WRITE | READ
            } else {
                now
            };
            // SAFETY: within the program's rights.
            let result = unsafe { self.pages.memory.protect(start, end, first) };
            if result == -(libc::ENOMEM as isize) {
                // A part of it may have been opened.
                self.pages.pool.close(start, end);
                // SAFETY: the handler opens what the program touches.
                if unsafe { self.pages.memory.protect(start, end, 0) } < 0 {
                    return Touched::Failed("memory that cannot be closed again");
                }
                continue;
            }
            if result < 0 {
                return Touched::Failed("memory that cannot be opened");
            }
            // Pages of a mapping beyond the end of its file cannot be read.
            if self.pages.memory.read_in(start, end) == -(libc::EFAULT as isize) {
                return Touched::Failed("memory that cannot be read");
            }
            for at in (start..end).step_by(PAGE) {
                // SAFETY: a page of the pool, or null.
                let Some(page) = (unsafe { self.pages.pool.page(at).as_mut() }) else {
                    return Touched::Failed("more address space than can be noted");
                };
                let mut kind = u32::from(span.kind);
                if !page.touched && at != address {
                    kind |= GUESSED;
                }
                if let Err(lack) = self.took(&span, kind, at, page, now) {
                    return Touched::Failed(lack);
                }
            }
            // SAFETY: within the program's rights.
            if first != now && unsafe { self.pages.memory.protect(start, end, now) } < 0 {
                return Touched::Failed("memory that cannot be opened");
            }
            return Touched::Opened;
        }
        Touched::Failed("more mappings than vm.max_map_count allows")
    }

    /// Finds out whether the kernel has let the stack grow down to `address`.
    fn grow(&mut self, address: usize) -> Option<Span> {
        let above = self.pages.spans.above(address)?;
        if above.kind & KIND_STACK == 0
            || above.end != self.place.stack.1
            || above.start - address > 1 << 30
            || self.place.control.0 == address
            || !self.place.grows
        {
            return None;
        }
        if !self.pages.memory.is_mapped(address, above.start - address) {
            return None;
        }
        // SAFETY: fails where nothing is mapped, and what is mapped right below the stack is stack.
        if unsafe { self.pages.memory.protect(address, above.start, 0) } < 0 {
            return None;
        }
        let start = address;
        let grown = Span {
            start,
            end: above.end,
            ..above
        };
        self.pages.spans.insert(grown).then_some(grown)
    }

    /// Opens [start, start + length) for a system call. Parts that the program may not access are left to the kernel.
    pub fn reach(
        &mut self,
        start: usize,
        length: usize,
        access: Access,
    ) -> Result<(), &'static str> {
        if start == 0 || length == 0 {
            return Ok(());
        }
        let end = start.saturating_add(length);
        let mut at = start & !(PAGE - 1);
        while let Some((start, stop)) = self.pages.spans.part(at, end) {
            at = start;
            while at < stop {
                let open = self.pages.open_rights(at);
                let enough = match access {
                    Access::Write => open & WRITE != 0,
                    _ => open != 0,
                };
                if !enough && let Touched::Failed(lack) = self.touch(at, access) {
                    return Err(lack);
                }
                at += PAGE;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Program;
    use super::*;
    use Access::{Execute, Read, Write};

    #[test]
    fn a_read_page_is_kept_and_opened_for_reading() {
        let mut program = Program::captured(4);
        let inside = program.page(2) + 123;
        assert_eq!(program.engine.touch(inside, Read), Touched::Opened);
        assert_eq!([program.rights(1), program.rights(2)], [0, READ]);
        let touches = program.touches();
        assert_eq!(touches.len(), 1);
        assert_eq!(touches[0].address, program.page(2));
        program.write(2, 77);
        assert_eq!(program.at_entry(&touches[0]), 3);
    }

    #[test]
    fn a_page_is_kept_once() {
        let mut program = Program::captured(1);
        let page = program.page(0);
        assert_eq!(program.engine.touch(page, Read), Touched::Opened);
        assert_eq!(program.engine.touch(page, Write), Touched::Opened);
        assert_eq!(program.rights(0), READ | WRITE);
        assert_eq!(program.touches().len(), 1);
        // SAFETY: a page of the pool.
        let known = unsafe { *program.engine.pages.pool.page(page) };
        assert!(known.touched && known.written && !known.executed);
    }

    #[test]
    fn a_page_beside_a_written_one_is_guessed_to_be_written() {
        let mut program = Program::captured(3);
        let (first, second) = (program.page(0), program.page(1));
        assert_eq!(program.engine.touch(first, Write), Touched::Opened);
        assert_eq!(program.engine.touch(second, Read), Touched::Opened);
        assert_eq!(program.rights(1), READ | WRITE);
        let guessed = program.touches().into_iter().map(|t| t.kind & GUESSED != 0);
        assert_eq!(guessed.collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn pages_of_zeros_take_no_copy() {
        let mut program = Program::captured(1);
        program.write(0, 0);
        let page = program.page(0);
        assert_eq!(program.engine.touch(page, Read), Touched::Opened);
        assert_eq!(program.touches()[0].copy, 0);
    }

    #[test]
    fn what_the_program_may_not_touch() {
        let mut program = Program::captured(2);
        let (page, after) = (program.page(1), program.page(2));
        assert_eq!(program.engine.touch(page, Execute), Touched::NotOurs);
        assert_eq!(program.engine.touch(after, Read), Touched::NotOurs);
        assert!(program.touches().is_empty());
    }

    #[test]
    fn without_memory_for_copies_it_fails() {
        let mut program = Program::captured(2);
        program.engine.pages.pool.allow(0);
        let page = program.page(0);
        let touched = program.engine.touch(page, Read);
        assert!(matches!(touched, Touched::Failed(_)), "{touched:?}");
    }

    #[test]
    fn blocks_are_opened_where_mappings_run_short() {
        let mut program = Program::captured(40);
        program.engine.pages.budget = 0;
        let page = program.page(20);
        assert_eq!(program.engine.touch(page, Read), Touched::Opened);
        let open = (0..40).filter(|i| program.rights(*i) != 0).count();
        assert!((9..=16).contains(&open), "{open}");
        let touches = program.touches();
        assert_eq!(touches.len(), open);
        let sure = touches.iter().filter(|t| t.kind & GUESSED == 0);
        assert_eq!(sure.map(|t| t.address).collect::<Vec<_>>(), [page]);
    }

    #[test]
    fn larger_blocks_where_the_kernel_refuses_smaller_ones() {
        let mut program = Program::captured(40);
        program.engine.pages.memory.refused = Some((PAGE, libc::ENOMEM as isize));
        let page = program.page(20);
        assert_eq!(program.engine.touch(page, Write), Touched::Opened);
        assert!(program.touches().len() > 1);
    }

    #[test]
    fn system_calls_reach_all_pages_of_a_range() {
        let mut program = Program::captured(5);
        let (start, length) = (program.page(1) + 10, 2 * PAGE);
        assert_eq!(program.engine.reach(start, length, Write), Ok(()));
        let rights: Vec<u8> = (0..5).map(|i| program.rights(i)).collect();
        let both = READ | WRITE;
        assert_eq!(rights, [0, both, both, both, 0]);
        // What the program does not have is left to the kernel.
        assert_eq!(program.engine.reach(8, 100, Write), Ok(()));
    }

    #[test]
    fn memory_at_two_addresses_is_not_written() {
        let mut program = Program::captured(1);
        let span = program.engine.pages.spans.all()[0];
        let twice = Span {
            kind: KIND_TWICE,
            ..span
        };
        assert!(program.engine.pages.spans.insert(twice));
        let page = program.page(0);
        assert_eq!(program.engine.touch(page, Read), Touched::Opened);
        let touched = program.engine.touch(page, Write);
        assert!(matches!(touched, Touched::Failed(_)), "{touched:?}");
    }
}

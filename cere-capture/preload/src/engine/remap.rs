//! What the program maps, unmaps and protects while its memory is closed.

use super::memory::Memory;
use super::spans::Span;
use super::state::Engine;

impl<M: Memory> Engine<M> {
    /// The program mapped, unmapped or protected [start, end). `protection` holds its rights there and the kind of memory; none if
    /// it is unmapped. `fresh` memory is noted in the capture.
    pub fn remap(
        &mut self,
        start: usize,
        end: usize,
        protection: Option<(u8, u8)>,
        fresh: bool,
    ) -> Result<(), &'static str> {
        const LACK: &str = "more separate mappings than can be noted";
        self.pages.pool.close(start, end);
        let done = match protection {
            Some((protection, kind)) if protection != 0 => {
                let span = Span {
                    start,
                    end,
                    protection,
                    kind,
                };
                // In this order: everything that is closed has a span, by which it is opened again.
                let known = self.pages.spans.insert(span);
                // SAFETY: the handler opens what the program touches.
                if known && start < end && unsafe { self.pages.memory.protect(start, end, 0) } < 0 {
                    return Err("memory that cannot be protected");
                }
                known
            }
            _ => self.pages.spans.carve(start, end),
        };
        if !done {
            return Err(LACK);
        }
        if let Some(level) = self.level.as_mut().filter(|_| fresh) {
            let full = level.fresh.len() == level.fresh.capacity();
            let (start, end) = (start as u64, end as u64);
            // Memory that is mapped, dropped and mapped again is listed once.
            if level.fresh.iter().any(|f| f.0 <= start && end <= f.1) {
                return Ok(());
            }
            match level.fresh.last_mut() {
                Some(last) if last.1 == start => last.1 = end,
                Some(last) if last.0 == end => last.0 = start,
                _ if full => return Err(LACK),
                _ => level.fresh.push((start, end)),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::{Access, READ, WRITE};
    use super::super::testing::Program;
    use super::super::touch::Touched;
    use crate::os::sys::PAGE;

    fn fresh(program: &Program) -> Vec<(u64, u64)> {
        let level = program.engine.level.as_ref();
        level.expect("a capture").fresh.clone()
    }

    #[test]
    fn fresh_memory_is_closed_and_noted_once() {
        let mut program = Program::captured(1);
        let both = Some((READ | WRITE, 0));
        let at = 0x5000_0000_0000;
        let mut map = |start, end| program.engine.remap(start, end, both, true);
        assert_eq!(map(at, at + PAGE), Ok(()));
        assert_eq!(map(at + PAGE, at + 3 * PAGE), Ok(()));
        assert_eq!(map(at, at + PAGE), Ok(()));
        assert_eq!(fresh(&program), [(at as u64, (at + 3 * PAGE) as u64)]);
        let rights = &program.engine.pages.memory.rights;
        let closed = [at, at + PAGE, at + 2 * PAGE].map(|page| rights[&page]);
        assert_eq!(closed, [0; 3]);
    }

    #[test]
    fn unmapped_memory_is_the_programs_no_more() {
        let mut program = Program::captured(3);
        let (page, end) = (program.page(1), program.page(2));
        assert_eq!(program.touch(1, Access::Read), Touched::Opened);
        assert_eq!(program.engine.remap(page, end, None, false), Ok(()));
        assert_eq!(program.touch(1, Access::Read), Touched::NotOurs);
        assert_eq!(program.engine.pages.spans.all().len(), 2);
    }

    #[test]
    fn rights_that_change_close_what_was_open() {
        let mut program = Program::captured(2);
        let (page, end) = (program.page(0), program.page(1));
        assert_eq!(program.engine.touch(page, Access::Write), Touched::Opened);
        let read_only = Some((READ, 0));
        assert_eq!(program.engine.remap(page, end, read_only, false), Ok(()));
        assert_eq!(program.rights(0), 0);
        assert_eq!(program.engine.touch(page, Access::Write), Touched::NotOurs);
        assert_eq!(program.engine.touch(page, Access::Read), Touched::Opened);
        assert!(fresh(&program).is_empty());
    }
}

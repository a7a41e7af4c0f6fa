//! What the program maps, unmaps and protects while its memory is closed.

use super::memory::Memory;
use super::spans::Span;
use super::state::Engine;

impl<M: Memory> Engine<M> {
    /// The program mapped, unmapped or protected [start, end): `protection` is what it may do there now, none
    /// if nothing. Fresh memory is noted as such.
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
                // In this order: what is closed is known, and opened whatever happens.
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
            // Memory that is mapped, dropped and mapped again stands there once.
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

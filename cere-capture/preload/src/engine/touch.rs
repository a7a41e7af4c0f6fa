//! What a touch of protected memory does.

use super::memory::{Access, EXECUTE, Memory, READ, WRITE};
use super::pool::{DEAD, Did, TOUCHER_SHIFT, TOUCHERS, Touch};
use super::spans::{KIND_FILE, KIND_GROWS, KIND_OUTSIDE, KIND_STACK, KIND_TWICE, Span};
use super::state::Engine;
use super::streams::{self, Place, Streams};
use super::tracer::Run;
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

/// A page that is about to be opened.
struct Opening {
    span: Span,
    address: usize,
    /// The access that touches it.
    access: Access,
    /// Rights in force.
    open: u8,
    /// Rights that it gets.
    now: u8,
    /// Whether the capture has it, if there is one.
    known: bool,
    /// Whether there is a capture that does not have it.
    new: bool,
    /// Whether other threads run in a parallel region.
    shared: bool,
}

impl<M: Memory> Engine<M> {
    /// In the handler of a fault: a [`Engine::touch`] that takes none of the program's time.
    pub fn touch_by_fault(&mut self, address: usize, access: Access) -> Touched {
        if !self.tracer.on {
            return self.touch(address, access);
        }
        let now = self.pages.memory.time();
        self.tracer.pace.stop(now, self.toucher);
        let touched = self.touch(address, access);
        self.tracer.pace.go_on(self.pages.memory.time());
        touched
    }

    /// Opens the page at `address` for `access` and lets the capture keep its content.
    pub fn touch(&mut self, address: usize, access: Access) -> Touched {
        let opening = match self.plan_opening(address & !(PAGE - 1), access) {
            Ok(opening) => opening,
            Err(touched) => return touched,
        };
        if opening.new
            && self.may_be_unreadable(&opening.span)
            && !self.is_readable(opening.address, opening.now)
        {
            return Touched::NotOurs;
        }
        if !self.pages.is_short()
            && let Some(touched) = self.open_run(&opening)
        {
            return touched;
        }
        self.block(opening.span, opening.address, access)
    }

    /// What is to be opened at a touch of the page at `address`; or what becomes of the touch without that.
    fn plan_opening(&mut self, address: usize, access: Access) -> Result<Opening, Touched> {
        let known = self.pages.spans.find(address);
        let Some(span) = known.or_else(|| self.grow(address)) else {
            return Err(Touched::NotOurs);
        };
        let need = match access {
            Access::Read => READ,
            Access::Write => WRITE,
            Access::Execute => EXECUTE,
        };
        // On x86 memory that may be written or executed may be read.
        if span.protection & need == 0 && (need != READ || span.protection == 0) {
            return Err(Touched::NotOurs);
        }
        let Some(page) = self.pages.pool.page(address).copied() else {
            return Err(Touched::Failed("more address space than can be noted"));
        };
        let (open, captures) = (self.pages.rights(&page), self.level.is_some());
        if span.kind & KIND_OUTSIDE != 0 && captures {
            return Err(Touched::Failed(
                "memory that other processes change: they have it mapped as well, to write it",
            ));
        }
        let twice = span.kind & KIND_TWICE != 0 && captures;
        if twice && access == Access::Write {
            let lack = "memory that is mapped at two addresses, to write it";
            return Err(Touched::Failed(lack));
        }
        let shared = self.shared();
        if shared && open & need == need {
            // Another thread was first.
            return Err(Touched::Opened);
        }
        let new = captures && page.touched == Did::No;
        // The first read of a page beside written ones is likely followed by a write: one fault for both.
        let guess = new
            && !twice
            && access == Access::Read
            && span.protection & WRITE != 0
            && (self.pages.open_rights(address.wrapping_sub(PAGE))
                | self.pages.open_rights(address + PAGE))
                & WRITE
                != 0;
        Ok(Opening {
            span,
            address,
            access,
            open,
            now: need | span.protection & READ | open | if guess { WRITE } else { 0 },
            known: page.touched != Did::No,
            new,
            shared,
        })
    }

    /// Opens the page, and with it those that its stream is likely to touch next. None where the kernel has no mapping left.
    fn open_run(&mut self, opening: &Opening) -> Option<Touched> {
        let (address, new, now) = (opening.address, opening.new, opening.now);
        let stream = self.follow(opening);
        let ahead = stream.map_or(0, |place| {
            let ahead = self.count_ahead(opening, place);
            self.streams_of(new).opened(place, ahead);
            ahead
        });
        let down = stream.is_some_and(|place| place.down);
        let beyond = streams::beyond(address, ahead, down);
        let (start, end) = (beyond.0.min(address), beyond.1.max(address + PAGE));
        match self.give_rights(opening, (start, end)) {
            Ok(0) => {}
            Ok(result) if result == -(libc::ENOMEM as isize) => return None,
            Ok(_) => return Some(Touched::Failed("a page that cannot be opened")),
            Err(lack) => return Some(Touched::Failed(lack)),
        }
        if now & WRITE != 0 && new {
            // SAFETY: writable by now.
            unsafe { self.pages.memory.populate(start, end) };
        }
        if let Err(lack) = self.take(&opening.span, (start, end), address) {
            return Some(Touched::Failed(lack));
        }
        self.note(&opening.span, (start, end), (address, opening.access), now);
        let run = Run {
            page: address,
            ahead: ahead as u16,
            down,
            thread: self.toucher,
            time: self.tracer.pace.time(),
        };
        self.tracer.trace(&mut self.pages, run, opening.open == 0);
        Some(Touched::Opened)
    }

    /// Sets the rights of [start, end), a part of the span: the kernel's result. Beside other threads copies are made before.
    fn give_rights(
        &mut self,
        opening: &Opening,
        (start, end): (usize, usize),
    ) -> Result<isize, &'static str> {
        let now = opening.now;
        if opening.shared && opening.new && now & WRITE != 0 {
            // SAFETY: within the program's rights. Nobody writes until the copies are made.
            let result = unsafe { self.pages.memory.protect(start, end, now & !WRITE | READ) };
            if result != 0 {
                return Ok(result);
            }
            self.take(&opening.span, (start, end), opening.address)?;
        }
        // SAFETY: within the program's rights.
        Ok(unsafe { self.pages.memory.protect(start, end, now) })
    }

    /// Whether a page may be such that it cannot be read though its mapping allows it: beyond the end of its file, or a guard page
    /// that the kernel did not report.
    fn may_be_unreadable(&self, span: &Span) -> bool {
        let unknown = self.level.as_ref().is_some_and(|l| l.guards.is_none());
        span.kind & KIND_FILE != 0 || unknown
    }

    /// Whether the page at `address` can be read with the rights `now`, which are in force afterwards if so.
    fn is_readable(&mut self, address: usize, now: u8) -> bool {
        let end = address + PAGE;
        // SAFETY: within the program's rights, less than those it gets.
        let opened = unsafe { self.pages.memory.protect(address, end, now & !WRITE | READ) } >= 0;
        let readable =
            !opened || self.pages.memory.read_in(address, end) != -(libc::EFAULT as isize);
        if !readable {
            // The fault repeats with everything open.
            self.pages.pool.close(address, end);
        }
        readable
    }

    /// The streams of touches of pages that are `new` to the capture, or of others.
    fn streams_of(&mut self, new: bool) -> &mut Streams {
        match new {
            true => &mut self.first,
            false => &mut self.streams,
        }
    }

    /// The stream that a touch belongs to; none where pages are opened one by one.
    fn follow(&mut self, opening: &Opening) -> Option<Place> {
        let kind = opening.span.kind;
        // Pages beyond the end of a file cannot be copied.
        let file = kind & KIND_FILE != 0 && self.level.is_some();
        if opening.access == Access::Execute || kind & (KIND_STACK | KIND_TWICE) != 0 || file {
            return None;
        }
        // The next page may be another thread's.
        let strangers = self.level.as_ref().is_some_and(|l| l.strangers);
        let unknown = self.level.as_ref().is_some_and(|l| l.guards.is_none());
        if strangers || unknown || opening.shared || self.tracer.is_exact() {
            return None;
        }
        let (write, again) = (opening.access == Access::Write, opening.open != 0);
        let streams = self.streams_of(opening.new);
        let place = streams.follow(opening.address, write, again);
        if opening.new {
            self.pages.confirm(place.passed.0, place.passed.1);
        }
        Some(place)
    }

    /// How many pages beyond the touched one are opened with it: at most those that have the same rights in force and that the
    /// capture knows as well or as little.
    fn count_ahead(&mut self, opening: &Opening, place: Place) -> usize {
        let (span, address, known) = (&opening.span, opening.address, opening.known);
        let room = match place.down {
            true => address - span.start,
            false => span.end - address - PAGE,
        };
        let most = place.ahead.min(room / PAGE);
        for i in 0..most {
            let at = match place.down {
                true => address - (i + 1) * PAGE,
                false => address + (i + 1) * PAGE,
            };
            let Some(beside) = self.pages.pool.page(at).copied() else {
                return i;
            };
            let alike = self.pages.rights(&beside) == opening.open
                && (self.level.is_none()
                    || known == (beside.touched != Did::No)
                        && (!known || opening.now & WRITE == 0 || beside.written != Did::No));
            if !alike {
                return i;
            }
        }
        most
    }

    /// Adds the pages of [start, end) that the capture does not have yet. They are readable. The program has touched the one at
    /// `address`; it may touch the others.
    pub(super) fn take(
        &mut self,
        span: &Span,
        (start, end): (usize, usize),
        address: usize,
    ) -> Result<(), &'static str> {
        let Some(level) = self.level.as_mut() else {
            return Ok(());
        };
        for at in (start..end).step_by(PAGE) {
            let Some(page) = self.pages.pool.page(at) else {
                return Err("more address space than can be noted");
            };
            // Whether a page trace has closed it again does not count.
            if page.touched != Did::No {
                continue;
            }
            page.touched = match at == address {
                true => Did::Yes,
                false => Did::Maybe,
            };
            let dead = span.kind & KIND_STACK != 0
                && level.stack.0 <= at
                && at + PAGE <= level.entry.stack_pointer as usize;
            let kind = u32::from(span.kind) | self.toucher.min(TOUCHERS) << TOUCHER_SHIFT;
            // Also below the stack pointer: code copies variables that it has not set, with what lay there.
            // SAFETY: the page is readable.
            let copy = unsafe { self.pages.pool.copy(at) };
            let touch = Touch {
                address: at,
                copy: copy.ok_or(
                    "more memory than the disk of the store has free: a capture copies each page that the region touches",
                )?,
                kind: kind | if dead { DEAD } else { 0 },
                exit: 0,
            };
            if !self.pages.pool.append(level.touched, touch) {
                return Err("more pages than can be noted");
            }
            level.touched += 1;
        }
        Ok(())
    }

    /// The pages of [start, end) have the rights `now`. The program has touched the one at `address` with this access.
    fn note(
        &mut self,
        span: &Span,
        (start, end): (usize, usize),
        (address, access): (usize, Access),
        now: u8,
    ) {
        self.pages.note_rights(span, (start, end), now);
        if self.level.is_none() {
            return;
        }
        for at in (start..end).step_by(PAGE) {
            let Some(page) = self.pages.pool.page(at) else {
                continue;
            };
            if now & WRITE != 0 {
                page.written = match at == address && access == Access::Write {
                    true => Did::Yes,
                    false => page.written.max(Did::Maybe),
                };
            }
            page.executed |= now & EXECUTE != 0;
        }
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
            if let Err(lack) = self.take(&span, (start, end), address) {
                return Touched::Failed(lack);
            }
            self.note(&span, (start, end), (address, access), now);
            // SAFETY: within the program's rights.
            if first != now && unsafe { self.pages.memory.protect(start, end, now) } < 0 {
                return Touched::Failed("memory that cannot be opened");
            }
            return Touched::Opened;
        }
        Touched::Failed("more mappings than vm.max_map_count allows")
    }

    /// Finds out whether the kernel has let the stack, or other memory that grows, grow down to `address`.
    fn grow(&mut self, address: usize) -> Option<Span> {
        let above = self.pages.spans.above(address)?;
        let stack =
            above.kind & KIND_STACK != 0 && above.end == self.place.stack.1 && self.place.grows;
        if !stack && above.kind & KIND_GROWS == 0
            || above.start - address > 1 << 30
            || self.place.control.0 == address
        {
            return None;
        }
        if !self.pages.memory.is_mapped(address, above.start - address) {
            return None;
        }
        // SAFETY: fails where nothing is mapped, and what is mapped right below memory that grows is part of it.
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

    /// A system call reaches a page that is open.
    fn reached(&mut self, address: usize, access: Access) {
        if let Some(page) = self.pages.pool.page(address)
            && page.touched != Did::No
        {
            page.touched = Did::Yes;
            if access == Access::Write {
                page.written = Did::Yes;
            }
        }
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
                match enough {
                    true => self.reached(at, access),
                    false => match self.touch(at, access) {
                        Touched::Opened => self.reached(at, access),
                        Touched::NotOurs => {}
                        Touched::Failed(lack) => return Err(lack),
                    },
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
        assert_eq!(program.touch(0, Read), Touched::Opened);
        assert_eq!(program.touch(0, Write), Touched::Opened);
        assert_eq!(program.rights(0), READ | WRITE);
        assert_eq!(program.touches().len(), 1);
        let known = program.known(0);
        assert_eq!([known.touched, known.written], [Did::Yes; 2]);
        assert!(!known.executed);
    }

    #[test]
    fn a_page_beside_a_written_one_is_guessed_to_be_written() {
        let mut program = Program::captured(3);
        assert_eq!(program.touch(0, Write), Touched::Opened);
        assert_eq!(program.touch(1, Read), Touched::Opened);
        assert_eq!(program.rights(1), READ | WRITE);
        let written = [program.known(0).written, program.known(1).written];
        assert_eq!(written, [Did::Yes, Did::Maybe]);
    }

    #[test]
    fn pages_of_zeros_take_no_copy() {
        let mut program = Program::captured(1);
        program.write(0, 0);
        assert_eq!(program.touch(0, Read), Touched::Opened);
        assert_eq!(program.touches()[0].copy, 0);
    }

    #[test]
    fn what_the_program_may_not_touch() {
        let mut program = Program::captured(2);
        assert_eq!(program.touch(1, Execute), Touched::NotOurs);
        assert_eq!(program.touch(2, Read), Touched::NotOurs);
        assert!(program.touches().is_empty());
    }

    #[test]
    fn without_memory_for_copies_it_fails() {
        let mut program = Program::captured(2);
        program.engine.pages.pool.allow(0);
        let touched = program.touch(0, Read);
        assert!(matches!(touched, Touched::Failed(_)), "{touched:?}");
    }

    #[test]
    fn blocks_are_opened_where_mappings_run_short() {
        let mut program = Program::captured(40);
        program.engine.pages.budget = 0;
        assert_eq!(program.touch(20, Read), Touched::Opened);
        let open = (0..40).filter(|i| program.rights(*i) != 0).count();
        assert!((9..=16).contains(&open), "{open}");
        let touches = program.touches();
        assert_eq!(touches.len(), open);
        let sure = (0..40).filter(|i| program.known(*i).touched == Did::Yes);
        assert_eq!(sure.collect::<Vec<_>>(), [20]);
    }

    #[test]
    fn a_stream_is_opened_ahead_and_what_it_did_not_reach_is_known() {
        let mut program = Program::captured(40);
        program.engine.first.most = streams::AHEAD;
        let mut faults = 0;
        for i in 4..15 {
            if program.rights(i) == 0 {
                assert_eq!(program.touch(i, Read), Touched::Opened);
                faults += 1;
            }
        }
        assert_eq!(faults, 5);
        let open: Vec<usize> = (0..40).filter(|i| program.rights(*i) == READ).collect();
        assert_eq!(open, Vec::from_iter(4..20));
        assert_eq!(program.touches().len(), open.len());
        // The last fault opened 14 to 19.
        let unsure = (0..40).filter(|i| program.known(*i).touched == Did::Maybe);
        assert_eq!(unsure.collect::<Vec<_>>(), Vec::from_iter(15..20));
        assert!((0..40).all(|i| program.known(i).written == Did::No));
    }

    #[test]
    fn a_written_stream_may_have_written_what_is_ahead() {
        let mut program = Program::captured(40);
        program.engine.first.most = streams::AHEAD;
        for i in [30, 29, 27] {
            assert_eq!(program.touch(i, Write), Touched::Opened);
        }
        let written: Vec<Did> = (23..31).map(|i| program.known(i).written).collect();
        let (maybe, yes, no) = (Did::Maybe, Did::Yes, Did::No);
        assert_eq!(written, [no, no, maybe, maybe, yes, maybe, yes, yes]);
        assert_eq!(program.known(28).touched, yes);
        assert_eq!(program.known(26).touched, maybe);
    }

    #[test]
    fn nothing_is_opened_ahead_where_the_capture_knows_more_or_less() {
        let mut program = Program::captured(40);
        program.engine.first.most = streams::AHEAD;
        // Page 6 was touched already, page 9 is open.
        let (start, end) = (program.page(6), program.page(7));
        program.touch(6, Read);
        program.engine.pages.close_pages(start, end);
        for i in [9, 2, 3, 5, 6, 7] {
            assert_eq!(program.touch(i, Read), Touched::Opened);
        }
        let open = (0..40).filter(|i| program.rights(*i) != 0);
        assert_eq!(open.collect::<Vec<_>>(), Vec::from_iter(2..10));
        assert_eq!(program.touches().len(), 8);
    }

    #[test]
    fn larger_blocks_where_the_kernel_refuses_smaller_ones() {
        let mut program = Program::captured(40);
        program.engine.pages.memory.refused = Some((PAGE, libc::ENOMEM as isize));
        assert_eq!(program.touch(20, Write), Touched::Opened);
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
        assert_eq!(program.touch(0, Read), Touched::Opened);
        let touched = program.touch(0, Write);
        assert!(matches!(touched, Touched::Failed(_)), "{touched:?}");
    }
}

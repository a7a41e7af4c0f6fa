//! Calls that a replay answers by what they did: those of MPI. The captured invocation pauses for one: memory is open while it runs, and
//! whatever has changed in the captured pages when it returns is kept, declared or not. So an answer is complete whoever wrote:
//! the library, another process into memory that is shared, another thread. Pages that the invocation touches later are captured as
//! they are then.
//!
//! Ordinary code, with everything open.

use super::calls::{Area, Underway};
use super::memory::{Memory, WRITE};
use super::pool::{DEAD, Did};
use super::spans::{KIND_FOREIGN, KIND_OUTSIDE, KIND_TWICE};
use super::state::Engine;
use super::status;
use crate::os::sys::PAGE;
use cere_format::mpi::{ABSOLUTE, Begun, Element, MPI_MOST};

/// Why a call is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unanswered {
    /// It would write memory that other processes write, or that is there twice.
    Shared(usize),
    /// It has changed a variable of the invocation's frames that no argument leads to.
    OwnFrames(usize),
    /// There is no room for what it moves.
    TooMuch,
    /// The capture lacks this.
    Lack(&'static str),
}

impl<M: Memory> Engine<M> {
    /// Whether code of the captured invocation has its variables at `address`: other code of the same region has them elsewhere.
    pub fn in_own_frames(&self, address: usize) -> bool {
        let Some(level) = &self.level else {
            return false;
        };
        let top = level.entry.stack_pointer as usize;
        let low = match level.entry.frames {
            Some(frames) => frames as usize,
            None => level.stack.0,
        };
        let control = level.control;
        (low..top).contains(&address) || (control.0..control.1).contains(&address)
    }

    /// The capture takes what it lacks of this area, which is about to be written.
    pub fn take_area(&mut self, area: &Area) -> Result<(), Unanswered> {
        if area.length == 0 || self.in_own_frames(area.start) {
            return Ok(());
        }
        let (mut at, end) = (area.start & !(PAGE - 1), area.end());
        while let Some((from, to)) = self.pages.spans.part(at, end) {
            at = to;
            let Some(span) = self.pages.spans.find(from) else {
                continue;
            };
            if span.kind & (KIND_OUTSIDE | KIND_TWICE) != 0 {
                return Err(Unanswered::Shared(from));
            }
            // The kernel tells the library.
            if span.protection & WRITE == 0 {
                continue;
            }
            for page in (from..to.next_multiple_of(PAGE)).step_by(PAGE) {
                // SAFETY: no page of the library's; it is read, and a page beyond the end of its file is told.
                if self.pages.memory.read_in(page, page + PAGE) == -(libc::EFAULT as isize) {
                    continue;
                }
                let range = (page, page + PAGE);
                self.take(&span, range, page).map_err(Unanswered::Lack)?;
                self.note_written(page);
            }
        }
        Ok(())
    }

    fn note_written(&mut self, page: usize) {
        if let Some(page) = self.pages.pool.page(page) {
            (page.touched, page.written) = (Did::Yes, Did::Yes);
        }
    }

    /// A call begins: keeps what the captured pages hold. They have the program's rights from here on.
    pub fn pause(&mut self, underway: Underway) {
        let Some(level) = self.level.as_mut() else {
            return;
        };
        let answered = &mut level.answered;
        answered.before.clear();
        answered.contents.clear();
        // SAFETY: the capture's entries; no other slice of them is alive.
        for touch in unsafe { self.pages.pool.log(level.touched) } {
            // Frames below the call's are the library's.
            let below = touch.kind & DEAD != 0 && touch.address + PAGE <= underway.stack;
            let kept = !below && touch.kind & u32::from(KIND_FOREIGN) == 0;
            let span = self.pages.spans.find(touch.address);
            if kept && span.is_some_and(|span| span.protection & WRITE != 0) {
                // SAFETY: a page of the program that is open.
                let page = unsafe { std::slice::from_raw_parts(touch.address as *const u8, PAGE) };
                answered.before.push(touch.address);
                answered.contents.extend_from_slice(page);
            }
        }
        let stack = underway.stack;
        answered.underway = Some(underway);
        status::set_paused(stack);
    }

    /// The call has returned this: all that it has changed is kept. The spans are those of now.
    pub fn answer(&mut self, result: u64) -> Result<(), Unanswered> {
        status::set_paused(0);
        let Some(level) = self.level.as_mut() else {
            return Ok(());
        };
        let answered = &mut level.answered;
        let Some(mut underway) = answered.underway.take() else {
            return Ok(());
        };
        answered.complete(&mut underway);
        let (stack, mut begun, left) = (underway.stack, underway.begun, underway.left);
        let number = answered.count;
        for area in &left {
            keep(&mut answered.list, &mut begun, number, area, false);
        }
        let mut known: Vec<(usize, usize)> = left.iter().map(|a| (a.start, a.end())).collect();
        // Below the caller's frame there are none but the library's.
        let frames = level.entry.frames.map(|frames| frames as usize);
        known.push((frames.unwrap_or(level.stack.0).min(stack), stack));
        known.sort_unstable();
        let pending: Vec<Area> = answered
            .pending
            .iter()
            .flat_map(|p| &p.areas)
            .copied()
            .collect();
        let (before, contents) = (
            std::mem::take(&mut answered.before),
            std::mem::take(&mut answered.contents),
        );
        let mut written = Vec::new();
        let mut outcome = Ok(());
        for (page, then) in before.iter().zip(contents.chunks_exact(PAGE)) {
            // What the call has unmapped or closed is gone for the invocation as well.
            let span = self.pages.spans.find(*page);
            if span.is_none_or(|span| span.protection & WRITE == 0) {
                continue;
            }
            // SAFETY: a page of the program that is open.
            let now = unsafe { std::slice::from_raw_parts(*page as *const u8, PAGE) };
            if now == then {
                continue;
            }
            written.push(*page);
            for (start, end) in changes(*page, then, now, &known) {
                let own = self.in_own_frames(start);
                let area = pending.iter().find(|a| a.start <= start && end <= a.end());
                let (place, at) = match area {
                    Some(area) => (
                        (area.back(number), area.argument),
                        area.offset.wrapping_add((start - area.start) as u64),
                    ),
                    None if own => {
                        outcome = Err(Unanswered::OwnFrames(start));
                        continue;
                    }
                    None => ((0, ABSOLUTE), start as u64),
                };
                let bytes = &now[start - page..end - page];
                if let Some(level) = self.level.as_mut() {
                    let list = &mut level.answered.list;
                    begun.piece(list, false, (place.0, place.1, at), Element::Other, bytes);
                }
            }
        }
        written.into_iter().for_each(|page| self.note_written(page));
        let Some(level) = self.level.as_mut() else {
            return Ok(());
        };
        let answered = &mut level.answered;
        (answered.before, answered.contents) = (before, contents);
        answered.count += 1;
        begun.end(&mut answered.list, result);
        match answered.list.len() as u64 > MPI_MOST {
            true => Err(Unanswered::TooMuch),
            false => outcome,
        }
    }
}

/// Appends an area to the call of this `number`, as it is now.
pub fn keep(list: &mut Vec<u8>, begun: &mut Begun, number: u32, area: &Area, sent: bool) {
    // SAFETY: memory that the program handed over, of that size, and open.
    let bytes = unsafe { std::slice::from_raw_parts(area.start as *const u8, area.length) };
    let place = (area.back(number), area.argument, area.offset);
    begun.piece(list, sent, place, area.element, bytes);
}

/// Where the words of a page have changed, but for the `known` ranges, which rise: [start, end), neighbours together.
fn changes(page: usize, then: &[u8], now: &[u8], known: &[(usize, usize)]) -> Vec<(usize, usize)> {
    const WORD: usize = 8;
    let mut found: Vec<(usize, usize)> = Vec::new();
    let words = then.chunks_exact(WORD).zip(now.chunks_exact(WORD));
    for (number, _) in words.enumerate().filter(|(_, (then, now))| then != now) {
        let (mut at, end) = (page + WORD * number, page + WORD * (number + 1));
        let mut add_changed = |start: usize, end: usize| {
            let part = || start - page..end - page;
            if start < end && then[part()] != now[part()] {
                add(&mut found, start, end);
            }
        };
        for &(from, to) in known.iter().filter(|k| k.0 < end) {
            add_changed(at, from);
            at = at.max(to);
        }
        add_changed(at, end);
    }
    found
}

fn add(found: &mut Vec<(usize, usize)>, start: usize, end: usize) {
    match found.last_mut() {
        Some(last) if last.1 == start => last.1 = end,
        _ => found.push((start, end)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::Access;
    use super::super::spans::{KIND_STACK, Span};
    use super::super::testing::Program;
    use super::*;
    use cere_format::mpi::{Call, begin, decode};

    fn paused(program: &mut Program, stack: usize) {
        let level = program.engine.level.as_mut().expect("a capture");
        let begun = begin(&mut level.answered.list, 0, &[]);
        program.engine.uncover();
        program
            .engine
            .pause(Underway::bare("MPI_Test", stack, begun));
    }

    fn calls(program: &Program) -> (Vec<Call>, Vec<u8>) {
        let level = program.engine.level.as_ref().expect("a capture");
        let list = level.answered.list.clone();
        (decode("a", &list, 1).expect("calls"), list)
    }

    #[test]
    fn what_changes_in_captured_pages_is_kept() {
        let mut program = Program::captured(4);
        program.touch(0, Access::Read);
        program.touch(2, Access::Write);
        paused(&mut program, 1);
        assert!(status::paused());
        program.write(0, 70);
        program.write(1, 71);
        program.write(2, 72);
        assert_eq!(program.engine.answer(9), Ok(()));
        assert!(!status::paused());
        let (calls, list) = calls(&program);
        let [call] = &calls[..] else {
            panic!("{calls:?}")
        };
        assert_eq!(call.result, 9);
        let left: Vec<_> = call
            .left
            .iter()
            .map(|p| (p.at, list[p.bytes.start]))
            .collect();
        let at = |i: usize| program.page(i) as u64;
        assert_eq!(left, [(at(0), 70), (at(2), 72)]);
        // A page that was read only has been written: it is compared, and put back.
        assert_eq!(program.known(0).written, Did::Yes);
        assert_eq!(program.known(1).touched, Did::No);
    }

    #[test]
    fn an_area_is_taken_before_it_is_written_and_left_whole() {
        let mut program = Program::captured(3);
        let area = Area {
            call: 0,
            argument: 0,
            offset: 0,
            start: program.page(1),
            length: 100,
            element: Element::Double,
        };
        let level = program.engine.level.as_mut().expect("a capture");
        let given = cere_format::mpi::Argument {
            reading: cere_format::mpi::Reading::Word,
            value: area.start as u64,
        };
        let begun = begin(&mut level.answered.list, 0, &[given]);
        program.engine.uncover();
        assert_eq!(program.engine.take_area(&area), Ok(()));
        program.engine.pause(Underway {
            left: vec![area],
            ..Underway::bare("MPI_Recv", 0, begun)
        });
        program.write(1, 50);
        assert_eq!(program.engine.answer(0), Ok(()));
        let touches = program.touches();
        assert_eq!(touches.len(), 1);
        assert_eq!(program.at_entry(&touches[0]), 2);
        let (calls, list) = calls(&program);
        let left = &calls[0].left;
        assert_eq!(left.len(), 1);
        assert_eq!((left[0].argument, left[0].bytes.len()), (0, 100));
        assert_eq!(list[left[0].bytes.start], 50);
    }

    #[test]
    fn variables_of_own_frames_that_nothing_leads_to() {
        let mut program = Program::captured(2);
        let (start, end) = (program.page(0), program.page(2));
        let level = program.engine.level.as_mut().expect("a capture");
        (level.stack, level.entry.stack_pointer) = ((start, end), end as u64);
        let span = program.engine.pages.spans.all()[0];
        assert!(program.engine.pages.spans.insert(Span {
            kind: KIND_STACK,
            ..span
        }));
        program.touch(0, Access::Write);
        program.touch(1, Access::Write);
        // The library's own frames lie below the call.
        paused(&mut program, start + PAGE);
        program.write(0, 9);
        assert_eq!(program.engine.answer(0), Ok(()));
        paused(&mut program, start + PAGE);
        program.write(1, 9);
        let outcome = program.engine.answer(0);
        assert_eq!(outcome, Err(Unanswered::OwnFrames(start + PAGE)));
    }

    #[test]
    fn words_that_changed_without_what_is_known() {
        let (then, mut now) = ([0u8; 64], [0u8; 64]);
        now[9] = 1;
        now[16] = 1;
        now[40] = 1;
        let page = 4096;
        let at = |start, end| (page + start, page + end);
        assert_eq!(changes(page, &then, &now, &[]), [at(8, 24), at(40, 48)]);
        // The rest of a word does not change with what is known of it.
        let known = [at(0, 9), at(18, 44)];
        assert_eq!(changes(page, &then, &now, &known), [at(9, 18)]);
    }
}

//! What a capture keeps without a fault: the thread control block, the frame of the region's caller, and the written pages at
//! exit.

use super::level::Level;
use super::memory::{Access, Memory};
use super::pool::{DEAD, Did, Touch, ZEROS};
use super::spans::{KIND_FOREIGN, KIND_SHARED, KIND_STACK, Span};
use super::state::{Engine, Obstacle};
use crate::os::sys::PAGE;
use cere_format::capture::Mapping;

impl<M: Memory> Engine<M> {
    /// Copies the pages that the invocation has written. Waiting threads would change them as soon as they continue; they are
    /// still held. Everything is open. False if there is no room.
    pub fn keep_exit(&mut self) -> bool {
        let Some(level) = self.level.as_ref() else {
            return true;
        };
        // SAFETY: the capture's entries; no other slice of them is alive.
        for touch in unsafe { self.pages.pool.log(level.touched) } {
            let page = self.pages.pool.page(touch.address);
            let written = page.is_some_and(|p| p.written != Did::No);
            let kept = written && touch.kind & DEAD == 0;
            let ours = self.pages.spans.find(touch.address).is_some();
            let memory = &self.pages.memory;
            let reached =
                || level.is_reached(touch.address) && memory.is_mapped(touch.address, PAGE);
            if !kept || !ours && !reached() {
                continue;
            }
            // SAFETY: a page of the program that is open.
            touch.exit = match unsafe { self.pages.pool.copy(touch.address) } {
                None => return false,
                Some(0) => ZEROS,
                Some(copy) => copy,
            };
            if touch.copy != 0 && touch.exit != ZEROS {
                for range in level.still.iter().flat_map(|other| other.changing) {
                    self.pages
                        .pool
                        .take_over(touch.copy, touch.exit, touch.address, range);
                }
            }
        }
        true
    }

    /// The address of a page that the captured invocation has read and that another one has changed meanwhile: of shared memory, or
    /// of any if there are other threads. Of words that are this library's `own` it does not count. Everything is open.
    pub fn find_changed(&mut self, own: impl Fn(usize) -> bool) -> Option<usize> {
        let level = self.level.as_ref()?;
        // SAFETY: the capture's entries; no other slice of them is alive.
        for touch in unsafe { self.pages.pool.log(level.touched) } {
            let kind = touch.kind as u8;
            let looked_at = level.strangers || kind & KIND_SHARED != 0;
            let page = self.pages.pool.page(touch.address).copied();
            let read = page.is_some_and(|p| p.touched == Did::Yes && p.written == Did::No);
            if !looked_at
                || !read
                || kind & (KIND_FOREIGN | KIND_STACK) != 0
                || self.pages.spans.find(touch.address).is_none()
            {
                continue;
            }
            // SAFETY: a page of the program that is open; the copy was made for this touch.
            let (now, then) = unsafe {
                let now = std::slice::from_raw_parts(touch.address as *const u8, PAGE);
                let then = (touch.copy != 0).then(|| self.pages.pool.content(touch.copy));
                (now, then.unwrap_or(&[0; PAGE][..]))
            };
            let same = now == then || {
                let mut words = (0..PAGE).step_by(8);
                words.all(|at| now[at..at + 8] == then[at..at + 8] || own(touch.address + at))
            };
            if !same {
                return Some(touch.address);
            }
        }
        None
    }

    /// Notes the pages by which mappings have grown down since the invocation, in the capture `level`, began; `now` are the mappings
    /// at its end. The kernel maps them at a touch, with the rights of the page above, so that not every touch faults. Everything
    /// is open. False if there is no room.
    pub fn keep_grown(&mut self, level: &mut Level, now: &[Mapping]) -> bool {
        for i in 0..level.growing.len() {
            let start = level.growing[i].0;
            let holds = |m: &&Mapping| m.start < start && start <= m.end;
            let Some(low) = now.iter().find(holds).map(|m| m.start) else {
                continue;
            };
            if let Some(above) = self.pages.spans.find(start as usize) {
                let start = low as usize;
                self.pages.spans.insert(Span { start, ..above });
            }
            level.fresh.push((low, start));
            for address in (low as usize..start as usize).step_by(PAGE) {
                let Some(page) = self.pages.pool.page(address) else {
                    return false;
                };
                let new = page.touched == Did::No;
                (page.touched, page.written) = (Did::Yes, Did::Yes);
                let touch = Touch {
                    address,
                    ..Touch::default()
                };
                if new && !self.pages.pool.append(level.touched, touch) {
                    return false;
                }
                level.touched += usize::from(new);
            }
        }
        true
    }

    /// Copies the pages of the thread control block, which stay open throughout the capture.
    pub fn take_control(&mut self, control: (usize, usize)) -> Result<(), Obstacle> {
        let Some(level) = &mut self.level else {
            return Ok(());
        };
        for address in (control.0..control.1).step_by(PAGE) {
            // SAFETY: the thread's own control block.
            let copy = unsafe { self.pages.pool.copy(address) }.ok_or(Obstacle::NoMemory)?;
            let touch = Touch {
                address,
                copy,
                kind: KIND_FOREIGN.into(),
                ..Touch::default()
            };
            if !self.pages.pool.append(level.touched, touch) {
                return Err(Obstacle::ThreadStorage);
            }
            level.touched += 1;
        }
        Ok(())
    }

    /// Copies the pages that calls reach in which other threads rest, and leaves them open: the region may touch them unseen. Before
    /// memory is closed.
    pub fn take_reached(&mut self) -> Result<(), Obstacle> {
        let Some(level) = &mut self.level else {
            return Ok(());
        };
        for (start, end) in level.still.iter().flat_map(|other| &other.reached) {
            for address in (start & !(PAGE - 1)..*end).step_by(PAGE) {
                let Some(span) = self.pages.spans.find(address) else {
                    continue;
                };
                if !self.pages.spans.carve(address, address + PAGE) {
                    return Err(Obstacle::TooMany);
                }
                let Some(page) = self.pages.pool.page(address) else {
                    return Err(Obstacle::TooMany);
                };
                if page.touched != Did::No {
                    continue;
                }
                (page.touched, page.written) = (Did::Maybe, Did::Maybe);
                // SAFETY: memory of the program that the kernel is about to use.
                let copy = unsafe { self.pages.pool.copy(address) }.ok_or(Obstacle::NoMemory)?;
                let touch = Touch {
                    address,
                    copy,
                    kind: span.kind.into(),
                    ..Touch::default()
                };
                if !self.pages.pool.append(level.touched, touch) {
                    return Err(Obstacle::NoMemory);
                }
                level.touched += 1;
            }
        }
        Ok(())
    }

    /// Captures the frame of the region's caller with the argument block. Code under other flags may load arguments that this
    /// code does not, and a replay compares the frame even if the region leaves it alone.
    pub fn keep_frame(&mut self) {
        let Some(level) = &self.level else { return };
        let (stack, block) = (level.entry.stack_pointer, level.entry.arguments);
        let end = (block + u64::from(level.entry.arguments_size)).max(stack + 1);
        let pages = (stack as usize & !(PAGE - 1)..end as usize).step_by(PAGE);
        for page in pages {
            // If it cannot be opened, the region's own touch is refused.
            let _ = self.touch(page, Access::Read);
        }
    }

    /// The captured thread faults on `address` with this stack pointer. Notes the lowest frame, if the region was entered on
    /// a stack that the program made.
    pub fn note_frames(&mut self, address: usize, pointer: usize) {
        /// Of the x86-64 ABI.
        const RED_ZONE: usize = 128;
        /// A stack pointer farther below likely belongs to another stack.
        const NEAR: usize = 1 << 20;
        let lowest = match pointer.saturating_sub(RED_ZONE) <= address && address < pointer {
            true => address,
            false => pointer,
        };
        let lowest = (lowest & !(PAGE - 1)) as u64;
        if let Some(level) = &mut self.level
            && let Some(frames) = &mut level.entry.frames
            && lowest < *frames
            && *frames - lowest <= NEAR as u64
        {
            *frames = lowest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::Access;
    use super::super::testing::Program;
    use crate::os::sys::PAGE;

    #[test]
    fn written_pages_are_kept_as_they_are_at_exit() {
        let mut program = Program::captured(4);
        program.touch(0, Access::Read);
        program.touch(2, Access::Write);
        program.write(2, 42);
        program.engine.uncover();
        assert!(program.engine.keep_exit());
        program.write(2, 43);
        let touches = program.touches();
        assert_eq!((touches[0].address, touches[0].exit), (program.start, 0));
        // SAFETY: the copy was made for this touch.
        let kept = unsafe { program.engine.pages.pool.content(touches[1].exit) };
        assert_eq!(kept[0], 42);
        assert_eq!(program.at_entry(&touches[1]), 3);
    }

    #[test]
    fn frames_grow_down_and_not_to_another_stack() {
        let mut program = Program::captured(1);
        let frames = |program: &Program| program.engine.level.as_ref().and_then(|l| l.entry.frames);
        let top = 0x7000_0000_0000u64;
        let level = program.engine.level.as_mut();
        level.expect("a capture").entry.frames = Some(top);
        let below = top as usize - PAGE;
        program.engine.note_frames(0x1000, below + 8);
        assert_eq!(frames(&program), Some(below as u64));
        // In the red zone.
        program.engine.note_frames(below - 16, below + 8);
        assert_eq!(frames(&program), Some((below - PAGE) as u64));
        program.engine.note_frames(0x1000, below - (1 << 30));
        assert_eq!(frames(&program), Some((below - PAGE) as u64));
    }
}

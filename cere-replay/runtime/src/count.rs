//! The stream of counted code.

use crate::error::Error;
use crate::team::{Team, each};
use cere_format::count::MARK_END;
use cere_inside::counter::Buffer;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The buffers of the threads that run the region.
pub struct Counting<'a> {
    descriptor: i32,
    buffers: Vec<Buffer>,
    team: Option<&'a Team>,
}

impl<'a> Counting<'a> {
    /// Makes the buffers. Nothing is written before [`Counting::begin`].
    pub fn new(descriptor: i32, team: Option<&'a Team>) -> Result<Self, Error> {
        let threads = team.map_or(1, Team::threads);
        let buffers = (0..threads).map(Buffer::new);
        Ok(Self {
            descriptor,
            buffers: buffers.collect::<Option<_>>().ok_or(Error::NoBuffers)?,
            team,
        })
    }

    /// Runs `work` on each thread.
    fn each(&self, work: impl Fn(u32) + Sync) {
        each(self.team, work);
    }

    /// What runs from now on is counted.
    pub fn begin(&self) -> Result<(), Error> {
        let refused = AtomicBool::new(false);
        self.each(|n| {
            // SAFETY: each thread of the team has a buffer of its own, and nothing here uses GS.
            if !unsafe { self.buffers[n as usize].enter() } {
                refused.store(true, Relaxed);
            }
        });
        if refused.into_inner() {
            return Err(Error::NoGs);
        }
        cere_inside::counter::send_to(self.descriptor);
        Ok(())
    }

    /// All that was counted has been written.
    pub fn end(&self) {
        // SAFETY: every thread has entered its buffer.
        self.each(|_| unsafe { cere_inside::counter::flush() });
        // SAFETY: the calling thread has entered its buffer.
        unsafe { cere_inside::counter::mark(MARK_END) };
        cere_inside::counter::send_to(-1);
    }
}

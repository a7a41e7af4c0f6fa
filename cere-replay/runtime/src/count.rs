//! The stream of counted code.

use crate::pass;
use crate::team::Team;
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
    pub fn new(descriptor: i32, team: Option<&'a Team>) -> Result<Self, String> {
        let threads = team.map_or(1, Team::threads);
        let buffers = (0..threads).map(|n| Buffer::new(n, pass::plain()));
        Ok(Self {
            descriptor,
            buffers: buffers
                .collect::<Option<_>>()
                .ok_or("there is no memory for the counting code's buffers")?,
            team,
        })
    }

    /// Runs `work` on each thread.
    fn each(&self, work: impl Fn(u32) + Sync) {
        match self.team {
            Some(team) => team.each(work),
            None => work(0),
        }
    }

    /// What runs from now on is counted.
    pub fn begin(&self) -> Result<(), String> {
        let refused = AtomicBool::new(false);
        self.each(|n| {
            // SAFETY: each thread of the team has a buffer of its own, and nothing here uses GS.
            if !unsafe { self.buffers[n as usize].enter() } {
                refused.store(true, Relaxed);
            }
        });
        if refused.into_inner() {
            return Err("the kernel refuses to set GS, which counted code needs".into());
        }
        cere_inside::counter::send_to(self.descriptor);
        Ok(())
    }

    /// All that was counted has been written.
    pub fn end(&self) {
        // SAFETY: every thread has entered its buffer.
        self.each(|_| unsafe { cere_inside::counter::flush() });
        // SAFETY: see above.
        unsafe { cere_inside::counter::mark(MARK_END) };
        cere_inside::counter::send_to(-1);
    }
}

//! Waits for a child, but not for ever.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io::Result;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// The child's status; none if it ran longer than `limit` and was killed.
///
/// # Errors
/// The kernel's (`pidfd_open` needs Linux 5.3).
pub fn within(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let start = Instant::now();
    let ended = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    loop {
        // No time at all asks without waiting.
        let left = limit.saturating_sub(start.elapsed());
        let timeout = Timespec::try_from(left).ok();
        match poll(&mut [PollFd::new(&ended, PollFlags::IN)], timeout.as_ref()) {
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(0) if left.is_zero() => {
                child.kill()?;
                child.wait()?;
                return Ok(None);
            }
            Ok(0) => {}
            Ok(_) => return child.wait().map(Some),
        }
    }
}

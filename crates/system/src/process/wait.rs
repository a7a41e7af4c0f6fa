//! Waits for a child, but not for ever.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io::Result;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// The end of a child, of which the kernel tells at once.
pub struct End(OwnedFd);

impl End {
    /// That of `child`, which nobody has waited for yet.
    ///
    /// # Errors
    /// The kernel's (`pidfd_open` needs Linux 5.3).
    pub fn of(child: &Child) -> Result<Self> {
        Ok(Self(pidfd_open(
            Pid::from_child(child),
            PidfdFlags::empty(),
        )?))
    }

    /// Returns when the child has ended, `also` can be read, a signal was handled, or `limit` is over (none: never), and
    /// says whether it was one of the first two.
    ///
    /// # Errors
    /// The kernel's.
    pub fn wait(&self, also: Option<BorrowedFd>, limit: Option<Duration>) -> Result<bool> {
        let mut files = vec![PollFd::new(&self.0, PollFlags::IN)];
        files.extend(also.map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN)));
        let timeout = limit.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut files, timeout.as_ref()) {
            Err(Errno::INTR) => Ok(false),
            found => Ok(found? > 0),
        }
    }
}

/// The child's status; none if it ran longer than `limit` and was killed.
///
/// # Errors
/// The kernel's (`pidfd_open` needs Linux 5.3).
pub fn within(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let start = Instant::now();
    let end = End::of(child)?;
    loop {
        // No time at all asks without waiting.
        let left = limit.saturating_sub(start.elapsed());
        if end.wait(None, Some(left))? {
            return child.wait().map(Some);
        }
        if left.is_zero() {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
    }
}

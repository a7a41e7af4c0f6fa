//! The program's standard input, for several runs that must read the same.

use anyhow::{Context, Result};
use cere_system::events::Events;
use std::fs::File;
use std::io::{PipeReader, PipeWriter, Read, Seek, SeekFrom, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// What a program reads.
pub enum Input {
    /// A terminal or another device: passed on unchanged.
    Passed,
    /// A file, which is set back to its offset before each run.
    Rewound(u64),
    /// A pipe, which is copied to each run.
    Relayed(Arc<Mutex<Copy>>, Events),
}

/// The data that a pipe has delivered so far.
pub struct Copy {
    file: File,
    length: u64,
    ended: bool,
}

impl Copy {
    /// Takes what the pipe delivers next, by way of `buffer`.
    fn take(&mut self, buffer: &mut [u8]) -> std::io::Result<()> {
        let count = stdin().read(buffer)?;
        self.ended = count == 0;
        self.file.write_all_at(&buffer[..count], self.length)?;
        self.length += count as u64;
        Ok(())
    }
}

/// The standard input of one run, while this exists.
pub struct Feed {
    /// Instead of this command's stdin.
    pub stdin: Option<Stdio>,
    relay: Option<(JoinHandle<()>, PipeWriter)>,
}

/// This command's stdin, which stays open.
fn stdin() -> ManuallyDrop<File> {
    // SAFETY: descriptor 0 is never closed here, and the file does not close it.
    ManuallyDrop::new(unsafe { File::from_raw_fd(0) })
}

impl Input {
    /// Looks at stdin. Gives a warning if a run gets less of it than there is.
    pub fn open(events: &Events) -> Result<Self> {
        let mut file = stdin();
        let Ok(kind) = file.metadata().map(|m| m.file_type()) else {
            return Ok(Self::Passed);
        };
        if kind.is_file() {
            return Ok(Self::Rewound(file.stream_position().unwrap_or(0)));
        }
        if kind.is_fifo() || kind.is_socket() {
            let file = tempfile::tempfile().context("cannot keep a copy of stdin")?;
            let copy = Copy {
                file,
                length: 0,
                ended: false,
            };
            return Ok(Self::Relayed(Arc::new(Mutex::new(copy)), events.clone()));
        }
        Ok(Self::Passed)
    }

    /// Puts a file in the place of a pipe that has delivered all: other commands that this one starts then see that they read the same.
    /// A pipe whose writer still has it stays.
    pub fn settle(&mut self) -> Result<()> {
        let Self::Relayed(copy, _) = self else {
            return Ok(());
        };
        let failed = "cannot keep a copy of stdin";
        let mut copy = copy.lock().unwrap_or_else(PoisonError::into_inner);
        let mut buffer = vec![0; 1 << 16];
        let has_more = || wait([(stdin().as_raw_fd(), libc::POLLIN)], 0);
        while !copy.ended && has_more().context(failed)?[0] {
            copy.take(&mut buffer).context(failed)?;
        }
        if !copy.ended {
            return Ok(());
        }
        rustix::stdio::dup2_stdin(&copy.file).context(failed)?;
        drop(copy);
        *self = Self::Rewound(0);
        Ok(())
    }

    /// The input for the next run, from the start.
    pub fn for_next_run(&mut self) -> Result<Feed> {
        let mut feed = Feed {
            stdin: None,
            relay: None,
        };
        match self {
            Self::Passed => {}
            Self::Rewound(position) => {
                stdin()
                    .seek(SeekFrom::Start(*position))
                    .context("cannot rewind stdin")?;
            }
            Self::Relayed(copy, events) => {
                let (reader, writer) = std::io::pipe().context("cannot make a pipe")?;
                let (stop, keep) = std::io::pipe().context("cannot make a pipe")?;
                let (copy, events) = (copy.clone(), events.clone());
                let relay = std::thread::spawn(move || {
                    block_signals();
                    let mut copy = copy.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Err(error) = relay(&mut copy, writer, &stop) {
                        events.warning(format!("the program's stdin ends early: {error}"));
                    }
                });
                feed.stdin = Some(reader.into());
                feed.relay = Some((relay, keep));
            }
        }
        Ok(feed)
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        if let Some((relay, keep)) = self.relay.take() {
            drop(keep);
            let _ = relay.join();
        }
    }
}

/// Writes to `to` what the pipe has delivered and then what follows, until the end or until `stop` is closed.
fn relay(copy: &mut Copy, to: PipeWriter, stop: &PipeReader) -> std::io::Result<()> {
    let from = stdin();
    let mut buffer = vec![0; 1 << 16];
    let mut sent = 0;
    while sent < copy.length || !copy.ended {
        let waits = sent < copy.length;
        let [stopped, ready] = wait(
            [
                (stop.as_raw_fd(), libc::POLLIN),
                match waits {
                    true => (to.as_raw_fd(), libc::POLLOUT),
                    false => (from.as_raw_fd(), libc::POLLIN),
                },
            ],
            -1,
        )?;
        if stopped {
            break;
        }
        if ready && waits {
            // At most PIPE_BUF bytes: a pipe that is ready has room for them, so the write does not block.
            let count = (copy.length - sent).min(4096) as usize;
            copy.file.read_exact_at(&mut buffer[..count], sent)?;
            match (&to).write(&buffer[..count]) {
                Ok(count) => sent += count as u64,
                Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => break,
                Err(e) => return Err(e),
            }
        } else if ready {
            copy.take(&mut buffer)?;
        }
    }
    Ok(())
}

/// Waits until a descriptor is ready or broken, for so many milliseconds at most; -1: for ever.
fn wait<const N: usize>(asked: [(i32, i16); N], milliseconds: i32) -> std::io::Result<[bool; N]> {
    let mut events = asked.map(|(fd, events)| libc::pollfd {
        fd,
        events,
        revents: 0,
    });
    // SAFETY: the array and its length.
    if unsafe {
        libc::poll(
            events.as_mut_ptr(),
            events.len() as libc::nfds_t,
            milliseconds,
        )
    } < 0
    {
        return Err(std::io::Error::last_os_error());
    }
    Ok(events.map(|event| event.revents != 0))
}

/// Blocks signals in this thread: the thread that waits for the program handles them.
fn block_signals() {
    // SAFETY: the set is written before it is read.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &all, std::ptr::null_mut());
    }
}

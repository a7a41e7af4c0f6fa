//! Counters of the kernel (`perf_event_open`) that measure a replay. The replay's process opens them between fork and exec, before
//! the sandbox, which refuses that; so they count that process and its threads, and nothing of this one. Its executable gets the
//! descriptors through its plan and only switches them on and off. This process gets them through a socket and reads them at
//! the end.

use cere_format::replay::CounterSet;
use perf_event::Builder;
use perf_event::events;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Events that count in the same invocations. So few find room in any processor's counters, and do not take turns.
pub const TOGETHER: usize = 3;
/// Counters of one replay, at most: the kernel passes on 253 descriptors at a time.
const MOST: usize = 128;
/// `PERF_FLAG_FD_CLOEXEC`.
const CLOEXEC: u64 = 8;

/// An event that the kernel can count: in user mode, for a process and all its threads.
#[derive(Clone)]
pub struct Event {
    /// How it is called.
    pub name: &'static str,
    builder: Builder<'static>,
}

impl Event {
    /// The kernel's `event`, called `name`.
    pub fn new(name: &'static str, event: impl events::Event) -> Self {
        let mut builder = Builder::new(event);
        // Disabled, without the kernel's own, with the times that it was enabled and running: the builder's defaults.
        builder.inherit(true);
        Self { name, builder }
    }

    /// Opens it for this thread, and closes it.
    ///
    /// # Errors
    /// The kernel's: it does not know the event, or does not allow it.
    pub fn probe(&self) -> io::Result<()> {
        self.builder.build().map(drop)
    }
}

/// What a counter counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reading {
    /// Events while it ran.
    pub value: u64,
    /// Nanoseconds for which it was enabled.
    pub enabled: u64,
    /// Nanoseconds of these for which it had a counter of the processor.
    pub running: u64,
}

/// The readings of an event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Readings {
    /// With the region, all invocations together.
    pub region: Reading,
    /// With nothing in the region's place, equally often.
    pub nothing: Reading,
}

/// What was measured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Measured {
    /// Invocations that each event was counted in.
    pub invocations: u32,
    /// Of each event.
    pub readings: Vec<Readings>,
}

/// Counters that a process is to open.
pub(crate) struct Opening {
    events: Vec<Event>,
    /// Descriptors whose numbers the counters take in the process that opens them: for each event two.
    places: Vec<File>,
    here: OwnedFd,
    there: OwnedFd,
}

/// Counters that a process has opened.
pub(crate) struct Opened(Vec<File>);

impl Opening {
    /// For `events`.
    pub fn new(events: &[Event]) -> io::Result<Self> {
        if 2 * events.len() > MOST {
            return Err(io::Error::other(format!("more than {MOST} counters")));
        }
        let (here, there) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        let place = |_| File::open("/dev/null");
        Ok(Self {
            events: events.to_vec(),
            places: (0..2 * events.len()).map(place).collect::<Result<_, _>>()?,
            here,
            there,
        })
    }

    /// What the numbers of the descriptors will be.
    pub fn descriptors(&self) -> Vec<RawFd> {
        self.places.iter().map(AsRawFd::as_raw_fd).collect()
    }

    /// The same for the plan: the first half counts the region, the second nothing.
    pub fn sets(&self) -> Vec<CounterSet> {
        let numbers = self.descriptors();
        let (region, nothing) = numbers.split_at(self.events.len());
        let sets = region.chunks(TOGETHER).zip(nothing.chunks(TOGETHER));
        sets.map(|(region, nothing)| CounterSet {
            region: region.to_vec(),
            nothing: nothing.to_vec(),
        })
        .collect()
    }

    /// Has `command`, when it is started, open the counters and send them here.
    pub fn open_in(&self, command: &mut Command) {
        let attributes = self.events.iter().map(|event| *event.builder.attrs());
        let attributes: Vec<_> = attributes.collect();
        let numbers = self.descriptors();
        let socket = self.there.as_raw_fd();
        let open = move || {
            let twice = attributes.iter().chain(&attributes);
            for (attributes, place) in twice.zip(&numbers) {
                let attributes = &raw const *attributes;
                // SAFETY: attributes that the builder made, which the kernel copies; the place is a descriptor of this process.
                unsafe {
                    let new =
                        libc::syscall(libc::SYS_perf_event_open, attributes, 0, -1, -1, CLOEXEC);
                    let new = RawFd::try_from(done(new)?).unwrap_or(-1);
                    done(libc::dup3(new, *place, libc::O_CLOEXEC).into())?;
                    done(libc::close(new).into())?;
                }
            }
            // SAFETY: they are open here.
            unsafe { send(socket, &numbers) }
        };
        // SAFETY: between fork and exec `open` makes system calls only: what it reads was made before.
        unsafe { command.pre_exec(open) };
    }

    /// The counters, once the process has been started.
    pub fn opened(self) -> io::Result<Opened> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        recvmsg(
            &self.here,
            &mut [IoSliceMut::new(&mut [0])],
            &mut control,
            flags,
        )?;
        let mut files = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(sent) = message {
                files.extend(sent.map(File::from));
            }
        }
        match files.len() == self.places.len() {
            true => Ok(Opened(files)),
            false => Err(io::Error::other("the process sent other descriptors")),
        }
    }
}

fn done(result: i64) -> io::Result<i64> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}

/// Sends descriptors through a socket, without allocating.
///
/// # Safety
/// All are open.
unsafe fn send(socket: RawFd, descriptors: &[RawFd]) -> io::Result<()> {
    // SAFETY: the descriptors are open and stay so.
    let borrow = |descriptor: RawFd| unsafe { BorrowedFd::borrow_raw(descriptor) };
    let mut borrowed = [borrow(socket); MOST];
    for (to, from) in borrowed.iter_mut().zip(descriptors) {
        *to = borrow(*from);
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(
        &borrowed[..descriptors.len()],
    ));
    let text = [IoSlice::new(&[0])];
    sendmsg(borrow(socket), &text, &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

impl Opened {
    /// The readings of each event.
    pub fn read(&self) -> io::Result<Vec<Readings>> {
        let (region, nothing) = self.0.split_at(self.0.len() / 2);
        let pairs = region.iter().zip(nothing);
        pairs
            .map(|(region, nothing)| {
                Ok(Readings {
                    region: read(region)?,
                    nothing: read(nothing)?,
                })
            })
            .collect()
    }
}

/// A counter of a process that has ended.
fn read(mut counter: &File) -> io::Result<Reading> {
    let mut words = [[0u8; 8]; 3];
    counter.read_exact(words.as_flattened_mut())?;
    let [value, enabled, running] = words.map(u64::from_ne_bytes);
    Ok(Reading {
        value,
        enabled,
        running,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use perf_event::events::Software;

    fn event() -> Event {
        Event::new("task_clock", Software::TASK_CLOCK)
    }

    #[test]
    fn counters_of_another_process_are_read_here_and_stay_disabled() {
        let opening = Opening::new(&[event(), event()]).unwrap();
        assert_eq!(opening.sets().len(), 1);
        let mut command = Command::new("true");
        opening.open_in(&mut command);
        let mut child = command.spawn().unwrap();
        let opened = opening.opened().unwrap();
        assert!(child.wait().unwrap().success());
        assert_eq!(opened.read().unwrap(), [Readings::default(); 2]);
    }

    #[test]
    fn three_events_share_an_invocation() {
        let sets = |n| {
            let opening = Opening::new(&vec![event(); n]).unwrap();
            let all = opening.descriptors();
            let (sets, mut numbers) = (opening.sets(), Vec::new());
            numbers.extend(sets.iter().flat_map(|s| s.region.clone()));
            numbers.extend(sets.iter().flat_map(|s| s.nothing.clone()));
            assert_eq!(numbers, all);
            sets.iter().map(|s| s.region.len()).collect::<Vec<_>>()
        };
        assert_eq!(sets(7), [3, 3, 1]);
        assert_eq!(sets(3), [3]);
        assert!(Opening::new(&vec![event(); 65]).is_err());
    }
}

//! What the region does to others than its memory: what system calls write to standard output and standard error, and what it
//! registers to run at the end. In the captured invocation, and in the first run here, which is compared.

use crate::error::Error;
use crate::space;
use cere_arch::numbers;
use cere_format::answers::{
    Registration, TEXT_AFTER, TEXT_BEFORE, TEXT_GOES_ON, decode, is_write, registration,
};
use cere_format::error::FormatError;
use cere_format::package::{MEMBER_ANSWERS, Manifest};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// Bytes in front of each part: its descriptor and its length.
const HEAD: usize = 16;
/// Room beside what the captured invocation wrote: more than that is a difference, whatever it is.
const BEYOND: usize = 1 << 16;

/// Where parts are kept, the size of that, and how much is used.
static ROOM: AtomicUsize = AtomicUsize::new(0);
static SIZE: AtomicUsize = AtomicUsize::new(0);
static USED: AtomicUsize = AtomicUsize::new(0);
/// Stands for a descriptor where a registration is kept.
const REGISTERED: usize = 0;
/// Registrations of threads of a team, which are not kept.
static UNKEPT: AtomicUsize = AtomicUsize::new(0);
/// Whether a team runs.
static TEAM: AtomicBool = AtomicBool::new(false);
/// Whether what is written is kept.
static KEEPS: AtomicBool = AtomicBool::new(false);

/// Text of standard output and of standard error.
pub type Texts = [Vec<u8>; 2];

/// What the captured invocation printed.
#[derive(Default)]
pub struct Captured {
    /// What waited in the streams at entry.
    pub before: Texts,
    /// What system calls wrote, then what waited in the streams at exit.
    pub printed: Texts,
    /// Whether system calls wrote something.
    pub writes: bool,
    /// Whether the package has all that they wrote: not if other threads of a team wrote, if it was too much, or if an older
    /// build captured it.
    pub complete: bool,
    /// What it registered.
    pub registered: Vec<Registration>,
    /// Whether registrations are missing from that.
    pub unregistered: bool,
}

/// A registration from its bytes.
fn registration_of(bytes: &[u8]) -> Registration {
    let mut found = Registration::default();
    for (word, bytes) in found.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    found
}

impl Captured {
    /// From a package.
    pub fn new(manifest: &Manifest, answers: &[u8]) -> Result<Self, FormatError> {
        let calls = manifest.system_calls.iter();
        let calls = calls.filter(|c| is_write(c.number as usize, 1));
        let made: u64 = calls.map(|c| c.count).sum();
        let mut found = Self::default();
        let mut kept = 0;
        let mut after = Texts::default();
        for (head, bytes) in decode(MEMBER_ANSWERS, answers)? {
            if head.is_registration() {
                found.registered.push(registration_of(&bytes));
            }
            if !head.is_text() {
                continue;
            }
            let stream = head.key as usize - 1;
            match head.flags & (TEXT_BEFORE | TEXT_AFTER) {
                TEXT_BEFORE => found.before[stream].extend(bytes),
                TEXT_AFTER => after[stream].extend(bytes),
                _ => {
                    kept += u64::from(head.flags & TEXT_GOES_ON == 0);
                    found.printed[stream].extend(bytes);
                }
            }
        }
        for (printed, after) in found.printed.iter_mut().zip(after) {
            printed.extend(after);
        }
        found.unregistered = manifest.answers.as_ref().is_some_and(|a| a.unregistered);
        found.writes = made > 0;
        found.complete = kept == made;
        Ok(found)
    }
}

/// Keeps what the region writes from now on; as `captured`, or longer by so much that it is another text. Of a `team`
/// registrations are counted alone.
pub fn keep(captured: &Captured, team: bool) -> Result<(), Error> {
    TEAM.store(team, Relaxed);
    let texts: usize = captured.printed.iter().map(Vec::len).sum();
    let registered = captured.registered.len() * (HEAD + size_of::<Registration>());
    let size = 2 * (texts + registered) + BEYOND;
    let room = space::fresh(size, 0);
    let room = room.ok_or_else(|| Error::system(format!("no room for {size} bytes of text")))?;
    ROOM.store(room as usize, Relaxed);
    SIZE.store(size, Relaxed);
    KEEPS.store(true, Relaxed);
    Ok(())
}

/// Keeps nothing more.
pub fn stop() {
    KEEPS.store(false, Relaxed);
}

/// The region made this call, with this result: in a signal handler, so nothing is allocated.
///
/// # Safety
/// As the call itself: what the call read is there.
pub unsafe fn note(number: usize, a: [usize; 6], result: isize) {
    if !KEEPS.load(Relaxed) || !is_write(number, a[0]) {
        return;
    }
    let mut rest = result.max(0) as usize;
    let mut part = |start: usize, length: usize| {
        let length = length.min(rest);
        rest -= length;
        // SAFETY: what the call wrote is there to be read.
        unsafe { append(a[0], start, length) };
    };
    if number as i64 == numbers::WRITE {
        return part(a[1], a[2]);
    }
    for i in 0..a[2] {
        // SAFETY: the call's array of addresses and lengths.
        let [start, length] = unsafe { *(a[1] as *const [usize; 2]).add(i) };
        part(start, length);
    }
}

/// The region called the function at `key` of those that register what is to run at an end.
pub fn note_registration(key: u32, arguments: [u64; 3]) {
    if !KEEPS.load(Relaxed) {
        return;
    }
    if TEAM.load(Relaxed) {
        UNKEPT.fetch_add(1, Relaxed);
        return;
    }
    let registered = registration(key, arguments);
    // SAFETY: words of this frame.
    unsafe {
        append(
            REGISTERED,
            registered.as_ptr() as usize,
            size_of_val(&registered),
        )
    };
}

unsafe fn append(descriptor: usize, start: usize, length: usize) {
    let used = USED.load(Relaxed);
    let left = SIZE.load(Relaxed).saturating_sub(used + HEAD);
    let length = length.min(left);
    if length == 0 {
        return;
    }
    let to = ROOM.load(Relaxed) + used;
    // SAFETY: inside the room; what was written out can be read.
    unsafe {
        (to as *mut [usize; 2]).write_unaligned([descriptor, length]);
        std::ptr::copy_nonoverlapping(start as *const u8, (to + HEAD) as *mut u8, length);
    }
    USED.store(used + HEAD + length, Relaxed);
}

/// What was written and registered since [`keep`], and how many registrations were not kept.
pub fn done() -> (Texts, Vec<Registration>, usize) {
    let (mut texts, mut registered) = (Texts::default(), Vec::new());
    let (room, used) = (ROOM.load(Relaxed), USED.load(Relaxed));
    let mut at = 0;
    while at < used {
        // SAFETY: a part that [`append`] put here; nothing writes now.
        let (descriptor, bytes) = unsafe {
            let [descriptor, length] = ((room + at) as *const [usize; 2]).read_unaligned();
            let start = (room + at + HEAD) as *const u8;
            (descriptor, std::slice::from_raw_parts(start, length))
        };
        at += HEAD + bytes.len();
        match descriptor {
            REGISTERED => registered.push(registration_of(bytes)),
            _ => texts[descriptor - 1].extend(bytes),
        }
    }
    (texts, registered, UNKEPT.load(Relaxed))
}

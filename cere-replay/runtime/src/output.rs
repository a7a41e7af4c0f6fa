//! What the region prints, and what it registers to run at the end: each stream of the C library starts as it stood at entry, and what leaves it, or waits in its buffer
//! at the end, is compared.
//!
//! Where the captured invocation wrote nothing out, standard output has a large buffer, so that printing stays out of the timed
//! part; where the region is the first to print, the C library allocates the buffer inside, as it did in vivo; else the stream
//! has the captured buffer's size, so that it writes out where it did in vivo.

use crate::library::Origins;
use crate::pass;
use crate::text::{self, Captured};
use cere_format::answers::{self, Buffering, Registration};
use cere_format::package::Manifest;
use cere_format::replay::{Difference, left_out};

/// Size of the large buffer.
const BUFFER: usize = 1 << 20;
/// Bytes of the C library's stream that say which buffer it has and what is in it.
const STREAM: usize = 0x70;
/// Words of it: flags; text that waits, and where it goes on.
const FLAGS: usize = 0;
const WRITE_BASE: usize = 4;
const WRITE_POINTER: usize = 5;
/// Flag: it is being written to, and the words of the text hold.
const WRITING: u64 = 0x800;

unsafe extern "C" {
    static stdout: *mut libc::FILE;
    static stderr: *mut libc::FILE;
}

/// A stream of the C library's.
struct Stream {
    file: *mut libc::FILE,
    /// For people.
    name: &'static str,
    /// The stream before its first use, if the region allocates its buffer.
    untouched: Option<[u8; STREAM]>,
    /// Text that waits in it at entry.
    before: Vec<u8>,
    /// What the captured invocation printed, with the text from before; none if the package does not show it.
    printed: Option<Vec<u8>>,
}

/// How much of what was printed was compared.
#[derive(Default)]
pub struct Printed {
    /// Bytes.
    pub compared: u64,
    /// Bytes that nothing captured stands against.
    pub unknown: u64,
    /// Bytes that were printed by system calls which were not caught.
    pub unseen: u64,
    /// Registrations that nothing captured stands against.
    pub unregistered: u64,
    /// The first place of each stream where they differ, and the first registration.
    pub different: Vec<Difference>,
}

fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    let length = bytes.len().min(8);
    word[..length].copy_from_slice(&bytes[..length]);
    u64::from_le_bytes(word)
}

impl Stream {
    /// Puts the stream, of which nothing was used yet, into the captured state.
    fn prepare(&mut self, state: &answers::Stream, writes: bool) {
        if state.allocates {
            // SAFETY: the C library's stream, longer than the part that is read.
            self.untouched = Some(unsafe { std::ptr::read(self.file.cast()) });
            return;
        }
        let size = state.size as usize;
        let (mode, size) = match state.buffering {
            Buffering::None => (libc::_IONBF, 0),
            _ if !writes && (size > 0 || state.descriptor == 1) => (libc::_IOFBF, size.max(BUFFER)),
            // Not yet used, or not by the region.
            _ if size == 0 => return,
            Buffering::Lines => (libc::_IOLBF, size),
            Buffering::Full => (libc::_IOFBF, size),
        };
        let buffer = Box::leak(vec![0u8; size].into_boxed_slice());
        // SAFETY: the C library's stream; the buffer stays for good.
        unsafe { libc::setvbuf(self.file, buffer.as_mut_ptr().cast(), mode, size) };
    }

    /// What waits in its buffer.
    fn pending(&self) -> &[u8] {
        let words = self.file as *const u64;
        // SAFETY: the C library's stream and the text in its buffer, both at rest.
        unsafe {
            let (from, to) = (*words.add(WRITE_BASE), *words.add(WRITE_POINTER));
            if *words.add(FLAGS) & WRITING == 0 || from >= to {
                return &[];
            }
            std::slice::from_raw_parts(from as *const u8, (to - from) as usize)
        }
    }

    fn compare(&self, written: &[u8], into: &mut Printed) {
        let found = [written, self.pending()].concat();
        let Some(printed) = &self.printed else {
            into.unknown += found.len() as u64;
            return;
        };
        into.compared += (found.len() - self.before.len().min(found.len())) as u64;
        let alike = printed.iter().zip(&found).take_while(|(a, b)| a == b);
        let at = alike.count();
        let missing = printed.len().saturating_sub(found.len());
        if missing > 0 && !pass::sees() && printed.ends_with(self.pending()) {
            into.unseen += missing as u64;
        } else if at < printed.len().max(found.len()) {
            into.different.push(Difference {
                address: at as u64,
                place: format!("{}, byte {at}", self.name),
                in_vivo: word(&printed[at..]),
                in_vitro: word(&found[at..]),
            });
        }
    }

    fn reset(&self) {
        let before = &self.before;
        // SAFETY: the C library's stream; nothing prints meanwhile, and the region heap is put back as well.
        unsafe {
            libc::fflush(self.file);
            if let Some(untouched) = self.untouched {
                std::ptr::write(self.file.cast(), untouched);
            }
            // The first byte gets the stream its room: what fills an unused stream at once is written out.
            if let Some((first, rest)) = before.split_first() {
                libc::fputc(i32::from(*first), self.file);
                libc::fwrite(rest.as_ptr().cast(), 1, rest.len(), self.file);
            }
        }
    }
}

/// The output streams of the C library.
pub struct Output {
    streams: [Stream; 2],
    /// Whether it is known that the captured invocation printed what the package does not show.
    lacks: bool,
    /// What the captured invocation registered, and whether some of that is missing.
    registered: Vec<Registration>,
    unregistered: bool,
}

impl Output {
    /// Before anything is printed, with the region heap as at entry.
    pub fn new(manifest: &Manifest, captured: Captured) -> Self {
        let known = manifest.answers.iter().flat_map(|a| &a.streams);
        let state = |descriptor| known.clone().find(|s| s.descriptor == descriptor);
        let Captured {
            before,
            printed,
            writes,
            complete,
            registered,
            unregistered,
        } = captured;
        // SAFETY: pointers that the C library set at its start.
        let files = unsafe { [(stdout, "standard output"), (stderr, "standard error")] };
        let mut texts = before.into_iter().zip(printed);
        let mut descriptor = 0;
        let streams = files.map(|(file, name)| {
            let (before, printed) = texts.next().unwrap_or_default();
            descriptor += 1;
            let state = state(descriptor);
            let mut stream = Stream {
                file,
                name,
                untouched: None,
                before,
                printed: (complete && state.is_some()).then_some(printed),
            };
            if let Some(state) = state {
                stream.prepare(state, writes);
            }
            stream
        });
        let waits = manifest.masks.iter();
        let waits = waits.filter(|m| m.reason == left_out::STREAM).count() > 0;
        let output = Self {
            streams,
            lacks: !complete || known.count() < 2 && waits,
            registered,
            unregistered,
        };
        output.reset();
        output
    }

    /// What the first run printed and registered against what the captured invocation did. `same` says whether two words,
    /// there and here, have the same meaning.
    pub fn compare(&self, origins: &Origins, same: impl Fn(u64, u64) -> bool) -> Printed {
        let (written, registered, unkept) = text::done();
        let mut printed = Printed {
            unknown: self.lacks.into(),
            unregistered: unkept as u64 + u64::from(self.unregistered),
            ..Printed::default()
        };
        if printed.unregistered == 0 {
            // What a library registers for itself when it is first used is not the region's.
            let own = |r: &&Registration| !origins.was_in_library(r[2]);
            let captured: Vec<_> = self.registered.iter().filter(own).collect();
            let own = |r: &&Registration| !origins.is_in_library(r[2]);
            let found: Vec<_> = registered.iter().filter(own).collect();
            let different = |at: &usize| match (captured.get(*at), found.get(*at)) {
                (Some(a), Some(b)) => !same(a[0], b[0]) || !same(a[1], b[1]),
                _ => true,
            };
            let at = (0..captured.len().max(found.len())).find(different);
            let what = |all: &[&Registration], at: usize| all.get(at).map_or(0, |r| r[0]);
            printed.different.extend(at.map(|at| Difference {
                address: at as u64,
                place: format!("function {} to be run at the end", at + 1),
                in_vivo: what(&captured, at),
                in_vitro: what(&found, at),
            }));
            printed.compared += 16 * found.len() as u64;
        }
        for (stream, written) in self.streams.iter().zip(&written) {
            stream.compare(written, &mut printed);
        }
        printed
    }

    /// After a repetition: what it printed is gone, and its buffer too.
    pub fn reset(&self) {
        self.streams.iter().for_each(Stream::reset);
    }
}

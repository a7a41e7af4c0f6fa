//! Calls of MPI in the region: answered as in the captured invocation, by what it left. In the first run what each is given is compared
//! with what it was given there.
//!
//! The functions' captured addresses lead here. Answers are given on the region's stack: no allocation.

use crate::compare::{self, Floating};
use crate::error::Error;
use crate::fault;
use crate::glue::Jump;
use crate::pages::Pages;
use crate::typed::Kind;
use cere_arch::switch::{STUB, argument};
use cere_format::capture::PAGE_WRITTEN;
use cere_format::mpi::{
    ABSOLUTE, ARGUMENTS_MOST, Argument, Call, Element, FUNCTIONS_MOST, Piece, Reading, decode,
};
use cere_format::package::{MEMBER_MPI, Manifest};
use cere_format::replay::{Comparison, Difference};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};

/// All that is known.
struct Known {
    calls: Vec<Call>,
    /// The list that they are in.
    list: &'static [u8],
    functions: Vec<String>,
    /// The arguments of the calls of this repetition, where later ones refer to them; empty if none does.
    given: Vec<[AtomicU64; ARGUMENTS_MOST]>,
}

static KNOWN: OnceLock<Known> = OnceLock::new();
/// Calls that were made since the repetition began.
static MADE: AtomicUsize = AtomicUsize::new(0);
/// Cycles spent here since the process began.
static SPENT: AtomicU64 = AtomicU64::new(0);
/// Whether what calls are given is compared.
static COMPARES: AtomicBool = AtomicBool::new(false);

/// What the calls were given otherwise than in vivo.
#[derive(Default)]
pub struct Given {
    /// Bytes compared.
    pub compared: u64,
    /// Words that differ.
    pub words: u64,
    /// Of those, floating-point numbers that are finite on both sides.
    pub floating: u64,
    /// Largest relative error of doubles, and of floats.
    pub errors: [f64; 2],
    /// The first of them.
    first: Vec<Word>,
}

/// A word that a call was given, and the one in vivo.
struct Word {
    call: usize,
    argument: u32,
    /// Its offset in what was sent; none for the argument itself.
    offset: Option<u64>,
    in_vivo: u64,
    in_vitro: u64,
}

static GIVEN: Mutex<Given> = Mutex::new(Given {
    compared: 0,
    words: 0,
    floating: 0,
    errors: [0.0; 2],
    first: Vec::new(),
});

/// Differences listed.
const LISTED: usize = 16;

/// Makes ready to answer, and to compare what calls of the first run are given; what people should know of it.
pub fn prepare(
    manifest: &Manifest,
    pages: &Pages,
    list: &'static [u8],
    compares: bool,
) -> Result<Option<String>, Error> {
    let Some(mpi) = &manifest.mpi else {
        return Ok(None);
    };
    let calls = decode(MEMBER_MPI, list, mpi.functions.len())?;
    if calls.len() as u64 != mpi.calls {
        return Err(Error::Package(crate::error::Damage::Calls {
            told: mpi.calls,
            found: calls.len(),
        }));
    }
    for piece in calls.iter().flat_map(|call| &call.left) {
        check(piece, pages)?;
    }
    let pieces = || {
        calls
            .iter()
            .flat_map(|call| call.left.iter().chain(&call.sent))
    };
    let remembers = pieces().any(|piece| piece.back > 0);
    let given = match remembers {
        true => calls.iter().map(|_| Default::default()).collect(),
        false => Vec::new(),
    };
    let functions: Vec<String> = mpi.functions.iter().map(|f| f.name.clone()).collect();
    let note = what(&calls, &functions);
    COMPARES.store(compares, Relaxed);
    if let Ok(mut given) = GIVEN.lock() {
        given.first.reserve_exact(LISTED);
    }
    let _ = KNOWN.set(Known {
        calls,
        list,
        functions,
        given,
    });
    Ok(note)
}

/// Refuses a piece that would write other memory than the region's.
fn check(piece: &Piece, pages: &Pages) -> Result<(), Error> {
    let start = piece.at;
    let end = start.saturating_add(piece.bytes.len() as u64);
    let written = |at: u64| pages.at(at).is_some_and(|page| page.is(PAGE_WRITTEN));
    let mut inside = (start & !(crate::pages::PAGE - 1)..end).step_by(crate::pages::PAGE as usize);
    match piece.argument != ABSOLUTE || inside.all(written) {
        true => Ok(()),
        false => Err(Error::Package(crate::error::Damage::Addresses {
            what: "what a call of MPI left",
            start,
            end,
        })),
    }
}

/// What the captured invocation called, for people.
fn what(calls: &[Call], functions: &[String]) -> Option<String> {
    let each = functions.iter().enumerate().filter_map(|(number, name)| {
        let of = calls.iter().filter(|call| call.function as usize == number);
        match of.count() {
            0 => None,
            1 => Some(name.clone()),
            count => Some(format!("{name} ({count} times)")),
        }
    });
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| {
        format!(
            "the region calls {}: answered as in vivo; that time is none of its own",
            each.join(", ")
        )
    })
}

/// Jumps from where the functions were to their answers.
pub fn jumps(manifest: &Manifest) -> Vec<Jump> {
    let functions = manifest.mpi.iter().flat_map(|mpi| &mpi.functions);
    let numbered = functions.take(FUNCTIONS_MOST).enumerate();
    let all = numbered.flat_map(|(number, function)| {
        let new = &raw const cere_mpi_answers as u64 + (number * STUB) as u64;
        let addresses = function.addresses.iter();
        addresses.map(move |old| Jump { old: *old, new })
    });
    all.filter(|jump| jump.old != 0).collect()
}

/// A repetition begins.
pub fn begin() {
    MADE.store(0, Relaxed);
}

/// Cycles spent here so far.
pub fn spent() -> u64 {
    SPENT.load(Relaxed)
}

/// What the calls of the first run were given otherwise than in vivo. Nothing is compared any more.
pub fn given() -> Given {
    COMPARES.store(false, Relaxed);
    let mut given = GIVEN
        .lock()
        .map_or_else(|_| Given::default(), |mut g| std::mem::take(&mut *g));
    if let Some(known) = KNOWN.get() {
        let made = MADE.load(Relaxed);
        if made < known.calls.len() {
            given.add(Word {
                call: made,
                argument: ABSOLUTE,
                offset: None,
                in_vivo: known.calls.len() as u64,
                in_vitro: made as u64,
            });
        }
    }
    given
}

impl Given {
    fn add(&mut self, word: Word) {
        self.words += 1;
        // As long as there is room: in the region nothing is allocated.
        if self.first.len() < self.first.capacity() {
            self.first.push(word);
        }
    }

    fn add_sent(&mut self, word: Word, kind: Option<Kind>) {
        let floating =
            kind.and_then(|kind| compare::floating(word.in_vivo, word.in_vitro, Some([kind; 2])));
        self.floating += u64::from(floating.is_some());
        match floating {
            Some(Floating::Double(error)) => self.errors[0] = self.errors[0].max(error),
            Some(Floating::Single(error)) => self.errors[1] = self.errors[1].max(error),
            None => {}
        }
        self.add(word);
    }

    /// Adds the comparison of what calls were self.
    pub fn add_to(&self, comparison: &mut Comparison) {
        comparison.compared += self.compared;
        comparison.changed += self.compared;
        comparison.different_words += self.words;
        comparison.floating_words += self.floating;
        let [double, single] = self.errors;
        let largest = &mut comparison.largest_relative_error;
        *largest = largest.max(double);
        let largest = &mut comparison.largest_float_error;
        *largest = largest.max(single);
        let mut first: Vec<Difference> = self.differences().collect();
        first.append(&mut comparison.first);
        first.truncate(compare::LISTED);
        comparison.first = first;
    }

    /// The first differences, for people.
    fn differences(&self) -> impl Iterator<Item = Difference> {
        let name = |call: usize| {
            let known = KNOWN.get()?;
            let function = known.calls.get(call)?.function as usize;
            known.functions.get(function).map(String::as_str)
        };
        self.first.iter().map(move |word| {
            let function = name(word.call).unwrap_or("MPI");
            let call = format!("call {} of MPI, {function}", word.call + 1);
            Difference {
                address: word.offset.unwrap_or_default(),
                place: match (word.argument, word.offset) {
                    (ABSOLUTE, None) => format!("number of calls of MPI, at {call}"),
                    (argument, None) => format!("argument {} of {call}", argument + 1),
                    (argument, Some(at)) => {
                        format!(
                            "byte {at} of what argument {} of {call} sends",
                            argument + 1
                        )
                    }
                },
                in_vivo: word.in_vivo,
                in_vitro: word.in_vitro,
            }
        })
    }
}

/// The region calls the function of this `number`, with registers and stack of the stub at `stack`.
extern "C" fn answer(number: usize, stack: usize) -> u64 {
    let began = cere_timing::clock::start();
    let place = MADE.fetch_add(1, Relaxed);
    let Some(known) = KNOWN.get() else {
        return 0;
    };
    let call = known.calls.get(place);
    let Some(call) = call.filter(|call| call.function as usize == number) else {
        known.give_up(number, place);
    };
    // SAFETY: a stub's frame.
    let words = unsafe { read_arguments(stack, call.arguments.len()) };
    let same = is_as_in_vivo(call, &words);
    if let Some(given) = known.given.get(place) {
        let words = if same { words } else { [0; ARGUMENTS_MOST] };
        given
            .iter()
            .zip(words)
            .for_each(|(to, word)| to.store(word as u64, Relaxed));
    }
    if COMPARES.load(Relaxed)
        && let Ok(mut given) = GIVEN.lock()
    {
        known.compare(&mut given, (place, call), &words, same);
    }
    for piece in &call.left {
        // Other buffers may have less room: nothing is received.
        let Some(to) = known.address(place, piece, &words, same) else {
            continue;
        };
        let from = known.list[piece.bytes.clone()].as_ptr();
        // SAFETY: memory that the region hands over to be written, by the arguments in vivo, or captured pages that are written.
        unsafe { std::ptr::copy(from, to as *mut u8, piece.bytes.len()) };
    }
    let now = cere_timing::clock::stop();
    SPENT.fetch_add(now.saturating_sub(began), Relaxed);
    call.result
}

impl Known {
    /// Where a piece is in this repetition; none if that is behind an argument of a call that is given others than in vivo. `same`:
    /// this one is not.
    fn address(
        &self,
        place: usize,
        piece: &Piece,
        words: &[usize; ARGUMENTS_MOST],
        same: bool,
    ) -> Option<u64> {
        let argument = piece.argument as usize;
        let base = match (piece.argument, piece.back) {
            (ABSOLUTE, _) => return Some(piece.at),
            (_, 0) => same.then_some(words[argument] as u64),
            (_, back) => Some(self.given[place - back as usize][argument].load(Relaxed)),
        };
        let base = base.filter(|base| *base != 0)?;
        Some(base.wrapping_add(piece.at))
    }

    fn compare(
        &self,
        given: &mut Given,
        (place, call): (usize, &Call),
        words: &[usize; ARGUMENTS_MOST],
        same: bool,
    ) {
        for (number, (argument, word)) in call.arguments.iter().zip(words).enumerate() {
            let Some(found) = read(argument, *word) else {
                continue;
            };
            given.compared += 8;
            if found != argument.value {
                given.add(Word {
                    call: place,
                    argument: number as u32,
                    offset: None,
                    in_vivo: argument.value,
                    in_vitro: found,
                });
            }
        }
        for piece in &call.sent {
            let Some(at) = self.address(place, piece, words, same) else {
                continue;
            };
            let there = &self.list[piece.bytes.clone()];
            // SAFETY: memory that the region hands over to be read, of that length in vivo.
            let here = unsafe { std::slice::from_raw_parts(at as *const u8, there.len()) };
            given.compared += there.len() as u64;
            if here == there {
                continue;
            }
            let kind = match piece.element {
                Element::Other => None,
                Element::Single => Some(Kind::Single),
                Element::Double => Some(Kind::Double),
            };
            for range in words_of(there.len()) {
                let [in_vivo, in_vitro] = [there, here].map(|bytes| word(&bytes[range.clone()]));
                if in_vivo != in_vitro {
                    let word = Word {
                        call: place,
                        argument: piece.argument,
                        offset: Some(range.start as u64),
                        in_vivo,
                        in_vitro,
                    };
                    given.add_sent(word, kind);
                }
            }
        }
    }

    /// The region makes another call than in vivo: nothing can be answered.
    fn give_up(&self, number: usize, place: usize) -> ! {
        let name = |number: usize| self.functions.get(number).map_or("MPI", String::as_str);
        let instead = self
            .calls
            .get(place)
            .map(|call| name(call.function as usize));
        fault::end(|| {
            let what = match instead {
                Some(instead) => format!("where the captured invocation called {instead}"),
                None => format!("and the captured invocation made {place} calls of MPI"),
            };
            format!(
                "the region calls {} as call {} of MPI, {what}: likely the recompiled region took another path",
                name(number),
                place + 1
            )
        })
    }
}

/// Whether a call is given what it was given in vivo, as far as that is compared.
fn is_as_in_vivo(call: &Call, words: &[usize; ARGUMENTS_MOST]) -> bool {
    let mut each = call.arguments.iter().zip(words);
    each.all(|(argument, word)| read(argument, *word).is_none_or(|found| found == argument.value))
}

/// An argument as the region gives it, in the form of `argument`; none if it is not compared.
fn read(argument: &Argument, word: usize) -> Option<u64> {
    match argument.reading {
        Reading::Not => None,
        Reading::Half => Some(u64::from(word as u32)),
        Reading::Word => Some(word as u64),
        // SAFETY: the argument is the address of a number, as it was in vivo.
        Reading::HalfAt => Some(u64::from(unsafe { (word as *const u32).read_unaligned() })),
        // SAFETY: as above.
        Reading::WordAt => Some(unsafe { (word as *const u64).read_unaligned() }),
    }
}

fn words_of(length: usize) -> impl Iterator<Item = Range<usize>> {
    (0..length)
        .step_by(8)
        .map(move |at| at..(at + 8).min(length))
}

fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

/// The arguments of a call.
///
/// # Safety
/// `stack` is the stack pointer of a call of a stub, with so many arguments.
unsafe fn read_arguments(stack: usize, count: usize) -> [usize; ARGUMENTS_MOST] {
    std::array::from_fn(|place| {
        if place >= count {
            return 0;
        }
        // SAFETY: the stub's frame, and above it the caller's: the captured stack goes on there.
        unsafe { *(argument(stack, place) as *const usize) }
    })
}

unsafe extern "C" {
    static cere_mpi_answers: u8;
}

cere_arch::stubs!(FUNCTIONS_MOST, answer);

#[cfg(test)]
mod tests {
    use super::*;
    use cere_format::mpi::begin;

    /// What a region calls of an address.
    type Function =
        extern "C" fn(*mut f64, usize, usize, usize, usize, usize, *mut i32, usize) -> i32;

    fn call(list: &mut Vec<u8>, arguments: &[Argument], back: u32, left: f64) {
        let mut call = begin(list, 0, arguments);
        call.piece(
            list,
            true,
            (0, 0, 8),
            Element::Double,
            &1.5f64.to_le_bytes(),
        );
        call.piece(
            list,
            false,
            (back, 0, 0),
            Element::Other,
            &left.to_le_bytes(),
        );
        call.piece(list, false, (0, 6, 4), Element::Other, &7i32.to_le_bytes());
        call.end(list, 3);
    }

    #[test]
    fn calls_are_answered_and_what_they_are_given_is_compared() {
        let not = Argument {
            reading: Reading::Not,
            value: 0,
        };
        let half = |value| Argument {
            reading: Reading::Half,
            value,
        };
        let arguments = [not, half(2), not, not, not, half(5), not, half(8)];
        let mut list = Vec::new();
        call(&mut list, &arguments, 0, 10.0);
        call(&mut list, &arguments, 1, 20.0);
        let list: &'static [u8] = list.leak();
        let calls = decode("a", list, 1).unwrap();
        let given = calls.iter().map(|_| Default::default()).collect();
        let known = Known {
            calls,
            list,
            functions: vec!["MPI_Recv".into()],
            given,
        };
        assert!(KNOWN.set(known).is_ok());
        GIVEN.lock().unwrap().first.reserve_exact(LISTED);
        COMPARES.store(true, Relaxed);
        // SAFETY: the first stub, a function of C.
        let function: Function = unsafe { std::mem::transmute(&raw const cere_mpi_answers) };
        let (mut one, mut other, mut status) = ([0.0, 1.5], [0.0, 1.5], [0i32; 2]);
        begin_again(function, &mut one, &mut other, &mut status, 5);
        // The second call leaves what it received where the first was told to.
        assert_eq!((one[0], other[0], status), (20.0, 0.0, [0, 7]));
        let found = given_now();
        assert_eq!((found.words, found.compared), (0, 2 * (3 * 8 + 8)));
        other[1] = 1.75;
        compare_again();
        begin_again(function, &mut one, &mut other, &mut status, 5);
        let found = given_now();
        assert_eq!((found.words, found.floating), (1, 1));
        assert!((found.errors[0] - 0.25 / 1.75).abs() < 1e-12);
        assert_eq!(
            places(&found),
            ["byte 0 of what argument 1 of call 2 of MPI, MPI_Recv sends"]
        );
        // Arguments that are not those in vivo: what is behind them is left alone, in later runs too.
        (one[0], status) = (5.0, [0; 2]);
        compare_again();
        begin_again(function, &mut one, &mut other, &mut status, 6);
        assert_eq!(
            places(&given_now()),
            [
                "argument 6 of call 1 of MPI, MPI_Recv",
                "argument 6 of call 2 of MPI, MPI_Recv",
            ]
        );
        assert_eq!((one[0], status), (5.0, [0; 2]));
        begin_again(function, &mut one, &mut other, &mut status, 6);
        assert_eq!((one[0], status), (5.0, [0; 2]));
        assert!(spent() > 0);
    }

    fn compare_again() {
        COMPARES.store(true, Relaxed);
        GIVEN.lock().unwrap().first.reserve_exact(LISTED);
    }

    fn places(given: &Given) -> Vec<String> {
        given.differences().map(|d| d.place).collect()
    }

    fn begin_again(
        function: Function,
        one: &mut [f64; 2],
        other: &mut [f64; 2],
        status: &mut [i32; 2],
        sixth: usize,
    ) {
        super::begin();
        for buffer in [one, other] {
            let result = function(
                buffer.as_mut_ptr(),
                2,
                0,
                0,
                0,
                sixth,
                status.as_mut_ptr(),
                8,
            );
            assert_eq!(result, 3);
        }
    }

    fn given_now() -> Given {
        super::given()
    }
}

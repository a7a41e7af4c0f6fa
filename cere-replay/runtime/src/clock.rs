//! What the region asks the kernel: the time, the number of its process and the like. Each repetition is answered as the
//! captured invocation was, in the same order; whoever asks more often gets a clock that runs on from there.
//!
//! The functions of the kernel's shared page (vDSO), to which every library goes for the time, lead here; so do
//! their captured addresses. The answers are given on the region's stack: no allocation.

use crate::error::Error;
use crate::pages::PAGE;
use crate::{control, guard, pass, space, text, trampoline};
use cere_arch::register::Registers;
use cere_arch::{jump, numbers};
use cere_format::answers::{
    ANSWER_CALL, Answers, COUNTER, Clock, Head, Question, ask, decode, question,
};
use cere_format::package::{MEMBER_ANSWERS, Manifest};
use cere_inside::call::{self, call};
use cere_inside::vdso::{NAMES, SharedPage};
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

const NANO: i64 = 1_000_000_000;
/// Ticks of a second as `times` counts them.
const TICKS: i64 = 100;

/// What the captured invocation got for one question.
struct Queue {
    /// The thread that asks: 0 for the one that enters the region, else its number in the team.
    thread: u32,
    number: usize,
    key: u32,
    answers: Vec<(Head, Vec<u8>)>,
    /// Times asked since the repetition began.
    asked: AtomicUsize,
}

/// All that is known.
struct Known {
    queues: Vec<Queue>,
    clocks: Vec<Clock>,
    /// Whether the region reads the time stamp counter.
    counts: bool,
    /// This executable.
    executable: (u64, u64),
}

static KNOWN: OnceLock<Known> = OnceLock::new();
/// Answers of system calls among them.
static CALLS: AtomicUsize = AtomicUsize::new(0);
/// Whether the region runs.
static RUNS: AtomicBool = AtomicBool::new(false);
/// The thread that enters it.
static ENTERS: AtomicU64 = AtomicU64::new(0);
/// The other threads of the team, by number from 1.
static TEAM: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];
/// When the repetition was first asked what the captured invocation was not, in nanoseconds; 0: not yet.
static SINCE: AtomicI64 = AtomicI64::new(0);
/// Questions of this repetition that the capture has no answer of.
static ASKED_MORE: AtomicU64 = AtomicU64::new(0);

/// Has the calling thread's readings of the time stamp counter fault, or not.
fn trap_counter(yes: bool) {
    // SAFETY: the handler of SIGSEGV answers readings: [`counter`].
    unsafe { call::trap_counter(yes) };
}

/// A thread took a general protection fault. If it reads the time stamp counter, it gets the counter: the captured one where the
/// region reads it, not a library or the switch to the region.
pub fn counter(context: &mut libc::ucontext_t) -> bool {
    let mut registers = Registers::of(context);
    let at = registers.pc() as usize;
    if !registers.protection() {
        return false;
    }
    // SAFETY: the instruction that was just executed.
    let Some(length) = (unsafe { cere_timing::clock::reads_counter(at) }) else {
        return false;
    };
    if !RUNS.load(Acquire) {
        // A thread that was started while readings faulted: it reads again.
        trap_counter(false);
        return true;
    }
    let known = KNOWN.get();
    let recompiled = known.is_some_and(|k| (k.executable.0..k.executable.1).contains(&(at as u64)));
    let regions = recompiled && !trampoline::holds(at) || space::reserved(at as u64);
    let mut processor = 0;
    let place = &raw mut processor as usize;
    // SAFETY: a word of our own.
    let answer = || unsafe { captured(COUNTER, [length - 2, place, 0, 0, 0, 0]) };
    let now = match regions.then(answer).flatten() {
        Some(answer) => answer as u64,
        None => {
            trap_counter(false);
            let (now, here) = cere_timing::clock::processor();
            trap_counter(true);
            processor = here;
            now
        }
    };
    registers.set_counter(length, now, processor);
    true
}

/// A repetition begins.
pub fn begin() {
    let Some(known) = KNOWN.get() else { return };
    known.queues.iter().for_each(|q| q.asked.store(0, Relaxed));
    SINCE.store(0, Relaxed);
    ASKED_MORE.store(0, Relaxed);
    RUNS.store(true, Release);
    if known.counts {
        trap_counter(true);
    }
    pass::catch(true);
}

/// It has ended.
pub fn end() {
    pass::catch(false);
    RUNS.store(false, Release);
    if KNOWN.get().is_some_and(|k| k.counts) {
        trap_counter(false);
    }
}

/// Nanoseconds of the real clock since the captured answers came to an end.
fn elapsed() -> i64 {
    let mut now = [0i64; 2];
    let arguments = [
        libc::CLOCK_MONOTONIC as usize,
        now.as_mut_ptr() as usize,
        0,
        0,
        0,
        0,
    ];
    // SAFETY: two words of our own.
    unsafe { call(libc::SYS_clock_gettime, arguments) };
    let now = now[0] * NANO + now[1];
    match SINCE.compare_exchange(0, now, Relaxed, Relaxed) {
        Ok(_) => 0,
        Err(since) => (now - since).max(0),
    }
}

/// Seconds and parts of them, so many nanoseconds later.
fn later(at: [i64; 2], unit: i64, nanoseconds: i64) -> [i64; 2] {
    let total = at[1] + nanoseconds / (NANO / unit);
    [at[0] + total / unit, total % unit]
}

/// The words at the start of an answer.
fn words(bytes: &[u8]) -> [i64; 2] {
    let word = |at: usize| {
        let bytes = bytes.get(at..at + 8);
        bytes
            .and_then(|b| b.try_into().ok())
            .map_or(0, i64::from_le_bytes)
    };
    [word(0), word(8)]
}

unsafe fn store<T>(at: usize, value: T) {
    if at != 0 {
        // SAFETY: callers pass the address of a variable that the region gave a call to fill in.
        unsafe { (at as *mut T).write_unaligned(value) };
    }
}

/// Makes the system call that packages have under `number`.
///
/// # Safety
/// As the call itself.
unsafe fn made(number: usize, arguments: [usize; 6]) -> isize {
    match cere_arch::call::native(number as i64) {
        // SAFETY: by the contract.
        Some(number) => unsafe { call(number, arguments) },
        None => -(libc::ENOSYS as isize),
    }
}

/// Takes the time that the kernel's own answer takes, about: it reads the counter, or is a system call.
fn spend(number: usize, key: u32) {
    const COUNTED: [i32; 5] = [
        libc::CLOCK_REALTIME,
        libc::CLOCK_MONOTONIC,
        libc::CLOCK_MONOTONIC_RAW,
        libc::CLOCK_BOOTTIME,
        libc::CLOCK_TAI,
    ];
    const COARSE: [i32; 2] = [libc::CLOCK_REALTIME_COARSE, libc::CLOCK_MONOTONIC_COARSE];
    let clock = number as i64 == numbers::CLOCK_GETTIME;
    if clock && COUNTED.contains(&(key as i32)) || number as i64 == numbers::GETTIMEOFDAY {
        std::hint::black_box(cere_timing::clock::processor());
    } else if clock && !COARSE.contains(&(key as i32)) {
        let mut now = [0i64; 2];
        let arguments = [key as usize, now.as_mut_ptr() as usize, 0, 0, 0, 0];
        // SAFETY: two words of our own.
        unsafe { made(number, arguments) };
    }
}

/// Gives an answer as it was captured.
unsafe fn give(asked: Question, (head, bytes): &(Head, Vec<u8>)) -> isize {
    let mut rest = &bytes[..];
    for (at, length) in asked.writes {
        let (now, after) = rest.split_at(length.min(rest.len()));
        if at != 0 {
            // SAFETY: the region gave the call this memory to fill in, of that length or more.
            unsafe { std::ptr::copy_nonoverlapping(now.as_ptr(), at as *mut u8, now.len()) };
            rest = after;
        }
    }
    head.result as isize
}

impl Known {
    fn clock(&self, id: i32) -> Option<[i64; 2]> {
        let clock = self.clocks.iter().find(|c| c.id == id)?;
        Some([clock.seconds, clock.nanoseconds])
    }

    /// Answers what the captured invocation did not ask, or not so often: a clock goes on from its `last` answer, or from
    /// where it stood at entry. None: only the kernel knows.
    unsafe fn go_on(
        &self,
        number: usize,
        a: [usize; 6],
        last: Option<&(Head, Vec<u8>)>,
    ) -> Option<isize> {
        let time = last.filter(|l| l.0.result >= 0).map(|l| words(&l.1));
        let realtime = || {
            self.clock(libc::CLOCK_REALTIME)
                .map(|t| [t[0], t[1] / 1000])
        };
        if number == COUNTER {
            return None;
        }
        // SAFETY: the arguments are those of the region's own system call, whose memory it may write.
        unsafe {
            match number as i64 {
                numbers::CLOCK_GETTIME => {
                    let from = time.or_else(|| self.clock(a[0] as i32))?;
                    store(a[1], later(from, NANO, elapsed()));
                    Some(0)
                }
                numbers::GETTIMEOFDAY => {
                    store(a[0], later(time.or_else(realtime)?, NANO / 1000, elapsed()));
                    Some(0)
                }
                numbers::TIME => {
                    let from = last.map(|l| l.0.result);
                    let from = from.or_else(|| realtime().map(|t| t[0]))?;
                    let now = from + elapsed() / NANO;
                    store(a[0], now);
                    Some(now as isize)
                }
                numbers::TIMES | numbers::GETRUSAGE => {
                    let question = question(number, a)?;
                    let result = give(question, last?);
                    let passed = elapsed();
                    let ticks = passed / (NANO / TICKS);
                    if number as i64 == numbers::TIMES {
                        store(a[0], time?[0] + ticks);
                        return Some(result + ticks as isize);
                    }
                    store(a[1], later(time?, NANO / 1000, passed));
                    Some(result)
                }
                numbers::GETRANDOM => None,
                _ => Some(give(question(number, a)?, last?)),
            }
        }
    }
}

/// Answers a system call of the region, or makes it.
///
/// # Safety
/// As the call itself.
pub unsafe fn answer(number: usize, a: [usize; 6]) -> isize {
    // SAFETY: the region's own question, whose memory it answers for.
    unsafe {
        captured(number, a).unwrap_or_else(|| {
            if guard::SEALED.load(Relaxed) && !is_harmless(number as i64, a[0]) {
                guard::not_captured(number as i64, a);
            }
            let result = made(number, a);
            text::note(number, a, result);
            result
        })
    }
}

/// The number of the calling thread; none if it is not of the team.
fn asking_thread() -> Option<u32> {
    let this = control::pointer();
    if this == ENTERS.load(Relaxed) {
        return Some(0);
    }
    let place = TEAM.iter().position(|t| t.load(Relaxed) == this)?;
    Some(place as u32 + 1)
}

/// The calling thread is that of this number in the team, from 1.
pub fn number_thread(number: u32) {
    if let Some(place) = TEAM.get((number as usize).wrapping_sub(1)) {
        place.store(control::pointer(), Relaxed);
    }
}

/// Answers as captured, while the region runs. None: only the kernel knows.
unsafe fn captured(number: usize, a: [usize; 6]) -> Option<isize> {
    let known = KNOWN.get().filter(|_| RUNS.load(Acquire))?;
    let asked = question(number, a)?;
    let of = |thread: u32| {
        let is = |q: &&Queue| q.thread == thread && q.number == number && q.key == asked.key;
        known.queues.iter().find(is)
    };
    let (own, queue) = match asking_thread() {
        Some(thread) => match of(thread) {
            Some(queue) => (true, Some(queue)),
            None => (thread == 0, of(0)),
        },
        None => (false, of(0)),
    };
    let mut last = None;
    // Threads without answers of their own get the clock that runs on.
    if let Some(queue) = queue {
        let place = match own {
            true => queue.asked.fetch_add(1, Relaxed),
            false => queue.answers.len(),
        };
        if let Some(found) = queue.answers.get(place) {
            if !known.counts {
                spend(number, asked.key);
            }
            // SAFETY: the region's own question: the answer goes where it asked for it.
            return Some(unsafe { give(asked, found) });
        }
        last = match own {
            true => queue.answers.last(),
            false => queue
                .answers
                .get(queue.asked.load(Relaxed).saturating_sub(1)),
        };
    }
    ASKED_MORE.fetch_add(1, Relaxed);
    // SAFETY: the region's own question: the answer goes where it asked for it.
    unsafe { known.go_on(number, a, last) }
}

macro_rules! shared {
    ($($function:ident($($argument:ident),*) = $number:ident;)*) => {
        $(unsafe extern "C" fn $function($($argument: usize),*) -> isize {
            let mut arguments = [0; 6];
            for (to, from) in arguments.iter_mut().zip([$($argument),*]) {
                *to = from;
            }
            // SAFETY: the function of the shared page asks what the system call asks.
            unsafe { answer(numbers::$number as usize, arguments) }
        })*
        /// What stands here for the functions of the shared page: [`NAMES`].
        const FUNCTIONS: [*const (); NAMES.len()] = [$($function as *const ()),*];
    };
}
shared! {
    clock_gettime(id, time) = CLOCK_GETTIME;
    gettimeofday(time, zone) = GETTIMEOFDAY;
    time(at) = TIME;
    clock_getres(id, time) = CLOCK_GETRES;
    getcpu(processor, node) = GETCPU;
    getrandom(to, length, flags, state, size) = GETRANDOM;
}

cere_arch::questions!(super::answer);

/// Where a jump is put, and where it leads.
type Jump = (usize, usize);

const FAR: usize = jump::FAR as usize;

unsafe fn put((at, to): Jump) {
    let code = jump::far(to as u64);
    // SAFETY: the caller has opened the page.
    unsafe {
        std::ptr::copy_nonoverlapping(code.as_ptr(), at as *mut u8, FAR);
        jump::written(at as u64, (at + FAR) as u64);
    }
}

/// Jumps at the functions of this process's shared page.
fn own_jumps(page: &SharedPage) -> Vec<Jump> {
    let all = page.functions.into_iter().zip(FUNCTIONS);
    let all = all.map(|(at, to)| (at, to as usize));
    all.filter(|jump| jump.0 != 0).collect()
}

/// Jumps at the captured addresses, where they are not those of this process.
fn captured_jumps(answers: &Answers, own: &[Jump]) -> Vec<Jump> {
    let apart = |at: usize| own.iter().all(|o| o.0.abs_diff(at) >= FAR);
    let found = answers.functions.iter().filter_map(|(name, at)| {
        let place = numbers::SHARED.iter().position(|n| n == name)?;
        Some((*at as usize, FUNCTIONS[place] as usize))
    });
    found.filter(|j| apart(j.0)).collect()
}

/// Changes the rights of pages of the kernel's, or of our own.
fn allow((start, end): (usize, usize), rights: i32) -> bool {
    // SAFETY: nobody else uses the pages meanwhile; all that they hold is jumps, or functions that stay whole.
    unsafe { libc::mprotect(start as _, end - start, rights) == 0 }
}

/// A fresh page at `start`, unless something is there.
fn fresh(start: usize) -> bool {
    let size = PAGE as usize;
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: a fresh mapping where nothing is.
    unsafe { libc::mmap(start as _, size, rights, flags, -1, 0) as usize == start }
}

/// Puts the jumps in place: false if this kernel does not let its page be changed.
fn install(answers: &Answers) -> bool {
    let size = PAGE as usize;
    let page = |jump: &Jump| jump.0 & !(size - 1);
    let open = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    let shared = SharedPage::find().filter(|shared| allow(shared.code, open));
    let own = shared.as_ref().map_or((0, 0), |shared| shared.code);
    let jumps = shared.as_ref().map_or_else(Vec::new, own_jumps);
    let other = captured_jumps(answers, &jumps);
    let mut pages: Vec<usize> = (own.0..own.1).step_by(size).collect();
    let known = pages.len();
    for jump in jumps.into_iter().chain(other) {
        let start = page(&jump);
        if jump.0 + FAR > start + size {
            continue;
        }
        if !pages.contains(&start) {
            if !fresh(start) {
                continue;
            }
            pages.push(start);
        }
        // SAFETY: open for writing.
        unsafe { put(jump) };
    }
    let last = libc::PROT_READ | libc::PROT_EXEC;
    let rest = pages[known..].iter().all(|p| allow((*p, p + size), last));
    shared.is_some() && allow(own, last) && rest
}

/// Makes ready to answer; what people should know of it.
pub fn prepare(
    manifest: &Manifest,
    file: &[u8],
    executable: (u64, u64),
) -> Result<Vec<String>, Error> {
    let Some(answers) = &manifest.answers else {
        return Ok(Vec::new());
    };
    let mut queues: Vec<Queue> = Vec::new();
    let all = decode(MEMBER_ANSWERS, file)?;
    let of_team = answers.team.iter();
    let of_team = of_team.flat_map(|(thread, count)| {
        let count = usize::try_from(*count).unwrap_or(usize::MAX);
        std::iter::repeat_n(*thread, count.min(all.len()))
    });
    let of_team: Vec<u32> = of_team.take(all.len()).collect();
    let first = all.len() - of_team.len();
    let threads = std::iter::repeat_n(0, first).chain(of_team);
    let asked = threads.zip(all).filter(|(_, (head, _))| !head.is_text());
    for (thread, (head, bytes)) in asked {
        let (number, key) = (head.number as usize, head.key);
        let same = |q: &&mut Queue| q.thread == thread && q.number == number && q.key == key;
        match queues.iter_mut().find(same) {
            Some(queue) => queue.answers.push((head, bytes)),
            None => queues.push(Queue {
                thread,
                number,
                key,
                answers: vec![(head, bytes)],
                asked: AtomicUsize::new(0),
            }),
        }
    }
    let calls = queues.iter().flat_map(|q| &q.answers);
    let calls = calls.filter(|a| a.0.flags & ANSWER_CALL != 0).count();
    let mut notes: Vec<String> = what(&queues).into_iter().collect();
    if let Some(cut) = &answers.cut {
        notes.push(format!(
            "what the region asked is not all in the capture: {cut}"
        ));
    }
    ENTERS.store(control::pointer(), Relaxed);
    let clocks = answers.clocks.clone();
    let counts = queues.iter().any(|q| q.number == COUNTER);
    if counts {
        notes.push(
            "the region reads the time stamp counter: each reading takes some microseconds here"
                .into(),
        );
    }
    let _ = KNOWN.set(Known {
        queues,
        clocks,
        counts,
        executable,
    });
    CALLS.store(calls, Relaxed);
    if !install(answers) && cere_arch::HERE.facts().questions.is_empty() {
        notes.push("this kernel does not let its shared page (vDSO) be changed: the region reads today's clock".into());
    }
    Ok(notes)
}

/// Catches system calls of the region from now on where the capture has answers of some, or where it is wanted; what people
/// should know of it.
pub fn listen(wanted: bool, sealed: bool) -> Result<Option<String>, Error> {
    let calls = CALLS.load(Relaxed);
    let caught = (calls > 0 || wanted || sealed) && pass::prepare(answer);
    if sealed && !caught {
        return Err(Error::Unsealed);
    }
    guard::SEALED.store(sealed, Relaxed);
    let unanswered = calls > 0 && !caught && cere_arch::HERE.facts().questions.is_empty();
    Ok(unanswered.then(|| {
        format!(
            "this kernel has no Syscall User Dispatch (Linux 5.11 and later have it): {calls} system calls that the region \
             asks with are answered anew"
        )
    }))
}

/// Whether a call shows nothing of this process, and leaves nothing behind but text.
fn is_harmless(number: i64, first: usize) -> bool {
    const PRINTED: [usize; 2] = [1, 2];
    match number {
        numbers::FUTEX | numbers::SCHED_YIELD | numbers::MADVISE | numbers::RT_SIGPROCMASK => true,
        numbers::WRITE | numbers::WRITEV => PRINTED.contains(&first),
        _ => false,
    }
}

/// The first run has ended: catches system calls only where the capture has answers of some.
pub fn relax() {
    text::stop();
    if CALLS.load(Relaxed) == 0 && !guard::SEALED.load(Relaxed) {
        pass::release();
    }
}

/// What the captured invocation asked.
fn what(queues: &[Queue]) -> Option<String> {
    let mut all: Vec<(String, usize)> = Vec::new();
    for queue in queues {
        let Some(name) = ask(queue.number, queue.key) else {
            continue;
        };
        match all.iter_mut().find(|a| a.0 == name) {
            Some(known) => known.1 += queue.answers.len(),
            None => all.push((name, queue.answers.len())),
        }
    }
    let each = all.into_iter().map(|(name, count)| match count {
        1 => name,
        count => format!("{name} ({count} times)"),
    });
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| {
        format!(
            "the region asks for {}: answered as in vivo",
            each.join(", ")
        )
    })
}

/// Questions of the last repetition that the capture had no answer of.
pub fn asked_more() -> u64 {
    ASKED_MORE.load(Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(seconds: i64, nanoseconds: i64) -> (Head, Vec<u8>) {
        let head = Head {
            number: numbers::CLOCK_GETTIME as u32,
            key: libc::CLOCK_MONOTONIC as u32,
            flags: 0,
            length: 16,
            result: 0,
        };
        let bytes = [seconds.to_le_bytes(), nanoseconds.to_le_bytes()].concat();
        (head, bytes)
    }

    fn read(id: i32) -> Option<(i64, i64)> {
        let mut now = [0i64; 2];
        let arguments = [id as usize, now.as_mut_ptr() as usize, 0, 0, 0, 0];
        // SAFETY: two words of our own.
        let result = unsafe { captured(numbers::CLOCK_GETTIME as usize, arguments) };
        result.map(|_| (now[0], now[1]))
    }

    #[test]
    fn each_repetition_is_answered_as_captured_and_then_the_clock_runs_on() {
        ENTERS.store(control::pointer(), Relaxed);
        let queue = |thread, answers| Queue {
            thread,
            number: numbers::CLOCK_GETTIME as usize,
            key: libc::CLOCK_MONOTONIC as u32,
            answers,
            asked: AtomicUsize::new(0),
        };
        let known = Known {
            queues: vec![
                queue(0, vec![time(5, 7), time(5, 999_999_000)]),
                queue(3, vec![time(4, 2)]),
            ],
            clocks: vec![Clock {
                id: libc::CLOCK_BOOTTIME,
                seconds: 9,
                nanoseconds: 8,
            }],
            counts: false,
            executable: (0, 0),
        };
        assert!(KNOWN.set(known).is_ok());
        assert_eq!(read(libc::CLOCK_MONOTONIC), None, "outside the region");
        for _ in 0..2 {
            begin();
            let monotonic = || read(libc::CLOCK_MONOTONIC).unwrap();
            assert_eq!(
                (monotonic(), monotonic(), asked_more()),
                ((5, 7), (5, 999_999_000), 0)
            );
            // What was never read starts where it stood at entry.
            assert_eq!(read(libc::CLOCK_BOOTTIME), Some((9, 8)));
            let mut last = (5, 999_999_000);
            let began = cere_timing::clock::monotonic_ns();
            while cere_timing::clock::monotonic_ns() - began < 3_000_000 {
                let now = monotonic();
                assert!(last <= now && now.1 < NANO, "{last:?}, then {now:?}");
                last = now;
            }
            assert_eq!(last.0, 6);
            // Another thread does not take the answers of this one.
            begin();
            std::thread::scope(|s| s.spawn(|| read(libc::CLOCK_MONOTONIC)).join()).unwrap();
            assert_eq!(((5, 7), 1), (monotonic(), asked_more()));
            // One of the team has its own.
            begin();
            let third = || {
                number_thread(3);
                read(libc::CLOCK_MONOTONIC)
            };
            let found = std::thread::scope(|s| s.spawn(third).join()).unwrap();
            assert_eq!((found, asked_more()), (Some((4, 2)), 0));
            // Its control block may be the next thread's.
            TEAM[2].store(0, Relaxed);
            end();
        }
    }

    #[test]
    fn what_both_pointers_get() {
        let head = time(0, 0).0;
        let answer = (head, (0..24).collect());
        let (mut first, mut second) = ([0u8; 16], [0u8; 8]);
        let asked = |a: usize, b: usize| Question {
            key: 0,
            writes: [(a, 16), (b, 8)],
        };
        let at = (first.as_mut_ptr() as usize, second.as_mut_ptr() as usize);
        // SAFETY: variables of our own.
        unsafe { give(asked(at.0, at.1), &answer) };
        assert_eq!((first[15], second[0], second[7]), (15, 16, 23));
        // SAFETY: variables of the test.
        unsafe { give(asked(0, at.1), &answer) };
        assert_eq!((second[0], second[7]), (0, 7));
    }
}

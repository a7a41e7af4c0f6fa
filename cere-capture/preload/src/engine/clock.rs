//! Answers of the kernel to the captured thread and those of its team: the time, process ids and the like. They are kept, so
//! that a replay gives the same answers.
//!
//! Most questions go through the kernel's shared page (vDSO) without a system call. During captures that page is not
//! executable: a call of a function there faults, and is redirected to the equivalent system call.
//!
//! Readings of the time stamp counter fault during captures and are kept as well.
//!
//! Runs in handlers, but for [`prepare_answers`], [`read_clocks`] and [`read_answers`].

use super::parallel;
use crate::os::sys::PAGE;
use crate::os::{arena, local, sys};
use cere_format::answers::{
    ANSWER_CALL, ANSWER_HEAD, ANSWERS_MOST, Answers, CLOCKS, COUNTER, Clock, Head, Question,
    REGISTRATION, TEXT_GOES_ON, TEXT_MOST, is_write, question, registration,
};
use cere_inside::call;
use cere_inside::vdso::{NAMES, SharedPage};
use cere_timing::clock::reads_counter;
use libc::ucontext_t;
use std::arch::global_asm;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

// Outside the section whose system calls are let through: these are caught like the program's. In the order of
// [`NAMES`], 16 bytes each.
global_asm!(
    ".pushsection .text.cere_asks,\"ax\",@progbits",
    ".globl cere_asks_start",
    ".hidden cere_asks_start",
    "cere_asks_start:",
    ".macro cere_ask number",
    ".balign 16",
    "mov eax, \\number",
    "syscall",
    "ret",
    ".endm",
    "cere_ask {clock_gettime}",
    "cere_ask {gettimeofday}",
    "cere_ask {time}",
    "cere_ask {clock_getres}",
    "cere_ask {getcpu}",
    // A query of the state's size fails: libc then makes the system call itself.
    ".balign 16",
    "cmp r8, -1",
    "je 2f",
    "mov eax, {getrandom}",
    "syscall",
    "ret",
    "2:",
    "mov eax, -38",
    "ret",
    ".globl cere_asks_end",
    ".hidden cere_asks_end",
    "cere_asks_end:",
    ".popsection",
    clock_gettime = const libc::SYS_clock_gettime,
    gettimeofday = const libc::SYS_gettimeofday,
    time = const libc::SYS_time,
    clock_getres = const libc::SYS_clock_getres,
    getcpu = const libc::SYS_getcpu,
    getrandom = const libc::SYS_getrandom,
);

unsafe extern "C" {
    static cere_asks_start: u8;
    static cere_asks_end: u8;
}

static SHARED: OnceLock<Option<SharedPage>> = OnceLock::new();
static CLOSED: AtomicBool = AtomicBool::new(false);
/// Whether readings of the time stamp counter fault in the captured thread.
static COUNTED: AtomicBool = AtomicBool::new(false);
/// Why an answer is missing since the outermost capture began: 0, or one of the following.
static CUT: AtomicUsize = AtomicUsize::new(0);
const FULL: usize = 1;
const REFUSED: usize = 2;
const INSIDE: usize = 3;

/// Whether a registration is missing since then.
static UNREGISTERED: AtomicBool = AtomicBool::new(false);

/// The answers kept since the outermost capture began.
static LOG: AtomicUsize = AtomicUsize::new(0);
static ROOM: AtomicUsize = AtomicUsize::new(0);
static USED: AtomicUsize = AtomicUsize::new(0);

/// Finds the shared page and reserves room for answers: its range, empty if refused.
pub fn prepare_answers() -> (usize, usize) {
    // Without a function that calls can go to instead, the page stays open.
    let known = |page: &SharedPage| page.functions.iter().any(|at| *at != 0);
    let _ = SHARED.set(SharedPage::find().filter(known));
    // Smaller where address space is short.
    for size in [ANSWERS_MOST as usize, 1 << 20] {
        if let Some(start) = arena::reserve(arena::WANTED + 11 * arena::SIZE, size) {
            LOG.store(start, Relaxed);
            ROOM.store(size, Relaxed);
            return (start, start + size);
        }
    }
    (0, 0)
}

fn shared_page() -> Option<&'static SharedPage> {
    SHARED.get()?.as_ref()
}

fn set_page_rights(rights: i32) -> bool {
    // SAFETY: who executes the page meanwhile is led elsewhere, or finds it open.
    shared_page()
        .is_some_and(|page| unsafe { sys::protect(page.code.0, page.code.1, rights as u8) } == 0)
}

/// Makes the shared page not executable.
pub fn close_shared_page() {
    if CUT.load(Relaxed) != INSIDE && shared_page().is_some() {
        match set_page_rights(libc::PROT_READ) {
            true => CLOSED.store(true, Relaxed),
            false => CUT.store(REFUSED, Relaxed),
        }
    }
}

/// Makes the shared page executable again.
pub fn open_shared_page() {
    if CLOSED.swap(false, Relaxed) {
        set_page_rights(libc::PROT_READ | libc::PROT_EXEC);
    }
}

/// A thread of the captured region faulted on executing `address`. Where it continues instead, if that is in the closed shared
/// page.
pub fn find_detour(address: usize) -> Option<usize> {
    let page = shared_page()
        .filter(|p| (p.code.0..p.code.1).contains(&address) && CLOSED.load(Relaxed))?;
    match page.functions.iter().position(|f| *f == address) {
        Some(place) => Some(&raw const cere_asks_start as usize + 16 * place),
        None => {
            // The thread was in the page before it was closed.
            CUT.store(INSIDE, Relaxed);
            open_shared_page();
            Some(address)
        }
    }
}

/// Whether a system call at `address` replaces a function of the shared page.
pub fn is_detour(address: usize) -> bool {
    (&raw const cere_asks_start as usize..&raw const cere_asks_end as usize).contains(&address)
}

/// The first capture begins: drops all answers.
pub fn begin_answers() {
    USED.store(0, Relaxed);
    CUT.store(0, Relaxed);
    UNREGISTERED.store(false, Relaxed);
}

/// Bytes kept so far: the offset of the answers to a capture that begins now.
pub fn answers_length() -> usize {
    USED.load(Relaxed)
}

/// Bits of an answer's flags below the number of the thread, while the answer is in the log.
const THREAD_SHIFT: u32 = 8;

/// The captured thread made a system call at `address`, with this result. Keeps the answer if it was such a question, the text
/// if it wrote one. What the call reached is open.
pub fn note_answer(number: usize, a: [usize; 6], result: isize, address: usize) {
    match is_write(number, a[0]) {
        true => note_text(number, a, result),
        false => note_answer_to(0, number, a, result, address),
    }
}

/// The same for the thread of this number in the team, whose texts are not kept. In turn.
pub fn note_answer_to(thread: u32, number: usize, a: [usize; 6], result: isize, address: usize) {
    let Some(Question { key, writes }) = question(number, a) else {
        return;
    };
    let written = |(at, length): (usize, usize)| match (at, result) {
        (0, _) | (_, ..0) => (at, 0),
        _ if number as i64 == libc::SYS_getrandom => (at, length.min(result as usize)),
        _ => (at, length),
    };
    let flags = if is_detour(address) || number == COUNTER {
        0
    } else {
        ANSWER_CALL
    };
    append_answer(
        Head {
            number: number as u32,
            key,
            flags: flags | thread << THREAD_SHIFT,
            length: 0,
            result: result as i64,
        },
        writes.map(written),
    );
}

/// Keeps the bytes that a call wrote, so many as it `result`ed in, in records of [`TEXT_MOST`]. Half of the room is for
/// answers: a text that does not fit is missing as a whole, which shows in the number of calls.
fn note_text(number: usize, a: [usize; 6], result: isize) {
    let mut rest = result.max(0) as usize;
    if USED.load(Relaxed) + rest + rest / 8 + PAGE > ROOM.load(Relaxed) / 2 {
        return;
    }
    let mut head = Head::text(a[0] as u32, 0, 0);
    let mut keep = |start: usize, length: usize| {
        let mut done = 0;
        while done < length.min(rest) {
            let part = TEXT_MOST.min(length.min(rest) - done);
            append_answer(head, [(start + done, part), (0, 0)]);
            head.flags = TEXT_GOES_ON;
            done += part;
        }
        rest -= done;
    };
    if number as i64 == libc::SYS_write {
        keep(a[1], a[2]);
    } else {
        for i in 0..a[2] {
            // SAFETY: the array of the call, which was just made and is open.
            let part = unsafe { *(a[1] as *const [usize; 2]).add(i) };
            keep(part[0], part[1]);
        }
    }
    if head.flags == 0 {
        append_answer(head, [(0, 0); 2]);
    }
}

/// The captured thread, or one of its team, called the function at `key` of those that register what is to run at an end. Out of
/// handlers: while a team runs its threads may keep answers.
pub fn note_registration(key: u32, arguments: [u64; 3]) {
    let needed = ANSWER_HEAD + REGISTRATION;
    let full = CUT.load(Relaxed) == FULL || USED.load(Relaxed) + needed > ROOM.load(Relaxed);
    if full || parallel::in_parallel() || local::is_of_team() {
        return UNREGISTERED.store(true, Relaxed);
    }
    let registered = registration(key, arguments);
    let at = registered.as_ptr() as usize;
    append_answer(Head::registration(key), [(at, REGISTRATION), (0, 0)]);
}

/// Keeps an answer and the memory that the kernel wrote or read, which is open. Threads of a team may do so at the same time.
fn append_answer(head: Head, written: [(usize, usize); 2]) {
    let length = written[0].1 + written[1].1;
    let needed = ANSWER_HEAD + length.next_multiple_of(8);
    let room = |used| (used + needed <= ROOM.load(Relaxed)).then_some(used + needed);
    let full = CUT.load(Relaxed) == FULL;
    let Some(used) = (!full)
        .then(|| USED.fetch_update(Relaxed, Relaxed, room).ok())
        .flatten()
    else {
        return CUT.store(FULL, Relaxed);
    };
    let to = LOG.load(Relaxed) + used;
    // SAFETY: room of our own; what was written is readable.
    unsafe {
        (to as *mut Head).write_unaligned(Head {
            length: length as u32,
            ..head
        });
        if length > 0 {
            ((to + needed - 8) as *mut u64).write_unaligned(0);
        }
        let [first, second] = written;
        sys::copy(first.0 as _, (to + ANSWER_HEAD) as _, first.1);
        sys::copy(second.0 as _, (to + ANSWER_HEAD + first.1) as _, second.1);
    }
}

/// Makes the calling thread's readings of the time stamp counter fault, or not. New threads and processes inherit that.
pub fn watch_counter(yes: bool) {
    if COUNTED.swap(yes, Relaxed) != yes {
        trap_counter(yes);
    }
}

fn trap_counter(yes: bool) {
    // SAFETY: the handler of SIGSEGV answers readings.
    unsafe { call::trap_counter(yes) };
}

/// The captured thread took a general protection fault. Emulates a reading of the time stamp counter, and keeps the answer if
/// `program` says that the code at this address is the program's. False if it was another instruction.
pub fn answer_counter(context: &mut ucontext_t, program: impl Fn(usize) -> bool) -> bool {
    let registers = &mut context.uc_mcontext.gregs;
    let at = registers[libc::REG_RIP as usize] as usize;
    // SAFETY: the instruction that was just executed.
    let Some(length) = COUNTED
        .load(Relaxed)
        .then(|| unsafe { reads_counter(at) })
        .flatten()
    else {
        return false;
    };
    trap_counter(false);
    let (now, processor) = cere_timing::clock::processor();
    trap_counter(true);
    registers[libc::REG_RAX as usize] = (now & 0xffff_ffff) as i64;
    registers[libc::REG_RDX as usize] = (now >> 32) as i64;
    if length == 3 {
        registers[libc::REG_RCX as usize] = processor.into();
    }
    registers[libc::REG_RIP as usize] += length as i64;
    if program(at) {
        let place = &raw const processor as usize;
        note_answer(COUNTER, [length - 2, place, 0, 0, 0, 0], now as isize, at);
    }
    true
}

/// Reads all clocks.
pub fn read_clocks() -> Vec<Clock> {
    let read = |id: &i32| {
        let mut now = [0i64; 2];
        let arguments = [*id as usize, now.as_mut_ptr() as usize, 0, 0, 0, 0];
        // SAFETY: two words of our own.
        let result = unsafe { sys::call(libc::SYS_clock_gettime, arguments) };
        (result == 0).then_some(Clock {
            id: *id,
            seconds: now[0],
            nanoseconds: now[1],
        })
    };
    CLOCKS.iter().filter_map(read).collect()
}

/// Description and bytes of the answers to a capture that began with these clocks when [`answers_length`] was `from`.
pub fn read_answers(from: usize, clocks: Vec<Clock>) -> (Answers, Vec<u8>) {
    let used = answers_length().max(from);
    let cut = match CUT.load(Relaxed) {
        FULL => Some("it asks more often than a capture keeps answers of"),
        REFUSED => Some("the kernel does not let its shared page (vDSO) be closed"),
        INSIDE => Some("another thread was in the kernel's shared page (vDSO) at entry"),
        _ => None,
    };
    let functions = shared_page().map_or([0; NAMES.len()], |page| page.functions);
    let functions = NAMES.iter().zip(functions).filter(|f| f.1 != 0);
    let known = Answers {
        bytes: (used - from) as u64,
        clocks,
        functions: functions
            .map(|(name, at)| (name.to_string_lossy().into_owned(), at as u64))
            .collect(),
        cut: cut.map(str::to_owned),
        unregistered: UNREGISTERED.load(Relaxed),
        streams: Vec::new(),
        team: Vec::new(),
    };
    // SAFETY: room of our own; so much of it is written, and nobody writes while a capture ends.
    let bytes =
        unsafe { std::slice::from_raw_parts((LOG.load(Relaxed) + from) as *const u8, used - from) };
    let mut by_thread = split_by_thread(bytes);
    let first = by_thread.remove(&0).unwrap_or_default();
    let team = by_thread
        .iter()
        .map(|(thread, (count, _))| (*thread, *count));
    let known = Answers {
        team: team.collect(),
        ..known
    };
    let mut all = first.1;
    all.extend(by_thread.into_values().flat_map(|(_, bytes)| bytes));
    (known, all)
}

/// The answers of a log by thread: how many, and their bytes.
fn split_by_thread(log: &[u8]) -> BTreeMap<u32, (u64, Vec<u8>)> {
    let mut found: BTreeMap<u32, (u64, Vec<u8>)> = BTreeMap::new();
    let mut rest = log;
    while rest.len() >= ANSWER_HEAD {
        // SAFETY: the log holds heads, each followed by its bytes.
        let head = unsafe { rest.as_ptr().cast::<Head>().read_unaligned() };
        let length = ANSWER_HEAD + (head.length as usize).next_multiple_of(8);
        let (this, after) = rest.split_at(length.min(rest.len()));
        let (count, bytes) = found.entry(head.flags >> THREAD_SHIFT).or_default();
        *count += 1;
        let flags = head.flags & ((1 << THREAD_SHIFT) - 1);
        bytes.extend(Head { flags, ..head }.encode());
        bytes.extend(this.get(ANSWER_HEAD..).unwrap_or_default());
        rest = after;
    }
    found
}

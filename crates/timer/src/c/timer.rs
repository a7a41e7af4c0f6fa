//! The timer's functions.

use super::{Failure, guard};
use crate::clock::Clock;
use crate::flush::Flush;
use crate::measurement::Measurement;
use crate::operand::{Operand, State};
use crate::timer::{Invocations, Timer};
use std::ffi::{c_int, c_void};
use std::ptr::null;

type Kernel = unsafe extern "C" fn(*const *mut u8, *mut c_void);
type Fill = unsafe extern "C" fn(*mut u8, usize, *mut c_void);

/// A timer with its last measurement.
#[derive(Default)]
pub struct Handle {
    timer: Timer<'static>,
    last: Option<Measurement>,
}

/// What a timing found: `cere_result`.
#[repr(C)]
pub struct Found {
    seconds: f64,
    minimum: f64,
    lower: f64,
    median: f64,
    upper: f64,
    maximum: f64,
    low: f64,
    high: f64,
    level: f64,
    cost: f64,
    step: f64,
    overhead: f64,
    faults: u64,
    switches: u64,
    invocations: u64,
    samples: u64,
    clock: c_int,
    flush: c_int,
}

impl Found {
    fn of(m: &Measurement) -> Self {
        Self {
            seconds: m.seconds,
            minimum: m.spread.min,
            lower: m.spread.lower,
            median: m.spread.median,
            upper: m.spread.upper,
            maximum: m.spread.max,
            low: m.interval.0,
            high: m.interval.1,
            level: m.level,
            cost: m.resolution.cost,
            step: m.resolution.step,
            overhead: m.overhead,
            faults: m.usage.faults,
            switches: m.usage.switches,
            invocations: m.invocations() as u64,
            samples: m.samples.len() as u64,
            clock: CLOCKS.iter().position(|&c| c == m.clock).unwrap_or(0) as c_int,
            flush: FLUSHES.iter().position(|&f| f == m.flush).unwrap_or(0) as c_int,
        }
    }
}

const CLOCKS: [Clock; 3] = [Clock::Wall, Clock::Cpu, Clock::ProcessCpu];
const FLUSHES: [Flush; 2] = [Flush::Address, Flush::Walk];
const INVOCATIONS: [Invocations; 3] = [Invocations::Chosen, Invocations::One, Invocations::Several];

/// The value of `index` in `all`.
fn chosen<T: Copy>(all: &[T], index: c_int, what: &str) -> Result<T, Failure> {
    let found = usize::try_from(index).ok().and_then(|at| all.get(at));
    let most = all.len() - 1;
    let wrong = || Failure::Value(format!("{what} {index}: it must be 0 to {most}"));
    found.copied().ok_or_else(wrong)
}

fn state(state: c_int) -> Result<State, Failure> {
    match state {
        0 => Ok(State::Cold),
        -1 => Ok(State::Warm),
        level => u32::try_from(level).map(State::InLevel).map_err(|_| {
            Failure::Value(format!(
                "state {level}: it must be CERE_COLD, CERE_WARM or CERE_IN_LEVEL(n)"
            ))
        }),
    }
}

/// Changes a timer by a value that is checked first.
///
/// # Safety
/// `timer` is NULL or a live handle that no one else uses now.
unsafe fn set<T>(
    timer: *mut Handle,
    value: impl FnOnce() -> Result<T, Failure>,
    with: impl FnOnce(Timer<'static>, T) -> Timer<'static>,
) -> c_int {
    guard(|| {
        // SAFETY: NULL or a live handle that no one else uses now.
        let handle = unsafe { timer.as_mut() }.ok_or(Failure::Null("the timer"))?;
        let value = value()?;
        handle.timer = with(std::mem::take(&mut handle.timer), value);
        Ok(())
    })
}

/// A new timer; NULL on failure.
#[unsafe(no_mangle)]
pub extern "C" fn cere_timer_new() -> *mut Handle {
    let mut made = std::ptr::null_mut();
    guard(|| {
        made = Box::into_raw(Box::default());
        Ok(())
    });
    made
}

/// Frees a timer.
///
/// # Safety
/// `timer` is NULL or a live handle that no one else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cere_timer_free(timer: *mut Handle) {
    guard(|| {
        if !timer.is_null() {
            // SAFETY: `cere_timer_new` made it from a box.
            drop(unsafe { Box::from_raw(timer) });
        }
        Ok(())
    });
}

/// Chooses the clock.
///
/// # Safety
/// `timer` is NULL or a live handle that no one else uses now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cere_timer_set_clock(timer: *mut Handle, clock: c_int) -> c_int {
    // SAFETY: NULL or a live handle that no one else uses now.
    unsafe { set(timer, || chosen(&CLOCKS, clock, "clock"), Timer::clock) }
}

/// Chooses the number of samples.
///
/// # Safety
/// `timer` is NULL or a live handle that no one else uses now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cere_timer_set_samples(timer: *mut Handle, samples: usize) -> c_int {
    let checked = || crate::timer::check_samples(samples).map_err(Failure::from);
    // SAFETY: NULL or a live handle that no one else uses now.
    unsafe { set(timer, checked, |t, ()| t.samples(samples)) }
}

/// Chooses how often the kernel runs in a timed part.
///
/// # Safety
/// `timer` is NULL or a live handle that no one else uses now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cere_timer_set_invocations(timer: *mut Handle, how: c_int) -> c_int {
    let checked = || chosen(&INVOCATIONS, how, "invocations");
    // SAFETY: NULL or a live handle that no one else uses now.
    unsafe { set(timer, checked, Timer::invocations) }
}

/// Chooses how cold operands are flushed.
///
/// # Safety
/// `timer` is NULL or a live handle that no one else uses now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cere_timer_set_flush(timer: *mut Handle, flush: c_int) -> c_int {
    // SAFETY: NULL or a live handle that no one else uses now.
    unsafe { set(timer, || chosen(&FLUSHES, flush, "flush"), Timer::flush) }
}

/// Says whether the kernel uses a team of threads.
///
/// # Safety
/// `timer` is NULL or a live handle that no one else uses now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cere_timer_set_parallel(timer: *mut Handle, parallel: c_int) -> c_int {
    // SAFETY: NULL or a live handle that no one else uses now.
    unsafe { set(timer, || Ok(parallel != 0), Timer::parallel) }
}

/// Gives the sizes of the caches.
///
/// # Safety
/// `timer` is NULL or a live handle that no one else uses now; `bytes` is NULL or points to `levels` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cere_timer_set_caches(
    timer: *mut Handle,
    bytes: *const usize,
    levels: usize,
) -> c_int {
    let checked = || match bytes.is_null() {
        true => Err(Failure::Null("the list of sizes")),
        // SAFETY: it is not NULL, so it points to so many numbers.
        false => Ok(unsafe { std::slice::from_raw_parts(bytes, levels) }),
    };
    // SAFETY: NULL or a live handle that no one else uses now.
    unsafe { set(timer, checked, Timer::caches) }
}

/// Adds an operand with the default values.
///
/// # Safety
/// `timer` is NULL or a live handle that no one else uses now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cere_timer_operand(
    timer: *mut Handle,
    bytes: usize,
    align: usize,
    misalign: usize,
    at: c_int,
) -> c_int {
    let checked = || Ok(Operand::new(bytes, align, misalign, state(at)?)?);
    // SAFETY: NULL or a live handle that no one else uses now.
    unsafe { set(timer, checked, Timer::operand) }
}

/// Adds an operand that `fill` writes.
///
/// # Safety
/// `timer` is NULL or a live handle that no one else uses now; `fill` is NULL or a function that can be called with
/// `context` as long as the timer lives. It writes only the bytes that it is given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cere_timer_operand_filled(
    timer: *mut Handle,
    bytes: usize,
    align: usize,
    misalign: usize,
    at: c_int,
    fill: Option<Fill>,
    context: *mut c_void,
) -> c_int {
    let checked = || {
        let fill = fill.ok_or(Failure::Null("the function that fills"))?;
        let operand = Operand::new(bytes, align, misalign, state(at)?)?;
        // SAFETY: it can be called with `context` as long as the timer lives.
        Ok(operand.filled(move |to| unsafe { fill(to.as_mut_ptr(), to.len(), context) }))
    };
    // SAFETY: NULL or a live handle that no one else uses now.
    unsafe { set(timer, checked, Timer::operand) }
}

/// Times a kernel.
///
/// # Safety
/// `timer` is NULL or a live handle that no one else uses now; `kernel` is NULL or may be called with the operands and
/// `context`; `result` is NULL or has room for a result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cere_timer_time(
    timer: *mut Handle,
    kernel: Option<Kernel>,
    context: *mut c_void,
    result: *mut Found,
) -> c_int {
    guard(|| {
        // SAFETY: NULL or a live handle that no one else uses now.
        let handle = unsafe { timer.as_mut() }.ok_or(Failure::Null("the timer"))?;
        let kernel = kernel.ok_or(Failure::Null("the kernel"))?;
        if result.is_null() {
            return Err(Failure::Null("the result"));
        }
        handle.last = None;
        let measured = handle.timer.time(|operands| {
            // SAFETY: it may be called with the operands and `context`.
            unsafe { kernel(operands.pointers().as_ptr(), context) }
        })?;
        // SAFETY: it is not NULL, so it has room for a result.
        unsafe { result.write(Found::of(&measured)) };
        handle.last = Some(measured);
        Ok(())
    })
}

/// The samples of the last timing.
///
/// # Safety
/// `timer` is NULL or a live handle; `count` is NULL or has room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cere_timer_samples(timer: *const Handle, count: *mut usize) -> *const f64 {
    let mut found = null();
    guard(|| {
        // SAFETY: NULL or a live handle.
        let handle = unsafe { timer.as_ref() }.ok_or(Failure::Null("the timer"))?;
        // SAFETY: NULL or room for a number.
        let count = unsafe { count.as_mut() }.ok_or(Failure::Null("the count"))?;
        let samples = handle.last.as_ref().map_or(&[][..], |m| &m.samples);
        *count = samples.len();
        if !samples.is_empty() {
            found = samples.as_ptr();
        }
        Ok(())
    });
    found
}

/// Copies of an operand in the last timing.
///
/// # Safety
/// `timer` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cere_timer_copies(timer: *const Handle, index: usize) -> usize {
    let mut found = 0;
    guard(|| {
        // SAFETY: NULL or a live handle.
        let handle = unsafe { timer.as_ref() }.ok_or(Failure::Null("the timer"))?;
        let copies = handle.last.as_ref().and_then(|m| m.copies.get(index));
        found = copies.copied().unwrap_or(0);
        Ok(())
    });
    found
}

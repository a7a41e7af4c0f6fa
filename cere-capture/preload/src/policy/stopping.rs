//! Makes the threads outside teams stop before an invocation is captured: what it reads is then a function of its memory.
//!
//! Their system calls are held by then, so one that computes does not come to rest any more.

use super::beside::{Beside, Thread};
use crate::engine::gate;
use crate::os::inside::{self, Call, Doing};
use crate::os::local::{self, restartable_area};
use crate::os::resting::{self, Rest};
use crate::os::stacks::{Frames, Still};
use std::time::{Duration, Instant};

/// A thread that is being stopped.
struct Stopping {
    thread: Thread,
    /// Its time on a processor when its calls were held.
    began: Option<u64>,
}

/// How far that is.
enum Stop {
    /// It does not run.
    Still(Still),
    /// It has ended.
    Ended,
    /// It runs.
    Runs,
}

/// Makes the threads stand still, or finds them at rest in a call that is left alone. Their system calls are held. Also returns how
/// many computed.
pub fn stop_threads(
    threads: Vec<Thread>,
    closed: &dyn Fn(usize) -> bool,
) -> Result<(Vec<Still>, u32), Beside> {
    /// Until it is given up.
    const PATIENCE: Duration = Duration::from_secs(2);
    /// Rounds that follow one another soon: a thread that rests stands within microseconds.
    const SOON: u32 = 20;
    let begin = Instant::now();
    let began = |thread: Thread| Stopping {
        began: inside::time_on_processor(thread.id),
        thread,
    };
    let mut running: Vec<Stopping> = threads.into_iter().map(began).collect();
    let mut still: Vec<(Stopping, Still)> = Vec::new();
    let runs = |one: &&Stopping| matches!(inside::read_doing(one.thread.id), Ok(Doing::Runs));
    let computed = running.iter().filter(runs).count() as u32;
    for round in 0.. {
        let mut left = Vec::new();
        for one in running {
            match stop(&one, begin.elapsed(), closed)? {
                Stop::Still(found) => still.push((one, found)),
                Stop::Ended => {}
                Stop::Runs => left.push(one),
            }
        }
        running = left;
        if running.is_empty() {
            // One that rested may have gone on while others were stopped.
            let (at_rest, on): (Vec<_>, Vec<_>) = still.into_iter().partition(|s| s.1.rested());
            still = at_rest;
            running = on.into_iter().map(|(one, _)| one).collect();
        }
        if running.is_empty() {
            return Ok((
                still.into_iter().map(|(_, still)| still).collect(),
                computed,
            ));
        }
        if begin.elapsed() > PATIENCE {
            break;
        }
        let pause = if round < SOON { 50 } else { 1000 };
        std::thread::sleep(Duration::from_micros(pause));
    }
    Err(Beside::Unstoppable(running[0].thread.id))
}

/// Asks a thread to stand still, unless it does or rests in a call that is left alone.
fn stop(one: &Stopping, waited: Duration, closed: &dyn Fn(usize) -> bool) -> Result<Stop, Beside> {
    let thread = &one.thread;
    let still = |call: Option<Call>, stack: usize, mut reached: Vec<(usize, usize)>| {
        if closed(stack) && thread.alternate.0 >= thread.alternate.1 {
            return Err(Beside::OwnStack(thread.id));
        }
        reached.push(thread.control);
        let [below, frames, changing] = match call {
            Some(_) => [(0, 0); 3],
            None => Frames {
                pointer: stack,
                // SAFETY: a thread of the list that stands, and has not ended.
                interrupted: unsafe { local::interrupted_in(thread.pointer) },
            }
            .ranges(thread.within),
        };
        reached.push(frames);
        Ok(Stop::Still(Still {
            id: thread.id,
            stack: thread.within,
            call,
            reached,
            below,
            changing: [restartable_area(thread.pointer), changing],
        }))
    };
    if let Some(stack) = gate::stands(thread.id) {
        return still(None, stack, Vec::new());
    }
    match inside::read_doing(thread.id).map_err(Beside::Call)? {
        Doing::Ended => return Ok(Stop::Ended),
        Doing::Rests(call) if gate::is_wait(&call) => return still(None, call.stack, Vec::new()),
        Doing::Rests(call) => match resting::choose(&call, closed).map_err(Beside::Call)? {
            Rest::Interrupted => gate::ask_to_stand(thread.id, Some(call)),
            Rest::Left(reached) => return still(Some(call), call.stack, reached),
        },
        Doing::Waits => gate::ask_to_stand(thread.id, None),
        Doing::Runs if computes(one, waited) => gate::ask_to_stand(thread.id, None),
        Doing::Runs => {}
    }
    Ok(Stop::Runs)
}

/// Whether a thread waits in a handler of the library until memory is open.
pub fn waits_here(id: i32) -> bool {
    matches!(inside::read_doing(id), Ok(Doing::Rests(call)) if gate::is_wait(&call))
}

/// Whether a thread that runs is not about to come to rest in a call that it began before calls were held. The signal would
/// interrupt that, and nobody knew which it is.
fn computes(one: &Stopping, waited: Duration) -> bool {
    /// No call takes that long on a processor to return or to come to rest.
    const RUNS: u64 = 2_000_000;
    const UNKNOWN: Duration = Duration::from_millis(10);
    const LONGEST: Duration = Duration::from_secs(1);
    match (one.began, inside::time_on_processor(one.thread.id)) {
        (Some(began), Some(now)) => now.saturating_sub(began) >= RUNS || waited > LONGEST,
        _ => waited > UNKNOWN,
    }
}

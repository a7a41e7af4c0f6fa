//! Whose turn it is. One thread at a time uses the engine: the captured one, in its handlers, or one of a team. The captured
//! thread's hook, and what ends captures, keep the threads of teams out.

use crate::os::sys;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// Whether a thread has its turn.
static TAKEN: AtomicBool = AtomicBool::new(false);
/// Whether the captured thread keeps the others out.
static BARRED: AtomicBool = AtomicBool::new(false);
/// Whether the OpenMP runtime has started threads.
static EXISTS: AtomicBool = AtomicBool::new(false);

/// Attempts after which a thread that waits for its turn yields.
const SPINS: u32 = 200;

/// A thread's turn.
pub struct Turn(());

impl Drop for Turn {
    fn drop(&mut self) {
        TAKEN.store(false, SeqCst);
    }
}

/// Waits for the turn until `gives_up`. Whether the calling thread has it now.
fn wait_for(gives_up: impl Fn() -> bool) -> bool {
    let mut tries = 0;
    while TAKEN.swap(true, SeqCst) {
        if gives_up() {
            return false;
        }
        tries += 1;
        if tries % SPINS == 0 {
            // SAFETY: no arguments.
            unsafe { sys::call(libc::SYS_sched_yield, [0; 6]) };
        }
        std::hint::spin_loop();
    }
    true
}

/// Waits for the turn: for the captured thread, in its handlers.
pub fn take() -> Turn {
    wait_for(|| false);
    Turn(())
}

/// Takes the turn if nobody has it.
pub fn try_take() -> Option<Turn> {
    (!TAKEN.swap(true, SeqCst)).then(|| Turn(()))
}

/// Waits for the turn: for a thread of a team. None while teams are kept out.
pub fn take_in_team() -> Option<Turn> {
    let barred = || BARRED.load(SeqCst);
    if teams_are_barred() || !wait_for(barred) {
        return None;
    }
    let turn = Turn(());
    // Barred meanwhile: the captured thread waits for this turn.
    (!teams_are_barred()).then_some(turn)
}

/// All threads of teams are kept out until the value is dropped.
pub struct Barred {
    _turn: Turn,
}

impl Drop for Barred {
    fn drop(&mut self) {
        BARRED.store(false, SeqCst);
    }
}

/// Keeps all threads of teams out.
pub fn bar_teams() -> Barred {
    BARRED.store(true, SeqCst);
    Barred { _turn: take() }
}

/// Whether threads of teams are kept out.
pub fn teams_are_barred() -> bool {
    BARRED.load(SeqCst)
}

/// Runs `work` of the captured thread while nobody has a turn, without taking one: `work` may fault.
pub fn without_turns<T>(work: impl FnOnce() -> T) -> T {
    let barred = BARRED.swap(true, SeqCst);
    while TAKEN.load(SeqCst) {
        std::hint::spin_loop();
    }
    let result = work();
    BARRED.store(barred, SeqCst);
    result
}

/// In a forked child: its one thread has no turn.
pub fn reset_in_child() {
    TAKEN.store(false, SeqCst);
    BARRED.store(false, SeqCst);
    EXISTS.store(false, SeqCst);
}

/// Whether the OpenMP runtime has started threads.
pub fn team_exists() -> bool {
    EXISTS.load(SeqCst)
}

/// The OpenMP runtime starts a thread.
pub fn team_begins() {
    EXISTS.store(true, SeqCst);
}

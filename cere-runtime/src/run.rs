//! The order of a replay.

use crate::code;
use crate::compare::{self, Allowed};
use crate::glue::*;
use crate::library::{self, Environment, Origins};
use crate::output::Output;
use crate::pages::{Bytes, Pages};
use crate::space::{self, Refusal};
use crate::state::State;
use crate::thread::Block;
use crate::trampoline::{EXCEPTION, Switch, cere_switch, end_exception};
use crate::{check, fault, heap, mapping};
use cere_format::package::{
    MEMBER_ENTRY, MEMBER_EXIT, MEMBER_MANIFEST, MEMBER_TABLE, MEMBER_TLS_ENTRY, MEMBER_TLS_EXIT,
    Manifest,
};
use cere_format::replay::{ENV_PLAN, REPLAY_VERSION, ReplayOutcome, ReplayPlan};
use serde::de::DeserializeOwned;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

/// Times that the executable starts itself again when an address is taken.
const ATTEMPTS: u32 = 20;
const ENV_ATTEMPT: &str = "CERE_REPLAY_ATTEMPT";

fn again((start, end): (u64, u64)) -> String {
    let attempt = std::env::var(ENV_ATTEMPT).ok();
    let attempt: u32 = attempt.and_then(|a| a.parse().ok()).unwrap_or(0);
    if attempt >= ATTEMPTS {
        return format!(
            "the captured addresses {start:#x}-{end:#x} are taken in this process, {ATTEMPTS} times in a row: \
             is address space randomisation off (setarch -R, kernel.randomize_va_space)?"
        );
    }
    use std::os::unix::process::CommandExt;
    let error = std::process::Command::new("/proc/self/exe")
        .env(ENV_ATTEMPT, (attempt + 1).to_string())
        .exec();
    format!("cannot start again: {error}")
}

fn read<T: DeserializeOwned>(what: &str, path: &Path) -> Result<T, String> {
    let text =
        std::fs::read(path).map_err(|e| format!("cannot read {what} {}: {e}", path.display()))?;
    serde_json::from_slice(&text)
        .map_err(|e| format!("{what} {} is not valid: {e}", path.display()))
}

/// Stays on this processor: its caches are warm and its clock is the same.
fn pin() {
    // SAFETY: a set of processors on the stack; failure leaves the process where it is.
    unsafe {
        let cpu = libc::sched_getcpu();
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if (0..libc::CPU_SETSIZE).contains(&cpu) {
            libc::CPU_SET(cpu as usize, &mut set);
            libc::sched_setaffinity(0, size_of_val(&set), &set);
        }
    }
}

fn switch(manifest: &Manifest, invoke: u64) -> Switch {
    Switch {
        invoke,
        arguments: manifest.entry.arguments,
        stack_pointer: manifest.entry.stack_pointer,
        // Exception flags clear: only the masks and modes count.
        mxcsr: manifest.entry.mxcsr & 0xffc0,
        x87_control: u32::from(manifest.entry.x87_control),
        start: 0,
        end: 0,
    }
}

/// Does what the plan says.
pub fn run() -> Result<(), String> {
    let path = std::env::var_os(ENV_PLAN).ok_or_else(|| {
        format!("this is a replay of CERE: start it with cere replay ({ENV_PLAN} is not set)")
    })?;
    let plan: ReplayPlan = read("the plan", Path::new(&path))?;
    let member = |name: &str| plan.package.join(name);
    let manifest: Manifest = read("the manifest", &member(MEMBER_MANIFEST))?;
    let manifest: &'static Manifest = Box::leak(Box::new(manifest));
    check::check(manifest)?;
    let table = Bytes::open(&member(MEMBER_TABLE))?;
    let entry = Bytes::open(&member(MEMBER_ENTRY))?;
    let exit = Bytes::open(&member(MEMBER_EXIT))?;
    let pages = Pages::new(table.get(), entry, exit)?;
    let block = Block::new(
        Bytes::open(&member(MEMBER_TLS_ENTRY))?,
        Bytes::open(&member(MEMBER_TLS_EXIT))?,
    )?;
    match space::reserve(manifest, &pages.all) {
        Ok(()) => {}
        Err(Refusal::Taken(start, end)) => return Err(again((start, end))),
        Err(Refusal::System(message)) => return Err(message),
    }
    space::open(manifest, &pages.all)?;
    heap::place(manifest.heap);
    let libraries = library::find(manifest, &pages);
    let mut state = State::new(manifest, &pages, &libraries.words, &block);

    // SAFETY: the generator's glue defines the tables.
    let (invoke, jumps, thunks) = unsafe {
        (
            cere_glue_invoke,
            std::slice::from_raw_parts(&raw const cere_glue_jumps, cere_glue_jump_count as usize),
            std::slice::from_raw_parts(&raw const cere_glue_thunks, cere_glue_thunk_count as usize),
        )
    };
    let jumps = [jumps, &libraries.jumps].concat();
    let origins = Origins::new(manifest, &[&jumps, thunks].concat());
    code::install(manifest, &pages, jumps)?;
    fault::watch(manifest);
    let output = Output::new(manifest, &origins, &pages);
    library::start();

    pin();
    let overhead = overhead(manifest);
    let before = cere_clock::moment();
    let mut outcome = ReplayOutcome {
        version: REPLAY_VERSION,
        cycles: Vec::new(),
        tsc_hz: 0.0,
        comparison: None,
        repeatable: true,
        varied: None,
    };
    let environment = Environment::find(&origins, &pages);
    let mut first = None;
    for repetition in 0..plan.repetitions.max(1) {
        state.restore();
        mapping::reset(manifest);
        let mut switch = switch(manifest, invoke);
        let own = environment.as_ref().map(Environment::exchange);
        heap::ACTIVE.store(true, Relaxed);
        // SAFETY: the captured state is in place.
        let unwound = unsafe { cere_switch(&mut switch) } != 0;
        heap::ACTIVE.store(false, Relaxed);
        if let (Some(environment), Some(own)) = (&environment, own) {
            environment.put_back(own);
        }
        let cycles = switch.end.saturating_sub(switch.start);
        outcome.cycles.push(cycles.saturating_sub(overhead));
        if repetition == 0 {
            state.find_changed();
            if plan.compare {
                let freed = heap::freed();
                let named = compare::Named::new(manifest);
                let allowed = Allowed {
                    words: &libraries.words,
                    variables: &libraries.variables(&pages),
                    origins: &origins,
                    block: &block,
                    exception: EXCEPTION.load(Relaxed),
                    pages: &pages,
                    named: &named,
                    freed: &freed,
                };
                let mut comparison = compare::compare(manifest, &pages, &allowed);
                comparison.same_end = unwound == manifest.unwound;
                compare::output(&mut comparison, output.compare(&pages));
                outcome.comparison = Some(comparison);
            }
        }
        let left = (unwound, state.digest());
        match &first {
            None => first = Some(left),
            Some(old) if *old == left => {}
            Some(old) => {
                outcome.repeatable = false;
                let mut pairs = old.1.iter().zip(&left.1);
                let found = pairs.find(|(a, b)| a != b);
                outcome.varied = found.map(|(a, _)| compare::place(manifest, a.0));
            }
        }
        end_exception();
        state.clear_fresh();
        output.reset();
    }
    outcome.tsc_hz = cere_clock::frequency(before, cere_clock::moment())
        .filter(|_| cere_clock::moment().nanoseconds - before.nanoseconds > 20_000_000)
        .unwrap_or_else(|| cere_clock::calibrate(20));
    let text = serde_json::to_vec(&outcome).map_err(|e| format!("outcome: {e}"))?;
    std::fs::write(&plan.outcome, text)
        .map_err(|e| format!("cannot write {}: {e}", plan.outcome.display()))
}

extern "C" fn nothing() {}

/// Cycles of a switch that runs nothing, the least of many.
fn overhead(manifest: &Manifest) -> u64 {
    let mut stack = vec![0u64; 1024];
    let top = (&raw mut stack[1000]) as u64 & !63;
    let once = |_| {
        let mut switch = switch(manifest, nothing as *const () as u64);
        switch.stack_pointer = top;
        // SAFETY: a stack of our own.
        unsafe { cere_switch(&mut switch) };
        switch.end - switch.start
    };
    (0..100).map(once).min().unwrap_or(0)
}

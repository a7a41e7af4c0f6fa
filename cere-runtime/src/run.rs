//! The order of a replay.

use crate::memory::{self, Bytes, Jump, PAGE};
use crate::trampoline::{Switch, cere_switch};
use crate::{compare, heap};
use cere_format::capture::{PAGE_CODE, PAGE_WRITTEN};
use cere_format::package::{
    LibrarySymbolKind, MEMBER_ENTRY, MEMBER_EXIT, MEMBER_MANIFEST, MEMBER_TABLE, MEMBER_TLS_ENTRY,
    MEMBER_TLS_EXIT, Manifest,
};
use cere_format::replay::{ENV_PLAN, REPLAY_VERSION, ReplayOutcome, ReplayPlan};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// Times that the executable starts itself again when an address is taken.
const ATTEMPTS: u32 = 20;
const ENV_ATTEMPT: &str = "CERE_REPLAY_ATTEMPT";

#[cfg(not(test))]
unsafe extern "C" {
    static cere_glue_invoke: u64;
    static cere_glue_jumps: Jump;
    static cere_glue_jump_count: u64;
    static cere_glue_tls_size: u64;
    fn cere_glue_tls() -> *mut u8;
}

#[cfg(test)]
mod glue {
    #![allow(non_upper_case_globals)]
    use super::Jump;
    pub static cere_glue_invoke: u64 = 0;
    pub static cere_glue_jumps: Jump = Jump { old: 0, new: 0 };
    pub static cere_glue_jump_count: u64 = 0;
    pub static cere_glue_tls_size: u64 = 0;
    pub unsafe fn cere_glue_tls() -> *mut u8 {
        std::ptr::null_mut()
    }
}
#[cfg(test)]
use glue::*;

fn again(address: u64) -> String {
    let attempt: u32 = std::env::var(ENV_ATTEMPT)
        .ok()
        .and_then(|a| a.parse().ok())
        .unwrap_or(0);
    if attempt >= ATTEMPTS {
        return format!(
            "the captured address {address:#x} is taken in this process, {ATTEMPTS} times in a row: \
             is address space randomisation off?"
        );
    }
    use std::os::unix::process::CommandExt;
    let error = std::process::Command::new("/proc/self/exe")
        .env(ENV_ATTEMPT, (attempt + 1).to_string())
        .exec();
    format!("cannot start again: {error}")
}

fn tsc() -> u64 {
    // SAFETY: always there on x86-64.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Does what the plan says.
pub fn run() -> Result<(), String> {
    let path = std::env::var_os(ENV_PLAN).ok_or_else(|| {
        format!("this is a replay of CERE: start it with cere replay ({ENV_PLAN} is not set)")
    })?;
    let text = std::fs::read(&path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    let plan: ReplayPlan = serde_json::from_slice(&text).map_err(|e| format!("plan: {e}"))?;
    let member = |name: &str| plan.package.join(name);
    let text = std::fs::read(member(MEMBER_MANIFEST)).map_err(|e| format!("manifest: {e}"))?;
    let manifest: Manifest = serde_json::from_slice(&text).map_err(|e| format!("manifest: {e}"))?;
    if manifest.page_size != PAGE {
        return Err(format!(
            "the codelet has pages of {} bytes, this machine of {PAGE}",
            manifest.page_size
        ));
    }
    let table = Bytes::open(&member(MEMBER_TABLE))?;
    let pages = memory::table(table.get());
    if let Err(clash) = memory::reserve(&manifest, &pages) {
        return Err(again(clash.unwrap_or(0)));
    }
    let entry = Bytes::open(&member(MEMBER_ENTRY))?;
    let exit = Bytes::open(&member(MEMBER_EXIT))?;
    let tls_entry = Bytes::open(&member(MEMBER_TLS_ENTRY))?;
    let tls_exit = Bytes::open(&member(MEMBER_TLS_EXIT))?;
    memory::open(&manifest, &pages)?;
    for page in &pages {
        memory::restore(page, entry.get());
    }

    // SAFETY: the generator's glue defines the table.
    let mut jumps: Vec<Jump> = unsafe {
        std::slice::from_raw_parts(&raw const cere_glue_jumps, cere_glue_jump_count as usize)
    }
    .to_vec();
    let mut rewrites: Vec<(u64, u64)> = Vec::new();
    for symbol in &manifest.library_symbols {
        let Some(new) = memory::library_symbol(&symbol.name, symbol.symbol_version.as_deref())
        else {
            continue;
        };
        match symbol.kind {
            LibrarySymbolKind::Function => jumps.push(Jump {
                old: symbol.address,
                new,
            }),
            LibrarySymbolKind::Variable => {
                rewrites.extend(symbol.words.iter().map(|w| (*w, new)));
            }
        }
    }
    rewrites.sort_unstable();
    let rewritten: Vec<u64> = rewrites.iter().map(|r| r.0).collect();
    memory::code(&pages, &jumps)?;
    memory::watch();
    heap::START.store(manifest.heap.0, Relaxed);
    heap::END.store(manifest.heap.1, Relaxed);

    // SAFETY: the generator's glue.
    let (invoke, tls, tls_size) = unsafe {
        (
            cere_glue_invoke,
            cere_glue_tls(),
            cere_glue_tls_size as usize,
        )
    };
    let tls_size = tls_size.min(tls_entry.get().len());
    let written: Vec<_> = pages
        .iter()
        .filter(|p| p.record.flags & PAGE_WRITTEN != 0 && p.record.flags & PAGE_CODE == 0)
        .copied()
        .collect();

    let overhead = overhead(&manifest);
    let (clock, stamp) = (Instant::now(), tsc());
    let mut cycles = Vec::new();
    let mut comparison = None;
    let mut first: Option<(i32, u64)> = None;
    let mut repeatable = true;
    for repetition in 0..plan.repetitions.max(1) {
        if repetition > 0 {
            for page in &written {
                memory::restore(page, entry.get());
            }
        }
        for &(at, value) in &rewrites {
            if memory::reserved(at)
                && pages
                    .binary_search_by_key(&(at & !(PAGE - 1)), |p| p.record.address)
                    .is_ok()
            {
                // SAFETY: the page is open.
                unsafe { (at as *mut u64).write_unaligned(value) };
            }
        }
        // SAFETY: the block is at least this long.
        unsafe { std::ptr::copy_nonoverlapping(tls_entry.get().as_ptr(), tls, tls_size) };
        let mut switch = Switch {
            invoke,
            arguments: manifest.entry.arguments,
            stack_pointer: manifest.entry.stack_pointer,
            mxcsr: manifest.entry.mxcsr & !0x3f,
            x87_control: u32::from(manifest.entry.x87_control),
            start: 0,
            end: 0,
        };
        heap::ACTIVE.store(true, Relaxed);
        // SAFETY: the captured state is in place.
        let unwound = unsafe { cere_switch(&mut switch) };
        heap::ACTIVE.store(false, Relaxed);
        cycles.push((switch.end - switch.start).saturating_sub(overhead));
        let state = (unwound, digest(&manifest, &written));
        match first {
            None => first = Some(state),
            Some(old) => repeatable &= old == state,
        }
        if repetition == 0 && plan.compare {
            let mut c = compare::compare(&manifest, &pages, entry.get(), exit.get(), &rewritten);
            // SAFETY: the block is at least this long.
            let found = unsafe { std::slice::from_raw_parts(tls, tls_size) };
            compare::compare_tls(&mut c, &manifest, tls_exit.get(), found);
            c.same_end = (unwound != 0) == manifest.unwound;
            comparison = Some(c);
        }
    }
    let seconds = clock.elapsed().as_secs_f64();
    let tsc_hz = if seconds < 0.02 {
        std::thread::sleep(std::time::Duration::from_millis(20));
        (tsc() - stamp) as f64 / clock.elapsed().as_secs_f64()
    } else {
        (tsc() - stamp) as f64 / seconds
    };
    let outcome = ReplayOutcome {
        version: REPLAY_VERSION,
        cycles,
        tsc_hz,
        comparison,
        repeatable,
    };
    let text = serde_json::to_vec(&outcome).map_err(|e| format!("outcome: {e}"))?;
    std::fs::write(&plan.outcome, text)
        .map_err(|e| format!("cannot write {}: {e}", plan.outcome.display()))
}

extern "C" fn nothing() {}

/// Cycles of a switch that runs nothing, the least of many.
fn overhead(manifest: &Manifest) -> u64 {
    let mut stack = vec![0u64; 1024];
    let top = (&raw mut stack[1000]) as u64 & !63;
    (0..100)
        .map(|_| {
            let mut switch = Switch {
                invoke: nothing as *const () as u64,
                arguments: 0,
                stack_pointer: top,
                mxcsr: manifest.entry.mxcsr & !0x3f,
                x87_control: u32::from(manifest.entry.x87_control),
                start: 0,
                end: 0,
            };
            // SAFETY: a stack of our own.
            unsafe { cere_switch(&mut switch) };
            switch.end - switch.start
        })
        .min()
        .unwrap_or(0)
}

/// A hash of the live written memory.
fn digest(manifest: &Manifest, written: &[memory::Page]) -> u64 {
    use cere_format::capture::{PAGE_FOREIGN, PAGE_STACK};
    let mut hash = 0u64;
    for page in written {
        let flags = page.record.flags;
        if flags & PAGE_FOREIGN != 0 {
            continue;
        }
        for i in 0..PAGE / 8 {
            let at = page.record.address + 8 * i;
            if flags & PAGE_STACK != 0 && at < manifest.entry.stack_pointer {
                continue;
            }
            // SAFETY: the page is open.
            let word = unsafe { *(at as *const u64) };
            hash = (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }
    hash
}

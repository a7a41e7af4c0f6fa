//! What of a run is kept: the trace of each region, and the passages from region to region.

use super::Tables;
use cere_format::profile::is_sampled;
use cere_format::profile_raw::*;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{Ordering, compiler_fence};

/// Invocations to be kept of every region, rising. Set once, before the first probe.
static WANTED: OnceLock<Vec<u64>> = OnceLock::new();

/// Reads which invocations the run is asked to keep.
pub fn ask(directory: &Path) -> Result<(), String> {
    let _ = WANTED.set(wanted(directory)?);
    Ok(())
}

fn wanted(directory: &Path) -> Result<Vec<u64>, String> {
    let path = directory.join(TRACE_WANTED);
    match std::fs::read(&path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(format!("cannot read {}: {e}", path.display())),
        Ok(text) => serde_json::from_slice(&text)
            .map_err(|e| format!("{} is no list of invocations: {e}", path.display())),
    }
}

/// Puts an invocation into the trace, if it is one to keep and there is room.
pub unsafe fn keep(trace: *mut RawTrace, invocation: u64, cycles: u64, start: u64) {
    // SAFETY: the caller's tables.
    unsafe {
        if !keeps(trace, invocation) {
            return;
        }
        if (*trace).sampled as usize == TRACE_SAMPLED {
            (*trace).stride = ((*trace).stride * 2).min(1 << 62);
            let mut kept = 0;
            for i in 0..TRACE_SAMPLED {
                let later = (*trace).later[i];
                if keeps(trace, later.invocation) {
                    (*trace).later[kept] = later;
                    kept += 1;
                }
            }
            (*trace).sampled = kept as u64;
        }
        let free = (*trace).sampled as usize;
        if free < TRACE_SAMPLED && keeps(trace, invocation) {
            (*trace).later[free] = RawLater {
                invocation,
                cycles,
                start,
            };
            compiler_fence(Ordering::SeqCst);
            (*trace).sampled += 1;
        }
    }
}

unsafe fn keeps(trace: *const RawTrace, invocation: u64) -> bool {
    // SAFETY: the caller's tables.
    let stride = unsafe { (*trace).stride };
    let asked = || WANTED.get()?.binary_search(&invocation).ok();
    is_sampled(invocation, stride) || asked().is_some()
}

/// Keeps that `entry` began at `now`.
#[cold]
pub unsafe fn pass(tables: &Tables, entry: &RawActive, now: u64) {
    // SAFETY: the caller's tables.
    unsafe {
        let header = tables.header();
        if (*header).passages as usize == RAW_PASSAGES {
            thin(tables);
        }
        *tables.passage((*header).passages as usize) = RawPassage {
            region: entry.region,
            reserved: 0,
            invocation: entry.invocation,
            start: now,
        };
        compiler_fence(Ordering::SeqCst);
        (*header).passages += 1;
        (*header).next_passage = now.saturating_add((*header).spacing);
    }
}

/// Makes room for more passages, at least half of the table.
unsafe fn thin(tables: &Tables) {
    // SAFETY: the caller's tables.
    unsafe {
        let header = tables.header();
        while (*header).passages as usize > RAW_PASSAGES / 2 {
            (*header).spacing = (*header).spacing.max(1).saturating_mul(2);
            let (mut kept, mut next) = (0, 0);
            for i in 0..(*header).passages as usize {
                let passage = *tables.passage(i);
                if passage.start >= next {
                    *tables.passage(kept) = passage;
                    kept += 1;
                    next = passage.start.saturating_add((*header).spacing);
                }
            }
            (*header).passages = kept as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables of their own, never unmapped.
    fn tables() -> Tables {
        // SAFETY: a fresh anonymous mapping, which takes memory where it is written only.
        let base = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            let rights = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), RAW_SIZE, rights, flags, -1, 0)
        };
        assert_ne!(base, libc::MAP_FAILED);
        Tables { base: base.cast() }
    }

    fn passages(tables: &Tables) -> Vec<RawPassage> {
        // SAFETY: the test's own tables.
        let count = unsafe { (*tables.header()).passages };
        // SAFETY: as above.
        let passage = |i| unsafe { *tables.passage(i as usize) };
        (0..count).map(passage).collect()
    }

    /// A million entries, `apart` cycles from each other.
    fn passed(apart: u64) -> (Vec<RawPassage>, u64) {
        let tables = tables();
        // SAFETY: the test's own tables.
        unsafe {
            (*tables.header()).spacing = 100;
            for invocation in 1..=1_000_000 {
                let entry = RawActive {
                    region: (invocation % 7) as u32,
                    node: 0,
                    stack: 0,
                    start: 0,
                    called: 0,
                    pairs: 0,
                    invocation,
                };
                let now = invocation * apart;
                if now >= (*tables.header()).next_passage {
                    pass(&tables, &entry, now);
                }
            }
            (passages(&tables), (*tables.header()).spacing)
        }
    }

    #[test]
    fn passages_are_thinned_evenly() {
        for (apart, fit) in [(1, true), (10, false), (1000, false)] {
            let (kept, spacing) = passed(apart);
            assert_eq!(spacing == 100, fit, "{apart}");
            assert!(kept.len() <= RAW_PASSAGES);
            if !fit {
                assert!(kept.len() > RAW_PASSAGES / 4, "{}", kept.len());
            }
            for passage in &kept {
                assert_eq!(passage.start, passage.invocation * apart);
                assert_eq!(u64::from(passage.region), passage.invocation % 7);
            }
            // No two too close; no gap much wider than the spacing.
            for pair in kept.windows(2) {
                let gap = pair[1].start - pair[0].start;
                assert!(gap >= spacing && gap < 2 * spacing + 2 * apart, "{gap}");
            }
            assert!(kept[kept.len() - 1].start + spacing > 1_000_000 * apart);
        }
    }

    #[test]
    fn the_trace_keeps_what_the_stride_chooses() {
        let tables = tables();
        let last = 10_000_000;
        // SAFETY: the test's own tables.
        let (later, stride) = unsafe {
            let trace = tables.trace(3);
            (*trace).stride = 1;
            for invocation in 4097..=last {
                keep(trace, invocation, 2 * invocation, 3 * invocation);
            }
            let later = |i| (*trace).later[i as usize];
            let all: Vec<RawLater> = (0..(*trace).sampled).map(later).collect();
            (all, (*trace).stride)
        };
        let expected: Vec<u64> = (4097..=last).filter(|i| is_sampled(*i, stride)).collect();
        let kept: Vec<u64> = later.iter().map(|l| l.invocation).collect();
        assert_eq!(kept, expected);
        assert!(kept.len() > TRACE_SAMPLED / 3 && kept.len() <= TRACE_SAMPLED);
        let whole = |l: &RawLater| l.cycles == 2 * l.invocation && l.start == 3 * l.invocation;
        assert!(later.iter().all(whole));
    }
}

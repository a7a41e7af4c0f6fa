//! The parts of a run that are kept: the trace of each region, and the passages between regions.

use super::room;
use super::tables::Tables;
use crate::os::files::{self, FileError};
use cere_format::profile::is_sampled;
use cere_format::profile_raw::*;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence};

/// Invocations to be kept of every region, rising. Set once, before the first probe.
static WANTED: OnceLock<Vec<u64>> = OnceLock::new();

/// Reads which invocations the run is asked to keep.
pub fn set_wanted(directory: &Path) -> Result<(), FileError> {
    let path = directory.join(TRACE_WANTED);
    let wanted = match files::read(&path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(e),
        Ok(text) => serde_json::from_slice(&text).map_err(std::io::Error::from),
    };
    let _ = WANTED.set(wanted.map_err(files::failed("read the list of invocations", &path))?);
    Ok(())
}

/// Puts an invocation of the region at `slot` into its trace, if it is one to keep and there is room.
pub unsafe fn keep_time(tables: &Tables, slot: usize, invocation: u64, cycles: u64, start: u64) {
    // SAFETY: the caller's tables; a trace with room for later invocations has it for all that comes before them.
    unsafe {
        let trace = tables.trace(slot);
        let begun = (*tables.first().times(slot)).first_room > 0;
        if begun && !is_kept(trace, invocation) {
            return;
        }
        let room = match begun {
            true => room::later(tables, slot, (*trace).sampled as usize),
            false => 0,
        };
        if room == 0 {
            (*tables.header()).times_lost += 1;
            return;
        }
        let before = (*trace).sampled;
        if (*trace).sampled as usize == room {
            (*trace).stride = ((*trace).stride * 2).min(1 << 62);
            let mut kept = 0;
            for i in 0..room {
                let later = (*trace).later[i];
                if is_kept(trace, later.invocation) {
                    (*trace).later[kept] = later;
                    kept += 1;
                }
            }
            (*trace).sampled = kept as u64;
        }
        let free = (*trace).sampled as usize;
        if free < room && is_kept(trace, invocation) {
            (*trace).later[free] = RawLater {
                invocation,
                cycles,
                start,
            };
            compiler_fence(Ordering::SeqCst);
            (*trace).sampled += 1;
        }
        if room < TRACE_SAMPLED {
            (*tables.header()).times_lost += before + 1 - (*trace).sampled;
        }
    }
}

unsafe fn is_kept(trace: *const RawTrace, invocation: u64) -> bool {
    // SAFETY: the caller's tables.
    let stride = unsafe { (*trace).stride };
    let asked = || WANTED.get()?.binary_search(&invocation).ok();
    is_sampled(invocation, stride) || asked().is_some()
}

/// Puts the time of an invocation in a thread other than the first into the region's sample (reservoir sampling, Vitter 1985,
/// algorithm R). Any number of threads do so at a time.
pub unsafe fn sample(tables: &Tables, slot: usize, cycles: u64) {
    // SAFETY: the caller's tables; the sample has room. Threads change its words at once.
    unsafe {
        let sample = tables.sample(slot);
        let before = AtomicU64::from_ptr(&raw mut (*sample).count).fetch_add(1, Ordering::Relaxed);
        // Any function of the number that looks random: SplitMix64.
        let mut random = before.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        random = (random ^ random >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        random = (random ^ random >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        random ^= random >> 31;
        let place = match before {
            early if early < SAMPLE as u64 => early,
            late => ((u128::from(random) * u128::from(late + 1)) >> 64) as u64,
        };
        if place < SAMPLE as u64 {
            let word = &raw mut (*sample).cycles[place as usize];
            AtomicU32::from_ptr(word).store((cycles as f32).to_bits(), Ordering::Relaxed);
        }
    }
}

/// Keeps that `entry` began at `now`, if the last passage is long ago; returns when the next one is due.
pub unsafe fn passage(tables: &Tables, entry: &RawActive, now: u64) -> u64 {
    // SAFETY: the caller's tables.
    unsafe {
        let next = &raw mut (*tables.header()).next_passage;
        if now >= *next {
            keep_passage(tables, entry, now);
        }
        *next
    }
}

unsafe fn keep_passage(tables: &Tables, entry: &RawActive, now: u64) {
    // SAFETY: the caller's tables.
    unsafe {
        let header = tables.header();
        if !room::has_room(tables, room::PASSAGES, (*header).passages as usize) {
            thin_passages(tables);
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

/// Makes room for more passages, at least half of what the table has.
unsafe fn thin_passages(tables: &Tables) {
    // SAFETY: the caller's tables.
    unsafe {
        let header = tables.header();
        let room = (*header).passages_room;
        while (*header).passages > room / 2 {
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
        let tables = Tables { base: base.cast() };
        // SAFETY: the test's own mapping, whose header is reserved nowhere else.
        assert!(unsafe { room::reserve_header(&tables) });
        tables
    }

    fn passages(tables: &Tables) -> Vec<RawPassage> {
        // SAFETY: the test's own tables.
        let count = unsafe { (*tables.header()).passages };
        // SAFETY: the test's own tables; passages below the count are written.
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
                    waited: 0,
                    invocation,
                };
                let now = invocation * apart;
                if now >= (*tables.header()).next_passage {
                    keep_passage(&tables, &entry, now);
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
            assert!(room::holds_first(&tables, 3, 0));
            (*trace).stride = 1;
            for invocation in 4097..=last {
                keep_time(&tables, 3, invocation, 2 * invocation, 3 * invocation);
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

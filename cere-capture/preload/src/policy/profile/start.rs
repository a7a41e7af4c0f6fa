//! Begins a profile. Ordinary code.

use super::booking::cere_profile_stub;
use super::tables::Tables;
use super::{active, kept, others, processor, room};
use crate::os::files::{self, File};
use crate::os::{allowance, arena};
use crate::policy::plan::StartError;
use crate::policy::register::process_number;
use cere_format::abi::{EVENT_ENTER, EVENT_LEAVE, RegionDescriptor};
use cere_format::profile_raw::*;
use std::path::Path;
use std::ptr::null_mut;

/// Maps a fresh profile in `directory` and measures the probe.
pub fn begin_profile(directory: &Path) -> Result<(), StartError> {
    kept::set_wanted(directory)?;
    let pid = std::process::id();
    // The number is this process's alone, also beside those of other hosts.
    let number = process_number().unwrap_or_default();
    let path = directory.join(format!("{RAW_PREFIX}{pid}.{number}"));
    let file = File::create_new(&path).map_err(files::failed("create", &path))?;
    file.set_length(RAW_SIZE)
        .map_err(files::failed("size the raw profile", &path))?;
    allowance::take(RAW_SIZE, false);
    let base = file
        .map(arena::WANTED + 2 * arena::SIZE, RAW_SIZE)
        .map_err(files::failed("map the raw profile", &path))?;
    let tables = Tables {
        base: base as *mut u8,
    };
    // SAFETY: the mapping is fresh and ours.
    if !unsafe { room::reserve_header(&tables) } {
        return Err(StartError::NoRoom(directory.to_owned()));
    }
    // SAFETY: the mapping is fresh and ours.
    unsafe {
        let header = tables.header();
        let first = tables.first().state();
        (*header).pid = pid;
        (*header).nodes = 1;
        (*header).threads = 1;
        (*first).id = pid;
        (*first).users = 1;
        (*first).state = THREAD_RUNS;
        (*header).version = RAW_VERSION;
        (*tables.node(0)).region = u32::MAX;
        (*header).tsc_hz = cere_timing::clock::calibrate(5);
        tables.use_from_now();
        (*first).next_look = u64::MAX;
        (*first).next_reading = u64::MAX;
        let [inside, outside, within] = measure_probe(&tables);
        (*first).next_look = 0;
        (*header).spacing = ((*header).tsc_hz * PASSAGE_NANOSECONDS as f64 / 1e9) as u64;
        active::set_cost(inside, outside, within);
        (*header).probe_inside = inside as f64;
        (*header).probe_outside = outside as f64;
        others::take_key();
        processor::begin(&tables);
        let now = cere_timing::clock::moment();
        (*header).start_cycles = now.cycles;
        (*header).start_nanoseconds = now.nanoseconds;
        (*header).magic = RAW_MAGIC;
    }
    Ok(())
}

/// Cycles of each of many pairs of probes, as the program calls them, around nothing. In a frame of its own: the region may be a
/// function that is active.
#[inline(never)]
unsafe fn run_probes(region: &mut RegionDescriptor) -> u64 {
    let mut least = u64::MAX;
    for _ in 0..20 {
        let from = cere_timing::clock::start();
        for _ in 0..100 {
            // SAFETY: the hook as the program calls it, on a region of the caller's.
            unsafe {
                cere_profile_stub(region, EVENT_ENTER, null_mut());
                cere_profile_stub(region, EVENT_LEAVE, null_mut());
            }
        }
        least = least.min(cere_timing::clock::stop().saturating_sub(from) / 100);
    }
    least
}

/// Runs the probe around nothing and wipes its traces. Cycles inside the measured time, outside of it, and of one within a call of
/// its function.
unsafe fn measure_probe(tables: &Tables) -> [u64; 3] {
    use cere_format::abi::{KIND_FUNCTION, REGION_MAGIC, UNIT_MAGIC, UnitMarker};
    let unit = UnitMarker {
        magic: UNIT_MAGIC,
        id: [b'0'; 32],
        reserved: 0,
    };
    let mut region = RegionDescriptor {
        magic: REGION_MAGIC,
        hook: None,
        unit: &unit,
        index: 0,
        arguments_size: 0,
        invoke: std::ptr::null(),
        outlined: std::ptr::null(),
        scratch: 0,
        kind: cere_format::abi::KIND_LOOP,
        reserved: 0,
    };
    let header = tables.header();
    let first = tables.first();
    // SAFETY: the hook as the program calls it, on a region of our own; then the tables are cleared.
    unsafe {
        let least = run_probes(&mut region);
        let inside = (*first.times(0)).min;
        region.kind = KIND_FUNCTION;
        cere_profile_stub(&mut region, EVENT_ENTER, null_mut());
        let within = run_probes(&mut region);
        cere_profile_stub(&mut region, EVENT_LEAVE, null_mut());
        // The first region of the program gets its trace.
        let room = (*first.times(0)).first_room as usize;
        if room > 0 {
            let trace = tables.trace(0);
            (&raw mut (*trace).first).cast::<u64>().write_bytes(0, room);
            (&raw mut (*trace).first_starts)
                .cast::<u64>()
                .write_bytes(0, room);
        }
        std::ptr::write_bytes(tables.region(0), 0, 1);
        std::ptr::write_bytes(first.times(0), 0, 1);
        std::ptr::write_bytes(tables.node(1), 0, 1);
        std::ptr::write_bytes(first.active(0), 0, 1);
        (*tables.node(0)).child = 0;
        (*header).nodes = 1;
        (*header).regions = 0;
        (*first.state()).pairs = 0;
        (*first.state()).depth = 0;
        (*header).abandoned = 0;
        (*header).interrupted = 0;
        (*header).times_lost = 0;
        [inside, least.saturating_sub(inside), within]
    }
}

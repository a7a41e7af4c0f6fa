//! Time in calls of MPI: it is taken out of the region that makes them.

use super::tables::{self, Own};
use super::{others, processor};
use cere_format::abi::EVENT_LEAVE;
use std::sync::atomic::{Ordering, compiler_fence};

/// The calling thread is about to call MPI, with this stack pointer.
pub fn begins(stack: u64) {
    let Some(tables) = tables::current() else {
        return;
    };
    // SAFETY: the mapping is there while there are tables; each thread books in what is its own.
    unsafe {
        match tables::is_first() {
            true => begin(&tables.first(), stack),
            false => others::own(&tables, EVENT_LEAVE)
                .into_iter()
                .for_each(|own| begin(&own, stack)),
        }
    }
}

/// The call with this stack pointer has returned.
pub fn ends(stack: u64) {
    let Some(tables) = tables::current() else {
        return;
    };
    // SAFETY: as in `begins`.
    unsafe {
        match tables::is_first() {
            true => end(&tables.first(), stack),
            false => others::own(&tables, EVENT_LEAVE)
                .into_iter()
                .for_each(|own| end(&own, stack)),
        }
    }
}

unsafe fn begin<const FIRST: bool>(own: &Own<FIRST>, stack: u64) {
    // SAFETY: the tables are the calling thread's.
    unsafe {
        let state = own.state();
        // A call within another counts as part of it; one that was left by an exception lies deeper.
        let within = (*state).mpi_stack > stack;
        if within || (*state).busy != 0 {
            return;
        }
        let depth = (*state).depth as usize;
        let mut now = cere_timing::clock::start();
        if now >= (*state).next_reading {
            processor::read(own, now, depth, true);
            now = cere_timing::clock::start();
        }
        (*state).mpi_start = now;
        (*state).mpi_called = match depth.checked_sub(1) {
            Some(top) => (*own.active(top)).called,
            None => 0,
        };
        compiler_fence(Ordering::SeqCst);
        (*state).mpi_stack = stack;
    }
}

unsafe fn end<const FIRST: bool>(own: &Own<FIRST>, stack: u64) {
    // SAFETY: the tables are the calling thread's.
    unsafe {
        let state = own.state();
        if (*state).mpi_stack != stack || (*state).busy != 0 {
            return;
        }
        (*state).mpi_stack = 0;
        compiler_fence(Ordering::SeqCst);
        let now = cere_timing::clock::stop();
        if now >= (*state).next_reading {
            // What was waited for there is nobody's work.
            processor::read(own, now, 0, true);
        }
        let mut cycles = now.saturating_sub((*state).mpi_start);
        if let Some(top) = ((*state).depth as usize).checked_sub(1) {
            let entry = own.active(top);
            // Regions that MPI has called are booked already.
            cycles = cycles.saturating_sub((*entry).called.saturating_sub((*state).mpi_called));
            (*entry).called += cycles;
            // Nor is it a time in vivo that a replay has: there the calls are answered.
            (*entry).waited += cycles;
            (*own.times((*entry).region as usize)).mpi += cycles;
        }
        (*state).mpi += cycles;
    }
}

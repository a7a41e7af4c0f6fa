//! From the plan of a run to the state that captures begin with. Ordinary code.

use super::state::{MISSED, Past, Planned, Region, Start, State};
use crate::engine::memory::System;
use crate::engine::pages::Pages;
use crate::engine::pool::Pool;
use crate::engine::spans::Spans;
use crate::engine::state::Engine;
use crate::engine::tracer::Tracer;
use crate::engine::{clock, heap, malloc};
use crate::os::{arena, images, mappings, thread};
use cere_format::capture::{TracePlan, Wanted};
use std::path::PathBuf;

/// Reserves all memory that captures need, and plans them.
pub fn prepare_state(
    directory: PathBuf,
    wanted: &[Wanted],
    plan: Option<TracePlan>,
) -> Result<State, String> {
    const REFUSED: &str = "the system refuses the address space that captures need (is `ulimit -v` set?); \
                           the program runs uncaptured";
    let pool = Pool::reserve().ok_or(REFUSED)?;
    if !heap::reserve_heap() {
        return Err(REFUSED.into());
    }
    malloc::look_up_next();
    // SAFETY: the pool's room for spans.
    let spans = unsafe { Spans::new(pool.spans()) };
    let here = prepare_state as *const () as usize;
    let mut own: Vec<(usize, usize)> = images::list_loaded()
        .iter()
        .map(|i| i.range)
        .filter(|r| r.0 <= here && here < r.1)
        .collect();
    own.extend([arena::arena_range(), pool.range(), clock::prepare_answers()]);
    let (mut tracer, mut windows) = (Tracer::none(), Vec::new());
    let mut regions: Vec<Region> = wanted
        .iter()
        .map(|w| Region {
            invocations: w.invocations.clone(),
            listed: true,
            ..Region::new(w.key.clone())
        })
        .collect();
    if let Some(plan) = plan {
        let (reserved, range) = Tracer::reserve(plan).ok_or(REFUSED)?;
        own.push(range);
        tracer = reserved;
        windows = plan_windows(wanted, &mut regions);
    }
    regions.iter_mut().for_each(Region::look_ahead);
    Ok(State {
        engine: Engine::new(Pages::new(System, pool, spans), tracer, own),
        wanted: regions,
        directory,
        thread: thread::pointer(),
        mapping_limit: mappings::mapping_limit(),
        known: Vec::new(),
        chosen: Vec::new(),
        c_library: cere_inside::clibrary::Library::find(),
        interposed: Vec::new(),
        past: Past::default(),
        windows,
        all: Vec::new(),
        listens: false,
        missed: Vec::with_capacity(MISSED),
    })
}

/// The windows of a plan. Adds their starts to the regions, and regions that serve as starts only.
fn plan_windows(wanted: &[Wanted], regions: &mut Vec<Region>) -> Vec<Planned> {
    let mut windows = Vec::new();
    for (index, target) in wanted.iter().enumerate() {
        for invocation in &target.invocations {
            let window = windows.len();
            let mut starts = target.starts.iter().filter(|s| s.invocation == *invocation);
            if starts.clone().next().is_none() {
                continue;
            }
            let at_start = starts.clone().find(|s| s.event.is_none());
            windows.push(Planned {
                wanted: index,
                invocation: *invocation,
                at_start: at_start.map(|s| s.name.clone()),
                past: false,
            });
            while let Some((name, (key, count))) =
                starts.find_map(|s| Some((&s.name, s.event.as_ref()?)))
            {
                let place = regions.iter().position(|r| r.key == *key);
                let place = place.unwrap_or_else(|| {
                    regions.push(Region::new(key.clone()));
                    regions.len() - 1
                });
                regions[place].starts.push(Start {
                    count: *count,
                    window,
                    name: name.clone(),
                });
            }
        }
    }
    for region in regions {
        region.starts.sort_by_key(|s| s.count);
    }
    windows
}

//! The plan of a run, and the state that captures begin with by it. Ordinary code.

use super::state::{MISSED, Past, Planned, Region, Start, State};
use super::targets;
use crate::engine::memory::System;
use crate::engine::pages::Pages;
use crate::engine::pool::Pool;
use crate::engine::spans::Spans;
use crate::engine::state::Engine;
use crate::engine::tracer::Tracer;
use crate::engine::{clock, heap, malloc};
use crate::os::files::{self, FileError};
use crate::os::{arena, images, mappings};
use cere_format::capture::{CAPTURE_VERSION, RunPlan, TracePlan, Wanted};
use std::fmt::{self, Display, Formatter};
use std::io;
use std::path::{Path, PathBuf};

/// Why the process is neither profiled nor captured.
#[derive(Debug)]
pub enum StartError {
    /// A file.
    File(FileError),
    /// The plan in this file has another version than this library.
    Version(PathBuf, u32),
    /// The system refuses the address space that captures need.
    NoAddressSpace,
    /// The disk has no room for a profile in this directory.
    NoRoom(PathBuf),
    /// The library has failed before.
    Spoilt,
}

impl Display for StartError {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            StartError::File(e) => e.fmt(f),
            StartError::Version(path, version) => write!(
                f,
                "{} has version {version}, this library {CAPTURE_VERSION}: rebuild CERE",
                path.display()
            ),
            StartError::NoAddressSpace => f.write_str(
                "the system refuses the address space that captures need (is `ulimit -v` set?); \
                 the program runs uncaptured",
            ),
            StartError::NoRoom(directory) => write!(
                f,
                "the disk has no room for a profile in {}: make room, or name another --store",
                directory.display()
            ),
            StartError::Spoilt => f.write_str("the preload library has failed before"),
        }
    }
}

impl From<FileError> for StartError {
    fn from(e: FileError) -> StartError {
        StartError::File(e)
    }
}

/// Reads the plan of the run.
pub fn read_plan(path: &Path) -> Result<RunPlan, StartError> {
    let text = std::fs::read(path);
    let plan: RunPlan = text
        .and_then(|text| serde_json::from_slice(&text).map_err(io::Error::from))
        .map_err(files::failed("read the plan that CERE_RUN names,", path))?;
    match plan.version {
        CAPTURE_VERSION => Ok(plan),
        other => Err(StartError::Version(path.to_owned(), other)),
    }
}

/// Reserves all memory that captures need, and plans them. None if the system refuses the address space.
pub fn prepare_state(
    directory: PathBuf,
    wanted: &[Wanted],
    plan: Option<TracePlan>,
) -> Option<State> {
    let pool = Pool::reserve()?;
    if !heap::reserve_heap() {
        return None;
    }
    malloc::look_up_next();
    // SAFETY: the pool's room for spans.
    let spans = unsafe { Spans::new(pool.spans()) };
    let here = prepare_state as *const () as usize;
    let mut own: Vec<(usize, usize)> = images::list_loaded().iter().map(|i| i.range).collect();
    own.retain(|r| r.0 <= here && here < r.1);
    own.extend([arena::arena_range(), pool.range(), clock::prepare_answers()]);
    let (mut tracer, mut windows) = (Tracer::none(), Vec::new());
    let listed = |w: &Wanted| Region {
        invocations: w.invocations.clone(),
        seconds: w.seconds,
        thread: w.thread,
        listed: true,
        ..Region::new(w.key.clone())
    };
    let (first, others): (Vec<&Wanted>, Vec<&Wanted>) = wanted.iter().partition(|w| w.thread == 0);
    let mut regions: Vec<Region> = first.iter().map(|w| listed(w)).collect();
    if let Some(plan) = plan {
        let (reserved, range) = Tracer::reserve(plan)?;
        own.push(range);
        tracer = reserved;
        windows = plan_windows(&first, &mut regions);
    }
    for other in others {
        // The first entry of a region is the first thread's.
        if regions.iter().all(|r| r.key != other.key) {
            regions.push(Region::new(other.key.clone()));
        }
        regions.push(listed(other));
    }
    regions.iter_mut().for_each(Region::look_ahead);
    targets::set(&regions);
    Some(State {
        engine: Engine::new(Pages::new(System, pool, spans), tracer, own),
        wanted: regions,
        directory,
        kept: None,
        stacks: Vec::new(),
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
fn plan_windows(wanted: &[&Wanted], regions: &mut Vec<Region>) -> Vec<Planned> {
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

//! What is wanted of a run: arms the regions, keeps the counts. Ordinary code.

use crate::engine::Engine;
use crate::pool::{LEVELS, Pool};
use crate::spans::Spans;
use crate::{arena, capture, heap, images, process, thread_pointer};
use cere_format::abi::{Hook, RegionDescriptor};
use cere_format::capture::Wanted;
use cere_format::profile::RegionKey;
use std::path::PathBuf;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

static STATE: AtomicPtr<State> = AtomicPtr::new(null_mut());

/// Everything that captures need; used by the main thread only.
pub struct State {
    /// Memory and levels.
    pub engine: Engine,
    /// The regions, in the order of the plan.
    pub wanted: Vec<Region>,
    /// Where results go.
    pub directory: PathBuf,
    /// Thread pointer of the thread that is captured.
    pub thread: usize,
    /// Most mappings that the kernel allows.
    pub mapping_limit: usize,
    /// Start of an image, and whether it is instrumented.
    pub known: Vec<(usize, bool)>,
}

/// A region of which invocations are wanted.
pub struct Region {
    /// Which region.
    pub key: RegionKey,
    /// Those wanted.
    pub invocations: Vec<u64>,
    /// Times entered so far.
    pub count: u64,
    /// The next invocation wanted; `u64::MAX` if none.
    pub next: u64,
    /// Its descriptors with a hook.
    pub armed: Vec<*mut RegionDescriptor>,
}

impl Region {
    /// Finds the next invocation wanted after those that were.
    pub fn look_ahead(&mut self) {
        let next = self.invocations.iter().copied().find(|i| *i > self.count);
        self.next = next.unwrap_or(u64::MAX);
    }
}

/// The state, once captures are prepared.
pub fn state() -> Option<&'static mut State> {
    // SAFETY: leaked at start; only the main thread gets here, a handler only while nobody else uses it.
    unsafe { STATE.load(Ordering::Relaxed).as_mut() }
}

/// The engine, for the handlers.
pub fn engine() -> Option<&'static mut Engine> {
    state().map(|s| &mut s.engine)
}

/// Reserves all memory that captures need.
pub fn prepare(directory: PathBuf, wanted: &[Wanted]) -> Result<(), String> {
    const REFUSED: &str = "the system refuses the address space that captures need (is `ulimit -v` set?); \
                           the program runs uncaptured";
    let pool = Pool::reserve().ok_or(REFUSED)?;
    if !heap::reserve() {
        return Err(REFUSED.into());
    }
    // SAFETY: the pool's room for spans.
    let spans = unsafe { Spans::new(pool.spans()) };
    let here = prepare as *const () as usize;
    let mut own: Vec<(usize, usize)> = images::loaded()
        .iter()
        .map(|i| i.range)
        .filter(|r| r.0 <= here && here < r.1)
        .collect();
    own.extend([arena::range(), pool.range()]);
    let wanted = wanted.iter().map(|w| {
        let mut region = Region {
            key: w.key.clone(),
            invocations: w.invocations.clone(),
            count: 0,
            next: 0,
            armed: Vec::new(),
        };
        region.look_ahead();
        region
    });
    let state = State {
        engine: Engine {
            pool,
            spans,
            levels: Vec::with_capacity(LEVELS),
            own,
            stacks: Vec::new(),
            epoch: 0,
            splits: 0,
            budget: 0,
        },
        wanted: wanted.collect(),
        directory,
        thread: thread_pointer(),
        mapping_limit: process::mapping_limit(),
        known: Vec::new(),
    };
    STATE.store(Box::into_raw(Box::new(state)), Ordering::Release);
    Ok(())
}

/// Notes an image and arms those of its regions that are wanted.
pub fn arm(start: usize, instrumented: bool, regions: Vec<*mut RegionDescriptor>) {
    let Some(state) = state() else { return };
    state.known.push((start, instrumented));
    for region in regions {
        // SAFETY: descriptors of a loaded image and their markers; the stub has the hook's interface.
        unsafe {
            let unit = &(*(*region).unit).id;
            let index = (*region).index;
            let found = state
                .wanted
                .iter()
                .position(|w| w.key.index == index && w.key.unit.as_bytes() == unit);
            let Some(wanted) = found.filter(|w| state.wanted[*w].next != u64::MAX) else {
                continue;
            };
            state.wanted[wanted].armed.push(region);
            (*region).scratch = wanted as u64 + 1;
            let hook =
                std::mem::transmute::<*const (), Hook>(capture::cere_capture_stub as *const ());
            (&raw mut (*region).hook).write_volatile(Some(hook));
        }
    }
}

/// Forgets images that are gone.
pub fn forget(present: &dyn Fn(usize) -> bool) {
    let Some(state) = state() else { return };
    let known = std::mem::take(&mut state.known);
    let gone = known.iter().any(|(start, _)| !present(*start));
    state.known = known
        .into_iter()
        .filter(|(start, _)| present(*start))
        .collect();
    if gone {
        let ranges: Vec<_> = images::loaded().iter().map(|i| i.range).collect();
        let loaded = |at: &*mut RegionDescriptor| {
            ranges
                .iter()
                .any(|r| r.0 <= *at as usize && (*at as usize) < r.1)
        };
        for region in &mut state.wanted {
            region.armed.retain(loaded);
        }
    }
}

/// A forked child captures nothing.
pub fn abandon_process() {
    STATE.store(null_mut(), Ordering::Release);
}

/// Makes a region dormant again once nothing more is wanted of it.
pub fn disarm(region: &mut Region) {
    if region.next == u64::MAX {
        for descriptor in region.armed.drain(..) {
            // SAFETY: descriptors of loaded images.
            unsafe { (&raw mut (*descriptor).hook).write_volatile(None) };
        }
    }
}

/// `counts.json`: how often each wanted region was entered while armed, over all processes of the run.
pub fn write_counts(state: &State) -> Result<(), String> {
    let path = state.directory.join("counts.json");
    let former: Vec<serde_json::Value> = std::fs::read(&path)
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok())
        .unwrap_or_default();
    let counts: Vec<serde_json::Value> = state
        .wanted
        .iter()
        .map(|w| {
            let key = serde_json::json!({ "unit": w.key.unit, "index": w.key.index });
            let before = former.iter().find(|f| f["key"] == key);
            let before = before.and_then(|f| f["invocations"].as_u64()).unwrap_or(0);
            serde_json::json!({ "key": key, "invocations": w.count.max(before) })
        })
        .collect();
    let failed = |e: std::io::Error| format!("cannot write {}: {e}", path.display());
    let part = state
        .directory
        .join(format!("counts.{}.part", std::process::id()));
    std::fs::write(&part, serde_json::Value::from(counts).to_string()).map_err(failed)?;
    std::fs::rename(&part, &path).map_err(failed)
}

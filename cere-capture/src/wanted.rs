//! What is wanted of a run: arms the regions, keeps the counts. Ordinary code.

use crate::conflict::{Captured, Past};
use crate::engine::{Engine, Place};
use crate::pool::{PAGE, Pool};
use crate::spans::Spans;
use crate::trace::{self, Planned};
use crate::tracer::Tracer;
use crate::{
    arena, capture, clock, engine, heap, images, openmp, process, sys, team, thread_pointer,
    threads,
};
use cere_format::abi::{Hook, RegionDescriptor};
use cere_format::capture::{TracePlan, Wanted};
use cere_format::profile::RegionKey;
use std::path::PathBuf;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

static STATE: AtomicPtr<State> = AtomicPtr::new(null_mut());
/// Thread pointer of the main thread.
static MAIN: AtomicUsize = AtomicUsize::new(0);

/// Everything that captures need. The engine is used in turn ([`crate::team`]), the rest by the main thread.
pub struct State {
    /// Memory and the capture in progress.
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
    /// What captures so far mean for later ones.
    pub past: Past,
    /// The windows of the page trace.
    pub windows: Vec<Planned>,
    /// All regions of the loaded images.
    pub all: Vec<*mut RegionDescriptor>,
    /// Whether all of them have a hook, so that an interrupted trace goes on.
    pub listens: bool,
    /// Wanted invocations that could not be captured, to be noted. Capacity is MISSED.
    pub missed: Vec<capture::Missed>,
}

/// A region of which invocations are wanted.
pub struct Region {
    /// Which region.
    pub key: RegionKey,
    /// Those wanted.
    pub invocations: Vec<u64>,
    /// Times entered so far.
    pub count: u64,
    /// The next invocation that is wanted or begins a window; `u64::MAX` if none.
    pub next: u64,
    /// Invocations that begin windows of the page trace, rising.
    pub starts: Vec<trace::Start>,
    /// The last captured invocation that it ran inside.
    pub inside: Option<Captured>,
    /// Whether invocations of it are wanted at all.
    pub listed: bool,
    /// Its descriptors with a hook.
    pub armed: Vec<*mut RegionDescriptor>,
}

impl Region {
    /// A region of which nothing is wanted.
    pub fn new(key: RegionKey) -> Region {
        Region {
            key,
            invocations: Vec::new(),
            count: 0,
            next: u64::MAX,
            starts: Vec::new(),
            inside: None,
            listed: false,
            armed: Vec::new(),
        }
    }

    /// Finds the next invocation of interest after those that were.
    pub fn look_ahead(&mut self) {
        let later = |i: &u64| *i > self.count;
        let wanted = self.invocations.iter().copied().find(later);
        let starts = self.starts.iter().map(|s| s.count).find(later);
        let next = wanted.into_iter().chain(starts).min();
        self.next = next.unwrap_or(u64::MAX);
    }
}

/// Whether captures are prepared. Any thread may ask.
pub fn prepared() -> bool {
    pointer().is_some()
}

/// Whether memory is to be closed. Any thread may ask: the answer is old where it has no turn.
pub fn at_work() -> bool {
    prepared() && engine::at_work()
}

/// Whether the calling thread is the main one.
pub fn is_main() -> bool {
    MAIN.load(Ordering::Relaxed) == thread_pointer()
}

/// The state, once captures are prepared.
pub fn pointer() -> Option<NonNull<State>> {
    NonNull::new(STATE.load(Ordering::Acquire)).filter(|_| !crate::is_copy())
}

/// The state, once captures are prepared.
///
/// # Safety
/// The calling thread is the main one and keeps those of teams out ([`team::bar`]), and no other reference to the state, or to
/// a part of it, is used before this one is for the last time.
pub unsafe fn state() -> Option<&'static mut State> {
    // SAFETY: leaked at start; nobody else uses it, by the contract.
    pointer().map(|mut state| unsafe { state.as_mut() })
}

/// The engine, for the handlers.
///
/// # Safety
/// The calling thread has its turn, and no other reference to the engine is used before this one is for the last time.
pub unsafe fn engine() -> Option<&'static mut Engine> {
    // SAFETY: leaked at start; nobody else uses the engine, by the contract.
    pointer().map(|state| unsafe { &mut (*state.as_ptr()).engine })
}

/// Runs `work` with everything open, while nobody else uses the state, from whichever thread. Ordinary code; nothing if no
/// captures are prepared.
pub fn alone(work: impl FnOnce(&mut State)) {
    if is_main() {
        return capture::with_state(work);
    }
    let mut work = Some(work);
    while work.is_some() && prepared() {
        // Not to wait in the gate: the main thread, in its turn, waits for that to be empty.
        threads::in_gate(|| {
            let turn = team::try_turn();
            if turn.is_some()
                && let Some(state) = pointer()
                && let Some(work) = work.take()
            {
                // SAFETY: the main thread works on the state in its turn only, but for counts that `work` leaves alone.
                work(unsafe { &mut *state.as_ptr() });
            }
        });
        std::thread::yield_now();
    }
}

/// Reserves all memory that captures need.
pub fn prepare(
    directory: PathBuf,
    wanted: &[Wanted],
    plan: Option<TracePlan>,
) -> Result<(), String> {
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
    own.extend([arena::range(), pool.range(), clock::prepare()]);
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
        windows = trace::plan(wanted, &mut regions);
    }
    regions.iter_mut().for_each(Region::look_ahead);
    let state = State {
        engine: Engine {
            pool,
            spans,
            level: None,
            tracer,
            place: Place::default(),
            own,
            stacks: Vec::new(),
            epoch: 0,
            splits: 0,
            budget: 0,
            toucher: 0,
        },
        wanted: regions,
        directory,
        thread: thread_pointer(),
        mapping_limit: process::mapping_limit(),
        known: Vec::new(),
        past: Past::default(),
        windows,
        all: Vec::new(),
        listens: false,
        missed: Vec::with_capacity(capture::MISSED),
    };
    MAIN.store(state.thread, Ordering::Relaxed);
    capture::HOOK_STACK.store(state.engine.pool.hook_stack(), Ordering::Relaxed);
    STATE.store(Box::into_raw(Box::new(state)), Ordering::Release);
    Ok(())
}

/// Whether `region` has this key.
///
/// # Safety
/// It is the descriptor of a loaded image.
pub unsafe fn is(region: *const RegionDescriptor, key: &RegionKey) -> bool {
    // SAFETY: the linker has bound the descriptor to its unit's marker.
    unsafe { (*region).index == key.index && (*(*region).unit).id == *key.unit.as_bytes() }
}

/// Notes an image and arms those of its regions that are wanted.
pub fn arm(start: usize, instrumented: bool, regions: Vec<*mut RegionDescriptor>) {
    alone(|state| arm_in(state, start, instrumented, regions));
}

fn arm_in(
    state: &mut State,
    start: usize,
    instrumented: bool,
    regions: Vec<*mut RegionDescriptor>,
) {
    state.known.push((start, instrumented));
    state.all.extend(&regions);
    for region in regions {
        // SAFETY: descriptors of a loaded image and their markers; the stub has the hook's interface.
        unsafe {
            let found = state.wanted.iter().position(|w| is(region, &w.key));
            let Some(wanted) = found.filter(|w| state.wanted[*w].next != u64::MAX) else {
                set_hook(region, false);
                continue;
            };
            state.wanted[wanted].armed.push(region);
            (*region).scratch = wanted as u64 + 1;
            set_hook(region, true);
        }
    }
}

unsafe fn set_hook(region: *mut RegionDescriptor, yes: bool) {
    // SAFETY: a descriptor of a loaded image; the stub has the hook's interface.
    unsafe {
        let hook = std::mem::transmute::<*const (), Hook>(capture::cere_capture_stub as *const ());
        let hook = if yes {
            Some(hook)
        } else {
            openmp::dormant(region)
        };
        (&raw mut (*region).hook).write_volatile(hook);
    }
}

/// Has the entry of any region call the hook, or only that of the armed ones again. Memory is open; may run in a handler.
pub fn listen(state: &mut State, yes: bool) {
    if state.listens == yes {
        return;
    }
    state.listens = yes;
    let mut known = (0, false);
    for region in state.all.iter().copied() {
        let armed = state.wanted.iter().any(|w| w.armed.contains(&region));
        // An image may be gone that is about to be forgotten.
        let page = region as usize & !(PAGE - 1);
        if known.0 != page {
            known = (page, sys::is_mapped(page, PAGE));
        }
        if !armed && known.1 {
            // SAFETY: descriptors of loaded images.
            unsafe { set_hook(region, yes) };
        }
    }
}

/// Forgets images that are gone.
pub fn forget(present: &dyn Fn(usize) -> bool) {
    alone(|state| forget_in(state, present));
}

fn forget_in(state: &mut State, present: &dyn Fn(usize) -> bool) {
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
        state.all.retain(loaded);
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
            unsafe { set_hook(descriptor, false) };
        }
    }
}

/// `counts.<number>.json`: how often each wanted region was entered while armed, in the process of that number.
pub fn write_counts(state: &State) -> Result<(), String> {
    let Some(number) = crate::register::number() else {
        return Ok(());
    };
    let path = state.directory.join(format!("counts.{number}.json"));
    let counts: Vec<serde_json::Value> = state
        .wanted
        .iter()
        .filter(|w| w.listed)
        .map(|w| {
            let key = serde_json::json!({ "unit": w.key.unit, "index": w.key.index });
            serde_json::json!({ "key": key, "invocations": w.count })
        })
        .collect();
    let failed = |e: std::io::Error| format!("cannot write {}: {e}", path.display());
    let part = path.with_extension("part");
    std::fs::write(&part, serde_json::Value::from(counts).to_string()).map_err(failed)?;
    std::fs::rename(&part, &path).map_err(failed)
}

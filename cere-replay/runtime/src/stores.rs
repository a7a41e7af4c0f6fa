//! Which store wrote what, from code that reports where in the source its stores are (the pass, `stores.cpp`): when each word was stored
//! last; or, of a few words, all that was stored there.

use crate::error::Error;
use crate::glue::{cere_glue_store, cere_glue_typed};
use crate::pages::{Page, Pages};
use crate::space;
use crate::typed::Cells;
use cere_format::replay::{StoreEntry, StoreSite, Stores};
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char};
use std::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Stores that are kept of all watched words together.
const ROOM: usize = 1 << 17;
/// Loops around a store whose iterations are kept, the innermost.
const DEPTH: usize = 4;
/// Wrong words that are reported beside the first one, at most.
const WRONG: usize = 63;

/// As the pass writes it.
#[repr(C)]
struct Site {
    file: *const c_char,
    function: *const c_char,
    loops: *const Loop,
    line: u32,
    depth: u32,
    /// Not 0: it stores the region's scalar result when it ends.
    result: u32,
}

/// A loop around a store: where its iterations are counted, and its line.
#[repr(C)]
struct Loop {
    number: u32,
    line: u32,
}

/// What was stored in a word.
#[derive(Clone, Copy)]
struct Entry {
    /// Number among the watched words.
    word: usize,
    site: *const Site,
    /// The word after it.
    value: u64,
    /// Its bytes that were stored, a bit each.
    bytes: u8,
    kind: u8,
    iterations: [u64; DEPTH],
}

/// A word that is watched.
struct Watched {
    address: u64,
    stored: AtomicUsize,
}

struct Listener {
    /// Of each four bytes: the number of the last store; or, where words are watched, the word's number from 1.
    cells: Cells,
    watched: Vec<Watched>,
    /// For [`ROOM`] of them.
    entries: *mut Entry,
    /// For one of each watched word: its last.
    last: *mut Entry,
    kept: AtomicUsize,
    stores: AtomicU64,
}

// SAFETY: entries are written each once, at a place that an atomic counter gave, and read when the region rests; the last ones are written
// by threads that race only where the region's own stores do, and hold no pointer but to constants.
unsafe impl Sync for Listener {}
// SAFETY: its memory belongs to no thread.
unsafe impl Send for Listener {}

static LISTENER: OnceLock<Listener> = OnceLock::new();
/// Words that end wrong, in the order of the comparison.
static WRONG_WORDS: Mutex<Vec<u64>> = Mutex::new(Vec::new());

/// Remembers a word that ends wrong, if it is asked for and stores there are reported.
pub fn ends_wrong(address: u64) {
    let listener = LISTENER.get();
    if listener.is_some_and(|listener| listener.cells.at(address).is_some()) {
        WRONG_WORDS
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(address);
    }
}

/// Receives reported stores from now on. `watched`: the words whose stores are kept; without any it is found out which words end wrong.
pub fn listen(watched: &[u64], pages: &Pages) -> Result<(), Error> {
    // SAFETY: the generator's glue defines the word, which nothing writes.
    let reported = unsafe { (&raw const cere_glue_typed).read() };
    if reported == 0 {
        return Ok(());
    }
    let all: Vec<u64> = pages.all.iter().map(Page::start).collect();
    let cells = Cells::new(&all, false)?;
    for (number, address) in watched.iter().enumerate() {
        for half in [*address, *address + 4] {
            if let Some(cell) = cells.at(half) {
                cell.store(number as u64 + 1, Relaxed);
            }
        }
    }
    let room = |entries: usize| {
        let start = space::fresh(entries.max(1) * size_of::<Entry>(), libc::MAP_NORESERVE);
        start.map(<*mut _>::cast::<Entry>)
    };
    let (Some(entries), Some(last)) = (room(ROOM), room(watched.len())) else {
        return Err(Error::system("no memory for what is stored"));
    };
    let watched = watched.iter().map(|address| Watched {
        address: *address,
        stored: AtomicUsize::new(0),
    });
    let _ = LISTENER.set(Listener {
        cells,
        watched: watched.collect(),
        entries,
        last,
        kept: AtomicUsize::new(0),
        stores: AtomicU64::new(0),
    });
    // SAFETY: the generator's glue defines the word; the region, which reads it, does not run yet.
    unsafe { cere_glue_store = stored as *const () as u64 };
    Ok(())
}

/// Called behind every store of `size` bytes at `place`. `from`: where the value is, if not there; `iterations`: the counters of the
/// function's loops.
extern "C" fn stored(
    place: u64,
    size: u64,
    kind: u64,
    site: *const Site,
    iterations: *const u64,
    from: *const u8,
) {
    let Some(listener) = LISTENER.get() else {
        return;
    };
    let number = listener.stores.fetch_add(1, Relaxed) + 1;
    let end = place.saturating_add(size);
    if listener.watched.is_empty() {
        let mut at = place & !3;
        while at < end {
            if let Some(cell) = listener.cells.at(at) {
                cell.store(number, Relaxed);
            }
            at += 4;
        }
        return;
    }
    let mut at = place & !7;
    while at < end {
        let cell = listener.cells.at(at).map_or(0, |cell| cell.load(Relaxed));
        if cell > 0 {
            let word = cell as usize - 1;
            let within = (place.max(at) - at, end.min(at + 8) - at);
            let value = value(at, within, from, place);
            let bytes = (0xff_u16 >> (8 - (within.1 - within.0)) << within.0) as u8;
            listener.keep(Entry {
                word,
                site,
                value,
                bytes,
                kind: kind.min(u64::from(u8::MAX)) as u8,
                iterations: read(site, iterations),
            });
        }
        at += 8;
    }
}

/// The word at `at` after its bytes from `within.0` to before `within.1` were stored.
fn value(at: u64, within: (u64, u64), from: *const u8, place: u64) -> u64 {
    // SAFETY: a captured word, which the region may read.
    let mut value = unsafe { (at as *const u64).read() }.to_le_bytes();
    if !from.is_null() {
        for offset in within.0..within.1 {
            let source = from.wrapping_add((at + offset - place) as usize);
            // SAFETY: the value that is to be stored has as many bytes.
            value[offset as usize] = unsafe { source.read() };
        }
    }
    u64::from_le_bytes(value)
}

/// The iterations of the innermost loops around a site, the outermost of them first.
fn read(site: *const Site, iterations: *const u64) -> [u64; DEPTH] {
    let mut found = [0; DEPTH];
    // SAFETY: constants of the code that reports, with as many loops as it says, each with a counter.
    unsafe {
        let depth = (*site).depth as usize;
        for (place, number) in (depth.saturating_sub(DEPTH)..depth).enumerate() {
            let counter = (*(*site).loops.add(number)).number as usize;
            found[place] = *iterations.add(counter);
        }
    }
    found
}

impl Listener {
    fn keep(&self, entry: Entry) {
        let watched = &self.watched[entry.word];
        let before = watched.stored.load(Relaxed);
        // SAFETY: one for each watched word.
        let last = unsafe { self.last.add(entry.word) };
        // SAFETY: entries and sites are as above; an entry is there when one was stored.
        let again = before > 0
            && unsafe {
                (*entry.site).result != 0
                    && (*last).bytes == entry.bytes
                    && (*last).value == entry.value
            };
        if again {
            // A result, which counted as stored when it was computed.
            return;
        }
        // SAFETY: as above.
        unsafe { last.write(entry) };
        watched.stored.store(before + 1, Relaxed);
        if before >= ROOM / self.watched.len() {
            return;
        }
        let place = self.kept.fetch_add(1, SeqCst);
        if place < ROOM {
            // SAFETY: each place is given once, and there is room for so many.
            unsafe { self.entries.add(place).write(entry) };
        }
    }
}

/// What was stored until now; none if the code does not report it.
pub fn told() -> Option<Stores> {
    let listener = LISTENER.get()?;
    let wrong = WRONG_WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut sites = Sites::default();
    let kept = listener.kept.load(SeqCst).min(ROOM);
    // SAFETY: so many were written.
    let entries = unsafe { std::slice::from_raw_parts(listener.entries, kept) };
    let entries = entries.iter().map(|entry| sites.entry(entry)).collect();
    let mut last = Vec::new();
    for (number, watched) in listener.watched.iter().enumerate() {
        // SAFETY: one for each watched word, written if something was stored there.
        let entry =
            (watched.stored.load(SeqCst) > 0).then(|| unsafe { *listener.last.add(number) });
        last.push(entry.map(|entry| sites.entry(&entry)));
    }
    let watched = listener.watched.iter();
    Some(Stores {
        wrong: listener.earliest(&wrong),
        counts: watched
            .clone()
            .map(|w| w.stored.load(SeqCst) as u64)
            .collect(),
        words: watched.map(|w| w.address).collect(),
        sites: sites.all,
        entries,
        last,
    })
}

impl Listener {
    /// The first of these words, and of the others those that were stored last before the rest; then those that never were.
    fn earliest(&self, wrong: &[u64]) -> Vec<u64> {
        let [first, others @ ..] = wrong else {
            return Vec::new();
        };
        let when = |address: u64| {
            let halves = [address, address + 4].map(|at| self.cells.at(at));
            let numbers = halves.iter().flatten().map(|cell| cell.load(Relaxed));
            numbers.max().filter(|n| *n > 0).unwrap_or(u64::MAX)
        };
        let mut others: Vec<(u64, u64)> = others.iter().map(|at| (when(*at), *at)).collect();
        others.sort_unstable();
        let others = others.into_iter().take(WRONG).map(|(_, at)| at);
        std::iter::once(*first).chain(others).collect()
    }
}

/// The sites of entries, each once.
#[derive(Default)]
struct Sites {
    numbers: BTreeMap<*const Site, u32>,
    all: Vec<StoreSite>,
}

impl Sites {
    fn entry(&mut self, entry: &Entry) -> StoreEntry {
        let number = match self.numbers.get(&entry.site) {
            Some(number) => *number,
            None => {
                let number = self.all.len() as u32;
                self.all.push(site(entry.site));
                self.numbers.insert(entry.site, number);
                number
            }
        };
        let depth = self.all[number as usize].loops.len();
        StoreEntry {
            word: entry.word as u32,
            site: number,
            value: entry.value,
            bytes: entry.bytes,
            kind: entry.kind,
            iterations: entry.iterations[..depth].to_vec(),
        }
    }
}

fn site(site: *const Site) -> StoreSite {
    let text = |text: *const c_char| {
        // SAFETY: strings of the code that reports, which end with 0.
        unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned()
    };
    // SAFETY: a constant of the code that reports, with as many loops as it says.
    let (site, loops) = unsafe {
        let site = &*site;
        let loops = match site.depth {
            0 => &[][..],
            depth => std::slice::from_raw_parts(site.loops, depth as usize),
        };
        (site, loops)
    };
    StoreSite {
        file: text(site.file),
        function: text(site.function),
        line: site.line,
        loops: loops[loops.len().saturating_sub(DEPTH)..]
            .iter()
            .map(|l| l.line)
            .collect(),
    }
}

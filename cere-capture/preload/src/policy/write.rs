//! Writes finished captures. Ordinary code, with the program's memory open.

use super::mpi::bound;
use super::state::State;
use super::{locks, openmp, register};
use crate::engine::level::Level;
use crate::engine::pool::{DEAD, Did, TOUCHER_SHIFT, TOUCHERS, Touch, ZEROS};
use crate::engine::spans::{KIND_FOREIGN, KIND_STACK};
use crate::engine::state::Engine;
use crate::engine::{clock, heap, malloc};
use crate::os::files::{self, File, FileError};
use crate::os::sys::{self, PAGE};
use crate::os::{mappings, names, thread};
use cere_format::capture::*;
use cere_format::clibrary::CLibrary;
use cere_format::mpi::MpiCalls;
use cere_inside::clibrary::Library;
use std::fmt::{self, Display, Formatter};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Why a capture is not written.
#[derive(Debug)]
pub enum WriteError {
    /// A file.
    File(FileError),
    /// The program has loaded a file of this name.
    Name(PathBuf),
}

impl Display for WriteError {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            WriteError::File(e) => e.fmt(f),
            WriteError::Name(path) => write!(
                f,
                "cannot keep a capture: the program has loaded {path:?}, whose name is not UTF-8: give it another"
            ),
        }
    }
}

impl From<FileError> for WriteError {
    fn from(e: FileError) -> WriteError {
        WriteError::File(e)
    }
}

/// How a capture ended.
pub struct End {
    /// How.
    pub end: RegionEnd,
    /// Why the capture is refused, if so.
    pub refused: Option<String>,
    /// Time stamp at the end.
    pub now: u64,
    /// The C library, to be asked what it keeps now.
    pub c_library: Option<Library>,
}

/// Files of one capture, under a number of their own. Only complete files get their final names.
struct Files {
    directory: PathBuf,
    number: u32,
}

const PART: &str = "part";
/// What the files hold, by the end of their names.
const EXTENSIONS: [&str; 8] = [
    "table", "places", "pages", "trace", "blocks", "answers", "mpi", "json",
];

impl Files {
    fn path(&self, extension: &str) -> PathBuf {
        self.directory.join(format!("{}.{extension}", self.number))
    }
    fn part(&self, extension: &str) -> PathBuf {
        self.directory
            .join(format!("{}.{extension}.{PART}", self.number))
    }
    /// Takes a number that no other process of the run has.
    fn claim(directory: &Path) -> Result<(Files, File), FileError> {
        let mut files = Files {
            directory: directory.to_owned(),
            number: 0,
        };
        loop {
            let (table, part) = (files.path("table"), files.part("table"));
            if !files::exists(&table) {
                match File::create_new(&part) {
                    Ok(file) if !files::exists(&table) => return Ok((files, file)),
                    Ok(_) => drop(files::remove(&part)),
                    Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                    Err(e) => return Err(files::failed("create", &part)(e)),
                }
            }
            files.number += 1;
        }
    }
    fn publish(&self, extension: &str) -> Result<(), FileError> {
        let path = self.path(extension);
        files::rename(&self.part(extension), &path).map_err(files::failed("name", &path))
    }
    fn failed(&self) -> impl Fn(io::Error) -> FileError {
        files::failed("write a capture to", &self.directory)
    }
}

/// Whether [`PAGE_FRESH`] holds: the page was mapped since entry, and nothing was there before.
fn is_fresh(level: &Level, address: u64) -> bool {
    let mut before = level.mappings.iter();
    level.fresh.iter().any(|f| f.0 <= address && address < f.1)
        && !before.any(|m| m.start <= address && address < m.end)
}

/// Content of a page at exit.
///
/// # Safety
/// It is readable, or its content at exit was kept.
unsafe fn at_exit<'a>(engine: &mut Engine, touch: &Touch) -> &'a [u8] {
    // SAFETY: the touched page is readable, or its copy at exit was made for this touch.
    unsafe {
        match touch.exit {
            0 => std::slice::from_raw_parts(touch.address as *const u8, PAGE),
            ZEROS => &[0; PAGE],
            copy => engine.pages.pool.content(copy),
        }
    }
}

/// Whether a page with a copy has the content that it had at entry.
fn is_unchanged(engine: &mut Engine, touch: &Touch) -> bool {
    // SAFETY: the page is readable; the copy was made for this touch.
    unsafe { at_exit(engine, touch) == engine.pages.pool.content(touch.copy) }
}

/// The record of a touched page; `new_heap` is [`Level::new_heap`].
fn describe_page(
    engine: &mut Engine,
    level: &Level,
    touch: &Touch,
    new_heap: Option<usize>,
) -> PageRecord {
    let address = touch.address;
    let kind = touch.kind as u8;
    let control = level.control.0 <= address && address < level.control.1;
    let reached = || level.is_reached(address) && sys::is_mapped(address, PAGE);
    let readable = control || engine.pages.spans.find(address).is_some() || reached();
    let page = engine.pages.pool.page(address).copied().unwrap_or_default();
    let mut flags = 0;
    let mut set = |condition: bool, flag: u32| flags |= if condition { flag } else { 0 };
    // Memory that was moved to a fresh place counts as written.
    let new = is_fresh(level, address as u64);
    let moved = new && touch.copy != 0;
    let mut written = if readable {
        match control {
            true => !is_unchanged(engine, touch),
            false => page.written != Did::No,
        }
    } else {
        // An unmapped page counts as zero.
        touch.copy != 0 && !sys::is_mapped(address, PAGE)
    };
    // For a page of zeros no comparison is needed: as written it costs nothing.
    if readable && written && touch.copy != 0 && page.written == Did::Maybe {
        written = !is_unchanged(engine, touch);
    }
    let mut zeros = || {
        // SAFETY: the page is readable: everything is open.
        let page = unsafe { at_exit(engine, touch) };
        page.iter().all(|byte| *byte == 0)
    };
    // It may not even be touched.
    if readable && written && touch.copy == 0 && page.touched == Did::Maybe {
        written = !zeros();
    }
    written |= readable && moved;
    let dead = touch.kind & DEAD != 0;
    set(page.touched != Did::Maybe || written, PAGE_TOUCHED);
    set(written, PAGE_WRITTEN);
    set(touch.copy != 0 && !new, PAGE_ENTRY_STORED);
    set(written && readable && !dead && !zeros(), PAGE_EXIT_STORED);
    set(page.executed, PAGE_CODE);
    set(kind & KIND_FOREIGN != 0, PAGE_FOREIGN);
    set(kind & KIND_STACK != 0, PAGE_STACK);
    set(new, PAGE_FRESH);
    let place = level.absent.partition_point(|r| r.1 <= address as u64);
    let absent = level.absent.get(place);
    let absent = absent.is_some_and(|r| r.0 <= address as u64);
    let heap = heap::heap_range().1 as usize;
    let grown = new_heap.is_some_and(|start| start <= address && address < heap);
    let empty = touch.copy == 0 && !new && kind & (KIND_STACK | KIND_FOREIGN) == 0;
    set(empty && (absent || grown), PAGE_ABSENT);
    PageRecord {
        address: address as u64,
        flags,
        thread: touch.kind >> TOUCHER_SHIFT & TOUCHERS,
    }
}

/// The file of the OpenMP runtime.
fn find_runtime_file(level: &Level) -> String {
    let start = openmp::runtime_range().0 as u64;
    let found = level.images.iter().find(|i| i.range.0 == start);
    found.map_or(String::new(), |i| i.path.display().to_string())
}

/// Addresses of the locks of the OpenMP runtime, now and at entry.
fn lock_words(level: &Level) -> Vec<u64> {
    let now = locks::list_locks();
    let mut words: Vec<u64> = now.iter().chain(&level.locks).map(|l| l.address).collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// Writes a finished capture, which is no longer the engine's. Of a refused one nothing but the description is of use: its other
/// files stay empty or are not there.
pub fn write_capture(state: &mut State, mut level: Level, end: End) -> Result<(), WriteError> {
    let (files, table) = Files::claim(&state.directory)?;
    if end.refused.is_some() {
        (level.touched, level.trace) = (0, None);
        level.blocks.clear();
    }
    let written = write_contents(state, &files, table, level, end);
    if written.is_err() {
        for extension in EXTENSIONS {
            let _ = files::remove(&files.part(extension));
        }
    }
    written
}

/// Writes all files, and gives them their names: the description last, which says that the others are there.
fn write_contents(
    state: &mut State,
    files: &Files,
    table: File,
    mut level: Level,
    end: End,
) -> Result<(), WriteError> {
    let kept = state.kept.take();
    write_pages(&mut state.engine, files, (table, kept), &level)?;
    // Where the program has the state of `random` itself, asking writes to it.
    let kept = end.c_library.as_ref().map(|library| library.ask());
    let (known, answers) = clock::read_answers(level.clocks.1, level.clocks.0.clone());
    let trace = level.trace.as_ref();
    let trace = trace.map(|t| t.1.iter().flat_map(|page| page.to_le_bytes()).collect());
    let blocks: Vec<&[u8]> = level.blocks.iter().map(|b| &b.1[..]).collect();
    let calls = std::mem::take(&mut level.answered);
    let mpi = (calls.count > 0).then(|| MpiCalls {
        calls: calls.count.into(),
        bytes: calls.list.len() as u64,
        functions: bound::list(),
    });
    let beside: [(&str, Option<Vec<u8>>); 4] = [
        ("trace", trace),
        ("blocks", (!blocks.is_empty()).then(|| blocks.concat())),
        (
            "answers",
            Some(answers).filter(|a| !a.is_empty() && end.refused.is_none()),
        ),
        (
            "mpi",
            Some(calls.list).filter(|_| mpi.is_some() && end.refused.is_none()),
        ),
    ];
    let mut extensions = vec!["table", "places", "pages"];
    for (extension, bytes) in beside {
        if let Some(bytes) = bytes {
            files::write(files.part(extension), bytes).map_err(files.failed())?;
            extensions.push(extension);
        }
    }
    let raw = RawCapture {
        answers: Some(known),
        mpi,
        c_library: level.c_library.clone().zip(kept).map(<[CLibrary; 2]>::from),
        ..describe_capture(state, level, end)
    };
    let text = serde_json::to_vec(&raw).map_err(|e| encoding_error(files, &raw, e))?;
    files::write(files.part("json"), text).map_err(files.failed())?;
    for extension in extensions.into_iter().chain(["json"]) {
        files.publish(extension)?;
    }
    Ok(())
}

/// Writes the table of the touched pages, their places, and what of their contents the file `kept` of their copies, if there is one,
/// does not have yet.
fn write_pages(
    engine: &mut Engine,
    files: &Files,
    (table, kept): (File, Option<PathBuf>),
    level: &Level,
) -> Result<(), FileError> {
    let failed = files.failed();
    let part = files.part("pages");
    if let Some(kept) = kept {
        files::rename(&kept, &part).map_err(files::failed("name", &part))?;
    }
    let places = File::create(&files.part("places")).map_err(&failed)?;
    let mut pages = File::open(&part, libc::O_WRONLY | libc::O_CREAT).map_err(&failed)?;
    let mut table = BufWriter::with_capacity(1 << 16, table);
    let mut places = BufWriter::with_capacity(1 << 16, places);
    let mut count = match level.touched {
        0 => 0,
        _ => engine.pages.pool.count(),
    };
    let write = || {
        let size = count as usize * PAGE;
        pages.set_length(size)?;
        // SAFETY: the capture's copies.
        let in_memory = unsafe { engine.pages.pool.in_memory() };
        pages.write_all(&in_memory[..size.min(in_memory.len())])?;
        pages.seek(size as u64)?;
        let mut pages = BufWriter::with_capacity(1 << 18, pages);
        // SAFETY: the capture's entries; no other slice of them is alive.
        let log = unsafe { engine.pages.pool.log(level.touched) };
        log.sort_unstable_by_key(|t| t.address);
        let new_heap = level.new_heap();
        for touch in log {
            let record = describe_page(engine, level, touch, new_heap);
            table.write_all(&record.address.to_le_bytes())?;
            table.write_all(&record.flags.to_le_bytes())?;
            table.write_all(&record.thread.to_le_bytes())?;
            let stored = |flag, place| if record.flags & flag == 0 { 0 } else { place };
            let mut exit = stored(PAGE_EXIT_STORED, touch.exit);
            if exit == 0 && record.flags & PAGE_EXIT_STORED != 0 {
                // SAFETY: the page is readable.
                pages.write_all(unsafe { at_exit(engine, touch) })?;
                count += 1;
                exit = count;
            }
            places.write_all(&stored(PAGE_ENTRY_STORED, touch.copy).to_le_bytes())?;
            places.write_all(&exit.to_le_bytes())?;
        }
        table.flush()?;
        places.flush()?;
        pages.flush()
    };
    write().map_err(failed)
}

/// The description of a capture, without answers and without what the C library keeps.
fn describe_capture(state: &State, level: Level, end: End) -> RawCapture {
    let calls = level.calls.iter().enumerate();
    let calls = calls.filter(|(_, count)| **count > 0);
    let openmp = level.threads.map(|threads| OpenMp {
        runtime: find_runtime_file(&level),
        threads,
        locks: level.locks.clone(),
        lock_words: lock_words(&level),
        blocks: level.blocks.iter().map(|b| b.0).collect(),
    });
    RawCapture {
        version: CAPTURE_VERSION,
        key: state.wanted[level.wanted].key.clone(),
        invocation: level.invocation,
        thread: state.wanted[level.wanted].thread,
        beside: level.beside,
        process: register::process_number().unwrap_or_default(),
        refused: end.refused,
        end: end.end,
        page_size: PAGE as u64,
        entry: level.entry,
        thread_pointer: thread::pointer() as u64,
        thread_number: thread::id(),
        program_break: level.program_break,
        freed: malloc::freed_since(level.deferred),
        fresh: list_fresh(&level),
        heap: heap::heap_range(),
        interposed: state.interposed.clone(),
        system_calls: calls
            .map(|(number, count)| SystemCall {
                number: number as u64,
                name: names::name_call(number),
                count: u64::from(*count),
            })
            .collect(),
        disturbed_cycles: match level.started {
            0 => 0,
            started => end.now.saturating_sub(started),
        },
        faults: level.faults,
        openmp,
        images: level.images,
        mappings: level.mappings,
        trace: level.trace.map(|(trace, _)| trace),
        answers: None,
        mpi: None,
        c_library: None,
    }
}

/// Memory that was mapped since entry, and by which the main thread's stack has grown.
fn list_fresh(level: &Level) -> Vec<(u64, u64)> {
    let mut fresh = level.fresh.clone();
    let stack = level.mappings.iter().find(|m| m.path == mappings::STACK);
    if let (Some(before), Some((start, _))) = (stack, mappings::stack_range())
        && (start as u64) < before.start
    {
        fresh.push((start as u64, before.start));
    }
    fresh
}

/// Why a description has no form as text: of what it holds only a name can be at fault.
fn encoding_error(files: &Files, raw: &RawCapture, cause: serde_json::Error) -> WriteError {
    let mut images = raw.images.iter();
    match images.find(|image| image.path.to_str().is_none()) {
        Some(image) => WriteError::Name(image.path.clone()),
        None => files.failed()(cause.into()).into(),
    }
}

//! Writes finished captures. Ordinary code, with the program's memory open.

use super::{locks, openmp, register};
use crate::engine::level::Level;
use crate::engine::pool::{DEAD, Did, TOUCHER_SHIFT, TOUCHERS, Touch, ZEROS};
use crate::engine::spans::{KIND_FOREIGN, KIND_STACK};
use crate::engine::state::Engine;
use crate::engine::{clock, heap, malloc};
use crate::os::files::{self, File};
use crate::os::sys::{self, PAGE};
use crate::os::{mappings, names, thread};
use cere_format::capture::*;
use cere_format::clibrary::CLibrary;
use cere_format::profile::RegionKey;
use cere_inside::clibrary::Library;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// How a capture ended.
pub struct End<'a> {
    /// Which region.
    pub key: &'a RegionKey,
    /// How.
    pub end: RegionEnd,
    /// Why the capture is refused, if so.
    pub refused: Option<String>,
    /// Time stamp at the end.
    pub now: u64,
    /// The C library, to be asked what it keeps now.
    pub c_library: Option<Library>,
    /// Names and addresses of this library's functions.
    pub interposed: &'a [(String, u64)],
}

/// Files of one capture, under a number of their own. Only complete files get their final names.
struct Files {
    directory: PathBuf,
    number: u32,
}

const PART: &str = "part";

impl Files {
    fn path(&self, extension: &str) -> PathBuf {
        self.directory.join(format!("{}.{extension}", self.number))
    }
    fn part(&self, extension: &str) -> PathBuf {
        self.directory
            .join(format!("{}.{extension}.{PART}", self.number))
    }
    /// Takes a number that no other process of the run has.
    fn claim(directory: &Path) -> Result<(Files, File), String> {
        for number in 0.. {
            let files = Files {
                directory: directory.to_owned(),
                number,
            };
            if files::exists(&files.path("table")) {
                continue;
            }
            match File::create_new(&files.part("table")) {
                Ok(table) if !files::exists(&files.path("table")) => return Ok((files, table)),
                Ok(_) => {
                    let _ = files::remove(&files.part("table"));
                }
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => {
                    return Err(format!(
                        "cannot create {}: {e}",
                        files.part("table").display()
                    ));
                }
            }
        }
        Err("all numbers are taken".into())
    }
    fn publish(&self, extension: &str) -> Result<(), String> {
        files::rename(&self.part(extension), &self.path(extension))
            .map_err(|e| format!("cannot name {}: {e}", self.path(extension).display()))
    }
}

/// Whether [`PAGE_FRESH`] holds: the page was mapped since entry, and nothing was there before.
fn is_fresh(level: &Level, address: u64) -> bool {
    level.fresh.iter().any(|f| f.0 <= address && address < f.1)
        && !level
            .mappings
            .iter()
            .any(|m| m.start <= address && address < m.end)
}

/// Content of a page at exit.
///
/// # Safety
/// It is readable, or its content at exit was kept.
unsafe fn at_exit<'a>(engine: &Engine, touch: &Touch) -> &'a [u8] {
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
fn is_unchanged(engine: &Engine, touch: &Touch) -> bool {
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
    let readable = control || engine.pages.spans.find(address).is_some();
    let page = engine.pages.pool.page(address);
    // SAFETY: a page of the pool, or null.
    let page = unsafe { page.as_ref() }.copied().unwrap_or_default();
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
    let zeros = || {
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
    let absent = level
        .absent
        .get(place)
        .is_some_and(|r| r.0 <= address as u64);
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

/// Writes a finished capture, which is no longer the engine's.
pub fn write_capture(
    engine: &mut Engine,
    directory: &Path,
    level: &Level,
    end: End,
) -> Result<(), String> {
    let (files, table) = Files::claim(directory)?;
    let written = write_contents(engine, &files, table, level, end);
    if written.is_err() {
        for extension in [
            "table", "entry", "exit", "trace", "blocks", "answers", "json",
        ] {
            let _ = files::remove(&files.part(extension));
        }
    }
    written
}

fn write_contents(
    engine: &mut Engine,
    files: &Files,
    table: File,
    level: &Level,
    end: End,
) -> Result<(), String> {
    let failed = |e: std::io::Error| {
        format!(
            "cannot write a capture to {}: {e}",
            files.directory.display()
        )
    };
    let create = |extension: &str| File::create(&files.part(extension)).map_err(failed);
    let mut table = BufWriter::with_capacity(1 << 16, table);
    let mut entry = BufWriter::with_capacity(1 << 18, create("entry")?);
    let mut exit = BufWriter::with_capacity(1 << 18, create("exit")?);
    // SAFETY: the capture's entries; no other slice of them is alive.
    let log = unsafe { engine.pages.pool.log(level.touched) };
    log.sort_unstable_by_key(|t| t.address);
    // The files of a refused capture stay empty.
    let log = if end.refused.is_some() {
        &log[..0]
    } else {
        &*log
    };
    let new_heap = level.new_heap();
    for touch in log {
        let record = describe_page(engine, level, touch, new_heap);
        table
            .write_all(&record.address.to_le_bytes())
            .map_err(failed)?;
        table
            .write_all(&record.flags.to_le_bytes())
            .map_err(failed)?;
        table
            .write_all(&record.thread.to_le_bytes())
            .map_err(failed)?;
        if record.flags & PAGE_ENTRY_STORED != 0 {
            // SAFETY: the copy was made for this touch.
            let content = unsafe { engine.pages.pool.content(touch.copy) };
            entry.write_all(content).map_err(failed)?;
        }
        if record.flags & PAGE_EXIT_STORED != 0 {
            // SAFETY: the page is readable.
            let page = unsafe { at_exit(engine, touch) };
            exit.write_all(page).map_err(failed)?;
        }
    }
    for mut file in [table, entry, exit] {
        file.flush().map_err(failed)?;
    }
    // Where the program has the state of `random` itself, asking writes to it.
    let kept = end.c_library.map(|library| library.ask());
    let trace = level.trace.as_ref().filter(|_| end.refused.is_none());
    if let Some((_, pages)) = trace {
        let mut file = BufWriter::with_capacity(1 << 16, create("trace")?);
        for page in pages {
            file.write_all(&page.to_le_bytes()).map_err(failed)?;
        }
        file.flush().map_err(failed)?;
    }
    let blocks = match end.refused {
        None => &level.blocks[..],
        Some(_) => &[],
    };
    if !blocks.is_empty() {
        let bytes: Vec<&[u8]> = blocks.iter().map(|b| &b.1[..]).collect();
        files::write(files.part("blocks"), bytes.concat()).map_err(failed)?;
    }
    let (known, answers) = clock::read_answers(level.clocks.1, level.clocks.0.clone());
    let answers = match end.refused {
        None => answers,
        Some(_) => Vec::new(),
    };
    if !answers.is_empty() {
        files::write(files.part("answers"), &answers).map_err(failed)?;
    }
    let mut fresh = level.fresh.clone();
    let stack = level.mappings.iter().find(|m| m.path == mappings::STACK);
    if let (Some(before), Some(start)) = (stack, mappings::stack_start())
        && start < before.start
    {
        fresh.push((start, before.start));
    }
    let calls = level
        .calls
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0);
    let raw = RawCapture {
        version: CAPTURE_VERSION,
        key: end.key.clone(),
        invocation: level.invocation,
        process: register::process_number().unwrap_or_default(),
        refused: end.refused,
        end: end.end,
        page_size: PAGE as u64,
        entry: level.entry,
        thread_pointer: thread::pointer() as u64,
        thread_number: thread::id(),
        program_break: level.program_break,
        freed: malloc::freed_since(level.deferred),
        images: level.images.clone(),
        mappings: level.mappings.clone(),
        fresh,
        heap: heap::heap_range(),
        interposed: end.interposed.to_vec(),
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
        openmp: level.threads.map(|threads| OpenMp {
            runtime: find_runtime_file(level),
            threads,
            locks: level.locks.clone(),
            lock_words: lock_words(level),
            blocks: blocks.iter().map(|b| b.0).collect(),
        }),
        trace: trace.map(|(trace, _)| trace.clone()),
        answers: Some(known),
        c_library: level.c_library.clone().zip(kept).map(<[CLibrary; 2]>::from),
    };
    let text = serde_json::to_vec(&raw).map_err(|e| {
        let mut images = raw.images.iter();
        match images.find(|image| image.path.to_str().is_none()) {
            Some(image) => format!(
                "cannot keep a capture: the program has loaded {:?}, whose name is not UTF-8: give it another",
                image.path
            ),
            None => format!("cannot keep a capture: {e}"),
        }
    })?;
    files::write(files.part("json"), text).map_err(failed)?;
    let more = [
        trace.map(|_| "trace"),
        (!blocks.is_empty()).then_some("blocks"),
        (!answers.is_empty()).then_some("answers"),
    ];
    let more = more.into_iter().flatten();
    for extension in ["table", "entry", "exit"].into_iter().chain(more) {
        files.publish(extension)?;
    }
    files.publish("json")
}

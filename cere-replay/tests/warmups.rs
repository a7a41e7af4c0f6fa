//! The state of the caches before a repetition, and what is said of the measurement.

mod common;

use cere_format::capture::{
    PAGE_ABSENT, PAGE_EXIT_STORED, PAGE_TOUCHED, PAGE_WRITTEN, PageTrace, TRACE_AGE_SHIFT,
    TRACE_WRITTEN,
};
use cere_format::package::{MEMBER_TRACE, Manifest};
use cere_format::replay::{
    CacheLevel, Repetitions, ReplayOutcome, ReplayPlan, SetAside, Verdict, Warmup,
};
use cere_replay::{Options, Replay};
use common::*;
use std::path::Path;
use std::process::Command;

const CHAIN: u64 = 0x2200_0000_0000;
const PAGES: u64 = 32;

/// Follows a chain through all lines of 128 KiB: one read after the other, in an order that nothing guesses.
const CHASE: &str = r#"
extern "C" { extern long table[512];
void invoke(void *) __asm__("cere.u0.cere.invoke.0");
void invoke(void *) {
  long *at = (long *)0x220000000000;
  do at = *(long *volatile *)at; while (at != (long *)0x220000000000);
  table[0]++;
} }
"#;

/// The pages of the chain.
fn chain() -> Vec<Page> {
    const LINE: u64 = 64;
    let lines = PAGES * 4096 / LINE;
    let mut content = vec![0u8; (PAGES * 4096) as usize];
    // The successor of a full-period generator modulo a power of two.
    let next = |at: u64| (at * 1_664_525 + 1_013_904_223) % lines;
    for at in 0..lines {
        let place = (at * LINE) as usize;
        content[place..place + 8].copy_from_slice(&(CHAIN + next(at) * LINE).to_le_bytes());
    }
    let pages = content.chunks(4096).enumerate();
    pages
        .map(|(number, content)| Page {
            address: CHAIN + number as u64 * 4096,
            flags: 1,
            entry: content.to_vec(),
            exit: Vec::new(),
        })
        .collect()
}

/// A package of `source` with these pages from [`CHAIN`] on, a word of data that it sets to 1, and a stack.
fn packed(at: &Path, mut manifest: Manifest, source: &str, mut pages: Vec<Page>) {
    let data = mapping(CHAIN, CHAIN + PAGES * 4096, "rw-p", "");
    manifest.mappings.insert(0, data);
    pages.push(Page {
        address: DATA,
        flags: 3,
        entry: words(&[0]),
        exit: words(&[1]),
    });
    pages.push(stack(1));
    package(at, &manifest, source, &pages);
}

/// A package whose region follows the chain.
fn chase(at: &Path, change: impl FnOnce(&mut Manifest)) {
    let mut manifest = manifest();
    change(&mut manifest);
    packed(at, manifest, CHASE, chain());
}

fn trace(pages: u64) -> Option<PageTrace> {
    Some(PageTrace {
        pages,
        touched: pages,
        slots: 64,
        faults: pages,
        began: "the program's start".to_owned(),
        cut: None,
    })
}

fn write_trace(at: &Path, entries: &[u64]) {
    let bytes: Vec<u8> = entries.iter().flat_map(|e| e.to_le_bytes()).collect();
    std::fs::write(at.join(MEMBER_TRACE), bytes).unwrap();
}

fn replayed(at: &Path, options: &Options, warmup: Warmup) -> Replay {
    let mut options = options.clone();
    options.settings.warmup = Some(warmup);
    options.settings.repetitions = Repetitions::exactly(15);
    let result = replay(at, &options).unwrap();
    assert_eq!(result.verdict, Verdict::Exact, "{}", result.reason);
    assert!(result.repeatable);
    assert_eq!(result.warmup, warmup);
    result
}

/// The chain fits in every second level cache and does not fit in the first: each state is told from the others by
/// the least time of one run after the other, whatever the machine.
#[test]
fn each_state_is_what_it_says() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let at = directory.path().join("p");
    let of_chain = || (0..PAGES).map(|p| CHAIN + p * 4096);
    chase(&at, |m| m.trace = trace(PAGES));
    let least = |how| replayed(&at, &options, how).cycles_min;
    write_trace(&at, &of_chain().collect::<Vec<u64>>());
    let warm = least(Warmup::WorkingSet);
    let cold = least(Warmup::Cold);
    assert!(cold > 2 * warm, "cold {cold}, after a run {warm}");
    let traced = least(Warmup::PageTrace);
    assert!(cold > 2 * traced, "cold {cold}, after the trace {traced}");
    // Pages that were not touched before entry are not in the caches.
    let others = of_chain().map(|p| (p + (1 << 40)) | TRACE_WRITTEN);
    write_trace(&at, &others.collect::<Vec<u64>>());
    let untouched = least(Warmup::PageTrace);
    assert!(untouched > 2 * traced, "{untouched} {traced}");
    if Path::new("/sys/devices/system/cpu/cpu0/cache/index3").is_dir() {
        // Not that it is faster than cold: where the last level is large, what a core has dropped can take longer to come
        // back than what nobody holds (a chain's line took 430 cycles after a walk over 64 MiB, 220 after a flush).
        // A core that shares its second level is slower for seconds at a time: the least of takes in alternation.
        let takes = [(); 4].map(|()| {
            let last = least(Warmup::Partial(CacheLevel::Llc));
            (last, least(Warmup::WorkingSet))
        });
        let last = takes.iter().map(|t| t.0).min().unwrap();
        let warm = takes.iter().map(|t| t.1).fold(warm, u64::min);
        assert!(
            last > 2 * warm,
            "from the last level {last}, after a run {warm}"
        );
    }
    // Without flushing by address: the same state by walking.
    // SAFETY: everybody in this process reads the environment through the standard library, which locks it.
    unsafe { std::env::set_var("CERE_REPLAY_NO_FLUSH", "1") };
    let walked = least(Warmup::Cold);
    // SAFETY: everybody in this process reads the environment through the standard library, which locks it.
    unsafe { std::env::remove_var("CERE_REPLAY_NO_FLUSH") };
    assert!(walked > 2 * warm, "walked {walked}, after a run {warm}");
}

/// A line that was touched long ago has left the caches where others use them, one that was touched just now has not, and where
/// nobody else does both are there.
#[test]
fn others_replace_what_is_old() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(directory.path());
    let at = directory.path().join("p");
    let keep = directory.path().join("keep");
    chase(&at, |m| m.trace = trace(PAGES));
    options.settings.warmup = Some(Warmup::PageTrace);
    options.settings.repetitions = Repetitions::exactly(15);
    options.keep = Some(keep.clone());
    let aged = |age: u64| (0..PAGES).map(move |p| (CHAIN + p * 4096) | age << TRACE_AGE_SHIFT);
    let least = |age: u64, survival: Option<u64>| {
        write_trace(&at, &aged(age).collect::<Vec<u64>>());
        if !keep.exists() {
            replay(&at, &options).unwrap();
        }
        let plan = keep.join("plan.json");
        let mut changed: ReplayPlan =
            serde_json::from_slice(&std::fs::read(&plan).unwrap()).unwrap();
        changed.survival_ns = survival;
        std::fs::write(&plan, serde_json::to_vec(&changed).unwrap()).unwrap();
        write_trace(&keep.join("package"), &aged(age).collect::<Vec<u64>>());
        let mut command = Command::new("./replay");
        run(command
            .current_dir(&keep)
            .env("CERE_REPLAY_PLAN", "plan.json"));
        let outcome = std::fs::read(keep.join("outcome.json")).unwrap();
        let outcome: ReplayOutcome = serde_json::from_slice(&outcome).unwrap();
        *outcome.cycles.iter().min().unwrap()
    };
    let oldest = u64::MAX >> TRACE_AGE_SHIFT;
    let millisecond = Some(1_000_000);
    let young = least(0, millisecond);
    let old = least(oldest, millisecond);
    let alone = least(oldest, None);
    assert!(old > 2 * young, "{old} {young}");
    assert!(old > 2 * alone, "{old} {alone}");
}

/// Writes a word to each page of memory that was not there at entry, and notes whether page faults were taken.
const FIRST: &str = r#"
extern "C" { extern long table[512];
void invoke(void *) __asm__("cere.u0.cere.invoke.0");
static long faults() {
  long usage[18], result;
  __asm__ volatile("syscall" : "=a"(result) : "0"(98L), "D"(1L), "S"(usage) : "rcx", "r11", "memory");
  return usage[8];
}
void invoke(void *) {
  long before = faults(), sum = 0;
  for (long *at = (long *)0x220000000000; at < (long *)0x220000020000; at += 512) sum += *at, *at = 7;
  table[0] = sum == 0 && faults() - before >= 32;
} }
"#;

#[test]
fn memory_that_was_not_there_faults_in_every_repetition() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let at = directory.path().join("p");
    let mut manifest = manifest();
    manifest.trace = trace(1);
    let mut exit = vec![0; 4096];
    exit[0] = 7;
    let fresh = |number| Page {
        address: CHAIN + number * 4096,
        flags: PAGE_TOUCHED | PAGE_WRITTEN | PAGE_EXIT_STORED | PAGE_ABSENT,
        entry: Vec::new(),
        exit: exit.clone(),
    };
    packed(&at, manifest, FIRST, (0..PAGES).map(fresh).collect());
    // A page that was unmapped before entry may be in the trace.
    write_trace(&at, &[CHAIN]);
    for warmup in [Warmup::PageTrace, Warmup::WorkingSet, Warmup::Cold] {
        let result = replayed(&at, &options, warmup);
        assert_eq!(result.set_aside.faults, 0, "{warmup:?}");
    }
}

#[test]
fn the_default_is_the_trace_or_a_word_that_there_is_none() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let at = directory.path().join("p");
    chase(&at, |_| {});
    let result = replay(&at, &options).unwrap();
    assert_eq!(result.warmup, Warmup::WorkingSet);
    let told = |r: &Replay, part: &str| r.notes.iter().any(|n| n.contains(part));
    assert!(told(&result, "no page trace"), "{:?}", result.notes);
    let mut asked = options.clone();
    asked.settings.warmup = Some(Warmup::PageTrace);
    let error = replay(&at, &asked).unwrap_err().to_string();
    assert!(error.contains("no page trace") && error.contains("cere capture"));

    // Captured pages, some written, code, and pages that the package does not have.
    chase(&at, |m| m.trace = trace(4));
    write_trace(
        &at,
        &[
            0x7000_0000_0000,
            CHAIN,
            CODE | TRACE_WRITTEN,
            DATA | TRACE_WRITTEN,
        ],
    );
    let result = replay(&at, &options).unwrap();
    assert_eq!(result.verdict, Verdict::Exact, "{}", result.reason);
    assert_eq!(result.warmup, Warmup::PageTrace);
    assert!(!told(&result, "no page trace"));
}

#[test]
fn traces_that_lie() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let at = directory.path().join("p");
    chase(&at, |m| m.trace = trace(2));
    let message = |entries: &[u64], cut: usize| {
        write_trace(&at, entries);
        let file = at.join(MEMBER_TRACE);
        let bytes = std::fs::read(&file).unwrap();
        std::fs::write(&file, &bytes[..bytes.len() - cut]).unwrap();
        replay(&at, &options).unwrap_err().to_string()
    };
    for (entries, cut, part) in [
        (&[CHAIN, DATA][..], 3, "cut short: 13 bytes"),
        (&[CHAIN], 0, "1 of 2 pages"),
        (&[CHAIN, CHAIN | TRACE_WRITTEN], 0, "twice"),
        (&[CHAIN, DATA + 8], 0, "no page"),
    ] {
        let message = message(entries, cut);
        assert!(message.contains(part), "{message}");
    }
    // Announced and not there.
    std::fs::remove_file(at.join(MEMBER_TRACE)).unwrap();
    let message = replay(&at, &options).unwrap_err().to_string();
    assert!(message.contains("0 of 2 pages"), "{message}");
}

#[test]
fn repetitions_and_what_they_are_worth() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(directory.path());
    let at = directory.path().join("p");
    chase(&at, |_| {});
    let total = |r: &Replay| {
        let SetAside {
            faults,
            switches,
            migrations,
            stolen,
        } = r.set_aside;
        faults + switches + migrations + stolen
    };
    options.settings.repetitions = Repetitions::exactly(12);
    let result = replay(&at, &options).unwrap();
    if !result.disturbed {
        assert_eq!(result.cycles.len() as u64 + total(&result), 12);
    }
    assert!(
        result.seconds_min <= result.seconds_low && result.seconds_low <= result.seconds_median
    );
    assert!(result.seconds_median <= result.seconds_high);
    assert_eq!(result.batch, 1);
    options.settings.repetitions = Repetitions::exactly(1);
    let result = replay(&at, &options).unwrap();
    assert_eq!((result.cycles.len(), result.confidence), (1, 0.0));
    options.settings.repetitions = Repetitions::default();
    let result = replay(&at, &options).unwrap();
    assert!(result.cycles.len() as u64 + total(&result) >= 3);
}

/// A region that returns at once, and one of some hundred cycles.
#[test]
fn regions_too_short_for_the_clock() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let at = directory.path().join("p");
    let source = |body: &str| {
        format!(
            "extern \"C\" {{ extern long table[512];\n\
             void invoke(void *) __asm__(\"cere.u0.cere.invoke.0\");\n\
             void invoke(void *) {{ {body} }} }}"
        )
    };
    package(&at, &manifest(), &source(""), &sum_pages(0));
    let result = replay(&at, &options).unwrap();
    assert_eq!(result.verdict, Verdict::Exact, "{}", result.reason);
    package(
        &at,
        &manifest(),
        &source("table[0] = 0; for (int i = 1; i < 40; i++) table[0] += table[i] * 2;"),
        &sum_pages(1560),
    );
    let result = replay(&at, &options).unwrap();
    assert_eq!(result.verdict, Verdict::Exact, "{}", result.reason);
    assert!(result.cycles_median < 100_000, "{:?}", result.cycles);
    if result.batch > 1 {
        assert!(result.notes.iter().any(|n| n.contains("share a reading")));
        assert_eq!(result.warmup, Warmup::WorkingSet);
    }
}

/// Every page fault of the timed part is counted, and the memory that a region takes is there beforehand.
#[test]
fn page_faults_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let at = directory.path().join("p");
    let mut manifest = manifest();
    manifest.heap = (0x2100_0000_0000, 0x2100_4000_0000);
    let source = |body: &str| {
        format!(
            "extern \"C\" {{ extern long table[512];\n\
             void *malloc(unsigned long); int munmap(void *, unsigned long);\n\
             void invoke(void *) __asm__(\"cere.u0.cere.invoke.0\");\n\
             void invoke(void *) {{ volatile char *p = (char *)malloc(1 << 20); \
             for (int i = 0; i < 1 << 20; i += 4096) p[i] = 1; {body} table[0]++; }} }}"
        )
    };
    let mut pages = sum_pages(1);
    package(&at, &manifest, &source(""), &pages);
    let result = replay(&at, &options).unwrap();
    assert_eq!(result.verdict, Verdict::Exact, "{}", result.reason);
    assert_eq!(result.set_aside.faults, 0, "{:?}", result.set_aside);
    // Memory that the region gives back and takes again faults inside, every time.
    pages.insert(
        0,
        Page {
            address: 0x2000_0000_0000,
            flags: 3,
            entry: words(&[0]),
            exit: words(&[0]),
        },
    );
    manifest
        .mappings
        .insert(0, mapping(0x2000_0000_0000, 0x2000_0000_1000, "rw-p", ""));
    let body = "munmap((void *)0x200000000000, 4096); *(volatile long *)0x200000000000 = 0;";
    package(&at, &manifest, &source(body), &pages);
    let result = replay(&at, &options).unwrap();
    assert_eq!(result.verdict, Verdict::Exact, "{}", result.reason);
    assert!(result.disturbed, "{:?}", result.set_aside);
    let SetAside {
        faults,
        switches,
        migrations,
        stolen,
    } = result.set_aside;
    assert!(faults > 0 && faults + switches + migrations == 3 && stolen == 0);
    assert!(result.notes.iter().any(|n| n.contains("undisturbed")));
}

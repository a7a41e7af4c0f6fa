//! Replays that are forks of a process that keeps the captured state: what one of them does is not seen by the next.

mod common;

use cere_format::replay::Verdict;
use cere_replay::{Keepers, Options, Replay, ReplayError, build, manifest, run};
use cere_system::events::{Event, Events};
use common::{SUM, heard, manifest as of_sum, options, package, sum_pages};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

const READ_ONLY: u64 = 0x5555_5555_9000;

/// The code of a region, which reads what lies in a page that the invocation did not write.
const HEAD: &str = r#"
#include <fenv.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
extern "C" { extern long table[512]; long helper(long);
void invoke(void *) __asm__("cere.u0.cere.invoke.0");
void invoke(void *) { long *given = (long *)0x555555559000; CODE;
  for (int i = 1; i < 100; i++) table[0] += table[i] * given[i]; } }
"#;

/// A state with pages that are only read: the sum is right as long as the first one holds twos.
fn pages() -> Vec<common::Page> {
    let mut pages = sum_pages(9900);
    for (at, value) in [(1, 2), (2, 3), (3, 4)] {
        let page = common::Page {
            address: READ_ONLY + 4096 * (at as u64 - 1),
            flags: 1,
            entry: common::words(&[value; 512]),
            exit: Vec::new(),
        };
        pages.insert(at, page);
    }
    pages
}

/// A package directory for several units: they differ in their code alone, as variants do.
struct Variants<'a> {
    package: &'a Path,
    options: Options,
}

impl Variants<'_> {
    fn run(&self, code: &str) -> Result<Replay, ReplayError> {
        package(
            self.package,
            &of_sum(),
            &HEAD.replace("CODE", code),
            &pages(),
        );
        let manifest = manifest(self.package)?;
        let built = build(self.package, &manifest, &self.options)?;
        run::run(self.package, &manifest, &built, &self.options)
    }

    fn is_right(&self) {
        let replay = self.run("").unwrap();
        assert_eq!(replay.verdict, Verdict::Exact, "{}", replay.reason);
    }
}

fn children() -> Vec<u32> {
    let list = Command::new("pgrep")
        .args(["-P", &std::process::id().to_string()])
        .output();
    let list = String::from_utf8(list.unwrap().stdout).unwrap();
    list.lines().filter_map(|line| line.parse().ok()).collect()
}

/// The process that keeps the state, by the name of its executable.
fn keepers() -> Vec<u32> {
    let name = |pid: &u32| std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let keeper = |pid: &u32| name(pid).extension().is_some_and(|e| e == "keeper");
    children().into_iter().filter(keeper).collect()
}

/// One test, because it looks at the process's children.
#[test]
fn what_one_replay_does_the_next_does_not_see() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().join("package");
    let mut options = options(directory.path());
    options.keepers = Some(Arc::new(Keepers::default()));
    options.events = Events::new(|event| panic!("{event:?}"));
    options.settings.timeout = Some(Duration::from_secs(5));
    let variants = Variants {
        package: &at,
        options,
    };
    variants.is_right();
    let first = keepers();
    assert_eq!(first.len(), 1);

    // Writes to what the invocation only read: also where the value is the one before.
    let replay = variants.run("given[511] = 3").unwrap();
    assert_eq!(replay.verdict, Verdict::Different);
    assert!(
        replay.reason.contains("0x555555559ff8"),
        "{}",
        replay.reason
    );
    variants.is_right();
    let replay = variants.run("given[7] = 5; given[7] = 2").unwrap();
    assert_eq!(replay.verdict, Verdict::Exact, "{}", replay.reason);
    let replay = variants
        .run("memset(given, 2, 4096); for (int i = 0; i < 512; i++) given[i] = 2")
        .unwrap();
    assert_eq!(replay.verdict, Verdict::Exact, "{}", replay.reason);

    // Memory that is dropped reads as the kernel's page of zeros, which all processes share; memory that is moved is shared with
    // the process that keeps it, but lies elsewhere.
    for change in [
        "madvise(given + 512, 4096, MADV_DONTNEED); (void)*(volatile long *)(given + 512)",
        "syscall(SYS_mmap, given + 512, 4096, 3, 0x32, -1, 0); (void)*(volatile long *)(given + 512)",
        "syscall(SYS_mremap, given + 1024, 4096, 4096, 7, given + 512); (void)*(volatile long *)(given + 512)",
    ] {
        let replay = variants.run(change).unwrap();
        assert_eq!(
            replay.verdict,
            Verdict::Different,
            "{change}: {}",
            replay.reason
        );
        variants.is_right();
    }

    // Crashes, ends, hangs.
    let crash = variants
        .run("*(volatile long *)16 = 1")
        .unwrap_err()
        .to_string();
    assert!(crash.contains("0x10"), "{crash}");
    variants.is_right();
    let ended = variants.run("_exit(3)").unwrap_err().to_string();
    assert!(ended.contains("exit code 3"), "{ended}");
    let late = variants
        .run("for (volatile int i = 0;; i++) { }")
        .unwrap_err();
    assert!(matches!(late, ReplayError::Late { .. }), "{late}");
    variants.is_right();

    // Changes that a process keeps.
    for code in [
        "for (int i = 0; i < 100; i++) close(i)",
        "signal(SIGSEGV, SIG_IGN); signal(SIGSYS, SIG_IGN); signal(SIGTERM, SIG_IGN)",
        "fesetround(FE_UPWARD); feenableexcept(FE_ALL_EXCEPT)",
        "munmap(given, 4096); mmap(given, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0)",
        "mprotect(given, 4096, PROT_NONE); mprotect(given, 4096, PROT_READ)",
        "setenv(\"OMP_NUM_THREADS\", \"7\", 1); chdir(\"/\"); nice(3)",
        "for (int i = 0; i < 64; i++) memset(malloc(1 << 20), 1, 1 << 20)",
    ] {
        // What comes of it is the variant's own.
        let _ = variants.run(code);
        variants.is_right();
    }
    assert_eq!(keepers(), first);

    // A killed process costs a new one.
    let killed = Command::new("kill")
        .args(["-9", &first[0].to_string()])
        .status();
    assert!(killed.unwrap().success());
    variants.is_right();
    let second = keepers();
    assert!(second.len() == 1 && second != first, "{second:?}");

    drop(variants);
    assert!(keepers().is_empty());
}

#[test]
fn what_is_too_large_to_be_kept_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().join("package");
    package(&at, &of_sum(), SUM, &sum_pages(9900));
    let mut options = options(directory.path());
    let manifest = manifest(&at).unwrap();
    let built = build(&at, &manifest, &options).unwrap();
    options.keepers = Some(Arc::new(Keepers::with_bound(0)));
    let (events, said) = heard();
    options.events = events;
    for _ in 0..2 {
        let replay = run::run(&at, &manifest, &built, &options).unwrap();
        assert_eq!(replay.verdict, Verdict::Exact, "{}", replay.reason);
    }
    let said = said.lock().unwrap();
    let [Event::Note(note)] = &said[..] else {
        panic!("{said:?}");
    };
    assert!(note.contains("restored for each replay"), "{note}");
}

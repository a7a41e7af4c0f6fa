//! Packages made by hand: units whose symbols are already bound, and a plugin that does nothing.
#![allow(dead_code, reason = "each test file uses its part")]

use cere_format::build::{Language, Region};
use cere_format::capture::{EntryState, Mapping};
use cere_format::package::*;
use cere_format::profile::RegionKey;
use cere_format::replay::Repetitions;
use cere_replay::{Keepers, Options, Replay, ReplayError};
use cere_system::events::{Event, Events};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub const STACK: u64 = 0x7fff_ffff_0000;
pub const DATA: u64 = 0x5555_5555_8000;
pub const CODE: u64 = 0x5555_5555_5000;

/// A plugin that changes nothing, and knows of no shapes of variables.
const PLUGIN: &str = r#"
#include <stdio.h>
#include <stdlib.h>
struct info { unsigned version; const char *name, *number; void (*f)(void *); void *g; };
static void nothing(void *p) { (void)p; }
struct info llvmGetPassPluginInfo(void) {
  const char *shapes = getenv("CERE_SHAPES");
  FILE *f = shapes && *shapes ? fopen(shapes, "w") : 0;
  if (f) { fputs("{}", f); fclose(f); }
  struct info i = {2, "none", "0", nothing, 0};
  return i;
}
"#;

/// Events, and those that came.
pub fn heard() -> (Events, Arc<Mutex<Vec<Event>>>) {
    let said: Arc<Mutex<Vec<Event>>> = Arc::default();
    let heard = said.clone();
    let events = Events::new(move |event| heard.lock().unwrap().push(event));
    (events, said)
}

/// Replays a package in a process of its own, and as a fork of one that keeps its state: both have to say the same.
pub fn replay(package: &Path, options: &Options) -> Result<Replay, ReplayError> {
    let own = cere_replay::replay(package, options);
    let (events, said) = heard();
    let kept = Options {
        keepers: Some(Arc::new(Keepers::default())),
        events,
        ..options.clone()
    };
    match (&own, cere_replay::replay(package, &kept)) {
        (Ok(own), Ok(kept)) => {
            assert_eq!(own.verdict, kept.verdict, "{}\n{}", own.reason, kept.reason);
            // Addresses in libraries are others each time.
            let counts = |replay: &Replay| {
                let found = replay.comparison.clone()?;
                let (same, differ) = (
                    (found.compared, found.changed),
                    (found.different_words, found.floating_words),
                );
                Some((same, differ, found.masked, found.same_end))
            };
            assert_eq!(counts(own), counts(&kept));
            assert_eq!(own.repeatable, kept.repeatable);
            assert_eq!(said.lock().unwrap()[..], []);
        }
        (Err(own), Err(kept)) => assert_eq!(own.to_string(), kept.to_string()),
        (own, kept) => panic!("{own:?} alone, {kept:?} as a fork"),
    }
    own
}

pub fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

pub fn runtime() -> PathBuf {
    if let Some(path) = std::env::var_os("CERE_TEST_RUNTIME") {
        return path.into();
    }
    cere_testing::built::part("libcere_runtime.a")
}

pub struct Page {
    pub address: u64,
    pub flags: u32,
    pub entry: Vec<u8>,
    pub exit: Vec<u8>,
}

pub fn mapping(start: u64, end: u64, permissions: &str, path: &str) -> Mapping {
    Mapping {
        start,
        end,
        permissions: permissions.to_owned(),
        offset: 0,
        path: path.to_owned(),
        huge: false,
    }
}

pub fn manifest() -> Manifest {
    Manifest {
        of_thread: None,
        beside: 0,
        run: None,
        openmp: None,
        answers: None,
        mpi: None,
        c_library: None,
        version: PACKAGE_VERSION,
        name: "sum:1".to_owned(),
        region_name: "sum".to_owned(),
        region: Region {
            kind: Default::default(),
            index: 0,
            function: "sum".to_owned(),
            symbol: "sum".to_owned(),
            file: "sum.c".into(),
            line: 1,
            ordinal: 1,
            outlined: true,
            reason: None,
            live_ins: Vec::new(),
            exits: 1,
            inside: None,
        },
        key: RegionKey {
            unit: "0".repeat(32),
            index: 0,
        },
        invocation: 1,
        machine: Machine {
            architecture: "x86_64".to_owned(),
            cpu: String::new(),
            features: Vec::new(),
            kernel: String::new(),
        },
        in_vivo: None,
        represents: None,
        trace: None,
        page_size: 4096,
        entry: EntryState {
            stack_pointer: STACK - 4096,
            arguments: STACK - 4096 + 64,
            arguments_size: 16,
            mxcsr: 0x1f80,
            x87_control: 0x37f,
            frames: None,
        },
        unwound: false,
        image: PackageImage {
            name: "sum".to_owned(),
            range: (CODE, DATA + 4096),
            low: false,
            shared: false,
            tls: None,
        },
        units: vec![PackageUnit {
            id: "0".repeat(32),
            source: "sum.c".to_owned(),
            language: Language::C,
            codegen: vec!["-O2".to_owned(), "-fPIE".to_owned()],
            overridden: vec![],
        }],
        variables: vec![Variable {
            name: "table".to_owned(),
            unit: None,
            address: DATA,
            size: 4096,
            untouched: false,
        }],
        functions: vec![Function {
            name: "helper".to_owned(),
            unit: None,
            address: CODE + 0x100,
            size: 16,
            other_image: false,
            ir: false,
        }],
        absent: Vec::new(),
        fresh_libraries: Vec::new(),
        copied: Vec::new(),
        frames: Vec::new(),
        labels: Vec::new(),
        captured_code: None,
        library_symbols: Vec::new(),
        libraries: vec!["libc.so.6".to_owned()],
        library_directories: Vec::new(),
        mappings: vec![
            mapping(CODE, CODE + 4096, "r-xp", "/sum"),
            mapping(DATA, DATA + 4096, "rw-p", "/sum"),
            mapping(DATA + 4096, DATA + 8192, "rw-p", "[heap]"),
            mapping(STACK - 8192, STACK, "rw-p", "[stack]"),
        ],
        fresh: Vec::new(),
        heap: (0, 0),
        program_break: 0,
        freed: Vec::new(),
        thread: None,
        interposed: Vec::new(),
        masks: Vec::new(),
        system_calls: Vec::new(),
        pages: 2,
        members: Vec::new(),
    }
}

pub fn package(directory: &Path, manifest: &Manifest, source: &str, pages: &[Page]) {
    std::fs::create_dir_all(directory.join("units")).unwrap();
    let (mut table, mut entry, mut exit) = (Vec::new(), Vec::new(), Vec::new());
    for page in pages {
        let mut flags = page.flags;
        if !page.entry.is_empty() {
            flags |= 4;
            entry.extend(&page.entry);
        }
        if !page.exit.is_empty() {
            flags |= 8;
            exit.extend(&page.exit);
        }
        table.extend(page.address.to_le_bytes());
        table.extend(flags.to_le_bytes());
        table.extend(0u32.to_le_bytes());
    }
    std::fs::write(directory.join(MEMBER_TABLE), table).unwrap();
    std::fs::write(directory.join(MEMBER_ENTRY), entry).unwrap();
    std::fs::write(directory.join(MEMBER_EXIT), exit).unwrap();
    std::fs::write(
        directory.join(MEMBER_MANIFEST),
        serde_json::to_vec(manifest).unwrap(),
    )
    .unwrap();
    let c = directory.join("unit.cpp");
    std::fs::write(&c, source).unwrap();
    run(Command::new("clang++-22")
        .args(["-O1", "-fPIE", "-emit-llvm", "-c"])
        .arg(&c)
        .arg("-o")
        .arg(directory.join(manifest.units[0].member())));
}

pub fn words(values: &[u64]) -> Vec<u8> {
    let mut bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    bytes.resize(4096, 0);
    bytes
}

pub fn options(directory: &Path) -> Options {
    let c = directory.join("plugin.c");
    std::fs::write(&c, PLUGIN).unwrap();
    let plugin = directory.join("plugin.so");
    run(Command::new("clang-22")
        .args(["-shared", "-fPIC"])
        .arg(&c)
        .arg("-o")
        .arg(&plugin));
    Options {
        settings: cere_replay::Settings {
            flags: Vec::new(),
            passes: None,
            repetitions: Repetitions::exactly(3),
            warmup: None,
            operands: Vec::new(),
            compare: true,
            team: Default::default(),
            energy: None,
            cross: None,
            beside: None,
            sandbox: cere_sandbox::Sandbox::new(),
            tolerance: Default::default(),
            timeout: Some(Duration::from_secs(20)),
        },
        keep: None,
        cache: directory.join("cache"),
        plugin,
        runtime: runtime(),
        edited: Vec::new(),
        keepers: None,
        elsewhere: false,
        ablation: None,
        memory: Default::default(),
        events: Events::ignored(),
    }
}

pub fn stack(flags: u32) -> Page {
    Page {
        address: STACK - 4096,
        flags: flags | 64,
        entry: words(&[]),
        exit: words(&[]),
    }
}

pub const SUM: &str = r#"
extern "C" { extern long table[512]; long helper(long);
void invoke(void *) __asm__("cere.u0.cere.invoke.0");
void invoke(void *) { for (int i = 1; i < 100; i++) table[0] += table[i] * 2; } }
"#;

pub fn sum_pages(result: u64) -> Vec<Page> {
    let mut values: Vec<u64> = (0..512).collect();
    let entry = words(&values);
    values[0] = result;
    vec![
        Page {
            address: DATA,
            flags: 3,
            entry,
            exit: words(&values),
        },
        stack(1),
    ]
}

//! Replays of packages made by hand: units whose symbols are already bound, and a plugin that does nothing.

use cere_format::build::{Language, Region};
use cere_format::capture::{EntryState, Mapping};
use cere_format::package::*;
use cere_format::profile::RegionKey;
use cere_format::replay::Verdict;
use cere_replay::{Options, ReplayError, replay};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const STACK: u64 = 0x7fff_ffff_0000;
const DATA: u64 = 0x5555_5555_8000;
const CODE: u64 = 0x5555_5555_5000;

const PLUGIN: &str = r#"
struct info { unsigned version; const char *name, *number; void (*f)(void *); void *g; };
static void nothing(void *p) { (void)p; }
struct info llvmGetPassPluginInfo(void) { struct info i = {2, "none", "0", nothing, 0}; return i; }
"#;

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn runtime(directory: &Path) -> PathBuf {
    if let Some(path) = std::env::var_os("CERE_TEST_RUNTIME") {
        return path.into();
    }
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = directory.join("target");
    let _ = &target;
    let shared = std::env::temp_dir().join("cere-replay-test-runtime");
    run(Command::new(env!("CARGO"))
        .current_dir(manifest.parent().unwrap())
        .args(["build", "--release", "-p", "cere-runtime"])
        .env("CARGO_TARGET_DIR", &shared));
    shared.join("release/libcere_runtime.a")
}

struct Page {
    address: u64,
    flags: u32,
    entry: Vec<u8>,
    exit: Vec<u8>,
}

fn mapping(start: u64, end: u64, permissions: &str, path: &str) -> Mapping {
    Mapping {
        start,
        end,
        permissions: permissions.to_owned(),
        offset: 0,
        path: path.to_owned(),
        huge: false,
    }
}

fn manifest() -> Manifest {
    Manifest {
        version: PACKAGE_VERSION,
        name: "sum:1".to_owned(),
        region_name: "sum".to_owned(),
        region: Region {
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
        page_size: 4096,
        entry: EntryState {
            stack_pointer: STACK - 4096,
            arguments: STACK - 4096 + 64,
            arguments_size: 16,
            mxcsr: 0x1f80,
            x87_control: 0x37f,
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
        }],
        variables: vec![Variable {
            name: "table".to_owned(),
            unit: None,
            address: DATA,
            size: 4096,
        }],
        functions: vec![Function {
            name: "helper".to_owned(),
            unit: None,
            address: CODE + 0x100,
            size: 16,
            other_image: false,
        }],
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
        masks: Vec::new(),
        system_calls: Vec::new(),
        pages: 2,
        members: Vec::new(),
    }
}

fn package(directory: &Path, manifest: &Manifest, source: &str, pages: &[Page]) {
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

fn words(values: &[u64]) -> Vec<u8> {
    let mut bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    bytes.resize(4096, 0);
    bytes
}

fn options(directory: &Path) -> Options {
    let c = directory.join("plugin.c");
    std::fs::write(&c, PLUGIN).unwrap();
    let plugin = directory.join("plugin.so");
    run(Command::new("clang-22")
        .args(["-shared", "-fPIC"])
        .arg(&c)
        .arg("-o")
        .arg(&plugin));
    Options {
        flags: Vec::new(),
        passes: None,
        repetitions: 3,
        compare: true,
        tolerance: 1e-6,
        keep: None,
        cache: directory.join("cache"),
        plugin,
        runtime: runtime(directory),
        timeout: Duration::from_secs(20),
    }
}

fn stack(flags: u32) -> Page {
    Page {
        address: STACK - 4096,
        flags: flags | 64,
        entry: words(&[]),
        exit: words(&[]),
    }
}

const SUM: &str = r#"
extern "C" { extern long table[512]; long helper(long);
void invoke(void *) __asm__("cere.u0.cere.invoke.0");
void invoke(void *) { for (int i = 1; i < 100; i++) table[0] += table[i] * 2; } }
"#;

fn sum_pages(result: u64) -> Vec<Page> {
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

#[test]
fn exact_and_different() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let at = directory.path().join("p");
    package(&at, &manifest(), SUM, &sum_pages(9900));
    let result = replay(&at, &options).unwrap();
    assert_eq!(result.verdict, Verdict::Exact, "{}", result.reason);
    assert!(result.repeatable);
    assert_eq!(result.cycles.len(), 3);
    package(&at, &manifest(), SUM, &sum_pages(9901));
    let result = replay(&at, &options).unwrap();
    assert_eq!(result.verdict, Verdict::Different);
    assert!(result.reason.contains("table+0"), "{}", result.reason);
}

#[test]
fn stray_access_is_explained() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let at = directory.path().join("p");
    let source = SUM.replace("table[i] * 2", "table[600]");
    package(&at, &manifest(), &source, &sum_pages(9900));
    let Err(ReplayError::Run { message, .. }) = replay(&at, &options) else {
        panic!("it ran");
    };
    assert!(message.contains("[heap]"), "{message}");
}

#[test]
fn an_exception_leaves_the_region() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let at = directory.path().join("p");
    let mut manifest = manifest();
    manifest.unwound = true;
    manifest.libraries.insert(0, "libstdc++.so.6".to_owned());
    let source = r#"
extern "C" { extern long table[512]; long helper(long);
void invoke(void *) __asm__("cere.u0.cere.invoke.0");
__attribute__((noinline)) void thrower(long x) { if (x > 50) throw 7; }
void invoke(void *) { for (int i = 1; i < 100; i++) { thrower(i); table[0] = i; } } }
"#;
    package(&at, &manifest, source, &sum_pages(50));
    let result = replay(&at, &options).unwrap();
    assert_eq!(result.verdict, Verdict::Exact, "{}", result.reason);
}

#[test]
fn old_function_addresses_work() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let at = directory.path().join("p");
    let source = r#"
extern "C" { extern long table[512];
long helper(long x) { return x * 3; }
void invoke(void *) __asm__("cere.u0.cere.invoke.0");
void invoke(void *) { table[0] = ((long (*)(long))table[511])(14); } }
"#;
    let mut pages = sum_pages(42);
    let data = &mut pages[0];
    for bytes in [&mut data.entry, &mut data.exit] {
        bytes[511 * 8..].copy_from_slice(&(CODE + 0x100).to_le_bytes());
    }
    package(&at, &manifest(), source, &pages);
    let result = replay(&at, &options).unwrap();
    assert_eq!(result.verdict, Verdict::Exact, "{}", result.reason);
}

#[test]
fn rejected_flags_show_the_compilers_message() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(directory.path());
    let at = directory.path().join("p");
    package(&at, &manifest(), SUM, &sum_pages(9900));
    options.flags = vec!["-march=nonsense".to_owned()];
    let error = replay(&at, &options).unwrap_err().to_string();
    assert!(error.contains("nonsense"), "{error}");
}

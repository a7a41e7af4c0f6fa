//! Replays of packages made by hand: thread-locals, the region heap, captured code, mappings.

use crate::common;

use cere_format::answers::{Answers, Buffering, Head, Stream, TEXT_AFTER, TEXT_BEFORE};
use cere_format::package::{
    Function, LibrarySymbol, LibrarySymbolKind, MEMBER_ANSWERS, Mask, TlsBlock, TlsVariable,
};
use cere_format::replay::{Verdict, left_out};
use cere_replay::SameCode;
use common::*;
use std::process::Command;

const HEAP: u64 = 0x2100_0000_0000;

fn function(name: &str, address: u64, size: u64) -> Function {
    Function {
        name: name.to_owned(),
        unit: None,
        address,
        size,
        other_image: false,
        ir: false,
    }
}

/// A unit whose region runs `body`.
fn unit(before: &str, body: &str) -> String {
    format!(
        "extern \"C\" {{ extern long table[512]; {before}\n\
         void invoke(void *) __asm__(\"cere.u0.cere.invoke.0\");\n\
         void invoke(void *) {{ {body} }} }}"
    )
}

/// A page of `table` with these words changed by the region.
fn table(entry: &[(usize, u64)], exit: &[(usize, u64)]) -> Page {
    let mut values = [0u64; 512];
    for (at, value) in entry {
        values[*at] = *value;
    }
    let before = words(&values);
    for (at, value) in exit {
        values[*at] = *value;
    }
    Page {
        address: DATA,
        flags: 3,
        entry: before,
        exit: words(&values),
    }
}

fn code(bytes: &[(usize, &[u8])]) -> Page {
    let mut page = vec![0; 4096];
    for (at, bytes) in bytes {
        page[*at..at + bytes.len()].copy_from_slice(bytes);
    }
    Page {
        address: CODE,
        flags: 1 | 16,
        entry: page,
        exit: Vec::new(),
    }
}

#[test]
fn thread_locals_lie_where_captured_code_expects_them() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let at = directory.path().join("p");
    let mut manifest = manifest();
    // 40 bytes aligned to 16 end at the thread pointer: the second variable is 16 bytes below it.
    let variable = |name: &str, offset| TlsVariable {
        name: name.to_owned(),
        unit: None,
        offset,
        size: 8,
    };
    manifest.image.tls = Some(TlsBlock {
        size: 40,
        align: 16,
        address: 0x1555_5000_0000,
        variables: vec![variable("count", 0), variable("second", 32)],
    });
    manifest.functions = vec![function("old", CODE + 0x100, 10)];
    let source = unit(
        "extern thread_local long count; long old(void); long new_count(void) { return ++count; }",
        "table[0] = new_count() + old();",
    );
    // mov rax, fs:[-16]; ret
    let old = [0x64, 0x48, 0x8b, 0x04, 0x25, 0xf0, 0xff, 0xff, 0xff, 0xc3];
    let pages = [
        code(&[(0x100, &old)]),
        table(&[], &[(0, 6 + 700)]),
        stack(1),
    ];
    package(&at, &manifest, &source, &pages);
    let mut block = [0u8; 40];
    block[0] = 5;
    block[32..34].copy_from_slice(&700u16.to_le_bytes());
    std::fs::write(at.join("tls.entry"), block).unwrap();
    block[0] = 6;
    std::fs::write(at.join("tls.exit"), block).unwrap();
    let result = replay(&at, &options).unwrap();
    assert_eq!(result.verdict, Verdict::Exact, "{}", result.reason);
    block[0] = 7;
    std::fs::write(at.join("tls.exit"), block).unwrap();
    let result = replay(&at, &options).unwrap();
    assert_eq!(result.verdict, Verdict::Different);
    assert!(result.reason.contains("count+0"), "{}", result.reason);
}

#[test]
fn functions_too_small_for_a_jump_are_reached() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let at = directory.path().join("p");
    let mut manifest = manifest();
    manifest.functions = vec![
        function("one", CODE + 0x100, 3),
        function("two", CODE + 0x103, 3),
        function("three", CODE + 0x106, 3),
    ];
    let source = unit(
        "long one(void) { return 1; } long two(void) { return 2; } long three(void) { return 3; }",
        "for (int i = 0; i < 3; i++) table[0] = table[0] * 10 + ((long (*)(void))table[9 + i])();",
    );
    let places = [(9, CODE + 0x100), (10, CODE + 0x103), (11, CODE + 0x106)];
    let pages = [table(&places, &[(0, 123)]), stack(1)];
    package(&at, &manifest, &source, &pages);
    let result = replay(&at, &options).unwrap();
    assert_eq!(result.verdict, Verdict::Exact, "{}", result.reason);
}

#[test]
fn captured_code_without_ir_runs_and_calls_back() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let at = directory.path().join("p");
    let mut manifest = manifest();
    manifest.functions = vec![
        function("old", CODE + 0x100, 5),
        function("back", CODE + 0x200, 16),
    ];
    let source = unit(
        "long old(long); long back(long x) { return x + 4; }",
        "table[0] = old(38);",
    );
    // jmp back; where `back` was there is old code, which must not run.
    let jump = [0xe9, 0xfb, 0, 0, 0];
    let pages = [
        code(&[(0x100, &jump), (0x200, &[0x0f, 0x0b])]),
        table(&[], &[(0, 42)]),
        stack(1),
    ];
    package(&at, &manifest, &source, &pages);
    let result = replay(&at, &options).unwrap();
    assert_eq!(result.verdict, Verdict::Exact, "{}", result.reason);
}

#[test]
fn the_region_heap_gives_the_captured_addresses_every_time() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let at = directory.path().join("p");
    let mut manifest = manifest();
    manifest.heap = (HEAP, HEAP + (1 << 30));
    let source = unit(
        "void *malloc(unsigned long); void free(void *); void *realloc(void *, unsigned long);
         void *calloc(unsigned long, unsigned long);",
        "long *a = (long *)malloc(24); table[0] = (long)a; free(a);
         table[1] = (long)malloc(20); free((void *)table[4]);
         long *b = (long *)realloc((void *)table[4], 64); table[2] = b[0] + b[1]; table[3] = (long)b;
         long *c = (long *)calloc(100000, 8); for (int i = 0; i < 100000; i++) { table[5] += c[i]; c[i] = 1; }",
    );
    // A block of the C library's: its size and flags stand in front of it.
    let block = DATA + 100 * 8;
    let before = [(4, block), (99, 0x31), (100, 30), (101, 12)];
    let first = HEAP + 4096 + 16;
    let after = [(0, first), (1, first), (2, 42), (3, first + 32 + 16)];
    package(&at, &manifest, &source, &[table(&before, &after), stack(1)]);
    let result = replay(&at, &options).unwrap();
    assert_eq!(result.verdict, Verdict::Exact, "{}", result.reason);
    assert!(result.repeatable);
}

#[test]
fn an_address_of_something_else_counts() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let at = directory.path().join("p");
    let mut manifest = manifest();
    // In vivo the word led to `table`, which holds 5 from its third word on, or to code without a name.
    manifest.image.range.1 = DATA + 8192;
    let source = unit(
        "extern const long own[2] = {5, 5};",
        "table[0] = (long)own; table[1] = 1;",
    );
    let before: Vec<(usize, u64)> = (2..512).map(|i| (i, 5)).collect();
    let replayed = |in_vivo: u64| {
        let pages = [table(&before, &[(0, in_vivo), (1, 1)]), stack(1)];
        package(&at, &manifest, &source, &pages);
        replay(&at, &options).unwrap().verdict
    };
    assert_eq!(replayed(DATA + 4096 - 16), Verdict::Exact);
    assert_eq!(replayed(DATA + 4096 - 8), Verdict::Exact);
    assert_eq!(replayed(DATA + 8), Verdict::Different);
    assert_eq!(replayed(CODE + 0x100), Verdict::Different);
    assert_eq!(replayed(CODE + 0x104), Verdict::Exact);
}

#[test]
fn a_library_variables_address_may_move_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let at = directory.path().join("p");
    let old = 0x1555_0000_1000;
    let mut manifest = manifest();
    manifest.library_symbols = vec![LibrarySymbol {
        address: old,
        library: "libc.so.6".to_owned(),
        name: "environ".to_owned(),
        symbol_version: None,
        place: None,
        kind: LibrarySymbolKind::Variable,
        words: vec![DATA + 8 * 3],
    }];
    let replayed = |body: &str, in_vivo: &[(usize, u64)]| {
        let pages = [table(&[(3, old)], in_vivo), stack(1)];
        package(&at, &manifest, &unit("", body), &pages);
        replay(&at, &options).unwrap().verdict
    };
    assert_eq!(replayed("table[0] = 1;", &[(0, 1)]), Verdict::Exact);
    assert_eq!(
        replayed("table[0] = table[3];", &[(0, old)]),
        Verdict::Exact
    );
    assert_eq!(replayed("table[3] = 0;", &[(3, 0)]), Verdict::Exact);
    // Half of the address is left.
    let half = "*(int *)&table[3] = 0;";
    assert_eq!(replayed(half, &[(3, old >> 32 << 32)]), Verdict::Exact);
    assert_eq!(replayed("table[3] = 0;", &[]), Verdict::Different);
    assert_eq!(
        replayed("table[0] = 1;", &[(0, 1), (3, 0)]),
        Verdict::Different
    );
}

#[test]
fn freed_memory_does_not_count() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let at = directory.path().join("p");
    let mut manifest = manifest();
    manifest.heap = (HEAP, HEAP + (1 << 30));
    // In vivo the store into the block was optimised away.
    let block = |second: u64| Page {
        address: HEAP + 4096,
        flags: 3,
        entry: Vec::new(),
        exit: words(&[32, 2, 0, second]),
    };
    let replayed = |after: &str, block: Page| {
        let source = unit(
            "void *malloc(unsigned long); void free(void *);",
            &format!("volatile long *a = (volatile long *)malloc(24); a[1] = 7; {after}"),
        );
        package(&at, &manifest, &source, &[block, table(&[], &[]), stack(1)]);
        replay(&at, &options).unwrap()
    };
    let result = replayed("free((void *)a);", block(0));
    assert_eq!(result.verdict, Verdict::Exact, "{}", result.reason);
    let masked = result.comparison.unwrap().masked;
    assert!(
        masked
            .iter()
            .any(|m| m.reason == left_out::FREED && m.bytes == 8),
        "{masked:?}"
    );
    assert_eq!(replayed("", block(0)).verdict, Verdict::Different);
    assert_eq!(replayed("", block(7)).verdict, Verdict::Exact);
}

#[test]
fn what_is_printed_counts() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let at = directory.path().join("p");
    let buffer = DATA + 4096;
    let mut manifest = manifest();
    let stream = |descriptor, buffering, size| Stream {
        descriptor,
        buffering,
        size,
        allocates: false,
    };
    manifest.answers = Some(Answers {
        streams: vec![
            stream(1, Buffering::Full, 1024),
            stream(2, Buffering::None, 0),
        ],
        ..Answers::default()
    });
    manifest.masks.push(Mask {
        start: buffer,
        end: buffer + 1024,
        reason: left_out::STREAM.to_owned(),
    });
    let source = unit(
        "int printf(const char *, ...);",
        "table[0] = printf(\"x=%ld\\n\", table[1]);",
    );
    let text = |text: &str| {
        let mut page = text.as_bytes().to_vec();
        page.resize(4096, 0);
        page
    };
    let record = |flags: u32, text: &str| {
        let mut bytes = Head::text(1, text.len(), flags).encode().to_vec();
        bytes.extend(text.as_bytes());
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    };
    let printed = |in_vivo: &str| {
        let after = format!("old\n{in_vivo}");
        let pages = [
            table(&[(1, 42)], &[(0, 5)]),
            Page {
                address: buffer,
                flags: 3,
                entry: text("old\n"),
                exit: text(&after),
            },
            stack(1),
        ];
        package(&at, &manifest, &source, &pages);
        let answers = [record(TEXT_BEFORE, "old\n"), record(TEXT_AFTER, &after)];
        std::fs::write(at.join(MEMBER_ANSWERS), answers.concat()).unwrap();
        replay(&at, &options).unwrap()
    };
    let result = printed("x=42\n");
    assert_eq!(result.verdict, Verdict::Exact, "{}", result.reason);
    for in_vivo in ["x=43\n", "x=42\nmore\n", ""] {
        let result = printed(in_vivo);
        assert_eq!(result.verdict, Verdict::Different, "{in_vivo:?}");
        assert!(
            result.reason.contains("standard output"),
            "{}",
            result.reason
        );
    }
}

#[test]
fn memory_mapped_inside_gets_its_captured_address() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let at = directory.path().join("p");
    let mut manifest = manifest();
    let place = 0x1555_1000_0000;
    manifest.fresh = vec![(place, place + 0x3000)];
    let source = unit(
        "void *mmap(void *, unsigned long, int, int, int, long); int munmap(void *, unsigned long);",
        "long *a = (long *)mmap(0, 8192, 3, 0x22, -1, 0); table[0] = (long)a; table[1] = a[0]; a[0] = 9;
         munmap(a, 8192); table[2] = (long)mmap(0, 4096, 3, 0x22, -1, 0); table[3] = *(long *)table[2];",
    );
    let after = [(0, place + 0x1000), (2, place + 0x2000)];
    package(&at, &manifest, &source, &[table(&[], &after), stack(1)]);
    let result = replay(&at, &options).unwrap();
    assert_eq!(result.verdict, Verdict::Exact, "{}", result.reason);
}

#[test]
fn what_is_kept_builds_and_runs_again() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(directory.path());
    let at = directory.path().join("p");
    package(&at, &manifest(), SUM, &sum_pages(9900));
    let keep = directory.path().join("keep");
    options.keep = Some(keep.clone());
    options.settings.flags = vec![
        "-O3".to_owned(),
        "-mllvm".to_owned(),
        "-force-vector-width=2".to_owned(),
    ];
    replay(&at, &options).unwrap();
    for file in ["replay", "unit0.o"] {
        std::fs::remove_file(keep.join(file)).unwrap();
    }
    run(&mut Command::new(keep.join("build.sh")));
    run(Command::new("./replay")
        .current_dir(&keep)
        .env("CERE_REPLAY_PLAN", "plan.json"));
    let outcome = std::fs::read_to_string(keep.join("outcome.json")).unwrap();
    assert!(outcome.contains("\"different_words\":0"), "{outcome}");
    let ir = std::fs::read_to_string(keep.join("unit0.ll")).unwrap();
    assert!(ir.contains("cere.u0.cere.invoke.0"));
}

#[test]
fn machine_code_is_compared_without_relocated_fields() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let at = directory.path().join("p");
    let source = unit(
        "__attribute__((noinline)) long loop(long x) __asm__(\"cere.u0.cere.outlined.0\");
         long loop(long x) { for (int i = 0; i < 100; i++) x = x * 3 + table[i]; return x; }",
        "table[0] = loop(1);",
    );
    package(&at, &manifest(), &source, &[table(&[], &[]), stack(1)]);
    std::fs::write(at.join("region.code"), [0xc3; 7]).unwrap();
    let result = replay(&at, &options).unwrap();
    assert_eq!(result.same_code, SameCode::No);
    // The same code, linked elsewhere.
    let linked = directory.path().join("linked");
    let data = DATA - 0x5555_5555_0000;
    run(Command::new("clang-22")
        .args([
            "-O2",
            "-fPIE",
            "-w",
            "-x",
            "ir",
            "-nostdlib",
            "-no-pie",
            "-fuse-ld=lld",
        ])
        .arg(at.join(manifest().units[0].member()))
        .arg(format!(
            "-Wl,--defsym=table={data:#x},-e,cere.u0.cere.outlined.0"
        ))
        .arg("-o")
        .arg(&linked));
    let code = at.join("region.code");
    run(Command::new("llvm-objcopy-22")
        .args(["-O", "binary", "--only-section=.text"])
        .arg(&linked)
        .arg(&code));
    let size = Command::new("llvm-nm-22")
        .args(["-S"])
        .arg(&linked)
        .output()
        .unwrap();
    let text = String::from_utf8(size.stdout).unwrap();
    let line = text
        .lines()
        .find(|l| l.ends_with("cere.u0.cere.outlined.0"))
        .unwrap();
    let size = usize::from_str_radix(line.split(' ').nth(1).unwrap(), 16).unwrap();
    let mut bytes = std::fs::read(&code).unwrap();
    bytes.truncate(size);
    std::fs::write(&code, bytes).unwrap();
    assert_eq!(replay(&at, &options).unwrap().same_code, SameCode::Yes);
}

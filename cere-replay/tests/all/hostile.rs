//! Packages that lie, flags and programs that cannot work: each ends in an error that says what is wrong.

use crate::common;

use cere_format::package::Manifest;
use cere_format::replay::Verdict;
use cere_replay::Options;
use common::*;
use std::time::Duration;

fn message(manifest: &Manifest, source: &str, change: impl FnOnce(&std::path::Path)) -> String {
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(directory.path());
    options.settings.timeout = Some(Duration::from_secs(2));
    let at = directory.path().join("p");
    package(&at, manifest, source, &sum_pages(9900));
    change(&at);
    replay(&at, &options).unwrap_err().to_string()
}

#[test]
fn manifests_that_lie() {
    type Lie = (fn(&mut Manifest), &'static str);
    let lies: [Lie; 13] = [
        (|m| m.image.range = (DATA, CODE), "the image lies at"),
        (|m| m.image.range = (CODE, u64::MAX), "the image lies at"),
        (|m| m.page_size = 65536, "65536"),
        (|m| m.mappings[0].start = u64::MAX - 4096, "no process has"),
        (
            |m| m.mappings[0].end = 0xffff_8000_0000_0000,
            "no process has",
        ),
        (|m| m.heap = (0x1000, 0), "no process has"),
        (|m| m.heap = (0, 0x1000), "no process has"),
        (|m| m.entry.stack_pointer = 0x1234, "stack pointer 0x1234"),
        (
            |m| m.variables[0].name = "x\n.incbin \"/etc/passwd\"".to_owned(),
            "incbin",
        ),
        (
            |m| m.units[0].id = "../../../../etc/passwd".to_owned(),
            "etc/passwd",
        ),
        (
            |m| m.units[0].codegen.push("-fplugin=/tmp/x.so".to_owned()),
            "-fplugin=/tmp/x.so",
        ),
        (
            |m| m.units[0].codegen.push("@/etc/passwd".to_owned()),
            "@/etc/passwd",
        ),
        (
            |m| m.library_directories.push("@x".to_owned()),
            "looked for in \"@x\"",
        ),
    ];
    for (number, (lie, expected)) in lies.into_iter().enumerate() {
        let honest = manifest();
        let mut lying = manifest();
        lie(&mut lying);
        let change = |at: &std::path::Path| {
            std::fs::write(
                at.join("manifest.json"),
                serde_json::to_vec(&lying).unwrap(),
            )
            .unwrap();
        };
        let found = message(&honest, SUM, change);
        assert!(found.contains(expected), "lie {number}: {found}");
    }
}

#[test]
fn members_that_lie() {
    let cut = |at: &std::path::Path, name: &str, keep: usize| {
        let path = at.join(name);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.truncate(keep);
        std::fs::write(&path, bytes).unwrap();
    };
    let found = message(&manifest(), SUM, |at| cut(at, "pages.table", 17));
    assert!(found.contains("cut short"), "{found}");
    let found = message(&manifest(), SUM, |at| cut(at, "pages.entry", 5000));
    assert!(found.contains("5000 bytes"), "{found}");
    let found = message(&manifest(), SUM, |at| {
        std::fs::write(at.join("pages.table"), [0xff; 32]).unwrap();
    });
    assert!(found.contains("not a page"), "{found}");
    let found = message(&manifest(), SUM, |at| {
        std::fs::write(at.join("manifest.json"), "{}").unwrap();
    });
    assert!(found.contains("manifest is not valid"), "{found}");
}

#[test]
fn what_nobody_defines_is_named() {
    let source = SUM.replace("table[i] * 2", "helper_that_nobody_has(i)");
    let source = source.replace("long helper(long);", "long helper_that_nobody_has(long);");
    let found = message(&manifest(), &source, |_| {});
    assert!(found.contains("helper_that_nobody_has"), "{found}");
    let mut manifest = manifest();
    manifest.libraries.push("libnobodyhas.so.7".to_owned());
    let found = message(&manifest, SUM, |_| {});
    assert!(found.contains("libnobodyhas.so.7"), "{found}");
}

#[test]
fn endless_and_broken_regions() {
    let found = message(
        &manifest(),
        &SUM.replace("table[i] * 2", "1")
            .replace("i < 100", "*(volatile long *)&table[1] == 1"),
        |_| {},
    );
    assert!(found.contains("longer than 2 s"), "{found}");
    let body = |code: &str| SUM.replace("for (", &format!("{code}; for ("));
    let found = message(&manifest(), &body("__builtin_trap()"), |_| {});
    assert!(found.contains("instruction"), "{found}");
    let found = message(&manifest(), &body("*(volatile long *)64 = 1"), |_| {});
    assert!(
        found.contains("wrote 0x40") && found.contains("null pointer"),
        "{found}"
    );
    let found = message(
        &manifest(),
        &body("((void (*)(void))0x555555555800)()"),
        |_| {},
    );
    assert!(found.contains("did not execute"), "{found}");
}

#[test]
fn a_program_uses_names_of_the_runtime() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let at = directory.path().join("p");
    let mut manifest = manifest();
    // Captured at an address, compiled again, and only known to the unit; a function that the runtime calls before
    // anything is restored, and some that it defines.
    manifest.variables[0].name = "environ".to_owned();
    manifest.functions[0].name = "write".to_owned();
    let source = r#"
extern "C" { extern long environ[512]; long cere_switch = 1, rust_eh_personality = 1, cere_glue_jump_count = 1;
__attribute__((noinline)) long write(long x) { return x + cere_switch; }
__attribute__((noinline)) long malloc(long x) { return x - rust_eh_personality; }
__attribute__((noinline)) long cere_main(long x) { return x * cere_glue_jump_count; }
__attribute__((noinline)) long __rust_alloc(long x) { return x; }
void invoke(void *) __asm__("cere.u0.cere.invoke.0");
void invoke(void *) {
    for (int i = 1; i < 100; i++) environ[0] += __rust_alloc(cere_main(malloc(write(environ[i])))) * 2;
} }
"#;
    package(&at, &manifest, source, &sum_pages(9900));
    let keep = directory.path().join("keep");
    let options = Options {
        keep: Some(keep.clone()),
        ..options
    };
    let result = replay(&at, &options).unwrap();
    assert_eq!(result.verdict, Verdict::Exact, "{}", result.reason);
    run(std::process::Command::new(keep.join("build.sh")).current_dir(&keep));
}

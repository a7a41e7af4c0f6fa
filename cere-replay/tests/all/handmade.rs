//! Replays of packages made by hand: verdicts, messages, exceptions, old addresses.

use crate::common;

use cere_format::replay::Verdict;
use cere_replay::ReplayError;
use common::*;

#[test]
fn exact_and_different() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let at = directory.path().join("p");
    package(&at, &manifest(), SUM, &sum_pages(9900));
    let result = replay(&at, &options).unwrap();
    assert_eq!(result.verdict, Verdict::Exact, "{}", result.reason);
    assert!(result.repeatable);
    assert!((1..=3).contains(&result.cycles.len()));
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
    options.settings.flags = vec!["-march=nonsense".to_owned()];
    let error = replay(&at, &options).unwrap_err().to_string();
    assert!(error.contains("nonsense"), "{error}");
}

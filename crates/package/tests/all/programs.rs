//! Packages of real programs: units, variables, thread-locals, library symbols, masks.

use crate::support;

use cere_format::abi::HOOK_OFFSET;
use cere_format::capture::{PAGE_CODE, PAGE_ENTRY_STORED, PAGE_EXIT_STORED};
use cere_format::package::*;
use cere_format::profile::RegionKey;
use cere_package::io::read_package;
use cere_package::{PackError, PackInput, pack};
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Build, PAGE, Waiting, run};

const FLAGS: &[&str] = &["-O2", "-fPIC"];

/// The program of several objects, linked with `link` flags.
fn program(build: &Build, flags: &[&str], link: &[&str]) -> PathBuf {
    let library = build.path("libplugged.so");
    let plugged = build.compile("plugged.c", FLAGS);
    run(Command::new("clang-22")
        .args(["-shared", "-fuse-ld=lld"])
        .arg(plugged)
        .arg("-o")
        .arg(&library));
    let archived = build.compile("archived.c", flags);
    let archive = build.path("libarchived.a");
    run(Command::new("llvm-ar-22")
        .arg("rc")
        .arg(&archive)
        .arg(archived));
    let objects = ["main.c", "assembled.s", "unused.c"].map(|source| build.compile(source, flags));
    let program = build.path("program");
    run(Command::new("clang-22")
        .args(link)
        .args(objects)
        .arg(archive)
        .arg(&library)
        .arg(format!("-Wl,-rpath,{}", build.directory.path().display()))
        .arg("-o")
        .arg(&program));
    program
}

fn input<'a>(build: &'a Build, raw: &'a Path, destination: &'a Path) -> PackInput<'a> {
    PackInput {
        run: None,
        store: &build.store,
        raw,
        region_name: "main@main.c:34",
        name: "main@main.c:34:1",
        thread: None,
        in_vivo: None,
        represents: None,
        destination,
    }
}

fn variable<'a>(manifest: &'a Manifest, name: &str, unit: Option<&str>) -> Option<&'a Variable> {
    let mut found = manifest
        .variables
        .iter()
        .filter(|v| v.name == name && v.unit.as_deref() == unit);
    let first = found.next();
    assert!(found.next().is_none(), "{name} of {unit:?} is listed twice");
    first
}

fn region_key(build: &Build, source: &str) -> RegionKey {
    RegionKey {
        unit: build.units()[source].clone(),
        index: 0,
    }
}

fn check(flags: &[&str], link: &[&str]) {
    let build = Build::new();
    let program = program(&build, flags, link);
    let units = build.units();
    let waiting = Waiting::start(&program);
    let place = |name: &str, kind: &str| waiting.places[&(name.to_owned(), kind.to_owned())];
    let unit = |source: &str| Some(units[source].as_str());

    // The thread-local block is known from the address that the program printed.
    let elf = std::fs::read(&program).unwrap();
    let file = object::File::parse(&*elf).unwrap();
    let offset = |name: &str| {
        use object::{Object, ObjectSymbol};
        file.symbols()
            .find(|s| s.name() == Ok(name))
            .unwrap()
            .address()
    };
    let block = place("shared_local", "tls") - offset("shared_local");
    let size = (offset("shared_local") + 4).max(offset("own_local") + 32);
    let hook = place_of_descriptor(&file, &waiting) + HOOK_OFFSET as u64;
    let key = region_key(&build, "main.c");
    let raw = waiting.capture(
        &build.path("run"),
        key.clone(),
        Some((block, size)),
        |address, page| {
            let inside =
                |at: u64| (address <= at && at < address + PAGE).then(|| (at - address) as usize);
            if let Some(at) = inside(hook) {
                page[at..at + 8].fill(0xaa);
            }
            if let Some(at) = inside(place("shared_local", "tls")) {
                page[at..at + 4].copy_from_slice(&77i32.to_le_bytes());
            }
        },
    );
    let destination = build.path("x.codelet");
    pack(&input(&build, &raw, &destination)).unwrap();
    let package = read_package(&destination, 1 << 30).unwrap();
    let manifest = &package.manifest;

    for (name, source) in [
        ("table", "main.c"),
        ("count", "main.c"),
        ("table", "archived.c"),
        ("count", "archived.c"),
    ] {
        let found = variable(manifest, name, unit(source))
            .unwrap_or_else(|| panic!("no {name} of {source}"));
        assert_eq!(found.address, place(name, source), "{name} of {source}");
    }
    assert_eq!(
        variable(manifest, "table", unit("main.c")).unwrap().size,
        64
    );
    assert!(variable(manifest, "twice.calls", unit("main.c")).is_some());
    for name in ["assembled_counter", "plugged_counter"] {
        assert_eq!(
            variable(manifest, name, None).unwrap().address,
            place(name, "-"),
            "{name}"
        );
    }
    assert!(
        variable(manifest, "table", None).is_none(),
        "a local of assembly has no unit"
    );
    assert!(variable(manifest, "__dso_handle", None).is_none());

    let function = |name: &str, unit: Option<&str>| {
        manifest
            .functions
            .iter()
            .find(|f| f.name == name && f.unit.as_deref() == unit)
    };
    assert_eq!(
        function("twice", unit("main.c")).unwrap().address,
        place("twice", "main.c")
    );
    assert!(function("twice", unit("archived.c")).is_some());
    assert_eq!(function("main", None).unwrap().address, place("main", "-"));
    assert!(!function("archived", None).unwrap().other_image);
    assert!(function("plugged", None).unwrap().other_image);
    assert!(
        function("hidden", None).is_none(),
        "other images give what they export"
    );

    let captured: Vec<(&str, &str)> = manifest
        .captured_code
        .iter()
        .flatten()
        .map(|f| (f.name.as_str(), f.image.as_str()))
        .collect();
    for entry in [
        ("assembled", "program"),
        ("plugged", "libplugged.so"),
        ("hidden", "libplugged.so"),
    ] {
        assert!(captured.contains(&entry), "{entry:?} of {captured:?}");
    }
    assert!(
        !captured
            .iter()
            .any(|f| ["twice", "archived", "main"].contains(&f.0)),
        "they are compiled, or nothing leads there: {captured:?}"
    );

    let listed: Vec<&str> = manifest.units.iter().map(|u| u.id.as_str()).collect();
    assert_eq!(listed[0], key.unit);
    assert!(
        listed.contains(&units["archived.c"].as_str()),
        "reached through a table"
    );
    assert!(
        !listed.contains(&units["unused.c"].as_str()),
        "nothing leads there"
    );
    assert!(
        !listed.contains(&units["plugged.c"].as_str()),
        "of another image"
    );
    assert_eq!(manifest.units[0].codegen, flags);

    let tls = manifest.image.tls.as_ref().unwrap();
    assert_eq!(tls.address, block);
    let own = tls
        .variables
        .iter()
        .find(|v| v.name == "own_local")
        .unwrap();
    assert_eq!(tls.address + own.offset, place("own_local", "tls"));
    assert_eq!(own.unit.as_deref(), unit("main.c"));
    let shared = tls
        .variables
        .iter()
        .find(|v| v.name == "shared_local")
        .unwrap();
    assert_eq!(shared.unit, None);
    let value = |member: &str| package.member(member)[shared.offset as usize];
    assert_eq!((value(MEMBER_TLS_ENTRY), value(MEMBER_TLS_EXIT)), (11, 77));

    let symbol = |name: &str| manifest.library_symbols.iter().find(|s| s.name == name);
    let strlen = symbol("strlen").expect("an implementation chosen by processor is named");
    assert_eq!(strlen.address, place("strlen", "library"));
    assert_eq!(
        (strlen.kind, strlen.library.as_str()),
        (LibrarySymbolKind::Function, "libc.so.6")
    );
    let stdout = symbol("stdout").unwrap();
    assert_eq!(stdout.address, place("stdout", "library"));
    assert_eq!(stdout.kind, LibrarySymbolKind::Variable);
    assert!(stdout.words.contains(&place("where", "main.c")));
    assert!(
        variable(manifest, "stdout", None).is_none(),
        "library variables come fresh"
    );
    assert!(symbol("_IO_2_1_stdout_").is_some() || !link.contains(&"-no-pie"));
    assert!(symbol("plugged").is_none() && symbol("plugged_counter").is_none());
    assert_eq!(manifest.libraries, ["libc.so.6"]);
    assert_eq!(manifest.library_directories, [""; 0]);
    assert_eq!(manifest.image.low, link.contains(&"-no-pie"));
    assert!(!manifest.image.shared);

    assert!(
        manifest
            .masks
            .iter()
            .any(|m| m.start == hook && m.reason == "probe slot")
    );
    assert!(
        manifest
            .masks
            .iter()
            .any(|m| m.reason == "buffer of a standard stream" && m.end - m.start >= 1024),
        "what was printed into a pipe"
    );
    let exit = package
        .pages
        .iter()
        .filter(|p| p.flags & PAGE_EXIT_STORED != 0);
    let number = exit
        .clone()
        .position(|p| p.address == hook & !(PAGE - 1))
        .unwrap();
    let at = number * PAGE as usize + (hook % PAGE) as usize;
    assert_eq!(
        package.member(MEMBER_EXIT)[at..at + 8],
        [0; 8],
        "a replay's regions are dormant"
    );
    assert!(
        package
            .pages
            .iter()
            .any(|p| p.flags & PAGE_CODE != 0 && p.flags & PAGE_ENTRY_STORED != 0)
    );
    let code = package.member(MEMBER_CODE);
    assert!(
        code.len() > 32 && code.last() != Some(&0),
        "the outlined function's bytes"
    );
}

fn place_of_descriptor(file: &object::File<'_>, waiting: &Waiting) -> u64 {
    use object::{Object, ObjectSymbol};
    // main.c is linked first, so its descriptor is the first.
    let symbol = |name: &str| {
        file.symbols()
            .find(|s| s.name() == Ok(name))
            .unwrap()
            .address()
    };
    let bias = waiting.places[&("main".to_owned(), "-".to_owned())] - symbol("main");
    symbol("cere.region.0") + bias
}

#[test]
fn position_independent_gnu_ld() {
    check(FLAGS, &["-fuse-ld=bfd"]);
}

#[test]
fn position_independent_lld() {
    check(&["-O2", "-fPIE"], &["-fuse-ld=lld", "-pie"]);
}

#[test]
fn fixed_addresses_gnu_ld() {
    check(&["-O2", "-fno-pie"], &["-fuse-ld=bfd", "-no-pie"]);
}

#[test]
fn fixed_addresses_lld() {
    check(&["-O1", "-fno-pie"], &["-fuse-ld=lld", "-no-pie"]);
}

#[test]
fn region_in_a_shared_library() {
    let build = Build::new();
    let program = program(&build, &["-O2", "-fno-pie"], &["-no-pie"]);
    let waiting = Waiting::start(&program);
    let raw = waiting.capture(
        &build.path("run"),
        region_key(&build, "plugged.c"),
        None,
        |_, _| {},
    );
    let destination = build.path("x.codelet");
    let manifest = pack(&input(&build, &raw, &destination)).unwrap();
    assert!(manifest.image.shared && !manifest.image.low);
    assert_eq!(manifest.image.name, "libplugged.so");
    assert_eq!(manifest.units.len(), 1);
    let hidden = manifest
        .functions
        .iter()
        .find(|f| f.name == "hidden")
        .unwrap();
    assert_eq!(hidden.unit, None, "hidden in the image, global in the IR");
    // The program holds a copy of the variable, which the library uses too.
    let counter = variable(&manifest, "plugged_counter", None).unwrap();
    assert_eq!(
        counter.address,
        waiting.places[&("plugged_counter".into(), "-".into())]
    );
    assert!(counter.address < manifest.image.range.0);
}

#[test]
fn fortran() {
    let build = Build::new();
    let object = build.compile("common.f90", &["-O2"]);
    let program = build.path("program");
    run(Command::new("flang-22").arg(object).arg("-o").arg(&program));
    let waiting = Waiting::start(&program);
    let key = region_key(&build, "common.f90");
    let raw = waiting.capture(&build.path("run"), key.clone(), None, |_, _| {});
    let destination = build.path("x.codelet");
    let manifest = pack(&input(&build, &raw, &destination)).unwrap();
    assert_eq!(variable(&manifest, "block_", None).unwrap().size, 80);
    assert_eq!(variable(&manifest, "_QMmEgrid", None).unwrap().size, 800);
    assert!(variable(&manifest, "_QMmFstepEcalls", Some(&key.unit)).is_some());
    assert_eq!(manifest.units.len(), 1, "the Fortran runtime has no IR");
    let runtime = |f: &Function| f.name == "_FortranAioBeginExternalListOutput" && f.unit.is_none();
    assert!(manifest.functions.iter().any(runtime));
}

#[test]
fn images_that_do_not_fit_are_named() {
    let build = Build::new();
    let program = program(&build, FLAGS, &[]);
    let waiting = Waiting::start(&program);
    let key = region_key(&build, "main.c");
    let raw = waiting.capture(&build.path("run"), key.clone(), None, |_, _| {});
    let destination = build.path("x.codelet");
    let attempt = || pack(&input(&build, &raw, &destination)).unwrap_err();
    let whole = std::fs::read(&program).unwrap();
    let replace = |bytes: &[u8]| {
        let new = build.path("new");
        std::fs::write(&new, bytes).unwrap();
        std::fs::rename(new, &program).unwrap();
    };

    std::fs::remove_file(build.store.unit_ir(&key.unit)).unwrap();
    assert!(matches!(attempt(), PackError::Stale { unit, .. } if unit == key.unit));
    std::fs::remove_file(build.store.unit_record(&key.unit)).unwrap();
    assert!(matches!(attempt(), PackError::Stale { unit, .. } if unit == key.unit));

    for strip in ["--strip-all", "--strip-unneeded"] {
        replace(&whole);
        run(Command::new("llvm-strip-22").arg(strip).arg(&program));
        let error = attempt();
        assert!(
            matches!(error, PackError::Stripped { .. }),
            "{strip}: {error}"
        );
    }
    replace(&whole);
    run(Command::new("objcopy")
        .args(["--wildcard", "--strip-symbol=*.c"])
        .arg(&program));
    let error = attempt();
    assert!(matches!(error, PackError::Merged { .. }), "{error}");
    replace(&whole[..5000]);
    assert!(matches!(attempt(), PackError::Image { .. }));
    replace(b"#!/bin/sh\n");
    assert!(matches!(attempt(), PackError::Image { .. }));
    std::fs::remove_file(&program).unwrap();
    assert!(matches!(attempt(), PackError::Image { .. }));
    assert!(!destination.exists());
}

#[test]
fn damaged_captures_are_named() {
    let build = Build::new();
    let program = program(&build, FLAGS, &[]);
    let waiting = Waiting::start(&program);
    let raw = waiting.capture(
        &build.path("run"),
        region_key(&build, "main.c"),
        None,
        |_, _| {},
    );
    let destination = build.path("x.codelet");
    let attempt = || pack(&input(&build, &raw, &destination)).unwrap_err();
    let text = std::fs::read_to_string(&raw).unwrap();
    let said = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        std::fs::write(&raw, text.replacen(from, to, 1)).unwrap();
        let message = attempt().to_string();
        std::fs::write(&raw, &text).unwrap();
        message
    };
    let message = said("\"refused\":null", "\"refused\":\"it reads a file\"");
    assert_eq!(
        message,
        "main@main.c:34 cannot become a codelet: it reads a file"
    );
    assert!(said("\"returned\"", "\"never\"").contains("longjmp"));
    let version = format!("{{\"version\":{}", cere_format::capture::CAPTURE_VERSION);
    assert!(said(&version, "{\"version\":9999").contains("install a newer cere"));
    assert!(said(&version, "{\"version\":0").contains("make it again"));
    assert!(said("\"page_size\":4096", "\"page_size\":0").contains("power of two"));
    assert!(said("{\"version\"", "{\"v").contains("not valid"));
    assert!(said("\"index\":0", "\"index\":7").contains("capture again"));
    for extension in ["table", "places", "pages"] {
        let path = raw.with_extension(extension);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 7]).unwrap();
        assert!(attempt().to_string().contains("cut short"), "{extension}");
        std::fs::remove_file(&path).unwrap();
        assert!(attempt().to_string().contains(extension), "{extension}");
        std::fs::write(&path, whole).unwrap();
    }
    let absent = build.path("absent/x.codelet");
    let error = pack(&input(&build, &raw, &absent)).unwrap_err();
    assert!(error.to_string().starts_with("cannot create"), "{error}");
    assert!(!destination.exists());
    pack(&input(&build, &raw, &destination)).unwrap();
}

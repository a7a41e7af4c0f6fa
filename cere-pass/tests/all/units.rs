//! What the pass leaves behind: the record, the IR, the probe's code; and how it ends when it cannot.

use crate::common;

use cere_format::build::{
    CompileCommand, DefinedFunction, ENV_COMMAND, Language, Region, RegionKind, RuntimeWord,
    SkippedLoop,
};
use common::{Place, plugin, program, run};
use std::collections::HashSet;
use std::path::Path;
use std::process::Command;

fn find<'a>(regions: &'a [Region], function: &str) -> Vec<&'a Region> {
    regions.iter().filter(|r| r.function == function).collect()
}

#[test]
fn the_record_names_regions_in_the_source_s_terms() {
    let place = Place::new();
    let source = program("names.cpp");
    let unit = place.instrumented(&source, &["-O2"]).unit;
    assert_eq!((unit.language, &unit.source), (Language::Cxx, &source));
    assert!(unit.regions.iter().all(|r| r.file == source));
    let steps = find(&unit.regions, "field::Grid::step");
    let places: Vec<_> = steps
        .iter()
        .map(|r| (r.line, r.ordinal, r.outlined))
        .collect();
    assert_eq!(places, [(6, 1, true), (6, 2, true)]);
    let types: Vec<_> = steps[0]
        .live_ins
        .iter()
        .map(|l| (l.r#type.as_str(), l.output))
        .collect();
    assert_eq!(types, [("ptr", false), ("double", false)]);
    let largest = find(&unit.regions, "field::largest<double>");
    assert_eq!(
        (largest.len(), largest[0].line, largest[0].exits),
        (1, 11, 1)
    );
    let refused = find(&unit.regions, "dispatch");
    assert_eq!(
        refused[0].reason.as_deref(),
        Some("computed goto in the loop")
    );
    assert!(!refused[0].outlined && refused[0].live_ins.is_empty());
    assert!(unit.defines.contains(&"dispatch".into()));
    assert!(!unit.defines.iter().any(|name| name.starts_with("cere.")));
}

#[test]
fn a_chosen_function_takes_the_place_of_its_loops() {
    let source = program("names.cpp");
    let unit = Place::choosing().instrumented(&source, &["-O2"]).unit;
    assert_eq!(unit.command.functions, ["*"]);
    let step = find(&unit.regions, "field::Grid::step");
    assert_eq!((step.len(), step[0].kind), (1, RegionKind::Function));
    let types: Vec<_> = step[0].live_ins.iter().map(|l| l.r#type.as_str()).collect();
    assert_eq!(types, ["ptr", "double"]);
    // Where it cannot be a region its loops stay what they are.
    let refused = find(&unit.regions, "dispatch");
    let kinds: Vec<_> = refused.iter().map(|r| r.kind).collect();
    assert_eq!(kinds, [RegionKind::Function, RegionKind::Loop]);
    assert_eq!(
        refused[0].reason.as_deref(),
        Some("the function has labels whose address is taken")
    );
    let largest = DefinedFunction {
        name: "field::largest<double>".into(),
        symbol: find(&unit.regions, "field::largest<double>")[0]
            .symbol
            .clone(),
    };
    assert!(unit.functions.contains(&largest));
    // What is not chosen is not.
    let plain = Place::new().instrumented(&source, &["-O2"]).unit;
    assert!(plain.regions.iter().all(|r| r.kind == RegionKind::Loop));
    assert_eq!(plain.functions, unit.functions);
}

#[test]
fn fortran_names_carry_the_module() {
    let place = Place::new();
    for flags in [&["-O2"][..], &["-O0", "-g"]] {
        let unit = place.instrumented(&program("fields.f90"), flags).unit;
        assert_eq!(unit.language, Language::Fortran);
        for (name, line) in [
            ("fields::build", 14),
            ("fields::norm", 24),
            ("common_work", 47),
        ] {
            let regions = find(&unit.regions, name);
            assert!(
                regions.iter().any(|r| r.line == line && r.outlined),
                "{name}:{line} in {:?}",
                unit.regions
                    .iter()
                    .map(|r| (&r.function, r.line))
                    .collect::<Vec<_>>()
            );
        }
    }
}

#[test]
fn kept_ir_is_valid_and_equal_compiles_get_equal_ids() {
    for name in ["values.c", "throws.cpp", "fields.f90"] {
        for flags in [&["-O0", "-g"][..], &["-O2", "-g"], &["-O2"]] {
            let place = Place::new();
            let first = place.instrumented(&program(name), flags).unit;
            run(Command::new("opt-22")
                .args(["-passes=verify", "-disable-output"])
                .arg(place.unit_ir(&first)));
            if flags == ["-O2"] {
                assert_eq!(place.instrumented(&program(name), flags).unit.id, first.id);
            }
        }
    }
}

#[test]
fn a_dormant_probe_is_a_load_and_a_branch() {
    let place = Place::new();
    let object = place.instrumented(&program("names.cpp"), &["-O2"]).object;
    let output = run(Command::new("llvm-objdump-22")
        .args([
            "-dr",
            "--no-show-raw-insn",
            "--no-addresses",
            "--disassemble-symbols=_Z3useRN5field4GridE",
        ])
        .arg(&object));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let hook = lines
        .iter()
        .position(|l| l.contains("cere_regions"))
        .expect("the hook's load");
    let register = lines[hook - 1].strip_prefix("movq\t(%rip), ").expect(&text);
    let register = register.split_whitespace().next().unwrap();
    // The scheduler may put a line or two between.
    let next = &lines[hook + 1..hook + 5];
    let tested = next
        .iter()
        .position(|l| **l == *format!("testq\t{register}, {register}"));
    assert!(next[tested.expect(&text) + 1].starts_with("jne"), "{text}");
    let call = lines
        .iter()
        .position(|l| l.contains("<cere.outlined.0>"))
        .expect(&text);
    let slow = lines
        .iter()
        .position(|l| l.contains(".text.unlikely"))
        .expect(&text);
    assert!(hook < call && call < slow, "{text}");
    let symbols = run(Command::new("llvm-readelf-22").args(["-sSW"]).arg(&object));
    let text = String::from_utf8(symbols.stdout).unwrap();
    let global = text
        .lines()
        .filter(|l| l.contains("GLOBAL") && l.contains("cere"))
        .count();
    assert_eq!(global, 0, "{text}");
    assert!(text.contains(".text.unlikely"), "{text}");
}

fn command(place: &Place, name: &str) -> CompileCommand {
    CompileCommand {
        version: 1,
        store: place.path("store"),
        directory: place.path(""),
        compiler: "clang-22".into(),
        arguments: Vec::new(),
        codegen: vec!["-O1".into()],
        output: None,
        debug: false,
        skip: vec![SkippedLoop {
            index: 0,
            reason: format!("{name} says so"),
        }],
        short: None,
        split: Vec::new(),
        functions: Vec::new(),
        front: None,
        variables: Default::default(),
    }
}

fn compile(place: &Place, json: &Path) -> std::process::Output {
    Command::new("clang-22")
        .args(["-O1", "-gline-tables-only", "-c"])
        .arg(format!("-fpass-plugin={}", plugin().display()))
        .arg(program("control.c"))
        .arg("-o")
        .arg(place.path("out/control.o"))
        .env(ENV_COMMAND, json)
        .output()
        .unwrap()
}

#[test]
fn a_skipped_loop_is_listed_with_its_reason() {
    let place = Place::new();
    std::fs::create_dir(place.path("out")).unwrap();
    let json = place.path("command.json");
    std::fs::write(
        &json,
        serde_json::to_vec(&command(&place, "a test")).unwrap(),
    )
    .unwrap();
    assert!(compile(&place, &json).status.success());
    let units = std::fs::read_dir(place.path("store/units")).unwrap();
    let record = units
        .map(|e| e.unwrap().path())
        .find(|p| p.extension().is_some_and(|e| e == "json"));
    let unit: cere_format::build::Unit =
        serde_json::from_slice(&std::fs::read(record.unwrap()).unwrap()).unwrap();
    assert_eq!(unit.regions[0].reason.as_deref(), Some("a test says so"));
    assert!(!unit.regions[0].outlined && unit.regions[1].outlined);
}

#[test]
fn failures_say_what_happened_and_leave_nothing() {
    let place = Place::new();
    std::fs::create_dir(place.path("out")).unwrap();
    let json = place.path("command.json");
    std::fs::write(&json, "{").unwrap();
    let mut record = command(&place, "");
    std::fs::write(place.path("file"), "").unwrap();
    record.store = place.path("file/store");
    let unwritable = place.path("unwritable.json");
    std::fs::write(&unwritable, serde_json::to_vec(&record).unwrap()).unwrap();
    for (json, expected) in [
        (json, "is not what this version of the pass reads"),
        (place.path("nothing.json"), "cannot read"),
        (unwritable, "cannot write"),
    ] {
        let output = compile(&place, &json);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success());
        assert!(
            text.starts_with("cere: ") && text.contains(expected),
            "{text}"
        );
        assert_eq!(std::fs::read_dir(place.path("out")).unwrap().count(), 0);
    }
}

#[test]
fn the_record_names_what_the_openmp_runtime_is_given() {
    let place = Place::new();
    let words = |name: &str, flags: &[&str]| {
        let unit = place.instrumented(&program(name), flags).unit;
        let word = |w: &RuntimeWord| (w.symbol.clone(), w.bytes);
        unit.runtime_words.iter().map(word).collect::<Vec<_>>()
    };
    let locks = [".reduction.var", ".var", "named.var"];
    let mut expected = locks
        .map(|l| (format!(".gomp_critical_user_{l}"), 32))
        .to_vec();
    for level in ["-O0", "-O2"] {
        assert_eq!(words("words.c", &["-fopenmp", level]), expected);
    }
    expected.push(("mine.cache.".to_owned(), 8));
    assert_eq!(
        words("words.c", &["-fopenmp", "-fnoopenmp-use-tls"]),
        expected
    );
    let fortran = [
        "_QFworkEmine.cache",
        ".gomp_critical_user_.var",
        ".gomp_critical_user_.reduction.var",
    ];
    let found = words("words.f90", &["-fopenmp", "-O2"]);
    let names: HashSet<&str> = found.iter().map(|(symbol, _)| symbol.as_str()).collect();
    assert_eq!(names, HashSet::from(fortran));
    assert!(words("words.c", &["-O2"]).is_empty());
}

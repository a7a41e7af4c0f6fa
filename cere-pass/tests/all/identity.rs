//! Kept IR, compiled again with the unit's symbols bound, gives the regions' machine code of the original object.

use crate::common;

use cere_format::abi::OUTLINED_SYMBOL_PREFIX;
use cere_format::build::{BUILD_VERSION, BindPlan, ENV_BIND};
use common::{Built, Place, plugin, program, run};
use object::{Object, ObjectSection, ObjectSymbol, RelocationFlags};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

type Code = (Vec<u8>, Vec<(u64, object::elf::RelocationType)>);

/// Machine code of each region, with the bytes that relocations fill set to zero, and the relocations' kinds.
fn regions(object: &Path, prefix: &str) -> BTreeMap<String, Code> {
    let data = std::fs::read(object).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let mut all = BTreeMap::new();
    for symbol in file.symbols() {
        let name = symbol.name().unwrap();
        let Some(name) = name.strip_prefix(prefix) else {
            continue;
        };
        if !name.starts_with(OUTLINED_SYMBOL_PREFIX) || symbol.is_undefined() {
            continue;
        }
        let section = file
            .section_by_index(symbol.section_index().unwrap())
            .unwrap();
        let (start, end) = (symbol.address(), symbol.address() + symbol.size());
        let mut code = section.data().unwrap()[start as usize..end as usize].to_vec();
        let mut kinds = Vec::new();
        for (at, relocation) in section
            .relocations()
            .filter(|(at, _)| (start..end).contains(at))
        {
            let RelocationFlags::Elf { r_type } = relocation.flags() else {
                panic!()
            };
            let size = if r_type == object::elf::R_X86_64_64 {
                8
            } else {
                4
            };
            let at = at - start;
            code[at as usize..at as usize + size].fill(0);
            // A call binds to a local function directly, to a global one through the linker's table if need be.
            let plt = r_type == object::elf::R_X86_64_PLT32;
            kinds.push((
                at,
                if plt {
                    object::elf::R_X86_64_PC32
                } else {
                    r_type
                },
            ));
        }
        kinds.sort_unstable();
        all.insert(name.to_owned(), (code, kinds));
    }
    all
}

/// Equal but for the distances to other functions of the section, which may lie elsewhere: in one object they may
/// be a relocation, in the other the assembler's own result.
fn same(a: &Code, b: &Code) -> bool {
    let mut codes = [a.0.clone(), b.0.clone()];
    if codes[0].len() != codes[1].len() {
        return false;
    }
    for (at, kind) in a.1.iter().chain(&b.1) {
        let same_place = |code: &Code| code.1.iter().find(|(other, _)| other == at).copied();
        match (same_place(a), same_place(b)) {
            (Some(x), Some(y)) if x.1 != y.1 => return false,
            (Some(_), Some(_)) => {}
            _ if *kind != object::elf::R_X86_64_PC32 => return false,
            _ => codes
                .iter_mut()
                .for_each(|c| c[*at as usize..*at as usize + 4].fill(0)),
        }
    }
    let leaves = |code: &[u8], at: usize| {
        let jump = matches!(code[at - 1], 0xe8 | 0xe9);
        let conditional = at > 1 && code[at - 2] == 0x0f && code[at - 1] & 0xf0 == 0x80;
        let distance = i32::from_le_bytes(code[at..at + 4].try_into().unwrap());
        let target = at as i64 + 4 + i64::from(distance);
        (jump || conditional) && !(0..code.len() as i64).contains(&target)
    };
    let [a, b] = codes;
    let mut at = 0;
    while at < a.len() {
        if a[at] == b[at] {
            at += 1;
            continue;
        }
        let mut starts = (at.saturating_sub(3).max(1)..=at).filter(|s| s + 4 <= a.len());
        match starts.find(|&s| leaves(&a, s) && leaves(&b, s)) {
            Some(start) => at = start + 4,
            None => return false,
        }
    }
    true
}

fn names(object: &Path) -> (Vec<String>, Vec<String>) {
    let data = std::fs::read(object).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let of = |kinds: &[object::SymbolKind]| {
        let symbols = file.symbols();
        let symbols = symbols.filter(|s| !s.is_undefined() && kinds.contains(&s.kind()));
        symbols.map(|s| s.name().unwrap().to_owned()).collect()
    };
    use object::SymbolKind::*;
    (of(&[Data, Tls]), of(&[Text]))
}

fn rebuild(place: &Place, built: &Built, flags: &[&str]) -> std::path::PathBuf {
    let (variables, functions) = names(&built.object);
    let plan = BindPlan {
        version: BUILD_VERSION,
        prefix: "cere.u0.".into(),
        variables,
        functions,
        ..BindPlan::default()
    };
    let json = place.path("bind.json");
    std::fs::write(&json, serde_json::to_vec(&plan).unwrap()).unwrap();
    let object = place.path("again.o");
    let mut command = Command::new("clang-22");
    command
        .args(flags)
        .arg(format!("-fpass-plugin={}", plugin().display()));
    command
        .args(["-w", "-c", "-x", "ir"])
        .arg(place.unit_ir(&built.unit));
    run(command.arg("-o").arg(&object).env(ENV_BIND, &json));
    object
}

fn identical(name: &str, levels: &[&[&str]], fortran: &[&str]) {
    let mut different = Vec::new();
    let places = [Place::new as fn() -> Place, Place::choosing];
    for (flags, place) in levels.iter().flat_map(|f| places.map(|p| (f, p()))) {
        let built = place.instrumented(&program(name), flags);
        let flags = [flags, fortran].concat();
        let again = regions(&rebuild(&place, &built, &flags), "cere.u0.");
        let first = regions(&built.object, "");
        assert!(
            !first.is_empty() && first.keys().eq(again.keys()),
            "{name} {flags:?}"
        );
        for (region, code) in &first {
            if !same(code, &again[region]) {
                different.push(format!("{name} {flags:?} {region}"));
            }
        }
    }
    assert!(different.is_empty(), "{different:#?}");
}

const LEVELS: &[&[&str]] = &[
    &["-O0"],
    &["-O2"],
    &["-O3", "-march=x86-64-v3", "-fno-pic"],
    &["-Os", "-fPIC"],
    &["-O2", "-g", "-ffunction-sections"],
];

#[test]
fn c() {
    identical("control.c", LEVELS, &[]);
    identical("values.c", LEVELS, &[]);
}

#[test]
fn cxx() {
    identical("throws.cpp", LEVELS, &[]);
    identical("shared_b.cpp", LEVELS, &[]);
}

#[test]
fn fortran() {
    let levels: &[&[&str]] = &[
        &["-O0"],
        &["-O2"],
        &["-O3", "-march=x86-64-v3"],
        &["-O2", "-g", "-fPIC"],
    ];
    for name in ["fields.f90", "fixed.f"] {
        identical(name, levels, &["-ffp-contract=fast"]);
    }
}

//! Settles the link of a replay: each symbol that the packaged units need of others is one of the captured image's or of another
//! image's of the program, or a library's, or absent: then no live code of the image refers to it, or it is a thread-local variable
//! of another image.

use crate::PackError;
use crate::elf::{Kind, Symbol};
use crate::program::{Group, Loaded, RegionImage};
use crate::raw::Raw;
use crate::reach::references;
use crate::symbols::LINKED_AGAIN;
use cere_format::build::Unit;
use cere_format::package::{Absent, Function, OFFERED_LIBRARIES, TlsVariable, Variable};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

/// What the link of a replay finds, beyond what the image's units define.
#[derive(Default)]
pub struct Settled {
    /// Variables of objects without IR.
    pub variables: Vec<Variable>,
    /// Functions of objects without IR.
    pub functions: Vec<Function>,
    /// Thread-local variables of objects without IR.
    pub thread_locals: Vec<TlsVariable>,
    /// What is nowhere.
    pub absent: Vec<Absent>,
}

/// A symbol's name without its version.
fn plain(name: &str) -> &str {
    match name.split_once('@') {
        Some((plain, _)) if !plain.is_empty() => plain,
        _ => name,
    }
}

/// Names that libraries export, those among them that a replay links if something needs them.
fn exported(images: &[Loaded]) -> Result<HashSet<String>, PackError> {
    let mut names = HashSet::new();
    let mut add = |elf: &crate::elf::Elf| -> Result<(), PackError> {
        let symbols = elf.dynamic_symbols()?.into_iter();
        names.extend(
            symbols
                .filter(|s| s.defined && s.global)
                .map(|s| s.linked_name()),
        );
        Ok(())
    };
    for loaded in images.iter().filter(|l| !l.image.program) {
        add(&loaded.elf)?;
    }
    for library in OFFERED_LIBRARIES {
        let directories = cere_arch::HERE.facts().directories.iter();
        let mut paths = directories.map(|d| Path::new(d).join(library));
        if let Some(path) = paths.find(|p| p.is_file()) {
            add(&crate::elf::Elf::read(&path)?)?;
        }
    }
    Ok(names)
}

/// Thread-local variables that the program's other images export, with their sizes.
fn other_thread_locals(
    image: &RegionImage<'_>,
    images: &[Loaded],
) -> Result<HashMap<String, u64>, PackError> {
    let mut found = HashMap::new();
    for other in image.others(images) {
        for symbol in other.elf.dynamic_symbols()? {
            if symbol.defined && symbol.kind == Kind::ThreadLocal {
                found.insert(symbol.name, symbol.size);
            }
        }
    }
    Ok(found)
}

/// What is known of the image and the program's other images by name.
pub struct Known<'a> {
    /// Variables.
    pub variables: &'a [Variable],
    /// Functions.
    pub functions: &'a [Function],
    /// Thread-local variables of the image.
    pub thread_locals: &'a [TlsVariable],
}

impl Known<'_> {
    /// Names that are not a unit's own.
    fn names(&self) -> HashSet<&str> {
        let variables = self.variables.iter().map(|v| (&v.unit, &v.name));
        let functions = self.functions.iter().map(|f| (&f.unit, &f.name));
        let thread_locals = self.thread_locals.iter().map(|v| (&v.unit, &v.name));
        let all = variables.chain(functions).chain(thread_locals);
        all.filter(|n| n.0.is_none()).map(|n| &**n.1).collect()
    }
}

/// Why a replay cannot run what the unit's compiler puts on the stack, if it does.
pub fn code_on_stack(unit: &Unit) -> Option<String> {
    unit.executable_stack.then(|| {
        format!(
            "{} passes procedures that use variables of the procedure around them (internal procedures of Fortran, nested \
             functions of C), for which the compiler writes code on the stack: a replay's stack holds no code",
            unit.source.display()
        )
    })
}

/// Finds what `units` need, beside what is `known`. Refuses the region, which errors call `region`, if that is not clear.
pub fn settle(
    region: &str,
    raw: &Raw,
    images: &[Loaded],
    image: &RegionImage<'_>,
    units: &[&Unit],
    known: &Known<'_>,
) -> Result<Settled, PackError> {
    let mut settled = Settled::default();
    let needs = units.iter().flat_map(|u| u.needs.iter().map(|n| (*u, n)));
    let mut there = known.names();
    there.extend(units.iter().flat_map(|u| &u.defines).map(|n| &**n));
    let mut needs: Vec<(&Unit, &str)> = needs
        .map(|(unit, name)| (unit, name.as_str()))
        .filter(|(_, name)| !there.contains(name) && !LINKED_AGAIN.contains(name))
        .collect();
    if needs.is_empty() {
        return Ok(settled);
    }
    needs.sort_unstable_by_key(|(_, name)| *name);
    let exported = exported(images)?;
    let elsewhere = other_thread_locals(image, images)?;
    let by_name = ByName::of(image);
    for needing in needs.chunk_by(|a, b| a.1 == b.1) {
        let name = needing[0].1;
        let units: Vec<&Unit> = needing.iter().map(|(unit, _)| *unit).collect();
        let may_lack = |unit: &&Unit| unit.optional.iter().any(|o| o == name);
        let optional = units.iter().all(may_lack);
        let found = by_name.find(name, optional, image, &units);
        let found = found.map_err(|ambiguous| PackError::Refused {
            region: region.into(),
            reason: ambiguous.to_string(),
        })?;
        match found {
            // One that the linker copied from a library is the library's.
            Some(symbol) if symbol.global && symbol.kind == Kind::Variable => {}
            Some(symbol) => settled.add(symbol, raw, image)?,
            // A version that is the default is among the plain names.
            None if exported.contains(name) || exported.contains(plain(name)) => {}
            None => settled.absent.push(Absent {
                name: name.to_owned(),
                size: elsewhere.get(name).copied().unwrap_or(0),
                thread_local: elsewhere.contains_key(name),
            }),
        }
    }
    Ok(settled)
}

impl Settled {
    fn add(
        &mut self,
        symbol: &Symbol,
        raw: &Raw,
        image: &RegionImage<'_>,
    ) -> Result<(), PackError> {
        let (name, size) = (symbol.name.clone(), symbol.size);
        let address = image.loaded.address(symbol.value);
        let function = |address, size| Function {
            name: name.clone(),
            unit: None,
            address,
            size,
            other_image: false,
            ir: false,
        };
        let variable = |address| Variable {
            name: name.clone(),
            unit: None,
            address,
            size,
            untouched: !raw.holds(address, size),
        };
        match symbol.kind {
            Kind::Function => self.functions.push(function(address, size)),
            Kind::Variable => self.variables.push(variable(address)),
            Kind::Absolute => self.variables.push(variable(symbol.value)),
            Kind::ThreadLocal => self.thread_locals.push(TlsVariable {
                name,
                unit: None,
                offset: symbol.value,
                size,
            }),
            Kind::Chooser => {
                let slots = image.loaded.elf.chosen_slots(symbol.value)?;
                let mut chosen = None;
                for slot in slots {
                    chosen = chosen.or(raw.word(image.loaded.address(slot))?);
                }
                match chosen {
                    Some(address) => self.functions.push(function(address, 0)),
                    // The region would have read one of the slots to call it.
                    None => self.absent.push(Absent {
                        name,
                        size,
                        thread_local: false,
                    }),
                }
            }
            Kind::File | Kind::Other => {}
        }
        Ok(())
    }
}

/// A name that means several things.
#[derive(Debug, thiserror::Error)]
#[error(
    "several objects without IR have a local symbol {name}, and the code of {} does not show which of them it uses: rename \
     them",
    source_file.display()
)]
struct Ambiguous {
    name: String,
    source_file: PathBuf,
}

/// The image's symbols that an object without IR may have given a name.
struct ByName<'a> {
    /// Global ones, which the image defines or imports.
    globals: HashMap<&'a str, &'a Symbol>,
    /// Local ones, with the unit that they stand by. Those of objects without a file symbol stand by the object before.
    locals: HashMap<&'a str, Vec<(Option<&'a str>, &'a Symbol)>>,
}

impl<'a> ByName<'a> {
    fn of(image: &'a RegionImage<'_>) -> Self {
        let mut globals: HashMap<&str, &Symbol> = HashMap::new();
        for symbol in &image.globals {
            let first = globals.entry(&symbol.name).or_insert(symbol);
            if symbol.defined && !first.defined {
                *first = symbol;
            }
        }
        let mut locals: HashMap<&str, Vec<_>> = HashMap::new();
        for group in &image.groups {
            for symbol in &group.symbols {
                if symbol.defined && symbol.kind != Kind::File {
                    let unit = group.unit.as_deref();
                    locals.entry(&symbol.name).or_default().push((unit, symbol));
                }
            }
        }
        Self { globals, locals }
    }

    /// The symbol that `units` mean by `name`: a global one, or one that hidden visibility or a version script made local. An
    /// `optional` one may be nowhere in the program, and a local one of that name another's. The error is a reason to refuse.
    fn find(
        &self,
        name: &str,
        optional: bool,
        image: &RegionImage<'_>,
        units: &[&Unit],
    ) -> Result<Option<&'a Symbol>, Ambiguous> {
        if let Some(global) = self.globals.get(name) {
            return Ok(global.defined.then_some(*global));
        }
        let all = self.locals.get(name).map_or(&[][..], Vec::as_slice);
        let without = || all.iter().filter(|(unit, _)| unit.is_none());
        let candidates: Vec<&Symbol> = match without().count() {
            0 => all.iter().map(|(_, symbol)| *symbol).collect(),
            _ => without().map(|(_, symbol)| *symbol).collect(),
        };
        let addresses: BTreeSet<u64> = candidates.iter().map(|s| s.value).collect();
        if addresses.is_empty() || addresses.len() == 1 && !optional {
            return Ok(candidates.first().copied());
        }
        let meant = referenced(image, units, &candidates);
        let addresses: BTreeSet<u64> = meant.iter().map(|s| s.value).collect();
        match addresses.len() {
            // None: no code of theirs in the image uses it.
            0 => Ok(None),
            1 => Ok(meant.first().copied()),
            _ => Err(Ambiguous {
                name: name.to_owned(),
                source_file: units[0].source.clone(),
            }),
        }
    }
}

/// Those of `candidates` that the machine code of `units` refers to.
fn referenced<'a>(
    image: &RegionImage<'_>,
    units: &[&Unit],
    candidates: &[&'a Symbol],
) -> Vec<&'a Symbol> {
    let defined: HashSet<&str> = units
        .iter()
        .flat_map(|u| &u.defines)
        .map(|n| &**n)
        .collect();
    let own = |group: &&Group| {
        let unit = group.unit.as_deref();
        units.iter().any(|u| Some(&*u.id) == unit)
    };
    let local = image.groups.iter().filter(own).flat_map(|g| &g.symbols);
    let global = image.globals.iter();
    let functions = local.chain(global.filter(|s| defined.contains(&*s.name)));
    let mut found = BTreeSet::new();
    for function in functions.filter(|s| s.defined && s.kind == Kind::Function) {
        let code = image.loaded.elf.bytes(function.value, function.size);
        references(code.unwrap_or_default(), function.value, |address| {
            let holds = |s: &&Symbol| s.value <= address && address - s.value < s.size.max(1);
            found.extend(candidates.iter().position(holds));
        });
    }
    found.into_iter().map(|i| candidates[i]).collect()
}

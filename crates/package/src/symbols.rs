//! What the symbols of the program name: variables, functions, thread-locals, by unit.

use crate::PackError;
use crate::elf::{Kind, Symbol};
use crate::program::{Loaded, RegionImage};
use crate::raw::Raw;
use cere_format::abi::LABELS_SYMBOL_PREFIX;
use cere_format::build::Unit;
use cere_format::package::{Function, Labels, TlsVariable, Variable};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Symbols of crt files and the linker, which a replay's own link defines again.
pub const LINKED_AGAIN: [&str; 8] = [
    "__dso_handle",
    "_DYNAMIC",
    "_GLOBAL_OFFSET_TABLE_",
    "__ehdr_start",
    "__TMC_END__",
    "_init",
    "_fini",
    "_start",
];

/// Functions of crt files, which the start and the end of the program run.
const STARTUP: [&str; 8] = [
    "_init",
    "_fini",
    "_start",
    "_dl_relocate_static_pie",
    "frame_dummy",
    "__do_global_dtors_aux",
    "register_tm_clones",
    "deregister_tm_clones",
];

impl<'a> RegionImage<'a> {
    /// Every defined symbol with the unit of local ones. Symbols of the region's own object come first, so
    /// that they win over a second copy of it; global ones next; local ones of objects without IR are left out.
    fn named(&self) -> Vec<(&Symbol, Option<&str>)> {
        let defines: HashMap<&str, HashSet<&str>> = self
            .units
            .iter()
            .map(|u| {
                (
                    u.id.as_str(),
                    u.defines.iter().map(String::as_str).collect(),
                )
            })
            .collect();
        let anywhere: HashSet<&str> = defines.values().flatten().copied().collect();
        let own = &self.groups[self.own];
        let others = self
            .groups
            .iter()
            .enumerate()
            .filter(|(i, _)| *i != self.own);
        let mut named: Vec<(&Symbol, Option<&str>)> = Vec::new();
        for group in std::iter::once(own).chain(others.map(|(_, group)| group)) {
            for symbol in &group.symbols {
                // A hidden symbol is local in the image and global in the IR.
                match &group.unit {
                    Some(unit) => {
                        let hidden = defines
                            .get(unit.as_str())
                            .is_some_and(|d| d.contains(symbol.name.as_str()));
                        named.push((symbol, (!hidden).then_some(unit.as_str())));
                    }
                    None if anywhere.contains(symbol.name.as_str()) => named.push((symbol, None)),
                    None => {}
                }
            }
        }
        let mut globals: Vec<_> = self.globals.iter().map(|symbol| (symbol, None)).collect();
        globals.sort_by_key(|(symbol, _)| symbol.old);
        let mut all: Vec<_> = globals.into_iter().chain(named).collect();
        let mut seen = HashSet::new();
        all.retain(|(symbol, unit)| {
            symbol.defined
                && !symbol.name.is_empty()
                && !LINKED_AGAIN.contains(&symbol.name.as_str())
                && seen.insert((symbol.name.as_str(), *unit))
        });
        all
    }

    /// Names of library variables that the linker copied into the image.
    pub fn copied(&self, images: &[Loaded]) -> Result<BTreeSet<String>, PackError> {
        let mut copied: BTreeSet<String> = self
            .loaded
            .elf
            .relocations()?
            .into_iter()
            .filter(|r| r.copy)
            .map(|r| r.symbol.name)
            .collect();
        for other in self.others(images) {
            for symbol in other.elf.dynamic_symbols()? {
                if symbol.defined && symbol.kind == Kind::Variable {
                    copied.remove(&symbol.name);
                }
            }
        }
        Ok(copied)
    }

    /// The program's other images.
    pub fn others<'b>(&self, images: &'b [Loaded]) -> impl Iterator<Item = &'b Loaded> + use<'b> {
        let own = self.loaded.image.range;
        images
            .iter()
            .filter(move |l| l.image.program && l.image.range != own)
    }

    /// Variables of the image, and those that other images of the program export.
    pub fn variables(&self, images: &[Loaded]) -> Result<Vec<Variable>, PackError> {
        let copied = self.copied(images)?;
        let mut variables: Vec<Variable> = self
            .named()
            .into_iter()
            .filter(|(s, unit)| {
                s.kind == Kind::Variable
                    && !(unit.is_none() && copied.contains(&s.name))
                    && !s.name.starts_with(LABELS_SYMBOL_PREFIX)
            })
            .map(|(symbol, unit)| Variable {
                name: symbol.name.clone(),
                unit: unit.map(Into::into),
                address: self.loaded.address(symbol.value),
                size: symbol.size,
                untouched: false,
            })
            .collect();
        let mut place: HashMap<String, usize> = variables
            .iter()
            .enumerate()
            .filter(|(_, v)| v.unit.is_none())
            .map(|(i, v)| (v.name.clone(), i))
            .collect();
        let exported: HashSet<String> = self
            .loaded
            .elf
            .dynamic_symbols()?
            .into_iter()
            .filter(|s| s.defined)
            .map(|s| s.name)
            .collect();
        for other in self.others(images) {
            // The loader takes the first definition in load order: a program's copy of a library's variable wins.
            let earlier = other.image.path == images[0].image.path;
            for symbol in other.elf.dynamic_symbols()? {
                if !symbol.defined || symbol.kind != Kind::Variable || symbol.name.is_empty() {
                    continue;
                }
                let name = symbol.linked_name();
                let variable = Variable {
                    name: name.clone(),
                    unit: None,
                    address: other.address(symbol.value),
                    size: symbol.size,
                    untouched: false,
                };
                match place.get(&name) {
                    Some(&at) if earlier && exported.contains(&name) => variables[at] = variable,
                    Some(_) => {}
                    None => {
                        place.insert(name, variables.len());
                        variables.push(variable);
                    }
                }
            }
        }
        Ok(variables)
    }

    /// Functions of the image, and those that other images of the program export; of those that the loader chose by
    /// processor (`ifunc`) the chosen ones, from the captured words of relocations.
    pub fn functions(&self, images: &[Loaded], raw: &Raw) -> Result<Vec<Function>, PackError> {
        let defined: HashSet<&str> = self
            .units
            .iter()
            .flat_map(|u| u.defines.iter().map(String::as_str))
            .collect();
        let mut functions: Vec<Function> = self
            .named()
            .into_iter()
            .filter(|(s, _)| s.kind == Kind::Function)
            .map(|(symbol, unit)| Function {
                name: symbol.name.clone(),
                unit: unit.map(Into::into),
                address: self.loaded.address(symbol.value),
                size: symbol.size,
                other_image: false,
                ir: unit.is_some() || defined.contains(symbol.name.as_str()),
            })
            .collect();
        let mut known: HashSet<String> = functions
            .iter()
            .filter(|f| f.unit.is_none())
            .map(|f| f.name.clone())
            .collect();
        for other in self.others(images) {
            for symbol in other.elf.dynamic_symbols()? {
                if symbol.defined
                    && symbol.kind == Kind::Function
                    && !LINKED_AGAIN.contains(&symbol.name.as_str())
                    && known.insert(symbol.linked_name())
                {
                    functions.push(Function {
                        address: other.address(symbol.value),
                        name: symbol.linked_name(),
                        unit: None,
                        size: symbol.size,
                        other_image: true,
                        ir: false,
                    });
                }
            }
        }
        for relocation in self
            .loaded
            .elf
            .relocations()?
            .into_iter()
            .filter(|r| !r.copy)
        {
            let chosen = raw.word(self.loaded.address(relocation.offset))?;
            let name = relocation.symbol.name;
            let holder = chosen.and_then(|at| {
                let mut program = images.iter().filter(|l| l.image.program);
                program.find(|l| l.image.range.0 <= at && at < l.image.range.1)
            });
            if let (Some(address), Some(other)) = (chosen, holder)
                && other.elf.executable(address.wrapping_sub(other.image.bias))
                && known.insert(name.clone())
            {
                functions.push(Function {
                    name,
                    unit: None,
                    address,
                    size: 0,
                    other_image: other.image.range != self.loaded.image.range,
                    ir: false,
                });
            }
        }
        Ok(functions)
    }

    /// Labels of the functions of `units`.
    pub fn labels(&self, units: &[&Unit]) -> Vec<Labels> {
        let mut all: Vec<Labels> = Vec::new();
        for group in &self.groups {
            let of = |unit: &&&Unit| Some(&unit.id) == group.unit.as_ref();
            let Some(unit) = units.iter().find(of) else {
                continue;
            };
            for symbol in &group.symbols {
                let Some(function) = symbol.name.strip_prefix(LABELS_SYMBOL_PREFIX) else {
                    continue;
                };
                let bytes = self.loaded.elf.bytes(symbol.value, symbol.size);
                let distances = bytes.unwrap_or_default().as_chunks::<8>().0.iter();
                let labels = distances.zip((symbol.value..).step_by(8)).map(|(d, at)| {
                    let label = at.wrapping_add(u64::from_le_bytes(*d));
                    let there = label != at && self.loaded.elf.executable(label);
                    if there { self.loaded.address(label) } else { 0 }
                });
                let global = unit.defines.iter().any(|name| name == function);
                let labels = Labels {
                    function: function.to_owned(),
                    unit: (!global).then(|| unit.id.clone()),
                    addresses: labels.collect(),
                };
                // A unit that was linked twice.
                let same = |l: &Labels| (&l.function, &l.unit) == (&labels.function, &labels.unit);
                if !all.iter().any(same) {
                    all.push(labels);
                }
            }
        }
        all
    }

    /// Functions beside those of [`Self::functions`] that are of the region's image, each with the image that holds
    /// it: local ones of objects without IR, and all of the program's other images.
    pub fn without_ir(
        &self,
        images: &'a [Loaded],
    ) -> Result<Vec<(&'a Loaded, Function)>, PackError> {
        let own = self.loaded.image.range;
        let mut found = Vec::new();
        let mut add = |loaded: &'a Loaded, symbol: &Symbol| {
            if symbol.defined
                && symbol.kind == Kind::Function
                && !symbol.name.is_empty()
                && !STARTUP.contains(&symbol.name.as_str())
            {
                let function = Function {
                    name: symbol.name.clone(),
                    unit: None,
                    address: loaded.address(symbol.value),
                    size: symbol.size,
                    other_image: loaded.image.range != own,
                    ir: false,
                };
                found.push((loaded, function));
            }
        };
        for group in self.groups.iter().filter(|group| group.unit.is_none()) {
            for symbol in &group.symbols {
                add(self.loaded, symbol);
            }
        }
        for other in self.others(images) {
            let symbols = match other.elf.symbols()? {
                Some(symbols) => symbols,
                None => other.elf.dynamic_symbols()?,
            };
            for symbol in &symbols {
                add(other, symbol);
            }
        }
        Ok(found)
    }

    /// Thread-local variables of the image.
    pub fn thread_locals(&self) -> Vec<TlsVariable> {
        self.named()
            .into_iter()
            .filter(|(s, _)| s.kind == Kind::ThreadLocal)
            .map(|(symbol, unit)| TlsVariable {
                name: symbol.name.clone(),
                unit: unit.map(Into::into),
                offset: symbol.value,
                size: symbol.size,
            })
            .collect()
    }
}

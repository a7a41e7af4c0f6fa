//! The images of the captured process: which one holds the region, and what their symbols name.

use crate::PackError;
use crate::elf::{Elf, Kind, Symbol};
use crate::raw::{Raw, io};
use cere_format::FormatError;
use cere_format::abi::*;
use cere_format::build::{BUILD_VERSION, Unit};
use cere_format::capture::{Image, PAGE_CODE};
use cere_format::package::{Function, TlsVariable, Variable};
use cere_format::store::Store;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Symbols of crt files and the linker, which a replay's own link defines again.
const LINKED_AGAIN: [&str; 8] = [
    "__dso_handle",
    "_DYNAMIC",
    "_GLOBAL_OFFSET_TABLE_",
    "__ehdr_start",
    "__TMC_END__",
    "_init",
    "_fini",
    "_start",
];

/// A loaded image with its file.
pub struct Loaded {
    /// As captured.
    pub image: Image,
    /// The file.
    pub elf: Elf,
    /// Whether it belongs to the program rather than to a library that a replay takes fresh.
    pub program: bool,
}

impl Loaded {
    /// Where the file's address `value` was loaded.
    pub fn address(&self, value: u64) -> u64 {
        self.image.bias.wrapping_add(value)
    }
}

/// Reads the files of all images.
pub fn load(raw: &Raw) -> Result<Vec<Loaded>, PackError> {
    let images = raw.capture.images.iter().enumerate();
    images
        .map(|(number, image)| {
            Ok(Loaded {
                elf: Elf::read(&image.path)?,
                program: number == 0 || image.instrumented,
                image: image.clone(),
            })
        })
        .collect()
}

/// The local symbols of one object.
struct Group {
    /// The unit whose marker stands among them; none if the object has no IR.
    unit: Option<String>,
    symbols: Vec<Symbol>,
}

/// The image that holds the region.
pub struct RegionImage<'a> {
    /// The image.
    pub loaded: &'a Loaded,
    /// Units in link order, by id; a unit linked twice stands once.
    pub units: Vec<Unit>,
    globals: Vec<Symbol>,
    groups: Vec<Group>,
    /// The group of the region's own unit.
    own: usize,
}

/// Local symbols by object, and global symbols.
fn groups(elf: &Elf) -> Result<(Vec<Group>, Vec<Symbol>), PackError> {
    let symbols = elf.symbols()?.ok_or_else(|| PackError::Stripped {
        path: elf.path().into(),
    })?;
    let mut groups = vec![];
    let mut globals = Vec::new();
    for symbol in symbols {
        if symbol.global {
            globals.push(symbol);
            continue;
        }
        if symbol.kind == Kind::File || groups.is_empty() {
            groups.push(Group {
                unit: None,
                symbols: Vec::new(),
            });
        }
        let Some(group) = groups.last_mut() else {
            continue;
        };
        if let Some(id) = symbol.name.strip_prefix(UNIT_SYMBOL_PREFIX) {
            if let Some(first) = &group.unit {
                return Err(PackError::Merged {
                    path: elf.path().into(),
                    first: first.clone(),
                    second: id.into(),
                });
            }
            group.unit = Some(id.into());
        }
        group.symbols.push(symbol);
    }
    Ok((groups, globals))
}

/// Ids of the units that an image holds, in link order.
fn unit_ids(elf: &Elf) -> Result<Vec<String>, PackError> {
    let Some((_, bytes)) = elf.section(UNIT_SECTION)? else {
        return Ok(Vec::new());
    };
    let (markers, _) = bytes.as_chunks::<48>();
    Ok(markers
        .iter()
        .filter(|marker| marker[..8] == UNIT_MAGIC.to_le_bytes())
        .map(|marker| String::from_utf8_lossy(&marker[8..8 + UNIT_ID_LENGTH]).into_owned())
        .collect())
}

/// Addresses of the region descriptors of an image.
pub fn descriptors(loaded: &Loaded) -> Result<Vec<u64>, PackError> {
    let Some((address, bytes)) = loaded.elf.section(REGION_SECTION)? else {
        return Ok(Vec::new());
    };
    let (chunks, _) = bytes.as_chunks::<64>();
    Ok(chunks
        .iter()
        .enumerate()
        .filter(|(_, chunk)| chunk[..8] == REGION_MAGIC.to_le_bytes())
        .map(|(number, _)| loaded.address(address + 64 * number as u64))
        .collect())
}

fn record(store: &Store, id: &str, elf: &Elf) -> Result<Unit, PackError> {
    let path = store.unit_record(id);
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return Err(PackError::Stale {
                image: elf.path().into(),
                unit: id.into(),
                store: store.root().into(),
            });
        }
        Err(e) => return Err(io("read", &path)(e).into()),
    };
    let json = |source| FormatError::Json {
        what: path.display().to_string(),
        source,
    };
    let unit: Unit = serde_json::from_slice(&text).map_err(json)?;
    if unit.version != BUILD_VERSION {
        return Err(PackError::Format(FormatError::Invalid {
            what: path.display().to_string(),
            field: "version",
            value: unit.version.to_string(),
            why: "this cere writes another: build again with `cere instrument`",
        }));
    }
    Ok(unit)
}

impl<'a> RegionImage<'a> {
    /// Finds the image that holds the region.
    pub fn find(raw: &Raw, images: &'a [Loaded], store: &Store) -> Result<Self, PackError> {
        let key = &raw.capture.key;
        let mut best: Option<Self> = None;
        let outlined = format!("{OUTLINED_SYMBOL_PREFIX}{}", key.index);
        for loaded in images.iter().filter(|l| l.image.instrumented) {
            let ids = unit_ids(&loaded.elf)?;
            if !ids.contains(&key.unit) {
                continue;
            }
            let (groups, globals) = groups(&loaded.elf)?;
            let executed = |group: &Group| {
                group.unit.as_ref() == Some(&key.unit)
                    && group.symbols.iter().any(|s| {
                        s.name == outlined
                            && raw
                                .index(loaded.address(s.value))
                                .is_some_and(|i| raw.table[i].flags & PAGE_CODE != 0)
                    })
            };
            let holds = |group: &Group| {
                group.unit.as_ref() == Some(&key.unit)
                    && group.symbols.iter().any(|s| s.name == outlined)
            };
            let ran = groups.iter().position(executed);
            let Some(own) = ran.or_else(|| groups.iter().position(holds)) else {
                return Err(PackError::Stripped {
                    path: loaded.elf.path().into(),
                });
            };
            if best.is_some() && ran.is_none() {
                continue;
            }
            let mut seen = HashSet::new();
            let units = ids
                .iter()
                .filter(|id| seen.insert(id.as_str()))
                .map(|id| record(store, id, &loaded.elf))
                .collect::<Result<_, _>>()?;
            best = Some(Self {
                loaded,
                units,
                globals,
                groups,
                own,
            });
            if ran.is_some() {
                break;
            }
        }
        best.ok_or_else(|| PackError::NoRegion {
            key: key.clone(),
            images: images
                .iter()
                .filter(|l| l.image.instrumented)
                .map(|l| l.image.path.display().to_string())
                .collect::<Vec<_>>()
                .join(", "),
        })
    }

    /// The region's outlined function as the file has it.
    pub fn region_code(&self, index: u32) -> Vec<u8> {
        let name = format!("{OUTLINED_SYMBOL_PREFIX}{index}");
        self.groups[self.own]
            .symbols
            .iter()
            .find(|s| s.name == name)
            .and_then(|s| self.loaded.elf.bytes(s.value, s.size))
            .unwrap_or_default()
            .to_vec()
    }

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
        let globals = self.globals.iter().map(|symbol| (symbol, None));
        let mut all: Vec<_> = globals.chain(named).collect();
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

    fn others<'b>(&self, images: &'b [Loaded]) -> impl Iterator<Item = &'b Loaded> + use<'b> {
        let own = self.loaded.image.range;
        images
            .iter()
            .filter(move |l| l.program && l.image.range != own)
    }

    /// Variables of the image, and those that other images of the program export.
    pub fn variables(&self, images: &[Loaded]) -> Result<Vec<Variable>, PackError> {
        let copied = self.copied(images)?;
        let mut variables: Vec<Variable> = self
            .named()
            .into_iter()
            .filter(|(s, unit)| {
                s.kind == Kind::Variable && !(unit.is_none() && copied.contains(&s.name))
            })
            .map(|(symbol, unit)| Variable {
                name: symbol.name.clone(),
                unit: unit.map(Into::into),
                address: self.loaded.address(symbol.value),
                size: symbol.size,
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
                let variable = Variable {
                    name: symbol.name.clone(),
                    unit: None,
                    address: other.address(symbol.value),
                    size: symbol.size,
                };
                match place.get(&symbol.name) {
                    Some(&at) if earlier && exported.contains(&symbol.name) => {
                        variables[at] = variable
                    }
                    Some(_) => {}
                    None => {
                        place.insert(symbol.name, variables.len());
                        variables.push(variable);
                    }
                }
            }
        }
        Ok(variables)
    }

    /// Functions of the image, and those that other images of the program export.
    pub fn functions(&self, images: &[Loaded]) -> Result<Vec<Function>, PackError> {
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
                    && known.insert(symbol.name.clone())
                {
                    functions.push(Function {
                        address: other.address(symbol.value),
                        name: symbol.name,
                        unit: None,
                        size: symbol.size,
                        other_image: true,
                    });
                }
            }
        }
        Ok(functions)
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

//! Addresses of library functions and library variables in captured memory.

use crate::PackError;
use crate::elf::Kind;
use crate::program::Loaded;
use crate::raw::Raw;
use cere_format::package::{FreshLibrary, LibraryPlace, LibrarySymbol, LibrarySymbolKind};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

/// Every address that a captured word may hold to mean a library's symbol.
pub struct Symbols {
    known: HashMap<u64, LibrarySymbol>,
    /// Code of libraries: [start, end), and the library's first address, soname and build id.
    code: Vec<(u64, u64, u64, String, String)>,
    ranges: Vec<(u64, u64)>,
    bounds: (u64, u64),
    found: BTreeSet<u64>,
}

pub(crate) fn inside(range: (u64, u64), address: u64) -> bool {
    range.0 <= address && address < range.1
}

/// Of several names of one address the plainest wins: fewest underscores in front, then the shortest.
fn rank(symbol: &LibrarySymbol) -> impl Ord + use<> {
    let name = symbol.name.trim_start_matches('_');
    (
        symbol.name.len() - name.len(),
        symbol.name.len(),
        symbol.name.clone(),
        Reverse(symbol.symbol_version.clone()),
    )
}

/// What is named at which address.
#[derive(Default)]
struct Names {
    known: HashMap<u64, LibrarySymbol>,
    /// The first library in load order that has a name.
    owners: HashMap<String, String>,
    /// The first addresses of the program's images that define a name.
    program: HashMap<String, Vec<u64>>,
    /// Addresses that stand in the package though no captured word holds them.
    found: BTreeSet<u64>,
}

impl Names {
    fn add(&mut self, address: u64, name: &str, version: Option<String>, kind: LibrarySymbolKind) {
        let symbol = LibrarySymbol {
            address,
            library: self.owners.get(name).cloned().unwrap_or_default(),
            name: name.to_owned(),
            symbol_version: version,
            place: None,
            kind,
            words: Vec::new(),
        };
        self.known.insert(address, symbol);
    }

    /// An image of the program.
    fn note_program(&mut self, loaded: &Loaded) -> Result<(), PackError> {
        let symbols = loaded.elf.dynamic_symbols()?.into_iter();
        for symbol in symbols.filter(|s| s.defined) {
            let holders = self.program.entry(symbol.name).or_default();
            holders.push(loaded.image.range.0);
        }
        Ok(())
    }

    fn add_library(&mut self, loaded: &Loaded) -> Result<(), PackError> {
        let library = loaded.elf.soname()?;
        for symbol in loaded.elf.dynamic_symbols()? {
            // What libc's own parts share is of no use to a program.
            let private = symbol.version.as_deref() == Some("GLIBC_PRIVATE");
            if !symbol.defined || !symbol.global || symbol.value == 0 || private {
                continue;
            }
            let owner = self.owners.entry(symbol.name.clone());
            owner.or_insert_with(|| library.clone());
            let mut chosen = loaded.image.chosen.iter();
            let (address, kind) = match symbol.kind {
                Kind::Function => (loaded.address(symbol.value), LibrarySymbolKind::Function),
                Kind::Variable => (loaded.address(symbol.value), LibrarySymbolKind::Variable),
                Kind::Chooser if let Some(chosen) = chosen.find(|c| c.0 == symbol.value) => {
                    (chosen.1, LibrarySymbolKind::Function)
                }
                _ => continue,
            };
            let new = LibrarySymbol {
                address,
                library: library.clone(),
                name: symbol.name,
                symbol_version: symbol.version,
                place: None,
                kind,
                words: Vec::new(),
            };
            let old = self.known.get(&address);
            if old.is_none_or(|old| rank(old) > rank(&new)) {
                self.known.insert(address, new);
            }
        }
        Ok(())
    }

    /// Entries in the linkage table that are library functions' addresses for a program that is not position-independent.
    fn add_linkage(&mut self, loaded: &Loaded) -> Result<(), PackError> {
        for symbol in loaded.elf.dynamic_symbols()? {
            let placed = !symbol.defined && symbol.kind == Kind::Function && symbol.value != 0;
            if placed && !self.program.contains_key(&symbol.name) {
                let address = loaded.address(symbol.value);
                // Also what only the region's end shows is one of these.
                self.found.insert(address);
                let kind = LibrarySymbolKind::Function;
                self.add(address, &symbol.name, symbol.version, kind);
            }
        }
        Ok(())
    }

    /// What the loader resolved for an image of the program.
    fn add_resolved(
        &mut self,
        loaded: &Loaded,
        raw: &Raw,
        images: &[Loaded],
    ) -> Result<(), PackError> {
        for relocation in loaded.elf.relocations()? {
            let name = &relocation.symbol.name;
            let at = loaded.address(relocation.offset);
            let elsewhere = |start: &u64| *start != loaded.image.range.0;
            let (address, kind) = if relocation.copy {
                let holders = self.program.get(name);
                if holders.is_some_and(|p| p.iter().any(elsewhere)) {
                    continue;
                }
                (at, LibrarySymbolKind::Variable)
            } else {
                let Some(value) = raw.word(at)?.filter(|v| *v != 0) else {
                    continue;
                };
                let holder = images.iter().find(|l| inside(l.image.range, value));
                if holder.is_some_and(|l| l.image.program) {
                    continue;
                }
                let code =
                    holder.is_none_or(|l| l.elf.executable(value.wrapping_sub(l.image.bias)));
                let kind = match code {
                    true => LibrarySymbolKind::Function,
                    false => LibrarySymbolKind::Variable,
                };
                (value, kind)
            };
            self.add(address, name, relocation.symbol.version.clone(), kind);
        }
        Ok(())
    }
}

impl Symbols {
    /// Collects the dynamic symbols of all libraries, the implementations that they chose by processor (`memcpy`), the preload
    /// library's functions, and what the loader resolved for the program's images.
    pub fn collect(raw: &Raw, images: &[Loaded]) -> Result<Self, PackError> {
        let mut names = Names::default();
        for loaded in images {
            match loaded.image.program {
                true => names.note_program(loaded)?,
                false => names.add_library(loaded)?,
            }
        }
        for loaded in images.iter().filter(|l| l.image.program) {
            names.add_linkage(loaded)?;
            names.add_resolved(loaded, raw, images)?;
        }
        for (name, address) in &raw.capture.interposed {
            if !names.known.contains_key(address) {
                names.add(*address, name, None, LibrarySymbolKind::Function);
            }
        }
        let libraries = || images.iter().filter(|l| !l.image.program);
        let mut code = Vec::new();
        for loaded in libraries() {
            if let Some(build) = loaded.elf.build_id()? {
                let (first, library) = (loaded.image.range.0, loaded.elf.soname()?);
                let found = loaded.elf.code()?.into_iter();
                let found = found.map(|(start, end)| (loaded.address(start), loaded.address(end)));
                code.extend(found.map(|(s, e)| (s, e, first, library.clone(), build.clone())));
            }
        }
        let mut ranges: Vec<(u64, u64)> = libraries().map(|l| l.image.range).collect();
        let outside = names.known.keys().copied();
        let outside: Vec<u64> = outside
            .filter(|a| !ranges.iter().any(|r| inside(*r, *a)))
            .collect();
        ranges.extend(outside.into_iter().map(|a| (a, a + 1)));
        let bounds = (
            ranges.iter().map(|r| r.0).min().unwrap_or(0),
            ranges.iter().map(|r| r.1).max().unwrap_or(0),
        );
        Ok(Self {
            known: names.known,
            code,
            ranges,
            bounds,
            found: names.found,
        })
    }

    /// Looks at the captured word `value` at `address`; a word in memory that a replay takes fresh is not rewritten.
    #[inline]
    pub fn word(&mut self, address: u64, value: u64, foreign: bool) {
        if !inside(self.bounds, value) || !self.ranges.iter().any(|r| inside(*r, value)) {
            return;
        }
        if let Some(symbol) = self.known.get_mut(&value) {
            if symbol.kind == LibrarySymbolKind::Variable {
                if foreign {
                    return;
                }
                symbol.words.push(address);
            }
            self.found.insert(value);
        } else if self.code.iter().any(|c| c.0 <= value && value < c.1) {
            self.found.insert(value);
        }
    }

    /// Code at `address` that no symbol names.
    fn unnamed(&self, address: u64) -> Option<LibrarySymbol> {
        let mut code = self.code.iter();
        let (_, _, first, library, build) = code.find(|c| c.0 <= address && address < c.1)?;
        Some(LibrarySymbol {
            address,
            library: library.clone(),
            name: String::new(),
            symbol_version: None,
            place: Some(LibraryPlace {
                offset: address - first,
                build_id: build.clone(),
            }),
            kind: LibrarySymbolKind::Function,
            words: Vec::new(),
        })
    }

    /// The symbols that words were found for, by rising address.
    pub fn finish(mut self) -> Vec<LibrarySymbol> {
        let found = std::mem::take(&mut self.found).into_iter();
        let symbols = found.filter_map(|a| self.known.remove(&a).or_else(|| self.unnamed(a)));
        symbols.collect()
    }
}

/// Sonames of the libraries in load order, the loader left out, and the directories of those outside the
/// system's.
pub fn linked(images: &[Loaded]) -> Result<(Vec<String>, Vec<String>), PackError> {
    let (mut names, mut directories) = (Vec::new(), Vec::new());
    for loaded in images.iter().filter(|l| !l.image.program) {
        let name = loaded.elf.soname()?;
        if name.starts_with("ld-linux") || names.contains(&name) {
            continue;
        }
        names.push(name);
        if let Some(directory) = loaded.image.path.parent() {
            let directory = directory.display().to_string();
            let system = cere_arch::HERE.facts().directories;
            if !system.contains(&directory.as_str()) && !directories.contains(&directory) {
                directories.push(directory);
            }
        }
    }
    Ok((names, directories))
}

/// The libraries whose build is known, as they were loaded.
pub fn fresh(images: &[Loaded]) -> Result<Vec<FreshLibrary>, PackError> {
    let mut found = Vec::new();
    for loaded in images.iter().filter(|l| !l.image.program) {
        let bias = loaded.image.bias;
        found.extend(
            loaded
                .elf
                .build_id()?
                .map(|build| FreshLibrary { bias, build }),
        );
    }
    Ok(found)
}

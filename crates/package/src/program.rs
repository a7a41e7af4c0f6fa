//! The images of the captured process, and which one holds the region.

use crate::PackError;
use crate::elf::{Elf, Kind, Symbol};
use crate::raw::Raw;
use cere_format::FormatError;
use cere_format::abi::*;
use cere_format::build::{BUILD_VERSION, Unit};
use cere_format::capture::{Image, PAGE_CODE, PageRecord};
use cere_format::package::FrameTable;
use cere_format::store::Store;
use std::collections::HashSet;

/// A loaded image with its file.
pub struct Loaded {
    /// As captured.
    pub image: Image,
    /// The file.
    pub elf: Elf,
}

impl Loaded {
    /// The name of its file.
    pub fn file_name(&self) -> String {
        let name = self.image.path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Where the file's address `value` was loaded.
    pub fn address(&self, value: u64) -> u64 {
        self.image.bias.wrapping_add(value)
    }
}

/// Reads the files of all images. One that cannot be read any more is left out if the region touched nothing of it.
pub fn load(raw: &Raw) -> Result<Vec<Loaded>, PackError> {
    let mut all = Vec::new();
    for (number, image) in raw.capture.images.iter().enumerate() {
        let touched = |p: &PageRecord| image.range.0 <= p.address && p.address < image.range.1;
        match Elf::read(&image.path) {
            Ok(elf) => all.push(Loaded {
                elf,
                image: image.clone(),
            }),
            Err(PackError::Image { .. }) if number > 0 && !raw.table.iter().any(touched) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

/// The local symbols of one object.
pub struct Group {
    /// The unit whose marker stands among them; none if the object has no IR.
    pub unit: Option<String>,
    /// The symbols.
    pub symbols: Vec<Symbol>,
}

/// The image that holds the region.
pub struct RegionImage<'a> {
    /// The image.
    pub loaded: &'a Loaded,
    /// Units in link order, by id; a unit linked twice stands once.
    pub units: Vec<Unit>,
    /// Its global symbols.
    pub globals: Vec<Symbol>,
    /// Its local symbols.
    pub groups: Vec<Group>,
    /// The group of the region's own unit.
    pub own: usize,
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

/// The variables of fresh libraries that the loader copied into images of the program: names, addresses, sizes.
pub fn copied(images: &[Loaded]) -> Result<Vec<(String, u64, u64)>, PackError> {
    let mut found = Vec::new();
    let mut programs = HashSet::new();
    for loaded in images.iter().filter(|l| l.image.program) {
        let own = loaded.elf.dynamic_symbols()?.into_iter();
        programs.extend(
            own.filter(|s| s.defined)
                .map(|s| (s.name, loaded.image.range.0)),
        );
    }
    for loaded in images.iter().filter(|l| l.image.program) {
        for relocation in loaded.elf.relocations()?.into_iter().filter(|r| r.copy) {
            let symbol = relocation.symbol;
            let another = |p: &&(String, u64)| p.0 == symbol.name && p.1 != loaded.image.range.0;
            if !programs.iter().any(|p| another(&p)) {
                found.push((symbol.name, loaded.address(relocation.offset), symbol.size));
            }
        }
    }
    Ok(found)
}

/// The tables of frames, of the program's images, that the region's unwinder looked at.
pub fn frame_tables(raw: &Raw, images: &[Loaded]) -> Result<Vec<FrameTable>, PackError> {
    let mut found = Vec::new();
    for loaded in images.iter().filter(|l| l.image.program) {
        let table = loaded.elf.frame_table()?.map(|at| loaded.address(at));
        found.extend(
            table
                .filter(|at| raw.index(*at).is_some())
                .map(|table| FrameTable {
                    range: loaded.image.range,
                    table,
                }),
        );
    }
    Ok(found)
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
        Err(e) => return Err(FormatError::io("read", &path)(e).into()),
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

/// Units of the images beside `own`. What the store does not hold is left out: nothing of it is compiled.
pub fn units_beside(
    images: &[Loaded],
    own: &Loaded,
    store: &Store,
) -> Result<Vec<Unit>, PackError> {
    let mut units = Vec::new();
    for loaded in images {
        if !loaded.image.instrumented || loaded.image.range == own.image.range {
            continue;
        }
        for id in unit_ids(&loaded.elf)? {
            match record(store, &id, &loaded.elf) {
                Ok(unit) => units.push(unit),
                Err(PackError::Stale { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(units)
}

/// Leaves in `weak` of each unit what another definition of the program stands in for, and takes it from what the unit
/// defines. The linker takes a strong definition, else the first. `strong`: names that the image has such ones of.
fn override_weak(units: &mut [Unit], strong: HashSet<&str>) {
    let mut taken: HashSet<String> = strong.into_iter().map(str::to_owned).collect();
    for unit in units.iter() {
        let own: HashSet<&String> = unit.weak.iter().collect();
        taken.extend(
            unit.defines
                .iter()
                .filter(|name| !own.contains(name))
                .cloned(),
        );
    }
    for unit in units {
        unit.weak.retain(|name| !taken.insert(name.clone()));
        let overridden: HashSet<&String> = unit.weak.iter().collect();
        unit.defines.retain(|name| !overridden.contains(name));
    }
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
            if groups.iter().all(|group| group.unit.is_none()) {
                return Err(PackError::Stripped {
                    path: loaded.elf.path().into(),
                });
            }
            let Some(own) = ran.or_else(|| groups.iter().position(holds)) else {
                continue;
            };
            if best.is_some() && ran.is_none() {
                continue;
            }
            let mut seen = HashSet::new();
            let mut units = ids
                .iter()
                .filter(|id| seen.insert(id.as_str()))
                .map(|id| record(store, id, &loaded.elf))
                .collect::<Result<Vec<_>, _>>()?;
            let strong = globals.iter().filter(|s| s.defined && !s.weak);
            override_weak(&mut units, strong.map(|s| s.name.as_str()).collect());
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
}

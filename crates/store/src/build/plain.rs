//! The code of an image that no unit stands for: objects that were compiled without the wrappers, assembly, static libraries.

use crate::build::units;
use crate::state;
use anyhow::Result;
use cere_format::abi::UNIT_SYMBOL_PREFIX;
use cere_format::build::Unit;
use cere_format::language::rust::is_symbol;
use cere_format::store::Store;
use object::elf::{SHF_ALLOC, SHF_EXECINSTR};
use object::{File, Object, ObjectSection, ObjectSymbol, SectionFlags, SectionIndex, SymbolKind};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

/// Code without units.
#[derive(Debug, Clone, Serialize)]
pub struct Plain {
    /// The image.
    pub image: PathBuf,
    /// Share of the image's code, 0 to 1, that of the C library's start files left out.
    pub share: f64,
    /// Source files, as the image's symbols name them, or else functions; those with the most code first.
    pub names: Vec<String>,
}

/// Names that are shown.
const SHOWN: usize = 4;

impl std::fmt::Display for Plain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = &self.names[..self.names.len().min(SHOWN)];
        write!(
            f,
            "{:.1} % of the code of {} is of no unit, and so has no regions (assembly, libraries, and what was compiled without cere's wrappers): {}",
            self.share * 100.0,
            self.image.display(),
            shown.join(", ")
        )?;
        match self.names.len() - shown.len() {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// What code is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    /// The C library's or the compiler's own part of each image.
    Toolchain,
    /// No unit.
    Plain,
    /// A unit.
    Unit,
}

/// What stands in every image beside the program's objects: names of files and of functions.
const START_FILES: [&str; 6] = [
    "crtstuff.c",
    "Scrt1.o",
    "crt1.o",
    "gcrt1.o",
    "crti.o",
    "crtn.o",
];
const START: [&str; 17] = [
    "_start",
    "_init",
    "_fini",
    "_dl_relocate_static_pie",
    "atexit",
    "at_quick_exit",
    "pthread_atfork",
    "stat",
    "stat64",
    "fstat",
    "fstat64",
    "lstat",
    "lstat64",
    "fstatat",
    "fstatat64",
    "mknod",
    "mknodat",
];

/// A file whose local symbols stand together.
struct Group {
    name: String,
    unit: Option<String>,
}

/// The code of `image`, whose bytes are given, without a unit that the store knows; none if there is none, or if the image has no
/// symbols to see it by.
pub fn of(image: &Path, bytes: &[u8], store: &Store) -> Result<Option<Plain>> {
    let known = |id: &str| store.unit_record(id).is_file();
    let mut defines = HashSet::new();
    for id in units::of(bytes)?.iter().filter(|id| known(id)) {
        let unit: Unit = state::read_json(&store.unit_record(id))?;
        defines.extend(unit.defines.into_iter().map(bare));
    }
    let file = File::parse(bytes)?;
    let (groups, starts) = starts(&file, &|name: &str| defines.contains(name), &known);
    let mut bytes = BTreeMap::from([(Owner::Unit, 0u64), (Owner::Plain, 0)]);
    let mut names: HashMap<&str, u64> = HashMap::new();
    for section in file.sections().filter(is_code) {
        let end = section.address() + section.size();
        let inside: Vec<_> = starts.range(section.address()..end).collect();
        for (index, (at, (owner, name))) in inside.iter().enumerate() {
            let next = inside.get(index + 1).map_or(end, |(at, _)| **at);
            *bytes.entry(*owner).or_default() += next - *at;
            if *owner == Owner::Plain {
                *names.entry(name).or_default() += next - *at;
            }
        }
    }
    let (plain, all) = (
        bytes[&Owner::Plain],
        bytes[&Owner::Plain] + bytes[&Owner::Unit],
    );
    if plain == 0 {
        return Ok(None);
    }
    // Functions that others can call are not listed with their file: it is one of those without a unit, if there are any.
    let files: BTreeSet<&str> = groups
        .iter()
        .filter(|g| !g.name.is_empty() && !START_FILES.contains(&g.name.as_str()))
        .filter(|g| g.unit.as_deref().is_none_or(|id| !known(id)) && !is_rusts(&g.name))
        .map(|g| g.name.as_str())
        .collect();
    let mut named: Vec<&str> = match files.is_empty() {
        true => names.keys().copied().collect(),
        false => files.into_iter().collect(),
    };
    named.sort_by_key(|name| (std::cmp::Reverse(names.get(name)), *name));
    Ok(Some(Plain {
        image: image.to_owned(),
        share: plain as f64 / all as f64,
        names: named.into_iter().map(str::to_owned).collect(),
    }))
}

/// Crates of which Rust's own library is made: it is in each of its images, made beforehand.
const RUST: [&str; 20] = [
    "__rustc",
    "std",
    "core",
    "alloc",
    "hashbrown",
    "rustc_demangle",
    "addr2line",
    "gimli",
    "object",
    "miniz_oxide",
    "adler2",
    "memchr",
    "unwind",
    "cfg_if",
    "libc",
    "std_detect",
    "panic_unwind",
    "panic_abort",
    "compiler_builtins",
    "rustc_std_workspace_core",
];

/// Whether a name is one of that library: of a part of a crate (`std.<hash>-cgu.0`), or a mangled function's.
fn is_rusts(name: &str) -> bool {
    if let Some((krate, part)) = name.split_once('.')
        && part.contains("-cgu.")
    {
        return RUST.contains(&krate);
    }
    if !is_symbol(name) {
        return name.starts_with("__rust") || name.starts_with("rust_");
    }
    // The crate that asked for the code is named last.
    let krate = |at: usize| {
        let (_, path) = name[at..].split_once('_')?;
        let digits = path.bytes().take_while(u8::is_ascii_digit).count();
        let length: usize = path[..digits].parse().ok()?;
        let rest = &path[digits..];
        rest.strip_prefix('_').unwrap_or(rest).get(..length)
    };
    let last = name
        .match_indices("Cs")
        .filter_map(|(at, _)| krate(at))
        .last();
    last.is_some_and(|krate| RUST.contains(&krate))
}

/// A name without the mark of those that are not to be changed.
fn bare(name: String) -> String {
    match name.strip_prefix('\u{1}') {
        Some(rest) => rest.to_owned(),
        None => name,
    }
}

fn is_code<'a>(section: &impl ObjectSection<'a>) -> bool {
    let SectionFlags::Elf { sh_flags, .. } = section.flags() else {
        return false;
    };
    let wanted = SHF_ALLOC.0 | SHF_EXECINSTR.0;
    let name = section.name().unwrap_or_default();
    let linkers = name.starts_with(".plt") || name == ".init" || name == ".fini";
    sh_flags.0 & wanted == wanted && !linkers
}

/// Where code of each owner starts, with the file or function; and the files.
fn starts(
    file: &File,
    defined: &dyn Fn(&str) -> bool,
    known: &dyn Fn(&str) -> bool,
) -> (Vec<Group>, BTreeMap<u64, (Owner, String)>) {
    let code: HashSet<SectionIndex> = file
        .sections()
        .filter(is_code)
        .map(|section| section.index())
        .collect();
    let mut groups = vec![Group {
        name: String::new(),
        unit: None,
    }];
    let mut found = Vec::new();
    for symbol in file.symbols() {
        let name = symbol.name().unwrap_or_default();
        if symbol.kind() == SymbolKind::File {
            groups.push(Group {
                name: name.to_owned(),
                unit: None,
            });
        } else if let Some(id) = name
            .strip_prefix(UNIT_SYMBOL_PREFIX)
            .filter(|_| symbol.is_local())
        {
            groups.last_mut().expect("the first one").unit = Some(id.to_owned());
        } else if symbol
            .section_index()
            .is_some_and(|index| code.contains(&index))
        {
            let group = symbol.is_local().then(|| groups.len() - 1);
            found.push((symbol.address(), name, group));
        }
    }
    let mut starts: BTreeMap<u64, (Owner, String)> = BTreeMap::new();
    for (address, name, group) in found {
        let group = group.map(|index| &groups[index]);
        let of_unit = group.and_then(|g| g.unit.as_deref()).is_some_and(known);
        let file = group.map_or("", |g| g.name.as_str());
        let owner = match () {
            // Names that end in a number or another mark are of functions that the optimiser made of another.
            () if of_unit || defined(name) || name.split('.').next().is_some_and(defined) => {
                Owner::Unit
            }
            () if START_FILES.contains(&file) || START.contains(&name) => Owner::Toolchain,
            () if is_rusts(file) || is_rusts(name) => Owner::Toolchain,
            // Reserved for the implementation: functions of libgcc and compiler-rt.
            () if file.is_empty() && name.starts_with("__") => Owner::Toolchain,
            () => Owner::Plain,
        };
        let shown = if file.is_empty() { name } else { file };
        let new = (owner, shown.to_owned());
        let at = starts.entry(address).or_insert_with(|| new.clone());
        if owner > at.0 {
            *at = new;
        }
    }
    (groups, starts)
}

//! The glue: assembly that defines what the recompiled units need from the captured process.

use crate::ReplayError;
use crate::compile::prefix;
use cere_arch::target::Target;
use cere_format::PAGE;
use cere_format::abi::{INVOKE_SYMBOL_PREFIX, OWN};
use cere_format::build::REFUSAL_SYMBOL;
use cere_format::package::{Absent, Manifest, TlsBlock};
use object::{Object, ObjectSymbol};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;
use std::path::Path;

/// Minimum alignment of the thread-local segment, including the runtime's own part.
const THREAD_ALIGN: u64 = 64;

/// Symbol of the word with the runtime's function that code with reported stores calls.
const STORE: &str = "cere_glue_store";

fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
}

/// What an object says of a symbol that is not local.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stand {
    /// It is defined there.
    Defined,
    /// It is needed.
    Needed,
    /// It is needed, and may be nowhere.
    Optional,
}

/// Names that are not local.
pub fn globals(path: &Path) -> Result<Vec<(String, Stand)>, ReplayError> {
    let bad = |reason: String| ReplayError::Object {
        path: path.to_owned(),
        reason,
    };
    let data = std::fs::read(path).map_err(|e| bad(e.to_string()))?;
    let file = object::File::parse(&*data).map_err(|e| bad(e.to_string()))?;
    let global = file
        .symbols()
        .filter(|s| s.is_undefined() || s.is_global())
        .filter_map(|s| {
            let stand = match (s.is_undefined(), s.is_weak()) {
                (false, _) => Stand::Defined,
                (true, false) => Stand::Needed,
                (true, true) => Stand::Optional,
            };
            Some((s.name().ok()?.to_owned(), stand))
        })
        .filter(|s| !s.0.is_empty());
    Ok(global.collect())
}

/// The symbols of the objects.
#[derive(Default)]
struct Symbols {
    /// Those that they define.
    defined: BTreeSet<String>,
    /// Those that they need.
    needed: BTreeSet<String>,
    /// Those of them that may not be nowhere.
    required: BTreeSet<String>,
}

impl Symbols {
    fn of(objects: &[&Path]) -> Result<Self, ReplayError> {
        let mut symbols = Self::default();
        for path in objects {
            for (name, stand) in globals(path)? {
                match stand {
                    Stand::Defined => symbols.defined.insert(name),
                    Stand::Optional => symbols.needed.insert(name),
                    Stand::Needed => {
                        symbols.required.insert(name.clone());
                        symbols.needed.insert(name)
                    }
                };
            }
        }
        symbols.needed.retain(|n| !symbols.defined.contains(n));
        Ok(symbols)
    }
}

/// What a program's own `name` is called in the replay.
pub fn renamed_symbol(name: &str) -> String {
    format!("cere.p.{name}")
}

/// The glue.
pub struct Glue {
    /// Assembly.
    pub text: String,
    /// Bytes, about, that it takes in memory and not in a file.
    pub room: u64,
}

/// Where names lead.
#[derive(Default)]
struct Names {
    /// Symbols at captured addresses.
    absolute: BTreeMap<String, u64>,
    /// Functions of other images, too far for a call: a jump is put near.
    thunks: BTreeMap<String, u64>,
    /// Old addresses of functions that were compiled again.
    jumps: BTreeMap<u64, String>,
    /// Captured addresses of labels, and the table's entry that says where each is.
    labels: Vec<(u64, String)>,
    /// Offsets in the thread-local block.
    thread: BTreeMap<String, u64>,
    /// Variables that the captured image lacks, and what is absent from it.
    lost: BTreeMap<String, Lost>,
    /// Rows that say where their bytes are, in the pass's order: a variable's initial value, then what the image has of it.
    bytes: Vec<String>,
}

/// A variable that the captured image lacks, or a symbol that is absent from it.
struct Lost {
    /// Name in the source; of an absent symbol, what is said of it.
    name: String,
    /// Bytes.
    size: u64,
    /// What is known of its bytes: a value of the runtime's `Lost::kind`.
    kind: u8,
}

/// The variable that the pass found to be in no captured image, from its symbol.
fn lost(symbol: &str, units: usize) -> Option<Lost> {
    let rest = (0..units).find_map(|i| symbol.strip_prefix(&prefix(i)))?;
    let rest = rest.strip_prefix(OWN)?;
    let (kind, rest) = rest.split_once('.')?;
    let kind = match kind {
        "lost" => 0,
        "removed" => 1,
        "whole" => 2,
        _ => return None,
    };
    let (size, name) = rest.split_once('.')?;
    let plain = !name.chars().any(char::is_control);
    plain.then_some(Lost {
        name: name.to_owned(),
        size: size.parse().ok()?,
        kind,
    })
}

/// A place that ends the region which uses it.
fn absent_symbol(absent: &Absent) -> Lost {
    let what = match absent.thread_local {
        true => "a thread-local variable of another image than the region's",
        false => "which the captured image does not have",
    };
    Lost {
        name: format!("{}, {what}", absent.name),
        size: absent.size,
        kind: 3,
    }
}

/// What gives the names of a replay's glue.
struct Naming<'a> {
    manifest: &'a Manifest,
    symbols: &'a Symbols,
    /// Symbols of all units that have another name in the replay.
    renamed: &'a BTreeSet<String>,
    /// Numbers of the units by their identifiers.
    numbers: HashMap<&'a str, usize>,
}

fn names(manifest: &Manifest, symbols: &Symbols, renamed: &BTreeSet<String>) -> Names {
    let numbered = manifest.units.iter().enumerate();
    let naming = Naming {
        manifest,
        symbols,
        renamed,
        numbers: numbered.map(|(i, u)| (u.id.as_str(), i)).collect(),
    };
    let mut names = Names::default();
    naming.variables(&mut names);
    naming.functions(&mut names);
    naming.labels(&mut names);
    naming.lost(&mut names);
    for i in 0..manifest.units.len() {
        let rows = format!("{}{OWN}bytes.", prefix(i));
        let number = |name: &String| name.strip_prefix(&rows)?.parse::<u64>().ok();
        let of_unit = symbols.defined.iter();
        let mut of_unit: Vec<_> = of_unit.filter_map(|n| Some((number(n)?, n))).collect();
        of_unit.sort_unstable();
        let of_unit = of_unit.into_iter().map(|(_, name)| name.clone());
        names.bytes.extend(of_unit);
    }
    // An image's own definition comes before another image's.
    names
        .thunks
        .retain(|name, _| !names.absolute.contains_key(name));
    names
}

impl Naming<'_> {
    /// Symbol in the replay of a name that belongs to a unit, or to all; none if the unit is not here.
    fn symbol(&self, name: &str, unit: &Option<String>) -> Option<String> {
        match unit {
            None if self.renamed.contains(name) => Some(renamed_symbol(name)),
            None => Some(name.to_owned()),
            Some(id) => {
                let number = self.numbers.get(id.as_str())?;
                Some(format!("{}{name}", prefix(*number)))
            }
        }
    }

    fn variables(&self, names: &mut Names) {
        let needed = |name: &str, unit| {
            let symbol = self.symbol(name, unit);
            symbol.filter(|name| self.symbols.needed.contains(name))
        };
        for variable in &self.manifest.variables {
            if let Some(name) = needed(&variable.name, &variable.unit) {
                names.absolute.entry(name).or_insert(variable.address);
            }
        }
        let tls = self.manifest.image.tls.iter();
        for variable in tls.flat_map(|t| &t.variables) {
            if let Some(name) = needed(&variable.name, &variable.unit) {
                names.thread.entry(name).or_insert(variable.offset);
            }
        }
    }

    fn functions(&self, names: &mut Names) {
        let Symbols {
            defined, needed, ..
        } = self.symbols;
        for function in &self.manifest.functions {
            let owners: Vec<usize> = match &function.unit {
                Some(id) => self.numbers.get(id.as_str()).copied().into_iter().collect(),
                None => (0..self.manifest.units.len()).collect(),
            };
            for owner in &owners {
                let name = format!("{}at.{}", prefix(*owner), function.name);
                if needed.contains(&name) {
                    names.absolute.entry(name).or_insert(function.address);
                }
            }
            // The pass renames it, whatever its linkage: the executable has another entry.
            let main = owners.iter().map(|i| format!("{}main", prefix(*i)));
            let main = main
                .filter(|_| function.name == "main")
                .find(|n| defined.contains(n));
            let Some(name) = main.or_else(|| self.symbol(&function.name, &function.unit)) else {
                continue;
            };
            match (defined.contains(&name), function.other_image) {
                (true, true) => {}
                (true, false) => {
                    names.jumps.entry(function.address).or_insert(name);
                }
                (false, _) if !needed.contains(&name) => {}
                (false, true) => {
                    names.thunks.entry(name).or_insert(function.address);
                }
                (false, false) => {
                    names.absolute.entry(name).or_insert(function.address);
                }
            }
        }
    }

    /// Entries of the tables of labels whose addresses are taken.
    fn labels(&self, names: &mut Names) {
        let units = &self.manifest.units;
        for labels in &self.manifest.labels {
            let owner = |i: &usize| {
                labels
                    .unit
                    .as_ref()
                    .is_none_or(|unit| *unit == units[*i].id)
            };
            let table = |i| format!("{}labels.{}", prefix(i), labels.function);
            // Of several copies of a function the linker takes the first.
            let mut tables = (0..units.len()).filter(owner).map(table);
            let Some(table) = tables.find(|t| self.symbols.defined.contains(t)) else {
                continue;
            };
            for (number, address) in labels.addresses.iter().enumerate() {
                if *address != 0 {
                    let entry = format!("{}+{}", quote(&table), 8 * number);
                    names.labels.push((*address, entry));
                }
            }
        }
    }

    /// What is used and not there. After the other names.
    fn lost(&self, names: &mut Names) {
        let Symbols {
            defined,
            needed,
            required,
        } = self.symbols;
        let units = self.manifest.units.len();
        let found = needed
            .iter()
            .filter_map(|n| Some((n.clone(), lost(n, units)?)));
        let absent = self.manifest.absent.iter().filter(|a| {
            let elsewhere =
                names.absolute.contains_key(&a.name) || names.thunks.contains_key(&a.name);
            required.contains(&a.name) && !defined.contains(&a.name) && !elsewhere
        });
        let absent = absent.map(|a| (a.name.clone(), absent_symbol(a)));
        names.lost = found.chain(absent).collect();
    }
}

/// The block ends where the thread-local segment ends, which is where a program's own block lies: captured code
/// without IR finds its variables at the offsets from the thread pointer that it was linked with.
fn thread_block(
    text: &mut String,
    tls: Option<&TlsBlock>,
    variables: &BTreeMap<String, u64>,
    target: Target,
) {
    let _ = writeln!(
        text,
        ".p2align 4\n.globl cere_glue_tls\n.type cere_glue_tls,@function\ncere_glue_tls:"
    );
    let Some(tls) = tls.filter(|t| t.size > 0) else {
        text.push_str(target.nothing());
        return;
    };
    let align = tls.align.max(THREAD_ALIGN);
    let size = tls.size.next_multiple_of(tls.align.max(1));
    let before = size.next_multiple_of(align) - size;
    text.push_str(&target.thread_local("cere_glue_tls_block"));
    let _ = writeln!(
        text,
        ".section .tbss,\"awT\",@nobits\n.balign {align}\n.zero {before}\ncere_glue_tls_block:"
    );
    for (name, offset) in variables {
        let name = quote(name);
        let _ = writeln!(
            text,
            ".globl {name}\n.type {name},@tls_object\n.set {name}, cere_glue_tls_block+{offset}"
        );
    }
    let _ = writeln!(text, ".zero {size}");
}

/// Room for the lost variables, each on pages of its own; their table, and the table of the rows that describe their bytes.
fn lost_room(text: &mut String, variables: &BTreeMap<String, Lost>, rows: &[String]) {
    let _ = writeln!(text, ".section cere_lost,\"aw\",@nobits");
    for (symbol, lost) in variables {
        let symbol = quote(symbol);
        let _ = writeln!(
            text,
            ".balign {PAGE}\n.globl {symbol}\n{symbol}: .zero {}",
            lost.size.max(1)
        );
    }
    let _ = writeln!(
        text,
        ".balign {PAGE}\n.data\n.balign 8\n\
         .globl cere_glue_lost_count\ncere_glue_lost_count: .quad {}\n.globl cere_glue_lost\ncere_glue_lost:",
        variables.len()
    );
    for (symbol, lost) in variables {
        let _ = writeln!(
            text,
            ".quad {}, {}, 0f, {}, 0\n.section .rodata\n0: .asciz {}\n.data",
            quote(symbol),
            lost.size,
            lost.kind,
            quote(&lost.name)
        );
    }
    let _ = writeln!(text, ".quad 0, 0, 0, 0, 0");
    let _ = writeln!(
        text,
        ".globl cere_glue_byte_row_count\ncere_glue_byte_row_count: .quad {}\n\
         .globl cere_glue_byte_rows\ncere_glue_byte_rows:",
        rows.len()
    );
    for row in rows {
        let _ = writeln!(text, ".quad {}", quote(row));
    }
    let _ = writeln!(text, ".quad 0");
}

fn table(text: &mut String, name: &str, rows: impl ExactSizeIterator<Item = (u64, String)>) {
    let _ = writeln!(
        text,
        ".globl {name}_count\n{name}_count: .quad {}\n.globl {name}s\n{name}s:",
        rows.len()
    );
    for (old, new) in rows {
        let _ = writeln!(text, ".quad {old:#x}, {new}");
    }
    let _ = writeln!(text, ".quad 0, 0");
}

/// Writes the glue for `objects`, one a unit in the manifest's order, in which `renamed` are called otherwise. `other`: their
/// machine code is not the one in vivo.
pub fn write(
    manifest: &Manifest,
    objects: &[&Path],
    renamed: &BTreeSet<String>,
    other: bool,
    target: Target,
) -> Result<Glue, ReplayError> {
    let symbols = Symbols::of(objects)?;
    let kind = Kind {
        typed: symbols.needed.contains(STORE),
        other,
        any: false,
        target,
    };
    glue(manifest, &symbols, renamed, kind)
}

/// Symbol of the region's trampoline.
pub fn invoke(manifest: &Manifest) -> String {
    format!(
        "{}{INVOKE_SYMBOL_PREFIX}{}",
        prefix(0),
        manifest.region.index
    )
}

fn glue(
    manifest: &Manifest,
    symbols: &Symbols,
    renamed: &BTreeSet<String>,
    kind: Kind,
) -> Result<Glue, ReplayError> {
    let names = names(manifest, symbols, renamed);
    let invoke = invoke(manifest);
    if !symbols.defined.contains(&invoke) {
        return Err(ReplayError::NoRegion(invoke));
    }
    let text = text(&names, &quote(&invoke), manifest.image.tls.as_ref(), kind);
    let rooms = names.lost.values().map(|l| l.size.saturating_add(PAGE));
    let room = rooms.fold(0, u64::saturating_add);
    Ok(Glue { text, room })
}

/// Writes the glue for whatever flags make of the units: `objects` are several of each. What only some of them define or need may be
/// absent.
pub fn write_for_any(
    manifest: &Manifest,
    objects: &[&Path],
    renamed: &BTreeSet<String>,
) -> Result<Glue, ReplayError> {
    let symbols = Symbols::of(objects)?;
    let kind = Kind {
        other: true,
        any: true,
        target: cere_arch::HERE,
        ..Kind::default()
    };
    glue(manifest, &symbols, renamed, kind)
}

/// The glue of a process that only keeps a captured state.
pub fn nothing(target: Target) -> String {
    let kind = Kind {
        target,
        ..Kind::default()
    };
    text(&Names::default(), "0", None, kind)
}

/// What the runtime is to know of the code.
#[derive(Default)]
struct Kind {
    /// Its stores are reported.
    typed: bool,
    /// It is not the machine code in vivo.
    other: bool,
    /// It varies which names it defines and needs.
    any: bool,
    /// Its architecture.
    target: Target,
}

fn text(names: &Names, invoke: &str, tls: Option<&TlsBlock>, kind: Kind) -> String {
    let mut text = String::new();
    let binding = match kind.any {
        true => ".weak",
        false => ".globl",
    };
    for (name, address) in &names.absolute {
        let name = quote(name);
        let _ = writeln!(text, "{binding} {name}\n.set {name}, {address:#x}");
    }
    let _ = writeln!(text, ".text");
    for (name, address) in &names.thunks {
        let name = quote(name);
        let _ = writeln!(
            text,
            ".p2align 4\n{binding} {name}\n.type {name},@function\n{name}:\n{}",
            kind.target.thunk(*address)
        );
    }
    thread_block(&mut text, tls, &names.thread, kind.target);
    let _ = writeln!(
        text,
        ".data\n.balign 16\n.globl cere_glue_invoke\ncere_glue_invoke: .quad {}\n\
         .globl cere_glue_tls_size\ncere_glue_tls_size: .quad {}",
        invoke,
        tls.map_or(0, |t| t.size)
    );
    for name in names.jumps.values().filter(|_| kind.any) {
        let _ = writeln!(text, ".weak {}", quote(name));
    }
    let jumps = names.jumps.iter().map(|(old, new)| (*old, quote(new)));
    table(&mut text, "cere_glue_jump", jumps);
    let thunks = names.thunks.iter().map(|(new, old)| (*old, quote(new)));
    table(&mut text, "cere_glue_thunk", thunks);
    table(&mut text, "cere_glue_label", names.labels.iter().cloned());
    lost_room(&mut text, &names.lost, &names.bytes);
    let _ = writeln!(
        text,
        ".globl {STORE}\n.hidden {STORE}\n{STORE}: .quad 0\n.globl cere_glue_typed\ncere_glue_typed: .quad {}\n\
         .globl cere_glue_other\ncere_glue_other: .quad {}",
        u8::from(kind.typed),
        u8::from(kind.other)
    );
    let _ = writeln!(text, ".globl {REFUSAL_SYMBOL}\n{REFUSAL_SYMBOL}: .quad 0");
    let _ = writeln!(text, ".section .note.GNU-stack,\"\",@progbits");
    text
}

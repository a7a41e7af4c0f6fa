//! Which of the program's code a replay compiles, and what it runs as captured: where the region's code leads to and
//! may have run.

use crate::program::{Loaded, RegionImage};
use crate::raw::Raw;
use cere_format::abi::{INVOKE_SYMBOL_PREFIX, OUTLINED_SYMBOL_PREFIX};
use cere_format::build::Unit;
use cere_format::capture::PAGE_CODE;
use cere_format::package::{CapturedFunction, Function};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Whether code of `function` may have run: it overlaps an executed page.
fn executed(raw: &Raw, function: &Function) -> bool {
    let page_size = raw.capture.page_size;
    let last = function.address + function.size.max(1) - 1;
    let mut at = function.address & !(page_size - 1);
    while at <= last {
        if raw
            .index(at)
            .is_some_and(|i| raw.table[i].flags & PAGE_CODE != 0)
        {
            return true;
        }
        at += page_size;
    }
    false
}

/// Addresses that the machine code at `start` may refer to: every field that could be a distance or an address,
/// short jumps included. Too many are harmless, as only starts of executed functions count.
pub fn references(code: &[u8], start: u64, mut found: impl FnMut(u64)) {
    for at in 0..code.len() {
        if let &[0x70..=0x7f | 0xeb, distance, ..] = &code[at..] {
            found((start + at as u64 + 2).wrapping_add(distance as i8 as i64 as u64));
        }
        if let Some(&field) = code[at..].first_chunk::<4>() {
            let distance = i64::from(i32::from_le_bytes(field)) as u64;
            found((start + at as u64 + 4).wrapping_add(distance));
            found(u32::from_le_bytes(field).into());
        }
        if let Some(&field) = code[at..].first_chunk::<8>() {
            found(u64::from_le_bytes(field));
        }
    }
}

/// A function that the region's code leads to.
pub struct Place<'a> {
    /// The image.
    pub loaded: &'a Loaded,
    /// Its name.
    pub name: &'a str,
    /// Its address and that of its end.
    pub range: (u64, u64),
}

/// What the region's code leads to and may have run.
pub struct Reached<'a, 'f> {
    /// The units to compile, the region's own first.
    pub units: Vec<&'a Unit>,
    /// Functions that no unit to compile defines.
    pub captured: Vec<CapturedFunction>,
    /// Functions of the program's other images, and those of the region's image without IR or that the region itself leads to.
    pub places: Vec<Place<'f>>,
}

/// Functions by address, and where they end.
struct Code<'f> {
    all: Vec<(&'f Loaded, &'f Function)>,
    ends: Vec<u64>,
    /// Those whose code may run, by their addresses.
    starts: HashMap<u64, Vec<usize>>,
}

impl<'f> Code<'f> {
    fn new(raw: &Raw, mut all: Vec<(&'f Loaded, &'f Function)>) -> Self {
        all.sort_by_key(|(_, f)| f.address);
        let end = |i: usize| {
            let Function { address, size, .. } = all[i].1;
            match size {
                // Assembly may leave the size out.
                0 => all[i + 1..]
                    .iter()
                    .map(|(_, f)| f.address)
                    .find(|a| a > address)
                    .unwrap_or(*address),
                size => address + size,
            }
        };
        let ends = (0..all.len()).map(end).collect();
        let mut starts: HashMap<u64, Vec<usize>> = HashMap::new();
        for (i, (_, function)) in all.iter().enumerate() {
            if executed(raw, function) {
                starts.entry(function.address).or_default().push(i);
            }
        }
        Self { all, ends, starts }
    }

    /// The functions that those for which `root` holds lead to, themselves included.
    fn follow(&self, root: &dyn Fn(&Function) -> bool) -> BTreeSet<usize> {
        let is_root =
            |i: &usize| root(self.all[*i].1) && self.starts.contains_key(&self.all[*i].1.address);
        let mut waiting: Vec<usize> = (0..self.all.len()).filter(is_root).collect();
        let mut reached: BTreeSet<usize> = waiting.iter().copied().collect();
        while let Some(i) = waiting.pop() {
            let (loaded, function) = self.all[i];
            let start = function.address;
            let value = start.wrapping_sub(loaded.image.bias);
            let Some(code) = loaded.elf.bytes(value, self.ends[i] - start) else {
                continue;
            };
            references(code, start, |address| {
                for &next in self.starts.get(&address).into_iter().flatten() {
                    if reached.insert(next) {
                        waiting.push(next);
                    }
                }
            });
        }
        reached
    }
}

/// Follows the region's code through the `functions` of its image and those `without_ir`. `pointed` are the function
/// addresses found in captured memory, which indirect calls may have used.
pub fn reach<'a: 'f, 'f>(
    raw: &Raw,
    images: &[Loaded],
    image: &'a RegionImage<'_>,
    functions: &'f [Function],
    without_ir: &'f [(&Loaded, Function)],
    pointed: &HashSet<u64>,
) -> Reached<'a, 'f> {
    let own = functions.iter().filter(|f| !f.other_image);
    let own = own.map(|function| (image.loaded, function));
    let others = without_ir
        .iter()
        .map(|(loaded, function)| (*loaded, function));
    let code = Code::new(raw, own.chain(others).collect());
    let key = &raw.capture.key;
    // The start-up code keeps the address of main on the stack, and main leads to everything; descriptors hold
    // addresses of every region, run or not.
    let called = |f: &Function| {
        pointed.contains(&f.address) && f.name != "main" && !f.name.starts_with("cere.")
    };
    let of_unit = |f: &Function| f.unit.as_ref() == Some(&key.unit);
    let region =
        [INVOKE_SYMBOL_PREFIX, OUTLINED_SYMBOL_PREFIX].map(|p| format!("{p}{}", key.index));
    let is_region = |f: &Function| of_unit(f) && region.contains(&f.name);
    let reached = code.follow(&|f| of_unit(f) || called(f));
    let led_to = code.follow(&|f| is_region(f) || called(f));
    let Code { all, ends, .. } = code;
    // A unit that is compiled traps where it uses what a replay does not have; captured code does not.
    let without_ir =
        |f: &Function| f.unit.is_none() && !image.units.iter().any(|u| u.defines.contains(&f.name));
    let places = reached.iter().filter(|i| {
        let function = all[**i].1;
        function.other_image || led_to.contains(i) || without_ir(function)
    });
    let places = places.map(|i| Place {
        loaded: all[*i].0,
        name: &all[*i].1.name,
        range: (all[*i].1.address, ends[*i]),
    });
    let places = places.collect();
    let reached: Vec<_> = reached.into_iter().map(|i| all[i]).collect();
    let own = reached.iter().filter(|(_, f)| !f.other_image);
    let units = units(image, &key.unit, own.map(|(_, f)| *f));
    let captured = captured(raw, images, image, &reached, &units);
    Reached {
        units,
        captured,
        places,
    }
}

/// The units that define `functions`, the unit `own` first.
fn units<'a, 'f>(
    image: &'a RegionImage<'_>,
    own: &str,
    functions: impl Iterator<Item = &'f Function>,
) -> Vec<&'a Unit> {
    let mut chosen: Vec<&Unit> = image.units.iter().filter(|u| u.id == own).collect();
    for function in functions {
        let unit = match &function.unit {
            Some(id) => image.units.iter().find(|u| u.id == *id),
            None => {
                let defines = |unit: &&Unit| unit.defines.contains(&function.name);
                if chosen.iter().any(&defines) {
                    continue;
                }
                image.units.iter().find(defines)
            }
        };
        if let Some(unit) = unit
            && !chosen.iter().any(|c| c.id == unit.id)
        {
            chosen.push(unit);
        }
    }
    chosen
}

/// Of the `reached` functions, in order of their addresses, those that `units` do not define, one name for each; and
/// images that executed code without a name.
fn captured(
    raw: &Raw,
    images: &[Loaded],
    image: &RegionImage<'_>,
    reached: &[(&Loaded, &Function)],
    units: &[&Unit],
) -> Vec<CapturedFunction> {
    let compiled = |f: &Function| {
        !f.other_image && (f.unit.is_some() || units.iter().any(|u| u.defines.contains(&f.name)))
    };
    let entry = |loaded: &Loaded, name: &str| CapturedFunction {
        name: name.to_owned(),
        image: loaded.file_name(),
        other_image: loaded.image.range != image.loaded.image.range,
    };
    let mut found = Vec::new();
    for names in reached.chunk_by(|a, b| a.1.address == b.1.address) {
        // What the pass made of a function goes with it.
        let named = names.iter().filter(|(_, f)| !f.name.starts_with("cere."));
        if let Some((loaded, function)) = named.min_by_key(|(_, f)| f.name.len())
            && !names.iter().any(|(_, f)| compiled(f))
        {
            found.push(entry(loaded, &function.name));
        }
    }
    for loaded in images.iter().filter(|l| l.image.program) {
        let range = loaded.image.range;
        let executed = raw
            .table
            .iter()
            .any(|p| p.flags & PAGE_CODE != 0 && range.0 <= p.address && p.address < range.1);
        let named = reached.iter().any(|(l, _)| l.image.range == range);
        if executed && !named {
            found.push(entry(loaded, ""));
        }
    }
    found
}

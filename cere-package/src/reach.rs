//! Which units a replay compiles: those that the region's code leads to and that ran.

use crate::program::RegionImage;
use crate::raw::Raw;
use cere_format::build::Unit;
use cere_format::capture::PAGE_CODE;
use cere_format::package::Function;
use std::collections::{HashMap, HashSet};

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
fn references(code: &[u8], start: u64, mut found: impl FnMut(u64)) {
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

/// Ids of the units to compile, the region's own first. `pointed` are the function addresses found in captured
/// memory, which indirect calls may have used.
pub fn units<'a>(
    raw: &Raw,
    image: &'a RegionImage<'_>,
    functions: &[Function],
    pointed: &HashSet<u64>,
) -> Vec<&'a Unit> {
    let mut own: Vec<&Function> = functions.iter().filter(|f| !f.other_image).collect();
    own.sort_by_key(|f| f.address);
    let ends: Vec<u64> = (0..own.len())
        .map(|i| match own[i].size {
            // Assembly may leave the size out.
            0 => own[i + 1..]
                .iter()
                .map(|f| f.address)
                .find(|a| *a > own[i].address)
                .unwrap_or(own[i].address),
            size => own[i].address + size,
        })
        .collect();
    let mut starts: HashMap<u64, Vec<usize>> = HashMap::new();
    for (i, function) in own.iter().enumerate() {
        if executed(raw, function) {
            starts.entry(function.address).or_default().push(i);
        }
    }
    let key = &raw.capture.key;
    // The start-up code keeps the address of main on the stack, and main leads to everything; descriptors hold
    // addresses of every region, run or not.
    let root = |f: &&Function| {
        f.unit.as_ref() == Some(&key.unit)
            || pointed.contains(&f.address) && f.name != "main" && !f.name.starts_with("cere.")
    };
    let mut waiting: Vec<usize> = own
        .iter()
        .enumerate()
        .filter(|(_, f)| root(f))
        .filter(|(_, f)| starts.contains_key(&f.address))
        .map(|(i, _)| i)
        .collect();
    let mut reached: HashSet<usize> = waiting.iter().copied().collect();

    while let Some(i) = waiting.pop() {
        let start = own[i].address;
        let value = start.wrapping_sub(image.loaded.image.bias);
        let Some(code) = image.loaded.elf.bytes(value, ends[i] - start) else {
            continue;
        };
        references(code, start, |address| {
            for &next in starts.get(&address).into_iter().flatten() {
                if reached.insert(next) {
                    waiting.push(next);
                }
            }
        });
    }
    let mut chosen: Vec<&Unit> = image.units.iter().filter(|u| u.id == key.unit).collect();
    let mut order: Vec<usize> = reached.into_iter().collect();
    order.sort_unstable();
    for i in order {
        let function = own[i];
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

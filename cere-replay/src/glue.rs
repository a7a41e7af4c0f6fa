//! The glue: assembly that defines what the recompiled units need from the captured process.

use crate::ReplayError;
use crate::compile::prefix;
use cere_format::abi::INVOKE_SYMBOL_PREFIX;
use cere_format::package::Manifest;
use object::{Object, ObjectSymbol};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;
use std::path::PathBuf;

fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Symbols that the objects define and those that they need.
pub fn symbols(objects: &[PathBuf]) -> Result<(BTreeSet<String>, BTreeSet<String>), ReplayError> {
    let (mut defined, mut needed) = (BTreeSet::new(), BTreeSet::new());
    for path in objects {
        let bad = |reason: String| ReplayError::Object {
            path: path.clone(),
            reason,
        };
        let data = std::fs::read(path).map_err(|e| bad(e.to_string()))?;
        let file = object::File::parse(&*data).map_err(|e| bad(e.to_string()))?;
        for symbol in file.symbols() {
            let Ok(name) = symbol.name() else { continue };
            if name.is_empty() {
                continue;
            }
            if symbol.is_undefined() {
                needed.insert(name.to_owned());
            } else if symbol.is_global() {
                defined.insert(name.to_owned());
            }
        }
    }
    needed.retain(|n| !defined.contains(n));
    Ok((defined, needed))
}

/// Writes the glue for `objects`, one a unit in the manifest's order.
pub fn write(manifest: &Manifest, objects: &[PathBuf]) -> Result<String, ReplayError> {
    let (defined, needed) = symbols(objects)?;
    let index: HashMap<&str, usize> = manifest
        .units
        .iter()
        .enumerate()
        .map(|(i, u)| (u.id.as_str(), i))
        .collect();
    // Symbol in the replay of a name that belongs to a unit or to all.
    let symbol = |name: &str, unit: &Option<String>, mark: &str| match unit {
        None => Some(name.to_owned()),
        Some(id) => index
            .get(id.as_str())
            .map(|i| format!("{}{mark}{name}", prefix(*i))),
    };
    let mut absolute: BTreeMap<String, u64> = BTreeMap::new();
    let mut thunks: BTreeMap<String, u64> = BTreeMap::new();
    let mut jumps: BTreeMap<u64, String> = BTreeMap::new();
    for variable in &manifest.variables {
        if let Some(name) = symbol(&variable.name, &variable.unit, "")
            && needed.contains(&name)
        {
            absolute.entry(name).or_insert(variable.address);
        }
    }
    for function in &manifest.functions {
        let Some(name) = symbol(&function.name, &function.unit, "") else {
            continue;
        };
        if defined.contains(&name) {
            if !function.other_image {
                jumps.entry(function.address).or_insert(name);
            }
        } else if needed.contains(&name) {
            if function.other_image {
                thunks.entry(name).or_insert(function.address);
            } else {
                absolute.entry(name).or_insert(function.address);
            }
        }
        let owners: Vec<usize> = match &function.unit {
            Some(id) => index.get(id.as_str()).copied().into_iter().collect(),
            None => (0..manifest.units.len()).collect(),
        };
        for owner in owners {
            let name = format!("{}at.{}", prefix(owner), function.name);
            if needed.contains(&name) {
                absolute.entry(name).or_insert(function.address);
            }
        }
    }
    // An image's own definition comes before another image's.
    thunks.retain(|name, _| !absolute.contains_key(name));

    let invoke = format!(
        "{}{INVOKE_SYMBOL_PREFIX}{}",
        prefix(0),
        manifest.region.index
    );
    if !defined.contains(&invoke) {
        return Err(ReplayError::NoRegion(invoke));
    }
    let mut text = String::new();
    for (name, address) in &absolute {
        let name = quote(name);
        let _ = writeln!(text, ".globl {name}\n.set {name}, {address:#x}");
    }
    let _ = writeln!(text, ".text");
    for (name, address) in &thunks {
        let name = quote(name);
        let _ = writeln!(
            text,
            ".p2align 4\n.globl {name}\n.type {name},@function\n{name}:\njmp *0f(%rip)\n0: .quad {address:#x}"
        );
    }
    let (size, align) = manifest
        .image
        .tls
        .as_ref()
        .map_or((0, 1), |t| (t.size, t.align.max(1)));
    let _ = writeln!(
        text,
        ".p2align 4\n.globl cere_glue_tls\n.type cere_glue_tls,@function\ncere_glue_tls:"
    );
    if size == 0 {
        let _ = writeln!(text, "xorl %eax, %eax\nret");
    } else {
        let _ = writeln!(
            text,
            "movq %fs:0, %rax\nleaq cere_glue_tls_block@tpoff(%rax), %rax\nret"
        );
        let _ = writeln!(
            text,
            ".section .tdata,\"awT\",@progbits\n.balign {align}\ncere_glue_tls_block:"
        );
        if let Some(tls) = &manifest.image.tls {
            for variable in &tls.variables {
                if let Some(name) = symbol(&variable.name, &variable.unit, "")
                    && needed.contains(&name)
                {
                    let name = quote(&name);
                    let _ = writeln!(
                        text,
                        ".globl {name}\n.type {name},@object\n.set {name}, cere_glue_tls_block+{}",
                        variable.offset
                    );
                }
            }
        }
        let _ = writeln!(text, ".zero {size}");
    }
    let _ = writeln!(
        text,
        ".data\n.balign 16\n.globl cere_glue_invoke\ncere_glue_invoke: .quad {}",
        quote(&invoke)
    );
    let _ = writeln!(
        text,
        ".globl cere_glue_tls_size\ncere_glue_tls_size: .quad {size}"
    );
    let _ = writeln!(
        text,
        ".globl cere_glue_jump_count\ncere_glue_jump_count: .quad {}\n.globl cere_glue_jumps\ncere_glue_jumps:",
        jumps.len()
    );
    for (old, new) in &jumps {
        let _ = writeln!(text, ".quad {old:#x}, {}", quote(new));
    }
    let _ = writeln!(text, ".quad 0, 0\n.section .note.GNU-stack,\"\",@progbits");
    Ok(text)
}

//! Keeps the names of the runtime and of the program apart: the runtime's own symbols are local to one object, and where a
//! program defines a name that the runtime takes from elsewhere (`write`, `malloc`), the program's is renamed in its units.

use crate::compile::Compiled;
use crate::glue::{Stand, globals, renamed_symbol};
use crate::{Options, ReplayError, link};
use cere_format::package::Manifest;
use cere_toolchain::cached::Known;
use cere_toolchain::command::{Line, hash, run};
use cere_toolchain::unit::{LLD, OBJCOPY};
use cere_toolchain::{cached, io, stamp};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

macro_rules! shared {
    ($($allocator:ident)*) => {
        [
            "_start", $(stringify!($allocator),)* "mmap", "mmap64", "munmap", "mremap", "mprotect", "brk", "sbrk",
            "__cxa_thread_atexit_impl", "__cxa_atexit", "__cxa_at_quick_exit", "on_exit", "pthread_key_create", "_dl_find_object",
        ]
    };
}

/// What the runtime defines for everyone: its entry, and the functions that it puts in the C library's place.
const SHARED: [&str; 25] = cere_format::malloc_family!(shared);

/// The same of the runtime for an architecture.
fn shared(options: &Options) -> Vec<&'static str> {
    let questions = options.target().facts().questions.iter();
    SHARED.iter().chain(questions).copied().collect()
}

/// The runtime as one object.
pub struct Runtime {
    /// In the cache.
    pub object: PathBuf,
    /// Names that it defines for others, and those that it needs.
    names: Arc<BTreeSet<String>>,
}

/// Makes the runtime's object, or takes it from the cache.
pub fn runtime(options: &Options) -> Result<Runtime, ReplayError> {
    let shared = shared(options);
    let (stamp, names) = (stamp(&options.runtime)?, [&shared[..], &MERGED].concat());
    let key = hash(&[&stamp, names.join("\0").as_bytes()]);
    let object = cached::get(&options.cache, &format!("{key}.runtime.o"), |made| {
        let [all, apart] = ["all.o", "apart.o"].map(|name| made.with_file_name(name));
        let first = link::first(options)?;
        let line = Line::new(LLD)
            .confined(&options.settings.sandbox)
            .args(["-r", "--strip-debug", "-u", "_start"])
            .path(&first)
            .path(&options.runtime)
            .arg("-o")
            .output(&all);
        run(&line, "the runtime")?;
        let line = Line::new(OBJCOPY)
            .confined(&options.settings.sandbox)
            .args(
                shared
                    .iter()
                    .map(|name| format!("--keep-global-symbol={name}")),
            )
            // Rust's own library carries bitcode beside its code.
            .args([
                "--strip-debug",
                "--remove-section=.llvmbc",
                "--remove-section=.llvmcmd",
            ])
            .path(&all)
            .output(&apart);
        run(&line, "the runtime")?;
        prune(&apart, made, options)
    })?;
    // Needed for each codelet.
    static NAMES: Known<Arc<BTreeSet<String>>> = Known::new();
    let names = NAMES.of(&object, |object| {
        Ok::<_, ReplayError>(Arc::new(
            globals(object)?.into_iter().map(|s| s.0).collect(),
        ))
    })?;
    Ok(Runtime { object, names })
}

/// Sections of code and data that a linker would put into one anyway. Variables that may be replaced stay apart: a group of
/// sections has relocations of its own.
const MERGED: [&str; 7] = [
    ".text",
    ".rodata",
    ".data.rel.ro",
    ".bss",
    ".tdata",
    ".tbss",
    ".gcc_except_table",
];

/// Keeps of the runtime what its entries reach, in a few sections instead of 7,000: each link of a codelet reads them all.
fn prune(from: &Path, to: &Path, options: &Options) -> Result<(), ReplayError> {
    let line = Line::new(LLD)
        .confined(&options.settings.sandbox)
        .args(["--gc-sections", "--print-gc-sections", "-e", "_start"])
        // What the glue and the libraries define.
        .arg("--unresolved-symbols=ignore-all")
        .args(shared(options).into_iter().flat_map(|name| ["-u", name]))
        .path(from)
        .arg("-o")
        .output(&to.with_file_name("reached"));
    let unused = run(&line, "the runtime")?;
    let script = to.with_file_name("prune.ld");
    std::fs::write(&script, pruning(&unused, from)).map_err(io("write", &script))?;
    let line = Line::new(LLD)
        .confined(&options.settings.sandbox)
        .args(["-r", "-T"])
        .path(&script)
        .path(from)
        .arg("-o")
        .output(to);
    run(&line, "the runtime")?;
    Ok(())
}

/// A linker script that drops the sections of `object` which the linker reported as `unused`. What describes dropped code
/// (`.eh_frame`) loses its references, and a later link drops it.
fn pruning(unused: &str, object: &Path) -> String {
    let head = format!("removing unused section {}:(", object.display());
    let names = unused.lines().filter_map(|line| {
        let name = line.strip_prefix(&head)?.strip_suffix(')')?;
        (!name.starts_with(".eh_frame")).then_some(name)
    });
    let mut script = "SECTIONS {\n/DISCARD/ : {\n".to_owned();
    for name in names {
        script.push_str(&format!("*(\"{name}\")\n"));
    }
    script.push_str("}\n");
    for name in MERGED {
        script.push_str(&format!("{name} : {{ *({name} {name}.*) }}\n"));
    }
    script.push_str(".eh_frame : { *(.eh_frame) }\n}\n");
    script
}

/// The command that renames `names` in an object.
pub fn rename_line(names: &BTreeSet<String>, from: &Path, to: &Path) -> Line {
    Line::new(OBJCOPY)
        .args(
            names
                .iter()
                .map(|n| format!("--redefine-sym={n}={}", renamed_symbol(n))),
        )
        .path(from)
        .output(to)
}

/// Renames in the units what the program defines and the runtime takes from elsewhere; returns those names.
pub fn rename_in_units(
    manifest: &Manifest,
    compiled: &mut [Compiled],
    runtime: &Runtime,
    options: &Options,
) -> Result<BTreeSet<String>, ReplayError> {
    let symbols: Vec<Vec<(String, Stand)>> = compiled
        .iter()
        .map(|c| globals(&c.object))
        .collect::<Result<_, _>>()?;
    let variables = manifest.variables.iter().map(|v| (&v.unit, &v.name));
    let functions = manifest.functions.iter().map(|f| (&f.unit, &f.name));
    let tls = manifest.image.tls.iter().flat_map(|t| &t.variables);
    let program = variables
        .chain(functions)
        .chain(tls.map(|v| (&v.unit, &v.name)))
        .filter(|(unit, _)| unit.is_none())
        .map(|(_, name)| name);
    let defined = symbols.iter().flatten();
    let defined = defined.filter(|s| s.1 == Stand::Defined).map(|s| &s.0);
    let names: BTreeSet<String> = program
        .chain(defined)
        .filter(|name| runtime.names.contains(*name))
        .cloned()
        .collect();
    for (unit, symbols) in compiled.iter_mut().zip(&symbols) {
        let here: BTreeSet<String> = symbols
            .iter()
            .map(|s| &s.0)
            .filter(|name| names.contains(*name))
            .cloned()
            .collect();
        if here.is_empty() {
            continue;
        }
        let list: Vec<&str> = here.iter().map(String::as_str).collect();
        // The object's name is its content.
        let old = unit.object.as_os_str().as_encoded_bytes();
        let key = hash(&[old, list.join("\0").as_bytes()]);
        unit.object = cached::get(&options.cache, &format!("{key}.o"), |made| {
            let line = rename_line(&here, &unit.object, made).confined(&options.settings.sandbox);
            run(&line, "a unit's names").map(drop)
        })?;
        unit.renamed = here;
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unused_is_dropped() {
        let unused = "removing unused section /a b/apart.o:(.text.f$x)\n\
                      removing unused section /a b/apart.o:(.eh_frame)\n\
                      removing unused section /other.o:(.text.g)\n";
        let script = pruning(unused, Path::new("/a b/apart.o"));
        assert!(
            script.contains("/DISCARD/ : {\n*(\".text.f$x\")\n}\n"),
            "{script}"
        );
        assert!(
            script.contains(".text : { *(.text .text.*) }\n"),
            "{script}"
        );
    }
}

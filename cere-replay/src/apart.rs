//! Keeps the names of the runtime and of the program apart: the runtime's own symbols are local to one object, and where a
//! program defines a name that the runtime takes from elsewhere (`write`, `malloc`), the program's is renamed in its units.

use crate::compile::Compiled;
use crate::glue::{Stand, globals, renamed_symbol};
use crate::{Options, ReplayError, link};
use cere_format::package::Manifest;
use cere_toolchain::cached::Known;
use cere_toolchain::command::{Line, hash, run};
use cere_toolchain::unit::{LLD, OBJCOPY};
use cere_toolchain::{cached, stamp};
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

/// The runtime as one object.
pub struct Runtime {
    /// In the cache.
    pub object: PathBuf,
    /// Names that it defines for others, and those that it needs.
    names: Arc<BTreeSet<String>>,
}

/// Makes the runtime's object, or takes it from the cache.
pub fn runtime(options: &Options) -> Result<Runtime, ReplayError> {
    let key = hash(&[&stamp(&options.runtime)?, SHARED.join("\0").as_bytes()]);
    let object = cached::get(&options.cache, &format!("{key}.runtime.o"), |made| {
        let all = made.with_file_name("all.o");
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
            .args(SHARED.map(|name| format!("--keep-global-symbol={name}")))
            // Rust's own library carries bitcode beside its code.
            .args([
                "--strip-debug",
                "--remove-section=.llvmbc",
                "--remove-section=.llvmcmd",
            ])
            .path(&all)
            .output(made);
        run(&line, "the runtime")?;
        Ok::<(), ReplayError>(())
    })?;
    // It is of 8 MB, and needed for each codelet.
    static NAMES: Known<Arc<BTreeSet<String>>> = Known::new();
    let names = NAMES.of(&object, |object| {
        Ok::<_, ReplayError>(Arc::new(
            globals(object)?.into_iter().map(|s| s.0).collect(),
        ))
    })?;
    Ok(Runtime { object, names })
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

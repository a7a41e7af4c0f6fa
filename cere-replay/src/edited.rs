//! Replays of code whose assembly is edited before it is assembled, e.g. to count what runs where no other code counts.

use crate::compile::{self, Code};
use crate::{Options, Replay, ReplayError, check, judge, link, objects, run};
use cere_format::package::Manifest;
use cere_toolchain::command::run as run_line;
use cere_toolchain::{flags, io};
use std::path::Path;

/// Compiles the package in `package` to assembly, as it is timed, has `edit` change the texts of its units, assembles and links them,
/// and runs the result, which may write into `file`: an absolute path, there when `edit` ends. The verdict is on the state that it leaves.
///
/// # Errors
/// As of a replay; what `edit` leaves cannot be assembled.
pub fn replay(
    package: &Path,
    edit: impl FnOnce(&Manifest, &mut [String]),
    file: &Path,
    options: &Options,
) -> Result<Replay, ReplayError> {
    let package = std::fs::canonicalize(package).map_err(io("open", package))?;
    let manifest = crate::manifest(&package)?;
    check::check(&manifest)?;
    flags::check(&options.settings.flags)?;
    std::fs::create_dir_all(&options.cache).map_err(io("create", &options.cache))?;
    let mut compiled = compile::to_edit(&package, &manifest, options)?;
    let mut texts = Vec::new();
    for unit in &compiled {
        let text = std::fs::read(&unit.object).map_err(io("read", &unit.object))?;
        texts.push(String::from_utf8_lossy(&text).into_owned());
    }
    edit(&manifest, &mut texts);
    let scratch = tempfile::tempdir_in(&options.cache).map_err(io("write into", &options.cache))?;
    for (number, (unit, text)) in compiled.iter_mut().zip(&texts).enumerate() {
        let source = scratch.path().join(format!("{number}.s"));
        std::fs::write(&source, text).map_err(io("write", &source))?;
        let object = source.with_extension("o");
        // The assembler has to know the instructions that the compiler took.
        let processor = unit.flags.iter().filter(|flag| flag.starts_with("-m"));
        let line = link::assemble(&source, &object, options)
            .args(processor.filter(|flag| !flag.starts_with("-masm")))
            .confined(&options.settings.sandbox);
        run_line(&line, &manifest.units[number].source)?;
        unit.object = object;
    }
    let objects = objects::joined(compiled, &manifest, Code::Edited, options)?;
    let built = objects.link(&package, &manifest, options)?;
    let mut replay = run::run_edited(&package, &manifest, &built, file, options)?;
    judge(&package, &manifest, &built, &mut replay, options)?;
    Ok(replay)
}

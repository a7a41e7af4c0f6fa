//! Kept IR made that of another architecture ([`CrossPlan`]).

pub use crate::target::{Cross, Crossed, Emulator};

use crate::{Options, ReplayError};
use cere_format::abi::{INVOKE_SYMBOL_PREFIX, OUTLINED_SYMBOL_PREFIX};
use cere_format::build::{BUILD_VERSION, CrossPlan, ENV_CROSS};
use cere_format::package::{Manifest, PackageUnit};
use cere_toolchain::command::{Line, hash, run as run_line};
use cere_toolchain::unit::{OPT, tools};
use cere_toolchain::{CompileError, cached, io, stamp};
use std::path::{Path, PathBuf};

/// The IR of a unit for the target, from the cache.
pub(crate) fn ir(
    ir: &Path,
    manifest: &Manifest,
    unit: &PackageUnit,
    cross: &Cross,
    options: &Options,
) -> Result<PathBuf, ReplayError> {
    let with_ir = manifest
        .functions
        .iter()
        .filter(|f| f.ir && !f.other_image)
        .map(|f| f.name.clone());
    let region = manifest.region.index;
    let own = [INVOKE_SYMBOL_PREFIX, OUTLINED_SYMBOL_PREFIX];
    let plan = CrossPlan {
        version: BUILD_VERSION,
        triple: cross.facts().triple.to_owned(),
        layout: cross.facts().layout.to_owned(),
        trap: cross.facts().trap.to_owned(),
        split: cross.split,
        with_ir: with_ir.collect(),
        roots: own.iter().map(|p| format!("{p}{region}")).collect(),
    };
    let text = serde_json::to_vec(&plan).map_err(ReplayError::Json)?;
    let content = std::fs::read(ir).map_err(io("read", ir))?;
    let key = hash(&[&content, &stamp(&options.plugin)?, &text, &tools(&[])?]);
    let made = cached::get(&options.cache, &format!("{key}.cross.bc"), |made| {
        let file = made.with_file_name("cross.json");
        std::fs::write(&file, &text).map_err(io("write", &file))?;
        let line = Line::new(OPT)
            .confined(&options.settings.sandbox)
            .variable(ENV_CROSS, &file)
            .reads(&options.plugin)
            .arg(format!("-load-pass-plugin={}", options.plugin.display()))
            .arg("-passes=cere-cross")
            .path(ir)
            .arg("-o")
            .output(made);
        run_line(&line, &unit.source).map(drop)
    });
    made.map_err(|error| refused(error, manifest, cross))
}

/// The pass's word that a function cannot run on the target is an answer, not a compiler's failure.
fn refused(error: CompileError, manifest: &Manifest, cross: &Cross) -> ReplayError {
    let marker = format!(" cannot run on {}: ", cross.facts().triple);
    let why = match &error {
        CompileError::Compile { message, .. } => message
            .lines()
            .find_map(|line| line.split_once(&marker))
            .map(|(_, why)| why.to_owned()),
        _ => None,
    };
    match why {
        Some(why) => ReplayError::Crossing {
            codelet: manifest.name.clone(),
            target: cross.target.to_string(),
            why,
        },
        None => error.into(),
    }
}

/// Refuses a codelet of another architecture where nobody asked for code for this one.
pub(crate) fn is_asked(manifest: &Manifest, options: &Options) -> Result<(), ReplayError> {
    let captured = manifest.machine.target().unwrap_or(options.target());
    if captured == options.target() || options.settings.cross.is_some() {
        return Ok(());
    }
    Err(ReplayError::Crossing {
        codelet: manifest.name.clone(),
        target: options.target().to_string(),
        why: format!(
            "it was captured on {captured}, and this command takes codelets of its own architecture alone; `cere replay` takes it"
        ),
    })
}

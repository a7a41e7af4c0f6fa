//! Edited units in the place of captured ones.

use crate::{EditedUnit, Options, ReplayError, check, limit};
use cere_format::build::{BRIDGE_REFUSED, BUILD_VERSION, BridgePlan, ENV_BRIDGE};
use cere_format::package::Manifest;
use cere_toolchain::command::{hash, run};
use cere_toolchain::unit::{self, Files, Recipe};
use cere_toolchain::{cached, io, stamp};
use std::path::Path;

/// What begins a file of LLVM's bitcode.
const BITCODE: &[u8] = b"BC\xc0\xde";

/// Lets what stands for the region of the codelet in the edited unit with this `ir` run on what was captured. `function`: the symbol
/// of the region's function now; none: as it was.
///
/// Beside it, what else differs in the unit, which this code does not run: names in one text, empty if nothing does.
///
/// # Errors
/// [`ReplayError::NotBridged`] if nothing stands for it, or if that needs what was not captured.
pub fn bridge(
    package: &Path,
    manifest: &Manifest,
    ir: &Path,
    function: Option<&str>,
    options: &Options,
) -> Result<(EditedUnit, String), ReplayError> {
    check::check(manifest)?;
    let own = manifest.units.first();
    let captured = own.ok_or_else(|| ReplayError::Hostile("it holds no units".into()))?;
    let old = package.join(captured.member());
    let read = |path: &Path| std::fs::read(path).map_err(io("read", path));
    let region = manifest.region.index;
    std::fs::create_dir_all(&options.cache).map_err(io("create", &options.cache))?;
    let key = hash(&[
        &read(ir)?,
        &read(&old)?,
        &region.to_le_bytes(),
        function.unwrap_or_default().as_bytes(),
        &stamp(&options.plugin)?,
    ]);
    let others = options.cache.join(format!("{key}.others"));
    let name = format!("{key}.bridged");
    if !others.exists() {
        // The cache is bounded, file by file.
        let _ = std::fs::remove_file(options.cache.join(&name));
    }
    let made = cached::get(&options.cache, &name, |made| {
        let beside = made.with_file_name("others");
        let plan = BridgePlan {
            version: BUILD_VERSION,
            captured: old.clone(),
            region,
            function: function.map(str::to_owned),
            output: made.to_owned(),
            others: beside.clone(),
        };
        let recipe = Recipe {
            language: captured.language,
            codegen: &captured.codegen,
            flags: &[],
            passes: None,
            plugin: &options.plugin,
            variable: ENV_BRIDGE,
            prepare: false,
            sandbox: &options.settings.sandbox,
        };
        let files = Files::beside(ir.to_owned(), &made.with_file_name("unused.o"));
        let text = serde_json::to_vec(&plan).map_err(ReplayError::Json)?;
        std::fs::write(&files.plan, text).map_err(io("write", &files.plan))?;
        for line in unit::lines(&recipe, &files) {
            let most = options.settings.timeout.unwrap_or(limit::UNKNOWN);
            run(&line.reads(&old).limit(most), &captured.source)?;
        }
        std::fs::rename(&beside, &others).map_err(io("write", &others))?;
        Ok::<(), ReplayError>(())
    })?;
    let content = read(&made)?;
    if content.starts_with(BITCODE) {
        let unit = captured.id.clone();
        let others = read(&others)?;
        return Ok((
            EditedUnit { unit, ir: made },
            String::from_utf8_lossy(&others).into_owned(),
        ));
    }
    let text = String::from_utf8_lossy(&content);
    let reason = text.strip_prefix(BRIDGE_REFUSED).unwrap_or(&text);
    Err(ReplayError::NotBridged(reason.to_owned()))
}

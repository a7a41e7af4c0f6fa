//! Sources of the build, and no other file.

use crate::tools::Call;
use anyhow::{Context, Result};
use cere_catalogue::bail;
use cere_format::build::Unit;
use cere_format::store::Store;
use cere_store::{names, state};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Lines that are shown without being asked for.
const SHOWN: usize = 400;

/// The text of the file that `call` names, or of that of its region.
pub fn source(store: &Store, call: &Call) -> Result<Value> {
    let units = state::current_units(store)?;
    let (path, line) = match (&call.file, &call.region) {
        (Some(file), _) => (of_build(&units, file)?, call.line.unwrap_or(1)),
        (None, Some(region)) => of_region(&units, region)?,
        (None, None) => bail!(E8003, "a `region` or a `file` is needed"),
    };
    let text = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let text = String::from_utf8_lossy(&text);
    let count = text.lines().count();
    let first = match count <= SHOWN {
        true => 1,
        false => line.saturating_sub(SHOWN / 2).clamp(1, count),
    };
    let shown: Vec<&str> = text.lines().skip(first - 1).take(SHOWN).collect();
    Ok(json!({
        "file": path,
        "line": line,
        "first": first,
        "lines": count,
        "text": shown.join("\n"),
    }))
}

/// The file of the build whose path ends in `file`.
fn of_build(units: &[Unit], file: &str) -> Result<PathBuf> {
    let all = units.iter().flat_map(|unit| &unit.sources);
    let mut found: Vec<&Path> = all
        .map(|source| source.file.as_path())
        .filter(|path| path.ends_with(file))
        .collect();
    found.sort_unstable();
    found.dedup();
    match &found[..] {
        [only] => Ok(only.to_path_buf()),
        [] => bail!(E5308, "{file}: no source of the build is called so"),
        [one, other, ..] => bail!(
            E5308,
            "{file}: both {} and {} are called so",
            one.display(),
            other.display()
        ),
    }
}

/// The file of a region, or of that of a codelet, and its line there.
fn of_region(units: &[Unit], name: &str) -> Result<(PathBuf, usize)> {
    let all = names::named(units);
    let select = |name: &str| names::select(&all, &[name.to_owned()]);
    // A codelet's name has the invocation behind it.
    let without = name.rsplit_once(':').map(|(region, _)| region);
    let found = select(name).or_else(|error| without.and_then(|n| select(n).ok()).ok_or(error))?;
    let [region] = &found[..] else {
        bail!(
            E4011,
            "{name}: several regions are called so: name one of them"
        );
    };
    let unit = units.iter().filter(|unit| unit.id == region.key.unit);
    let unit: Vec<Unit> = unit.cloned().collect();
    let directory = unit.first().map(|unit| &unit.command.directory);
    let file = directory.context("the unit of the region is not in the store")?;
    let file: PathBuf = file.join(&region.region.file).components().collect();
    let path = of_build(&unit, &file.to_string_lossy())?;
    Ok((path, region.region.line as usize))
}

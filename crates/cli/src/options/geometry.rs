//! `--geometry`: which caches are simulated.

use anyhow::{Context, Result};
use cere_catalogue::bail;
use cere_memory::Geometry;
use std::path::Path;

/// The geometry that `which` names; an error if it is `none`, because `what_needs` caches.
pub fn caches(which: &str, what_needs: &str) -> Result<Geometry> {
    geometry(which)?.with_context(|| {
        format!("--geometry none: {what_needs} caches; take here, a name or a file")
    })
}

/// The geometry that `which` names; none if it is `none`.
pub fn geometry(which: &str) -> Result<Option<Geometry>> {
    let found = match which {
        "none" => return Ok(None),
        "here" => Geometry::here(),
        name if Geometry::names().contains(&name) => Geometry::named(name),
        path if Path::new(path).exists() => Geometry::read(Path::new(path)),
        other => bail!(
            E6201,
            "--geometry {other}: it is neither here, none, one of {}, nor a file",
            Geometry::names().join(", ")
        ),
    };
    found
        .map(Some)
        .with_context(|| format!("--geometry {which}"))
}

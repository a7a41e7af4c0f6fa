//! A package's units to an executable, in two steps: a search needs no link for code that it knows.

use crate::compile::{self, Code, Compiled};
use crate::keep::Keep;
use crate::{Options, ReplayError, SameCode, apart, check, code, cross, glue, link};
use cere_format::package::Manifest;
use cere_toolchain::{flags, io};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// An executable that was built, and what is known of its code.
#[derive(Debug, Clone)]
pub struct Built {
    /// The executable.
    pub executable: PathBuf,
    /// Whether the region's code is the original's.
    pub same_code: SameCode,
    /// Whether a unit was compiled with other flags or passes than the build's.
    pub other_code: bool,
}

/// A package's units, compiled.
#[derive(Debug)]
pub struct Objects {
    compiled: Vec<Compiled>,
    renamed: BTreeSet<String>,
    runtime: PathBuf,
    kind: Code,
}

impl Objects {
    /// Identifies the machine code: two builds have the same string if their code is the same.
    pub fn code(&self) -> Result<String, ReplayError> {
        code::fingerprint(&self.paths())
    }

    fn paths(&self) -> Vec<&Path> {
        self.compiled.iter().map(|c| c.object.as_path()).collect()
    }

    /// Links them. Package, manifest and options are those of [`compile()`].
    pub fn link(
        &self,
        package: &Path,
        manifest: &Manifest,
        options: &Options,
    ) -> Result<Built, ReplayError> {
        let paths = self.paths();
        let same_code = match options.settings.cross {
            Some(_) => SameCode::No,
            None => code::same(package, manifest, paths.first().copied()),
        };
        let other_code = self.compiled.iter().any(|c| c.plan.pinned);
        let other = other_code || self.kind != Code::Timed;
        let glue = glue::write(manifest, &paths, &self.renamed, other, options.target())?;
        let linked = link::link(manifest, &paths, &glue, &self.runtime, options)?;
        if let Some(keep) = options.keep.as_ref().filter(|_| self.kind == Code::Timed) {
            let keep = Keep {
                directory: keep,
                package,
                manifest,
                options,
            };
            keep.fill(&self.compiled, &glue.text, &linked)?;
        }
        Ok(Built {
            executable: linked.executable,
            same_code,
            other_code,
        })
    }
}

/// Compiles the units of the package in `package`.
pub fn compile(
    package: &Path,
    manifest: &Manifest,
    options: &Options,
) -> Result<Objects, ReplayError> {
    objects(package, manifest, Code::Timed, options)
}

pub(crate) fn objects(
    package: &Path,
    manifest: &Manifest,
    kind: Code,
    options: &Options,
) -> Result<Objects, ReplayError> {
    check::check(manifest)?;
    cross::is_asked(manifest, options)?;
    flags::check(&options.settings.flags)?;
    std::fs::create_dir_all(&options.cache).map_err(io("create", &options.cache))?;
    let compiled = compile::all(package, manifest, kind, options)?;
    joined(compiled, manifest, kind, options)
}

/// Units that were compiled, with the runtime.
pub(crate) fn joined(
    mut compiled: Vec<Compiled>,
    manifest: &Manifest,
    kind: Code,
    options: &Options,
) -> Result<Objects, ReplayError> {
    let runtime = apart::runtime(options)?;
    let renamed = apart::rename_in_units(manifest, &mut compiled, &runtime, options)?;
    Ok(Objects {
        compiled,
        renamed,
        runtime: runtime.object,
        kind,
    })
}

/// Compiles and links the package in `package`.
pub fn build(package: &Path, manifest: &Manifest, options: &Options) -> Result<Built, ReplayError> {
    compile(package, manifest, options)?.link(package, manifest, options)
}

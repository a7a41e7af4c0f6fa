//! Units as IR that needs no plugin any more: the compiler alone makes their objects, whatever its flags, and one glue fits all of
//! these objects.

use crate::apart::{self, Runtime};
use crate::compile::{self, Compiled};
use crate::glue::{self, Glue};
use crate::{Built, Options, ReplayError, SameCode, check, cross, limit, link};
use cere_format::package::{Manifest, PackageUnit};
use cere_toolchain::command::{hash, run};
use cere_toolchain::{cached, flags, io, unit};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Flags under which code keeps everything that any flags may leave.
const UNOPTIMISED: &str = "-O0";

/// IR and the flags that it is compiled with after the unit's own.
#[derive(Debug, Clone)]
pub struct Source {
    /// The IR, as text or bitcode.
    pub ir: PathBuf,
    /// The flags.
    pub flags: Vec<String>,
}

/// A package's units as IR that needs no plugin, and what is linked with their objects.
pub struct Plain {
    /// The units, in the manifest's order.
    pub units: Vec<Source>,
    /// Names in all of them that the program and the runtime share.
    pub renamed: BTreeSet<String>,
    /// The glue of any objects of these units.
    pub glue: Glue,
    runtime: Runtime,
}

impl Plain {
    /// Of a package, under the flags of the settings.
    pub fn of(package: &Path, manifest: &Manifest, options: &Options) -> Result<Self, ReplayError> {
        check::check(manifest)?;
        cross::is_asked(manifest, options)?;
        flags::check(&options.settings.flags)?;
        std::fs::create_dir_all(&options.cache).map_err(io("create", &options.cache))?;
        let runtime = apart::runtime(options)?;
        let bound = compile::bound(package, manifest, options)?;
        let units: Vec<Source> = bound
            .iter()
            .map(|unit| Source {
                ir: unit.object.clone(),
                flags: unit.flags.clone(),
            })
            .collect();
        let mut all = Vec::new();
        let mut renamed = BTreeSet::new();
        for more in [None, Some(UNOPTIMISED.to_owned())] {
            let mut compiled = Vec::new();
            for (index, bound) in bound.iter().enumerate() {
                let source = Source {
                    ir: bound.object.clone(),
                    flags: bound.flags.iter().cloned().chain(more.clone()).collect(),
                };
                compiled.push(Compiled {
                    object: object(&manifest.units[index], &source, options)?,
                    plan: bound.plan.clone(),
                    flags: source.flags,
                    renamed: BTreeSet::new(),
                });
            }
            renamed.extend(apart::rename_in_units(
                manifest,
                &mut compiled,
                &runtime,
                options,
            )?);
            all.extend(compiled);
        }
        let paths: Vec<&Path> = all.iter().map(|c| c.object.as_path()).collect();
        let glue = glue::write_for_any(manifest, &paths, &renamed)?;
        Ok(Self {
            units,
            renamed,
            glue,
            runtime,
        })
    }

    /// The runtime's object.
    pub fn runtime(&self) -> &Path {
        &self.runtime.object
    }

    /// Objects of `sources`, which stand for the units, with the names that they have in the link.
    pub fn objects(
        &self,
        manifest: &Manifest,
        sources: &[Source],
        options: &Options,
    ) -> Result<Vec<PathBuf>, ReplayError> {
        let made = manifest.units.iter().zip(sources).map(|(unit, source)| {
            let made = object(unit, source, options)?;
            self.rename(&made, options)
        });
        made.collect()
    }

    fn rename(&self, object: &Path, options: &Options) -> Result<PathBuf, ReplayError> {
        if self.renamed.is_empty() {
            return Ok(object.to_owned());
        }
        let names: Vec<&str> = self.renamed.iter().map(String::as_str).collect();
        let old = object.as_os_str().as_encoded_bytes();
        let key = hash(&[old, names.join("\0").as_bytes()]);
        Ok(cached::get(&options.cache, &format!("{key}.o"), |made| {
            let line = apart::rename_line(&self.renamed, object, made);
            run(&line.confined(&options.settings.sandbox), "a unit's names").map(drop)
        })?)
    }

    /// The executable of `sources`, which stand for the units.
    pub fn build(
        &self,
        manifest: &Manifest,
        sources: &[Source],
        options: &Options,
    ) -> Result<Built, ReplayError> {
        let objects = self.objects(manifest, sources, options)?;
        let paths: Vec<&Path> = objects.iter().map(PathBuf::as_path).collect();
        let linked = link::link(manifest, &paths, &self.glue, self.runtime(), options)?;
        Ok(Built {
            executable: linked.executable,
            same_code: SameCode::Unknown,
            other_code: true,
        })
    }
}

/// The object of IR that stands for a unit, in the cache.
fn object(unit: &PackageUnit, source: &Source, options: &Options) -> Result<PathBuf, ReplayError> {
    let content = std::fs::read(&source.ir).map_err(io("read", &source.ir))?;
    let all = [&unit.codegen[..], &source.flags].concat();
    let key = hash(&[
        b"plain",
        &content,
        all.join("\0").as_bytes(),
        &unit::tools(&all)?,
    ]);
    Ok(cached::get(&options.cache, &format!("{key}.o"), |made| {
        let line = unit::plain(unit.language, &unit.codegen, &source.flags)
            .confined(&options.settings.sandbox)
            .path(&source.ir)
            .arg("-o")
            .output(made)
            .limit(options.settings.timeout.unwrap_or(limit::UNKNOWN));
        run(&line, &unit.source).map(drop)
    })?)
}

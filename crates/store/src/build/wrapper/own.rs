//! Compilers that are called in a way of their own, and write bitcode.

use super::compile::through_pass;
use super::drive::drive;
use super::inputs::ENV_KEEP_INPUTS;
use super::job::Job;
use super::tools::{Tool, compiler, pass_through, store, tool};
use super::{front, said};
use crate::{components, state};
use anyhow::{Context, Result};
use cere_format::language::{Call, OBJECTS, Parse, Passed};
use cere_system::process::supervise::shell_code;
use cere_toolchain::arguments::{self, Parsed};
use cere_toolchain::unit::CLANG;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Acts as `tool`, whose arguments `parse` takes apart; `named`: the compiler that the build names by its path.
pub fn run(by: Tool, given: &[String], named: Option<PathBuf>, parse: Parse) -> Result<u8> {
    let front_end = match named {
        Some(named) => named,
        None => compiler(by.compiler)?,
    };
    let store = store()?;
    let scratch = state::own_scratch(&store)?;
    let expanded = arguments::expand(given.to_vec(), 0)?;
    let call = match parse(&expanded, scratch.path()) {
        Ok(call) => call,
        Err(Passed::Other) => return pass_through(&front_end, given),
        Err(Passed::Driver) => {
            let driver = given.first().and_then(|first| tool(first));
            let driver = driver.with_context(|| format!("{} has no such driver", by.compiler))?;
            return drive(driver, given[1..].to_vec(), None);
        }
        Err(Passed::Cannot(why)) => {
            said::once(&store, &format!("{} is left as it is: {why}", by.compiler));
            return pass_through(&front_end, given);
        }
    };
    for change in &call.changes {
        said::once(&store, change);
    }
    let status = pass_through(&front_end, &call.front)?;
    if status != 0 {
        return Ok(status);
    }
    let job = Job {
        name: by.compiler,
        front: true,
        compiler: front_end,
        store,
        directory: std::env::current_dir()?,
        expanded,
        parsed: Parsed::compile(&call.output, call.debug, call.codegen.clone()),
    };
    job.finish(&call, scratch.path())
}

impl Job {
    /// Makes the code of a front end's bitcode, and links it.
    fn finish(&self, call: &Call, scratch: &Path) -> Result<u8> {
        let bitcode = match &call.bitcode {
            Some(file) => vec![file.clone()],
            None => written(scratch)?,
        };
        let mut objects = Vec::new();
        for file in bitcode {
            let stem = file
                .file_name()
                .map(Path::new)
                .map(|n| n.with_extension("o"));
            let (object, output) = match (&call.link, &call.each) {
                (Some(_), _) => (file.with_extension("o"), call.output.clone()),
                (None, Some(each)) => {
                    let object = each.join(stem.unwrap_or_default());
                    (object.clone(), object)
                }
                (None, None) => (call.output.clone(), call.output.clone()),
            };
            let status = self.of_bitcode(&file, &object, &output, scratch)?;
            if status != 0 {
                return Ok(status);
            }
            objects.push(object.display().to_string());
        }
        let Some(link) = &call.link else {
            return Ok(0);
        };
        let words = link.iter().flat_map(|word| match word == OBJECTS {
            true => objects.clone(),
            false => vec![word.clone()],
        });
        let program = match call.by_cc {
            true => self.store.wrappers().join("cc"),
            false => self.compiler.clone(),
        };
        let status = Command::new(&program)
            .args(words)
            .env(ENV_KEEP_INPUTS, "1")
            .status()
            .with_context(|| format!("cannot run {}", program.display()))?;
        Ok(shell_code(status))
    }

    /// Makes `object` of bitcode, for the image or object `output`.
    fn of_bitcode(&self, file: &Path, object: &Path, output: &Path, scratch: &Path) -> Result<u8> {
        let plugin = components::find(components::PLUGIN)?;
        let clang = compiler(CLANG)?;
        let codegen = &self.parsed.codegen;
        let mut record = self.record(output)?;
        let path = scratch.join("command.json");
        let tried = through_pass(&mut record, &path, || {
            let line = front::of_bitcode(codegen, Some(&plugin), file, object);
            self.attempt(&clang, &line, None, Some(&path))
        })?;
        let source = file.file_stem().unwrap_or_default().to_string_lossy();
        self.concluded(
            &source,
            tried,
            || self.note_object(object, scratch),
            || {
                let line = front::of_bitcode(codegen, None, file, object);
                self.attempt(&clang, &line, None, None)
            },
        )
    }
}

/// The bitcode in a directory.
fn written(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(directory)
        .with_context(|| format!("cannot read {}", directory.display()))?;
    let files = entries.flatten().map(|entry| entry.path());
    let mut files: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|e| e == "bc"))
        .collect();
    files.sort();
    Ok(files)
}

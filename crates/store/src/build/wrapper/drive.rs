//! Drivers whose arguments are GCC's.

use super::tools::{Tool, compiler, pass_through, store};
use super::{front, job, modules, said};
use anyhow::Result;
use cere_format::build::Language;
use cere_system::console::warning;
use cere_toolchain::arguments::{self, Mode};
use cere_toolchain::gcc;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The machine that a compiler makes code for, as it says; what it says otherwise is no machine.
fn machine_of(compiler: &Path) -> String {
    let output = Command::new(compiler).arg("-dumpmachine").output();
    let said = output.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned());
    match said {
        Ok(said) if !said.is_empty() => said,
        _ => "a machine that it does not name".to_owned(),
    }
}

/// Acts as a driver whose arguments are GCC's; `named`: the compiler that the build names by its path.
pub fn drive(tool: Tool, given: Vec<String>, named: Option<PathBuf>) -> Result<u8> {
    let store = store();
    if let Some(named) = named {
        let machine = machine_of(&named);
        let what = match machine.starts_with("x86_64") {
            true => format!("is replaced by {}, as compilers in PATH are", tool.compiler),
            false => format!("is left as it is: it compiles for {machine}"),
        };
        let message = format!(
            "{}, which the build names by its path, {what}",
            named.display()
        );
        if let Ok(store) = &store {
            said::once(store, &message);
        }
        if !machine.starts_with("x86_64") {
            return pass_through(&named, &given);
        }
    }
    let front = front::of_environment(tool.language)?;
    let compiler = match &front {
        Some(front) => front.clone(),
        None => compiler(tool.compiler)?,
    };
    let expanded = arguments::expand(given, 0)?;
    let adapted = gcc::adapt(&expanded, &compiler, tool.language)?;
    for warning in &adapted.warnings {
        match &store {
            Ok(store) => said::once(store, warning),
            Err(_) => warning!("{warning}"),
        }
    }
    let mut parsed = arguments::parse(&adapted.arguments, tool.language);
    if tool.language == Language::Fortran
        && let Ok(store) = &store
    {
        modules::prefer(store, &compiler, &mut parsed);
    }
    if parsed.mode == Mode::PassThrough {
        return pass_through(&compiler, &adapted.arguments);
    }
    job::Job {
        name: tool.compiler,
        front: front.is_some(),
        compiler,
        store: store?,
        directory: std::env::current_dir()?,
        expanded,
        parsed,
    }
    .run()
}

//! Units to objects.

use crate::{Options, ReplayError, io};
use cere_format::build::{BUILD_VERSION, BindPlan, ENV_BIND, Retarget, TargetAttributes};
use cere_format::package::Manifest;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The compiler.
pub const CLANG: &str = "clang-22";
/// The optimiser.
pub const OPT: &str = "opt-22";

/// Prefix of a unit's local symbols.
pub fn prefix(index: usize) -> String {
    format!("cere.u{index}.")
}

/// Hash of parts, each with its length, in hexadecimal.
pub fn hash(parts: &[&[u8]]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize()[..16]
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect()
}

/// Runs a command; its output on failure becomes the error.
pub fn tool(command: &mut Command, what: &str) -> Result<String, ReplayError> {
    let tool = command.get_program().to_string_lossy().into_owned();
    let line = format!("{command:?}");
    let output = command.output().map_err(|source| ReplayError::Tool {
        tool: tool.clone(),
        source,
    })?;
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if !output.status.success() {
        return Err(ReplayError::Compile {
            tool,
            what: what.to_owned(),
            message: if message.is_empty() {
                output.status.to_string()
            } else {
                message
            },
            command: line,
        });
    }
    Ok(message)
}

/// What the flags change in the attributes of kept IR.
pub fn retarget(original: &[String], flags: &[String]) -> Result<Retarget, ReplayError> {
    let mut retarget = Retarget::default();
    let machine = |f: &String| f.starts_with("-m");
    if flags.iter().any(machine) {
        retarget.target = Some(target(original, flags)?);
    }
    for flag in flags {
        match flag.as_str() {
            "-Os" => retarget.size = Some("s".to_owned()),
            "-Oz" => retarget.size = Some("z".to_owned()),
            "-Ofast" => {
                retarget.fast_math = true;
                retarget.size = Some(String::new());
            }
            f if f.starts_with("-O") => retarget.size = Some(String::new()),
            "-ffast-math" => retarget.fast_math = true,
            "-fno-fast-math" => retarget.fast_math = false,
            "-fno-strict-aliasing" => retarget.no_strict_aliasing = true,
            "-fstrict-aliasing" => retarget.no_strict_aliasing = false,
            "-fno-omit-frame-pointer" => retarget.frame_pointer = Some(true),
            "-fomit-frame-pointer" => retarget.frame_pointer = Some(false),
            f => {
                if let Some(width) = f.strip_prefix("-mprefer-vector-width=") {
                    retarget.attributes.push((
                        "prefer-vector-width".to_owned(),
                        if width == "none" { "" } else { width }.to_owned(),
                    ));
                }
            }
        }
    }
    Ok(retarget)
}

/// Target attributes that clang gives functions under the flags: it compiles an empty function and the
/// attributes are read off its IR, so they are exactly what a front end would have written.
fn target(original: &[String], flags: &[String]) -> Result<TargetAttributes, ReplayError> {
    let mut command = Command::new(CLANG);
    command
        .args(original.iter().chain(flags).filter(|f| f.starts_with("-m")))
        .args(["-x", "c", "-S", "-emit-llvm", "-O0", "-o", "-"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .arg("-");
    let line = format!("{command:?}");
    let start = |source| ReplayError::Tool {
        tool: CLANG.to_owned(),
        source,
    };
    let mut child = command.spawn().map_err(start)?;
    if let Some(mut input) = child.stdin.take() {
        use std::io::Write;
        let _ = input.write_all(b"void f(void) {}\n");
    }
    let output = child.wait_with_output().map_err(start)?;
    if !output.status.success() {
        return Err(ReplayError::Compile {
            tool: CLANG.to_owned(),
            what: format!("the flags {}", flags.join(" ")),
            message: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            command: line,
        });
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let value = |name: &str| {
        let key = format!("\"{name}\"=\"");
        text.split_once(&key)
            .and_then(|(_, rest)| rest.split_once('"'))
            .map_or(String::new(), |(value, _)| value.to_owned())
    };
    Ok(TargetAttributes {
        cpu: value("target-cpu"),
        tune: value("tune-cpu"),
        features: value("target-features"),
    })
}

/// What the pass is to bind in unit `index`.
pub fn bind_plan(
    manifest: &Manifest,
    index: usize,
    flags: &[String],
) -> Result<BindPlan, ReplayError> {
    let unit = &manifest.units[index];
    let here = |owner: &Option<String>| owner.as_ref().is_none_or(|id| *id == unit.id);
    let mut variables: Vec<String> = manifest
        .variables
        .iter()
        .filter(|v| here(&v.unit))
        .map(|v| v.name.clone())
        .collect();
    if let Some(tls) = &manifest.image.tls {
        variables.extend(
            tls.variables
                .iter()
                .filter(|v| here(&v.unit))
                .map(|v| v.name.clone()),
        );
    }
    let functions = manifest
        .functions
        .iter()
        .filter(|f| here(&f.unit) && !f.other_image)
        .map(|f| f.name.clone())
        .collect();
    Ok(BindPlan {
        version: BUILD_VERSION,
        prefix: prefix(index),
        variables,
        functions,
        retarget: retarget(&unit.codegen, flags)?,
    })
}

/// Compiles unit `index`; the object lies in the cache.
pub fn unit(
    package: &Path,
    manifest: &Manifest,
    index: usize,
    options: &Options,
) -> Result<PathBuf, ReplayError> {
    let unit = &manifest.units[index];
    let ir = package.join(unit.member());
    let content = std::fs::read(&ir).map_err(io("read", &ir))?;
    let plugin = std::fs::read(&options.plugin).map_err(io("read", &options.plugin))?;
    let plan = bind_plan(manifest, index, &options.flags)?;
    let plan = serde_json::to_vec(&plan).map_err(ReplayError::Manifest)?;
    let key = hash(&[
        &content,
        &plugin,
        &plan,
        unit.codegen.join("\0").as_bytes(),
        options.flags.join("\0").as_bytes(),
        options.passes.as_deref().unwrap_or("").as_bytes(),
    ]);
    let object = options.cache.join(format!("{key}.o"));
    if object.exists() {
        return Ok(object);
    }
    let scratch = |extension: &str| {
        options
            .cache
            .join(format!("{key}.{}.{extension}", std::process::id()))
    };
    let plan_path = scratch("bind");
    std::fs::write(&plan_path, &plan).map_err(io("write", &plan_path))?;
    let temporary = scratch("o");
    let mut command = Command::new(CLANG);
    command.args(&unit.codegen).args(&options.flags).args([
        "-w",
        "-Wno-unused-command-line-argument",
        "-c",
    ]);
    let optimised = scratch("bc");
    let result = if let Some(passes) = &options.passes {
        let mut opt = Command::new(OPT);
        opt.arg(format!("-load-pass-plugin={}", options.plugin.display()))
            .arg(format!("-passes={passes}"))
            .env(ENV_BIND, &plan_path)
            .arg(&ir)
            .arg("-o")
            .arg(&optimised);
        tool(&mut opt, &unit.source).and_then(|_| {
            command
                .env(ENV_BIND, &plan_path)
                .arg(format!("-fpass-plugin={}", options.plugin.display()))
                .args(["-Xclang", "-disable-llvm-passes", "-x", "ir"])
                .arg(&optimised)
                .arg("-o")
                .arg(&temporary);
            tool(&mut command, &unit.source)
        })
    } else {
        command
            .env(ENV_BIND, &plan_path)
            .arg(format!("-fpass-plugin={}", options.plugin.display()))
            .args(["-x", "ir"])
            .arg(&ir)
            .arg("-o")
            .arg(&temporary);
        tool(&mut command, &unit.source)
    };
    let _ = std::fs::remove_file(&plan_path);
    let _ = std::fs::remove_file(&optimised);
    if let Err(error) = result {
        let _ = std::fs::remove_file(&temporary);
        return Err(error);
    }
    std::fs::rename(&temporary, &object).map_err(io("write", &object))?;
    Ok(object)
}

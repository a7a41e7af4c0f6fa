//! `--keep`: everything that a replay is made of, in one directory, with the commands to make and run it again.

use crate::compile::Compiled;
use crate::link::Linked;
use crate::survival::survival;
use crate::{Options, ReplayError, apart, compile, link, plan};
use cere_format::package::{
    MEMBER_ANSWERS, MEMBER_CODE, MEMBER_ENTRY, MEMBER_EXIT, MEMBER_MANIFEST, MEMBER_TABLE,
    MEMBER_TLS_ENTRY, MEMBER_TLS_EXIT, MEMBER_TLS_START, MEMBER_TLS_TEAM, MEMBER_TRACE, Manifest,
};
use cere_format::replay::ENV_PLAN;
use cere_toolchain::unit::{Files, lines};
use cere_toolchain::{CompileError, command, io};
use std::fmt::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The disassembler of IR.
const DIS: &str = "llvm-dis-22";

fn copy(from: &Path, to: &Path) -> Result<(), CompileError> {
    let _ = std::fs::remove_file(to);
    std::fs::copy(from, to).map(drop).map_err(io("write", to))
}

/// A hard link where that is possible: page files can be large.
fn link_or_copy(from: &Path, to: &Path) -> Result<(), CompileError> {
    let _ = std::fs::remove_file(to);
    std::fs::hard_link(from, to).or_else(|_| copy(from, to))
}

/// Fills `keep`.
pub fn keep(
    keep: &Path,
    package: &Path,
    manifest: &Manifest,
    compiled: &[Compiled],
    glue: &str,
    linked: &Linked,
    options: &Options,
) -> Result<(), ReplayError> {
    let data = keep.join("package");
    std::fs::create_dir_all(&data).map_err(io("create", &data))?;
    let save = |name: &str, content: &[u8]| {
        let to = keep.join(name);
        std::fs::write(&to, content).map_err(io("write", &to))
    };
    let mut script =
        String::from("#!/bin/sh -e\n# Builds ./replay again.\ncd \"$(dirname \"$0\")\"\n");
    let mut objects = Vec::new();
    for (index, (unit, compiled)) in manifest.units.iter().zip(compiled).enumerate() {
        let name = |extension: &str| PathBuf::from(format!("unit{index}.{extension}"));
        let files = Files {
            ir: name("bc"),
            plan: name("bind.json"),
            prepared: name("prepared.bc"),
            optimised: name("optimised.bc"),
            object: name("o"),
        };
        copy(&package.join(unit.member()), &keep.join(&files.ir))?;
        copy(&compiled.object, &keep.join(&files.object))?;
        let plan = serde_json::to_vec_pretty(&compiled.plan).map_err(ReplayError::Manifest)?;
        save(&files.plan.to_string_lossy(), &plan)?;
        let readable = command::Line::new(DIS)
            .confined(&options.settings.sandbox)
            .path(&keep.join(&files.ir))
            .arg("-o")
            .output(&keep.join(name("ll")));
        command::run(&readable, &unit.source)?;
        let _ = writeln!(script, "\n# {}", unit.source.replace('\n', " "));
        let recipe = compile::recipe(unit, &compiled.plan, &compiled.flags, options);
        for line in lines(&recipe, &files) {
            let _ = writeln!(script, "{line}");
        }
        if !compiled.renamed.is_empty() {
            let line = apart::rename_line(&compiled.renamed, &files.object, &files.object);
            let _ = writeln!(script, "{line}");
        }
        objects.push(files.object);
    }
    save("glue.s", glue.as_bytes())?;
    link::write_first(&keep.join("first.s"))?;
    let files = link::Files {
        first: "first.o".into(),
        runtime: "runtime.o".into(),
        objects,
        glue: "glue.o".into(),
        executable: "replay".into(),
    };
    let _ = writeln!(script, "\n# The glue and the link");
    for name in ["first", "glue"] {
        let (source, object) = (format!("{name}.s"), format!("{name}.o"));
        let _ = writeln!(
            script,
            "{}",
            link::assemble(source.as_ref(), object.as_ref())
        );
    }
    let line = link::line(
        manifest,
        &files,
        linked.base,
        &linked.builtins,
        options.settings.team.runtime.as_deref(),
    )?;
    let _ = writeln!(script, "{line}");
    let _ = writeln!(
        script,
        "\n# Run it: {ENV_PLAN}=plan.json ./replay; cat outcome.json\n\
         # Under gdb: set disable-randomization off, as the captured addresses have to be free.\n\
         # survival_ns in plan.json is of this machine: on another one, null if nobody shares its caches."
    );
    save("build.sh", script.as_bytes())?;
    let to = keep.join("build.sh");
    std::fs::set_permissions(&to, std::fs::Permissions::from_mode(0o755))
        .map_err(io("write", &to))?;
    copy(&linked.runtime, &keep.join("runtime.o"))?;
    copy(&linked.executable, &keep.join("replay"))?;

    for member in [
        MEMBER_MANIFEST,
        MEMBER_TABLE,
        MEMBER_ENTRY,
        MEMBER_EXIT,
        MEMBER_TLS_ENTRY,
        MEMBER_TLS_EXIT,
        MEMBER_TLS_START,
        MEMBER_TLS_TEAM,
        MEMBER_TRACE,
        MEMBER_ANSWERS,
        MEMBER_CODE,
    ] {
        let from = package.join(member);
        if from.exists() {
            link_or_copy(&from, &data.join(member))?;
        }
    }
    let (warmup, _) = plan::warmup(
        manifest,
        options.settings.warmup,
        options.settings.team.threads,
    )?;
    let mut plan = plan::plan(
        "package".into(),
        "outcome.json".into(),
        warmup,
        manifest,
        options,
    );
    plan.survival_ns = survival(warmup, &options.cache)?;
    // By hand there is no sandbox whose refusals need names.
    plan.guard = None;
    let plan = serde_json::to_vec_pretty(&plan).map_err(ReplayError::Manifest)?;
    Ok(save("plan.json", &plan)?)
}

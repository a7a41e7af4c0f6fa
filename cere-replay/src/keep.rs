//! `--keep`: everything that a replay is made of, in one directory, with the commands to make and run it again.

use crate::compile::Compiled;
use crate::link::Linked;
use crate::survival::survival;
use crate::{Options, ReplayError, apart, compile, link, plan};
use cere_format::package::{
    MEMBER_ANSWERS, MEMBER_CODE, MEMBER_ENTRY, MEMBER_EXIT, MEMBER_MANIFEST, MEMBER_MPI,
    MEMBER_TABLE, MEMBER_TLS_ENTRY, MEMBER_TLS_EXIT, MEMBER_TLS_START, MEMBER_TLS_TEAM,
    MEMBER_TRACE, Manifest,
};
use cere_format::replay::ENV_PLAN;
use cere_toolchain::unit::{DIS, Files, lines};
use cere_toolchain::{CompileError, command, io};
use std::fmt::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

fn copy(from: &Path, to: &Path) -> Result<(), CompileError> {
    let _ = std::fs::remove_file(to);
    std::fs::copy(from, to).map(drop).map_err(io("write", to))
}

/// A hard link where that is possible: page files can be large.
fn link_or_copy(from: &Path, to: &Path) -> Result<(), CompileError> {
    let _ = std::fs::remove_file(to);
    std::fs::hard_link(from, to).or_else(|_| copy(from, to))
}

/// What a package's directory holds.
pub const MEMBERS: [&str; 12] = [
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
    MEMBER_MPI,
    MEMBER_CODE,
];

/// A directory for all that a replay is made of.
pub struct Keep<'a> {
    /// The directory.
    pub directory: &'a Path,
    /// The unpacked package.
    pub package: &'a Path,
    /// Its manifest.
    pub manifest: &'a Manifest,
    /// How it is replayed.
    pub options: &'a Options,
}

impl Keep<'_> {
    /// Fills it.
    pub fn fill(
        &self,
        compiled: &[Compiled],
        glue: &str,
        linked: &Linked,
    ) -> Result<(), ReplayError> {
        let data = self.directory.join("package");
        std::fs::create_dir_all(&data).map_err(io("create", &data))?;
        let mut script =
            String::from("#!/bin/sh -e\n# Builds ./replay again.\ncd \"$(dirname \"$0\")\"\n");
        let mut objects = Vec::new();
        for (index, compiled) in compiled.iter().enumerate() {
            objects.push(self.unit(index, compiled, &mut script)?);
        }
        self.save("glue.s", glue.as_bytes())?;
        link::write_first(&self.directory.join("first.s"))?;
        self.write_link(objects, linked, &mut script)?;
        self.save("build.sh", script.as_bytes())?;
        let to = self.directory.join("build.sh");
        std::fs::set_permissions(&to, std::fs::Permissions::from_mode(0o755))
            .map_err(io("write", &to))?;
        copy(&linked.runtime, &self.directory.join("runtime.o"))?;
        copy(&linked.executable, &self.directory.join("replay"))?;
        for member in MEMBERS {
            let from = self.package.join(member);
            if from.exists() {
                link_or_copy(&from, &data.join(member))?;
            }
        }
        self.plan()
    }

    fn save(&self, name: &str, content: &[u8]) -> Result<(), CompileError> {
        let to = self.directory.join(name);
        std::fs::write(&to, content).map_err(io("write", &to))
    }

    /// The files of a unit, and the commands that make its object; gives that.
    fn unit(
        &self,
        index: usize,
        compiled: &Compiled,
        script: &mut String,
    ) -> Result<PathBuf, ReplayError> {
        let (unit, directory) = (&self.manifest.units[index], self.directory);
        let name = |extension: &str| PathBuf::from(format!("unit{index}.{extension}"));
        let files = Files {
            ir: name("bc"),
            plan: name("bind.json"),
            prepared: name("prepared.bc"),
            optimised: name("optimised.bc"),
            object: name("o"),
            remarks: None,
        };
        copy(
            &self.package.join(unit.member()),
            &directory.join(&files.ir),
        )?;
        copy(&compiled.object, &directory.join(&files.object))?;
        let plan = serde_json::to_vec_pretty(&compiled.plan).map_err(ReplayError::Json)?;
        self.save(&files.plan.to_string_lossy(), &plan)?;
        let readable = command::Line::new(DIS)
            .confined(&self.options.settings.sandbox)
            .path(&directory.join(&files.ir))
            .arg("-o")
            .output(&directory.join(name("ll")));
        command::run(&readable, &unit.source)?;
        let _ = writeln!(script, "\n# {}", unit.source.replace('\n', " "));
        let codegen = compile::codegen(unit, self.options);
        let recipe = compile::recipe(
            unit,
            &codegen,
            &compiled.plan,
            &compiled.flags,
            self.options,
        );
        for line in lines(&recipe, &files) {
            let _ = writeln!(script, "{line}");
        }
        if !compiled.renamed.is_empty() {
            let line = apart::rename_line(&compiled.renamed, &files.object, &files.object);
            let _ = writeln!(script, "{line}");
        }
        Ok(files.object)
    }

    /// The commands of the link, and how the executable is run.
    fn write_link(
        &self,
        objects: Vec<PathBuf>,
        linked: &Linked,
        script: &mut String,
    ) -> Result<(), ReplayError> {
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
            let line = link::assemble(source.as_ref(), object.as_ref(), self.options);
            let _ = writeln!(script, "{line}");
        }
        let other = self.options.settings.team.runtime.as_deref();
        let (base, builtins) = (linked.base, &linked.builtins);
        let line = link::line(self.manifest, &files, base, builtins, other, self.options)?;
        let _ = writeln!(script, "{line}");
        let cross = self.options.settings.cross.as_ref();
        let start =
            cross
                .and_then(|cross| cross.emulator.as_ref())
                .map_or(String::new(), |emulator| {
                    format!(
                        "{} -L {} ",
                        emulator.program.display(),
                        emulator.root.display()
                    )
                });
        let _ = writeln!(
            script,
            "\n# Run it: {ENV_PLAN}=plan.json {start}./replay; cat outcome.json\n\
             # Under gdb: set disable-randomization off, as the captured addresses have to be free.\n\
             # survival_ns in plan.json is of this machine: on another one, null if nobody shares its caches."
        );
        Ok(())
    }

    /// The plan, as the executable is run by hand.
    fn plan(&self) -> Result<(), ReplayError> {
        let settings = &self.options.settings;
        let (warmup, _) = plan::warmup(self.manifest, settings.warmup, settings.team.threads)?;
        let (package, outcome) = ("package".into(), "outcome.json".into());
        let mut plan = plan::plan(package, outcome, warmup, self.manifest, self.options);
        plan.survival_ns = survival(warmup, &self.options.cache)?;
        // By hand there is no sandbox whose refusals need names.
        plan.guard = None;
        let plan = serde_json::to_vec_pretty(&plan).map_err(ReplayError::Json)?;
        Ok(self.save("plan.json", &plan)?)
    }
}

//! Compiles programs plainly and with the pass, as the wrapper does, and runs them.

#![allow(dead_code, reason = "each test binary uses a part")]

use cere_format::build::{
    BUILD_VERSION, CompileCommand, ENV_COMMAND, SkippedLoop, SplitLoop, Unit,
};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The plugin that cargo built for this test.
pub fn plugin() -> PathBuf {
    let exe = std::env::current_exe().expect("the test's path");
    let beside = exe.parent().expect("a directory").join("libcere_pass.so");
    if beside.is_file() {
        return beside;
    }
    exe.ancestors()
        .nth(2)
        .expect("the target")
        .join("libcere_pass.so")
}

/// A file of `tests/programs`.
pub fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(name)
}

/// The compiler of a source by its name.
pub fn compiler(source: &Path) -> &'static str {
    match source.extension().and_then(|e| e.to_str()) {
        Some("cpp") => "clang++-22",
        Some("f90" | "f") => "flang-22",
        _ => "clang-22",
    }
}

/// Runs a command and shows it when it fails.
pub fn run(command: &mut Command) -> Output {
    let output = command.output().expect("the program starts");
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// A directory of its own with a store in it.
pub struct Place {
    directory: tempfile::TempDir,
    /// Whether every loop within every loop becomes a region.
    splits: bool,
    /// Names and globs of functions that become regions as a whole.
    functions: Vec<String>,
}

/// What an instrumented compile left.
pub struct Built {
    pub object: PathBuf,
    pub unit: Unit,
    /// The loops that the pass gave up on, which a retry left alone.
    pub skipped: Vec<SkippedLoop>,
}

impl Place {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        Self {
            directory,
            splits: false,
            functions: Vec::new(),
        }
    }

    /// The same, where all functions become regions as a whole.
    pub fn choosing() -> Self {
        Self {
            functions: vec!["*".to_owned()],
            ..Self::new()
        }
    }

    /// The same, where all loops within loops become regions.
    pub fn splitting() -> Self {
        Self {
            splits: true,
            ..Self::new()
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn unit_ir(&self, unit: &Unit) -> PathBuf {
        self.path(&format!("store/units/{}.bc", unit.id))
    }

    /// Compiles without the pass.
    pub fn plain(&self, source: &Path, flags: &[&str]) -> PathBuf {
        let object = self.path(&format!(
            "{}.plain.o",
            source.file_name().unwrap().display()
        ));
        let mut command = Command::new(compiler(source));
        command
            .args(flags)
            .arg("-c")
            .arg(source)
            .arg("-o")
            .arg(&object);
        run(command.current_dir(self.directory.path()));
        object
    }

    /// Compiles with the pass; loops that the pass gives up on are skipped at the next attempt.
    pub fn instrumented(&self, source: &Path, flags: &[&str]) -> Built {
        let name = source.file_name().unwrap().display();
        let object = self.path(&format!("{name}.o"));
        let debug = flags.contains(&"-g");
        let mut record = CompileCommand {
            version: BUILD_VERSION,
            store: self.path("store"),
            directory: self.directory.path().to_owned(),
            compiler: compiler(source).into(),
            arguments: vec![source.display().to_string()],
            codegen: flags.iter().map(|f| f.to_string()).collect(),
            output: Some(object.clone()),
            debug,
            skip: Vec::new(),
            short: None,
            split: Vec::new(),
            functions: self.functions.clone(),
            front: None,
            variables: Default::default(),
        };
        let json = self.path(&format!("{name}.json"));
        loop {
            std::fs::write(&json, serde_json::to_vec(&record).unwrap()).unwrap();
            let mut command = Command::new(compiler(source));
            command
                .args(flags)
                .arg(format!("-fpass-plugin={}", plugin().display()));
            if !debug {
                command.arg("-gline-tables-only");
            }
            command
                .arg("-c")
                .arg(source)
                .arg("-o")
                .arg(&object)
                .env(ENV_COMMAND, &json);
            let output = command.current_dir(self.directory.path()).output().unwrap();
            let text = String::from_utf8_lossy(&output.stderr);
            if output.status.success() {
                let id = std::fs::read_dir(self.path("store/current")).unwrap();
                let unit = id
                    .filter_map(|e| std::fs::read_to_string(e.unwrap().path()).ok())
                    .map(|id| self.path(&format!("store/units/{id}.json")))
                    .map(|p| serde_json::from_slice::<Unit>(&std::fs::read(p).unwrap()).unwrap())
                    .find(|unit| unit.command.output.as_ref() == Some(&object))
                    .expect("the unit is in the store");
                let known = record.split.len();
                if self.splits {
                    let holds = unit.regions.iter().filter(|r| r.inside != Some(0));
                    record.split.extend(holds.map(SplitLoop::from));
                }
                if record.split.len() > known {
                    // Further regions get other numbers.
                    record.skip.clear();
                    continue;
                }
                return Built {
                    object,
                    unit,
                    skipped: record.skip,
                };
            }
            let retry = text
                .lines()
                .find_map(|l| l.strip_prefix("CERE-RETRY-SKIP "));
            let Some((index, reason)) = retry.and_then(|l| l.split_once(' ')) else {
                panic!("{command:?} failed:\n{text}");
            };
            let index = index.parse().unwrap();
            assert!(record.skip.iter().all(|s| s.index != index), "{text}");
            record.skip.push(SkippedLoop {
                index,
                reason: reason.into(),
            });
        }
    }

    pub fn link(
        &self,
        sources: &[PathBuf],
        objects: &[PathBuf],
        name: &str,
        flags: &[&str],
    ) -> PathBuf {
        let executable = self.path(name);
        let driver = if sources.iter().any(|s| compiler(s) == "flang-22") {
            "flang-22"
        } else if sources.iter().any(|s| compiler(s) == "clang++-22") {
            "clang++-22"
        } else {
            "clang-22"
        };
        run(Command::new(driver)
            .args(flags)
            .args(objects)
            .args(["-lm", "-o"])
            .arg(&executable));
        executable
    }

    /// Builds and runs the program plainly, dormant and with every region armed; the outputs have to be equal.
    pub fn compare(&self, names: &[&str], flags: &[&str]) -> Vec<Built> {
        let sources: Vec<PathBuf> = names.iter().map(|n| program(n)).collect();
        let link_flags: Vec<&str> = flags
            .iter()
            .copied()
            .map(|f| match f {
                "-fno-pic" => "-no-pie",
                "-fPIE" => "-pie",
                f => f,
            })
            .filter(|f| !f.starts_with("-O") && !f.starts_with("-f") && !f.starts_with("-m"))
            .collect();
        let plain: Vec<PathBuf> = sources.iter().map(|s| self.plain(s, flags)).collect();
        let built: Vec<Built> = sources
            .iter()
            .map(|s| self.instrumented(s, flags))
            .collect();
        let arm_flags: &[&str] = if flags.contains(&"-fno-pic") {
            &["-fno-pic"]
        } else {
            &["-fPIC"]
        };
        let arm = self.plain(&program("arm.c"), arm_flags);
        let mut objects: Vec<PathBuf> = built.iter().map(|b| b.object.clone()).collect();
        objects.push(arm);
        let reference = Command::new(self.link(&sources, &plain, "plain", &link_flags))
            .output()
            .unwrap();
        let executable = self.link(&sources, &objects, "instrumented", &link_flags);
        for armed in [false, true] {
            let mut command = Command::new(&executable);
            if armed {
                command.env("ARM", "1");
            }
            let output = command.output().unwrap();
            let text = |o: &Output| String::from_utf8_lossy(&o.stdout).into_owned();
            assert_eq!(
                text(&output),
                text(&reference),
                "{names:?} {flags:?} armed {armed}"
            );
            assert_eq!(
                output.status, reference.status,
                "{names:?} {flags:?} armed {armed}"
            );
        }
        built
    }
}

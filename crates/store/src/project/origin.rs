//! How a program was built: what the store recorded, build files around it, its debug information. Nothing is run but LLVM's reader
//! of debug information.

use super::{Way, is_program, text, ways};
use crate::build::image::units_of;
use crate::build::wrapper;
use crate::state;
use anyhow::{Result, bail};
use cere_format::build::BuildCommand;
use cere_format::store::Store;
use cere_system::process::wait;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Folders above the program's own that are looked into.
const ABOVE: usize = 6;
/// Time for the reader of debug information.
const PATIENCE: Duration = Duration::from_secs(5);

/// How a program was built, and how it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The build command, for a shell.
    pub command: String,
    /// Where it is run.
    pub directory: PathBuf,
    /// The file or the record that shows it.
    pub why: String,
    /// Whether the user built it so under CERE before.
    pub recorded: bool,
}

impl Origin {
    /// For a shell in `here`.
    pub fn line(&self, here: &Path) -> String {
        match self.directory == here {
            true => self.command.clone(),
            false => {
                let directory = self.directory.to_string_lossy();
                format!("cd {} && {}", shell_words::quote(&directory), self.command)
            }
        }
    }
}

/// What a compiler left in a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Debug {
    /// Its name and its flags.
    pub producer: Option<String>,
    /// Where it was run.
    pub directory: Option<PathBuf>,
}

/// The word of `command` that is the program: the first that names a program by a path, behind a launcher too.
pub fn program_of(command: &[String]) -> &str {
    let words = || command.iter().filter(|word| word.contains('/'));
    let named = words().find(|word| is_program(Path::new(word)));
    let named = named.or_else(|| words().next()).or(command.first());
    named.map_or("", String::as_str)
}

/// How the program in `command` was built. An error says where was looked and what is needed.
pub fn of(command: &[String], store: &Store) -> Result<Origin> {
    let program = program_of(command);
    let file = std::path::absolute(program)?;
    if let Some(origin) = recorded(&file, store) {
        return Ok(origin);
    }
    let folder = file.parent().unwrap_or(Path::new("/"));
    let mut looked = Vec::new();
    if let Some(origin) = around(folder, &file, &mut looked) {
        return Ok(origin);
    }
    let debug = debug(&file);
    let compiled_in = debug.directory.as_ref().filter(|d| d.is_dir());
    if let Some(directory) = compiled_in
        && let Some(mut origin) = around(directory, &file, &mut looked)
    {
        origin.why += &format!(
            "; {program} was compiled in {}, says its debug information",
            directory.display()
        );
        return Ok(origin);
    }
    let first = folder.display();
    let known = match (&debug.producer, &debug.directory) {
        (Some(producer), Some(directory)) => format!(
            "its debug information says that it was compiled in {} by {producer}",
            directory.display()
        ),
        _ if !file.exists() => "the program is not there yet".to_owned(),
        _ => "it has no debug information that would say it".to_owned(),
    };
    bail!(
        "how {program} is built is not known: no build file in {first} and the folders above makes it, and {known}: \
         say it with --build, as in `cere study --build 'cc -O2 main.c -o app' -- ./app`"
    )
}

/// The last build of the store, if it made the program.
fn recorded(file: &Path, store: &Store) -> Option<Origin> {
    let record: BuildCommand = state::read_json(&store.build()).ok()?;
    let bytes = std::fs::read(file).unwrap_or_default();
    let units = units_of(&bytes).unwrap_or_default();
    let made = units.iter().any(|id| store.unit_record(id).is_file());
    (record.version == BuildCommand::VERSION && (made || !file.exists())).then(|| Origin {
        command: match &record.command[..] {
            [shell, option, line] if shell == "sh" && option == "-c" => line.clone(),
            words => shell_words::join(words),
        },
        directory: record.directory,
        why: format!("the last build in {}", store.root().display()),
        recorded: true,
    })
}

/// The nearest build file from `folder` upwards.
fn around(folder: &Path, file: &Path, looked: &mut Vec<PathBuf>) -> Option<Origin> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    for directory in folder.ancestors().take(ABOVE + 1) {
        if looked.iter().any(|seen| seen == directory) {
            continue;
        }
        looked.push(directory.to_owned());
        let found = configured(directory).or_else(|| in_place(directory, file));
        if found.is_some() {
            return found;
        }
        let top = directory.join(".git").exists() || home.as_deref() == Some(directory);
        if top || directory.parent().is_none() {
            break;
        }
    }
    None
}

/// A build directory of CMake or ninja.
fn configured(directory: &Path) -> Option<Origin> {
    let cmake = directory.join("CMakeCache.txt").is_file();
    let ninja = directory.join("build.ninja").is_file();
    let (command, name) = match (cmake, ninja) {
        (true, _) => ("cmake --build . --clean-first", "CMakeCache.txt"),
        (_, true) => ("ninja -t clean && ninja", "build.ninja"),
        _ => return None,
    };
    Some(Origin {
        command: command.to_owned(),
        directory: directory.to_owned(),
        why: directory.join(name).display().to_string(),
        recorded: false,
    })
}

/// A way that leaves the program where it is.
fn in_place(directory: &Path, file: &Path) -> Option<Origin> {
    let below = file.strip_prefix(directory).ok();
    let makes = |way: &Way| {
        let name = way.file.file_name().unwrap_or_default().to_string_lossy();
        match &*name {
            // They build in a directory of their own.
            "CMakeLists.txt" | "meson.build" => false,
            "Cargo.toml" => below.is_some_and(|b| b.starts_with("target")),
            // Makefiles seldom say it plainly; others make the program that the source is named after.
            "configure" | "GNUmakefile" | "makefile" | "Makefile" => true,
            _ => below.is_some_and(|b| way.programs.iter().any(|p| p == b)),
        }
    };
    let way = ways(directory).into_iter().find(makes)?;
    let mut command = way.command.clone();
    if let Some(below) = below.filter(|_| way.file.ends_with("Cargo.toml")) {
        // target/PROFILE/PROGRAM
        let profile = below
            .iter()
            .nth(1)
            .map(|p| p.to_string_lossy().into_owned());
        command = match profile.as_deref() {
            Some("debug") | None => "cargo clean && cargo build".to_owned(),
            Some(profile) => {
                format!("cargo clean --profile {profile} && cargo build --profile {profile}")
            }
        };
    }
    Some(Origin {
        command,
        directory: way.directory,
        why: way.file.display().to_string(),
        recorded: false,
    })
}

/// What the debug information of a file says of its first unit.
pub fn debug(file: &Path) -> Debug {
    let Ok(reader) = wrapper::compiler("llvm-dwarfdump-22") else {
        return Debug::default();
    };
    let mut command = Command::new(reader);
    command
        .args(["--debug-info", "--recurse-depth=0"])
        .arg(file);
    // A pipe may fill up before the reader has ended.
    let Ok(output) = tempfile::NamedTempFile::new() else {
        return Debug::default();
    };
    let Ok(stdout) = output.reopen() else {
        return Debug::default();
    };
    command
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(Stdio::null());
    let ended = command
        .spawn()
        .map(|mut child| wait::within(&mut child, PATIENCE));
    match ended {
        Ok(Ok(Some(status))) if status.success() => {
            of_dump(&text::read(output.path()).unwrap_or_default())
        }
        _ => Debug::default(),
    }
}

fn of_dump(dump: &str) -> Debug {
    let value = |name: &str| {
        let at = dump.find(name)? + name.len();
        let inside = dump[at..].trim_start().strip_prefix("(\"")?;
        let line = inside.lines().next()?;
        line.strip_suffix("\")").map(str::to_owned)
    };
    Debug {
        producer: value("DW_AT_producer"),
        directory: value("DW_AT_comp_dir").map(PathBuf::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_unit_of_a_dump() {
        let dump = "0x0b: DW_TAG_compile_unit\n  DW_AT_producer\t(\"clang 22 -O2\")\n  DW_AT_comp_dir\t(\"/home/a b\")\n\
                    0x9b: DW_TAG_compile_unit\n  DW_AT_producer\t(\"other\")\n";
        let debug = of_dump(dump);
        assert_eq!(debug.producer.as_deref(), Some("clang 22 -O2"));
        assert_eq!(debug.directory, Some("/home/a b".into()));
        assert_eq!(of_dump("file format elf64-x86-64"), Debug::default());
    }

    #[test]
    fn launchers_are_passed_over() {
        let own = std::env::current_exe().expect("this program");
        let own = own.to_str().expect("UTF-8");
        let words = ["mpirun", "-n", "2", own, "a/b"].map(str::to_owned);
        assert_eq!(program_of(&words), own);
        assert_eq!(program_of(&["app".to_owned()]), "app");
    }
}

//! The programs that CERE runs, and its own parts.

use crate::health::item::Item;
use cere_store::build::wrapper;
use cere_store::components;
use cere_system::process::wait;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Programs: name, what needs them, whether they are required, and the Debian package.
const PROGRAMS: &[(&str, &str, bool, &str)] = &[
    ("clang-22", "all compiles", true, "clang-22"),
    ("clang++-22", "C++", true, "clang-22"),
    ("flang-22", "Fortran", false, "flang-22 libflang-22-dev"),
    ("opt-22", "replays", true, "llvm-22"),
    ("ld.lld-22", "replays", true, "lld-22"),
    ("llvm-objcopy-22", "`cere hybrid`", true, "llvm-22"),
    ("llvm-ar-22", "`cere hybrid`", true, "llvm-22"),
    ("llvm-mca-22", "`cere metrics`", false, "llvm-22"),
    ("llvm-dis-22", "`cere replay --keep`", false, "llvm-22"),
];

/// The major version that is needed.
const MAJOR: &str = "22";
/// Time limit for a program to print its version.
const PATIENCE: Duration = Duration::from_millis(500);

/// All items.
pub fn items() -> Vec<Item> {
    let programs = PROGRAMS.iter().map(program);
    let parts = [
        ("LLVM pass", components::PLUGIN),
        ("preload library", components::PRELOAD),
        ("replay runtime", components::RUNTIME),
        ("library of tools that stay", components::STAY),
    ];
    let captures = cere_arch::HERE.facts().captures;
    let parts = parts
        .into_iter()
        .filter(|part| captures || part.1 != components::PRELOAD);
    let parts = parts.map(|(name, file)| match components::find(file) {
        Ok(path) => Item::good(name, path.display().to_string()),
        Err(why) => Item::missing(
            name,
            why.to_string(),
            "`make`, then `sudo make install`; or set CERE_HOME to the directory with the libraries",
        ),
    });
    programs.chain(parts).collect()
}

fn program((name, used, needed, package): &(&'static str, &str, bool, &str)) -> Item {
    let why = match wrapper::compiler(name) {
        Err(_) => "is not in PATH".to_owned(),
        Ok(path) => match output_of(Command::new(&path).arg("--version")) {
            Some(text) => match version(&text) {
                Some(found) if found.split('.').next() == Some(MAJOR) => {
                    return Item::good(name, format!("{found}, {}", path.display()));
                }
                Some(found) => format!("{} is version {found}, not {MAJOR}", path.display()),
                None => format!("{} does not print its version", path.display()),
            },
            None => format!("{} cannot be run", path.display()),
        },
    };
    let why = format!("{why}: needed for {used}");
    let remedy = format!("`apt install {package}` (Debian 12), or put {name} in PATH");
    let item = match needed {
        true => Item::missing(name, why, remedy),
        false => Item::limited(name, why, remedy),
    };
    match wrapper::compiler("apt-get") {
        Ok(_) => item.mended_as_root(&format!("apt-get install -y {package}")),
        Err(_) => item,
    }
}

/// The output of the command, if it succeeds in time.
fn output_of(command: &mut Command) -> Option<String> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    // A version fits into a pipe, so the program never blocks on writing.
    let status = wait::within(&mut child, PATIENCE).ok()??;
    let output = child.wait_with_output().ok()?;
    status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The first version number, such as 22.1.0, in a text.
fn version(text: &str) -> Option<&str> {
    text.split_whitespace().find(|word| {
        word.starts_with(|c: char| c.is_ascii_digit())
            && word.contains('.')
            && word
                .split('.')
                .next()
                .is_some_and(|major| major.parse::<u32>().is_ok())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        let clang = "Debian clang version 22.1.0 (++2026)\nTarget: x86_64";
        assert_eq!(version(clang), Some("22.1.0"));
        assert_eq!(version("Debian LLD 22.1.8 (compatible)"), Some("22.1.8"));
        assert_eq!(
            version("LLVM (http://llvm.org/):\n  LLVM version 22.1.0-rc2"),
            Some("22.1.0-rc2")
        );
        assert_eq!(version("no such thing"), None);
    }

    #[test]
    fn what_is_missing_says_what_to_do() {
        let item = program(&("no-such-tool-22", "nothing", true, "none-22"));
        assert_eq!(item.state, crate::health::item::State::Missing);
        assert!(item.found.contains("is not in PATH: needed for nothing"));
        assert!(
            item.remedy
                .is_some_and(|r| r.contains("apt install none-22"))
        );
    }
}

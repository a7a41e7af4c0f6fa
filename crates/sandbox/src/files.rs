//! Which files a confined process reaches.

use crate::{Kind, Task};
use landlock::{
    ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
    Scope, path_beneath_rules,
};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The system's programs and libraries.
const SYSTEM: [&str; 10] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/gnu/store",
    "/etc/alternatives",
];
/// What the loader, the C library and OpenMP runtimes read of the system.
const READ: [&str; 8] = [
    "/etc/ld.so.cache",
    "/etc/ld.so.preload",
    "/etc/localtime",
    "/proc",
    "/sys",
    "/dev/zero",
    "/dev/random",
    "/dev/urandom",
];
/// Where anyone may write.
const SINKS: [&str; 2] = ["/dev/null", "/dev/full"];
/// Programs that tools start, which may lie outside the system's directories.
const TOOLS: [&str; 8] = [
    "clang-22",
    "flang-22",
    "opt-22",
    "ld.lld-22",
    "llvm-objcopy-22",
    "llvm-dis-22",
    "llvm-ar-22",
    "llvm-mca-22",
];
/// Parts of the place where a toolchain is installed.
const PARTS: [&str; 4] = ["bin", "lib", "lib64", "libexec"];
/// Entries of a directory that are looked at for shared libraries.
const ENTRIES: usize = 4096;

/// The directories of toolchains: of each tool, those beside the one that holds the file behind all links.
fn toolchain() -> BTreeSet<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found = BTreeSet::new();
    for directory in std::env::split_paths(&path) {
        for tool in TOOLS {
            let named = directory.join(tool);
            let Ok(real) = std::fs::canonicalize(&named) else {
                continue;
            };
            // A wrapper that lies elsewhere is read as well.
            found.insert(named);
            let place = real.parent().and_then(Path::parent);
            let place = place.filter(|p| {
                real.parent().is_some_and(|d| d.ends_with("bin")) && p.parent().is_some()
            });
            match place {
                Some(place) => found.extend(PARTS.map(|part| place.join(part))),
                None => found.extend([real]),
            }
        }
    }
    found
}

/// The files of `directory` that are shared libraries, by name and first bytes. A package says where its libraries are, and
/// nothing else there is its business.
pub fn shared_libraries(directory: &Path) -> Vec<PathBuf> {
    let library = |path: &PathBuf| {
        let named = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().contains(".so"));
        let mut magic = [0; 4];
        // Not a pipe, whose opening would wait.
        named
            && path.is_file()
            && File::open(path)
                .and_then(|mut file| file.read_exact(&mut magic))
                .is_ok()
            && magic == *b"\x7fELF"
    };
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .take(ENTRIES)
        .map(|entry| entry.path())
        .filter(library)
        .collect()
}

/// First bytes of a profile that `llvm-profdata` merged.
const PROFILE: [u8; 8] = *b"\xfflprofi\x81";

/// The profiles that a package's flags name, if they are such by their first bytes.
pub fn profiles(flags: &[String]) -> Vec<PathBuf> {
    let value = |flag: &String| {
        let starts = ["-fprofile-use=", "-fprofile-instr-use="];
        let value = starts.iter().find_map(|start| flag.strip_prefix(start));
        value.map(PathBuf::from)
    };
    let profile = |path: &PathBuf| {
        let mut magic = [0; 8];
        path.is_file()
            && File::open(path)
                .and_then(|mut file| file.read_exact(&mut magic))
                .is_ok()
            && magic == PROFILE
    };
    let named = flags.iter().filter_map(value);
    let both = named.flat_map(|path| [path.join("default.profdata"), path]);
    both.filter(profile).collect()
}

/// The files that flags of the user's own name.
pub fn named(flags: &[String]) -> Vec<PathBuf> {
    let value = |flag: &String| {
        let value = flag
            .split_once('=')
            .map_or(flag.as_str(), |(_, value)| value);
        let directory = Path::new(value).join("default.profdata");
        [PathBuf::from(value), directory]
    };
    flags
        .iter()
        .flat_map(value)
        .filter(|path| path.is_file())
        .collect()
}

fn error(error: RulesetError) -> io::Error {
    io::Error::other(format!("landlock: {error}"))
}

/// The ruleset of `task`; none where the kernel has no landlock.
pub(crate) fn ruleset(task: &Task) -> io::Result<Option<OwnedFd>> {
    let abi = ABI::V6;
    let (read, all) = (AccessFs::from_read(abi), AccessFs::from_all(abi));
    let look = AccessFs::ReadFile | AccessFs::ReadDir;
    let fill = AccessFs::WriteFile | AccessFs::Truncate | AccessFs::ReadFile;
    let (below, files): (Vec<&PathBuf>, Vec<&PathBuf>) =
        task.write.iter().partition(|path| path.is_dir());
    let mut libraries = of_environment("LD_LIBRARY_PATH");
    libraries.extend(task.libraries.iter().cloned());
    let libraries: Vec<PathBuf> = libraries.iter().flat_map(|d| shared_libraries(d)).collect();
    let toolchain = match task.kind {
        Kind::Tool => toolchain(),
        Kind::Replay | Kind::Keeper => BTreeSet::new(),
    };
    let created = Ruleset::default()
        .handle_access(all)
        .and_then(|rules| rules.handle_access(AccessNet::from_all(abi)))
        .and_then(|rules| rules.scope(Scope::from_all(abi)))
        .and_then(Ruleset::create)
        .and_then(|rules| rules.add_rules(path_beneath_rules(SYSTEM, read)))
        .and_then(|rules| rules.add_rules(path_beneath_rules(toolchain, read)))
        .and_then(|rules| rules.add_rules(path_beneath_rules(&task.execute, read)))
        .and_then(|rules| rules.add_rules(path_beneath_rules(READ, look)))
        .and_then(|rules| rules.add_rules(path_beneath_rules(&task.read, look)))
        .and_then(|rules| rules.add_rules(path_beneath_rules(libraries, look)))
        .and_then(|rules| rules.add_rules(path_beneath_rules(SINKS, fill)))
        .and_then(|rules| rules.add_rules(path_beneath_rules(files, fill)))
        .and_then(|rules| rules.add_rules(path_beneath_rules(below, all)))
        .map_err(error)?;
    Ok(created.into())
}

/// Directories that the environment names for shared libraries.
fn of_environment(name: &str) -> Vec<PathBuf> {
    let value = std::env::var_os(name).unwrap_or_default();
    std::env::split_paths(&value)
        .filter(|path| path.is_absolute())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_alone_are_read_of_a_directory() {
        let directory = tempfile::tempdir().unwrap();
        let write =
            |name: &str, bytes: &[u8]| std::fs::write(directory.path().join(name), bytes).unwrap();
        write("liba.so.1", b"\x7fELF and so on");
        write("key.so", b"a secret");
        write("id_rsa", b"\x7fELF");
        let found = shared_libraries(directory.path());
        assert_eq!(found, [directory.path().join("liba.so.1")]);
        assert!(shared_libraries(Path::new("/nowhere")).is_empty());
    }
}

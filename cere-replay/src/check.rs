//! Whether a manifest can be what a capture wrote, as far as the generator relies on it.

use crate::ReplayError;
use cere_format::mpi::FUNCTIONS_MOST;
use cere_format::package::Manifest;

/// End of user addresses.
const TOP: u64 = 1 << 47;
const THREAD_LOCAL: u64 = 1 << 30;

/// Beginnings of `-f` flags that load code or write files.
const FILES: [&str; 12] = [
    "-fpass-plugin",
    "-fplugin",
    "-fdump",
    "-fsave-",
    "-foptimization-record",
    "-ftime-trace",
    "-fproc-stat",
    "-fcrash-",
    "-fmodule",
    "-fuse-ld",
    "-fcas-",
    "-fbuild-session",
];
/// Beginnings of flags that may name a file: they read it.
const READS: [&str; 4] = [
    "-fprofile-use=",
    "-fprofile-instr-use=",
    "-fprofile-sample-use=",
    "-fauto-profile=",
];
/// Beginnings of what may follow `-Xclang`.
const INNER: [&str; 10] = [
    "-O",
    "-f",
    "-m",
    "-disable-",
    "-target-",
    "-tune-cpu",
    "-no-",
    "-enable-",
    "-vectorize",
    "-triple",
];

/// A value that names no file: features, processors, numbers.
fn is_plain_value(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-+_.,=:".contains(c);
    !text.is_empty() && text.chars().all(plain)
}

/// An option of LLVM's own that changes code and nothing else.
fn is_llvm_option(option: &str) -> bool {
    let name = option
        .split('=')
        .next()
        .unwrap_or("")
        .trim_start_matches('-');
    let writes = ["file", "output", "plugin", "directory"];
    is_plain_value(option) && name != "load" && !writes.iter().any(|part| name.contains(part))
}

/// Whether a single flag only decides code generation.
fn is_code_flag(text: &str) -> bool {
    if READS.iter().any(|start| text.starts_with(start)) {
        return true;
    }
    if let Some(option) = text.strip_prefix("-mllvm=") {
        return is_llvm_option(option);
    }
    let kind = ["-O", "-f", "-m", "--target="];
    is_plain_value(text)
        && (text == "-pg" || kind.iter().any(|start| text.starts_with(start)))
        && !FILES.iter().any(|start| text.starts_with(start))
}

/// Whether `text` may follow `-Xclang`.
fn may_follow_xclang(text: &str) -> bool {
    let starts = |list: &[&str]| list.iter().any(|start| text.starts_with(start));
    let known = !text.starts_with('-') || starts(&INNER);
    is_plain_value(text) && known && !starts(&FILES) && !text.starts_with("-mlink")
}

/// The first of a unit's flags that does more than decide code generation.
fn first_refused(flags: &[String]) -> Option<&str> {
    let words: Vec<&str> = flags.iter().map(String::as_str).collect();
    let mut at = 0;
    // Whether the last word after `-Xclang` was `-mllvm`, whose value then follows in the same way.
    let mut inside = false;
    while let Some(&text) = words.get(at) {
        let next = words.get(at + 1).copied();
        let good = match (text, next) {
            ("-mllvm" | "-target" | "-Xclang", None) => false,
            ("-mllvm", Some(option)) => is_llvm_option(option),
            ("-target", Some(target)) => is_plain_value(target),
            ("-Xclang", Some(option)) if inside => is_llvm_option(option),
            ("-Xclang", Some(option)) => may_follow_xclang(option),
            _ => is_code_flag(text),
        };
        if !good {
            return Some(text);
        }
        if text == "-Xclang" {
            inside = !inside && next == Some("-mllvm");
        }
        at += if ["-mllvm", "-target", "-Xclang"].contains(&text) {
            2
        } else {
            1
        };
    }
    None
}

/// Names go into assembly and paths, addresses into arithmetic: refuses those that cannot be.
pub fn check(manifest: &Manifest) -> Result<(), ReplayError> {
    let refuse = |what: String| Err(ReplayError::Hostile(what));
    let (start, end) = manifest.image.range;
    if start >= end || end > TOP {
        return refuse(format!("the image lies at {start:#x}-{end:#x}"));
    }
    let hexadecimal = |id: &str| {
        id.len() == cere_format::abi::UNIT_ID_LENGTH && id.bytes().all(|b| b.is_ascii_hexdigit())
    };
    if let Some(unit) = manifest.units.iter().find(|u| !hexadecimal(&u.id)) {
        return refuse(format!("a unit is called {:?}", unit.id));
    }
    if manifest.units.is_empty() {
        return refuse("it holds no units".to_owned());
    }
    let plain = |name: &str| !name.is_empty() && !name.chars().any(char::is_control);
    let tls = manifest.image.tls.iter().flat_map(|t| &t.variables);
    let mpi = manifest.mpi.iter().flat_map(|mpi| &mpi.functions);
    let names = manifest
        .variables
        .iter()
        .map(|v| &v.name)
        .chain(manifest.functions.iter().map(|f| &f.name))
        .chain(manifest.labels.iter().map(|l| &l.function))
        .chain(tls.map(|v| &v.name))
        .chain(manifest.absent.iter().map(|a| &a.name))
        .chain(mpi.clone().map(|f| &f.name))
        .chain(&manifest.libraries)
        .chain(&manifest.library_directories);
    if let Some(name) = names.into_iter().find(|n| !plain(n)) {
        return refuse(format!("a symbol or library is called {name:?}"));
    }
    if mpi.count() > FUNCTIONS_MOST {
        return refuse("it calls more functions of MPI than a program is followed in".to_owned());
    }
    let captured = manifest.captured_code.iter().flatten();
    let printed = captured.flat_map(|f| [&f.name, &f.image]);
    if let Some(name) = printed
        .into_iter()
        .find(|n| n.chars().any(char::is_control))
    {
        return refuse(format!(
            "a captured function or its image is called {name:?}"
        ));
    }
    if let Some(name) = manifest.libraries.iter().find(|n| n.contains('/')) {
        return refuse(format!("a library is called {name:?}"));
    }
    let relative = |d: &&String| !d.starts_with('/');
    if let Some(directory) = manifest.library_directories.iter().find(relative) {
        return refuse(format!("libraries are looked for in {directory:?}"));
    }
    for unit in &manifest.units {
        if let Some(flag) = first_refused(&unit.codegen) {
            return refuse(format!(
                "{} was compiled with {flag:?}, which does more than decide code generation",
                unit.source
            ));
        }
    }
    if let Some(tls) = &manifest.image.tls {
        let align = tls.align.is_power_of_two() && tls.align <= 1 << 16;
        let offsets = tls.variables.iter().all(|v| v.offset <= tls.size);
        if !align || tls.size > THREAD_LOCAL || !offsets {
            return refuse(format!(
                "the thread-local block has {} bytes, alignment {}",
                tls.size, tls.align
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::first_refused;

    fn flags(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn flags_that_decide_code() {
        for good in [
            "-O2 -march=native -fPIC -ffp-contract=fast -mprefer-vector-width=512 -pg --target=x86_64-linux-gnu",
            "-mllvm -force-vector-width=4 -target x86_64-pc-linux-gnu -fprofile-use=/tmp/a.profdata",
            "-mllvm -enable-load-pre -Xclang -target-feature -Xclang +avx2 -Xclang -disable-O0-optnone",
            "-Xclang -mllvm -Xclang -slp-threshold=5 -fno-builtin-memcpy -fveclib=libmvec -fsanitize=address",
        ] {
            assert_eq!(first_refused(&flags(good)), None, "{good}");
        }
    }

    #[test]
    fn flags_that_do_more() {
        for bad in [
            "-fplugin=/tmp/x.so",
            "-fpass-plugin=x.so",
            "-Xclang -load -Xclang x.so",
            "-Xclang -fpass-plugin=x.so",
            "-Xclang -add-plugin",
            "-Xclang -emit-pch",
            "-Xclang -o -Xclang x",
            "-Xclang -mlink-bitcode-file",
            "-Xclang -dependency-file",
            "-mllvm -load=x.so",
            "-mllvm -info-output-file=x",
            "-Xclang -mllvm -Xclang -info-output-file=x",
            "-Wl,-z,execstack",
            "-B/tmp",
            "@x",
            "-o x",
            "-ox",
            "x.c",
            "-ftime-trace=x",
            "-include /etc/passwd",
            "--config=x",
            "-fsanitize-blacklist=/x",
        ] {
            assert!(first_refused(&flags(bad)).is_some(), "{bad}");
        }
    }
}

//! Flags that a replay cannot follow.

use crate::error::CompileError;

/// Flags that take the next word as their value.
pub(super) const WITH_VALUE: [&str; 5] = ["-mllvm", "-Xclang", "-target", "-Xassembler", "--param"];
/// A reason.
pub(super) const DECIDED: &str = "the front end has decided it";
const PREPROCESSED: &str = "the preprocessor has run";
const WRITES: &str = "the replay decides what the compiler reads and writes";
const LINKED: &str = "the captured program is linked, and a replay links in its own way";
const PLACED: &str = "the captured program's addresses decide how code reaches them";
const HOOKS: &str = "the captured program has no state for the functions that it would call";
const TARGET: &str = "the captured memory is that of its own target";
/// Flags that a replay cannot follow, with the reason.
const REFUSED: [(&str, &str); 27] = [
    ("-c", WRITES),
    ("-S", WRITES),
    ("-E", WRITES),
    ("-###", WRITES),
    ("-fsyntax-only", WRITES),
    ("-help", WRITES),
    ("-V", WRITES),
    ("-H", WRITES),
    ("-static", LINKED),
    ("-static-pie", LINKED),
    ("-shared", LINKED),
    ("-pie", LINKED),
    ("-no-pie", LINKED),
    ("-rdynamic", LINKED),
    ("-s", LINKED),
    ("-r", LINKED),
    ("-fpic", PLACED),
    ("-fpie", PLACED),
    ("-fPIC", PLACED),
    ("-fPIE", PLACED),
    ("-pg", HOOKS),
    ("-m16", TARGET),
    ("-m32", TARGET),
    ("-mx32", TARGET),
    ("-target", TARGET),
    ("-fcommon", DECIDED),
    ("-fno-common", DECIDED),
];
/// Beginnings of flags that a replay cannot follow, with the reason.
const REFUSED_STARTS: [(&str, &str); 58] = [
    ("-flto", "its objects have to be machine code"),
    ("-fsanitize", "sanitizers need the front end and a runtime"),
    ("-fprofile", "profiles are instrumented by the front end"),
    ("-fcoverage", "coverage is instrumented by the front end"),
    ("-fopenmp", "OpenMP is lowered by the front end"),
    ("-finstrument-functions", HOOKS),
    ("-fxray", HOOKS),
    ("-fno-pic", PLACED),
    ("-fno-pie", PLACED),
    ("-fno-PIC", PLACED),
    ("-fno-PIE", PLACED),
    ("-fwrapv", DECIDED),
    ("-fno-wrapv", DECIDED),
    ("-ftrapv", DECIDED),
    ("-fexceptions", DECIDED),
    ("-fno-exceptions", DECIDED),
    ("-frtti", DECIDED),
    ("-fno-rtti", DECIDED),
    ("-fthreadsafe-statics", DECIDED),
    ("-fno-threadsafe-statics", DECIDED),
    ("-fvisibility", DECIDED),
    ("-fshort-", DECIDED),
    ("-fpack-struct", DECIDED),
    ("-fsigned-char", DECIDED),
    ("-fno-signed-char", DECIDED),
    ("-funsigned-char", DECIDED),
    ("-fno-unsigned-char", DECIDED),
    ("-std=", DECIDED),
    ("--std=", DECIDED),
    ("-fplugin", "plugins of the front end see no IR"),
    ("-D", PREPROCESSED),
    ("-U", PREPROCESSED),
    ("-I", PREPROCESSED),
    ("-include", PREPROCESSED),
    ("-imacros", PREPROCESSED),
    ("-isystem", PREPROCESSED),
    ("-iquote", PREPROCESSED),
    ("-idirafter", PREPROCESSED),
    ("-nostdinc", PREPROCESSED),
    ("-l", "the libraries are the captured program's"),
    ("-L", "the libraries are the captured program's"),
    ("-static-lib", LINKED),
    ("-nostd", LINKED),
    ("-nostart", LINKED),
    ("-nodefault", LINKED),
    ("-fuse-ld", LINKED),
    ("-Wl,", LINKED),
    ("-Xlinker", LINKED),
    ("--target", TARGET),
    ("-emit", "a replay needs an object"),
    ("-x", "a replay compiles IR"),
    ("-M", WRITES),
    ("-o", WRITES),
    ("-save-temps", WRITES),
    ("--save-temps", WRITES),
    ("-dump", WRITES),
    ("-print", WRITES),
    ("--", WRITES),
];

/// Refuses flags that would have no effect or break the build of a replay.
pub fn check(flags: &[String]) -> Result<(), CompileError> {
    let refuse = |flag: &str, reason: &str| {
        Err(CompileError::Flag {
            flag: flag.to_owned(),
            reason: reason.to_owned(),
        })
    };
    let mut value = false;
    for flag in flags {
        if std::mem::replace(&mut value, WITH_VALUE.contains(&flag.as_str())) {
            continue;
        }
        if !flag.starts_with('-') || flag == "-" {
            return refuse(flag, "a flag starts with a dash");
        }
        let whole = REFUSED.iter().find(|(refused, _)| flag == refused);
        let begun = || {
            REFUSED_STARTS
                .iter()
                .find(|(start, _)| flag.starts_with(start))
        };
        let parameter = flag == "--param" || flag.starts_with("--param=");
        if let Some((_, reason)) = whole.or_else(begun).filter(|_| !parameter) {
            return refuse(flag, reason);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_that_change_nothing_are_refused() {
        for bad in [
            "-flto",
            "-DX=1",
            "x.c",
            "-fwrapv",
            "-o",
            "-static",
            "-fPIE",
            "-finstrument-functions",
            "--version",
            "-m32",
        ] {
            let error = check(&[bad.to_owned()]).unwrap_err().to_string();
            assert!(error.contains(bad), "{error}");
        }
        let good = "-O3 -mllvm -force-vector-width=2 -march=native -fslp-vectorize -mcmodel=large -g -Wall";
        let good: Vec<String> = good.split_whitespace().map(str::to_owned).collect();
        check(&good).unwrap();
    }
}

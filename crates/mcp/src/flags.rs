//! Flags that an agent may give: those that choose how code is made. None names a file or has the compiler load one.

use anyhow::Result;
use cere_catalogue::bail;

/// What flags that choose code begin with.
const CODE: [&str; 4] = ["-O", "-f", "-m", "-ffast-math"];
/// Those among them that read, load or write files, or change what a replay is made of.
const FILES: [&str; 16] = [
    "-fplugin",
    "-fpass-plugin",
    "-fprofile",
    "-fauto-profile",
    "-fmodule",
    "-fsanitize",
    "-fxray",
    "-finstrument",
    "-fcoverage",
    "-fdump",
    "-fsave",
    "-foptimization-record",
    "-fcs-profile",
    "-ftime",
    "-fmemory-profile",
    "-fthinlto",
];

/// Fails if one of `words` is no such flag.
pub fn check(words: &str) -> Result<()> {
    for word in words.split_whitespace() {
        let code = CODE.iter().any(|start| word.starts_with(start));
        let files = FILES.iter().any(|start| word.starts_with(start));
        // Options of LLVM itself load libraries and write files as well.
        let own = word.starts_with("-mllvm") || word.starts_with("-mlink");
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+,.:".contains(c);
        if !code || files || own || !word.chars().all(plain) {
            bail!(
                E5307,
                "{word}: agents may give flags that choose how code is made (-O, -f and -m), without names of files, quotation marks, \
                 plugins, profiles and -mllvm"
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_refused() {
        for good in [
            "-O3 -march=native",
            "-ffast-math -fno-unroll-loops",
            "-mprefer-vector-width=512",
            "",
        ] {
            check(good).expect(good);
        }
        for bad in [
            "-include /etc/passwd",
            "-fplugin=x.so",
            "-fpass-plugin=x.so",
            "-fprofile-use=x",
            "-mllvm -load=x.so",
            "-I/etc",
            "@file",
            "-O3 -Wl,-T,x",
            "x.c",
            "-ffile-prefix-map=/=/",
            "-O3 '-I x'",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}

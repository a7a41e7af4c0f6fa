//! The arguments that decide code generation: with them the unit's IR becomes the same machine code again. Arguments whose
//! effect the front end writes into the IR are not among them.

/// Prefixes of `-f` flags that do not affect the machine code made from IR.
const NOT_CODEGEN: &[&str] = &[
    "-fpass-plugin",
    "-fplugin",
    "-fdiagnostics",
    "-fno-diagnostics",
    "-fcolor",
    "-fno-color",
    "-fansi-escape",
    "-fsyntax-only",
    "-fdebug",
    "-fno-debug",
    "-ffile-prefix-map",
    "-ffile-compilation-dir",
    "-fcoverage-prefix-map",
    "-fcoverage-compilation-dir",
    "-fmacro-prefix-map",
    "-fmacro-backtrace-limit",
    "-fmodule",
    "-fno-module",
    "-fuse-ld",
    "-flto",
    "-fno-lto",
    "-fvisibility",
    "-fmessage-length",
    "-ferror-limit",
    "-fpermissive",
    "-fshow",
    "-fno-show",
    "-fcaret",
    "-ftemplate",
    "-fconstexpr",
    "-finput-charset",
    "-fexec-charset",
    "-fextended",
    "-fworking-directory",
    "-fpch",
    "-fsigned-char",
    "-funsigned-char",
    "-fno-rtti",
    "-frtti",
    "-fpreprocessed",
    "-fdirectives-only",
    "-fms-",
    "-fgnu",
    "-fno-gnu",
    "-fsave-optimization",
    "-fsanitize-ignorelist",
    "-ftime-",
    "-fproc-stat",
    "-frandom-seed",
];

/// The `-f` flags of a Fortran compile that clang understands for IR.
const FORTRAN_CODEGEN: &[&str] = &[
    "-fPIC",
    "-fpic",
    "-fPIE",
    "-fpie",
    "-fno-PIC",
    "-fno-pic",
    "-fno-PIE",
    "-fno-pie",
    "-ffast-math",
    "-fno-fast-math",
    "-ffp-contract",
    "-funroll-loops",
    "-fno-unroll-loops",
    "-fvectorize",
    "-fno-vectorize",
    "-fslp-vectorize",
    "-fno-slp-vectorize",
    "-floop-interchange",
    "-fno-loop-interchange",
    "-fomit-frame-pointer",
    "-fno-omit-frame-pointer",
    "-fno-signed-zeros",
    "-fassociative-math",
    "-freciprocal-math",
    "-ffinite-math-only",
    "-fveclib",
];

/// Options with a separate value that decide code generation.
pub fn decides_with_value(argument: &str, fortran: bool) -> bool {
    matches!(argument, "-mllvm" | "-target") || argument == "-Xclang" && !fortran
}

/// Whether `argument` decides code generation.
pub fn decides(argument: &str, fortran: bool) -> bool {
    if argument.starts_with("-O") || argument.starts_with("--target=") || argument == "-pg" {
        return true;
    }
    if argument.starts_with("-m") {
        return !fortran || !argument.starts_with("-module-dir");
    }
    if !argument.starts_with("-f") {
        return false;
    }
    if fortran {
        return FORTRAN_CODEGEN
            .iter()
            .any(|flag| argument == *flag || argument.starts_with(&format!("{flag}=")));
    }
    !NOT_CODEGEN.iter().any(|start| argument.starts_with(start))
}

/// Whether `argument`, which starts with `-g`, asks for debug information, asks for none, or says nothing about it.
pub fn asks_debug(argument: &str) -> Option<bool> {
    let name = argument.strip_prefix("-g")?;
    match name {
        "0" | "gdb0" => Some(false),
        ""
        | "1"
        | "2"
        | "3"
        | "line-tables-only"
        | "line-directives-only"
        | "mlt"
        | "full"
        | "used" => Some(true),
        _ => {
            let kind = ["dwarf", "gdb", "lldb", "sce", "stabs", "codeview", "dbx"]
                .iter()
                .any(|start| name.starts_with(start));
            kind.then_some(true)
        }
    }
}

/// Whether `argument` asks for something that the optimiser does by the location in the source.
pub fn tracks_locations(argument: &str) -> bool {
    [
        "--coverage",
        "-coverage",
        "-fprofile-arcs",
        "-ftest-coverage",
        "-fprofile-sample-use",
        "-fauto-profile",
        "-Rpass",
        "-fsave-optimization-record",
    ]
    .iter()
    .any(|start| argument.starts_with(start))
}

/// Whether `argument` asks for files beside the object, which are named after it.
pub fn writes_beside(argument: &str) -> bool {
    [
        "--coverage",
        "-coverage",
        "-fprofile-arcs",
        "-ftest-coverage",
        "-gsplit-dwarf",
        "-save-temps",
        "--save-temps",
        "-ftime-trace",
        "-fsave-optimization-record",
        "-fstack-usage",
    ]
    .iter()
    .any(|start| argument.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_flags() {
        for (flag, asks) in [
            ("-g", Some(true)),
            ("-ggdb3", Some(true)),
            ("-gdwarf-4", Some(true)),
            ("-g0", Some(false)),
            ("-gz", None),
            ("-gno-column-info", None),
            ("-gsplit-dwarf", None),
            ("-gcc-toolchain", None),
        ] {
            assert_eq!(asks_debug(flag), asks, "{flag}");
        }
    }

    #[test]
    fn code_flags() {
        for flag in [
            "-O2",
            "-march=native",
            "-fPIC",
            "-fno-builtin",
            "-ffast-math",
        ] {
            assert!(decides(flag, false), "{flag}");
        }
        for flag in ["-Wall", "-Iinc", "-fvisibility=hidden", "-fno-rtti", "-MMD"] {
            assert!(!decides(flag, false), "{flag}");
        }
        assert!(decides("-ffast-math", true) && !decides("-fdefault-real-8", true));
    }
}

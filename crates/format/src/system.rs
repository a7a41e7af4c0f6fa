//! The shared libraries that a replay loads fresh from the machine that it runs on. All others are the program's: captured,
//! restored and compared, whether they were instrumented or not.

use std::path::Path;

/// Libraries whose state belongs to the process: libc's parts, the loader, the compilers' runtimes, OpenMP's.
const FRESH: [&str; 21] = [
    "ld-linux-x86-64",
    "libc",
    "libm",
    "libmvec",
    "libpthread",
    "libdl",
    "librt",
    "libutil",
    "libanl",
    "libresolv",
    "libthread_db",
    "libgcc_s",
    "libstdc++",
    "libc++",
    "libc++abi",
    "libunwind",
    "libatomic",
    "libomp",
    "libomp5",
    "libiomp5",
    "libgomp",
];

/// Symbols of the C++ library's standard streams; whether they are read from, which moves their parts by a word.
pub const STREAMS: [(&str, bool); 8] = [
    ("_ZSt4cout", false),
    ("_ZSt4cerr", false),
    ("_ZSt4clog", false),
    ("_ZSt3cin", true),
    ("_ZSt5wcout", false),
    ("_ZSt5wcerr", false),
    ("_ZSt5wclog", false),
    ("_ZSt4wcin", true),
];
/// Whether a replay takes the library of this file fresh: `libc.so.6`, `libstdc++.so.6.0.30`, `libc-2.28.so`.
pub fn taken_fresh(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let Some((stem, _)) = name.split_once(".so") else {
        return false;
    };
    // glibc's files had its version in their names up to 2.33.
    let versioned = |stem: &str| {
        let (name, version) = stem.rsplit_once('-')?;
        let digits = version.starts_with("2.") && version[2..].parse::<u32>().is_ok();
        digits.then(|| {
            if name == "ld" {
                "ld-linux-x86-64"
            } else {
                name
            }
            .to_owned()
        })
    };
    let stem = versioned(stem).unwrap_or_else(|| stem.to_owned());
    FRESH.contains(&stem.as_str())
}

/// Hands the functions that allocate and free, and that captures and replays put in the C library's place, to the macro `$use`.
#[macro_export]
macro_rules! malloc_family {
    ($use:ident) => {
        $use! { malloc calloc free realloc reallocarray memalign aligned_alloc posix_memalign valloc pvalloc
            malloc_usable_size }
    };
}

#[cfg(test)]
mod tests {
    use super::taken_fresh;
    use std::path::Path;

    #[test]
    fn names_of_libraries() {
        let fresh = |name: &str| taken_fresh(&Path::new("/usr/lib").join(name));
        for name in [
            "libc.so.6",
            "libstdc++.so.6.0.30",
            "libc-2.28.so",
            "ld-2.28.so",
            "ld-linux-x86-64.so.2",
            "libomp.so.5",
            "libgomp.so.1.0.0",
        ] {
            assert!(fresh(name), "{name}");
        }
        for name in [
            "libacc.so",
            "libcurl.so.4",
            "libcxx.so",
            "libm",
            "libmine-2.28.so",
            "libc-client.so.2007e",
            "libgfortran.so.5",
        ] {
            assert!(!fresh(name), "{name}");
        }
    }
}

//! Programs whose code no compiler of a build makes: they interpret it, or make it while they run.

use std::path::Path;

/// How a program runs what it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// It makes machine code while it runs.
    Makes,
    /// It interprets.
    Interprets,
}

/// Beginnings of names of such programs, which a version may follow.
const KNOWN: [(&str, &str, How); 17] = [
    ("java", "Java", How::Makes),
    ("julia", "Julia", How::Makes),
    ("luajit", "LuaJIT", How::Makes),
    ("nodejs", "JavaScript", How::Makes),
    ("node", "JavaScript", How::Makes),
    ("bun", "JavaScript", How::Makes),
    ("deno", "JavaScript", How::Makes),
    ("dotnet", ".NET", How::Makes),
    ("mono", ".NET", How::Makes),
    ("pypy", "Python", How::Makes),
    ("python", "Python", How::Interprets),
    ("perl", "Perl", How::Interprets),
    ("ruby", "Ruby", How::Interprets),
    ("lua", "Lua", How::Interprets),
    ("php", "PHP", How::Interprets),
    ("Rscript", "R", How::Interprets),
    ("octave", "Octave", How::Interprets),
];

/// What to know of the program that a command names, if it is one of these.
pub fn advice(program: &str) -> Option<String> {
    let name = Path::new(program).file_name()?.to_str()?;
    let version = |rest: &str| {
        rest.bytes()
            .all(|b| b.is_ascii_digit() || b".-".contains(&b))
    };
    let (_, language, how) = KNOWN
        .iter()
        .find(|(known, ..)| name.strip_prefix(known).is_some_and(version))?;
    let code = match how {
        How::Makes => format!(
            "code in {language} is made while it runs, which no compiler of a build sees, so it has no regions"
        ),
        How::Interprets => format!("code in {language} is interpreted, so it has no regions"),
    };
    Some(format!(
        "{code}. What it loads can have some: build its extensions or libraries (in C, C++, Rust, Fortran, Cython) with `cere instrument`, and give this command the same --store"
    ))
}

#[cfg(test)]
mod tests {
    use super::advice;

    #[test]
    fn by_name() {
        for name in ["java", "/usr/bin/python3.11", "luajit-2.1.0", "julia"] {
            assert!(advice(name).is_some(), "{name}");
        }
        for name in ["javac", "pythonic", "./app", "nodes"] {
            assert!(advice(name).is_none(), "{name}");
        }
        assert!(advice("java").unwrap().contains("made while it runs"));
    }
}

//! A wrapper behaves as the compiler behind it: the same command lines in two directories, one with each.

use crate::common::{built, text, write};
use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

const FILES: &[(&str, &str)] = &[
    (
        "main.c",
        "#include \"inc/part.h\"\n#include <stdio.h>\nint main(void) { printf(\"%d\\n\", part(10)); return 0; }\n",
    ),
    (
        "part.c",
        "#include \"inc/part.h\"\nint part(int n) { int s = 0; for (int i = 0; i < n; i++) s += i * i; return s; }\n",
    ),
    ("inc/part.h", "int part(int n);\n"),
    ("conftest.c", "int main(void) { return 0; }\n"),
    ("warn.c", "int f(int unused) { int x; return 0; }\n"),
    ("bad.c", "int f(void) { return nothing; }\n#error stop\n"),
    ("bad2.c", "int g( { }\n"),
    ("missing.c", "int h(void); int main(void) { return h(); }\n"),
    ("data.s", ".globl answer\n.data\nanswer: .long 42\n"),
    (
        "data.S",
        "#define VALUE 42\n.globl answer\n.data\nanswer: .long VALUE\n",
    ),
    (
        "answer.c",
        "extern int answer;\nint main(void) { return answer; }\n",
    ),
    (
        "twice.cpp",
        "#include <vector>\nint twice(const std::vector<int> &v) { int s = 0; for (int x : v) s += 2 * x; return s; }\nint main() { return twice({}); }\n",
    ),
    (
        "sum.f90",
        "program p\n integer :: i, s\n s = 0\n do i = 1, 10\n  s = s + i\n end do\n print *, s\nend program\n",
    ),
    (
        "flags.rsp",
        "-O2 -I inc \"-DNAME=a b\" -c part.c\n-o from_response.o\n",
    ),
    (
        "stdin",
        "int twelve(void) { int s = 0; for (int i = 0; i < 12; i++) s++; return s; }\n",
    ),
];

/// The wrapper, the plain compiler, the command line; `|` separates steps, `<` at the end of a step feeds `stdin`.
const LINES: &[(&str, &str, &str)] = &[
    ("cc", "clang-22", "--version"),
    ("cc", "clang-22", "-v"),
    ("gcc", "clang-22", "-dumpmachine"),
    ("gcc", "clang-22", "-dumpversion"),
    ("cc", "clang-22", "-print-search-dirs"),
    ("cc", "clang-22", "-print-prog-name=ld"),
    ("cc", "clang-22", "-print-file-name=libc.so"),
    ("cc", "clang-22", ""),
    ("cc", "clang-22", "-qversion"),
    ("cc", "clang-22", "-c nosuch.c"),
    ("cc", "clang-22", "-E part.c"),
    ("cc", "clang-22", "-E -dM -x c /dev/null"),
    ("cc", "clang-22", "-M part.c"),
    ("cc", "clang-22", "-MM part.c"),
    (
        "cc",
        "clang-22",
        "-c conftest.c | -o conftest -g -O2 conftest.c",
    ),
    ("cc", "clang-22", "conftest.c"),
    ("cc", "clang-22", "-fsyntax-only -Wall -Wextra warn.c"),
    ("cc", "clang-22", "-Wall -Wextra -c warn.c"),
    ("cc", "clang-22", "-Wall -Wextra -Werror -c warn.c"),
    ("cc", "clang-22", "-c bad.c"),
    ("cc", "clang-22", "-c part.c bad.c bad2.c main.c"),
    ("cc", "clang-22", "missing.c -o missing"),
    ("cc", "clang-22", "-c part.c main.c"),
    ("cc", "clang-22", "-c part.c main.c -o both.o"),
    ("cc", "clang-22", "-S part.c | -c part.s"),
    (
        "cc",
        "clang-22",
        "-O2 -emit-llvm -c part.c -o part.bc | -c part.bc -o part.o",
    ),
    ("cc", "clang-22", "-x c -c - -o stdin.o <"),
    ("cc", "clang-22", "-xc - -c <"),
    ("cc", "clang-22", "@flags.rsp"),
    (
        "cc",
        "clang-22",
        "-MMD -MP -MF deps/part.d -MT out/part.o -c part.c -o part.o",
    ),
    ("cc", "clang-22", "-MD -c part.c -o part.o"),
    ("cc", "clang-22", "-MMD part.c main.c -o prog"),
    ("cc", "clang-22", "-MMD part.c main.c"),
    ("cc", "clang-22", "-Wp,-MMD,part.dep -c part.c"),
    (
        "cc",
        "clang-22",
        "-O2 -pipe part.c main.c -o prog -lm -Wl,-O1",
    ),
    (
        "cc",
        "clang-22",
        "-O2 part.c -include inc/part.h main.c -o prog -fno-unroll-loops -std=gnu11",
    ),
    (
        "cc",
        "clang-22",
        "-c part.c | -c main.c | -o prog main.o part.o",
    ),
    ("cc", "clang-22", "answer.c data.s -o prog"),
    ("cc", "clang-22", "answer.c data.S -o prog"),
    (
        "cc",
        "clang-22",
        "-x assembler-with-cpp -c data.s -o data.o",
    ),
    (
        "cc",
        "clang-22",
        "-shared -fPIC part.c -o libpart.so -Wl,-soname,libpart.so.1 | main.c -L. -lpart -Wl,-rpath,. -o prog",
    ),
    ("cc", "clang-22", "-static main.c part.c -o prog"),
    ("cc", "clang-22", "-r main.c part.c -o whole.o"),
    ("cc", "clang-22", "-x c-header inc/part.h -o part.h.pch"),
    ("cc", "clang-22", "-fno-such-thing -c part.c"),
    ("cc", "clang-22", "-c part.o"),
    ("cc", "clang-22", "-o"),
    ("c++", "clang++-22", "-O2 -std=c++17 twice.cpp -o prog"),
    ("g++", "clang++-22", "-c part.c -o part.o"),
    ("clang", "clang-22", "-c twice.cpp"),
    ("gfortran", "flang-22", "-O2 sum.f90 -o prog"),
    ("flang", "flang-22", "-c sum.f90"),
    ("flang", "flang-22", "--version"),
];

/// What one command line did: status, stdout, stderr, files with their text where it is text of interest.
#[derive(Debug, PartialEq)]
struct Effect {
    status: Vec<Option<i32>>,
    stdout: String,
    stderr: String,
    files: BTreeMap<String, String>,
}

fn effect(directory: &Path, compiler: &Path, line: &str, store: Option<&Path>) -> Effect {
    write(directory, FILES);
    std::fs::create_dir_all(directory.join("deps")).expect("a directory");
    let mut effect = Effect {
        status: Vec::new(),
        stdout: String::new(),
        stderr: String::new(),
        files: BTreeMap::new(),
    };
    for step in line.split('|') {
        let words: Vec<&str> = step.split_whitespace().filter(|w| *w != "<").collect();
        let mut command = Command::new(compiler);
        command.args(words).current_dir(directory);
        if let Some(store) = store {
            command.env("CERE_STORE", store);
        }
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("the compiler runs");
        let mut pipe = child.stdin.take().expect("a pipe");
        if step.contains('<') {
            let source = std::fs::read(directory.join("stdin")).expect("stdin");
            pipe.write_all(&source).expect("a reader");
        }
        drop(pipe);
        let output = child.wait_with_output().expect("the compiler ends");
        effect.status.push(output.status.code());
        effect.stdout += &text(&output.stdout);
        effect.stderr += &text(&output.stderr);
    }
    collect(directory, directory, &mut effect.files);
    if let Ok(output) = Command::new(directory.join("prog"))
        .current_dir(directory)
        .output()
    {
        effect.stdout += &format!("prog: {} {}", output.status, text(&output.stdout));
    }
    effect
}

fn collect(root: &Path, directory: &Path, files: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(root, &path, files);
            continue;
        }
        let name = path
            .strip_prefix(root)
            .expect("below")
            .display()
            .to_string();
        let shown = ["d", "dep", "i"]
            .iter()
            .any(|e| path.extension().is_some_and(|x| x == *e));
        let content = if shown {
            text(&std::fs::read(&path).expect("a file"))
        } else {
            String::new()
        };
        files.insert(name, content);
    }
}

/// Names of temporary objects differ from run to run, plain or wrapped.
fn comparable(text: &str) -> String {
    let line = |line: &str| {
        let words: Vec<&str> = line
            .split(' ')
            .map(|word| {
                let temporary = word.contains("/tmp/") || word.contains("/wrap");
                if temporary { "TEMPORARY" } else { word }
            })
            .collect();
        words.join(" ")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn plain(name: &str) -> std::path::PathBuf {
    std::env::split_paths(&std::env::var_os("PATH").expect("PATH"))
        .map(|d| d.join(name))
        .find(|p| p.is_file())
        .unwrap_or_else(|| panic!("{name} is not in PATH"))
}

#[test]
fn as_the_plain_compiler() {
    let store = tempfile::tempdir().expect("a directory");
    let bin = store.path().join("bin");
    std::fs::create_dir(&bin).expect("a directory");
    for name in ["cc", "gcc", "c++", "g++", "clang", "gfortran", "flang"] {
        symlink(built(), bin.join(name)).expect("a link");
    }
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let chunks = LINES.chunks(LINES.len().div_ceil(4));
        let threads: Vec<_> = chunks
            .map(|chunk| {
                let (store, bin) = (store.path(), &bin);
                scope.spawn(move || {
                    chunk
                        .iter()
                        .filter_map(|line| difference(line, store, bin))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        let join = |t: std::thread::ScopedJoinHandle<'_, Vec<String>>| t.join().expect("no panic");
        threads.into_iter().flat_map(join).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

fn difference(
    (wrapper, compiler, line): &(&str, &str, &str),
    store: &Path,
    bin: &Path,
) -> Option<String> {
    let (a, b) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    let mut expected = effect(a.path(), &plain(compiler), line, None);
    let mut found = effect(b.path(), &bin.join(wrapper), line, Some(store));
    for effect in [&mut expected, &mut found] {
        effect.stderr = comparable(&effect.stderr);
    }
    (expected != found)
        .then(|| format!("{wrapper} {line}\nexpected {expected:#?}\nfound {found:#?}"))
}

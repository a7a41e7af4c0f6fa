//! Lines of source in the place of flags, on programs that are built, captured and compiled again. What is advised is written into the
//! source here, and compiled by the plain compiler.

use cere_format::store::Store;
use cere_measure::edits::captured::Captured;
use cere_measure::{Goal, Lab, Replays, Settings};
use cere_replay::code;
use cere_system::events::Events;
use cere_tune::Variant;
use cere_tune::tuning::{Advice, SourceLine, advise};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// The command; the library finds the other parts beside it.
static CERE: LazyLock<PathBuf> = LazyLock::new(|| {
    let command = cere_testing::built::command();
    // SAFETY: nothing here reads the environment by the C library's functions at this time: each test begins with this.
    unsafe { std::env::set_var("CERE_HOME", command.parent().expect("a directory")) };
    command
});

fn settings() -> Settings {
    Settings {
        flags: Vec::new(),
        passes: None,
        repetitions: Default::default(),
        warmup: None,
        operands: Vec::new(),
        compare: true,
        team: Default::default(),
        beside: None,
        sandbox: cere_sandbox::Sandbox::none(),
        tolerance: Default::default(),
        timeout: None,
        energy: None,
        cross: None,
    }
}

fn run(directory: &Path, words: &str) {
    let mut words = words.split(' ');
    let program = match words.next() {
        Some("cere") => CERE.as_os_str().to_owned(),
        other => other.expect("a program").into(),
    };
    let mut command = Command::new(program);
    command.args(words).current_dir(directory);
    let output = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
}

/// A program, its region captured.
struct Program {
    directory: tempfile::TempDir,
    file: &'static str,
    compile: &'static str,
    region: &'static str,
}

impl Program {
    fn new(file: &'static str, text: &str, compile: &'static str, region: &'static str) -> Self {
        LazyLock::force(&CERE);
        let directory = tempfile::tempdir().expect("a directory");
        let at = directory.path();
        std::fs::write(at.join(file), text).expect("written");
        run(
            at,
            &format!("cere instrument -- {compile} {file} -o program"),
        );
        run(at, &format!("cere capture {region} -- ./program"));
        Self {
            directory,
            file,
            compile,
            region,
        }
    }

    fn advice(&self, flags: &str) -> Advice {
        self.advice_of(0, flags)
    }

    /// Of the region with this number.
    fn advice_of(&self, place: usize, flags: &str) -> Advice {
        let store = Store::new(self.directory.path().join(".cere"));
        let events = Events::ignored();
        let replays = Replays::open(&store, &events).expect("replays");
        let captured = Captured::find(&replays, &[self.region.to_owned()]).expect("codelets");
        let lab = Lab {
            store: &store,
            replays: &replays,
            settings: settings(),
            rounds: true,
            goal: Goal::Time,
        };
        let variant = Variant {
            flags: flags.split(' ').map(str::to_owned).collect(),
            passes: None,
        };
        let target = captured.regions().values().nth(place).expect("a region");
        advise(&lab, target, &variant, &|| false)
    }

    /// The machine code of `function`, compiled without CERE from `text`.
    fn code(&self, text: &str, flags: &str, function: &str) -> String {
        let place = tempfile::tempdir().expect("a directory");
        std::fs::write(place.path().join(self.file), text).expect("written");
        let line = format!("{} -c {} -o plain.o {flags}", self.compile, self.file);
        run(place.path(), line.trim_end());
        let object = place.path().join("plain.o");
        let found = code::of_function(&object, function).expect("an object");
        found.expect("the function")
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.directory.path().join(self.file)).expect("the source")
    }

    /// The lines that are advised in the place of `flags`, which make `function` the same in a plain compile.
    fn advised(&self, flags: &str, function: &str) -> Vec<SourceLine> {
        let (lines, replaces) = match self.advice(flags) {
            Advice::Lines {
                lines,
                replaces,
                same_in_build: true,
            } => (lines, replaces.join(" ")),
            other => panic!("{flags}: {other:?}"),
        };
        assert_eq!(replaces, flags);
        let text = self.text();
        let with_flags = self.code(&text, flags, function);
        assert_ne!(with_flags, self.code(&text, "", function), "{flags}");
        let edited = written(&text, &lines);
        assert_eq!(self.code(&edited, "", function), with_flags, "{edited}");
        lines
    }

    /// Why nothing is advised.
    fn none(&self, flags: &str) -> String {
        match self.advice(flags) {
            Advice::None(why) => why,
            other => panic!("{flags}: {other:?}"),
        }
    }
}

/// `text` with `lines`, of which each source line has one at most.
fn written(text: &str, lines: &[SourceLine]) -> String {
    let mut all: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut lines: Vec<&SourceLine> = lines.iter().collect();
    lines.sort_by_key(|line| std::cmp::Reverse((line.line, line.column)));
    for line in lines {
        let place = line.line as usize - 1;
        match line.column {
            None => all.insert(place, line.text.clone()),
            Some(column) => all[place].insert_str(column as usize - 1, &format!("{} ", line.text)),
        }
    }
    all.join("\n") + "\n"
}

/// One loop around another one, in a function of its own.
const NEST: &str = r#"
#include <stdio.h>
#define N 500
static double a[N], b[N], c[N];
__attribute__((noinline)) void work(double *restrict a, double *restrict b, double *restrict c, int n) {
    for (int t = 0; t < 3; t++)
        for (int i = 1; i < n; i++)
            a[i] = a[i] * 0.5 + b[i] * c[i];
}
int main(void) {
    for (int i = 0; i < N; i++) { b[i] = i % 7; c[i] = 1 + i % 3; }
    for (int r = 0; r < 300; r++) work(a, b, c, N);
    printf("%.15g\n", a[N / 2]);
}
"#;

#[test]
fn pragmas_and_attributes_of_loops() {
    let program = Program::new("k.c", NEST, "clang-22 -O2 -mavx2 -mfma", "work*");
    for (flags, text) in [
        (
            "-fno-unroll-loops",
            "#pragma clang loop unroll(disable) interleave(disable)",
        ),
        ("-fno-vectorize", "#pragma clang loop vectorize(disable)"),
        (
            "-mllvm -force-vector-interleave=2",
            "#pragma clang loop interleave_count(2)",
        ),
        (
            "-mllvm -force-vector-width=2",
            "#pragma clang loop vectorize_width(2)",
        ),
        (
            "-mprefer-vector-width=128",
            "#pragma clang loop vectorize_width(2)",
        ),
        ("-falign-loops=64", "[[clang::code_align(64)]]"),
    ] {
        let lines = program.advised(flags, "work");
        let inner = SourceLine {
            file: "k.c".into(),
            line: 7,
            column: None,
            text: text.to_owned(),
        };
        assert!(lines.contains(&inner), "{flags}: {lines:?}");
    }
    assert_eq!(program.text(), NEST);
}

#[test]
fn what_no_line_gives_is_not_advised() {
    let program = Program::new("k.c", NEST, "clang-22 -O2 -mavx2 -mfma", "work*");
    let why = program.none("-mllvm -misched=ilpmax");
    assert!(why.contains("no line is known"), "{why}");
    // Of the loop around it, too.
    let why = program.none("-mllvm -unroll-count=2");
    assert!(why.contains("tries gave the same code"), "{why}");
    // It stays a flag.
    match program.advice("-mllvm -unroll-count=2 -fno-vectorize") {
        Advice::Lines { replaces, .. } => assert_eq!(replaces, ["-fno-vectorize"]),
        other => panic!("{other:?}"),
    }
    let source = program.directory.path().join("k.c");
    std::fs::write(&source, format!("{NEST}\n// later\n")).expect("written");
    let why = program.none("-fno-vectorize");
    assert!(why.ends_with("k.c changed since the build"), "{why}");
    std::fs::remove_file(&source).expect("removed");
    let why = program.none("-fno-vectorize");
    assert!(why.ends_with("k.c is not there any more"), "{why}");
}

#[test]
fn loops_of_macros() {
    let each = NEST.replace("for (int i = 1; i < n; i++)\n", "EACH(i, n)\n");
    let text = each.replace(
        "#define N 500",
        "#define N 500\n#define EACH(i, n) for (int i = 1; i < n; i++)",
    );
    let program = Program::new("k.c", &text, "clang-22 -O2", "work*");
    let why = program.none("-fno-vectorize");
    assert!(why.contains("tries gave the same code"), "{why}");
    // The region's own loop.
    let text = text.replace("    for (int t = 0; t < 3; t++)\n", "");
    let program = Program::new("k.c", &text, "clang-22 -O2", "work*");
    let lines = program.advised("-fno-vectorize", "work");
    assert_eq!((lines[0].line, lines[0].column), (7, None), "{lines:?}");
    let hidden = text.replace(
        "#define EACH(i, n) for (int i = 1; i < n; i++)",
        "#define EACH(i, n) if (n > 0) for (int i = 1; i < n; i++)",
    );
    let program = Program::new("k.c", &hidden, "clang-22 -O2", "work*");
    let why = program.none("-fno-vectorize");
    assert!(why.contains("tries gave the same code"), "{why}");
}

#[test]
fn templates() {
    let text = NEST
        .replace(
            "__attribute__((noinline)) void work(double *restrict a, double *restrict b, double *restrict c",
            "template <class T> __attribute__((noinline)) void work(T *__restrict a, T *__restrict b, T *__restrict c",
        );
    let program = Program::new("k.cpp", &text, "clang++-22 -O2", "work*");
    let lines = program.advised("-fno-vectorize", "_Z4workIdEvPT_S1_S1_i");
    assert_eq!(lines[0].line, 7, "{lines:?}");
}

#[test]
fn two_loops_of_a_line() {
    let line = "    for (int i = 1; i < n; i++) a[i] = a[i] * 0.5 + b[i]; for (int i = 1; i < n; i++) b[i] = a[i] * c[i];\n";
    let from = NEST.find("    for (int t").expect("the loops");
    let to = NEST.find("}\nint main").expect("their end");
    let text = [&NEST[..from], line, &NEST[to..]].concat();
    let program = Program::new("k.c", &text, "clang-22 -O2", "work*");
    let mut all = Vec::new();
    for (place, column) in [None, Some(59)].into_iter().enumerate() {
        match program.advice_of(place, "-fno-vectorize") {
            Advice::Lines {
                lines,
                same_in_build: false,
                ..
            } => {
                assert_eq!((lines[0].line, lines[0].column), (6, column), "{lines:?}");
                all.extend(lines);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(all[1].text, "_Pragma(\"clang loop vectorize(disable)\")");
    let with_flags = program.code(&text, "-fno-vectorize", "work");
    let edited = written(&text, &all);
    assert_eq!(program.code(&edited, "", "work"), with_flags, "{edited}");
}

#[test]
fn directives_of_fortran() {
    let text = "
module sizes
  integer, parameter :: many = 500
end module
subroutine work(a, b, c, n)
  integer :: n, i, t
  real(8) :: a(n), b(n), c(n)
  do t = 1, 3
    do i = 1, n
      a(i) = a(i) * 0.5d0 + b(i) * c(i)
    end do
  end do
end subroutine
program main
  use sizes
  integer :: r
  real(8) :: a(many), b(many), c(many)
  a = 0
  b = 1.5d0
  c = 2
  do r = 1, 300
    call work(a, b, c, many)
  end do
  print *, a(250)
end program
";
    let program = Program::new("k.f90", text, "flang-22 -O2", "work*");
    let module = program.directory.path().join("sizes.mod");
    let written_at = |file: &Path| file.metadata().and_then(|m| m.modified()).expect("a file");
    let built = written_at(&module);
    let lines = program.advised("-fno-vectorize", "work_");
    let all: Vec<(u32, &str)> = lines.iter().map(|l| (l.line, &*l.text)).collect();
    assert_eq!(all, [(9, "!DIR$ NOVECTOR")]);
    // No file of the build is written again.
    assert_eq!(written_at(&module), built);
}

#[test]
fn functions_without_a_length_are_not_compared() {
    let place = tempfile::tempdir().expect("a directory");
    let of = |text: &str| {
        let [source, object] = ["f.s", "f.o"].map(|name| place.path().join(name));
        std::fs::write(&source, text).expect("written");
        let mut assemble = Command::new("clang-22");
        assemble.args(["-c", "-o"]).args([&object, &source]);
        assert!(assemble.status().expect("clang-22").success());
        code::of_function(&object, "f").expect("an object")
    };
    let nothing_said = of(".globl f\nf:\n nop\n ret\n");
    assert_eq!(nothing_said, None);
    let [nop, other] =
        ["nop", "int3"].map(|i| of(&format!(".globl f\nf:\n {i}\n ret\n.size f, .-f\n")));
    assert!(nop.is_some() && nop != other);
}

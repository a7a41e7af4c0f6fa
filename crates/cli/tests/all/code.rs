//! The kept IR and the recorded code generation flags make the object's machine code again.

use crate::common::{built, text, write};
use object::{Object, ObjectSection, SectionKind};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

const C: &str = "#include <math.h>
double dot(const double *a, const double *b, int n) { double s = 0; for (int i = 0; i < n; i++) s += a[i] * b[i]; return s; }
float poly(float *x, int n) { float s = 0; for (int i = 0; i < n; i++) s += sqrtf(x[i]) / x[i] + sinf(x[i]); return s; }
int collatz(unsigned n) { int c = 0; while (n != 1) { n = n & 1 ? 3 * n + 1 : n / 2; c++; } return c; }
void zero(int *p, int n) { for (int i = 0; i < n; i++) p[i] = 0; }
static int table[100];
int sum(void) { int s = 0; for (int i = 0; i < 100; i++) s += table[i]++; return s; }
";
const CXX: &str = "#include <string>
#include <stdexcept>
#include <vector>
int use(int);
int f(std::vector<int> &v) { int s = 0; for (int x : v) { std::string q(x, 'a'); try { s += use(q.size()); } catch (std::exception &) { s--; } } return s; }
int g(std::vector<std::string> &v) { int s = 0; for (auto &x : v) { if (x.empty()) throw std::runtime_error(\"e\"); s += x.size(); } return s; }
";
const FORTRAN: &str = "subroutine daxpy(n, a, x, y)
  integer :: n, i
  double precision :: a, x(:), y(:)
  do i = 1, n
    y(i) = y(i) + a * x(i)
  end do
end subroutine
complex function cdot(n, x, y)
  integer :: n, i
  complex :: x(n), y(n)
  cdot = (0.0, 0.0)
  do i = 1, n
    cdot = cdot + conjg(x(i)) * y(i)
    if (real(cdot) > 1e30) exit
  end do
end function
";

const COMMON: &[&str] = &[
    "",
    "-O0",
    "-O1",
    "-O2",
    "-O3",
    "-O2 -g",
    "-O3 -march=native",
    "-O2 -fPIC",
    "-O2 -fno-pie",
    "-O3 -ffast-math",
    "-Os",
    "-O3 -fno-vectorize -funroll-loops",
    "-O2 -fno-omit-frame-pointer",
    "-O2 -mfma -mavx2 -ffp-contract=fast",
    "-O3 -fveclib=libmvec",
];
const CLANG: &[&str] = &[
    "-Oz",
    "-O2 -fno-builtin",
    "-O2 -fno-strict-aliasing -fwrapv",
    "-O2 -fstack-protector-strong -fcf-protection",
    "-O2 -fno-math-errno -fno-trapping-math",
    "-O2 -fPIC -fno-plt -fvisibility=hidden",
    "-O2 -ffunction-sections -fdata-sections",
    "-O1 -fno-jump-tables -fno-asynchronous-unwind-tables",
    "-O2 -mllvm -unroll-count=2",
    "-O2 -fno-inline -flto -fipa-cp",
];

/// Names and bytes of the sections with code.
fn code(object: &Path) -> Vec<(String, Vec<u8>)> {
    let bytes = std::fs::read(object).expect("an object");
    let file = object::File::parse(&*bytes).expect("an object");
    file.sections()
        .filter(|s| s.kind() == SectionKind::Text)
        .map(|s| {
            let name = s.name().expect("a name").to_owned();
            (name, s.data().expect("code").to_vec())
        })
        .collect()
}

fn compile(tool: &str, source: &str, flags: &str) -> Result<(), String> {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    write(
        at,
        &[("unit.c", C), ("unit.cpp", CXX), ("unit.f90", FORTRAN)],
    );
    let store = at.join("store");
    std::fs::create_dir_all(store.join("bin")).expect("a directory");
    let wrapper = store.join("bin").join(tool);
    symlink(built(), &wrapper).expect("a link");
    let output = Command::new(&wrapper)
        .args(flags.split_whitespace())
        .args(["-c", source, "-o", "vivo.o"])
        .current_dir(at)
        .output()
        .expect("the wrapper runs");
    if !output.status.success() {
        return Err(text(&output.stderr));
    }
    let units = std::fs::read_dir(store.join("units")).expect("units");
    let record = units
        .map(|e| e.expect("an entry").path())
        .find(|p| p.extension().is_some_and(|e| e == "json"))
        .expect("a unit");
    let unit: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&record).expect("a record")).expect("JSON");
    let flags = unit["command"]["codegen"].as_array().expect("flags");
    let output = Command::new("clang-22")
        .args(flags.iter().map(|f| f.as_str().expect("a flag")))
        .args(["-w", "-x", "ir", "-c"])
        .arg(record.with_extension("bc"))
        .args(["-o", "vitro.o"])
        .current_dir(at)
        .output()
        .expect("clang-22 runs");
    if !output.status.success() {
        return Err(text(&output.stderr));
    }
    let (vivo, vitro) = (code(&at.join("vivo.o")), code(&at.join("vitro.o")));
    if vivo.iter().all(|(_, bytes)| bytes.is_empty()) {
        return Err("there is no code".into());
    }
    (vivo == vitro)
        .then_some(())
        .ok_or_else(|| format!("the code differs under {flags:?}"))
}

fn all(tool: &str, source: &str, flags: &[&[&str]]) {
    let wrong: Vec<String> = flags
        .concat()
        .iter()
        .filter_map(|f| Some(format!("{f}: {}", compile(tool, source, f).err()?)))
        .collect();
    assert!(wrong.is_empty(), "{tool} {source}: {}", wrong.join("\n"));
}

#[test]
fn c() {
    all("gcc", "unit.c", &[COMMON, CLANG]);
}

#[test]
fn cxx() {
    let flags = ["-O0", "-O2 -g", "-O3 -march=native", "-O2 -fPIC", "-Os"];
    all("g++", "unit.cpp", &[&flags]);
}

#[test]
fn fortran() {
    all("gfortran", "unit.f90", &[COMMON]);
}

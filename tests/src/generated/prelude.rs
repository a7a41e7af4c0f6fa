//! What a program that throws begins with. No header: programs compile in little time.

use super::random::Random;
use std::fmt::Write;

/// Classes that are thrown, `K0` to `K5`; bases come first.
pub const CLASSES: usize = 6;
/// Other types that are thrown.
pub const SCALARS: [&str; 4] = ["int", "double", "const char *", "K0 *"];

const HEAD: &str = r#"extern "C" int printf(const char *, ...);
extern "C" [[noreturn]] void _exit(int);
extern "C" int fflush(void *);
namespace std {
using terminate_handler = void (*)();
terminate_handler set_terminate(terminate_handler) noexcept;
int uncaught_exceptions() noexcept;
}
typedef unsigned long word;
static word digest = 1;
static long live, fuel;
static void mix(word v) {
#ifdef TRACE
  printf("  %lu\n", v);
#endif
  digest = (digest ^ v * 0x9E3779B97F4A7C15ul) * 5 + 7;
  digest ^= digest >> 29;
}
struct Guard {
  word k;
  explicit Guard(word k) : k(k) { live++; mix(k + 100); }
  Guard(const Guard &g) : k(g.k + 1) { live++; mix(k + 200); }
  ~Guard() { live--; mix(k + 300); }
};
// Its destructor leaves by an exception where none is under way.
struct Bomb {
  word k;
  int under_way = std::uncaught_exceptions();
  explicit Bomb(word k) : k(k) { live++; }
  ~Bomb() noexcept(false) {
    live--;
    mix(k + 400);
    if (k % 3 == 0 && std::uncaught_exceptions() == under_way) throw (int)(k % 100);
  }
};
template <class T> struct Several {
  T parts[3];
  Several(word k) : parts{T(k), T(k + 1), T(k + 2)} {}
};
"#;

/// The classes, the functions that throw, and what ends the program when nobody catches.
pub fn prelude(random: &mut Random) -> String {
    let mut text = HEAD.to_owned();
    let mut ancestors = Vec::new();
    for number in 0..CLASSES {
        text += &class(random, number, &mut ancestors);
    }
    text += "static K0 object(5);\n";
    // Some are inlined, some cannot be; each throws what the others do not.
    for (number, kind) in ["", "__attribute__((noinline)) ", "inline "]
        .iter()
        .enumerate()
    {
        writeln!(text, "static {kind}word may{number}(word x) {{").expect("text grows");
        writeln!(
            text,
            "  mix(x);\n  switch (x % {}) {{",
            7 + random.below(20)
        )
        .expect("text grows");
        for case in 0..3 + random.below(4) {
            writeln!(text, "  case {case}: throw {};", thrown(random, "x")).expect("text grows");
        }
        text += "  }\n  return x * 5 + 1;\n}\n";
    }
    text += "static void ends() { printf(\"ended %lx %ld\\n\", digest, live); fflush(nullptr); _exit(3); }\n";
    text
}

/// Some bases of bases are there twice: a handler for such a one does not catch the class. `ancestors`: those of each class so far.
fn class(random: &mut Random, number: usize, ancestors: &mut Vec<Vec<usize>>) -> String {
    let mut direct = Vec::<usize>::new();
    for base in (0..number).rev() {
        if random.chance(35) && direct.iter().all(|&d| !ancestors[d].contains(&base)) {
            direct.push(base);
        }
    }
    let above = direct
        .iter()
        .flat_map(|&base| ancestors[base].iter().copied());
    ancestors.push(direct.iter().copied().chain(above).collect());
    let bases: Vec<String> = direct.iter().map(|base| format!("K{base}")).collect();
    let of = |what: &str| -> String {
        bases
            .iter()
            .map(|base| format!("{base}({what}), "))
            .collect()
    };
    let list = match bases.is_empty() {
        true => String::new(),
        false => format!(" : {}", bases.join(", ")),
    };
    let dispatch = random.pick(&["virtual ", ""]);
    let (counts, ends, copy) = match random.chance(50) {
        true => ("live++; ", "live--; ", {
            let bases = of("o");
            format!(
                "  K{number}(const K{number} &o) : {bases}v{number}(o.v{number} + 1) {{ live++; mix(v{number}); }}\n"
            )
        }),
        false => ("", "", String::new()),
    };
    format!(
        "struct K{number}{list} {{\n  word v{number};\n  K{number}(word w) : {}v{number}(w) {{ {counts}}}\n{copy}  \
         {dispatch}~K{number}() {{ {ends}mix(v{number} + {number}); }}\n  \
         {dispatch}word get() const {{ return v{number} * {}; }}\n}};\n",
        of("w * 3 + 1"),
        number + 2
    )
}

/// An expression of a type that is thrown.
pub fn thrown(random: &mut Random, of: &str) -> String {
    match random.below(10) {
        0 | 1 => format!("(int)({of} % 1000)"),
        2 => format!("(double)({of} % 1000) / 8"),
        3 => "(const char *)\"text\"".to_owned(),
        4 => "&object".to_owned(),
        _ => format!("K{}({of})", random.below(CLASSES)),
    }
}

//! Writes the functions of the live ranges probe: one for each number of variables and class, which the compiler gives registers.

use std::fmt::Write;
use std::path::Path;

/// Numbers of variables: all where registers end, few beyond (BlackjackBench 3.5 has 3 to 132).
fn counts() -> Vec<usize> {
    (3..=40).chain([48, 64, 96, 132]).collect()
}

/// A class of variables: name, type, what keeps the compiler from joining several in one register, attribute.
const CLASSES: [(&str, &str, &str, &str); 3] = [
    ("integers", "i64", "keep_integer", ""),
    ("floats", "f64", "keep_float", ""),
    (
        "vectors",
        "f64",
        "keep_vector",
        "#[target_feature(enable = \"avx512f,avx512vl\")]\n",
    ),
];

fn function(
    text: &mut String,
    count: usize,
    (class, kind, keep, attribute): (&str, &str, &str, &str),
) -> std::fmt::Result {
    let repeat = 48usize.div_ceil(count);
    writeln!(
        text,
        "{attribute}unsafe fn {class}_{count}(rounds: u64, start: {kind}) -> {kind} {{"
    )?;
    for i in 0..count {
        writeln!(text, "let mut p{i} = black_box(start);")?;
    }
    writeln!(
        text,
        "let mut left = rounds;\nwhile left > 0 {{\nleft -= 1;"
    )?;
    for _ in 0..repeat {
        for i in 0..count {
            let other = (i + count - count / 2) % count;
            let sum = if kind == "i64" {
                format!("p{i}.wrapping_add(p{other})")
            } else {
                format!("p{i} + p{other}")
            };
            // SAFETY of what is written: the assembly is empty.
            writeln!(text, "p{i} = {sum};\nunsafe {{ {keep}!(p{i}) }};")?;
        }
    }
    writeln!(
        text,
        "}}\nblack_box(p0){}\n}}",
        (1..count)
            .map(|i| format!(" + black_box(p{i})"))
            .collect::<String>()
            .replace(" + ", if kind == "i64" { " ^ " } else { " + " })
    )
}

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let mut text = String::new();
    // Only there is a class of vectors of its own.
    let wide = std::env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|target| target == "x86_64");
    for class in CLASSES {
        let counts = match class.0 == "vectors" && !wide {
            true => Vec::new(),
            false => {
                writeln!(text, "use cere_arch::{};", class.2).expect("text is written to memory");
                counts()
            }
        };
        for count in counts.iter().copied() {
            function(&mut text, count, class).expect("text is written to memory");
        }
        let (name, kind, ..) = class;
        let repeat = |count: usize| 48usize.div_ceil(count) * count;
        let rows: String = counts
            .iter()
            .map(|n| {
                format!(
                    "({n}, {}, {name}_{n} as unsafe fn(u64, {kind}) -> {kind}),\n",
                    repeat(*n)
                )
            })
            .collect();
        let upper = name.to_uppercase();
        let length = counts.len();
        writeln!(
            text,
            "/// Variables, additions of a round, function.\n\
             pub static {upper}: [(usize, usize, unsafe fn(u64, {kind}) -> {kind}); {length}] = [\n{rows}];"
        )
        .expect("text is written to memory");
    }
    let directory = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    std::fs::write(Path::new(&directory).join("live.rs"), text)
        .expect("cargo's directory can be written to");
}

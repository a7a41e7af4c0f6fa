//! What a flag asks for, in words that sources have.

/// One thing asked of a loop, a block or a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// Vectorise it, or do not.
    Vectorise(bool),
    /// Elements of a vector.
    Width(u32),
    /// Vectors at a time.
    Interleave(u32),
    /// Copies of the body; 0: as many as the compiler finds best, 1: none.
    Unroll(u32),
    /// Copies for all iterations.
    UnrollFully,
    /// Masks instead of a scalar rest.
    Predicate,
    /// Split it.
    Distribute,
    /// Bytes that its code is aligned to.
    Align(u32),
    /// What `#pragma clang fp` takes, for a block.
    Arithmetic(String),
    /// All that -ffast-math allows, for a block.
    Fast,
    /// What the attribute `target` takes, for a function.
    Target(String),
    /// Bits of the vectors that a function may have in registers.
    Registers(u32),
}

/// What a line belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// A loop.
    Loop,
    /// The block that it begins.
    Block,
    /// A function.
    Function,
}

/// The value of an option of `-mllvm` called `name`.
fn value<'c>(choice: &'c [String], name: &str) -> Option<&'c str> {
    let [first, word] = choice else { return None };
    let found = word.trim_start_matches('-').strip_prefix(name)?;
    (first == "-mllvm").then_some(found)?.strip_prefix('=')
}

/// Numbers of copies that are tried where a flag says none.
const COPIES: [u32; 3] = [2, 4, 8];

/// What may do the same as a choice of flags, the most likely first.
#[must_use]
pub fn alternatives(choice: &[String]) -> Vec<Vec<Wish>> {
    use Wish::*;
    let number = |name: &str| value(choice, name).and_then(|v| v.parse::<u32>().ok());
    let copies = || COPIES.into_iter().map(|n| vec![Unroll(n)]);
    if let Some(width) = number("force-vector-width") {
        return match width {
            1 => vec![vec![Vectorise(false)]],
            _ => vec![vec![Width(width)]],
        };
    }
    if let Some(count) = number("force-vector-interleave") {
        return vec![vec![Interleave(count)], vec![Interleave(count), Unroll(1)]];
    }
    if let Some(count) = number("unroll-count") {
        return vec![vec![Unroll(count)]];
    }
    if number("unroll-threshold").is_some() {
        let others = [vec![Unroll(0)], vec![UnrollFully], vec![Unroll(1)]];
        return others.into_iter().chain(copies()).collect();
    }
    if let Some(most) = number("vectorize-memory-check-threshold") {
        return vec![vec![Vectorise(most > 0)]];
    }
    if value(choice, "prefer-predicate-over-epilogue").is_some() {
        return vec![vec![Predicate]];
    }
    match &*choice.join(" ") {
        "-fno-vectorize" | "-mllvm -enable-if-conversion=false" => vec![vec![Vectorise(false)]],
        "-fvectorize" => vec![vec![Vectorise(true)]],
        "-fno-unroll-loops" => vec![
            vec![Unroll(1), Interleave(1)],
            vec![Unroll(1)],
            vec![Interleave(1)],
        ],
        "-mllvm -unroll-runtime=false" => vec![vec![Unroll(1)]],
        "-funroll-loops" | "-mllvm -unroll-runtime-multi-exit" => {
            std::iter::once(vec![Unroll(0)]).chain(copies()).collect()
        }
        "-mllvm -vectorizer-maximize-bandwidth" => {
            [8, 16, 32].map(|width| vec![Width(width)]).into()
        }
        "-mllvm -enable-loop-distribute" => vec![vec![Distribute]],
        "-ffast-math" => vec![
            vec![Fast],
            vec![Fast, Arithmetic("contract(on)".to_owned())],
            vec![Arithmetic(RELAXED.to_owned())],
        ],
        "-fassociative-math" => vec![vec![Arithmetic("reassociate(on)".to_owned())], vec![Fast]],
        "-freciprocal-math" => vec![vec![Arithmetic("reciprocal(on)".to_owned())]],
        "-O2" | "-O3" => {
            let first = [
                vec![Vectorise(true)],
                vec![Unroll(0)],
                vec![UnrollFully],
                vec![Vectorise(true), Unroll(0)],
            ];
            first.into_iter().chain(copies()).collect()
        }
        "-O1" | "-Os" | "-Oz" => vec![
            vec![Vectorise(false), Unroll(1)],
            vec![Unroll(1), Interleave(1)],
            vec![Unroll(1)],
            vec![Vectorise(false)],
        ],
        one => of_one_word(one),
    }
}

/// What `#pragma clang fp` allows of -ffast-math.
const RELAXED: &str = "reassociate(on) reciprocal(on) contract(fast)";

fn of_one_word(word: &str) -> Vec<Vec<Wish>> {
    use Wish::*;
    if let Some(how) = word.strip_prefix("-ffp-contract=") {
        return vec![vec![Arithmetic(format!("contract({how})"))]];
    }
    if let Some(bytes) = word.strip_prefix("-falign-loops=") {
        let bytes = bytes.parse().ok();
        return bytes.map_or(Vec::new(), |bytes| vec![vec![Align(bytes)]]);
    }
    if let Some(bits) = word.strip_prefix("-mprefer-vector-width=") {
        let Ok(bits) = bits.parse::<u32>() else {
            return Vec::new();
        };
        let widths = [64, 32].map(|element| Width(bits / element));
        let wide = widths.clone().map(|w| vec![w, Registers(bits)]);
        let narrow = widths.map(|w| vec![w]);
        return match bits {
            512.. => wide.into_iter().chain(narrow).collect(),
            _ => narrow.into(),
        };
    }
    for (flag, key) in [("-march=", "arch"), ("-mtune=", "tune")] {
        if let Some(name) = word.strip_prefix(flag) {
            return match name {
                "native" => Vec::new(),
                name => vec![vec![Target(format!("{key}={name}"))]],
            };
        }
    }
    match word.strip_prefix("-m") {
        Some(name) if FEATURES.iter().any(|f| name.starts_with(f)) => {
            vec![vec![Target(name.to_owned())]]
        }
        _ => Vec::new(),
    }
}

/// Beginnings of flags `-m` that the attribute `target` takes.
const FEATURES: [&str; 9] = [
    "sse", "avx", "bmi", "lzcnt", "popcnt", "fma", "f16c", "adx", "gfni",
];

/// The lines that say `wishes` in C and C++, or Fortran; none if the language has no words for one of them.
#[must_use]
pub fn lines(wishes: &[Wish], fortran: bool) -> Option<Vec<(Scope, String)>> {
    match fortran {
        true => in_fortran(wishes),
        false => Some(in_c(wishes)),
    }
}

fn in_fortran(wishes: &[Wish]) -> Option<Vec<(Scope, String)>> {
    let line = |wish: &Wish| {
        let words = match wish {
            Wish::Vectorise(true) => "VECTOR ALWAYS".to_owned(),
            Wish::Vectorise(false) => "NOVECTOR".to_owned(),
            Wish::Unroll(0) => "UNROLL".to_owned(),
            Wish::Unroll(1) => "NOUNROLL".to_owned(),
            Wish::Unroll(count) => format!("UNROLL {count}"),
            _ => return None,
        };
        Some((Scope::Loop, format!("!DIR$ {words}")))
    };
    wishes.iter().map(line).collect()
}

fn in_c(wishes: &[Wish]) -> Vec<(Scope, String)> {
    let mut clauses: Vec<String> = Vec::new();
    let mut targets: Vec<&str> = Vec::new();
    let mut lines = Vec::new();
    for wish in wishes {
        clauses.push(match wish {
            Wish::Vectorise(true) => "vectorize(enable)".to_owned(),
            Wish::Vectorise(false) => "vectorize(disable)".to_owned(),
            Wish::Width(width) => format!("vectorize_width({width})"),
            Wish::Interleave(1) => "interleave(disable)".to_owned(),
            Wish::Interleave(count) => format!("interleave_count({count})"),
            Wish::Unroll(0) => "unroll(enable)".to_owned(),
            Wish::Unroll(1) => "unroll(disable)".to_owned(),
            Wish::Unroll(count) => format!("unroll_count({count})"),
            Wish::UnrollFully => "unroll(full)".to_owned(),
            Wish::Predicate => "vectorize_predicate(enable)".to_owned(),
            Wish::Distribute => "distribute(enable)".to_owned(),
            other => {
                let line = match other {
                    Wish::Align(bytes) => (Scope::Loop, format!("[[clang::code_align({bytes})]]")),
                    Wish::Arithmetic(how) => (Scope::Block, format!("#pragma clang fp {how}")),
                    Wish::Fast => (Scope::Block, "#pragma float_control(precise, off)".into()),
                    Wish::Registers(bits) => {
                        let attribute = format!("__attribute__((min_vector_width({bits})))");
                        (Scope::Function, attribute)
                    }
                    Wish::Target(name) => {
                        targets.push(name);
                        continue;
                    }
                    _ => continue,
                };
                lines.push(line);
                continue;
            }
        });
    }
    if !targets.is_empty() {
        let attribute = format!("__attribute__((target(\"{}\")))", targets.join(","));
        lines.push((Scope::Function, attribute));
    }
    if !clauses.is_empty() {
        lines.insert(
            0,
            (
                Scope::Loop,
                format!("#pragma clang loop {}", clauses.join(" ")),
            ),
        );
    }
    lines
}

/// A line in the form that may stand inside another one.
#[must_use]
pub fn inside(line: &str) -> String {
    match line.strip_prefix("#pragma ") {
        Some(words) => format!("_Pragma(\"{words}\")"),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(flags: &str, fortran: bool) -> Vec<String> {
        let choice: Vec<String> = flags.split(' ').map(str::to_owned).collect();
        let found = alternatives(&choice).into_iter();
        let mut lines = found.filter_map(|wishes| lines(&wishes, fortran));
        let lines = lines.next().unwrap_or_default().into_iter();
        lines.map(|(_, line)| line).collect()
    }

    #[test]
    fn flags_in_words_of_the_source() {
        for (flags, c, fortran) in [
            (
                "-mllvm -unroll-count=4",
                "#pragma clang loop unroll_count(4)",
                "!DIR$ UNROLL 4",
            ),
            (
                "-fno-vectorize",
                "#pragma clang loop vectorize(disable)",
                "!DIR$ NOVECTOR",
            ),
            (
                "-fno-unroll-loops",
                "#pragma clang loop unroll(disable) interleave(disable)",
                "!DIR$ NOUNROLL",
            ),
            ("-ffp-contract=fast", "#pragma clang fp contract(fast)", ""),
            ("-mavx2", "__attribute__((target(\"avx2\")))", ""),
            ("-march=native", "", ""),
            ("-mllvm -misched=ilpmax", "", ""),
            ("-falign-loops=32", "[[clang::code_align(32)]]", ""),
        ] {
            assert_eq!(first(flags, false).join("|"), c, "{flags}");
            assert_eq!(first(flags, true).join("|"), fortran, "{flags}");
        }
        assert_eq!(inside("#pragma clang loop x"), "_Pragma(\"clang loop x\")");
        assert_eq!(inside("[[x]]"), "[[x]]");
    }
}

//! Rust, by rustc.

use super::facts::{BackEnd, Facts, Front};
use std::path::{Path, PathBuf};

/// What Rust needs.
pub const FACTS: Facts = Facts {
    name: "Rust",
    extensions: &["rs"],
    drivers: &[("rustc", COMPILER)],
    variables: &[],
    front: Front::Rustc,
    form: "",
    back_end: BackEnd::Clang,
    unwinds: true,
    is_library,
};

/// The compiler.
pub const COMPILER: &str = "rustc";

/// Whether the path is one of Rust's own library, as rustc writes it with and without the library's sources.
fn is_library(path: &str) -> bool {
    path.starts_with("/rustc/") || path.contains("/lib/rustlib/src/rust/library/")
}

/// Whether the symbol is a function's of Rust, by either scheme of rustc's.
pub fn is_symbol(name: &str) -> bool {
    // Of C++'s those of the older one differ by their hash alone.
    let hash =
        |rest: &str| rest.len() >= 16 && rest.bytes().take(16).all(|b| b.is_ascii_hexdigit());
    let hashed = name.rfind("17h").is_some_and(|at| hash(&name[at + 3..]));
    name.starts_with("_R") || name.starts_with("_ZN") && hashed
}

/// A call of rustc, taken apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rustc {
    /// `--crate-name`.
    pub name: Option<String>,
    /// The crate's root.
    pub root: Option<String>,
    /// `--crate-type`, each.
    pub kinds: Vec<String>,
    /// `--emit`, each with the path that it has, if any.
    pub emits: Vec<(String, Option<String>)>,
    /// `--out-dir`.
    pub directory: Option<String>,
    /// `-o`.
    pub output: Option<String>,
    /// `--target`.
    pub target: Option<String>,
    /// Whether something is asked of the compiler (`--print`, `-V`).
    pub asks: bool,
    /// `-C` options by name, in order, with their values; `-O` and `-g` among them.
    pub codegen: Vec<(String, String)>,
    /// All other arguments, in order.
    pub others: Vec<String>,
}

/// Options with a value in the next argument, unless `=` joins it.
const WITH_VALUE: [&str; 27] = [
    "--allow",
    "--warn",
    "--deny",
    "--forbid",
    "--remap-path-scope",
    "--crate-name",
    "--crate-type",
    "--emit",
    "--out-dir",
    "-o",
    "--target",
    "--print",
    "--cfg",
    "--check-cfg",
    "-L",
    "-l",
    "--edition",
    "--extern",
    "--error-format",
    "--json",
    "--color",
    "--cap-lints",
    "--remap-path-prefix",
    "--diagnostic-width",
    "--explain",
    "--sysroot",
    "--env-set",
];
/// Short ones, whose value may be joined.
const SHORT: [&str; 6] = ["-A", "-W", "-D", "-F", "-Z", "--force-warn"];

/// Options of code generation that no instrumented crate has: one unit of code, whole, with its symbols.
const DROPPED: [&str; 6] = [
    "codegen-units",
    "lto",
    "linker-plugin-lto",
    "embed-bitcode",
    "incremental",
    "strip",
];

impl Rustc {
    /// Takes the arguments apart, those without the compiler itself.
    pub fn parse(arguments: &[String]) -> Self {
        let mut call = Self::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            if let Some(joined) = argument
                .strip_prefix("-C")
                .filter(|_| !argument.starts_with("--"))
            {
                let word = match joined {
                    "" => rest.next().cloned().unwrap_or_default(),
                    word => word.to_owned(),
                };
                call.add(&word);
                continue;
            }
            if let Some(word) = argument.strip_prefix("--codegen") {
                let word = match word.strip_prefix('=') {
                    Some(word) => word.to_owned(),
                    None => rest.next().cloned().unwrap_or_default(),
                };
                call.add(&word);
                continue;
            }
            let takes = WITH_VALUE.contains(&&**argument) || SHORT.contains(&&**argument);
            let value = if takes { rest.next() } else { None };
            call.take(argument, value);
        }
        call
    }

    fn add(&mut self, word: &str) {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        self.codegen
            .push((name.replace('_', "-"), value.to_owned()));
    }

    fn take(&mut self, argument: &str, separate: Option<&String>) {
        let (name, value) = match (argument.split_once('='), separate) {
            (_, Some(value)) => (argument, value.clone()),
            (Some((name, value)), None) => (name, value.to_owned()),
            (None, None) => (argument, String::new()),
        };
        match name {
            "--crate-name" => self.name = Some(value),
            "--crate-type" => self.kinds.extend(value.split(',').map(str::to_owned)),
            "--emit" => {
                let kinds = value.split(',').map(|emit| match emit.split_once('=') {
                    Some((kind, path)) => (kind.to_owned(), Some(path.to_owned())),
                    None => (emit.to_owned(), None),
                });
                self.emits.extend(kinds);
                self.others.push(format!("--emit={value}"));
            }
            "--out-dir" => self.directory = Some(value),
            "-o" => self.output = Some(value),
            "--target" => {
                self.others.push(format!("--target={value}"));
                self.target = Some(value);
            }
            "--print" | "-V" | "-vV" | "--version" | "-h" | "--help" | "--explain" | "-v"
                if self.asks_by(name, &value) => {}
            "-O" => self.codegen.push(("opt-level".to_owned(), "3".to_owned())),
            "-g" => self.codegen.push(("debuginfo".to_owned(), "2".to_owned())),
            _ => {
                if !argument.starts_with(['-', '+']) || argument == "-" {
                    self.root = Some(argument.to_owned());
                }
                self.others.push(argument.to_owned());
                self.others.extend(separate.cloned());
            }
        }
    }

    /// Notes that the compiler is asked something, unless it says more of what it does besides (`-v`, `--print` to a file).
    fn asks_by(&mut self, name: &str, value: &str) -> bool {
        let besides = name == "-v"
            || value.starts_with("link-args")
            || value.starts_with("native-static-libs");
        self.asks |= !besides;
        !besides
    }

    /// The file that the crate becomes: of a library the archive, of which an image may be made besides; of others the image.
    pub fn product(&self) -> PathBuf {
        if let Some(output) = &self.output {
            return output.into();
        }
        let name = self.stem();
        let extra = self.option("extra-filename").unwrap_or("");
        let is = |kinds: &[&str]| self.kinds.iter().any(|kind| kinds.contains(&&**kind));
        let emits_object = self.emits("obj") && !self.emits("link");
        let kind = if emits_object { "obj" } else { "link" };
        if let Some(path) = self.emitted(kind) {
            return path.into();
        }
        let file = match () {
            () if emits_object => format!("{name}{extra}.o"),
            () if is(&["lib", "rlib"]) => format!("lib{name}{extra}.rlib"),
            () if is(&["staticlib"]) => format!("lib{name}{extra}.a"),
            () if is(&["cdylib", "dylib"]) => format!("lib{name}{extra}.so"),
            () => format!("{name}{extra}"),
        };
        Path::new(self.directory.as_deref().unwrap_or("")).join(file)
    }

    /// Whether something of this kind is asked for.
    pub fn emits(&self, kind: &str) -> bool {
        self.emits.iter().any(|(emitted, _)| emitted == kind)
    }

    /// Where it is to go, if that was said with it.
    pub fn emitted(&self, kind: &str) -> Option<&str> {
        let found = self.emits.iter().find(|(emitted, _)| emitted == kind);
        found.and_then(|(_, path)| path.as_deref())
    }

    /// A file that is made beside it, by its extension.
    pub fn product_of(&self, extension: &str) -> PathBuf {
        match &self.output {
            Some(output) => Path::new(output).with_extension(extension),
            None => {
                let extra = self.option("extra-filename").unwrap_or("");
                let file = format!("{}{extra}.{extension}", self.stem());
                Path::new(self.directory.as_deref().unwrap_or("")).join(file)
            }
        }
    }

    /// The crate's name.
    fn stem(&self) -> String {
        self.name.clone().unwrap_or_else(|| {
            let root = Path::new(self.root.as_deref().unwrap_or("rust_out"));
            let stem = root.file_stem().unwrap_or_default().to_string_lossy();
            stem.replace('-', "_")
        })
    }

    /// The last value of a `-C` option.
    pub fn option(&self, name: &str) -> Option<&str> {
        let found = self.codegen.iter().rfind(|(other, _)| other == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Whether the crate's code is for the program, not for a compiler: neither a procedural macro nor a build script, nor, in an
    /// optimised build, a crate that those alone use, which cargo does not optimise; `primary`: it is one that the user builds.
    pub fn is_of_program(&self, primary: bool) -> bool {
        let named = self.name.as_deref().unwrap_or("");
        let optimised = self.option("opt-level").is_some_and(|level| level != "0");
        let release = self
            .option("debug-assertions")
            .is_some_and(|v| matches!(v, "off" | "no" | "n" | "false"));
        !self.kinds.iter().any(|kind| kind == "proc-macro")
            && !named.starts_with("build_script_")
            && (optimised || !release || primary)
    }

    /// Whether machine code is made.
    pub fn makes_code(&self) -> bool {
        !self.asks
            && self.root.is_some()
            && (self.emits.is_empty() || self.emits("link") || self.emits("obj"))
    }

    /// Whether the user wants debug information.
    pub fn has_debug(&self) -> bool {
        self.option("debuginfo")
            .is_some_and(|level| !matches!(level, "0" | "none"))
    }

    /// Arguments that make the crate's code as one whole unit, with debug information; the second: what that changes.
    pub fn whole(&self) -> (Vec<String>, Vec<&'static str>) {
        let mut line = self.others.clone();
        let mut pair = |name: &str, value: &Option<String>| {
            line.extend(value.iter().map(|v| format!("{name}={v}")))
        };
        pair("--crate-name", &self.name);
        pair("--out-dir", &self.directory);
        line.extend(self.kinds.iter().map(|kind| format!("--crate-type={kind}")));
        if let Some(output) = &self.output {
            line.extend(["-o".to_owned(), output.clone()]);
        }
        let kept = self
            .codegen
            .iter()
            .filter(|(name, _)| !DROPPED.contains(&&**name));
        line.extend(kept.map(|(name, value)| match value.is_empty() {
            true => format!("-C{name}"),
            false => format!("-C{name}={value}"),
        }));
        // What has no symbols cannot be worked with; debug information may go.
        if self.option("strip").is_some_and(|what| what != "none") {
            line.push("-Cstrip=debuginfo".to_owned());
        }
        line.push("-Ccodegen-units=1".to_owned());
        if !self.has_debug() {
            line.push("-Cdebuginfo=line-tables-only".to_owned());
        }
        let on = |name: &str| {
            self.option(name)
                .is_some_and(|v| !matches!(v, "off" | "no" | "n" | "false"))
        };
        let mut changes = Vec::new();
        if on("lto") || on("linker-plugin-lto") {
            changes.push("link-time optimisation is off for Rust's crates: regions are taken from whole crates");
        }
        if self.option("strip") == Some("symbols") {
            changes.push("the symbols of Rust's programs stay, as later steps read them");
        }
        (line, changes)
    }

    /// clang's flags that make the same code of the crate's IR.
    pub fn flags(&self) -> Vec<String> {
        let level = self.option("opt-level").unwrap_or("0");
        let mut flags = vec![format!("-O{level}")];
        let relocation = match self.option("relocation-model") {
            Some("static") => "-fno-pic",
            Some("pie") => "-fPIE",
            _ => "-fPIC",
        };
        let fixed = [
            relocation,
            "-ffunction-sections",
            "-fdata-sections",
            "-Xclang",
            "-fmerge-functions",
        ];
        flags.extend(fixed.map(str::to_owned));
        let words = self
            .codegen
            .iter()
            .filter(|(name, _)| name != "opt-level" && name != "relocation-model");
        flags.extend(words.flat_map(|(name, value)| in_clang(name, value)));
        flags
    }
}

/// clang's flags for an option of code generation; none where it has no part in what is made of IR.
fn in_clang(name: &str, value: &str) -> Vec<String> {
    let one = |flag: String| vec![flag];
    match name {
        "opt-level" => one(format!("-O{value}")),
        "target-cpu" => one(format!("-march={value}")),
        "target-feature" => value.split(',').filter_map(feature).collect(),
        "llvm-args" => {
            let words = value.split_whitespace();
            words
                .flat_map(|word| ["-mllvm".to_owned(), word.to_owned()])
                .collect()
        }
        "no-vectorize-loops" => one("-fno-vectorize".to_owned()),
        "no-vectorize-slp" => one("-fno-slp-vectorize".to_owned()),
        "relocation-model" => one(match value {
            "static" => "-fno-pic",
            "pie" => "-fPIE",
            _ => "-fPIC",
        }
        .to_owned()),
        "code-model" => one(format!("-mcmodel={value}")),
        _ => Vec::new(),
    }
}

/// clang's flag for a feature such as `+avx2`; none for those that are rustc's own.
fn feature(word: &str) -> Option<String> {
    const OWN: [&str; 2] = ["crt-static", "fxsr"];
    const OTHER: [(&str, &str); 6] = [
        ("bmi1", "bmi"),
        ("pclmulqdq", "pclmul"),
        ("rdrand", "rdrnd"),
        ("cmpxchg16b", "cx16"),
        ("avx512vpclmulqdq", "vpclmulqdq"),
        ("sse4a", "sse4a"),
    ];
    let (sign, name) = match word.strip_prefix('+') {
        Some(name) => ("", name),
        None => ("no-", word.strip_prefix('-')?),
    };
    if OWN.contains(&name) {
        return None;
    }
    let other = OTHER.iter().find(|(rust, _)| *rust == name);
    Some(format!(
        "-m{sign}{}",
        other.map_or(name, |(_, clang)| clang)
    ))
}

/// Words of flags with rustc's (`-C target-cpu=native`) as clang has them.
///
/// # Errors
/// Those of rustc's that change nothing of what is made of IR.
pub fn in_clang_words(words: Vec<String>) -> Result<Vec<String>, String> {
    let mut flags = Vec::new();
    let mut rest = words.into_iter();
    while let Some(word) = rest.next() {
        let option = match word.strip_prefix("-C") {
            Some("") => rest.next(),
            Some(joined) => Some(joined.to_owned()),
            None => {
                flags.push(word);
                continue;
            }
        };
        let option = option.ok_or("-C has no option after it")?;
        if let Some(passes) = option.strip_prefix("passes=") {
            return Err(format!("-C passes={passes}: give the pipeline by --passes"));
        }
        let (name, value) = option.split_once('=').unwrap_or((&option, ""));
        let made = in_clang(name, value);
        if made.is_empty() {
            return Err(format!(
                "-C {option} changes nothing of a replay: the compiler's front end has done that. opt-level, target-cpu, target-feature, llvm-args, no-vectorize-loops, no-vectorize-slp, code-model and relocation-model do"
            ));
        }
        flags.extend(made);
    }
    Ok(flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Rustc {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        Rustc::parse(&words)
    }

    #[test]
    fn a_call_of_cargos() {
        let call = of(
            "--crate-name hot --edition=2021 src/main.rs --error-format=json --crate-type bin --emit=dep-info,link -C opt-level=3 \
             -C embed-bitcode=no -C lto=thin --check-cfg cfg(docsrs) -C metadata=1f -C extra-filename=-1f --out-dir /t/deps -C strip=debuginfo -L dependency=/t/deps --extern libm=/t/liblibm.rlib",
        );
        assert_eq!(
            (call.name.as_deref(), call.root.as_deref()),
            (Some("hot"), Some("src/main.rs"))
        );
        assert!(call.makes_code() && call.is_of_program(false) && !call.has_debug());
        let (line, changes) = call.whole();
        let line = line.join(" ");
        assert!(
            !line.contains("lto")
                && line.contains("-Ccodegen-units=1")
                && line.contains("-Cstrip=debuginfo"),
            "{line}"
        );
        assert!(
            line.contains("--extern libm=/t/liblibm.rlib") && line.contains("-Cextra-filename=-1f"),
            "{line}"
        );
        assert_eq!(changes.len(), 1);
    }

    #[test]
    fn what_is_left_alone() {
        for line in [
            "- --crate-name ___ --print=file-names --crate-type bin",
            "-vV",
            "--crate-name x x.rs --emit=metadata",
        ] {
            assert!(!of(line).makes_code(), "{line}");
        }
        for line in [
            "--crate-name build_script_build build.rs --crate-type bin --emit=link",
            "--crate-name m m.rs --crate-type proc-macro -C opt-level=3",
            "--crate-name syn lib.rs --crate-type lib -C debug-assertions=off",
        ] {
            assert!(!of(line).is_of_program(false), "{line}");
        }
        assert!(of("--crate-name a a.rs").is_of_program(false));
    }

    #[test]
    fn where_things_go() {
        for (line, product) in [
            ("+nightly --crate-name a --out-dir d a.rs", "d/a"),
            ("a.rs --crate-type lib -C extra-filename=-1", "liba-1.rlib"),
            ("a.rs --deny warnings --emit link=x/y,dep-info=z.d", "x/y"),
            ("a.rs --emit=obj", "a.o"),
            ("a.rs --emit obj -o b.o", "b.o"),
        ] {
            let call = of(line);
            assert_eq!(call.root.as_deref(), Some("a.rs"), "{line}");
            assert_eq!(call.product(), Path::new(product), "{line}");
        }
    }

    #[test]
    fn flags_in_clangs_words() {
        let call = of(
            "a.rs -O -C target-cpu=native -C target-feature=+avx2,-bmi1,+crt-static -Cllvm-args=-x=1 -C panic=abort",
        );
        let flags = call.flags().join(" ");
        assert!(
            flags.starts_with("-O3 -fPIC")
                && flags.ends_with("-march=native -mavx2 -mno-bmi -mllvm -x=1"),
            "{flags}"
        );
        let words = |line: &str| in_clang_words(line.split(' ').map(str::to_owned).collect());
        assert_eq!(
            words("-O2 -C target-cpu=skylake").unwrap(),
            ["-O2", "-march=skylake"]
        );
        assert!(words("-C panic=abort").unwrap_err().contains("panic"));
    }
}

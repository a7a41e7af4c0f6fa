//! Files of a build in the store: compile commands, units with their regions, link commands; and the plans of
//! the pass for a replay's compile.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use wildmatch::WildMatch;

pub use crate::language::Language;

/// Version of the JSON files of this module.
pub const BUILD_VERSION: u32 = 2;

/// Environment variable that names the [`CompileCommand`] file: the pass outlines and keeps the unit.
pub const ENV_COMMAND: &str = "CERE_COMMAND";
/// Environment variable that names the list of the headers that the compiler has read, for the pass.
pub const ENV_HEADERS: &str = "CERE_HEADERS";
/// Environment variable that names the [`BindPlan`] file: the pass prepares a unit for a replay.
pub const ENV_BIND: &str = "CERE_BIND";
/// Names a [`CrossPlan`] for `opt`.
pub const ENV_CROSS: &str = "CERE_CROSS";
/// Environment variable that names the file that the pass writes a unit's [`Shapes`] to.
pub const ENV_SHAPES: &str = "CERE_SHAPES";
/// Environment variable that, set to anything, has the pass keep the unit and end the compile, which makes no code.
pub const ENV_KEPT_ALONE: &str = "CERE_KEPT_ALONE";
/// Environment variable that names the [`BridgePlan`] file: the pass lets code of an edited unit run on what was captured.
pub const ENV_BRIDGE: &str = "CERE_BRIDGE";
/// Environment variable with the path of a [`CountPlan`]: the pass then makes code that reports what it executes.
pub const ENV_COUNT: &str = "CERE_COUNT";
/// Environment variable that names the [`SplitPlan`] file: the pass makes a part of a unit for a hybrid binary.
pub const ENV_SPLIT: &str = "CERE_SPLIT";
/// Environment variable that names the store's directory, for wrappers.
pub const ENV_STORE: &str = "CERE_STORE";

/// Environment variable that names the directory of the wrappers, for the preload library of builds.
pub const ENV_WRAPPERS: &str = "CERE_WRAPPERS";
/// Environment variable that names the directory of the build, for the same: compilers below it are the build's own.
pub const ENV_BUILD: &str = "CERE_BUILD";
/// The program, in whose place another build of it is to run.
pub const ENV_REPLACED: &str = "CERE_REPLACED";
/// That build.
pub const ENV_REPLACEMENT: &str = "CERE_REPLACEMENT";
/// Directory that gets the files of [`crate::rank::RAN`] and its neighbours.
pub const ENV_REPLACING: &str = "CERE_REPLACING";
/// Library that is loaded first in that build's process, and in no other.
pub const ENV_REPLACED_PRELOAD: &str = "CERE_REPLACED_PRELOAD";
/// Rank of the only process in which it is to; all if it is not set.
pub const ENV_REPLACED_RANK: &str = "CERE_REPLACED_RANK";

/// A compile as the wrapper saw it, handed to the pass and kept in the unit.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CompileCommand {
    /// [`BUILD_VERSION`].
    pub version: u32,
    /// The store's directory, absolute.
    pub store: PathBuf,
    /// The directory that the compiler ran in.
    pub directory: PathBuf,
    /// The compiler that was run, e.g. `clang-22`, `clang++-22`, `flang-22`.
    pub compiler: String,
    /// The arguments as given, response files expanded, without the compiler itself.
    pub arguments: Vec<String>,
    /// Those of the arguments that decide code generation (`-O`, `-m`, `-f` and the like), in order; enough,
    /// with the unit's IR, to make the same machine code again.
    pub codegen: Vec<String>,
    /// The object or executable named by `-o`, absolute, or what the compiler's default makes of it.
    pub output: Option<PathBuf>,
    /// Whether the user asked for debug information; if not, it is stripped after regions are named.
    pub debug: bool,
    /// Regions not to outline, by index, with the reason: a former attempt at this compile failed on them.
    pub skip: Vec<SkippedLoop>,
    /// Loops that a profile found too short for a probe; the pass adds those that the code shows to be so, and keeps those of
    /// this unit. None if short loops become regions all the same.
    #[serde(default)]
    pub short: Option<Vec<ShortLoop>>,
    /// Loops whose inner loops become regions too, as the user asked; the pass keeps those of this unit.
    #[serde(default)]
    pub split: Vec<SplitLoop>,
    /// Names and globs of functions that become regions as a whole, as the user asked; the pass keeps those that name one of
    /// this unit.
    #[serde(default)]
    pub functions: Vec<String>,
    /// The front end's file, if it is another compiler's than `compiler` or is not found by that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub front: Option<PathBuf>,
    /// Variables of the build that the source may ask for (`env!`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
}

/// A loop whose inner loops become regions too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitLoop {
    /// As in [`Region`], like the fields that follow.
    pub function: String,
    /// Its source file.
    pub file: PathBuf,
    /// Its line.
    pub line: u32,
    /// Its number among the regions of that line.
    pub ordinal: u32,
}

impl SplitLoop {
    /// Whether this is the region.
    pub fn is(&self, region: &Region) -> bool {
        (&self.function, &self.file, self.line, self.ordinal)
            == (&region.function, &region.file, region.line, region.ordinal)
    }
}

impl From<&Region> for SplitLoop {
    fn from(region: &Region) -> Self {
        Self {
            function: region.function.clone(),
            file: region.file.clone(),
            line: region.line,
            ordinal: region.ordinal,
        }
    }
}

/// What users asked for, over the builds of a store: `split.json`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SplitLoops {
    /// [`SplitLoops::VERSION`].
    pub version: u32,
    /// The loops.
    pub loops: Vec<SplitLoop>,
}

impl SplitLoops {
    /// Version of the file.
    pub const VERSION: u32 = 1;
}

/// A function that a unit defines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefinedFunction {
    /// As [`Region::function`].
    pub name: String,
    /// Its symbol.
    pub symbol: String,
}

impl DefinedFunction {
    /// Whether the pattern is the name or the symbol, or a glob (`*`, `?`) that matches one of them.
    pub fn is_named_by(&self, pattern: &str) -> bool {
        let glob = WildMatch::new(pattern);
        let is = |name: &str| name == pattern || glob.matches(name);
        is(&self.name) || is(&self.symbol)
    }

    /// Whether one of the patterns names it.
    pub fn is_named(&self, patterns: &[String]) -> bool {
        patterns.iter().any(|pattern| self.is_named_by(pattern))
    }
}

/// Functions that become regions as a whole, over the builds of a store: `functions.json`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ChosenFunctions {
    /// [`ChosenFunctions::VERSION`].
    pub version: u32,
    /// Names and globs.
    pub patterns: Vec<String>,
}

impl ChosenFunctions {
    /// Version of the file.
    pub const VERSION: u32 = 1;
}

/// A loop whose invocations a profile found too short to be captured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShortLoop {
    /// As in [`Region`], like the fields that follow.
    pub function: String,
    /// Its source file.
    pub file: PathBuf,
    /// Its line.
    pub line: u32,
    /// Its number among the regions of that line.
    pub ordinal: u32,
    /// Mean cycles of an invocation.
    pub cycles: f64,
}

/// The last build that compiled something: `build.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildCommand {
    /// [`BuildCommand::VERSION`].
    pub version: u32,
    /// What `cere instrument` ran.
    pub command: Vec<String>,
    /// Where.
    pub directory: PathBuf,
}

impl BuildCommand {
    /// Version of the file.
    pub const VERSION: u32 = 1;
}

/// What profiles found too short, over the builds of a store: `short.json`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ShortLoops {
    /// [`ShortLoops::VERSION`].
    pub version: u32,
    /// The loops.
    pub loops: Vec<ShortLoop>,
}

impl ShortLoops {
    /// Version of the file.
    pub const VERSION: u32 = 1;
}

impl ShortLoop {
    /// Whether this is the region.
    pub fn is(&self, region: &Region) -> bool {
        (&self.function, &self.file, self.line, self.ordinal)
            == (&region.function, &region.file, region.line, region.ordinal)
    }
}

/// A region that must not be outlined.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SkippedLoop {
    /// Index among the regions of the unit.
    pub index: u32,
    /// Why, for the user.
    pub reason: String,
}

/// A translation unit as kept in the store: `units/<id>.json`, its IR beside it in `units/<id>.bc`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Unit {
    /// [`BUILD_VERSION`].
    pub version: u32,
    /// Content id: 32 hexadecimal digits of a hash over the IR and the code generation flags.
    pub id: String,
    /// The source file, absolute where the compiler knows.
    pub source: PathBuf,
    /// Language of the source.
    pub language: Language,
    /// The command that compiled it.
    pub command: CompileCommand,
    /// The parallel regions and the outermost loops of every function, loops inside those that may communicate, and the functions
    /// that were chosen, in order of `index`.
    pub regions: Vec<Region>,
    /// The functions that its source defines, inline ones and templates as far as it uses them. Empty in records of older builds.
    #[serde(default)]
    pub functions: Vec<DefinedFunction>,
    /// External functions and variables that the unit defines (linkonce ones included), mangled.
    pub defines: Vec<String>,
    /// External functions and variables that the unit's IR or its object refers to and the unit does not define.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Those of `needs` that may be nowhere: weak ones, and those that the IR refers to and the object does not.
    #[serde(default)]
    pub optional: Vec<String>,
    /// Whether its object asks for a stack that holds code.
    #[serde(default)]
    pub executable_stack: bool,
    /// Of the functions among them, those whose definition gives way to another one of the program.
    #[serde(default)]
    pub weak: Vec<String>,
    /// Variables of the unit in which the OpenMP runtime keeps what belongs to the threads that run, by name.
    pub runtime_words: Vec<RuntimeWord>,
    /// The files that it was compiled of, as they were then: the source, and headers that are not the system's. Empty in
    /// records of older builds.
    #[serde(default)]
    pub sources: Vec<SourceFile>,
}

/// A file of source at the time of a compile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFile {
    /// Its path, absolute.
    pub file: PathBuf,
    /// Bytes.
    pub size: u64,
    /// When it was last written, in nanoseconds since 1970.
    pub modified: i64,
    /// SHA-256 of its content, in hexadecimal.
    pub sha256: String,
}

/// A variable that the OpenMP runtime uses: the lock of a `critical` or of a reduction, the table of the copies of a
/// `threadprivate` variable. A replay resets it to its state before the first use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimeWord {
    /// Name in the symbol table.
    pub symbol: String,
    /// Bytes that the runtime may use.
    pub bytes: u64,
}

/// The kind of a region.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RegionKind {
    /// An outermost loop of a function, or one inside a loop that may communicate.
    #[default]
    Loop,
    /// A parallel region of OpenMP, from the fork of its team to the join.
    Parallel,
    /// A whole function, from its call to its return; of a recursive one the outermost call.
    Function,
}

impl RegionKind {
    /// What it is, for messages.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Loop => "loop",
            Self::Parallel => "parallel region",
            Self::Function => "function",
        }
    }
}

/// A place in the source that can become a codelet.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Region {
    /// Its kind.
    #[serde(default)]
    pub kind: RegionKind,
    /// Index among the regions of the unit, from 0.
    pub index: u32,
    /// Name of the function in the source's terms: no parameters, no mangling, scopes kept (`Grid::step`).
    pub function: String,
    /// Symbol of the function that held it.
    pub symbol: String,
    /// Source file as the debug information gives it, made absolute; the unit's source if unknown.
    pub file: PathBuf,
    /// Line, from 1, of a function that of its name; 0 if the compiler left none.
    pub line: u32,
    /// From 1, among the regions of this unit that share function, file and line.
    pub ordinal: u32,
    /// Whether it was outlined; if not, `reason` says why.
    pub outlined: bool,
    /// Why it was refused.
    pub reason: Option<String>,
    /// The live-ins, in the order of the arguments.
    pub live_ins: Vec<LiveIn>,
    /// Number of different exit blocks.
    pub exits: u32,
    /// Loops directly inside that are no regions of their own. None in records of older builds.
    #[serde(default)]
    pub inside: Option<u32>,
}

/// One argument of an outlined region.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LiveIn {
    /// The value's name in the IR, which often is the variable's; may be empty.
    pub name: String,
    /// The value's IR type, e.g. `double`, `ptr`, `i32`.
    pub r#type: String,
    /// Whether it is the address of a slot that the region writes a result to.
    pub output: bool,
}

/// A link as the wrapper saw it: `links/<hash of output>.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LinkCommand {
    /// [`BUILD_VERSION`].
    pub version: u32,
    /// The directory that the linker driver ran in.
    pub directory: PathBuf,
    /// The driver, e.g. `clang++-22`.
    pub compiler: String,
    /// The driver's file, if it is another compiler's than `compiler`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub front: Option<PathBuf>,
    /// The arguments as given, response files expanded; in place of inputs that the build removes their copies.
    pub arguments: Vec<String>,
    /// The image that it makes, absolute.
    pub output: PathBuf,
}

/// Where a compile placed the bytes of a unit's local variables: for each variable of the object, bytes of variables of the
/// unit's IR. A byte that is not listed always had its initial value, or is never read.
pub type Shapes = std::collections::BTreeMap<String, Vec<Piece>>;

/// Bytes of a variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// Name in the unit's IR.
    pub variable: String,
    /// Of the bytes there.
    pub offset: u64,
    /// Their number there.
    pub size: u64,
    /// Their offset here.
    pub at: u64,
    /// How they are kept.
    pub form: Form,
}

/// How bytes of a variable are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Unchanged.
    Plain,
    /// As a byte that is 0 or 1, and stands for one of these values.
    OneOfTwo {
        /// For 0.
        first: u64,
        /// For 1.
        other: u64,
    },
    /// Unknown.
    Unknown,
}

/// The plan of the pass for a unit of a replay. At the start of the pipeline it applies
/// `retarget`; after the pipeline, just before code generation, it binds symbols, so that optimisation sees
/// what it saw in vivo.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct BindPlan {
    /// [`BUILD_VERSION`].
    pub version: u32,
    /// Prefix for the unit's local symbols, e.g. `cere.u0.`: afterwards a local `x` is `cere.u0.x`, global
    /// and hidden, so that the replay's glue can name it.
    pub prefix: String,
    /// Variables (local or global, by name in the IR) that live at a captured address: the definition
    /// becomes a declaration; the glue defines the symbol (`<prefix>x` for a local, `x` for a global).
    pub variables: Vec<String>,
    /// Functions (names in the IR) whose captured address is known: every use as a value, other than as
    /// a call's target, becomes the symbol `<prefix>at.<name>`, which the glue defines as that address.
    pub functions: Vec<String>,
    /// Thread-local variables of other images, which a replay does not have: the references become such to plain symbols of
    /// the same names, which the glue puts where no access goes unnoticed.
    #[serde(default)]
    pub other_thread_locals: Vec<String>,
    /// Functions that the program has from elsewhere: the unit's own definition becomes a declaration.
    #[serde(default)]
    pub overridden: Vec<String>,
    /// Attribute changes for other flags.
    pub retarget: Retarget,
    /// Sizes of the unit's local variables in the captured program, in bytes; `None` if unknown.
    #[serde(default)]
    pub sizes: Option<std::collections::BTreeMap<String, u64>>,
    /// Those of the unit's local `variables` that the package lacks pages of. With `pinned`, constants among them that are only
    /// read keep their definition: other code may read what the captured invocation did not have to.
    #[serde(default)]
    pub untouched: Vec<String>,
    /// Where the build placed the bytes of the unit's local variables; `None` if unknown. Used only with `pinned`.
    #[serde(default)]
    pub shapes: Option<Shapes>,
    /// Whether other flags or passes than the build's make the code: variables then keep shape and alignment through
    /// the pipeline, and one that the captured image lacks becomes `<prefix><kind>.<size>.<name>`, which the glue puts where
    /// no access goes unnoticed. The kind is `whole` if all of its bytes are in the image, in another form; `removed` if some or
    /// all are not there, as nobody reads them; `lost` if it is not known where they are. Symbols `<prefix>bytes.<number>`
    /// are rows that tell the runtime where bytes are (`Row` in `cere-replay/runtime/src/glue.rs`).
    #[serde(default)]
    pub pinned: bool,
    /// With `pinned`: functions that are compiled, with what they reach, the rest of the unit is not; none: all of it.
    #[serde(default)]
    pub roots: Option<Vec<String>>,
    /// Labels whose captured addresses stand for them in code and data, as the machine code is another one than in vivo:
    /// the glue puts jumps there, to where the table `<prefix>labels.<function>` says that they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<BoundLabels>,
    /// Whether each store reports its type to the runtime through the pointer `cere_glue_store`.
    #[serde(default)]
    pub typed: bool,
    /// With `pinned`: whether each store also reports its place in the source. Places are taken before the optimiser runs.
    #[serde(default)]
    pub traced: bool,
    /// Id of the unit, if its machine code is to report what it executes, as [`crate::count`] describes.
    #[serde(default)]
    pub counted: Option<String>,
    /// What is taken out of the code, for a replay that is timed and not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ablation: Option<Ablation>,
}

/// A cause of time that is taken out of code, to see what it costs (Koliaï et al., "Quantifying performance bottleneck cost through
/// differential analysis", ICS 2013). The rest of the code stays as it is, its results do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ablation {
    /// No iteration waits for a value of the one before.
    Chains,
    /// Multiplications stand for divisions and roots.
    Divisions,
    /// What would be stored is computed only.
    Stores,
    /// The vectoriser takes innermost loops as free of dependences through memory, and sums in any order. Needs
    /// [`BindPlan::pinned`].
    Dependences,
}

/// Captured addresses of the labels of a function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundLabels {
    /// Name in the IR.
    pub function: String,
    /// In the order of its table ([`crate::abi::LABELS_SYMBOL_PREFIX`]); 0 if it is not known.
    pub addresses: Vec<u64>,
}

/// Asks for the code of a kept unit as the build made it, which reports what it executes ([`crate::count`]).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CountPlan {
    /// [`BUILD_VERSION`].
    pub version: u32,
    /// Id of the unit.
    pub unit: String,
}

/// Asks for an edited unit whose code stands for a captured region: its function of the region's index takes the arguments that were
/// captured. No code is made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BridgePlan {
    /// [`BUILD_VERSION`].
    pub version: u32,
    /// The IR of the captured unit.
    pub captured: PathBuf,
    /// Index of the region there.
    pub region: u32,
    /// Symbol of the function that the region's is called now; none: as it was.
    pub function: Option<String>,
    /// Where the edited unit's IR goes; or a text if nothing stands for the region, which begins with [`BRIDGE_REFUSED`].
    pub output: PathBuf,
    /// Where the names of what else differs go, which the region's code does not run; empty if nothing does.
    pub others: PathBuf,
}

/// Begins [`BridgePlan::output`] if nothing in the edited unit stands for the region; the reason follows.
pub const BRIDGE_REFUSED: &str = "refused: ";

/// The plan of the pass for a unit that is split for a hybrid binary: each chosen region becomes a part with its own flags, the
/// rest keeps the build's. A part goes through the whole pipeline with everything that it reaches, as in a replay, and is cut
/// out before code generation. The rest calls `<prefix><index>` where a region was.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SplitPlan {
    /// [`BUILD_VERSION`].
    pub version: u32,
    /// Index of the region whose code is made; none: the rest of the unit.
    pub part: Option<u32>,
    /// Prefix of the symbols by which the parts of this unit refer to each other: `<prefix><index>` is a region, `<prefix>at.x` a
    /// variable or function `x` that is local to the unit.
    pub prefix: String,
    /// Indices of the regions that are parts of their own.
    pub regions: Vec<u32>,
    /// For the rest: symbols that the other parts need from it.
    pub shared: Vec<String>,
    /// Attribute changes for the part's flags.
    pub retarget: Retarget,
    /// The team that a part of a parallel region forks.
    #[serde(default)]
    pub team: Option<SplitTeam>,
}

/// The team of a parallel region in a hybrid binary, instead of the program's own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitTeam {
    /// Number of threads; `None` for the program's own.
    pub threads: Option<u32>,
    /// Their affinity as `omp_proc_bind_t`: 2 primary, 3 close, 4 spread; `None` for the program's own.
    pub bind: Option<u32>,
}

/// The plan of the pass for kept IR that is to run on another architecture than the one it was made for. What cannot mean the same
/// there becomes a trap behind a store of the reason, a function's name, a line's end and a sentence, to the word that
/// [`REFUSAL_SYMBOL`] names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrossPlan {
    /// [`BUILD_VERSION`].
    pub version: u32,
    /// LLVM's triple.
    pub triple: String,
    /// LLVM's data layout.
    pub layout: String,
    /// Assembly that ends a process.
    pub trap: String,
    /// Multiplications and additions stay apart where the captured processor could not contract them, as the build's flags say.
    pub split: bool,
    /// Functions with IR in any unit: they are compiled likewise, and called as they are here.
    pub with_ir: Vec<String>,
    /// The compile fails if one of these functions cannot run there as a whole.
    pub roots: Vec<String>,
}

/// The word with the address of the reason why code cannot go on; the glue defines it.
pub const REFUSAL_SYMBOL: &str = "cere_glue_refusal";

/// Changes to attributes in kept IR that the front end would have made under other flags.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Retarget {
    /// Drop `target-cpu`, `target-features` and `tune-cpu`, so that `-march` and the like take effect; with
    /// the replacements to put there (from `clang -###` or cc1's own view of the flags).
    pub target: Option<TargetAttributes>,
    /// Drop type-based alias information (`-fno-strict-aliasing`).
    pub no_strict_aliasing: bool,
    /// Further string attributes to set on every function, e.g. `prefer-vector-width` = `512`.
    pub attributes: Vec<(String, String)>,
    /// Enum attributes to set (true) or drop (false) on every function but the pass's own (`cere.`), e.g.
    /// `noinline` = false for a unit built at -O0. `alwaysinline` functions never get `noinline`.
    #[serde(default)]
    pub enum_attributes: Vec<(String, bool)>,
    /// Fast-math flags (bits of LLVM's C API) that floating-point instructions get instead of theirs.
    #[serde(default)]
    pub fast_flags: Option<u32>,
    /// Calls of mathematical functions do not set `errno` (`-fno-math-errno`).
    #[serde(default)]
    pub no_math_errno: bool,
    /// A multiplication and an addition that may be contracted are two instructions (`-ffp-contract=off`).
    #[serde(default)]
    pub split_contractions: bool,
}

/// The target attributes of functions; an empty string removes the attribute.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetAttributes {
    /// `target-cpu`.
    pub cpu: String,
    /// `tune-cpu`.
    pub tune: String,
    /// `target-features`.
    pub features: String,
}

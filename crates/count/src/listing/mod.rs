//! Machine code beside its source: how often each instruction ran, what the optimiser says of it, what a model bounds.
//!
//! | module | what |
//! |---|---|
//! | [`code`] | functions, blocks and instructions that ran |
//! | [`record`] | reads the optimiser's record |
//! | [`remarks`] | the same in plain words |
//! | [`bound`] | what llvm-mca bounds |
//! | [`diff`] | two listings of a codelet, compared |

pub mod bound;
pub mod code;
pub mod diff;
mod error;
pub mod record;
pub mod remarks;

pub use bound::Bound;
pub use code::{Block, Function, Instruction};
pub use error::ListingError;
pub use remarks::Remark;

use crate::assembly::Blocks;
use crate::class::{Width, class};
use crate::codelet::Counted;
use crate::counts::plain;
use cere_format::abi::OUTLINED_SYMBOL_PREFIX;
use cere_format::count::CALL;
use cere_format::replay::Verdict;
use cere_format::untrusted::visible;
use cere_replay::Options;
use cere_replay::compile::{self, Lined};
use cere_toolchain::io;
use code::{Region, Texts};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

/// The loop that executed most.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HotLoop {
    /// Its function's name.
    pub function: String,
    /// LLVM's number of its first block.
    pub header: u32,
    /// Loops around its blocks, itself included.
    pub depth: u32,
    /// Source line of most of what it executed; none without lines.
    pub file: Option<String>,
    /// The line's number.
    pub line: Option<u32>,
    /// How often its first block ran.
    pub iterations: u64,
    /// Instructions that it executed, those of loops inside it left out.
    pub executed: u64,
    /// Their share of all.
    pub share: f64,
    /// Executed instructions of an iteration.
    pub per_iteration: f64,
    /// What the model bounds; none if it knows none of the instructions.
    pub bound: Option<Bound>,
    /// Whether that is of the path that most iterations take: there are several.
    pub paths: bool,
}

/// What works on vectors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Vectors {
    /// Executed instructions on vectors of 128 bits.
    pub bits_128: u64,
    /// Of 256 bits.
    pub bits_256: u64,
    /// Of 512 bits.
    pub bits_512: u64,
    /// Share of all executed instructions.
    pub share: f64,
    /// Share of floating-point operations that vectors do; none without such operations.
    pub flops_share: Option<f64>,
}

/// What the register allocator added.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Spills {
    /// Executed loads of its slots.
    pub loads: u64,
    /// Stores.
    pub stores: u64,
    /// Share of all executed instructions.
    pub share: f64,
}

/// A line of source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SourceLine {
    /// Its file; none for instructions that the compiler gives no line.
    pub file: Option<String>,
    /// Its number.
    pub line: Option<u32>,
    /// Its text; none if the source is not there or is another one now.
    pub text: Option<String>,
    /// Executed instructions.
    pub executed: u64,
    /// Their share of all.
    pub share: f64,
    /// Whether no line executed more.
    pub hottest: bool,
}

/// Machine code beside its source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Listing {
    /// Name of the codelet.
    pub codelet: String,
    /// The unit of its region.
    pub unit: String,
    /// The region's index in that.
    pub index: u32,
    /// Flags after those of the build.
    pub flags: String,
    /// The pipeline, if it is not the compiler's own.
    pub passes: Option<String>,
    /// Verdict on the state that the counted code left.
    pub verdict: Verdict,
    /// Why, for people.
    pub reason: String,
    /// Threads that ran.
    pub threads: u32,
    /// Executed instructions.
    pub instructions: u64,
    /// The loop that executed most; none if nothing ran in a loop.
    pub hottest: Option<HotLoop>,
    /// What works on vectors.
    pub vectors: Vectors,
    /// What the register allocator added.
    pub spills: Spills,
    /// What the optimiser says of the functions that ran, by file and line.
    pub remarks: Vec<Remark>,
    /// The lines that code of these functions comes from, by file and number.
    pub lines: Vec<SourceLine>,
    /// The functions that ran, the region's own first.
    pub functions: Vec<Function>,
    /// What people should know: a sentence each.
    pub notes: Vec<String>,
}

/// Lists the codelet in the unpacked package `package`. Lines come from the package's units, or from `lined`; `processor` is
/// LLVM's name of the one that is modelled, or `native`.
///
/// # Errors
/// The codelet cannot be replayed; a tool fails.
pub fn listing(
    package: &Path,
    lined: &Lined,
    processor: &str,
    options: &Options,
) -> Result<Listing, ListingError> {
    let counted = Counted::new(package, options)?;
    let package = std::fs::canonicalize(package).map_err(io("open", package))?;
    let manifest = &counted.manifest;
    let timed = compile::assembly(&package, manifest, options)?;
    let with_lines = compile::assembly_with_lines(&package, manifest, lined, options)?;
    let texts = Texts {
        timed: &blocks(&counted, &timed),
        lined: &blocks(&counted, &with_lines),
    };
    let region = Region {
        unit: &manifest.key.unit,
        symbol: format!("{OUTLINED_SYMBOL_PREFIX}{}", manifest.region.index),
    };
    let mut functions = code::functions(&counted, &texts, &region);
    let hottest = code::hottest(&functions);
    let hottest = hottest.map(|place| HotLoop::of(&mut functions, place));
    let mut found = Listing {
        codelet: counted.counts.codelet.clone(),
        unit: manifest.key.unit.clone(),
        index: manifest.key.index,
        flags: counted.counts.flags.clone(),
        passes: options.settings.passes.clone(),
        verdict: counted.counts.verdict,
        reason: counted.counts.reason.clone(),
        threads: counted.counts.threads,
        instructions: counted.tally.instructions(&counted.code),
        hottest: None,
        vectors: Vectors::of(&counted),
        spills: Spills::of(&counted, &functions),
        remarks: Vec::new(),
        lines: source_lines(&functions),
        functions,
        notes: counted.counts.notes.clone(),
    };
    if let Some((mut hottest, path)) = hottest {
        let sandbox = &options.settings.sandbox;
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        hottest.bound = bound::bound(&path, processor, sandbox, &found.codelet)?;
        found.hottest = Some(hottest);
    }
    let records = compile::remarks(&package, manifest, lined, options)?;
    found.add_remarks(&records, &called(&counted));
    found.note_calls(&counted);
    Ok(found)
}

/// The blocks of the counted functions in what the compiler printed.
fn blocks(counted: &Counted, texts: &[String]) -> Blocks {
    let functions = counted.code.functions.iter();
    let functions: HashSet<&str> = functions.map(|f| f.name.as_str()).collect();
    let mut blocks = Blocks::default();
    for text in texts {
        blocks.add(text, |name| functions.contains(name));
    }
    blocks
}

/// The symbols of the functions that were called.
fn called<'a>(counted: &'a Counted) -> HashSet<&'a str> {
    let ran = counted.code.segments.iter().zip(&counted.tally.segments);
    let calls = ran.filter(|(segment, times)| **times > 0 && segment.is(CALL));
    let names = calls.map(|(segment, _)| plain(counted.code.name(segment.callee)));
    names.collect()
}

impl HotLoop {
    /// The loop whose first block is `header` in the function of that index, whose blocks are marked; and the instructions of
    /// the path that most iterations take.
    fn of(functions: &mut [Function], (index, header): (usize, u32)) -> (Self, Vec<String>) {
        let all = functions.iter().map(|f| f.executed).sum::<u64>().max(1) as f64;
        let function = &mut functions[index];
        let (mut iterations, mut executed, mut depth) = (0, 0u64, 0);
        let mut lines: BTreeMap<(&str, u32), u64> = BTreeMap::new();
        let blocks = function.blocks.iter_mut();
        for block in blocks.filter(|block| block.loop_header == Some(header)) {
            block.hottest = true;
            depth = block.loop_depth;
            if block.number == header {
                iterations = block.executions;
            }
        }
        for (_, instruction) in function.instructions().filter(|(block, _)| block.hottest) {
            executed = executed.saturating_add(instruction.executions);
            if let (Some(file), Some(line)) = (&instruction.file, instruction.line) {
                *lines.entry((file, line)).or_default() += instruction.executions;
            }
        }
        let most = lines
            .iter()
            .max_by_key(|(place, n)| (**n, std::cmp::Reverse(**place)));
        let place = most.map(|((file, line), _)| ((*file).to_owned(), *line));
        let inside = function.instructions().filter(|(block, _)| block.hottest);
        // What runs in at least half of the iterations is the path of most.
        let often = |executions: u64| executions > 0 && executions.saturating_mul(2) >= iterations;
        let path = inside.clone().filter(|(_, i)| often(i.executions));
        let path = path.map(|(_, i)| i.text.clone()).collect();
        let paths = inside.clone().any(|(_, i)| i.executions != iterations);
        let found = Self {
            function: function.name.clone(),
            header,
            depth,
            file: place.as_ref().map(|(file, _)| file.clone()),
            line: place.map(|(_, line)| line),
            iterations,
            executed,
            share: executed as f64 / all,
            per_iteration: executed as f64 / iterations.max(1) as f64,
            bound: None,
            paths,
        };
        (found, path)
    }
}

impl Vectors {
    fn of(counted: &Counted) -> Self {
        let mut found = Self::default();
        for (segment, &times) in counted.code.segments.iter().zip(&counted.tally.segments) {
            for instruction in &segment.instructions {
                let class = class(counted.code.name(instruction.name));
                let sum = match class.width {
                    Width::V128 => &mut found.bits_128,
                    Width::V256 => &mut found.bits_256,
                    Width::V512 => &mut found.bits_512,
                    Width::Scalar => continue,
                };
                *sum = sum.saturating_add(if class.vector { times } else { 0 });
            }
        }
        let sums = [found.bits_128, found.bits_256, found.bits_512];
        let all = counted.tally.instructions(&counted.code).max(1);
        found.share = sums.iter().map(|n| *n as f64).sum::<f64>() / all as f64;
        let counts = &counted.counts;
        let wide = counts.work.iter().filter(|w| w.width != Width::Scalar);
        let wide: u64 = wide.map(|w| w.flops).sum();
        let flops = counts.flops.total;
        found.flops_share = (flops > 0).then(|| wide as f64 / flops as f64);
        found
    }

    /// Bits of the widest vectors that ran; 0 without any.
    #[must_use]
    pub fn widest(&self) -> u32 {
        let sums = [
            (512, self.bits_512),
            (256, self.bits_256),
            (128, self.bits_128),
        ];
        let found = sums.into_iter().find(|(_, executed)| *executed > 0);
        found.map_or(0, |(bits, _)| bits)
    }
}

impl Spills {
    fn of(counted: &Counted, functions: &[Function]) -> Self {
        let all = functions.iter().flat_map(Function::instructions);
        let spilled = all.filter(|(_, instruction)| instruction.spill);
        Self {
            loads: counted.counts.spills.loads,
            stores: counted.counts.spills.stores,
            share: spilled.map(|(_, instruction)| instruction.share).sum(),
        }
    }
}

/// A line by which instructions are added up: whether it has no file, the file, the number.
type LineKey<'a> = (bool, Option<&'a str>, Option<u32>);

/// The lines of all instructions, those without a line last.
fn source_lines(functions: &[Function]) -> Vec<SourceLine> {
    let mut sums: BTreeMap<LineKey, (u64, f64)> = BTreeMap::new();
    for (_, instruction) in functions.iter().flat_map(Function::instructions) {
        let file = instruction.file.as_deref();
        let sum = sums
            .entry((file.is_none(), file, instruction.line))
            .or_default();
        sum.0 = sum.0.saturating_add(instruction.executions);
        sum.1 += instruction.share;
    }
    let most = sums.iter().filter(|((none, _, _), _)| !none);
    let most = most.map(|(_, (executed, _))| *executed).max().unwrap_or(0);
    let lines = sums
        .iter()
        .map(|((_, file, line), (executed, share))| SourceLine {
            file: file.map(str::to_owned),
            line: *line,
            text: None,
            executed: *executed,
            share: *share,
            hottest: file.is_some() && *executed == most && most > 0,
        });
    lines.collect()
}

/// Remarks that are kept, at most: a unit of generated code has very many.
const MOST_REMARKS: usize = 200;

impl Listing {
    /// Adds what the optimiser says of the functions that ran.
    fn add_remarks(&mut self, records: &[String], called: &HashSet<&str>) {
        let functions = self.functions.iter();
        let names: BTreeMap<&str, &str> = functions
            .map(|f| (f.symbol.as_str(), f.name.as_str()))
            .collect();
        let name = |symbol: &str| names.get(plain(symbol)).map(|name| (*name).to_owned());
        let mut entries: Vec<_> = (records.iter())
            .flat_map(|text| record::entries(text))
            .collect();
        // Of functions without code in the unit many become instructions (sqrt), and the OpenMP runtime's are nobody's loss.
        entries.retain(|entry| {
            let callee = entry
                .piece("Callee")
                .filter(|_| entry.name == "NoDefinition");
            callee.is_none_or(|name| called.contains(name) && !name.starts_with("__kmpc_"))
        });
        let mut found = remarks::remarks(&entries, name);
        for remark in &mut found {
            remark.file = remark.file.take().map(|file| self.whole_name(file));
        }
        found.sort_by(|a, b| {
            let key = |r: &Remark| (r.file.is_none(), r.file.clone(), r.line);
            key(a).cmp(&key(b))
        });
        if found.len() > MOST_REMARKS {
            let more = found.len() - MOST_REMARKS;
            self.notes
                .push(format!("{more} more remarks of the optimiser are left out"));
            found.truncate(MOST_REMARKS);
        }
        self.remarks = found;
    }

    /// The file of the lines whose name ends in `file`: remarks name files as the compiler was given them.
    fn whole_name(&self, file: String) -> String {
        let files = self.lines.iter().filter_map(|line| line.file.as_deref());
        let mut ending = files.filter(|whole| Path::new(whole).ends_with(&file));
        ending.next().map(str::to_owned).unwrap_or(file)
    }

    /// Notes what ran outside the listed code.
    fn note_calls(&mut self, counted: &Counted) {
        let counts = &counted.counts;
        let names: Vec<String> = (counts.calls.iter().take(5))
            .map(|called| format!("{} ({} calls)", visible(&called.name), called.calls))
            .collect();
        let more = if counts.calls.len() > names.len() {
            ", ..."
        } else {
            ""
        };
        if !names.is_empty() {
            let names = names.join(", ");
            self.notes
                .push(format!("not listed, as they have no IR: {names}{more}"));
        }
        if self.lines.iter().all(|line| line.file.is_none()) {
            self.notes.push(
                "no instruction has a line: the build made no debug information, and the store has no lines of it; build again with \
                 `cere instrument`, or with -g"
                    .to_owned(),
            );
        }
    }

    /// Takes the text of each line from `text`.
    pub fn set_texts(&mut self, mut text: impl FnMut(&str, u32) -> Option<String>) {
        for line in &mut self.lines {
            if let (Some(file), Some(number)) = (&line.file, line.line) {
                line.text = text(file, number);
            }
        }
    }

    /// That lines have no text, if none has.
    #[must_use]
    pub fn missing_texts(&self) -> Option<String> {
        let mut known = self
            .lines
            .iter()
            .filter(|line| line.file.is_some())
            .peekable();
        let none = known.peek().is_some() && known.all(|line| line.text.is_none());
        none.then(|| {
            "the lines have no text: the store has no record of their files, or they are gone or unreadable".to_owned()
        })
    }

    /// Whether the region ended in another state.
    #[must_use]
    pub fn is_different(&self) -> bool {
        self.verdict == Verdict::Different
    }
}

//! Functions, blocks and instructions that ran, with their executions.

use crate::assembly::{self, Blocks, InLoop, Place};
use crate::codelet::Counted;
use crate::counts::plain;
use cere_format::count::{BLOCK, Code, SPILL, Segment};
use cere_format::untrusted::visible;
use cere_replay::names::demangle;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// An instruction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Instruction {
    /// Its text; LLVM's name of it where the text is not known.
    pub text: String,
    /// LLVM's name of it.
    pub name: String,
    /// File that it comes from; none if that is not known.
    pub file: Option<String>,
    /// Line.
    pub line: Option<u32>,
    /// How often it ran.
    pub executions: u64,
    /// Its share of all executed instructions.
    pub share: f64,
    /// Whether it reaches a slot that the register allocator made.
    pub spill: bool,
}

/// A block of machine code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// LLVM's number of it.
    pub number: u32,
    /// How often it was entered.
    pub executions: u64,
    /// The first block of the innermost loop that it is in.
    pub loop_header: Option<u32>,
    /// Loops around it.
    pub loop_depth: u32,
    /// Whether it is in the hottest loop.
    pub hottest: bool,
    /// Its instructions.
    pub instructions: Vec<Instruction>,
}

/// A function that ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Function {
    /// Its name in the source, or of the region.
    pub name: String,
    /// Its symbol.
    pub symbol: String,
    /// Whether it is the region's own.
    pub region: bool,
    /// Executed instructions.
    pub executed: u64,
    /// Their share of all.
    pub share: f64,
    /// Its blocks, in the order of the machine code.
    pub blocks: Vec<Block>,
}

impl Function {
    /// Its instructions, each with its block.
    pub fn instructions(&self) -> impl Iterator<Item = (&Block, &Instruction)> + Clone {
        let blocks = self.blocks.iter();
        blocks.flat_map(|block| block.instructions.iter().map(move |i| (block, i)))
    }
}

/// What the compiler printed of the code: as it is timed, and with lines, which may be other code.
pub struct Texts<'a> {
    /// As it is timed.
    pub timed: &'a Blocks,
    /// With lines.
    pub lined: &'a Blocks,
}

impl Texts<'_> {
    /// The block as it is timed; none if its instructions are not the `size` that were counted: where one is printed as
    /// several, which is which is not known.
    fn text(&self, function: &str, number: u32, size: usize) -> Option<&assembly::Block> {
        let found = self.timed.get(function, number)?;
        (found.instructions.len() == size).then_some(found)
    }

    /// The places of the instructions of a block that is printed as `block`: none if the code with lines is other there.
    fn places(
        &self,
        function: &str,
        number: u32,
        block: &assembly::Block,
    ) -> Option<Vec<Option<&Place>>> {
        let lined = self.lined.get(function, number)?;
        let both = lined.instructions.iter().zip(&block.instructions);
        let same = lined.instructions.len() == block.instructions.len()
            && both
                .into_iter()
                .all(|(a, b)| mnemonic(&a.text) == mnemonic(&b.text));
        same.then(|| {
            lined
                .instructions
                .iter()
                .map(|i| i.place.as_ref())
                .collect()
        })
    }
}

/// An instruction's text without tabs and what a terminal would obey: names in it may be a stranger's.
fn plain_text(text: &str) -> String {
    let lines = text.lines().map(|line| visible(&line.replace('\t', " ")));
    lines.collect::<Vec<_>>().join("; ")
}

fn mnemonic(text: &str) -> Option<&str> {
    text.split_whitespace().next()
}

/// The region's own function.
pub struct Region<'a> {
    /// Id of its unit.
    pub unit: &'a str,
    /// Its symbol there.
    pub symbol: String,
}

/// The functions that ran, the region's own first, then by what they executed.
pub fn functions(counted: &Counted, texts: &Texts, region: &Region) -> Vec<Function> {
    let code = &counted.code;
    let all = counted.tally.instructions(code).max(1);
    let builder = Builder {
        code,
        times: &counted.tally.segments,
        texts,
        all: all as f64,
    };
    let mut found: Vec<Function> = (code.functions.iter())
        .filter_map(|function| builder.function(function, region))
        .collect();
    found.sort_by_key(|f| (!f.region, std::cmp::Reverse(f.executed)));
    found
}

struct Builder<'a> {
    code: &'a Code,
    times: &'a [u64],
    texts: &'a Texts<'a>,
    /// Executed instructions.
    all: f64,
}

impl Builder<'_> {
    /// A function; none if it did not run.
    fn function(
        &self,
        function: &cere_format::count::Function,
        region: &Region,
    ) -> Option<Function> {
        let segments = function.segments.0 as usize..function.segments.1 as usize;
        let ran = |segment: usize| self.times[segment] > 0;
        if !segments.clone().any(ran) {
            return None;
        }
        let mut blocks = Vec::new();
        let mut at = segments.start;
        while at < segments.end {
            let begins = |segment: &usize| self.code.segments[*segment].is(BLOCK);
            let next = (at + 1..segments.end).find(begins).unwrap_or(segments.end);
            blocks.push(self.block(function, at..next));
            at = next;
        }
        let instructions = blocks.iter().flat_map(|block: &Block| &block.instructions);
        let executed = instructions.fold(0u64, |sum, i| sum.saturating_add(i.executions));
        let symbol = plain(&function.name);
        let own = symbol == region.symbol && function.unit == region.unit;
        Some(Function {
            name: match own {
                true => "the region".to_owned(),
                false => visible(&demangle(symbol)),
            },
            symbol: visible(symbol),
            region: own,
            executed,
            share: executed as f64 / self.all,
            blocks,
        })
    }

    fn block(
        &self,
        function: &cere_format::count::Function,
        segments: std::ops::Range<usize>,
    ) -> Block {
        let own = &self.code.segments[segments.clone()];
        let number = own.first().map_or(0, |segment| segment.block);
        let size = own.iter().map(|segment| segment.instructions.len()).sum();
        let text = self.texts.text(&function.name, number, size);
        let places = text.and_then(|text| self.texts.places(&function.name, number, text));
        let mut instructions = Vec::with_capacity(size);
        for (segment, &times) in own.iter().zip(&self.times[segments.clone()]) {
            for index in 0..segment.instructions.len() {
                let mut instruction = self.instruction(segment, index, times);
                let at = instructions.len();
                if let Some(text) = text {
                    instruction.text = plain_text(&text.instructions[at].text);
                }
                if let Some(place) = places.as_ref().and_then(|places| places[at]) {
                    instruction.file = Some(visible(&place.file.to_string_lossy()));
                    instruction.line = Some(place.line);
                }
                instructions.push(instruction);
            }
        }
        let in_loop: Option<InLoop> = text.and_then(|text| text.in_loop);
        Block {
            number,
            executions: self.times.get(segments.start).copied().unwrap_or(0),
            loop_header: in_loop.map(|l| l.header),
            loop_depth: in_loop.map_or(0, |l| l.depth),
            hottest: false,
            instructions,
        }
    }

    /// An instruction of a segment, without text and place.
    fn instruction(&self, segment: &Segment, index: usize, times: u64) -> Instruction {
        let name = self.code.name(segment.instructions[index].name);
        let mut accesses = segment.accesses.iter();
        Instruction {
            text: name.to_owned(),
            name: name.to_owned(),
            file: None,
            line: None,
            executions: times,
            share: times as f64 / self.all,
            spill: accesses.any(|a| usize::from(a.instruction) == index && a.is(SPILL)),
        }
    }
}

/// The loop that executed most, among those that are the innermost of some block: function, first block.
pub fn hottest(functions: &[Function]) -> Option<(usize, u32)> {
    let mut executed: HashMap<(usize, u32), u64> = HashMap::new();
    for (index, function) in functions.iter().enumerate() {
        for (block, instruction) in function.instructions() {
            if let Some(header) = block.loop_header {
                *executed.entry((index, header)).or_default() += instruction.executions;
            }
        }
    }
    let most = executed.into_iter().filter(|(_, executed)| *executed > 0);
    // The first one of equals.
    let most = most.max_by_key(|(place, executed)| (*executed, std::cmp::Reverse(*place)));
    most.map(|(place, _)| place)
}

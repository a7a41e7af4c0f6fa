//! Pieces of code to cycles.

use super::error::ModelError;
use super::processor::Processor;
use crate::mca::{self, is_modelled};
use cere_arch::target::Target;
use cere_sandbox::Sandbox;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

/// Share of the executed instructions that is looked for.
const WANTED: f64 = 0.9999;
/// Pieces, at most.
const MOST: usize = 2000;
/// Instructions of a loop with the loops inside it written out, at most: more than any processor looks ahead.
const WRITTEN_OUT: usize = 600;
/// Share of its iterations by which a loop may run more or less often each time, to be written out.
const UNEVEN: f64 = 0.05;

/// A straight piece of code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Its instructions.
    pub lines: Vec<String>,
    /// How often it ran.
    pub times: u64,
    /// Instructions that it executed, those of the loops inside it as often as they ran.
    pub executed: u64,
}

/// What ran.
#[derive(Debug)]
pub struct Code {
    /// Executed pieces, as they follow one another in the code.
    pub pieces: Vec<Piece>,
    /// Executed instructions, those whose text is not known among them.
    pub executed: f64,
    /// Invocations of the region.
    pub invocations: f64,
    /// Names of the codelet's own functions.
    pub functions: HashSet<String>,
}

/// What the model says of all invocations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Cycles.
    pub cycles: f64,
    /// Share of the executed instructions that it knows.
    pub coverage: f64,
}

/// Whether nothing runs on from an instruction to the next one in the code.
fn leaves(target: Target, line: &str) -> bool {
    let mnemonic = line.split_whitespace().next().unwrap_or_default();
    match target {
        Target::Aarch64 => ["b", "br", "ret"].contains(&mnemonic),
        _ => mnemonic.starts_with("jmp") || mnemonic.starts_with("ret"),
    }
}

/// Pieces that run on into one another are one: a branch that is not taken between them ends no iteration.
fn joined(pieces: &[Piece], target: Target) -> Vec<Piece> {
    let mut all: Vec<Piece> = Vec::new();
    for piece in pieces {
        let before = all.last_mut().filter(|before| {
            let last = before.lines.last();
            before.times == piece.times && last.is_none_or(|line| !leaves(target, line))
        });
        match before {
            Some(before) => {
                before.lines.extend(piece.lines.iter().cloned());
                before.executed += piece.executed;
            }
            None => all.push(piece.clone()),
        }
    }
    all
}

/// Iterations of the loop `inner` in each run of the piece before it, which the piece after it follows; none if it is no such loop, or
/// its iterations are too many or too uneven to be written out.
fn iterations([before, inner, after]: [&Piece; 3], target: Target) -> Option<usize> {
    let around = before.times == after.times && before.times < inner.times;
    let left = |piece: &Piece| piece.lines.last().is_some_and(|line| leaves(target, line));
    if !around || left(before) || left(inner) {
        return None;
    }
    let each = inner.times as f64 / before.times as f64;
    let lines = each * inner.lines.len() as f64 + (before.lines.len() + after.lines.len()) as f64;
    let even = (each - each.round()).abs() <= UNEVEN * each;
    (even && lines <= WRITTEN_OUT as f64).then(|| each.round() as usize)
}

/// Pieces with short loops written out in the loop around them, so that the model sees what overlaps: a processor begins the next run of
/// a short loop before the last one ends.
fn written_out(pieces: &[Piece], target: Target) -> Vec<Piece> {
    let mut all = joined(pieces, target);
    loop {
        let three = |at: usize| [&all[at - 1], &all[at], &all[at + 1]];
        let mut inner = 1..all.len().saturating_sub(1);
        let found = inner.find_map(|at| Some((at, iterations(three(at), target)?)));
        let Some((at, times)) = found else {
            return all;
        };
        let body = vec![all[at].lines.as_slice(); times].concat();
        let [first, second, third] = three(at);
        let lines = [&first.lines[..], &body, &third.lines].concat();
        let whole = Piece {
            lines,
            times: first.times,
            executed: first.executed + second.executed + third.executed,
        };
        all.splice(at - 1..=at + 1, [whole]);
        all = joined(&all, target);
    }
}

impl Piece {
    /// A piece without loops inside.
    pub fn new(lines: Vec<String>, times: u64) -> Self {
        Self {
            executed: times.saturating_mul(lines.len() as u64),
            lines,
            times,
        }
    }

    fn modelled(&self, target: Target) -> impl Iterator<Item = &str> {
        let lines = self.lines.iter().map(String::as_str);
        lines.filter(move |line| is_modelled(target, line))
    }
}

impl Code {
    /// Functions outside of the codelet, and calls of them: the most frequent first.
    pub fn calls(&self, target: Target) -> Vec<(String, u64)> {
        let mut calls: BTreeMap<String, u64> = BTreeMap::new();
        for piece in &self.pieces {
            for line in &piece.lines {
                if let Some(name) = called(target, line).filter(|n| !self.functions.contains(*n)) {
                    *calls.entry(name.to_owned()).or_default() += piece.times;
                }
            }
        }
        let mut calls: Vec<(String, u64)> = calls.into_iter().collect();
        calls.sort_by_key(|(_, times)| Reverse(*times));
        calls
    }
}

/// The function that an instruction calls, or jumps to as its last act.
fn called(target: Target, line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let (mnemonic, operand) = (words.next()?, words.next().unwrap_or_default());
    let (call, jump) = match target {
        Target::Aarch64 => (["bl", "blr"].contains(&mnemonic), mnemonic == "b"),
        _ => (mnemonic.starts_with("call"), mnemonic.starts_with("jmp")),
    };
    let last = jump && !operand.starts_with(['.', '*']);
    let indirect = mnemonic == "blr" || operand.starts_with('*');
    let call = call || last;
    call.then(|| match indirect {
        true => "what a pointer names",
        false => operand.trim_matches('"').trim_end_matches("@PLT"),
    })
}

/// Asks the model about the pieces of `code`; `directory` takes the file for the tool.
pub fn cost(
    code: &Code,
    processor: &Processor,
    directory: &Path,
    sandbox: &Sandbox,
    codelet: &str,
) -> Result<Cost, ModelError> {
    let target = processor.target;
    let mut pieces = written_out(&code.pieces, target);
    let wanted = WANTED * code.executed;
    mca::keep_most_executed(&mut pieces, |piece| piece.executed, wanted, MOST);
    let bare = |piece: &Piece| piece.modelled(target).next().is_none();
    let free: u64 = pieces.iter().filter(|p| bare(p)).map(|p| p.executed).sum();
    pieces.retain(|piece| !bare(piece));
    let printed = mca::ask(
        (target, &processor.name),
        pieces.iter().map(|piece| piece.modelled(target)),
        directory,
        sandbox,
        codelet,
    )?;
    let (cycles, known) = add_up([&printed[0], &printed[1]], &pieces, target)?;
    Ok(Cost {
        cycles,
        coverage: (known + free as f64) / code.executed.max(1.0),
    })
}

/// Cycles and executed instructions of what was printed for the two numbers of [`ITERATIONS`]; pieces of which it left out an
/// instruction do not count.
fn add_up(printed: [&str; 2], pieces: &[Piece], target: Target) -> Result<(f64, f64), ModelError> {
    let (_, both) = mca::both(printed, pieces.len()).map_err(ModelError::Printed)?;
    let (mut cycles, mut known) = (0.0, 0.0);
    for of in both {
        let piece = &pieces[of.place];
        if of.long.instructions.len() != piece.modelled(target).count() {
            continue;
        }
        let executed = piece.executed as f64;
        // A loop that is written out may run a little more or less often.
        cycles += of.cycles * executed / piece.lines.len().max(1) as f64;
        known += executed;
    }
    Ok((cycles, known))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Target::{Aarch64, X86_64};

    fn piece(lines: &[&str], times: u64) -> Piece {
        Piece::new(lines.iter().map(|line| (*line).to_owned()).collect(), times)
    }

    #[test]
    fn what_runs_on_is_one_piece() {
        let pieces = [
            piece(&["ldr\tx0, [x1]", "cbz\tx0, .LBB0_4"], 10),
            piece(&["add\tx2, x2, x0", "b\t.LBB0_1"], 10),
            piece(&["nop"], 10),
            piece(&["nop"], 1),
        ];
        let all = joined(&pieces, Aarch64);
        let lines: Vec<usize> = all.iter().map(|p| p.lines.len()).collect();
        assert_eq!(lines, [4, 1, 1]);
    }

    #[test]
    fn short_loops_are_written_out() {
        let nest = |inner| {
            [
                piece(&["movi\td0, #0"], 10),
                piece(
                    &["ldr\td1, [x1], #8", "fadd\td0, d0, d1", "b.ne\t.LBB0_2"],
                    inner,
                ),
                piece(&["str\td0, [x2], #8", "b.ne\t.LBB0_1"], 10),
            ]
        };
        let all = written_out(&nest(40), Aarch64);
        assert_eq!((all.len(), all[0].lines.len(), all[0].times), (1, 15, 10));
        assert_eq!(all[0].executed, 150);
        // Of 41 iterations one more is a little, of 45 half a one is not; of too many none is written out.
        assert_eq!(written_out(&nest(41), Aarch64).len(), 1);
        assert_eq!(written_out(&nest(45), Aarch64).len(), 3);
        assert_eq!(written_out(&nest(10_000), Aarch64).len(), 3);
    }

    #[test]
    fn calls_of_others_are_named() {
        let code = Code {
            pieces: vec![
                piece(&["bl\texp", "bl\town"], 3),
                piece(&["blr\tx8", "bl\texp"], 2),
            ],
            executed: 10.0,
            invocations: 1.0,
            functions: HashSet::from(["own".to_owned()]),
        };
        let named = |name: &str, times| (name.to_owned(), times);
        assert_eq!(
            code.calls(Aarch64),
            [named("exp", 5), named("what a pointer names", 2)]
        );
        assert_eq!(called(X86_64, "callq\tmemset@PLT"), Some("memset"));
        assert_eq!(called(X86_64, "callq\t*%rax"), Some("what a pointer names"));
        assert_eq!(called(X86_64, "cltq"), None);
        assert_eq!(called(X86_64, "jmp\tmemset@PLT"), Some("memset"));
        assert_eq!(called(X86_64, "jmpq\t*(%rax,%rcx,8)"), None);
        assert_eq!(called(Aarch64, "b\tmemset"), Some("memset"));
        assert_eq!(called(Aarch64, "b\t.LBB0_1"), None);
    }
}

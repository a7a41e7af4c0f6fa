//! Counters in assembly of AArch64: how often each piece of the very code that is modelled runs. They change no register and no flag,
//! and use the stack below the code's, which nothing else does there.

use super::cost::{Code, Piece};
use super::error::ModelError;
use cere_format::abi::INVOKE_SYMBOL_PREFIX;
use cere_replay::{Options, Replay, edited};
use cere_toolchain::io;
use std::collections::HashSet;
use std::fmt::Write;
use std::path::Path;

/// Bytes that the counters' memory is a multiple of: the largest page.
const PAGE: usize = 0x1_0000;
/// Where the counters are.
const COUNTERS: &str = "cere_model_counters";

/// What is executed as a whole: a block up to its first conditional branch, or what follows that.
#[derive(Debug, PartialEq, Eq)]
struct Segment {
    function: String,
    lines: Vec<String>,
}

/// An instruction without its comment; none if the line has none.
fn instruction(line: &str) -> Option<&str> {
    let text = line.split("//").next().unwrap_or_default().trim();
    let is = line.starts_with(char::is_whitespace) && !text.is_empty();
    (is && !text.starts_with('.') && !text.ends_with(':')).then_some(text)
}

/// The function whose label a line is.
fn function(line: &str) -> Option<&str> {
    let (name, _) = match line.strip_prefix('"') {
        Some(quoted) => quoted.split_once("\":")?,
        None => line.split_once(':')?,
    };
    let is = !name.starts_with(|c: char| c.is_whitespace() || c == '/') && !name.starts_with(".L");
    is.then_some(name)
}

/// Whether what follows an instruction may run less often.
fn parts(instruction: &str) -> bool {
    let mnemonic = instruction.split_whitespace().next().unwrap_or_default();
    mnemonic.starts_with("b.")
        || mnemonic.starts_with("bc.")
        || mnemonic.starts_with("cb")
        || ["tbz", "tbnz"].contains(&mnemonic)
}

/// `text` with counters; what they count is added to `segments`.
fn counted(text: &str, segments: &mut Vec<Segment>) -> String {
    let mut out = String::new();
    let mut at = String::new();
    let mut begins = true;
    for line in text.lines() {
        if let Some(name) = function(line) {
            name.clone_into(&mut at);
            begins = true;
        } else if line.starts_with(".LBB") || line.starts_with("// %bb.") {
            begins = true;
        } else if let Some(instruction) = instruction(line) {
            if begins {
                count(&mut out, segments.len());
                segments.push(Segment {
                    function: at.clone(),
                    lines: Vec::new(),
                });
            }
            if let Some(segment) = segments.last_mut() {
                segment.lines.push(instruction.to_owned());
            }
            begins = parts(instruction);
        }
        out += line;
        out.push('\n');
    }
    out
}

/// Writes the code of counter `number`.
fn count(out: &mut String, number: usize) {
    let at = format!("{COUNTERS}+{}", 8 * number);
    let _ = write!(
        out,
        "\tstp\tx16, x17, [sp, #-16]!\n\tadrp\tx16, {at}\n\tldr\tx17, [x16, :lo12:{at}]\n\tadd\tx17, x17, #1\n\
         \tstr\tx17, [x16, :lo12:{at}]\n\tldp\tx16, x17, [sp], #16\n"
    );
}

/// Assembly that has memory of `bytes` for counters and, before all else, puts `file` there.
fn memory(bytes: usize, file: &str) -> String {
    let (open, map, close) = (56, 222, 57);
    format!(
        "\t.section\t.bss.{COUNTERS},\"aw\",@nobits\n\t.p2align\t16\n\t.globl\t{COUNTERS}\n\t.hidden\t{COUNTERS}\n{COUNTERS}:\n\t.zero\t{bytes}\n\
         \t.section\t.init_array,\"aw\",@init_array\n\t.p2align\t3\n\t.xword\t.Lcere_model_open\n\
         \t.section\t.rodata.cere_model_file,\"a\",@progbits\n.Lcere_model_file:\n\t.asciz\t\"{file}\"\n\
         \t.section\t.text.cere_model_open,\"ax\",@progbits\n\t.p2align\t3\n.Lcere_model_open:\n\
         \tmov\tx0, #-100\n\tadrp\tx1, .Lcere_model_file\n\tadd\tx1, x1, :lo12:.Lcere_model_file\n\tmov\tx2, #2\n\tmov\tx3, #0\n\
         \tmov\tx8, #{open}\n\tsvc\t#0\n\ttbnz\tx0, #63, .Lcere_model_failed\n\tmov\tx4, x0\n\
         \tadrp\tx0, {COUNTERS}\n\tadd\tx0, x0, :lo12:{COUNTERS}\n\tldr\tx1, .Lcere_model_bytes\n\tmov\tx2, #3\n\tmov\tx3, #17\n\tmov\tx5, #0\n\
         \tmov\tx8, #{map}\n\tsvc\t#0\n\ttbnz\tx0, #63, .Lcere_model_failed\n\tmov\tx0, x4\n\tmov\tx8, #{close}\n\tsvc\t#0\n\tret\n\
         .Lcere_model_failed:\n\tbrk\t#1\n\t.p2align\t3\n.Lcere_model_bytes:\n\t.xword\t{bytes}\n"
    )
}

/// Runs the package in `package` with counters; their file lies in `directory`.
pub fn run(
    package: &Path,
    directory: &Path,
    options: &Options,
) -> Result<(Replay, Code), ModelError> {
    let mut segments = Vec::new();
    let mut invoke = String::new();
    let directory = std::fs::canonicalize(directory).map_err(io("open", directory))?;
    let file = directory.join("counters");
    let mut failed = None;
    let replay = edited::replay(
        package,
        |manifest, texts| {
            invoke = format!("{INVOKE_SYMBOL_PREFIX}{}", manifest.region.index);
            for text in texts.iter_mut() {
                *text = counted(text, &mut segments);
            }
            let bytes = (8 * segments.len()).next_multiple_of(PAGE).max(PAGE);
            let path = file.display().to_string();
            let path = path.replace('\\', "\\\\").replace('"', "\\\"");
            if let Some(first) = texts.first_mut() {
                *first += &memory(bytes, &path);
            }
            failed = std::fs::write(&file, vec![0; bytes]).err();
        },
        &file,
        options,
    );
    if let Some(error) = failed {
        return Err(io("write", &file)(error).into());
    }
    let replay = replay?;
    let bytes = std::fs::read(&file).map_err(io("read", &file))?;
    let words = bytes.as_chunks::<8>().0.iter();
    let times: Vec<u64> = words.map(|word| u64::from_le_bytes(*word)).collect();
    Ok((replay, code(&segments, &times, &invoke)?))
}

/// What ran, by the counters; `invoke` is the function that each invocation begins with.
fn code(segments: &[Segment], times: &[u64], invoke: &str) -> Result<Code, ModelError> {
    let own = |name: &str| name == invoke || name.ends_with(&format!(".{invoke}"));
    let entry = segments.iter().position(|s| own(&s.function));
    let invocations = entry.and_then(|entry| times.get(entry)).copied();
    let invocations = invocations.filter(|times| *times > 0);
    let pieces = segments.iter().zip(times);
    let pieces = pieces.map(|(segment, times)| Piece::new(segment.lines.clone(), *times));
    let pieces: Vec<Piece> = pieces.filter(|piece| piece.times > 0).collect();
    let executed = pieces.iter().map(|p| p.times as f64 * p.lines.len() as f64);
    let functions: HashSet<String> = segments.iter().map(|s| s.function.clone()).collect();
    Ok(Code {
        executed: executed.sum(),
        invocations: invocations.ok_or(ModelError::Nothing)? as f64,
        pieces,
        functions,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_stand_where_pieces_begin() {
        let text = "\t.text\n\t.globl\tcere.invoke.3\ncere.invoke.3:                 // @f\n\t.cfi_startproc\n// %bb.0:\n\tmov\tx8, #1 // =0x1\n\
                    .LBB0_1:                 // =>This\n.Ltmp3:\n\tldr\td0, [x0], #8\n\tcbz\tx8, .LBB0_3\n\tsubs\tx8, x8, #1\n\tb.ne\t.LBB0_1\n\
                    .LBB0_3:\n\tbl\texp\n\tret\n.Lfunc_end0:\n\t.xword\t3\nvalue:\n\t.word\t7\n";
        let mut segments = Vec::new();
        let made = counted(text, &mut segments);
        let lines: Vec<String> = segments.iter().map(|s| s.lines.join("; ")).collect();
        assert_eq!(
            lines,
            [
                "mov\tx8, #1",
                "ldr\td0, [x0], #8; cbz\tx8, .LBB0_3",
                "subs\tx8, x8, #1; b.ne\t.LBB0_1",
                "bl\texp; ret"
            ]
        );
        assert!(made.contains(".Ltmp3:\n\tstp\tx16"), "{made}");
        assert_eq!(made.matches("ldp\tx16").count(), 4);
        let code = code(&segments, &[2, 20, 18, 2, 0], "cere.invoke.3").expect("counts");
        assert_eq!(code.invocations, 2.0);
        assert_eq!(code.executed, 82.0);
        assert!(super::code(&segments, &[0; 4], "cere.invoke.3").is_err());
    }
}

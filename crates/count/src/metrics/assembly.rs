//! The text of the machine code: what the compiler prints for each block.

use std::collections::HashMap;

/// Instructions of each block (a piece of inline assembly is one), by function and LLVM's number of the block.
#[derive(Debug, Default)]
pub struct Blocks {
    blocks: HashMap<(String, u32), Vec<String>>,
}

/// The number of the block that begins with `line`: `.LBB3_7:` or `# %bb.7:`.
fn block(line: &str) -> Option<u32> {
    let digits = |text: &str| {
        let (number, _) = text.split_once(':')?;
        number.parse().ok()
    };
    if let Some(rest) = line.strip_prefix("# %bb.") {
        return digits(rest);
    }
    let rest = line.strip_prefix(".LBB")?;
    digits(rest.split_once('_')?.1)
}

/// The name of the function that begins with `line`; none if it is another line.
fn function(line: &str) -> Option<&str> {
    let (name, rest) = match line.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"')?,
        None => line.split_at(line.find(':')?),
    };
    rest.starts_with(':').then_some(name)
}

/// An instruction without its comment; `#` is in no operand. None if the line has none.
fn instruction(line: &str) -> Option<String> {
    let text = line.split('#').next().unwrap_or_default().trim();
    let is = !text.is_empty() && !text.starts_with('.') && !text.ends_with(':');
    // A prefix is printed as an instruction of its own, and read as one.
    is.then(|| match text.split_once(';') {
        Some((prefix @ ("rep" | "repne" | "lock"), rest)) => format!("{prefix} {rest}"),
        _ => text.to_owned(),
    })
}

impl Blocks {
    /// Adds what the compiler printed for a unit: of the functions that `wanted` accepts.
    pub fn add(&mut self, text: &str, wanted: impl Fn(&str) -> bool) {
        let mut at: Option<(String, u32)> = None;
        // What a piece of inline assembly holds so far: it is one instruction, of any number of lines.
        let mut inline: Option<Vec<String>> = None;
        for line in text.lines() {
            match line.trim() {
                "#APP" => {
                    inline = Some(Vec::new());
                    continue;
                }
                "#NO_APP" => {
                    if let (Some(place), Some(lines)) = (&at, inline.take()) {
                        let block = self.blocks.entry(place.clone()).or_default();
                        block.push(lines.join("\n"));
                    }
                    continue;
                }
                _ => {}
            }
            if let Some(lines) = &mut inline {
                lines.extend(instruction(line));
            } else if let Some(number) = block(line) {
                if let Some((_, block)) = &mut at {
                    *block = number;
                }
            } else if line.starts_with(char::is_whitespace) {
                if let (Some(place), Some(instruction)) = (&at, instruction(line)) {
                    let block = self.blocks.entry(place.clone()).or_default();
                    block.push(instruction);
                }
            } else if let Some(name) = function(line).filter(|name| wanted(name)) {
                at = Some((name.to_owned(), 0));
            } else if line.starts_with(".Lfunc_end") {
                at = None;
            }
        }
    }

    /// The instructions of a block.
    #[must_use]
    pub fn get(&self, function: &str, block: u32) -> Option<&[String]> {
        let found = self.blocks.get(&(function.to_owned(), block))?;
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::Blocks;

    #[test]
    fn blocks_of_functions() {
        let text = "\t.text\n\t.globl\tgath\ngath:                 # @gath\n\t.cfi_startproc\n# %bb.0:\n\ttestl\t%edi, %edi\n\
                    \tjle\t.LBB2_1\n# %bb.3:\n\tvmovsd\t.LCPI2_0(%rip), %xmm1           # xmm1 = [-1.0E+0,0.0E+0]\n\t.p2align\t4\n\
                    .LBB2_6:                 #   in Loop\n.Ltmp3:\n\tvdivsd\t(%rdx,%rsi), %xmm1, %xmm2\n\t#APP\nlabel:\n\tnop\n\tpause # twice\n\t#NO_APP\n\t#APP\n\t#NO_APP\n\trep;movsb (%rsi), %es:(%rdi)\n\
                    .LBB2_1:\n\tretq\n.Lfunc_end2:\n\t.quad\t3\n\"odd name\":\n\tmovl %eax, %eax\n\"a$b\":\n\tud2\n.LJTI0_0:\n";
        let mut blocks = Blocks::default();
        blocks.add(text, |name| ["gath", "a$b"].contains(&name));
        let get = |f: &str, b| blocks.get(f, b).map(|found| found.join("|"));
        assert_eq!(
            get("gath", 0).as_deref(),
            Some("testl\t%edi, %edi|jle\t.LBB2_1")
        );
        assert_eq!(
            get("gath", 3).as_deref(),
            Some("vmovsd\t.LCPI2_0(%rip), %xmm1")
        );
        assert_eq!(
            get("gath", 6).as_deref(),
            Some("vdivsd\t(%rdx,%rsi), %xmm1, %xmm2|nop\npause||rep movsb (%rsi), %es:(%rdi)")
        );
        assert_eq!(get("gath", 1).as_deref(), Some("retq"));
        assert_eq!(get("a$b", 0).as_deref(), Some("ud2"));
        assert_eq!(get("gath", 2), None);
    }
}

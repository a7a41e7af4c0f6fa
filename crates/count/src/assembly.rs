//! The text of the machine code: what the compiler prints for each block, with the places in the source where it has them.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

/// A place in a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file, as the compiler names it; relative to the compiler's directory if that is not known.
    pub file: Rc<Path>,
    /// Line, from 1.
    pub line: u32,
}

/// An instruction; a piece of inline assembly is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// Its text, without comments.
    pub text: String,
    /// Where in the source it comes from.
    pub place: Option<Place>,
}

/// The loop that a block is in, the innermost one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InLoop {
    /// LLVM's number of its first block.
    pub header: u32,
    /// Loops around the block, this one included.
    pub depth: u32,
}

/// A block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Block {
    /// Its instructions.
    pub instructions: Vec<Instruction>,
    /// The loop that it is in.
    pub in_loop: Option<InLoop>,
}

/// Blocks, by function and LLVM's number of the block.
#[derive(Debug, Default)]
pub struct Blocks {
    blocks: HashMap<String, HashMap<u32, Block>>,
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

/// The loop that a comment names, in block `number`: `=>This Inner Loop Header: Depth=1` or `in Loop: Header=BB1_6 Depth=1`.
fn in_loop(line: &str, number: u32) -> Option<InLoop> {
    let (_, comment) = line.split_once('#')?;
    let (before, depth) = comment.rsplit_once("Depth=")?;
    let depth = depth.trim().parse().ok()?;
    let header = match before.split_once("in Loop: Header=BB") {
        Some((_, header)) => header.trim().split_once('_')?.1.parse().ok()?,
        None if before.contains("Loop Header:") => number,
        None => return None,
    };
    Some(InLoop { header, depth })
}

/// The quoted words of a directive; `\` escapes a quotation mark and itself.
fn quoted(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut open: Option<String> = None;
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match (&mut open, c) {
            (None, '"') => open = Some(String::new()),
            (None, _) => {}
            (Some(_), '"') => words.extend(open.take()),
            (Some(word), '\\') => word.extend(characters.next()),
            (Some(word), c) => word.push(c),
        }
    }
    words
}

/// `path` without `.` and `..` between its parts.
fn direct(path: &Path) -> PathBuf {
    let mut found = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir if found.file_name().is_some() => drop(found.pop()),
            Component::CurDir => {}
            part => found.push(part),
        }
    }
    found
}

/// The files that a unit's directives number.
#[derive(Default)]
struct Files {
    files: HashMap<u32, Rc<Path>>,
    /// The compiler's directory.
    directory: PathBuf,
}

impl Files {
    /// Reads `.file NUMBER ["DIRECTORY"] "NAME"`.
    fn add(&mut self, line: &str) -> Option<()> {
        let rest = line.trim_start().strip_prefix(".file")?.trim_start();
        let (number, names) = rest.split_once(char::is_whitespace)?;
        let number: u32 = number.parse().ok()?;
        let path = match &quoted(names)[..] {
            [directory, name, ..] => {
                if number == 0 {
                    self.directory = PathBuf::from(directory);
                }
                Path::new(directory).join(name)
            }
            [name] => PathBuf::from(name),
            [] => return None,
        };
        let path = direct(&self.directory.join(path));
        self.files.insert(number, path.into());
        Some(())
    }

    /// What `.loc FILE LINE COLUMN` says; the inner option is none where the compiler knows no line.
    fn place(&self, line: &str) -> Option<Option<Place>> {
        let rest = line.trim_start().strip_prefix(".loc")?;
        let mut numbers = rest.split_whitespace().map(str::parse::<u32>);
        let (file, line) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        let file = self.files.get(&file).filter(|_| line > 0);
        Some(file.map(|file| Place {
            file: file.clone(),
            line,
        }))
    }
}

/// What was read of a unit so far.
#[derive(Default)]
struct Reader {
    files: Files,
    at: Option<(String, u32)>,
    place: Option<Place>,
    /// What a piece of inline assembly holds so far: it is one instruction, of any number of lines.
    inline: Option<Vec<String>>,
}

impl Reader {
    /// The block that is being read.
    fn block<'a>(&self, blocks: &'a mut Blocks) -> Option<&'a mut Block> {
        let (function, number) = self.at.as_ref()?;
        if !blocks.blocks.contains_key(function) {
            blocks.blocks.insert(function.clone(), HashMap::new());
        }
        Some(blocks.blocks.get_mut(function)?.entry(*number).or_default())
    }

    fn push(&self, blocks: &mut Blocks, text: String) {
        let place = self.place.clone();
        if let Some(block) = self.block(blocks) {
            block.instructions.push(Instruction { text, place });
        }
    }

    fn line(&mut self, line: &str, blocks: &mut Blocks, wanted: &impl Fn(&str) -> bool) {
        match line.trim() {
            "#APP" => return self.inline = Some(Vec::new()),
            "#NO_APP" => {
                if let Some(lines) = self.inline.take() {
                    self.push(blocks, lines.join("\n"));
                }
                return;
            }
            _ => {}
        }
        if let Some(lines) = &mut self.inline {
            lines.extend(instruction(line));
        } else if let Some(number) = block(line) {
            if let Some((_, block)) = &mut self.at {
                *block = number;
            }
            self.note_loop(line, blocks);
        } else if line.starts_with(char::is_whitespace) {
            match instruction(line) {
                Some(text) => self.push(blocks, text),
                None => self.directive(line, blocks),
            }
        } else if let Some(name) = function(line).filter(|name| wanted(name)) {
            self.at = Some((name.to_owned(), 0));
            self.place = None;
        } else if line.starts_with(".Lfunc_end") {
            self.at = None;
        }
    }

    fn note_loop(&self, line: &str, blocks: &mut Blocks) {
        let number = self.at.as_ref().map(|(_, number)| *number);
        let found = number.and_then(|number| in_loop(line, number));
        if let (Some(found), Some(block)) = (found, self.block(blocks)) {
            block.in_loop = Some(found);
        }
    }

    /// A line without an instruction.
    fn directive(&mut self, line: &str, blocks: &mut Blocks) {
        if let Some(place) = self.files.place(line) {
            self.place = place;
        } else if self.files.add(line).is_none() && line.trim_start().starts_with('#') {
            self.note_loop(line, blocks);
        }
    }
}

impl Blocks {
    /// Adds what the compiler printed for a unit: of the functions that `wanted` accepts.
    pub fn add(&mut self, text: &str, wanted: impl Fn(&str) -> bool) {
        let mut reader = Reader::default();
        for line in text.lines() {
            reader.line(line, self, &wanted);
        }
    }

    /// A block.
    #[must_use]
    pub fn get(&self, function: &str, block: u32) -> Option<&Block> {
        self.blocks.get(function)?.get(&block)
    }
}

#[cfg(test)]
mod tests {
    use super::{Blocks, InLoop};

    #[test]
    fn blocks_of_functions() {
        let text = "\t.text\n\t.globl\tgath\ngath:                 # @gath\n\t.cfi_startproc\n# %bb.0:\n\ttestl\t%edi, %edi\n\
                    \tjle\t.LBB2_1\n# %bb.3:\n\tvmovsd\t.LCPI2_0(%rip), %xmm1           # xmm1 = [-1.0E+0,0.0E+0]\n\t.p2align\t4\n\
                    .LBB2_6:                 #   in Loop\n.Ltmp3:\n\tvdivsd\t(%rdx,%rsi), %xmm1, %xmm2\n\t#APP\nlabel:\n\tnop\n\tpause # twice\n\t#NO_APP\n\t#APP\n\t#NO_APP\n\trep;movsb (%rsi), %es:(%rdi)\n\
                    .LBB2_1:\n\tretq\n.Lfunc_end2:\n\t.quad\t3\n\"odd name\":\n\tmovl %eax, %eax\n\"a$b\":\n\tud2\n.LJTI0_0:\n";
        let mut blocks = Blocks::default();
        blocks.add(text, |name| ["gath", "a$b"].contains(&name));
        let get = |f: &str, b| {
            let block = blocks.get(f, b)?;
            let texts = block.instructions.iter().map(|i| i.text.as_str());
            Some(texts.collect::<Vec<_>>().join("|"))
        };
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

    #[test]
    fn lines_and_loops() {
        let text = "\t.file\t\"a.c\"\n\t.file\t0 \"/work/a \\\"b\\\"\" \"a.c\" md5 0x1c\n\t.file\t1 \"/usr/include\" \"math.h\"\n\t.file\t2 \"./x/../b.h\"\n\
                    f:\n\t.loc\t0 4 21 prologue_end             # a.c:4:21\n\tnop\n\t.loc\t0 0 3 # :0:3\n\tcltq\n\
                    .LBB0_2:                                # %for.body\n                                        # =>This Loop Header: Depth=1\n\
                    \x20                                       #     Child Loop BB0_3 Depth 2\n\t.loc\t1 9 1 is_stmt 0\n\tpause\n\
                    .LBB0_3:                                #   Parent Loop BB0_2 Depth=1\n                                        # =>  This Inner Loop Header: Depth=2\n\tud2\n\
                    # %bb.4:                                #   in Loop: Header=BB0_2 Depth=1\n\t.loc\t2 7 1\n\tleave\n\t.loc\t9 1 1\n\tretq\n";
        let mut blocks = Blocks::default();
        blocks.add(text, |name| name == "f");
        let places = |number| {
            let block = blocks.get("f", number).expect("a block");
            let place = |i: &super::Instruction| {
                let place = i.place.as_ref();
                place.map(|p| format!("{}:{}", p.file.display(), p.line))
            };
            block.instructions.iter().map(place).collect::<Vec<_>>()
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(places(0), [some("/work/a \"b\"/a.c:4"), None]);
        assert_eq!(places(2), [some("/usr/include/math.h:9")]);
        assert_eq!(places(3), [some("/usr/include/math.h:9")]);
        assert_eq!(places(4), [some("/work/a \"b\"/b.h:7"), None]);
        let of = |number| blocks.get("f", number).and_then(|b| b.in_loop);
        let within = |header, depth| Some(InLoop { header, depth });
        assert_eq!(
            [of(0), of(2), of(3), of(4)],
            [None, within(2, 1), within(3, 2), within(2, 1)]
        );
    }
}

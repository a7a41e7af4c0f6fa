//! What counted code says of itself: the section `cere_counted`, which the pass writes (`cere-pass/src/count.cpp`), and the
//! stream that the code writes when it runs (`cere-inside` (`counter`)).
//!
//! A *segment* is a straight piece of machine code: it ends with its block, at a call, and at a conditional branch. When it
//! begins, it writes the address of its description; then, before each instruction that reaches memory, the access's words.
//!
//! Stream: chunks of a head of four words (bytes of the content, number of the thread, the thread's control block, 0) and the
//! content; a chunk of thread [`END_THREAD`] is a mark, whose code is the third word.

use crate::FormatError;

/// Name of the section.
pub const SECTION: &str = "cere_counted";
/// First bytes of each function's description.
pub const MAGIC: [u8; 4] = *b"CCT1";
/// Bytes of a chunk's head.
pub const CHUNK_HEAD: usize = 32;
/// Bytes of a chunk after which it is sent; the segment that passes this border still goes into it.
pub const CHUNK_ROOM: usize = 1 << 16;
/// Number of the thread in marks.
pub const END_THREAD: u32 = u32::MAX;
/// Code of the mark at the end of what was to be counted.
pub const MARK_END: u64 = 1;
/// Code of the chunk that says where the images of the process lie: for each its offset in hexadecimal, a blank, its path
/// and a zero.
pub const MARK_IMAGES: u64 = 3;
/// Environment variable with the number of the descriptor that a counted program writes to.
pub const ENV_STREAM: &str = "CERE_COUNT_STREAM";

/// What the words of an access are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Shape {
    /// The address.
    Plain = 0,
    /// The address and the mask of the lanes.
    Masked = 1,
    /// The base, the vector of positions and the mask of the lanes.
    Gather = 2,
    /// The count, where to, where from, of a repeated string instruction.
    RepeatedCopy = 3,
    /// The count and where to.
    RepeatedSet = 4,
    /// The bytes, where to, where from, of a call of `memcpy` or `memmove`.
    Copy = 5,
    /// The bytes and where to, of a call of `memset`.
    Set = 6,
    /// The address, of what goes onto the stack.
    Push = 7,
    /// The address, of what comes from the stack.
    Pop = 8,
}

impl Shape {
    fn of(byte: u8) -> Option<Self> {
        const ALL: [Shape; 9] = [
            Shape::Plain,
            Shape::Masked,
            Shape::Gather,
            Shape::RepeatedCopy,
            Shape::RepeatedSet,
            Shape::Copy,
            Shape::Set,
            Shape::Push,
            Shape::Pop,
        ];
        ALL.get(usize::from(byte)).copied()
    }
}

/// An access of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Index of the instruction in its segment.
    pub instruction: u16,
    /// What the words are.
    pub shape: Shape,
    /// [`LOAD`] and the like.
    pub flags: u8,
    /// Bytes, as far as the compiler says; of one element where the instruction is repeated; 0: not known.
    pub size: u16,
    /// Words of the vector of positions.
    pub index_words: u8,
    /// Words of the mask.
    pub mask_words: u8,
    /// Bytes that a position counts for.
    pub scale: u16,
}

/// The access reads.
pub const LOAD: u8 = 1;
/// The access writes.
pub const STORE: u8 = 2;
/// It passes the caches by.
pub const NON_TEMPORAL: u8 = 4;
/// It reaches a slot that the register allocator made.
pub const SPILL: u8 = 8;
/// The address counts from the thread's control block.
pub const THREAD: u8 = 16;
/// It is a hint.
pub const PREFETCH: u8 = 32;

impl Access {
    /// Words in the stream.
    #[must_use]
    pub fn words(&self) -> usize {
        match self.shape {
            Shape::Plain | Shape::Push | Shape::Pop => 1,
            Shape::Masked | Shape::Gather => {
                1 + usize::from(self.index_words) + usize::from(self.mask_words)
            }
            Shape::RepeatedCopy | Shape::Copy => 3,
            Shape::RepeatedSet | Shape::Set => 2,
        }
    }

    /// Whether it has one of `flags`.
    #[must_use]
    pub fn is(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }
}

/// An instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// Index of LLVM's name of it in [`Code::names`].
    pub name: u32,
    /// Line of the source, 0 if not known.
    pub line: u32,
    /// LLVM's numbers of the registers that it writes, the widest of each.
    pub written: Vec<u16>,
    /// And reads.
    pub read: Vec<u16>,
}

/// The segment is the first of its function.
pub const ENTRY: u32 = 1;
/// It holds inline assembly, which nobody looked into.
pub const ASSEMBLY: u32 = 2;
/// It ends with a call.
pub const CALL: u32 = 4;
/// It ends with a conditional branch.
pub const CONDITIONAL: u32 = 8;
/// It ends with an indirect branch.
pub const INDIRECT: u32 = 16;
/// It is the first of its block.
pub const BLOCK: u32 = 32;
/// It ends its function.
pub const RETURN: u32 = 64;

/// A straight piece of machine code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Index of its function.
    pub function: u32,
    /// LLVM's number of its block.
    pub block: u32,
    /// [`ENTRY`] and the like.
    pub flags: u32,
    /// Index of the name of what it calls in [`Code::names`]; of an empty one if it calls an address.
    pub callee: u32,
    /// Its instructions.
    pub instructions: Vec<Instruction>,
    /// Their accesses, in order.
    pub accesses: Vec<Access>,
    /// Words of all accesses together.
    pub words: usize,
}

impl Segment {
    /// Whether it has one of `flags`.
    #[must_use]
    pub fn is(&self, flags: u32) -> bool {
        self.flags & flags != 0
    }
}

/// A function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its symbol.
    pub name: String,
    /// Its source file; empty if not known.
    pub file: String,
    /// Id of its unit.
    pub unit: String,
    /// Indices of its segments: first, and one after the last.
    pub segments: (u32, u32),
}

/// What the section of an image says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Code {
    /// Names of instructions and callees.
    pub names: Vec<String>,
    /// Functions.
    pub functions: Vec<Function>,
    /// Segments of all functions, in the order of their code.
    pub segments: Vec<Segment>,
    sections: Vec<Section>,
}

/// A section that was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Section {
    /// Its address.
    start: u64,
    /// For each 8 bytes of it: index of the segment that is described there, plus 1.
    places: Vec<u32>,
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let found = rest.first_chunk::<N>().ok_or(FormatError::TooShort {
            what: SECTION,
            offset: self.at as u64,
            needed: N as u64,
            available: rest.len() as u64,
        })?;
        self.at += N;
        Ok(*found)
    }
    fn byte(&mut self) -> Result<u8, FormatError> {
        Ok(self.take::<1>()?[0])
    }
    fn short(&mut self) -> Result<u16, FormatError> {
        Ok(u16::from_le_bytes(self.take()?))
    }
    fn word(&mut self) -> Result<u32, FormatError> {
        Ok(u32::from_le_bytes(self.take()?))
    }
}

fn invalid(field: &'static str, value: impl ToString, why: &'static str) -> FormatError {
    FormatError::Invalid {
        what: SECTION.to_owned(),
        field,
        value: value.to_string(),
        why,
    }
}

/// Names by where the functions' own strings are.
#[derive(Default)]
struct Names {
    known: std::collections::HashMap<String, u32>,
    list: Vec<String>,
}

impl Names {
    fn index(&mut self, strings: &[u8], at: u32) -> Result<u32, FormatError> {
        let rest = strings.get(at as usize..).unwrap_or_default();
        let end = rest.iter().position(|b| *b == 0);
        let text = end.and_then(|end| std::str::from_utf8(&rest[..end]).ok());
        let text = text.ok_or_else(|| invalid("string", at, "no string is there"))?;
        if let Some(index) = self.known.get(text) {
            return Ok(*index);
        }
        let index = self.list.len() as u32;
        self.list.push(text.to_owned());
        self.known.insert(text.to_owned(), index);
        Ok(index)
    }
}

impl Code {
    /// Reads a section that is loaded at address `start`, a multiple of 8.
    pub fn parse(bytes: &[u8], start: u64) -> Result<Self, FormatError> {
        let mut code = Code::default();
        code.add(bytes, start)?;
        Ok(code)
    }

    /// Reads another section, of another image.
    pub fn add(&mut self, bytes: &[u8], start: u64) -> Result<(), FormatError> {
        self.sections.push(Section {
            start,
            places: vec![0; bytes.len().div_ceil(8)],
        });
        let mut names = Names {
            known: (0..)
                .zip(&self.names)
                .map(|(i, n)| (n.clone(), i))
                .collect(),
            list: std::mem::take(&mut self.names),
        };
        let mut at = 0;
        while at < bytes.len() {
            at += self.function(&bytes[at..], at, &mut names)?;
        }
        self.names = names.list;
        Ok(())
    }

    /// Reads a function's description, which begins at `place`; its size.
    fn function(
        &mut self,
        bytes: &[u8],
        place: usize,
        names: &mut Names,
    ) -> Result<usize, FormatError> {
        let mut head = Reader { bytes, at: 0 };
        let magic: [u8; 4] = head.take()?;
        if magic != MAGIC {
            return Err(FormatError::WrongMagic {
                what: "a description of counted code",
                found: magic.to_vec(),
                expected: MAGIC.to_vec(),
            });
        }
        let size = head.word()? as usize;
        let count = head.word()?;
        let strings = head.word()? as usize;
        if !size.is_multiple_of(8) || size < head.at || size > bytes.len() || strings > size {
            return Err(invalid("size", size, "the description ends elsewhere"));
        }
        let texts = &bytes[strings..size];
        let mut text = || names.index(texts, head.word()?);
        let (name, file, unit) = (text()?, text()?, text()?);
        let mut reader = Reader {
            bytes: &bytes[..strings],
            at: head.at,
        };
        let first = self.segments.len() as u32;
        let index = self.functions.len() as u32;
        for _ in 0..count {
            let from = reader.at.next_multiple_of(8);
            reader.at = from;
            let (segment, length) = Self::segment(&mut reader, index, texts, names)?;
            // Else the same bytes would be read again, as often as the head says.
            if length < reader.at - from {
                return Err(invalid("segment", length, "it is shorter than its content"));
            }
            self.segments.push(segment);
            let places = self.sections.last_mut().map(|s| &mut s.places);
            let place = places.and_then(|p| p.get_mut((place + from) / 8));
            *place.ok_or_else(|| invalid("segment", from, "it lies outside"))? =
                self.segments.len() as u32;
            reader.at = from.saturating_add(length);
        }
        self.functions.push(Function {
            name: names.list[name as usize].clone(),
            file: names.list[file as usize].clone(),
            unit: names.list[unit as usize].clone(),
            segments: (first, self.segments.len() as u32),
        });
        Ok(size)
    }

    fn segment(
        reader: &mut Reader,
        function: u32,
        texts: &[u8],
        names: &mut Names,
    ) -> Result<(Segment, usize), FormatError> {
        let length = reader.word()? as usize;
        let block = reader.word()?;
        let flags = reader.word()?;
        let callee = reader.word()?;
        let callee = names.index(texts, callee)?;
        let (instructions, accesses) = (reader.word()?, reader.word()?);
        let mut segment = Segment {
            function,
            block,
            flags,
            callee,
            instructions: Vec::new(),
            accesses: Vec::new(),
            words: 0,
        };
        for _ in 0..accesses {
            let instruction = reader.short()?;
            let shape = reader.byte()?;
            let access = Access {
                instruction,
                shape: Shape::of(shape)
                    .ok_or_else(|| invalid("shape", shape, "there is no such shape"))?,
                flags: reader.byte()?,
                size: reader.short()?,
                index_words: reader.byte()?,
                mask_words: reader.byte()?,
                scale: reader.short()?,
            };
            if u32::from(instruction) >= instructions {
                return Err(invalid("instruction", instruction, "the segment has fewer"));
            }
            if access.index_words > 8 || access.mask_words > 8 {
                return Err(invalid("words", access.words(), "no vector is so long"));
            }
            segment.words += access.words();
            segment.accesses.push(access);
        }
        for _ in 0..instructions {
            let name = reader.word()?;
            let name = names.index(texts, name)?;
            let line = reader.word()?;
            let (written, read) = (reader.byte()?, reader.byte()?);
            let mut registers = |n: u8| (0..n).map(|_| reader.short()).collect::<Result<_, _>>();
            segment.instructions.push(Instruction {
                name,
                line,
                written: registers(written)?,
                read: registers(read)?,
            });
        }
        Ok((segment, length))
    }

    /// Index of the segment whose description is at `address`.
    #[inline]
    #[must_use]
    pub fn segment_at(&self, address: u64) -> Option<u32> {
        self.sections.iter().find_map(|section| {
            let offset = address.wrapping_sub(section.start);
            let place = section.places.get(usize::try_from(offset / 8).ok()?)?;
            place.checked_sub(1).filter(|_| offset.is_multiple_of(8))
        })
    }

    /// Name of an instruction or callee.
    #[must_use]
    pub fn name(&self, index: u32) -> &str {
        self.names.get(index as usize).map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes as the pass writes them.
    #[derive(Default)]
    struct Written(Vec<u8>);

    impl Written {
        fn word(&mut self, word: u32) {
            self.0.extend(word.to_le_bytes());
        }
        fn short(&mut self, short: u16) {
            self.0.extend(short.to_le_bytes());
        }
        fn align(&mut self) {
            self.0.resize(self.0.len().next_multiple_of(8), 0);
        }
        fn set(&mut self, at: usize, word: u32) {
            self.0[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
    }

    const STRINGS: &[u8] = b"\0work\0MOV64rm\0RET64\0callee\0";
    /// Where the fields of [`section`] are that tests damage.
    const SIZE: usize = 4;
    const SEGMENTS: usize = 8;
    const TEXTS: usize = 12;
    const NAMES: [usize; 3] = [16, 20, 24];
    const CALLEE: usize = 32 + 12;
    const INSTRUCTIONS: usize = 32 + 16;
    const ACCESSES: usize = 32 + 20;
    const SHAPE: usize = 32 + 24 + 2;

    /// A function of two segments: a load, and a return that pops.
    fn section() -> Vec<u8> {
        let mut w = Written(MAGIC.to_vec());
        for word in [0, 2, 0, 1, 0, 0] {
            w.word(word);
        }
        for (flags, shape, name) in [(ENTRY | BLOCK | CALL, 0, 6), (RETURN, 8, 14)] {
            w.align();
            let from = w.0.len();
            for word in [0, 7, flags, 20, 1, 1] {
                w.word(word);
            }
            w.short(0);
            w.0.extend([shape, LOAD]);
            w.short(8);
            w.0.extend([0, 0]);
            w.short(1);
            w.word(name);
            w.word(12);
            w.0.extend([1, 2]);
            for register in [3, 4, 5] {
                w.short(register);
            }
            w.align();
            let length = (w.0.len() - from) as u32;
            w.set(from, length);
        }
        let texts = w.0.len() as u32;
        w.set(TEXTS, texts);
        w.0.extend(STRINGS);
        w.align();
        let size = w.0.len() as u32;
        w.set(SIZE, size);
        w.0
    }

    fn damaged(at: usize, word: u32) -> Result<Code, FormatError> {
        let mut w = Written(section());
        w.set(at, word);
        Code::parse(&w.0, 0x1000)
    }

    #[test]
    fn a_description() {
        let code = Code::parse(&section(), 0x1000).unwrap();
        assert_eq!(code.functions.len(), 1);
        assert_eq!(
            (code.functions[0].name.as_str(), code.functions[0].segments),
            ("work", (0, 2))
        );
        let [first, second] = &code.segments[..] else {
            panic!("{:?}", code.segments)
        };
        assert!(first.is(ENTRY) && first.is(CALL) && second.is(RETURN) && !second.is(BLOCK));
        assert_eq!((first.block, first.words, second.words), (7, 1, 1));
        assert_eq!(code.name(first.callee), "callee");
        assert_eq!(code.name(first.instructions[0].name), "MOV64rm");
        assert_eq!(code.name(second.instructions[0].name), "RET64");
        assert_eq!(first.instructions[0].written, [3]);
        assert_eq!(first.instructions[0].read, [4, 5]);
        assert_eq!(
            (first.accesses[0].shape, first.accesses[0].size),
            (Shape::Plain, 8)
        );
        assert_eq!(second.accesses[0].shape, Shape::Pop);
        assert_eq!(code.segment_at(0x1020), Some(0));
        for address in [0, 0xfff, 0x1000, 0x1021, 0x1028, 0x2000, u64::MAX] {
            assert_eq!(code.segment_at(address), None, "{address:#x}");
        }
        assert_eq!(code.name(u32::MAX), "");
    }

    #[test]
    fn sections_of_several_images() {
        let mut code = Code::parse(&section(), 0x1000).unwrap();
        code.add(&section(), 0x9000).unwrap();
        assert_eq!((code.functions.len(), code.segments.len()), (2, 4));
        assert_eq!(
            (code.segment_at(0x1020), code.segment_at(0x9020)),
            (Some(0), Some(2))
        );
        assert_eq!(code.segments[2].callee, code.segments[0].callee);
        // Two functions in one section.
        let code = Code::parse(&[section(), section()].concat(), 0).unwrap();
        assert_eq!(code.segment_at(section().len() as u64 + 0x20), Some(2));
        assert_eq!(code.segments[2].function, 1);
    }

    #[test]
    fn nothing_is_a_section_too() {
        assert!(Code::parse(&[], 0).unwrap().segments.is_empty());
    }

    #[test]
    fn a_description_cut_short_anywhere() {
        let whole = section();
        for length in 1..whole.len() {
            assert!(Code::parse(&whole[..length], 0).is_err(), "{length}");
            let two = [&whole[..], &whole[..length]].concat();
            assert!(Code::parse(&two, 0).is_err(), "{length} of the second");
        }
    }

    #[test]
    fn another_magic() {
        let mut bytes = section();
        bytes[3] = b'2';
        assert!(matches!(
            Code::parse(&bytes, 0),
            Err(FormatError::WrongMagic { .. })
        ));
    }

    #[test]
    fn fields_out_of_range() {
        for at in NAMES.into_iter().chain([CALLEE]) {
            for offset in [STRINGS.len() as u32 + 8, 0x7fff_ffff, u32::MAX] {
                assert!(damaged(at, offset).is_err(), "string {offset:#x} at {at}");
            }
        }
        for at in [SIZE, SEGMENTS, TEXTS, INSTRUCTIONS, ACCESSES] {
            for value in [0x7fff_ffff, u32::MAX, 0xffff_fff8] {
                assert!(damaged(at, value).is_err(), "{value:#x} at {at}");
            }
        }
        for size in [0, 8, 20] {
            assert!(damaged(SIZE, size).is_err(), "size {size}");
        }
        assert!(damaged(INSTRUCTIONS, 0).is_err());
        // Shape, flags and size; size, words of the positions and of the mask.
        assert!(damaged(SHAPE, 9).is_err());
        assert!(damaged(SHAPE + 2, 0x0009_0008).is_err());
    }

    #[test]
    fn any_byte_may_be_wrong() {
        let whole = section();
        for at in 0..whole.len() {
            for byte in [0, 1, 7, 0x7f, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = byte;
                // An error or another code, as it may be.
                if let Ok(code) = Code::parse(&bytes, 0) {
                    for segment in &code.segments {
                        let accesses = segment.accesses.iter();
                        assert!(
                            accesses
                                .clone()
                                .all(|a| usize::from(a.instruction) < segment.instructions.len())
                        );
                        assert_eq!(accesses.map(Access::words).sum::<usize>(), segment.words);
                    }
                }
            }
        }
    }
}

//! The optimiser's record: documents of YAML, each of a few keys, as LLVM's `-fsave-optimization-record` writes them.

/// A place as the record has it: file, line, column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct At {
    /// Name of the file, as the compiler was given it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

/// A remark as LLVM writes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry {
    /// `Passed`, `Missed`, `Analysis` and the like.
    pub kind: String,
    /// The pass.
    pub pass: String,
    /// The remark's name.
    pub name: String,
    /// Where, if the code has lines.
    pub at: Option<At>,
    /// The function.
    pub function: String,
    /// Pieces of the text, each with its key (`String`, `Callee`, `UnrollCount`), its text, and the place that it is of.
    pub pieces: Vec<(String, String, Option<At>)>,
}

impl Entry {
    /// The text, as the compiler prints it.
    #[must_use]
    pub fn text(&self) -> String {
        let pieces = self.pieces.iter().map(|(_, text, _)| text.as_str());
        pieces.collect()
    }

    /// The first piece with a key.
    #[must_use]
    pub fn piece(&self, key: &str) -> Option<&str> {
        let found = self.pieces.iter().find(|(own, _, _)| own == key);
        found.map(|(_, text, _)| text.as_str())
    }

    /// The first place that a piece is of.
    #[must_use]
    pub fn other(&self) -> Option<&At> {
        self.pieces.iter().find_map(|(_, _, at)| at.as_ref())
    }
}

/// A scalar: plain, or in quotation marks of either kind.
fn scalar(text: &str) -> String {
    let text = text.trim();
    let inner = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    if let Some(inner) = inner('\'') {
        return inner.replace("''", "'");
    }
    let Some(inner) = inner('"') else {
        return text.to_owned();
    };
    let mut found = String::new();
    let mut characters = inner.chars();
    while let Some(c) = characters.next() {
        if c != '\\' {
            found.push(c);
            continue;
        }
        match characters.next() {
            Some('n') => found.push('\n'),
            Some('t') => found.push('\t'),
            other => found.extend(other),
        }
    }
    found
}

/// Reads `{ File: a.c, Line: 8, Column: 3 }`. The name may hold commas, in quotation marks.
fn at(text: &str) -> Option<At> {
    let inner = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    let (file, numbers) = inner.rsplit_once(", Line:")?;
    let (line, column) = numbers.split_once(", Column:")?;
    Some(At {
        file: scalar(file.trim().strip_prefix("File:")?),
        line: line.trim().parse().ok().filter(|line| *line > 0)?,
        column: column.trim().parse().ok()?,
    })
}

/// Lines, with those that go on from the line before joined to it: long flow mappings and scalars are wrapped.
fn joined(document: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in document.lines() {
        let begins = !line.starts_with(' ')
            || line.trim_start().starts_with("- ")
            || line.trim_start().starts_with("DebugLoc:");
        match lines.last_mut().filter(|_| !begins) {
            Some(last) => {
                last.push(' ');
                last.push_str(line.trim());
            }
            None => lines.push(line.to_owned()),
        }
    }
    lines
}

/// Adds a line of a document.
fn add(entry: &mut Entry, line: &str) -> Option<()> {
    let (key, value) = line.split_once(':')?;
    let inside = key.starts_with(' ');
    match (inside, key.trim()) {
        (false, "Pass") => entry.pass = scalar(value),
        (false, "Name") => entry.name = scalar(value),
        (false, "Function") => entry.function = scalar(value),
        (false, "DebugLoc") => entry.at = at(value),
        (true, "DebugLoc") => entry.pieces.last_mut()?.2 = at(value),
        (true, key) => {
            let key = key.strip_prefix("- ")?.trim().to_owned();
            entry.pieces.push((key, scalar(value), None));
        }
        _ => {}
    }
    Some(())
}

/// Reads a record; what is no remark in it is left out.
#[must_use]
pub fn entries(text: &str) -> Vec<Entry> {
    let documents = text.split("--- !").skip(1);
    let entry = |document: &str| {
        let mut entry = Entry::default();
        let lines = joined(document);
        let (kind, rest) = lines.split_first()?;
        entry.kind = kind.trim().to_owned();
        for line in rest {
            add(&mut entry, line);
        }
        (!entry.pass.is_empty()).then_some(entry)
    };
    documents.filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::{At, entries};

    const TEXT: &str = "--- !Analysis
Pass:            loop-vectorize
Name:            UnsafeDep
DebugLoc:        { File: '/a, b/it''s.c',
                   Line: 11, Column: 63 }
Function:        'operator()'
Args:
  - String:          'loop not vectorized: '
  - String:          \"\\nBackward \\\"loop\\\" carried\"
  - Location:        'a.c:11:65'
    DebugLoc:        { File: a.c, Line: 11, Column: 65 }
...
--- !Passed
Pass:            loop-unroll
Name:            PartialUnrolled
Function:        f
Args:
  - String:          'unrolled loop by a factor of '
  - UnrollCount:     '4'
...
";

    #[test]
    fn remarks_are_read() {
        let found = entries(TEXT);
        assert_eq!(found.len(), 2);
        assert_eq!(
            (found[0].kind.as_str(), found[0].name.as_str()),
            ("Analysis", "UnsafeDep")
        );
        let place = |file: &str, line, column| At {
            file: file.to_owned(),
            line,
            column,
        };
        assert_eq!(found[0].at, Some(place("/a, b/it's.c", 11, 63)));
        assert_eq!(found[0].other(), Some(&place("a.c", 11, 65)));
        assert_eq!(found[0].function, "operator()");
        assert_eq!(
            found[0].text(),
            "loop not vectorized: \nBackward \"loop\" carrieda.c:11:65"
        );
        assert_eq!(
            (found[1].piece("UnrollCount"), &found[1].at),
            (Some("4"), &None)
        );
    }

    #[test]
    fn what_is_damaged_is_left_out() {
        for length in 0..TEXT.len() {
            assert!(entries(&TEXT[..length]).len() <= 2);
        }
        assert!(entries("--- !\n---\n: :\n--- !Missed\n{}\n  - \n").is_empty());
    }
}

//! Loops and blocks in C and C++, by their text: what macros hide is not seen.

use super::place::{Loop, Outline, Place};

/// `text` with blanks in the place of comments, literals and directives, byte for byte.
fn blanked(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    let (mut at, mut at_start) = (0, true);
    while at < bytes.len() {
        let rest = &bytes[at..];
        let end = match rest[0] {
            b'\n' => {
                (at, at_start) = (at + 1, true);
                continue;
            }
            b'#' if at_start => directive(rest),
            b'/' if rest.starts_with(b"//") => until(rest, b"\n", 2),
            b'/' if rest.starts_with(b"/*") => until(rest, b"*/", 2) + 2,
            quote @ (b'"' | b'\'') if !is_separator(&bytes, at) => literal(rest, quote),
            other => {
                at_start &= other.is_ascii_whitespace();
                at += 1;
                continue;
            }
        };
        let end = (at + end).min(bytes.len());
        let blank = |byte: &mut u8| {
            if *byte != b'\n' {
                *byte = b' ';
            }
        };
        bytes[at..end].iter_mut().for_each(blank);
        at = end;
    }
    bytes
}

/// Whether the quote at `at` is one between the digits of a number.
fn is_separator(bytes: &[u8], at: usize) -> bool {
    let digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
    bytes[at] == b'\'' && at > 0 && digit(bytes.get(at - 1)) && digit(bytes.get(at + 1))
}

fn until(rest: &[u8], end: &[u8], from: usize) -> usize {
    let found = rest[from..].windows(end.len()).position(|w| w == end);
    found.map_or(rest.len(), |place| from + place)
}

fn literal(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != quote && rest[at] != b'\n' {
        at += 1 + usize::from(rest[at] == b'\\');
    }
    at + 1
}

/// To the end of the line, and of those that continue it.
fn directive(rest: &[u8]) -> usize {
    let mut at = 0;
    loop {
        at += until(&rest[at..], b"\n", 0);
        let continued = rest[..at].trim_ascii_end().ends_with(b"\\");
        if at >= rest.len() || !continued {
            return at;
        }
        at += 1;
    }
}

/// A loop, by offsets.
struct Found {
    at: usize,
    end: usize,
    body: usize,
}

/// Reads statements.
struct Reader<'t> {
    text: &'t [u8],
    loops: Vec<Found>,
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

impl Reader<'_> {
    fn skip_blank(&self, mut at: usize) -> usize {
        while self.text.get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        at
    }

    fn word(&self, at: usize) -> &[u8] {
        let rest = &self.text[at.min(self.text.len())..];
        let end = rest.iter().position(|b| !is_word(*b));
        &rest[..end.unwrap_or(rest.len())]
    }

    /// Behind the bracket that closes the one at `at`.
    fn behind(&self, at: usize) -> usize {
        let mut depth = 0usize;
        for (place, byte) in self.text.iter().enumerate().skip(at) {
            match byte {
                b'(' | b'{' | b'[' => depth += 1,
                b')' | b'}' | b']' => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return place + 1;
                    }
                }
                _ => {}
            }
        }
        self.text.len()
    }

    /// Behind a keyword at `at` and what it has in parentheses.
    fn head(&self, at: usize) -> usize {
        let open = self.skip_blank(at + self.word(at).len());
        match self.text.get(open) {
            Some(b'(') => self.skip_blank(self.behind(open)),
            _ => open,
        }
    }

    fn looped(&mut self, at: usize) -> usize {
        let place = self.loops.len();
        let is_do = self.word(at) == b"do";
        let body = match is_do {
            true => self.skip_blank(at + 2),
            false => self.head(at),
        };
        self.loops.push(Found { at, end: 0, body });
        let mut end = self.statement(body);
        if is_do {
            let condition = self.skip_blank(end);
            if self.word(condition) == b"while" {
                end = self.head(condition);
            }
        }
        self.loops[place].end = end;
        end
    }

    /// Behind the statement at `at`; its loops are kept.
    fn statement(&mut self, at: usize) -> usize {
        let mut at = self.skip_blank(at);
        let mut depth = 0usize;
        while let Some(byte) = self.text.get(at).copied() {
            match byte {
                b'{' => {
                    at = self.block(at);
                    if depth == 0 {
                        return at;
                    }
                    continue;
                }
                b'}' => return at,
                b'(' | b'[' => depth += 1,
                b')' | b']' => depth = depth.saturating_sub(1),
                b';' if depth == 0 => return at + 1,
                _ => {}
            }
            if !is_word(byte) {
                at += 1;
                continue;
            }
            let size = self.word(at).len();
            at = match self.word(at) {
                b"for" | b"while" | b"do" => return self.looped(at),
                b"if" => {
                    let then = self.head(at);
                    let end = self.statement(then);
                    let next = self.skip_blank(end);
                    match self.word(next) == b"else" {
                        true => return self.statement(next + 4),
                        false => return end,
                    }
                }
                _ => at + size,
            };
        }
        at
    }

    /// Behind the block at `at`.
    fn block(&mut self, at: usize) -> usize {
        let mut at = self.skip_blank(at + 1);
        while at < self.text.len() && self.text[at] != b'}' {
            let end = self.statement(at);
            at = self.skip_blank(end.max(at + 1));
        }
        at + 1
    }
}

/// Offsets of lines.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        Self(std::iter::once(0).chain(ends).collect())
    }

    fn number(&self, at: usize) -> usize {
        self.0.partition_point(|start| *start <= at)
    }

    /// The place before `at`: a line of its own if nothing but blanks comes before.
    fn place(&self, text: &[u8], at: usize) -> Place {
        let line = self.number(at);
        let start = self.0[line - 1];
        let alone = text[start..at.min(text.len())].trim_ascii().is_empty();
        Place {
            line: line as u32,
            column: (!alone).then_some((at - start + 1) as u32),
        }
    }

    /// The place behind the brace at `at`.
    fn behind(&self, text: &[u8], at: usize) -> Place {
        let line = self.number(at);
        let end = self.0.get(line).copied().unwrap_or(text.len());
        let alone = text[at + 1..end].trim_ascii().is_empty();
        match alone && self.0.len() > line {
            true => Place {
                line: line as u32 + 1,
                column: None,
            },
            false => Place {
                line: line as u32,
                column: Some((at + 2 - self.0[line - 1]) as u32),
            },
        }
    }
}

/// The head and the opening brace of the last function called `name` that begins before `region` and holds it.
fn function(reader: &Reader, name: &str, region: usize) -> Option<(usize, usize)> {
    let text = reader.text;
    let name = name.rsplit("::").next().unwrap_or(name).as_bytes();
    if name.is_empty() {
        return None;
    }
    let starts = (0..region.min(text.len())).rev();
    let named = starts.filter(|at| {
        text[*at..].starts_with(name)
            && (*at == 0 || !is_word(text[at - 1]))
            && reader.word(*at) == name
    });
    let mut bodies = named.filter_map(|at| {
        let open = reader.skip_blank(at + name.len());
        if text.get(open) != Some(&b'(') {
            return None;
        }
        let behind = reader.behind(open);
        let brace = behind + text[behind..].iter().position(|b| b"{;".contains(b))?;
        let holds = text[brace] == b'{' && brace < region && region < reader.behind(brace);
        holds.then_some((at, brace))
    });
    bodies.next()
}

/// The region at `line` of `text`, the one of number `ordinal` there, in a function called `name`.
pub fn outline(text: &str, (line, ordinal): (u32, u32), name: &str) -> Outline {
    let blank = blanked(text);
    let lines = Lines::of(text);
    let Some(start) = lines.0.get((line as usize).wrapping_sub(1)).copied() else {
        return Outline::default();
    };
    let mut reader = Reader {
        text: &blank,
        loops: Vec::new(),
    };
    let (first, last) = extent(&mut reader, &lines, start, (line, ordinal));
    let kept: Vec<&Found> = reader
        .loops
        .iter()
        .filter(|l| (first..last).contains(&l.at))
        .collect();
    let brace = |at: usize| (blank.get(at) == Some(&b'{')).then(|| lines.behind(&blank, at));
    let mut loops: Vec<Loop> = kept
        .iter()
        .map(|own| Loop {
            place: lines.place(&blank, own.at),
            body: brace(own.body),
            innermost: !kept.iter().any(|l| l.at > own.at && l.at < own.end),
        })
        .collect();
    if loops.is_empty() {
        // A macro may make one.
        let at = reader.skip_blank(start);
        loops.extend((lines.number(at) == line as usize).then(|| Loop {
            place: lines.place(&blank, at),
            body: None,
            innermost: true,
        }));
    }
    let function = function(&reader, name, first);
    Outline {
        loops,
        function: function.map(|(head, _)| Place {
            line: lines.number(head) as u32,
            column: None,
        }),
        body: function.map(|(_, brace)| lines.behind(&blank, brace)),
    }
}

/// Where the region begins and ends, whose loops the reader then has.
fn extent(
    reader: &mut Reader,
    lines: &Lines,
    start: usize,
    (line, ordinal): (u32, u32),
) -> (usize, usize) {
    let mut at = start;
    let mut outer: Vec<usize> = Vec::new();
    let mut first = None;
    loop {
        at = reader.skip_blank(at);
        if reader.text.get(at) == Some(&b'}') {
            at += 1;
            continue;
        }
        if at >= reader.text.len() || first.is_some() && lines.number(at) > line as usize {
            break;
        }
        let known = reader.loops.len();
        let end = reader.statement(at).max(at + 1);
        first.get_or_insert((at, end));
        // Loops inside another one belong to it.
        let mut until = 0;
        for (place, found) in reader.loops.iter().enumerate().skip(known) {
            if found.at >= until && lines.number(found.at) == line as usize {
                outer.push(place);
                until = found.end;
            }
        }
        at = end;
    }
    let chosen = outer
        .get((ordinal as usize).saturating_sub(1))
        .or(outer.first());
    let extent = chosen.map(|place| {
        let own = &reader.loops[*place];
        (own.at, own.end)
    });
    extent.or(first).unwrap_or((start, start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u32, column: Option<u32>) -> Place {
        Place { line, column }
    }

    fn loops(text: &str, line: u32, ordinal: u32) -> Vec<(u32, Option<u32>, bool)> {
        let found = outline(text, (line, ordinal), "f").loops.into_iter();
        found
            .map(|l| (l.place.line, l.place.column, l.innermost))
            .collect()
    }

    #[test]
    fn nests_and_their_places() {
        let text = "static int\nf(int n) {\n  // for (;;)\n  for (int i = 0; i < n; i++) {\n    if (i) while (n) n--;\n    else do { n++; } while (n < 3);\n    char *s = \"for (\";\n    for (;;)\n      x();\n  }\n  for (;;) y();\n}\n";
        assert_eq!(
            loops(text, 4, 1),
            [
                (4, None, false),
                (5, Some(12), true),
                (6, Some(10), true),
                (8, None, true)
            ]
        );
        assert_eq!(loops(text, 11, 1), [(11, None, true)]);
        let found = outline(text, (4, 1), "N::f");
        assert_eq!(found.function, Some(at(2, None)));
        assert_eq!(found.body, Some(at(3, None)));
        assert_eq!(found.loops[0].body, Some(at(5, None)));
        assert_eq!(found.loops[2].body, Some(at(6, Some(14))));
        assert_eq!(found.loops[3].body, None);
    }

    #[test]
    fn two_loops_of_a_line() {
        let text = "void f() {\n  for (;;) a(); for (;;) { for (;;) b(); }\n}\n";
        assert_eq!(loops(text, 2, 1), [(2, None, true)]);
        assert_eq!(
            loops(text, 2, 2),
            [(2, Some(17), false), (2, Some(28), true)]
        );
    }

    #[test]
    fn what_macros_and_directives_hide() {
        let text = "#define LOOP \\\n  for (;;)\nvoid f() {\n  LOOP(i, n) { x; }\n#pragma omp parallel\n  {\n    for (;;) z();\n  }\n}\n";
        assert_eq!(loops(text, 4, 1), [(4, None, true)]);
        assert_eq!(loops(text, 5, 1), [(7, None, true)]);
        for odd in ["", "}", "for (", "do", "'", "\"\\", "/*", "#\\", "for(;;){"] {
            for line in 0..3 {
                outline(odd, (line, 1), "f");
            }
        }
    }
}

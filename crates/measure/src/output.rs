//! Whether two outputs are the same, apart from words that differ between runs of one build: the one of all processes, or that of each
//! rank by itself.

use cere_system::console::print;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What a run printed: that of each rank that prints apart under its name, all else under the empty one.
pub type Printed = BTreeMap<String, Vec<u8>>;

type Line = Vec<String>;

/// Maximum characters of a line in messages.
const LONG: usize = 200;

/// Which order of lines counts in what is not printed apart. What a rank prints apart always has to come in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// As they were printed.
    Printed,
    /// None: processes print beside one another into one output.
    Any,
}

impl Order {
    /// That of the part `name` of an output.
    fn of(self, name: &str) -> Self {
        match name.is_empty() {
            true => self,
            false => Self::Printed,
        }
    }
}

/// How the outputs of two runs of one build differ in more than words.
#[derive(Debug, thiserror::Error)]
pub enum Differs {
    /// In the numbers of lines.
    #[error("{0} lines in one, {1} in another")]
    Lines(usize, usize),
    /// In the number of words of a line.
    #[error("line {number}: {text}")]
    Words {
        /// The line, from 1.
        number: usize,
        /// Its words in the later run.
        text: String,
    },
    /// In those of a rank.
    #[error("rank {0}: {1}")]
    Rank(String, Box<Self>),
}

/// The plain build's output, with the words that differ from run to run.
pub struct Varying {
    parts: BTreeMap<String, Vec<Vec<Word>>>,
    order: Order,
    ignored: Vec<String>,
}

struct Word {
    text: String,
    varies: bool,
}

fn words_by_line(output: &[u8], ignored: &[String]) -> Vec<Line> {
    let lines = output.split_inclusive(|byte| *byte == b'\n');
    let wanted = |line: &&[u8]| {
        let text = String::from_utf8_lossy(line);
        !ignored.iter().any(|i| text.contains(i.as_str()))
    };
    lines.filter(wanted).map(words).collect()
}

/// The words of a line, in which every byte counts but white space. What is no text is one word.
fn words(line: &[u8]) -> Line {
    let is_text = |byte: &u8| !byte.is_ascii_control() || b"\t\n\r\x08\x0c\x1b".contains(byte);
    let escaped = |word: &[u8]| word.escape_ascii().to_string();
    match std::str::from_utf8(line) {
        _ if !line.iter().all(is_text) => vec![escaped(line)],
        Ok(text) => text.split_whitespace().map(str::to_owned).collect(),
        Err(_) => {
            let words = line.split(u8::is_ascii_whitespace);
            words.filter(|word| !word.is_empty()).map(escaped).collect()
        }
    }
}

/// Whether the processes of two runs printed as much together: as many lines that are not empty, or as many bytes.
pub fn as_much(a: &Printed, b: &Printed, ignored: &[String]) -> bool {
    let lines = |printed: &Printed| {
        let texts = printed.values();
        let lines = texts.flat_map(|text| words_by_line(text, ignored));
        lines.filter(|line| !line.is_empty()).count()
    };
    let bytes = |printed: &Printed| printed.values().map(Vec::len).sum::<usize>();
    bytes(a) == bytes(b) || lines(a) == lines(b)
}

/// Finds the words that differ between the outputs of several runs.
pub fn find_varying_words(
    outputs: &[Printed],
    ignored: &[String],
    order: Order,
) -> Result<Varying, Differs> {
    let names: BTreeSet<&String> = outputs.iter().flat_map(BTreeMap::keys).collect();
    let part = |name: &String| {
        let of = |printed: &Printed| {
            let text = printed.get(name).map_or(&[][..], Vec::as_slice);
            words_by_line(text, ignored)
        };
        let texts = outputs.iter().map(of);
        let found = match order.of(name) {
            Order::Printed => varying_words(texts),
            Order::Any => varying_words(arranged(texts.collect()).into_iter()),
        };
        let found = found.map_err(|why| match name.is_empty() {
            true => why,
            false => Differs::Rank(name.clone(), Box::new(why)),
        });
        Ok((name.clone(), found?))
    };
    Ok(Varying {
        parts: names.into_iter().map(part).collect::<Result<_, _>>()?,
        order,
        ignored: ignored.to_vec(),
    })
}

/// The lines of the first text, with the words that differ from line to line in the others.
fn varying_words(mut texts: impl Iterator<Item = Vec<Line>>) -> Result<Vec<Vec<Word>>, Differs> {
    let first = texts.next().unwrap_or_default();
    let word = |text: String| Word {
        text,
        varies: false,
    };
    let mut found: Vec<Vec<Word>> = first
        .into_iter()
        .map(|line| line.into_iter().map(word).collect())
        .collect();
    for other in texts {
        if other.len() != found.len() {
            return Err(Differs::Lines(found.len(), other.len()));
        }
        for (number, (line, other)) in found.iter_mut().zip(other).enumerate() {
            if line.len() != other.len() {
                return Err(Differs::Words {
                    number: number + 1,
                    text: other.join(" "),
                });
            }
            for (word, other) in line.iter_mut().zip(other) {
                word.varies |= word.text != other;
            }
        }
    }
    Ok(found)
}

/// The lines of each text in an order in which those that all texts have come first, then like beside like: words that differ from run
/// to run are found in lines that differ, and nowhere else.
fn arranged(mut texts: Vec<Vec<Line>>) -> Vec<Vec<Line>> {
    let counts = |text: &[Line]| {
        let mut counts: HashMap<Line, usize> = HashMap::new();
        for line in text {
            *counts.entry(line.clone()).or_default() += 1;
        }
        counts
    };
    let mut shared = texts.first().map_or_else(HashMap::new, |text| counts(text));
    for text in texts.iter().skip(1) {
        let own = counts(text);
        for (line, count) in &mut shared {
            *count = own.get(line).copied().unwrap_or(0).min(*count);
        }
    }
    let masked = |word: &String| match word.contains(|c: char| c.is_ascii_digit()) {
        true => String::new(),
        false => word.clone(),
    };
    for text in &mut texts {
        let mut left = shared.clone();
        text.sort_by_cached_key(|line| {
            let common = left.get_mut(line).filter(|left| **left > 0);
            let is_common = common.map(|left| *left -= 1).is_some();
            let mask: Line = line.iter().map(masked).collect();
            (!is_common, line.len(), mask, line.clone())
        });
    }
    texts
}

fn shown(line: &[Word]) -> String {
    let words: Vec<&str> = line.iter().map(|w| w.text.as_str()).collect();
    words.join(" ")
}

fn varies(line: &[Word]) -> usize {
    line.iter().filter(|w| w.varies).count()
}

impl Varying {
    /// What a reader should know of what is not compared: words that differ from run to run, or that there is nothing else.
    pub fn note(&self) -> Option<String> {
        let lines = || self.parts.values().flatten();
        let (words, count) = lines().fold((0, 0), |(words, count), line| {
            (words + line.len(), count + varies(line))
        });
        let nothing = ": only how the program ends is checked";
        if words == 0 {
            return Some(format!("there is no output to compare{nothing}"));
        }
        let first = lines().find(|line| varies(line) > 0)?;
        Some(format!(
            "{count} words of the output differ from run to run and are not compared, as in: {}{}",
            print::short(&shown(first), LONG),
            if words == count { nothing } else { "" }
        ))
    }

    /// How `output` differs from the plain build's, if it does; numbers may be off by the relative error `tolerance`.
    pub fn difference(&self, output: &Printed, tolerance: f64) -> Option<String> {
        let new = output.keys().filter(|name| !self.parts.contains_key(*name));
        let names = self.parts.keys().chain(new);
        let mut differences = names.filter_map(|name| {
            let part = self.parts.get(name).map_or(&[][..], Vec::as_slice);
            let text = output.get(name).map_or(&[][..], Vec::as_slice);
            let found = words_by_line(text, &self.ignored);
            let why = difference_of(part, found, self.order.of(name), tolerance)?;
            Some(match name.is_empty() {
                true => why,
                false => format!("rank {name}: {why}"),
            })
        });
        differences.next()
    }
}

/// How the lines `found` differ from those of `part`, if they do.
fn difference_of(
    part: &[Vec<Word>],
    found: Vec<Line>,
    order: Order,
    tolerance: f64,
) -> Option<String> {
    let same = |line: &[Word], other: &Line| {
        let word = |(word, other): (&Word, &String)| {
            word.varies || word.text == *other || numbers_agree(&word.text, other, tolerance)
        };
        line.len() == other.len() && line.iter().zip(other).all(word)
    };
    let numbers = (found.len(), part.len());
    if order == Order::Printed && numbers.0 == numbers.1 {
        let mut pairs = part.iter().zip(&found);
        let (line, other) = pairs.find(|(line, other)| !same(line, other))?;
        return Some(instead(other, line));
    }
    let (missing, new) = unmatched(part, found, same);
    let counted = match numbers.0 == numbers.1 {
        true => String::new(),
        false => format!("{} lines instead of {}: ", numbers.0, numbers.1),
    };
    let alike = |line: &[Word], other: &Line| {
        line.iter()
            .zip(other)
            .filter(|(w, o)| w.text == **o)
            .count()
    };
    let what = match (missing.first(), &new[..]) {
        (None, []) => return None,
        (Some(line), []) => format!("{} is missing", quoted(&shown(line))),
        (None, [other, ..]) => format!("{} is one more", quoted(&other.join(" "))),
        (Some(line), new) => {
            let nearest = new.iter().max_by_key(|other| alike(line, other));
            nearest.map_or(String::new(), |other| instead(other, line))
        }
    };
    Some(counted + &what)
}

fn instead(other: &Line, line: &[Word]) -> String {
    format!(
        "{} instead of {}",
        quoted(&other.join(" ")),
        quoted(&shown(line))
    )
}

fn quoted(line: &str) -> String {
    format!("\"{}\"", print::short(line, LONG))
}

/// The lines of `part` that none in `found` is the same as, and those that are left there; each counts once, whatever their order.
fn unmatched(
    part: &[Vec<Word>],
    found: Vec<Line>,
    same: impl Fn(&[Word], &Line) -> bool,
) -> (Vec<&[Word]>, Vec<Line>) {
    let mut exactly: HashMap<String, usize> = HashMap::new();
    for line in part.iter().filter(|line| varies(line) == 0) {
        *exactly.entry(shown(line)).or_default() += 1;
    }
    let take = |exactly: &mut HashMap<String, usize>, line: &str| {
        let left = exactly.get_mut(line).filter(|left| **left > 0);
        left.map(|left| *left -= 1).is_some()
    };
    let mut new = found;
    new.retain(|line| !take(&mut exactly, &line.join(" ")));
    let open = |line: &&Vec<Word>| varies(line) > 0 || take(&mut exactly, &shown(line));
    let mut missing: Vec<&[Word]> = part.iter().filter(open).map(Vec::as_slice).collect();
    // What a line with more words that vary would take too is left to those with fewer.
    missing.sort_by_key(|line| varies(line));
    missing.retain(
        |line| match new.iter().position(|other| same(line, other)) {
            Some(place) => {
                new.remove(place);
                false
            }
            None => true,
        },
    );
    (missing, new)
}

/// Whether both words are numbers that differ by a relative error of `tolerance` at most. Fortran writes exponents with D
/// as well.
fn numbers_agree(a: &str, b: &str, tolerance: f64) -> bool {
    let number = |text: &str| {
        let plain = text
            .trim_end_matches([',', ';', ')'])
            .trim_start_matches('(');
        plain.replace(['D', 'd'], "e").parse::<f64>().ok()
    };
    match (number(a), number(b)) {
        (Some(a), Some(b)) => (a - b).abs() <= tolerance * a.abs().max(b.abs()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: &str) -> Printed {
        [(String::new(), text.as_bytes().to_vec())].into()
    }

    fn of(texts: &[&str], order: Order) -> Result<Varying, Differs> {
        let outputs: Vec<Printed> = texts.iter().map(|text| printed(text)).collect();
        find_varying_words(&outputs, &["date".to_owned()], order)
    }

    #[test]
    fn what_varies_is_not_compared() {
        let of = |texts: &[&str]| of(texts, Order::Printed);
        let plain = of(&[
            "sum 3.5\ntime 1.2 s\ndate a\n",
            "sum 3.5\ntime 1.3 s\ndate b c\n",
        ])
        .unwrap();
        let note =
            "1 words of the output differ from run to run and are not compared, as in: time 1.2 s";
        assert_eq!(plain.note().as_deref(), Some(note));
        let difference = |text, tolerance| plain.difference(&printed(text), tolerance);
        assert_eq!(difference("sum 3.5\ntime 9 s\ndate x y z", 0.0), None);
        for other in [
            "sum 3.6\ntime 9 s",
            "sum 3.5\n",
            "sum 3.5\ntime 9 s s",
            "time 9 s\nsum 3.5",
        ] {
            assert!(difference(other, 0.0).is_some(), "{other}");
        }
        assert_eq!(difference("sum 3.5000001\ntime 9 s", 1e-6), None);
        assert!(of(&["a\n", "a\nb\n"]).is_err());
        assert!(of(&["a\n", "a b\n"]).is_err());
    }

    #[test]
    fn lines_in_any_order_are_all_there_once() {
        let plain =
            "rank 0 sum 1.5\nrank 1 sum 2.5\nrank 0 took 1.9 s\nrank 1 took 2.1 s\nend 2\nend 2\n";
        let other =
            "end 2\nrank 1 took 0.8 s\nrank 1 sum 2.5\nrank 0 took 1.1 s\nend 2\nrank 0 sum 1.5\n";
        let varying = of(&[plain, other], Order::Any).unwrap();
        // The times alone vary, not the ranks beside them.
        let note = varying.note().unwrap();
        assert!(note.starts_with("2 words") && note.ends_with(": rank 0 took 1.9 s"));
        let with = |from: &str, to: &str| {
            let text = other.replacen(from, to, 1);
            varying
                .difference(&printed(&text), 1e-6)
                .unwrap_or_default()
        };
        assert_eq!(with("1.1", "7.5"), "");
        assert_eq!(with("2.5", "2.5000001"), "");
        assert_eq!(
            with("sum 2.5", "sum 2.6"),
            "\"rank 1 sum 2.6\" instead of \"rank 1 sum 2.5\""
        );
        assert_eq!(
            with("end 2\n", ""),
            "5 lines instead of 6: \"end 2\" is missing"
        );
        assert_eq!(
            with("end", "end 2\nend"),
            "7 lines instead of 6: \"end 2\" is one more"
        );
        let twice = with("rank 0 sum 1.5", "rank 1 sum 2.5");
        assert_eq!(twice, "\"rank 1 sum 2.5\" instead of \"rank 0 sum 1.5\"");
        assert!(with("rank 0 took", "rank 1 took").contains("instead of \"rank 0 took"));
        // A line that stays keeps its words, though others like it vary around it.
        let varying = of(&["x 1\nx 0.9\n", "x 1.1\nx 1\n"], Order::Any).unwrap();
        assert_eq!(varying.difference(&printed("x 5\nx 1"), 0.0), None);
        assert!(varying.difference(&printed("x 5\nx 6"), 0.0).is_some());
    }

    #[test]
    fn each_rank_by_itself() {
        let ranks = |texts: [&str; 2]| -> Printed {
            let named = ["0", "1"].into_iter().zip(texts);
            named
                .map(|(rank, text)| (rank.to_owned(), text.as_bytes().to_vec()))
                .collect()
        };
        let plain = [ranks(["a\nb 1", "c"]), ranks(["a\nb 2", "c"])];
        let varying = find_varying_words(&plain, &[], Order::Printed).unwrap();
        assert_eq!(varying.difference(&ranks(["a\nb 3", "c"]), 0.0), None);
        let why = |texts| varying.difference(&ranks(texts), 0.0).unwrap();
        assert_eq!(why(["a\nb 1", "d"]), "rank 1: \"d\" instead of \"c\"");
        assert!(why(["b 1\na", "c"]).starts_with("rank 0: "));
        assert_eq!(
            why(["a\nb 1", ""]),
            "rank 1: 0 lines instead of 1: \"c\" is missing"
        );
        assert!(varying.difference(&printed("a"), 0.0).is_some());
        let other = find_varying_words(&[ranks(["a", "c"]), ranks(["a", ""])], &[], Order::Printed);
        let why = other.err().unwrap().to_string();
        assert_eq!(why, "rank 1: 1 lines in one, 0 in another");
        // What is printed beside them comes in any order.
        let with = |text: &str| {
            let mut all = ranks(["a\nb", "c"]);
            all.insert(String::new(), text.into());
            all
        };
        let varying = find_varying_words(&[with("x\ny")], &[], Order::Any).unwrap();
        assert_eq!(varying.difference(&with("y\nx"), 0.0), None);
        assert!(varying.difference(&with("y\nz"), 0.0).is_some());
        let mut other = with("x\ny");
        other.insert("0".to_owned(), b"b\na".to_vec());
        let why = varying.difference(&other, 0.0).unwrap();
        assert_eq!(why, "rank 0: \"b\" instead of \"a\"");
    }

    #[test]
    fn every_byte_counts_in_what_is_no_text() {
        let bytes = |bytes: &[u8]| -> Printed { [(String::new(), bytes.to_vec())].into() };
        for order in [Order::Printed, Order::Any] {
            let plain = bytes(b"head\n\x80\x01 \xff\n\0a\tb");
            let varying = find_varying_words(std::slice::from_ref(&plain), &[], order).unwrap();
            assert_eq!(varying.difference(&plain, 0.0), None);
            for other in [
                &b"head\n\x81\x01 \xff\n\0a\tb"[..],
                b"head\n\x80\x01 \xfe\n\0a\tb",
                b"head\n\x80\x01\t\xff\n\0a\tb",
                b"head\n\x80\x01 \xff\n\0a\rb",
            ] {
                assert!(
                    varying.difference(&bytes(other), 0.0).is_some(),
                    "{other:?}"
                );
            }
        }
        // Text that is not UTF-8 has words.
        let plain = [
            bytes(b"gr\xf6\xdfe 3 time 1"),
            bytes(b"gr\xf6\xdfe 3 time 2"),
        ];
        let latin = find_varying_words(&plain, &[], Order::Printed).unwrap();
        assert_eq!(latin.difference(&bytes(b"gr\xf6\xdfe 3 time 7"), 0.0), None);
        for other in [&b"gr\xf6\xdfe 4 time 7"[..], b"gr\xf5\xdfe 3 time 7"] {
            assert!(latin.difference(&bytes(other), 0.0).is_some());
        }
        let much = |a, b| as_much(&bytes(a), &bytes(b), &["x".to_owned()]);
        assert!(much(b"a\n\n \nb x\n\xff", b"a\nb\n") && much(b"ab", b"a\n"));
        assert!(!much(b"a\nb\n", b"a\nb x\n"));
        let note = |texts: [&[u8]; 2]| {
            let varying = find_varying_words(&texts.map(bytes), &[], Order::Printed);
            varying.unwrap().note().unwrap()
        };
        assert!(note([b"1", b"2"]).ends_with("as in: 1: only how the program ends is checked"));
        assert!(note([b"a 1", b"a 2"]).ends_with("as in: a 1"));
        let none = find_varying_words(&[bytes(b"\n"), bytes(b"\n")], &[], Order::Printed);
        assert!(
            none.unwrap()
                .note()
                .unwrap()
                .starts_with("there is no output")
        );
    }

    #[test]
    fn numbers_that_are_near() {
        assert!(numbers_agree("1.5D+01", "15.00001", 1e-5));
        assert!(numbers_agree("0", "0", 0.0));
        assert!(!numbers_agree("1", "-1", 0.5));
        assert!(!numbers_agree("x", "x1", 0.5));
    }
}

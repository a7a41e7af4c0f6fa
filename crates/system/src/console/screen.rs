//! The width of what people read: of the terminal, and of text in its columns.

use super::color;
use rustix::termios::tcgetwinsize;
use std::borrow::Cow;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use unicode_width::UnicodeWidthChar;

/// Minimum columns that output is laid out for.
pub const LEAST: usize = 20;
/// Columns of a terminal that does not say.
const USUAL: usize = 80;

/// Whether nothing is to be cut in this process.
static WIDE: AtomicBool = AtomicBool::new(false);

/// Has tables and names written whole.
pub fn set_wide() {
    WIDE.store(true, Ordering::Relaxed);
}

/// Whether tables and names are written whole, as the user asked.
pub fn is_wide() -> bool {
    WIDE.load(Ordering::Relaxed)
}

/// Columns that lines on stdout may have: those of `COLUMNS`, else of the terminal; [`LEAST`] at least. None if lines may have
/// any length: the user asked so, or a file or program reads them.
pub fn columns() -> Option<usize> {
    let asked = std::env::var("COLUMNS").ok();
    columns_of(is_wide(), asked.as_deref(), terminal())
}

/// The same by what it depends on; `terminal` is none without one, and 0 if it does not say.
fn columns_of(wide: bool, asked: Option<&str>, terminal: Option<usize>) -> Option<usize> {
    let asked = asked.and_then(|text| text.trim().parse().ok());
    let terminal = terminal.map(|columns| if columns == 0 { USUAL } else { columns });
    let columns = asked.filter(|columns| *columns > 0).or(terminal)?;
    (!wide).then_some(columns.max(LEAST))
}

fn terminal() -> Option<usize> {
    let stdout = std::io::stdout();
    let size = || tcgetwinsize(&stdout).map_or(0, |size| size.ws_col.into());
    stdout.is_terminal().then(size)
}

/// Columns that `text` takes on a terminal.
pub fn width(text: &str) -> usize {
    color::without(text).chars().map(of_char).sum()
}

/// Columns that `c` takes.
pub fn of_char(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// The beginning of `text` that fits into `columns`, in bytes: one character at least.
fn fitting(text: &str, columns: usize) -> usize {
    let mut taken = 0;
    for (at, c) in text.char_indices() {
        taken += of_char(c);
        if taken > columns && at > 0 {
            return at;
        }
    }
    text.len()
}

/// `text` in exactly so many columns: cut, with dots at its end, or with blanks behind it.
pub fn fit(text: &str, columns: usize) -> String {
    let text = match width(text) > columns {
        true => format!("{}...", &text[..fitting(text, columns.saturating_sub(3))]),
        false => text.to_owned(),
    };
    let blank = columns.saturating_sub(width(&text));
    format!("{text}{:blank$}", "")
}

/// `text` as lines of at most `columns`, broken at blanks, and within words that are longer than a line. No line is empty, but
/// that of an empty text; a text that fits is one line as it is.
pub fn broken(text: &str, columns: usize) -> Vec<String> {
    if width(text) <= columns {
        return vec![text.to_owned()];
    }
    let mut lines = vec![String::new()];
    for mut word in text.split(' ') {
        let last = lines.last_mut().map_or(0, |line| width(line));
        let joins = last == 0 || last + 1 + width(word) <= columns;
        match lines.last_mut().filter(|_| joins) {
            Some(line) if last > 0 => *line += " ",
            Some(_) => {}
            None => lines.push(String::new()),
        }
        while width(word) > columns && !word.contains('\x1b') {
            let at = fitting(word, columns);
            push(&mut lines, &word[..at]);
            lines.push(String::new());
            word = &word[at..];
        }
        push(&mut lines, word);
    }
    lines.retain(|line| !line.is_empty());
    if lines.is_empty() {
        lines.push(String::new());
    }
    lines
}

fn push(lines: &mut [String], text: &str) {
    if let Some(line) = lines.last_mut() {
        *line += text;
    }
}

/// `text` with lines that fit [`columns`]: longer ones go on below their last column, which begins behind two blanks or more.
pub fn folded(text: &str) -> Cow<'_, str> {
    match columns() {
        Some(columns) if text.lines().any(|line| width(line) > columns) => {
            let lines = text.split('\n').map(|line| fold(line, columns));
            Cow::Owned(lines.collect::<Vec<_>>().join("\n"))
        }
        _ => Cow::Borrowed(text),
    }
}

fn fold(line: &str, columns: usize) -> String {
    if width(line) <= columns {
        return line.to_owned();
    }
    let text = line.trim_start_matches(' ');
    let indent = (line.len() - text.len()).min(columns / 4);
    let gap = text.rfind("  ").map_or(0, |at| at + 2);
    let (label, value) = text.split_at(gap);
    let below = indent + width(label);
    // Beside a wide label there is no room.
    let (label, value, below) = match below <= columns / 2 {
        true if gap > 0 => (label, value, below),
        _ => ("", text, indent + 2),
    };
    let first = match label {
        "" => indent,
        _ => below,
    };
    let mut text = format!("{:indent$}{label}", "");
    for (number, part) in broken(value, columns - below).iter().enumerate() {
        match number {
            0 if first < below => text += part,
            0 => text += part,
            _ => text += &format!("\n{:below$}{part}", ""),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_how_wide_the_screen_is() {
        for (wide, asked, terminal, columns) in [
            (false, None, Some(132), Some(132)),
            (false, Some("72"), Some(132), Some(72)),
            (false, Some("72"), None, Some(72)),
            (false, Some("0"), Some(100), Some(100)),
            (false, Some("-3"), None, None),
            (false, Some("wide"), Some(0), Some(USUAL)),
            (false, Some("5"), None, Some(LEAST)),
            (false, Some(" 90 "), None, Some(90)),
            (false, Some("99999999999999999999999"), Some(80), Some(80)),
            (false, None, None, None),
            (true, Some("72"), Some(132), None),
        ] {
            let found = columns_of(wide, asked, terminal);
            assert_eq!(found, columns, "{wide} {asked:?} {terminal:?}");
        }
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!((width("計算@核.c"), width("e\u{301}")), (9, 1));
        assert_eq!(broken("計算核", 4), ["計算", "核"]);
        assert_eq!(broken("計", 1), ["計"]);
        assert_eq!(
            (fit("計算核", 5).as_str(), fit("計", 3).as_str()),
            ("計...", "計 ")
        );
    }

    #[test]
    fn lines_break_at_blanks() {
        assert_eq!(broken("one two three", 8), ["one two", "three"]);
        assert_eq!(broken("a longestword b", 5), ["a", "longe", "stwor", "d b"]);
        assert_eq!(broken("", 5), [""]);
        assert_eq!(broken("  ", 5), ["  "]);
        assert_eq!(broken("      ", 5), [""]);
    }

    #[test]
    fn long_lines_go_on_below_their_last_column() {
        let line = "  verdict  exact: all that was compared is equal";
        assert_eq!(
            fold(line, 32),
            "  verdict  exact: all that was\n           compared is equal"
        );
        assert_eq!(fold("some words of prose", 12), "some words\n  of prose");
        assert_eq!(fold("short", 12), "short");
        for columns in LEAST..60 {
            let shown = fold(line, columns);
            assert!(shown.lines().all(|l| width(l) <= columns), "{shown}");
            let words = |text: &str| {
                text.split_whitespace()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            };
            assert_eq!(words(&shown), words(line));
        }
    }
}

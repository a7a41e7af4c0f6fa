//! Messages to stderr; text, tables and JSON to stdout.

use crate::console::{color, screen};
use anyhow::{Context, Result};
use cere_format::untrusted::{is_plain, visible};
use indicatif::MultiProgress;
use std::io::{ErrorKind, Write};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU8, Ordering};

pub use super::number::{joules, number, percent, time, time_within, times, times_alike, within};
pub use super::table::{table, table_of_names};

/// The progress that is shown: hidden while a line is written.
pub(crate) static SHOWN: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// The verbosity of this process.
static VERBOSITY: AtomicU8 = AtomicU8::new(1);

/// How much a command writes to stderr, besides errors and warnings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verbosity {
    /// Nothing else.
    Quiet,
    /// Notes and progress.
    Normal,
    /// Each step too.
    Verbose,
}

/// Sets the verbosity of this process.
pub fn set_verbosity(verbosity: Verbosity) {
    VERBOSITY.store(verbosity as u8, Ordering::Relaxed);
}

/// The verbosity of this process.
pub fn verbosity() -> Verbosity {
    match VERBOSITY.load(Ordering::Relaxed) {
        0 => Verbosity::Quiet,
        1 => Verbosity::Normal,
        _ => Verbosity::Verbose,
    }
}

/// Writes a note to stderr, unless the command is to be quiet. Takes what `format!` takes.
#[macro_export]
macro_rules! note {
    ($($argument:tt)*) => { $crate::console::print::note(&format!($($argument)*)) };
}

/// Writes a warning to stderr. Takes what `format!` takes.
#[macro_export]
macro_rules! warning {
    ($($argument:tt)*) => { $crate::console::print::warning(&format!($($argument)*)) };
}

/// Writes a note on what is done to stderr, if the command is to be verbose. Takes what `format!` takes.
#[macro_export]
macro_rules! detail {
    ($($argument:tt)*) => { $crate::console::print::detail(&format!($($argument)*)) };
}

/// Writes a line to stderr.
pub fn line(text: &str) {
    // A closed stderr is no reason to fail.
    SHOWN.suspend(|| {
        let text = lines(text);
        let text = color::message(&text);
        let _ = writeln!(std::io::stderr().lock(), "{}", color::without(&text));
    });
}

/// Writes an error and its causes to stderr, with its code if it has one.
pub fn failed(failure: &anyhow::Error) {
    let code = cere_catalogue::of(failure).map(|code| format!("[{code}]"));
    line(&format!(
        "cere: error{}: {}",
        code.unwrap_or_default(),
        error(failure)
    ));
}

/// See [`warning!`](crate::console::warning). A warning that the catalogue knows has its code.
pub fn warning(text: &str) {
    let code = cere_catalogue::said(text).map(|entry| format!("[{}]", entry.code));
    line(&format!(
        "cere: warning{}: {text}",
        code.unwrap_or_default()
    ));
}

/// A reason with its code behind it, if the catalogue knows it: `it never ran with these arguments [CERE-3102]`.
pub fn reason(text: &str) -> String {
    match cere_catalogue::said(text) {
        Some(entry) => format!("{text} [{}]", entry.code),
        None => text.to_owned(),
    }
}

/// See [`note!`](crate::console::note).
pub fn note(text: &str) {
    if verbosity() != Verbosity::Quiet {
        line(&format!("cere: {text}"));
    }
}

/// Writes each of `notes` as [`note!`](crate::console::note) does.
pub fn tell(notes: &[String]) {
    notes.iter().for_each(|text| note(text));
}

/// See [`detail!`](crate::console::detail).
pub fn detail(text: &str) {
    if verbosity() == Verbosity::Verbose {
        line(&format!("cere: {text}"));
    }
}

/// `text`, its lines kept, with other control characters made visible. Lines may end in CR LF, as those of CSV do.
fn lines(text: &str) -> String {
    let whole = |c: char| c == '\n' || is_plain(c);
    let line = |line: &str| match line.strip_suffix('\r') {
        Some(line) => color::guarded(line) + "\r",
        None => color::guarded(line),
    };
    if text.chars().all(whole) {
        return text.to_owned();
    }
    let mut lines: Vec<String> = text.split('\n').map(line).collect();
    // A carriage return without a line feed does not end a line.
    if let Some(last) = lines.last_mut()
        && last.ends_with('\r')
    {
        *last = visible(last);
    }
    lines.join("\n")
}

/// Writes text for people to stdout: lines that are longer than the terminal is wide are folded.
pub fn text(text: &str) -> Result<()> {
    out(&screen::folded(&lines(text)))
}

/// Writes `text` to stdout, line by line as it is.
pub fn out(text: &str) -> Result<()> {
    raw(&lines(text))
}

/// Writes `text` to stdout as it is: a format of another tool, in which tabs count.
pub fn raw(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    let text = lines(text);
    match stdout
        .write_all(color::shown(&text).as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write to stdout"),
    }
}

/// The error and its causes; a cause that the text above already contains is not repeated. Lines after the first are
/// indented, so that text of a tool or of a stranger's code cannot look like a message of this command.
pub fn error(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text.replace('\n', "\n    ")
}

/// Writes `value` as JSON to stdout.
pub fn json<T: serde::Serialize>(value: &T) -> Result<()> {
    let text = plain_json(&serde_json::to_string_pretty(value)?);
    out(&format!("{text}\n"))
}

/// JSON in which characters that are not plain are escaped as JSON does it: [`out`] would escape them otherwise.
fn plain_json(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c == '\n' || is_plain(c) {
            true => shown.push(c),
            false => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    shown.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    shown
}

/// `text`, cut after `most` characters, unless the user asked for all.
pub fn short(text: &str, most: usize) -> String {
    match !screen::is_wide() && text.chars().count() > most {
        true => format!("{}...", text.chars().take(most).collect::<String>()),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_stays_json() {
        let name = "a\u{202e}b\u{1b}\u{7f}";
        let text = plain_json(&serde_json::to_string_pretty(&[name]).unwrap());
        assert!(lines(&text).contains("a\\u202eb\\u001b\\u007f"), "{text}");
        let read: Vec<String> = serde_json::from_str(&lines(&text)).unwrap();
        assert_eq!(read, [name]);
    }

    #[test]
    fn a_terminal_obeys_nothing() {
        assert_eq!(lines("a\x1b[2J\rb\nc\t"), "a\\u{1b}[2J\\rb\nc\\t");
        let spoof = anyhow::anyhow!("failed\ncere: exact");
        assert_eq!(error(&spoof), "failed\n    cere: exact");
    }

    #[test]
    fn causes_are_said_once() {
        let cause = std::io::Error::other("no such thing");
        let quoting = anyhow::Error::from(cause).context("cannot read x: no such thing");
        assert_eq!(error(&quoting), "cannot read x: no such thing");
        let plain = anyhow::anyhow!("no room").context("cannot write y");
        assert_eq!(error(&plain), "cannot write y: no room");
    }
}

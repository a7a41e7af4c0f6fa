//! Words, calls and variables in build files.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Most bytes of a build file that are read.
const MOST: u64 = 4 << 20;
/// Most files of a folder that are looked at.
const FILES: usize = 5000;

/// The text of a file, other bytes than UTF-8 replaced; none if it cannot be read.
pub fn read(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path)
        .ok()?
        .take(MOST)
        .read_to_end(&mut bytes)
        .ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The files in a folder, by name; not those in folders below.
pub fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .take(FILES)
        .map(|e| e.path())
        .filter(|p| p.is_file())
        .collect();
    files.sort();
    files
}

/// Names and values.
pub type Variables = BTreeMap<String, String>;

/// Rounds of expansion: variables may name variables, or themselves.
const DEEP: usize = 8;
/// Longest text that an expansion makes.
const LONG: usize = 1 << 16;

/// `text` with `$(NAME)` and `${NAME}` replaced; unknown ones become nothing.
pub fn expand(text: &str, variables: &Variables) -> String {
    let mut text = text.to_owned();
    for _ in 0..DEEP {
        let next = expand_once(&text, variables);
        if next == text || next.len() > LONG {
            break;
        }
        text = next;
    }
    text
}

fn expand_once(text: &str, variables: &Variables) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out += &rest[..at];
        let after = &rest[at + 1..];
        let close = match after.chars().next() {
            Some('(') => ')',
            Some('{') => '}',
            _ => {
                out.push('$');
                rest = after;
                continue;
            }
        };
        let Some(end) = after.find(close) else {
            return out + &rest[at..];
        };
        let value = variables.get(after[1..end].trim());
        out += value.map_or("", String::as_str);
        rest = &after[end + 1..];
    }
    out + rest
}

/// The arguments of each call of `name` in a text, as words without quotes; names of calls are compared without case.
pub fn calls(text: &str, name: &str) -> Vec<Vec<String>> {
    let lower = text.to_ascii_lowercase();
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = lower[from..].find(name).map(|at| at + from) {
        from = at + name.len();
        let alone = !lower[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let Some(inside) = text[from..].trim_start().strip_prefix('(') else {
            continue;
        };
        let Some(end) = inside.find(')').filter(|_| alone) else {
            continue;
        };
        let words = inside[..end].split(|c: char| c.is_whitespace() || c == ',');
        let words = words
            .map(|w| w.trim_matches(['"', '\'']))
            .filter(|w| !w.is_empty());
        found.push(words.map(str::to_owned).collect());
    }
    found
}

/// Without comments, which begin with `#`.
pub fn without_comments(text: &str) -> String {
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

//! Writing to stdout: a reader that went away ends the output, not the command.

use anyhow::{Context, Result};
use std::io::{ErrorKind, Write};

/// Writes `text` to stdout.
pub fn out(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write to stdout"),
    }
}

/// Writes `value` as JSON to stdout.
pub fn json<T: serde::Serialize>(value: &T) -> Result<()> {
    out(&format!("{}\n", serde_json::to_string_pretty(value)?))
}

/// Rows as text with aligned columns and a heading above: to the right, but for the first column and those whose
/// heading starts with `<`.
pub fn table(heading: &[&str], rows: &[Vec<String>]) -> String {
    let left: Vec<bool> = heading
        .iter()
        .enumerate()
        .map(|(column, h)| column == 0 || h.starts_with('<'))
        .collect();
    let heading: Vec<String> = heading
        .iter()
        .map(|h| h.trim_start_matches('<').to_owned())
        .collect();
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .chain([heading[column].len()])
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heading.len()).map(width).collect();
    let mut text = String::new();
    for row in std::iter::once(&heading).chain(rows) {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = widths[column];
            if column > 0 {
                line.push_str("  ");
            }
            line.push_str(&if left[column] {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            });
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A time with a unit that suits it.
pub fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.3} s"),
        s if s >= 1e-3 => format!("{:.3} ms", s * 1e3),
        s if s >= 1e-6 => format!("{:.3} us", s * 1e6),
        s => format!("{:.0} ns", s * 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let row = ["xyz", "1", "p"].map(String::from).to_vec();
        assert_eq!(
            table(&["a", "bb", "<last"], &[row]),
            "a    bb  last\nxyz   1  p\n"
        );
    }

    #[test]
    fn times() {
        assert_eq!(time(1.5), "1.500 s");
        assert_eq!(time(0.0021), "2.100 ms");
        assert_eq!(time(4.2e-8), "42 ns");
    }
}

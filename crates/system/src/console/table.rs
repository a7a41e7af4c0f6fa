//! Tables that fit the terminal. A table that is too wide first gets headings of several lines, shorter names and text of several lines,
//! then each name on a line above its row, then a block of lines for each row. No column is left out.

use super::color::guarded;
use super::screen::{self, broken, width};
use super::short;

/// Minimum columns of a name beside its values.
const NAME: usize = 36;
/// Minimum columns of text that is broken into lines.
const TEXT: usize = 16;
/// Columns up to which a heading is one line.
const HEADING: usize = 8;
/// Columns between two columns.
const GAP: usize = 2;
/// Units that go to the heading.
const UNITS: [&str; 16] = [
    "s", "ms", "us", "ns", "%", "KiB", "MiB", "GiB", "kJ", "J", "mJ", "uJ", "W", "GB/s", "bytes",
    "times",
];

/// A column: its heading and cells.
#[derive(Clone)]
struct Column {
    heading: String,
    cells: Vec<String>,
    /// Whether it is aligned to the left: text, which may be broken into lines, or names.
    left: bool,
}

impl Column {
    /// A unit that all cells share is part of the heading instead.
    fn lift_unit(&mut self) {
        let known = |cell: &&String| !matches!(cell.as_str(), "" | "-" | "?");
        let mut units = self.cells.iter().filter(known).map(|cell| unit(cell));
        let Some(Some(unit)) = units.next() else {
            return;
        };
        if !units.all(|other| other == Some(unit)) {
            return;
        }
        let unit = format!(" {unit}");
        if self.heading.is_empty() {
            return;
        }
        for cell in &mut self.cells {
            // Within a cell a unit is a word.
            *cell = format!("{cell} ")
                .replace(&format!("{unit} "), " ")
                .replace(&format!("{unit})"), ")");
            cell.truncate(cell.trim_end().len());
        }
        self.heading += &unit;
    }

    /// Columns of the widest cell.
    fn of_cells(&self) -> usize {
        self.cells.iter().map(|cell| width(cell)).max().unwrap_or(0)
    }

    fn width(&self) -> usize {
        self.of_cells().max(width(&self.heading))
    }

    /// The heading as lines: broken at blanks and behind slashes where it is wider than `columns` and the cells.
    fn heading_lines(&self, columns: Option<usize>) -> Vec<String> {
        match columns {
            Some(columns) if width(&self.heading) > columns => {
                let parts = self.heading.replace('/', "/ ");
                let lines = broken(&parts, columns);
                lines.iter().map(|line| line.replace("/ ", "/")).collect()
            }
            _ => vec![self.heading.clone()],
        }
    }

    /// Columns of the heading's longest word, or of all of it if it is short.
    fn of_heading(&self) -> usize {
        let words = self.heading.split_inclusive([' ', '/']);
        let longest = words.map(|word| width(word.trim_end())).max();
        match width(&self.heading) {
            short if short <= HEADING => short,
            _ => longest.unwrap_or(0),
        }
    }
}

/// The unit of a cell that consists of numbers with one unit: `1.2 ms`, `1.2 ms (1.1 ms to 1.4 ms)`, `1.23 ± 0.02 ms`.
fn unit(cell: &str) -> Option<&'static str> {
    let mut found = None;
    for word in cell.split(' ').filter(|word| !matches!(*word, "to" | "±")) {
        let word = word.trim_matches(['(', ')']);
        let number = word.replace(',', "").parse::<f64>().is_ok();
        let unit = UNITS.into_iter().find(|unit| *unit == word);
        match (number, unit, found) {
            (true, _, _) => {}
            (_, Some(unit), None) => found = Some(unit),
            (_, Some(unit), Some(known)) if unit == known => {}
            _ => return None,
        }
    }
    // Without a number behind it, which would have none.
    let end = cell.trim_end_matches(')');
    found.filter(|unit| end.ends_with(unit) && end.len() > unit.len())
}

/// Rows as text with aligned columns and a heading above: to the right, but for the first column and those whose
/// heading starts with `<`, which hold text. It fits the terminal.
pub fn table(heading: &[&str], rows: &[Vec<String>]) -> String {
    let columns = columns(heading, rows);
    laid_out(columns, rows.len(), false, screen::columns())
}

/// Like [`table`], with names of regions or codelets in the first column, cut so that a line fits the terminal.
pub fn table_of_names(heading: &[&str], rows: Vec<Vec<String>>) -> String {
    let columns = columns(heading, &rows);
    laid_out(columns, rows.len(), true, screen::columns())
}

fn columns(heading: &[&str], rows: &[Vec<String>]) -> Vec<Column> {
    let each = heading.iter().enumerate();
    let column = |(number, heading): (usize, &&str)| {
        let cell = |row: &Vec<String>| row.get(number).map_or_else(String::new, |c| guarded(c));
        let mut column = Column {
            heading: heading.trim_start_matches('<').to_owned(),
            cells: rows.iter().map(cell).collect(),
            left: number == 0 || heading.starts_with('<'),
        };
        column.lift_unit();
        column
    };
    each.map(column).collect()
}

/// The table within `most` columns.
fn laid_out(mut columns: Vec<Column>, rows: usize, names: bool, most: Option<usize>) -> String {
    let Some(most) = most else {
        let widths: Vec<usize> = columns.iter().map(Column::width).collect();
        return lines(&columns, rows, &widths);
    };
    if let Some(widths) = side_by_side(&mut columns, names, most) {
        return lines(&columns, rows, &widths);
    }
    if names {
        let all: Vec<&str> = columns[0].cells.iter().map(String::as_str).collect();
        columns[0].cells = short::names(&all, most);
        if let Some(text) = names_above(&columns, rows, most) {
            return text;
        }
    }
    blocks(&columns, rows, most)
}

/// Columns for each column, if the table fits into `most`; names are cut for that.
fn side_by_side(columns: &mut [Column], names: bool, most: usize) -> Option<Vec<usize>> {
    let gaps = GAP * columns.len().saturating_sub(1);
    let wanted: Vec<usize> = columns.iter().map(Column::width).collect();
    if gaps + wanted.iter().sum::<usize>() <= most {
        return Some(wanted);
    }
    let mut widths: Vec<usize> = (0..columns.len())
        .map(|number| least(&columns[number], number == 0 && names))
        .collect();
    let mut room = most.checked_sub(gaps + widths.iter().sum::<usize>())?;
    if names {
        // Text behind names may be broken into lines, but gets its part.
        let texts = (1..columns.len()).filter(|n| columns[*n].left);
        let texts: usize = texts.map(|n| wanted[n].saturating_sub(widths[n])).sum();
        room += widths[0];
        widths[0] = cut_names(&mut columns[0], room - texts.min((room - widths[0]) / 2))?;
        room -= widths[0];
    }
    let from = usize::from(names);
    let (texts, numbers): (Vec<usize>, Vec<usize>) =
        (from..columns.len()).partition(|number| columns[*number].left);
    for (at, number) in texts.iter().enumerate() {
        let share = room / (texts.len() - at);
        let more = wanted[*number].saturating_sub(widths[*number]).min(share);
        widths[*number] += more;
        room -= more;
    }
    for number in numbers {
        let more = wanted[number] - widths[number];
        if more <= room {
            widths[number] += more;
            room -= more;
        }
    }
    Some(widths)
}

/// The minimum of a column: one of numbers may have a heading of several lines, one of text may have text of several.
fn least(column: &Column, names: bool) -> usize {
    let cells = column.of_cells();
    let cells = match (names, column.left) {
        (true, _) => cells.min(NAME),
        (_, true) => cells.min(TEXT),
        _ => cells,
    };
    cells.max(column.of_heading())
}

/// Cuts names to `most` columns, if they stay apart; how many they take.
fn cut_names(column: &mut Column, most: usize) -> Option<usize> {
    let all: Vec<&str> = column.cells.iter().map(String::as_str).collect();
    let cut = short::names(&all, most);
    let own = cut.iter().map(|name| width(name)).max().unwrap_or(0);
    let own = own.max(column.of_heading());
    if own > most {
        return None;
    }
    column.cells = cut;
    Some(own)
}

/// The lines of a table whose columns have these widths.
fn lines(columns: &[Column], rows: usize, widths: &[usize]) -> String {
    let each = || columns.iter().zip(widths);
    let heading = each().map(|(column, width)| column.heading_lines(Some(*width)));
    let mut text = row(columns, &heading.collect::<Vec<_>>(), widths, true);
    for number in 0..rows {
        let cells = each().map(|(column, width)| match column.left {
            true => broken(&column.cells[number], *width),
            false => vec![column.cells[number].clone()],
        });
        text += &row(columns, &cells.collect::<Vec<_>>(), widths, false);
    }
    text
}

/// A row of cells of several lines; a heading's are at the bottom.
fn row(columns: &[Column], cells: &[Vec<String>], widths: &[usize], heading: bool) -> String {
    let lines = cells.iter().map(Vec::len).max().unwrap_or(0);
    let mut text = String::new();
    for number in 0..lines {
        let mut line = String::new();
        for ((column, cell), columns) in columns.iter().zip(cells).zip(widths) {
            let above = if heading { lines - cell.len() } else { 0 };
            let cell = number.checked_sub(above).and_then(|at| cell.get(at));
            let cell = cell.map_or("", String::as_str);
            let blank = columns.saturating_sub(width(cell));
            line += &match column.left {
                true => format!("{cell}{:blank$}", ""),
                false => format!("{:blank$}{cell}", ""),
            };
            line += &" ".repeat(GAP);
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// Each name above its row, if the other columns fit into `most`.
fn names_above(columns: &[Column], rows: usize, most: usize) -> Option<String> {
    let (names, values) = columns.split_first()?;
    if values.is_empty() {
        return None;
    }
    let mut values = values.to_vec();
    let widths = side_by_side(&mut values, false, most.checked_sub(GAP)?)?;
    let table = lines(&values, rows, &widths);
    let heights = (0..rows).map(|number| {
        let cells = values.iter().zip(&widths);
        let lines = cells.filter(|(column, _)| column.left);
        let lines = lines.map(|(column, width)| broken(&column.cells[number], *width).len());
        lines.max().unwrap_or(1).max(1)
    });
    let total = table.lines().count();
    let heights: Vec<usize> = heights.collect();
    let head = total - heights.iter().sum::<usize>();
    let mut text = format!("{}\n", names.heading);
    let mut table = table.lines();
    let mut copy = |count: usize, text: &mut String| {
        for line in table.by_ref().take(count) {
            *text += format!("{:GAP$}{line}", "").trim_end();
            text.push('\n');
        }
    };
    copy(head, &mut text);
    for (name, height) in names.cells.iter().zip(heights) {
        text += &named(name, most);
        copy(height, &mut text);
    }
    Some(text)
}

/// A name on lines of its own.
fn named(name: &str, most: usize) -> String {
    let lines = broken(name, most).into_iter();
    lines.map(|line| line + "\n").collect()
}

/// A block of lines for each row.
fn blocks(columns: &[Column], rows: usize, most: usize) -> String {
    let Some((first, values)) = columns.split_first() else {
        return String::new();
    };
    let label = values.iter().map(|column| width(&column.heading)).max();
    let label = label.unwrap_or(0);
    let mut text = String::new();
    for number in 0..rows {
        text += &named(&first.cells[number], most);
        for column in values.iter().filter(|c| !c.cells[number].is_empty()) {
            text += &value(&column.heading, label, &column.cells[number], most);
        }
    }
    text
}

/// A line of a block: the heading, then the value, below it where there is no room beside it.
fn value(heading: &str, label: usize, cell: &str, most: usize) -> String {
    let beside = GAP + label + GAP;
    let room = most.saturating_sub(beside);
    let indented = |text: &str, by: usize| {
        let lines = broken(text, most.saturating_sub(by).max(1)).into_iter();
        let lines = lines.map(|line| format!("{:by$}{line}\n", ""));
        lines.collect::<String>()
    };
    if label > 0 && room >= width(cell).min(TEXT) {
        let blank = label - width(heading);
        let lines = indented(cell, beside);
        let rest = lines.get(beside..).unwrap_or_default();
        return format!("{:GAP$}{heading}{:blank$}{:GAP$}{rest}", "", "", "");
    }
    indented(heading, GAP) + &indented(cell, 2 * GAP)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[&[&str]]) -> Vec<Vec<String>> {
        let row = |row: &&[&str]| row.iter().map(|cell| (*cell).to_owned()).collect();
        rows.iter().map(row).collect()
    }

    fn within(heading: &[&str], rows: &[Vec<String>], most: usize) -> String {
        let text = laid_out(columns(heading, rows), rows.len(), true, Some(most));
        for line in text.lines() {
            assert!(width(line) <= most, "{most}: {line}\n{text}");
        }
        text
    }

    #[test]
    fn columns_line_up() {
        let row = rows(&[&["xyz", "1", "p"]]);
        assert_eq!(
            table(&["a", "bb", "<last"], &row),
            "a    bb  last\nxyz   1  p\n"
        );
        let row = rows(&[&["a\n\u{202e}b"]]);
        assert_eq!(table(&["x"], &row), "x\na\\n\\u{202e}b\n");
        let row = rows(&[&["核", "1"], &["abc", "2"]]);
        assert_eq!(table(&["x", "y"], &row), "x    y\n核   1\nabc  2\n");
    }

    #[test]
    fn a_unit_that_all_cells_share_is_in_the_heading() {
        let all = rows(&[
            &[
                "f",
                "1.5 ms",
                "+3.2 %",
                "1.0 ms",
                "1.0 ms to 2.0 ms",
                "2 ms",
            ],
            &["g", "2.5 ms", "-", "1.0 us", "1.0 ms to 3.0 ms", "many"],
        ]);
        assert_eq!(
            table(&["x", "time", "error", "mixed", "<from", "words"], &all),
            "\
x  time ms  error %   mixed  from ms     words
f      1.5     +3.2  1.0 ms  1.0 to 2.0   2 ms
g      2.5        -  1.0 us  1.0 to 3.0   many
"
        );
        let times = rows(&[
            &["f", "1.63 ± 0.02 ms"],
            &["g", "1.6 ms (1.5 ms to 2.5 ms)"],
        ]);
        assert_eq!(
            table(&["x", "time"], &times),
            "x           time ms\nf       1.63 ± 0.02\ng  1.6 (1.5 to 2.5)\n"
        );
        assert_eq!(unit("1.63 ± 0.02 s"), Some("s"));
        assert_eq!(
            (unit("1,024 bytes"), unit("ms"), unit("3")),
            (Some("bytes"), None, None)
        );
        assert_eq!(
            (unit("1 ms to 2 us"), unit("2 s ago"), unit("1 s 2")),
            (None, None, None)
        );
    }

    #[test]
    fn every_width_is_kept() {
        let long = format!(
            "std::sort<{}>@stl_algo.h:1865",
            "std::pair<int, int>, ".repeat(12)
        );
        let all = rows(&[
            &[
                &long,
                "0.027980",
                "21.52",
                "loop",
                "refused: it calls setjmp, which returns twice",
            ],
            &["f@a.c:1", "1", "2", "parallel", "accepted"],
        ]);
        let heading = ["region", "self s", "cycles/invocation", "<kind", "<"];
        for most in screen::LEAST..200 {
            let text = within(&heading, &all, most);
            let words = "0.027980 21.52 loop refused: setjmp, twice f@a.c:1 accepted";
            for word in words.split(' ') {
                assert!(text.contains(word), "{most}: {word} is lost in\n{text}");
            }
        }
    }

    #[test]
    fn steps_from_wide_to_narrow() {
        let all = rows(&[
            &[
                "relax<std::vector<double>, 3>@stencil.cpp:12",
                "0.5",
                "12345678",
            ],
            &["main@stencil.cpp:40", "0.25", "1"],
        ]);
        let heading = ["region", "self s", "cycles/invocation"];
        assert_eq!(
            within(&heading, &all, 60),
            "\
region                   self s  cycles/invocation
relax<*>@stencil.cpp:12     0.5           12345678
main@stencil.cpp:40        0.25                  1
"
        );
        assert_eq!(
            within(&heading, &all, 30),
            "\
region
  self s  cycles/invocation
relax<*>@stencil.cpp:12
     0.5           12345678
main@stencil.cpp:40
    0.25                  1
"
        );
        assert_eq!(
            within(&heading, &all, 20),
            "\
region
             cycles/
  self s  invocation
rela*@stencil.cpp:12
     0.5    12345678
main@stencil.cpp:40
    0.25           1
"
        );
        let many = rows(&[&["f@a.c:1", "1", "2", "3", "4"]]);
        let heading = ["region", "first column", "second column", "third", "fourth"];
        assert_eq!(
            within(&heading, &many, 24),
            "f@a.c:1\n  first column   1\n  second column  2\n  third          3\n  fourth         4\n"
        );
    }
}

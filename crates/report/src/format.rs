//! Numbers and names as the page shows them.

use crate::plot::picture::escape;
use cere_format::untrusted::visible;

/// A time with a unit that suits it, three digits or more.
pub fn time(seconds: f64) -> String {
    cere_system::console::print::time(seconds).replace(" us", " µs")
}

/// A time with the three digits that a run of a program gives it.
pub fn brief(seconds: f64) -> String {
    if seconds == 0.0 {
        return "0 s".to_owned();
    }
    let units = [(1.0, "s"), (1e3, "ms"), (1e6, "µs"), (1e9, "ns")];
    let fits = units
        .iter()
        .find(|(factor, _)| seconds.abs() * factor >= 0.9995);
    let (factor, unit) = fits.unwrap_or(&units[3]);
    let value = seconds * factor;
    let digits = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.digits$} {unit}")
}

/// HTML of a text in which commands stand between backticks.
pub fn marked(text: &str) -> String {
    let text = escape(&visible(text));
    if text.matches('`').count() % 2 == 1 {
        return text;
    }
    let parts = text.split('`').enumerate();
    let whole = parts.map(|(number, part)| match number % 2 == 1 {
        true => format!("<code>{part}</code>"),
        false => part.to_owned(),
    });
    whole.collect()
}

/// Words as one would type them, quoted only where they have to be.
pub fn words(all: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+,.:/@%^".contains(c);
    let word = |word: &String| match !word.is_empty() && word.chars().all(plain) {
        true => word.clone(),
        false => shell_words::quote(word).into_owned(),
    };
    all.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// A share as per cent.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A share of a whole as per cent. More than the whole, which only an error of the times or several threads can make, is not given
/// as a number: [`OVER`] is said instead, and the page says why.
pub fn share(share: f64) -> String {
    match share {
        whole if whole >= 1.0005 => OVER.to_owned(),
        part => percent(part),
    }
}

/// What [`share`] says of more than a whole.
pub const OVER: &str = "all";

/// How many times faster: two digits behind the point.
pub fn faster(gain: f64) -> String {
    format!("{gain:.2} times faster")
}

/// A relative error as per cent, with its sign.
pub fn error(error: f64) -> String {
    let percent = error * 100.0;
    let digits = usize::from(percent.abs() < 99.95);
    format!("{percent:+.digits$} %").replace('-', "−")
}

/// A whole number, its digits in groups of three.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) && digits.len() > 4 {
            text.push('\u{2009}');
        }
        text.push(digit);
    }
    text
}

/// Bytes with a unit that suits them.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// Characters of a name in a table.
const SHORT: usize = 110;
/// Characters of a name where all of it is asked for.
const WHOLE: usize = 2000;

/// A region's name for a table: a long one is cut in the middle, so that file and line stay. What would turn or hide text is shown
/// as an escape sequence.
pub fn name(name: &str) -> String {
    match name {
        "" => "(no name)".to_owned(),
        name => visible(&cere_system::console::short::fitting(&[name], SHORT).concat()),
    }
}

/// A region's name where there is room: cut in the middle only beyond 2000 characters.
pub fn whole_name(name: &str) -> String {
    cut(name, WHOLE)
}

fn cut(name: &str, longest: usize) -> String {
    let length = name.chars().count();
    if name.is_empty() {
        return "(no name)".to_owned();
    }
    if length <= longest {
        return visible(name);
    }
    let end = name.chars().skip(length - longest / 2);
    let begin = name.chars().take(longest / 2 - 1);
    visible(&begin.chain(['…']).chain(end).collect::<String>())
}

/// A line of source: tabs stay, all else that is not plain is shown as an escape sequence.
pub fn source_line(text: &str) -> String {
    let parts = text.split('\t').map(visible);
    parts.collect::<Vec<_>>().join("\t")
}

/// A cell of a sortable table: what it shows, and the number that it is sorted by.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    pub text: String,
    /// Sort key.
    pub key: Key,
}

/// A number that is sorted by; NaN if unknown, which sorts last.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Key(f64);

impl std::fmt::Display for Key {
    /// Six digits: enough to sort by, and short.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            whole if whole.fract() == 0.0 && whole.abs() < 1e9 => write!(f, "{whole:.0}"),
            other => write!(f, "{other:.5e}"),
        }
    }
}

impl Cell {
    /// `value` as `show` prints it.
    pub fn new(value: f64, show: impl Fn(f64) -> String) -> Self {
        Self {
            text: show(value),
            key: Key(value),
        }
    }

    /// A dash where the value is not known.
    pub fn known(value: Option<f64>, show: impl Fn(f64) -> String) -> Self {
        match value {
            Some(value) => Self::new(value, show),
            None => Self {
                text: "–".to_owned(),
                key: Key(f64::NAN),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(time(2.5e-5), "25.000 µs");
        assert_eq!(
            [brief(0.532704), brief(12.34), brief(2.5e-7), brief(0.0)],
            ["533 ms", "12.3 s", "250 ns", "0 s"]
        );
        assert_eq!(marked("`a<b` says"), "<code>a&lt;b</code> says");
        assert_eq!(marked("a ` b"), "a ` b");
        assert_eq!(
            words(&["-march=native".to_owned(), "a b".to_owned()]),
            "-march=native 'a b'"
        );
        assert_eq!(
            [share(0.5), share(1.0001), share(1.01)],
            ["50.0 %", "100.0 %", "all"]
        );
        assert_eq!(error(-0.0123), "−1.2 %");
        assert_eq!(error(12.0), "+1200 %");
        assert_eq!(count(1234), "1234");
        assert_eq!(count(1234567), "1\u{2009}234\u{2009}567");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(name("f@a.c:1"), "f@a.c:1");
        let long = format!("{}@map.h:41", "std::map<".repeat(40));
        assert!(name(&long).ends_with("*@map.h:41") && name(&long).chars().count() == 110);
        assert_eq!(name("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(whole_name(&"x".repeat(10_000)).chars().count(), 2000);
        assert_eq!(source_line("\ta\u{1b}"), "\ta\\u{1b}");
        let keys = [0.012_345_678_9, 300.0, f64::NAN].map(|v| Key(v).to_string());
        assert_eq!(keys, ["1.23457e-2", "300", "NaN"]);
        assert_eq!(Cell::known(None, percent).text, "–");
    }
}

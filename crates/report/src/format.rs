//! Numbers as the page shows them.

/// A time with a unit that suits it, three digits or more.
pub fn time(seconds: f64) -> String {
    cere_system::console::print::time(seconds).replace(" us", " µs")
}

/// A share as per cent.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
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

/// A region's name for a table: a long one is cut in the middle, so that file and line stay.
pub fn name(name: &str) -> String {
    const LONGEST: usize = 110;
    match name {
        "" => "(no name)".to_owned(),
        name => cere_system::console::short::fitting(&[name], LONGEST).concat(),
    }
}

/// A cell of a sortable table: what it shows, and the number that it is sorted by.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    pub text: String,
    /// Sort key; NaN if unknown, which sorts last.
    pub key: f64,
}

impl Cell {
    /// `value` as `show` prints it.
    pub fn new(value: f64, show: impl Fn(f64) -> String) -> Self {
        Self {
            text: show(value),
            key: value,
        }
    }

    /// A dash where the value is not known.
    pub fn known(value: Option<f64>, show: impl Fn(f64) -> String) -> Self {
        match value {
            Some(value) => Self::new(value, show),
            None => Self {
                text: "–".to_owned(),
                key: f64::NAN,
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
        assert_eq!(error(-0.0123), "−1.2 %");
        assert_eq!(error(12.0), "+1200 %");
        assert_eq!(count(1234), "1234");
        assert_eq!(count(1234567), "1\u{2009}234\u{2009}567");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(name("f@a.c:1"), "f@a.c:1");
        let long = format!("{}@map.h:41", "std::map<".repeat(40));
        assert!(name(&long).ends_with("*@map.h:41") && name(&long).chars().count() == 110);
        assert_eq!(Cell::known(None, percent).text, "–");
    }
}

//! Numbers with the digits that count. A number that was measured with an interval shows the digits that it allows.

/// Digits behind the point of a number with this error: the error's first digit counts, and the second if the first is 1.
fn decimals(error: f64) -> usize {
    if !error.is_finite() || error <= 0.0 {
        return 3;
    }
    let exponent = error.log10().floor();
    let first = (error / 10f64.powf(exponent) + 1e-9) as u32;
    let digits = if first == 1 { 1.0 } else { 0.0 };
    (digits - exponent).clamp(0.0, 9.0) as usize
}

/// `value` in `low..high`, all divided by `unit`: `1.63 ± 0.02`, or `1.63 (1.62 to 1.75)` where one side is twice the other.
fn scaled(value: f64, low: f64, high: f64, unit: f64) -> String {
    let [value, low, high] = [value, low, high].map(|number| number / unit);
    let (down, up) = (value - low, high - value);
    let error = down.max(up);
    if !error.is_finite() {
        return format!("{value:.3}");
    }
    let digits = decimals(error);
    match down.min(up) * 2.0 >= error {
        true => format!("{value:.digits$} ± {error:.digits$}"),
        false => format!("{value:.digits$} ({low:.digits$} to {high:.digits$})"),
    }
}

/// `value` with its interval: `1.63 ± 0.02`, or `1.63 (1.62 to 1.75)` where one side is twice the other or more.
pub fn within(value: f64, low: f64, high: f64) -> String {
    scaled(value, low, high, 1.0)
}

/// A time with its interval: `1.63 ± 0.02 ms`.
pub fn time_within(seconds: f64, low: f64, high: f64) -> String {
    let (unit, name) = unit_of_time(seconds);
    let text = scaled(seconds, low, high, unit);
    match text.strip_suffix(')') {
        Some(text) => {
            let text = text
                .replace(" (", &format!(" {name} ("))
                .replace(" to ", &format!(" {name} to "));
            format!("{text} {name})")
        }
        None => format!("{text} {name}"),
    }
}

fn unit_of_time(seconds: f64) -> (f64, &'static str) {
    match seconds.abs() {
        s if s >= 1.0 => (1.0, "s"),
        s if s >= 1e-3 => (1e-3, "ms"),
        s if s >= 1e-6 => (1e-6, "us"),
        _ => (1e-9, "ns"),
    }
}

/// A time with a suitable unit.
pub fn time(seconds: f64) -> String {
    match unit_of_time(seconds) {
        (unit, "ns") => format!("{:.0} ns", seconds / unit),
        (unit, name) => format!("{:.3} {name}", seconds / unit),
    }
}

/// Times of a column in one unit, that of the largest, which has four digits.
pub fn times_alike(seconds: &[f64]) -> Vec<String> {
    let most = seconds.iter().copied().fold(0.0, f64::max);
    let (unit, name) = unit_of_time(most);
    let digits = 3 - ((most / unit).max(1.0).log10().floor() as usize).min(3);
    let each = seconds.iter();
    each.map(|s| format!("{:.digits$} {name}", s / unit))
        .collect()
}

/// A share in per cent: `12.3 %`.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A reduction in words: `3.0 times less`, or `2.0 times more` if it is below 1.
pub fn times(reduction: f64) -> String {
    match reduction {
        less if less >= 1.0 => format!("{less:.1} times less"),
        more => format!("{:.1} times more", 1.0 / more.max(1e-9)),
    }
}

/// Joules with four digits and a unit: `1.234 mJ`.
pub fn joules(joules: f64) -> String {
    match joules.abs() {
        big if big >= 1e3 => format!("{:.3} kJ", joules * 1e-3),
        big if big >= 1.0 => format!("{joules:.3} J"),
        big if big >= 1e-3 => format!("{:.3} mJ", joules * 1e3),
        _ => format!("{:.3} uJ", joules * 1e6),
    }
}

/// A whole number: `1,234,567`.
pub fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_times() {
        assert_eq!(time(1.5), "1.500 s");
        assert_eq!(time(0.0021), "2.100 ms");
        assert_eq!(time(4.2e-8), "42 ns");
        assert_eq!(times_alike(&[0.0388, 0.00002]), ["38.80 ms", "0.02 ms"]);
        assert_eq!(times_alike(&[2.5, 0.01]), ["2.500 s", "0.010 s"]);
        assert_eq!(times_alike(&[0.0]), ["0.000 ns"]);
        assert!(times_alike(&[]).is_empty());
    }

    #[test]
    fn digits_that_the_error_allows() {
        assert_eq!(within(1.624_953, 1.608, 1.645), "1.62 ± 0.02");
        assert_eq!(within(1.624_953, 1.6245, 1.6254), "1.6250 ± 0.0005");
        assert_eq!(within(1.6, 1.588, 1.612), "1.600 ± 0.012");
        assert_eq!(within(153.0, 120.0, 190.0), "153 ± 37");
        assert_eq!(within(1.62, 1.61, 1.75), "1.62 (1.61 to 1.75)");
        assert_eq!(within(1.0, 1.0, 1.0), "1.000 ± 0.000");
        assert_eq!(within(1.0, f64::NEG_INFINITY, 2.0), "1.000");
        assert_eq!(time_within(0.001_63, 0.001_61, 0.001_65), "1.63 ± 0.02 ms");
        assert_eq!(
            time_within(0.001_62, 0.001_61, 0.001_75),
            "1.62 ms (1.61 ms to 1.75 ms)"
        );
    }
}

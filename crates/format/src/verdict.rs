//! The verdict on a comparison, in one word and in a sentence.

use crate::replay::{Comparison, Verdict, left_out};

/// Largest relative errors of floating-point words that are accepted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// Of doubles.
    pub double: f64,
    /// Of floats.
    pub single: f64,
}

impl Default for Tolerance {
    fn default() -> Self {
        Self {
            double: 1e-9,
            single: 1e-5,
        }
    }
}

impl Tolerance {
    /// Whether the errors found are within it.
    pub fn holds(self, found: &Comparison) -> bool {
        found.largest_relative_error <= self.double && found.largest_float_error <= self.single
    }
}

/// The verdict on a comparison.
pub fn verdict(
    comparison: Option<&Comparison>,
    repeatable: bool,
    varied: Option<&str>,
    tolerance: Tolerance,
    (threads, asked_more): (Option<u32>, u64),
) -> (Verdict, String) {
    let cause = match (threads, asked_more) {
        (Some(2..), 0) => "its threads race, or the order in which they run shows in the result",
        (_, 0) => "the result depends on more than captured memory",
        (Some(2..), _) => "it reads a clock that runs on, and its threads may race as well",
        _ => "it reads a clock that runs on",
    };
    let Some(c) = comparison else {
        return (Verdict::Unchecked, "nothing was compared".to_owned());
    };
    if !c.same_end {
        return (
            Verdict::Different,
            "the region ended another way than in vivo (return or exception)".to_owned(),
        );
    }
    if !repeatable {
        // To the word, where a repetition differs from the captured end as well.
        let varied = c.first.first().map(|d| d.place.as_str()).or(varied);
        return (
            Verdict::Different,
            format!(
                "repetitions ended in different states: {}{}",
                cause,
                varied.map_or(String::new(), |place| format!(", first seen at {place}"))
            ),
        );
    }
    if c.compared == 0 {
        let masked: u64 = c.masked.iter().map(|m| m.bytes).sum();
        return (
            Verdict::Unchecked,
            format!("nothing was compared: all {masked} bytes are left out"),
        );
    }
    if c.different_words == 0 {
        return same(c);
    }
    let floating = c.typed && c.floating_words == c.different_words;
    if floating && tolerance.holds(c) {
        let others = match left_out(c, false) {
            others if others.is_empty() => others,
            others => format!("; not compared: {others}"),
        };
        let (words, errors) = (c.different_words, errors(c));
        return (
            Verdict::Tolerance,
            format!("{words} floating-point words differ, {errors}{others}"),
        );
    }
    let first = c.first.first().map_or(String::new(), |d| {
        format!(
            ", first at {} ({:#x}): {:#x} instead of {:#x}",
            d.place, d.address, d.in_vitro, d.in_vivo
        )
    });
    let kind = match (c.typed, c.floating_words) {
        (_, 0) | (false, _) => String::new(),
        (true, all) if all == c.different_words => format!(", all floating-point, {}", errors(c)),
        (true, some) => format!(", {some} of them floating-point, {}", errors(c)),
    };
    (
        Verdict::Different,
        format!("{} words differ{first}{kind}", c.different_words),
    )
}

/// What was left out for reasons that are `harmless`, or those that are not, for people.
fn left_out(c: &Comparison, harmless: bool) -> String {
    let these = c
        .masked
        .iter()
        .filter(|m| left_out::harmless(&m.reason) == harmless);
    // What cannot carry results counts where the region wrote it.
    let counted = these.map(|m| (if harmless { m.changed } else { m.bytes }, &m.reason));
    let texts = counted
        .filter(|m| m.0 > 0)
        .map(|(bytes, reason)| format!("{bytes} {reason}"));
    texts.collect::<Vec<_>>().join(", ")
}

/// The verdict on a comparison without differences.
fn same(c: &Comparison) -> (Verdict, String) {
    let (harmless, others) = (left_out(c, true), left_out(c, false));
    if !others.is_empty() {
        let open = c.masked.iter().filter(|m| !left_out::harmless(&m.reason));
        let all = c.changed + open.map(|m| m.bytes).sum::<u64>();
        // Rounded down: 100 % would be exact.
        let share = c.changed.saturating_mul(10_000) / all.max(1);
        return (
            Verdict::Partly,
            format!(
                "all {} bytes compared are the same, with {}.{:02} % of the {all} that the region wrote and that may be \
                 results; left out: {others}",
                c.compared,
                share / 100,
                share % 100
            ),
        );
    }
    let (compared, changed) = (c.compared, c.changed);
    let others = match harmless.is_empty() {
        true => String::new(),
        false => format!("; it also wrote, not compared: {harmless}"),
    };
    (
        Verdict::Exact,
        format!(
            "all {compared} bytes compared are the same, {changed} of which the region changed{others}"
        ),
    )
}

/// The reason of a verdict on a region that asked for the time and the like `asked_more` times more than in vivo.
pub fn with_questions(verdict: Verdict, reason: String, asked_more: u64) -> String {
    match (verdict, asked_more) {
        (Verdict::Different | Verdict::Tolerance, 1..) => format!(
            "{reason}; the region reads the clock (or a process number and the like), {asked_more} times beyond its readings in \
             vivo: those answers are new, and what is computed from them differs"
        ),
        _ => reason,
    }
}

/// The relative errors for people.
pub fn errors(c: &Comparison) -> String {
    let (double, single) = (c.largest_relative_error, c.largest_float_error);
    match (double > 0.0, single > 0.0) {
        (true, true) => {
            format!("doubles by at most {double:.2e} of their value, floats by {single:.2e}")
        }
        (false, true) => format!("by at most {single:.2e} of a float's value"),
        _ => format!("by at most {double:.2e} of a double's value"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::LeftOut;

    #[test]
    fn nothing_compared_is_not_exact() {
        let mut comparison = Comparison {
            masked: vec![LeftOut {
                reason: left_out::DEAD_STACK.to_owned(),
                bytes: 4096,
                changed: 0,
            }],
            same_end: true,
            ..Comparison::default()
        };
        let judge =
            |c: &Comparison| verdict(Some(c), true, None, Tolerance::default(), (None, 0)).0;
        assert_eq!(judge(&comparison), Verdict::Unchecked);
        comparison.compared = 8;
        assert_eq!(judge(&comparison), Verdict::Exact);
        comparison.masked[0].reason = left_out::OWN_STACK.to_owned();
        assert_eq!(judge(&comparison), Verdict::Partly);
        comparison.different_words = 1;
        comparison.floating_words = 1;
        comparison.largest_relative_error = 1e-12;
        assert_eq!(judge(&comparison), Verdict::Different);
        comparison.typed = true;
        assert_eq!(judge(&comparison), Verdict::Tolerance);
        let none = Tolerance {
            double: 0.0,
            single: 0.0,
        };
        assert_eq!(
            verdict(Some(&comparison), true, None, none, (None, 0)).0,
            Verdict::Different
        );
        comparison.largest_float_error = 1e-4;
        let (judged, reason) = verdict(
            Some(&comparison),
            true,
            None,
            Tolerance::default(),
            (None, 0),
        );
        assert_eq!(judged, Verdict::Different);
        assert!(reason.contains("1.00e-4"), "{reason}");
    }
}

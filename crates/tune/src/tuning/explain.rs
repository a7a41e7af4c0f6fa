//! What each choice of a winner does: exact counts of the code with it and without it.

use super::found::{Effect, Winner};
use crate::Variant;
use cere_count::class::{Operation, Width};
use cere_count::{Counts, Settings};
use cere_measure::{Lab, Target};

/// Choices of a winner that are explained, at most: each is a compile and a replay under counters.
const MOST: usize = 6;
/// Counts closer than this share are not told apart.
const SAME: f64 = 0.02;

/// Says of each choice of `winner` what it changes in the codelet that stands for most of the region, until the time `is_over`. Empty if
/// counting fails: an explanation is no result.
pub fn explain(
    lab: &Lab,
    target: &Target,
    winner: &Winner,
    is_over: &dyn Fn() -> bool,
) -> Vec<Effect> {
    let parts = winner.variant.choices();
    let count = |variant: &Variant| (!is_over()).then(|| count(lab, target, variant)).flatten();
    let Some(with) = count(&winner.variant) else {
        return Vec::new();
    };
    let mut effects: Vec<Effect> = Vec::new();
    for place in 0..parts.len().min(MOST) {
        let mut fewer = parts.clone();
        let choice = fewer.remove(place);
        let without = Variant {
            flags: fewer.concat(),
            ..winner.variant.clone()
        };
        let says = count(&without).map(|without| difference(&without, &with));
        effects.extend(says.map(|says| Effect {
            choice: choice.join(" "),
            says,
        }));
    }
    if winner.variant.passes.is_some() {
        let without = Variant {
            passes: None,
            ..winner.variant.clone()
        };
        let says = count(&without).map(|without| difference(&without, &with));
        effects.extend(says.map(|says| Effect {
            choice: "the pipeline".to_owned(),
            says,
        }));
    }
    effects
}

/// Counts of the codelet that stands for most of the region, under `variant`.
fn count(lab: &Lab, target: &Target, variant: &Variant) -> Option<Counts> {
    let member = target.members.first()?;
    let settings = cere_replay::Settings {
        flags: variant.flags.clone(),
        passes: variant.passes.clone(),
        ..lab.settings.clone()
    };
    let options = lab.replays.options(&settings, None).ok()?;
    cere_count::count(&member.package, &Settings::default(), &options).ok()
}

/// How many times as many; "none" and "new" where one of them is none; nothing if they are about the same.
fn change(what: &str, without: u64, with: u64) -> Option<String> {
    let ratio = with as f64 / without.max(1) as f64;
    match (without, with) {
        (0, 0) => None,
        (0, _) => Some(format!("{what}: {with}, none without it")),
        (_, 0) => Some(format!("no {what}, {without} without it")),
        _ if (ratio - 1.0).abs() <= SAME => None,
        _ => Some(format!("{what} {:+.0} %", (ratio - 1.0) * 100.0)),
    }
}

/// Instructions on vectors of this width.
fn vectors(counts: &Counts, width: Width) -> u64 {
    let of_width = counts.mix.iter().filter(|m| m.vector && m.width == width);
    of_width.map(|m| m.instructions).sum()
}

/// Bits of the widest vectors that do a noticeable part of the work.
fn widest(counts: &Counts) -> u32 {
    let widths = [(512, Width::V512), (256, Width::V256), (128, Width::V128)];
    let least = (counts.instructions as f64 * SAME) as u64;
    let found = widths
        .into_iter()
        .find(|(_, width)| vectors(counts, *width) > least);
    found.map_or(0, |(bits, _)| bits)
}

fn operations(counts: &Counts, operation: Operation) -> u64 {
    let work = counts.work.iter().filter(|w| w.operation == operation);
    work.map(|w| w.instructions).sum()
}

/// What the code with a choice does otherwise than the code without it, the most telling first.
fn difference(without: &Counts, with: &Counts) -> String {
    let mut says = Vec::new();
    let width = |counts| match widest(counts) {
        0 => "scalar code".to_owned(),
        bits => format!("vectors of {bits} bits"),
    };
    if widest(with) != widest(without) {
        says.push(format!("{} instead of {}", width(with), width(without)));
    }
    let calls = |counts: &Counts| counts.calls.iter().map(|c| c.calls).sum();
    let fused = |counts| operations(counts, Operation::Fma);
    let divisions =
        |counts| operations(counts, Operation::Div) + operations(counts, Operation::Sqrt);
    let spilled = |counts: &Counts| counts.spills.loads + counts.spills.stores;
    let changes = [
        ("instructions", without.instructions, with.instructions),
        ("branches", without.branches, with.branches),
        ("fused multiply-adds", fused(without), fused(with)),
        ("divisions and roots", divisions(without), divisions(with)),
        ("calls", calls(without), calls(with)),
        ("spilled accesses", spilled(without), spilled(with)),
        ("loads", without.memory.loads, with.memory.loads),
        ("stores", without.memory.stores, with.memory.stores),
    ];
    says.extend(
        changes
            .into_iter()
            .filter_map(|(what, old, new)| change(what, old, new)),
    );
    match says.is_empty() {
        true => {
            "no count differs by more than 2 %: which instructions, their order, registers or places".to_owned()
        }
        false => says.join("; "),
    }
}

#[cfg(test)]
mod tests {
    use super::change;

    #[test]
    fn changes_in_words() {
        assert_eq!(change("loads", 100, 101), None);
        assert_eq!(change("loads", 0, 0), None);
        assert_eq!(change("loads", 100, 50).as_deref(), Some("loads -50 %"));
        assert_eq!(
            change("calls", 0, 7).as_deref(),
            Some("calls: 7, none without it")
        );
        assert_eq!(
            change("calls", 7, 0).as_deref(),
            Some("no calls, 7 without it")
        );
    }
}

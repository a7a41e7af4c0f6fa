//! What an exported folder's executable prints: times and verdict.

use cere_format::replay::{ReplayOutcome, Verdict};
use cere_format::verdict::{Tolerance, verdict, with_questions};

/// Prints an outcome of so many threads; gives the exit status: 0 if the result is exact.
pub fn print(outcome: &ReplayOutcome, threads: Option<u32>) -> i32 {
    let seconds = |cycles: u64| cycles as f64 / outcome.tsc_hz;
    for (number, cycles) in (1..).zip(&outcome.cycles) {
        println!(
            "repetition {number}: {:.3e} s, {cycles} cycles",
            seconds(*cycles)
        );
    }
    let mut sorted = outcome.cycles.clone();
    sorted.sort_unstable();
    if let Some(median) = sorted.get(sorted.len() / 2) {
        println!("median: {:.3e} s, {median} cycles", seconds(*median));
    }
    for note in &outcome.notes {
        println!("note: {note}");
    }
    let comparison = outcome.comparison.as_ref();
    let (found, reason) = verdict(
        comparison,
        outcome.repeatable,
        outcome.varied.as_deref(),
        Tolerance::default(),
        (threads, outcome.asked_more),
    );
    let reason = with_questions(found, reason, outcome.asked_more);
    println!("verdict: {} ({reason})", found.name());
    let differences = comparison.map_or(&[][..], |c| &c.first);
    for d in differences {
        println!(
            "  {} at {:#x}: {:#018x} instead of {:#018x}{}",
            d.place,
            d.address,
            d.in_vitro,
            d.in_vivo,
            as_numbers(d.in_vitro, d.in_vivo)
        );
    }
    println!("state: {:016x}", outcome.left);
    i32::from(found != Verdict::Exact)
}

/// Two words as doubles, if both can be such.
fn as_numbers(here: u64, there: u64) -> String {
    let (here, there) = (f64::from_bits(here), f64::from_bits(there));
    match [here, there]
        .iter()
        .all(|x| x.is_normal() && (1e-30..1e30).contains(&x.abs()))
    {
        true => format!(" (as doubles {here} and {there})"),
        false => String::new(),
    }
}

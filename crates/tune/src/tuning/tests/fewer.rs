//! Winners with fewer flags, and one set for all regions.

use super::*;
use crate::tuning::common::common;
use crate::tuning::fewest::Fewest;
use cere_timing::stats::Gain;

/// A machine without noise.
fn quiet() -> Noise {
    Noise::Recorded(vec![1.0])
}

/// One flag saves 20 %, one 10 %, one nothing that can be measured; the fourth makes it slower.
fn saved(variant: &Variant) -> f64 {
    let factors = [("-a", 0.8), ("-b", 0.9), ("-tiny", 0.9999), ("-slow", 1.3)];
    let there = factors.iter().filter(|(flag, _)| has(variant, flag));
    there.map(|(_, factor)| factor).product()
}

/// Flags that begin with `-no` change no machine code.
fn machine_code(variant: &Variant) -> String {
    let flags = variant.flags.iter().filter(|f| !f.starts_with("-no"));
    let flags: Vec<&str> = flags.map(String::as_str).collect();
    match &variant.passes {
        Some(passes) => format!("{} {}", flags.join(" "), passes.replace("nothing", "")),
        None => flags.join(" "),
    }
}

fn winner(variant: Variant) -> Winner {
    let ratio = saved(&variant);
    Winner {
        variant,
        gain: Gain {
            ratio,
            low: ratio * 0.99,
            high: ratio * 1.01,
            level: 0.95,
        },
        searched: None,
        effects: Vec::new(),
    }
}

/// A model whose machine code is [`machine_code`].
fn model() -> Model {
    let mut model = Model::new(quiet(), 1, saved);
    model.code = machine_code;
    model
}

/// What `work` finds, which may reduce winners in `model` until then.
fn reducing<T>(model: &Model, until: Option<Instant>, work: impl FnOnce(&Fewest) -> T) -> T {
    let target = target("region", 0.5);
    let default = model.build(&target, &Variant::default()).unwrap();
    work(&Fewest {
        lab: model,
        target: &target,
        default: &default,
        until,
    })
}

/// The winner of `flags` reduced, and how many variants were timed.
fn reduced(flags: &str) -> (Winner, usize) {
    let model = model();
    let code = machine_code(&of(flags));
    let found = reducing(&model, None, |fewest| fewest.of(winner(of(flags)), &code)).unwrap();
    let timed = model.timed.lock().unwrap().len();
    (found, timed)
}

#[test]
fn what_changes_no_code_costs_no_run() {
    let (found, timed) = reduced("-no1 -a -no2 -no3");
    assert_eq!(found.variant, of("-a"));
    assert_eq!(found.searched, Some(of("-no1 -a -no2 -no3")));
    assert_eq!(timed, 0);
    let (found, _) = reduced("-a");
    assert_eq!((found.variant, found.searched), (of("-a"), None));
}

#[test]
fn what_saves_no_time_is_left_out() {
    let (found, _) = reduced("-no1 -tiny -a -b");
    assert_eq!(found.variant, of("-a -b"));
    assert!((found.gain.ratio - 0.72).abs() < 0.01, "{:?}", found.gain);
    let (found, _) = reduced("-b -a -tiny");
    assert_eq!(found.variant, of("-b -a"));
}

#[test]
fn passes_that_do_nothing_are_left_out() {
    let mut full = of("-a");
    full.passes = Some("function(nothing,sroa)".into());
    // The code of the model is its text: only what is dropped with its comma is the same.
    let code = machine_code(&full);
    let by_code = |code: &str| reducing(&model(), None, |fewest| fewest.by_code(&full, code));
    assert_eq!(by_code(&code), full);
    assert_eq!(by_code("-a"), of("-a"));
}

#[test]
fn no_flag_is_left_out_when_the_time_is_over() {
    let model = model();
    let all = winner(of("-tiny -a"));
    let kept = reducing(&model, Some(Instant::now()), |fewest| {
        fewest.of(all.clone(), "-tiny -a")
    });
    assert_eq!(kept.unwrap(), all);
    assert!(model.timed.lock().unwrap().is_empty());
}

fn found(name: &str, share: f64, flags: &str) -> Found {
    Found {
        name: name.into(),
        share,
        winner: (!flags.is_empty()).then(|| winner(of(flags))),
        ..Found::default()
    }
}

#[test]
fn one_set_for_all_regions() {
    let model = Model::new(quiet(), 1, saved);
    let targets = [target("f", 0.6), target("g", 0.3)];
    let of_two = |f: &str, g: &str| {
        let all = [found("f", 0.6, f), found("g", 0.3, g)];
        common(&model, &targets, &all, &|| false)
    };
    let one = of_two("-a -b", "-a").expect("a set");
    assert_eq!(one.flags, of("-a -b").flags);
    assert!((one.saves - 0.9 * 0.28).abs() < 0.005, "{one:?}");
    // The second region's flags are better for both.
    assert_eq!(of_two("-b", "-a").expect("a set").flags, of("-a").flags);
    // Of one winner its own line says it.
    assert_eq!(of_two("-a", ""), None);
}

#[test]
fn a_set_that_is_wrong_in_one_region_is_none() {
    let mut model = Model::new(quiet(), 1, saved);
    model.wrong = |variant, _| has(variant, "-b").then(|| "another result".to_owned());
    let targets = [target("f", 0.6), target("g", 0.3)];
    let all = [found("f", 0.6, "-a -b"), found("g", 0.3, "-a")];
    assert_eq!(common(&model, &targets, &all, &|| false), None);
    // Nor is there one where nobody has time to look.
    model.wrong = |_, _| None;
    assert!(common(&model, &targets, &all, &|| false).is_some());
    assert_eq!(common(&model, &targets, &all, &|| true), None);
}

//! The result of a search as text and JSON.

use cere_measure::Goal;
use cere_system::console::print;
use cere_tune::Suspect;
use cere_tune::tuning::{Advice, Common, Effect, Found, Outcome, SourceLine, Spent, Winner};
use serde_json::{Value, json};

/// Characters of flags or of a reason, at most.
const LONG: usize = 160;

/// Sum of what the searches of all regions spent.
fn spent(found: &[Found]) -> Spent {
    let mut all = Spent::default();
    found.iter().for_each(|f| all += f.spent);
    all
}

/// Number of evaluations of this search, and of earlier ones.
fn evaluations(found: &[Found]) -> (u64, u64) {
    let earlier = found.iter().map(|f| f.earlier).sum();
    let all: u64 = found.iter().map(|f| f.evaluations).sum();
    (all - earlier, earlier)
}

/// Time of one run of the program for each evaluation of this search, over the time of the whole command.
fn reduction(outcome: &Outcome) -> f64 {
    evaluations(&outcome.found).0 as f64 * outcome.program / outcome.seconds.max(1e-9)
}

/// The same over the time of the search's replays alone, without compiling.
fn replays_reduction(outcome: &Outcome) -> f64 {
    let spent = spent(&outcome.found);
    let replays = spent.starting + spent.restoring + spent.warming + spent.timed;
    evaluations(&outcome.found).0 as f64 * outcome.program / replays.max(1e-9)
}

fn region(found: &Found) -> Value {
    let winner = found.winner.as_ref();
    let failed = found
        .failed
        .iter()
        .map(|f| json!({"variant": f.variant.to_string(), "reason": f.reason}));
    json!({
        "name": found.name,
        "share": found.share,
        "evaluations": found.evaluations,
        "same_code": found.same_code,
        "failed": failed.collect::<Vec<_>>(),
        "ended": found.ended,
        "flags": winner.map(|w| shell_words::join(&w.variant.flags)),
        "passes": winner.and_then(|w| w.variant.passes.clone()),
        "searched": winner.and_then(|w| w.searched.as_ref()).map(ToString::to_string),
        "effects": winner.map_or(&[][..], |w| &w.effects).iter().map(|e| json!({"choice": e.choice, "says": e.says})).collect::<Vec<_>>(),
        "advice": advice_json(found.advice.as_ref()),
        "no_advice": match &found.advice {
            Some(Advice::None(why)) => Some(why),
            _ => None,
        },
        "gain": winner.map(|w| 1.0 / w.gain.ratio),
        "gain_low": winner.map(|w| 1.0 / w.gain.high),
        "gain_high": winner.map(|w| 1.0 / w.gain.low),
        "threads": found.threads.map(|t| t.0),
        "threads_gain": found.threads.map(|t| 1.0 / t.1.ratio),
        "ranked": found.ranked.iter().take(20).map(|(ratio, v)| json!({"gain": 1.0 / ratio, "variant": v.to_string()})).collect::<Vec<_>>(),
    })
}

fn advice_json(advice: Option<&Advice>) -> Value {
    let Some(Advice::Lines {
        lines,
        replaces,
        same_in_build,
    }) = advice
    else {
        return json!([]);
    };
    let line = |l: &SourceLine| {
        json!({
            "file": l.file,
            "line": l.line,
            "column": l.column,
            "text": l.text,
            "replaces": shell_words::join(replaces),
            "same_in_build": same_in_build,
        })
    };
    lines.iter().map(line).collect()
}

/// What the source may say instead of flags, in a line.
fn advice(advice: &Advice) -> String {
    let (lines, replaces, same_in_build) = match advice {
        Advice::None(why) => return format!("  no line of source instead: {why}\n"),
        Advice::Lines {
            lines,
            replaces,
            same_in_build,
        } => (lines, replaces, same_in_build),
    };
    let place = |l: &SourceLine| {
        let at = format!("{}:{}", l.file.display(), l.line);
        match l.column {
            None => format!("`{}` above {at}", l.text),
            Some(column) => format!("`{}` before column {column} of {at}", l.text),
        }
    };
    let places: Vec<String> = lines.iter().map(place).collect();
    let build = match same_in_build {
        true => "",
        false => "; in a plain build the function as a whole differs from that with the flags",
    };
    format!(
        "  the same code without {}: put {}{build}\n",
        shell_words::join(replaces),
        places.join(", ")
    )
}

fn common_json(common: &Common) -> Value {
    let region = |(name, ratio): &(String, f64)| json!({"name": name, "gain": 1.0 / ratio});
    json!({
        "flags": shell_words::join(&common.flags),
        "saves": common.saves,
        "own_saves": common.own,
        "regions": common.regions.iter().map(region).collect::<Vec<_>>(),
    })
}

/// What the winners' flags do, and the set for the whole program.
fn reasons(outcome: &Outcome) -> String {
    let mut text = String::new();
    for found in &outcome.found {
        let Some(winner) = &found.winner else {
            continue;
        };
        let Some(searched) = &winner.searched else {
            text += &effects(found, "");
            continue;
        };
        let more = searched
            .flags
            .len()
            .saturating_sub(winner.variant.flags.len());
        let left_out = match (more, searched.passes == winner.variant.passes) {
            (0, _) => " (left out: passes that change no code)".to_owned(),
            (more, true) => format!(" (left out: {more} words of flags that save nothing)"),
            (more, false) => {
                format!(" (left out: {more} words of flags that save nothing, and passes)")
            }
        };
        text += &effects(found, &left_out);
    }
    if let Some(common) = &outcome.common {
        text += &format!(
            "\nfor the whole program, in one line: {}\n  in these regions it saves {:.1} % of the run, their own flags {:.1} %; the rest of the program was not tried with it\n",
            shell_words::join(&common.flags),
            common.saves * 100.0,
            common.own * 100.0
        );
    }
    text
}

fn effects(found: &Found, left_out: &str) -> String {
    let winner = found.winner.as_ref();
    let all = winner.map_or(&[][..], |w| &w.effects);
    let advice = found.advice.as_ref().map_or(String::new(), advice);
    if all.is_empty() && left_out.is_empty() && advice.is_empty() {
        return String::new();
    }
    let row = |e: &Effect| format!("  {}: {}\n", e.choice, e.says);
    let rows: String = all.iter().map(row).collect();
    let rest = match winner.map_or(0, Winner::unexplained) {
        0 => String::new(),
        more => format!("  {more} more: not counted, for lack of time or as they are many\n"),
    };
    format!("\n{}{left_out}\n{rows}{rest}{advice}", found.name)
}

/// The result for scripts.
pub fn json(outcome: &Outcome, goal: Goal) -> Value {
    let found = &outcome.found;
    let suspect = |s: &Suspect| json!({"flags": shell_words::join(&s.choice), "failed": s.failed, "tried": s.tried});
    let (evaluations, earlier) = evaluations(found);
    json!({
        "goal": goal.name(),
        "evaluations": evaluations + earlier,
        "earlier_evaluations": earlier,
        "seconds": outcome.seconds,
        "search_seconds": outcome.searched,
        "spent_seconds": spent(found),
        "reduction": reduction(outcome),
        "replays_reduction": replays_reduction(outcome),
        "common": outcome.common.as_ref().map(common_json),
        "suspects": outcome.suspects.iter().map(suspect).collect::<Vec<_>>(),
        "regions": found.iter().map(region).collect::<Vec<_>>(),
    })
}

/// The result as tables.
pub fn text(outcome: &Outcome) -> String {
    let found = &outcome.found;
    let row = |f: &Found| {
        let winner = f.winner.as_ref();
        let mut flags = winner.map_or("as built".to_owned(), |w| w.variant.to_string());
        if let Some((n, gain)) = f.threads {
            flags.push_str(&format!(", {n} threads ({:.3})", 1.0 / gain.ratio));
        }
        vec![
            f.name.clone(),
            print::percent(f.share),
            f.evaluations.to_string(),
            f.same_code.to_string(),
            f.failed.len().to_string(),
            winner.map_or("-".to_owned(), |w| {
                print::within(1.0 / w.gain.ratio, 1.0 / w.gain.high, 1.0 / w.gain.low)
            }),
            flags,
        ]
    };
    let heading = [
        "region",
        "share",
        "tried",
        "same code",
        "failed",
        "gain",
        "<flags",
    ];
    let mut text = print::table_of_names(&heading, found.iter().map(row).collect());
    text += &self::reasons(outcome);
    let mut reasons: Vec<(String, u32)> = Vec::new();
    for failure in found.iter().flat_map(|f| &f.failed) {
        let why = print::short(&failure.reason, LONG);
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, count)) => *count += 1,
            None => reasons.push((why, 1)),
        }
    }
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for (why, count) in reasons.iter().take(5) {
        text.push_str(&format!("failed {count} times: {why}\n"));
    }
    let (evaluations, earlier) = evaluations(found);
    if earlier > 0 {
        text.push_str(&format!(
            "\n{earlier} evaluations come from earlier searches\n"
        ));
    }
    if evaluations == 0 {
        text.push_str(&format!("all of it {}\n", print::time(outcome.seconds)));
        return text;
    }
    let spent = spent(found);
    text.push_str(&format!(
        "\n{evaluations} evaluations in {}, {:.0} a minute: compiling {} (waited {}), starting replays {}, restoring {}, warming up {}, timed {}; measuring the best again {}\n",
        print::time(outcome.searched),
        evaluations as f64 / outcome.searched.max(1e-9) * 60.0,
        print::time(spent.compiling),
        print::time(spent.waiting),
        print::time(spent.starting),
        print::time(spent.restoring),
        print::time(spent.warming),
        print::time(spent.timed),
        print::time(spent.confirming),
    ));
    text.push_str(&format!(
        "all of it {}, {} than as many runs of the program; the search's replays alone {}\n",
        print::time(outcome.seconds),
        print::times(reduction(outcome)),
        print::times(replays_reduction(outcome)),
    ));
    text
}

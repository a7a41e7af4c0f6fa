//! Explanations as text.

use cere_format::explain::{Explanation, Way};
use cere_system::console::{number, short, table};

/// A name as it fits into a sentence.
fn shortened(name: &str) -> String {
    short::names(&[name], short::SENTENCE).concat()
}

/// The sentence alone.
pub fn brief(found: &Explanation) -> String {
    format!("{}: {}\n", shortened(&found.region), found.sentence)
}

/// The sentence, then what it rests on.
pub fn text(found: &Explanation) -> String {
    let flags = match found.flags.as_str() {
        "" => String::new(),
        flags => format!(" under {flags}"),
    };
    let mut out = format!(
        "{}{flags}: {} an invocation\n",
        shortened(&found.codelet),
        number::time(found.seconds)
    );
    let place = match (&found.file, found.line) {
        (Some(file), Some(line)) => format!(" ({file}:{line})"),
        _ => String::new(),
    };
    out += &format!("  {}{place}\n", found.sentence);
    out += &format!("  {}\n\n", found.advice);
    let share = |seconds: f64| format!("{:.0} %", 100.0 * seconds / found.seconds);
    let rows: Vec<Vec<String>> = found
        .what_if
        .iter()
        .map(|one| {
            let how = match one.found {
                Way::Replayed if one.seconds.is_none() => format!("not found: {}", one.how),
                Way::Replayed => "replayed".to_owned(),
                Way::Modelled => "model".to_owned(),
            };
            let time = one.seconds.map_or("-".to_owned(), number::time);
            let of_now = one.seconds.map_or("-".to_owned(), share);
            vec![one.change.clone(), time, of_now, how]
        })
        .collect();
    out += &table::table(&["<what if", "time", "of now", "<how"], &rows);
    let rows: Vec<Vec<String>> = found
        .evidence
        .iter()
        .map(|one| vec![one.what.clone(), one.value.clone(), one.source.clone()])
        .collect();
    out += "\n";
    out += &table::table(&["<evidence", "<value", "<from"], &rows);
    for note in &found.notes {
        out += &format!("  note: {note}\n");
    }
    out
}

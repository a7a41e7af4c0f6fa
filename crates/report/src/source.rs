//! The source lines around a region, with what each of them costs.

use super::data::Place;
use super::format::{percent, source_line};
use cere_count::listing::Listing;
use cere_store::sources::State;
use std::collections::BTreeMap;
use std::path::Path;

/// Lines before the loop's first and after it, whose end is unknown.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// Before.
    pub before: usize,
    /// After.
    pub after: usize,
}

impl Room {
    /// Of a region that matters.
    pub const WIDE: Self = Self {
        before: 5,
        after: 25,
    };
    /// Of one of many.
    pub const NARROW: Self = Self {
        before: 0,
        after: 3,
    };
}

/// Lines of an excerpt that costs extend, at most.
const MOST: usize = 160;
/// Maximum characters of a line.
const LONGEST: usize = 300;
/// Maximum bytes of a file that is read.
const LARGEST: u64 = 32 << 20;

/// A line of the source.
pub struct Line {
    /// From 1.
    pub number: usize,
    pub text: String,
    /// Whether the loop begins here.
    pub here: bool,
    /// Share of the executed instructions; empty if it is not known.
    pub cost: String,
    /// The same, per cent.
    pub heat: u32,
}

/// Shares of the executed instructions by line.
pub type Costs = BTreeMap<usize, f64>;

/// The costs of the lines of `file` in a listing.
pub fn costs(listing: Option<&Listing>, file: &Path) -> Costs {
    let lines = listing.map_or(&[][..], |l| &l.lines);
    let own = |name: &str| Path::new(name) == file || file.ends_with(name);
    let cost = lines.iter().filter_map(|line| {
        let number = line.line? as usize;
        line.file.as_deref().filter(|f| own(f))?;
        (line.share >= 0.0005).then_some((number, line.share))
    });
    cost.collect()
}

/// The lines, or why there are none, with remarks.
#[derive(Default)]
pub struct Excerpt {
    /// The file, if it is known.
    pub file: String,
    pub lines: Vec<Line>,
    /// Whether the costs of lines are known.
    pub costs: bool,
    /// Why there are no lines, or why they may be wrong.
    pub note: Option<String>,
}

/// The excerpt at `place`, with `costs` beside its lines.
pub fn excerpt(place: Option<&Place>, costs: &Costs, room: Room) -> Excerpt {
    let Some(place) = place else {
        let note = Some("The store no longer knows this region's source.".to_owned());
        return Excerpt {
            note,
            ..Excerpt::default()
        };
    };
    let path = &place.file;
    let mut excerpt = Excerpt {
        file: path.display().to_string(),
        ..Excerpt::default()
    };
    if place.line == 0 {
        excerpt.note = Some("The compiler left no line for this loop.".to_owned());
        return excerpt;
    }
    if place.state == State::Gone {
        excerpt.note = Some("The source is gone since the build.".to_owned());
        return excerpt;
    }
    let metadata = std::fs::metadata(path);
    let read = match &metadata {
        Ok(m) if !m.is_file() || m.len() > LARGEST => Err("it is no source file".to_owned()),
        Ok(_) => std::fs::read(path).map_err(|e| e.to_string()),
        Err(e) => Err(e.to_string()),
    };
    let text = match read {
        Ok(bytes) => decoded(bytes),
        Err(reason) => {
            excerpt.note = Some(format!("The source cannot be read: {reason}."));
            return excerpt;
        }
    };
    let line = place.line as usize;
    let all: Vec<&str> = text.lines().collect();
    if line > all.len() {
        excerpt.note = Some(format!(
            "The source changed since the build: it has {} lines, the loop was in line {line}.",
            all.len()
        ));
        return excerpt;
    }
    if place.state == State::Changed {
        let note =
            "The source changed after the build: these lines may be others than those that ran.";
        excerpt.note = Some(note.to_owned());
    }
    let (first, last) = ends(line, all.len(), costs, room);
    let one = |number: usize| {
        let cost = costs.get(&number);
        Line {
            number,
            text: source_line(&all[number - 1].chars().take(LONGEST).collect::<String>()),
            here: number == line,
            cost: cost.map_or_else(String::new, |c| percent(*c)),
            heat: cost.map_or(0, |c| (100.0 * c).round() as u32),
        }
    };
    excerpt.lines = (first..=last).map(one).collect();
    excerpt.costs = !costs.is_empty();
    excerpt
}

/// UTF-8, or else Latin-1: each byte is a character of that.
fn decoded(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| error.as_bytes().iter().map(|b| char::from(*b)).collect())
}

/// The first and the last line to show of `all`: those around `line`, and near ones that cost something.
fn ends(line: usize, all: usize, costs: &Costs, room: Room) -> (usize, usize) {
    let mut first = line.saturating_sub(room.before).max(1);
    let mut last = (line + room.after).min(all);
    for number in costs.keys().filter(|n| (1..=all).contains(*n)) {
        let (low, high) = (first.min(*number), last.max(*number));
        if high - low < MOST {
            (first, last) = (low, high);
        }
    }
    (first, last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(place: &Place) -> Excerpt {
        excerpt(Some(place), &Costs::new(), Room::WIDE)
    }

    #[test]
    fn costs_and_other_encodings() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("l.c");
        let mut text = b"// gr\xfc\xdfe\n".to_vec();
        text.extend("\u{202e}x;\n".repeat(300).bytes().filter(u8::is_ascii));
        std::fs::write(&file, text).unwrap();
        let place = Place {
            file,
            line: 1,
            state: State::Same,
        };
        let costs = Costs::from([(40, 0.75), (299, 0.01)]);
        let found = excerpt(Some(&place), &costs, Room::NARROW);
        assert_eq!(found.lines[0].text, "// grüße");
        let costly = found.lines.last().unwrap();
        assert_eq!((costly.number, costly.heat), (40, 75));
        assert_eq!(costly.cost, "75.0 %");
    }

    #[test]
    fn lines_missing_and_changed_sources() {
        let directory = tempfile::tempdir().unwrap();
        let text: String = (1..=40).map(|i| format!("line {i}\n")).collect();
        std::fs::write(directory.path().join("a.c"), text).unwrap();
        let mut place = Place {
            file: directory.path().join("a.c"),
            line: 3,
            state: State::Same,
        };
        let found = shown(&place);
        assert!(found.note.is_none());
        assert_eq!(found.lines.len(), 28);
        assert!(found.lines[2].here && found.lines[2].text == "line 3");
        place.state = State::Changed;
        assert!(shown(&place).note.unwrap().contains("changed after"));
        place.line = 41;
        assert!(shown(&place).note.unwrap().contains("40 lines"));
        place.line = 0;
        assert!(shown(&place).note.unwrap().contains("no line"));
        place.file = directory.path().join("b.c");
        place.line = 1;
        let note = |place: &Place| shown(place).note.unwrap();
        assert!(note(&place).contains("cannot be read"));
        place.state = State::Gone;
        assert!(note(&place).contains("gone"));
        assert!(excerpt(None, &Costs::new(), Room::WIDE).note.is_some());
    }
}

//! The source lines around a region.

use super::data::Place;
use cere_store::sources::State;

/// Lines before the loop's first.
const BEFORE: usize = 5;
/// Lines after it: the end of the loop is unknown.
const AFTER: usize = 25;
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
}

/// The lines, or why there are none, with remarks.
#[derive(Default)]
pub struct Excerpt {
    /// The file, if it is known.
    pub file: String,
    pub lines: Vec<Line>,
    /// Why there are no lines, or why they may be wrong.
    pub note: Option<String>,
}

/// The excerpt at `place`.
pub fn excerpt(place: Option<&Place>) -> Excerpt {
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
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
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
    let first = line.saturating_sub(BEFORE).max(1);
    excerpt.lines = (first..=(line + AFTER).min(all.len()))
        .map(|number| Line {
            number,
            text: all[number - 1].chars().take(LONGEST).collect(),
            here: number == line,
        })
        .collect();
    excerpt
}

#[cfg(test)]
mod tests {
    use super::*;
    use cere_format::profile::RegionKey;

    #[test]
    fn lines_missing_and_changed_sources() {
        let directory = tempfile::tempdir().unwrap();
        let text: String = (1..=40).map(|i| format!("line {i}\n")).collect();
        std::fs::write(directory.path().join("a.c"), text).unwrap();
        let mut place = Place {
            key: RegionKey {
                unit: "u".into(),
                index: 0,
            },
            file: directory.path().join("a.c"),
            line: 3,
            state: State::Same,
        };
        let found = excerpt(Some(&place));
        assert!(found.note.is_none());
        assert_eq!(found.lines.len(), 28);
        assert!(found.lines[2].here && found.lines[2].text == "line 3");
        place.state = State::Changed;
        assert!(
            excerpt(Some(&place))
                .note
                .unwrap()
                .contains("changed after")
        );
        place.line = 41;
        assert!(excerpt(Some(&place)).note.unwrap().contains("40 lines"));
        place.line = 0;
        assert!(excerpt(Some(&place)).note.unwrap().contains("no line"));
        place.file = directory.path().join("b.c");
        place.line = 1;
        let note = |place: &Place| excerpt(Some(place)).note.unwrap();
        assert!(note(&place).contains("cannot be read"));
        place.state = State::Gone;
        assert!(note(&place).contains("gone"));
        assert!(excerpt(None).note.is_some());
    }
}

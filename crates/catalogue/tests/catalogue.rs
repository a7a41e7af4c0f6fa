//! The catalogue beside the sources and the documents: each entry is of a message that exists, each code that is named
//! exists, and the guide's chapter is what the catalogue gives.

use cere_catalogue::{RETIRED, entries, entry, page, sections};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files below the folder whose names end in one of `endings`, but for what is built.
fn files(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let left_out = name.starts_with('.') || ["target", "book", "catalogue"].contains(&&*name);
        if path.is_dir() && !left_out && !path.is_symlink() {
            files(&path, endings, found);
        } else if endings.iter().any(|ending| name.ends_with(ending)) {
            found.push(path);
        }
    }
}

fn texts(folders: &[&str], endings: &[&str]) -> BTreeMap<PathBuf, String> {
    let mut found = Vec::new();
    for folder in folders {
        files(&repository().join(folder), endings, &mut found);
    }
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        (path, text)
    };
    found.into_iter().map(read).collect()
}

const SOURCES: [&str; 6] = [
    "crates",
    "cere-pass",
    "cere-capture",
    "cere-replay",
    "cere-cluster",
    "python",
];

/// The sources outside tests, with literals that run over several lines joined and without marks of code.
fn sources() -> String {
    let mut all = String::new();
    for (path, text) in texts(&SOURCES, &[".rs", ".cpp", ".py"]) {
        let is_test = path.components().any(|part| part.as_os_str() == "tests");
        if !is_test {
            let mut rest = text.as_str();
            while let Some((before, after)) = rest.split_once("\\\n") {
                all.push_str(before);
                rest = after.trim_start();
            }
            all.push_str(rest);
        }
    }
    // Neighbouring literals of C++ and Python are one text.
    let joined: Vec<&str> = all.lines().map(str::trim).collect();
    let joined = joined.join(" ").replace("\" \"", "").replace("\" f\"", "");
    joined.replace("\\\"", "\"").replace('`', "")
}

/// The longest literal piece of a form. Messages are put together at these marks and behind these words.
fn longest(says: &str) -> &str {
    let mut pieces = vec![says];
    for mark in ["...", ": ", ", ", " (", "; "] {
        pieces = pieces
            .into_iter()
            .flat_map(|piece| piece.split(mark))
            .collect();
    }
    let piece = pieces
        .into_iter()
        .map(|piece| piece.trim_matches([' ', ':', ')']));
    let piece = piece.max_by_key(|piece| piece.len()).unwrap_or_default();
    let words = ["it takes ", "it writes ", "cannot ", "calls "];
    let rest = words.iter().find_map(|words| piece.strip_prefix(words));
    rest.filter(|rest| rest.len() >= 8).unwrap_or(piece)
}

/// Entries whose forms are the system's words, or hold its paths or names of functions.
const OF_THE_SYSTEM: [u16; 5] = [3215, 3312, 7001, 7002, 7003];

/// An entry is of a message that is made somewhere: by its code, or by its text.
#[test]
fn every_entry_is_used() {
    let sources = sources();
    for entry in entries() {
        let name = format!("E{}", entry.code.number());
        let by_code =
            sources.contains(&format!("{name},")) || sources.contains(&format!("{name} "));
        let by_text = entry
            .says
            .iter()
            .any(|says| sources.contains(longest(says)));
        let by_system = OF_THE_SYSTEM.contains(&entry.code.number());
        assert!(
            by_code || by_text || by_system,
            "{}: nothing says {:?}",
            entry.code,
            entry.says
        );
    }
}

/// A form that the sources do not have any more finds nothing.
#[test]
fn every_form_is_in_the_sources() {
    let sources = sources();
    let lost: Vec<String> = entries()
        .filter(|entry| !OF_THE_SYSTEM.contains(&entry.code.number()))
        .flat_map(|entry| entry.says.iter().map(move |says| (entry.code, *says)))
        .filter(|(_, says)| !sources.contains(longest(says)))
        .map(|(code, says)| format!("{code} {says}"))
        .collect();
    assert!(lost.is_empty(), "not in the sources:\n{}", lost.join("\n"));
}

#[test]
fn entries_are_complete_and_in_order() {
    let mut forms = BTreeSet::new();
    let mut last = 0;
    for section in sections() {
        let first = section.entries[0].code.number();
        for entry in section.entries {
            let code = entry.code;
            for text in [entry.title, entry.cause, entry.remedy] {
                assert!(text.len() > 3 && text == text.trim(), "{code}: {text:?}");
            }
            assert!(entry.title.len() < 60, "{code}: a title is short");
            for says in entry.says {
                assert!(longest(says).len() >= 3, "{code}: {says} fits anything");
                assert!(forms.insert(says), "{code}: {says} is there twice");
            }
            let number = code.number();
            assert!(!RETIRED.contains(&number), "{code} belonged to another");
            assert_eq!(number / 100, first / 100, "{code} is in another section");
            assert!(number == first || number > last, "{code} is out of order");
            last = number;
        }
    }
}

/// Codes that were ever given. New ones are added; none is taken away.
const GIVEN: &[RangeInclusive<u16>] = &[
    1001..=1032,
    1101..=1116,
    2001..=2021,
    2023..=2026,
    2028..=2031,
    2033..=2039,
    3001..=3018,
    3101..=3107,
    3201..=3220,
    3301..=3313,
    4001..=4025,
    4101..=4105,
    5001..=5045,
    5101..=5116,
    5201..=5212,
    5301..=5314,
    6001..=6037,
    6101..=6121,
    6201..=6223,
    6225..=6232,
    6301..=6329,
    6401..=6417,
    6419..=6424,
    6501..=6525,
    7001..=7005,
    7101..=7119,
    8001..=8005,
    9001..=9001,
];

/// A code that was given once is still there, or retired: it is not given to another message.
#[test]
fn codes_stay() {
    let known: BTreeSet<u16> = entries().map(|entry| entry.code.number()).collect();
    let given: BTreeSet<u16> = GIVEN.iter().cloned().flatten().collect();
    let retired: BTreeSet<u16> = RETIRED.iter().copied().collect();
    assert!(
        known.is_disjoint(&retired),
        "{RETIRED:?} are not given again"
    );
    let all: BTreeSet<u16> = known.union(&retired).copied().collect();
    let gone: Vec<_> = given.difference(&all).collect();
    assert!(gone.is_empty(), "move these to RETIRED: {gone:?}");
    let new: Vec<_> = all.difference(&given).collect();
    assert!(new.is_empty(), "add these to GIVEN: {new:?}");
}

/// Codes in documents, examples and tests exist.
#[test]
fn every_code_that_is_named_exists() {
    let endings = [".rs", ".md", ".py", ".json", ".cpp"];
    let folders = [&SOURCES[..], &["docs", "tests"]].concat();
    let mut named = 0;
    for (path, text) in texts(&folders, &endings) {
        for rest in text.split("CERE-").skip(1) {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            // A code that there is not, for the test of that message.
            let is_no_code = rest.starts_with("9999") && path.ends_with("tests/all/codes.rs");
            if digits.len() == 4 && !is_no_code {
                named += 1;
                assert!(
                    entry(&digits).is_some(),
                    "{}: CERE-{digits}",
                    path.display()
                );
            }
        }
    }
    assert!(
        named > entries().count(),
        "{named}: the chapter alone has more"
    );
}

#[test]
fn the_guides_chapter_is_made_of_the_catalogue() {
    let path = repository().join("docs/guide/src/troubleshooting.md");
    let chapter = std::fs::read_to_string(path).expect("the chapter");
    let made = page::troubleshooting();
    let differ = chapter
        .lines()
        .zip(made.lines())
        .find(|(is, made)| is != made);
    assert!(
        chapter == made,
        "run `cargo run --release -p cere-catalogue --example page > docs/guide/src/troubleshooting.md`; first difference: {differ:?}"
    );
}

//! Finds the entry of a text. Reasons come from the pass, from the preload library and from replays as text, and libraries
//! without an entry of their own have errors as enums: their texts are the same wherever they are shown.

use crate::entry::Entry;
use crate::stages::entries;
use std::sync::LazyLock;

/// Literal characters that a form needs at least: less would fit anything.
const LEAST: usize = 8;

/// Forms of messages as their literal pieces, the longest first.
static FORMS: LazyLock<Vec<Form>> = LazyLock::new(|| {
    let forms = |entry: &'static Entry| entry.says.iter().map(move |says| Form::of(entry, says));
    let mut forms: Vec<Form> = entries().flat_map(forms).collect();
    forms.sort_by_key(|form| std::cmp::Reverse(form.literal));
    forms
});

struct Form {
    entry: &'static Entry,
    /// What stands between the `...`: the first piece begins the text.
    pieces: Vec<String>,
    /// Characters in the pieces.
    literal: usize,
}

impl Form {
    fn of(entry: &'static Entry, says: &str) -> Self {
        let pieces: Vec<String> = says.split("...").map(|p| plain(p.trim())).collect();
        let literal = pieces.iter().map(String::len).sum();
        Self {
            entry,
            pieces,
            literal,
        }
    }

    /// Whether `text` begins as this form does and has its pieces in order.
    fn fits(&self, text: &str) -> bool {
        let mut pieces = self.pieces.iter();
        let Some(mut rest) = pieces.next().and_then(|first| text.strip_prefix(&**first)) else {
            return false;
        };
        pieces.all(|piece| match rest.find(&**piece) {
            Some(at) => {
                rest = &rest[at + piece.len()..];
                true
            }
            None => false,
        })
    }
}

/// Without the marks of code, which messages have and forms have not.
fn plain(text: &str) -> String {
    text.replace('`', "")
}

/// The entry whose message `text` is: of those that fit, the one with most literal characters. None if none fits.
pub fn said(text: &str) -> Option<&'static Entry> {
    let text = plain(text);
    let mut long_enough = FORMS.iter().take_while(|form| form.literal >= LEAST);
    long_enough.find(|form| form.fits(&text)).map(|f| f.entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_the_entry_of_their_longest_form() {
        let number = |text: &str| said(text).map(|entry| entry.code.number());
        let nothing = "there is nothing to capture: no region passes";
        assert_eq!(number(nothing), Some(3004));
        let others = ", and 3 ran in threads other than the program's first alone (x)";
        assert_eq!(number(&format!("{nothing}{others}")), Some(3005));
        assert_eq!(number("it never ran with these arguments"), Some(3102));
        assert_eq!(
            number("no build is recorded in .cere: run `cere instrument`"),
            Some(4003)
        );
        assert_eq!(number("x: it never ran with these arguments"), None);
        assert_eq!(number(""), None);
    }

    /// An example is what its entry's forms say.
    #[test]
    fn examples_belong_to_their_entries() {
        let wrong: Vec<&str> = entries()
            .filter(|entry| !entry.example.is_empty())
            .filter(|entry| said(entry.example).map(|found| found.code) != Some(entry.code))
            .map(|entry| entry.example)
            .collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}

//! What an entry of the catalogue is, and the macro that lists them.

use std::fmt;

/// The code of a kind of message. It is shown as `CERE-2003`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(u16);

impl Code {
    /// The code of the constant `name`: a letter and four digits.
    pub(crate) const fn named(name: &str) -> Self {
        let bytes = name.as_bytes();
        assert!(bytes.len() == 5 && bytes[0] == b'E', "E and four digits");
        let mut number = 0;
        let mut at = 1;
        while at < bytes.len() {
            number = number * 10 + (bytes[at] - b'0') as u16;
            at += 1;
        }
        Self(number)
    }

    /// The code in a word that a user typed: with or without `CERE-` or `E`, in either case. None if the word is no code.
    pub fn parse(word: &str) -> Option<Self> {
        let word = word.to_ascii_uppercase();
        let digits = word.strip_prefix("CERE-").or(word.strip_prefix('E'));
        let digits = digits.unwrap_or(&word);
        let four = digits.len() == 4 && digits.bytes().all(|b| b.is_ascii_digit());
        four.then(|| digits.parse().ok().map(Self)).flatten()
    }

    /// The number in it: from 1001 to 9999.
    pub fn number(self) -> u16 {
        self.0
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "CERE-{:04}", self.0)
    }
}

/// A kind of message.
#[derive(Debug)]
pub struct Entry {
    /// Its code.
    pub code: Code,
    /// What happened, in a few words.
    pub title: &'static str,
    /// The message as it is printed, in its forms; `...` stands for names and numbers, and for what follows.
    pub says: &'static [&'static str],
    /// Why it happens.
    pub cause: &'static str,
    /// What to do. Links are those of the guide's chapter.
    pub remedy: &'static str,
    /// The message with names and numbers; empty where [`Entry::says`] shows it.
    pub example: &'static str,
}

impl Entry {
    /// The entry as lines for a terminal.
    pub fn text(&self) -> String {
        let mut text = format!("{}: {}\n", self.code, self.title);
        let mut line = |head: &str, what: &str| {
            text.push_str(&format!("  {head:<8}  {}\n", without_links(what)));
        };
        for (at, says) in self.says.iter().enumerate() {
            line(if at == 0 { "message" } else { "" }, says);
        }
        line("cause", self.cause);
        line("do", self.remedy);
        if !self.example.is_empty() {
            line("example", self.example);
        }
        text
    }
}

/// `text` with `[words](place)` as `words (place in the guide)`.
fn without_links(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some((before, words, place, after)) = link(rest) {
        shown.push_str(&format!("{before}{words} ({place} in the guide)"));
        rest = after;
    }
    shown + rest
}

/// The first link of `text`: what is before it, its words, its place, what is behind it.
fn link(text: &str) -> Option<(&str, &str, &str, &str)> {
    let middle = text.find("](")?;
    let start = text[..middle].rfind('[')?;
    let end = middle + text[middle..].find(')')?;
    let (words, place) = (&text[start + 1..middle], &text[middle + 2..end]);
    Some((&text[..start], words, place, &text[end + 1..]))
}

/// Entries that the guide shows in one table.
#[derive(Debug)]
pub struct Section {
    /// Its heading.
    pub title: &'static str,
    /// In order of their codes.
    pub entries: &'static [Entry],
}

/// The sections of one stage: a title, then the entries in braces. An entry is its code, a title, the forms of
/// the message, the cause, what to do, and perhaps an example. A code that is given twice does not compile.
macro_rules! stage {
    ($($title:literal {$(
        $code:ident $what:literal [$($says:literal),+] $cause:literal, $remedy:literal $(, $example:literal)?;
    )*})*) => {
        /// The codes.
        pub mod codes {
            use crate::entry::Code;
            $($(#[doc = $what] pub const $code: Code = Code::named(stringify!($code));)*)*
        }

        /// The sections.
        pub const SECTIONS: &[crate::entry::Section] = &[$(crate::entry::Section {
            title: $title,
            entries: &[$(crate::entry::Entry {
                code: codes::$code,
                title: $what,
                says: &[$($says),+],
                cause: $cause,
                remedy: $remedy,
                example: concat!($($example)?),
            }),*],
        }),*];
    };
}
pub(crate) use stage;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_as_they_are_typed() {
        for word in ["CERE-2003", "cere-2003", "E2003", "e2003", "2003"] {
            assert_eq!(Code::parse(word), Some(Code(2003)), "{word}");
        }
        for word in [
            "",
            "CERE-",
            "203",
            "CERE-20033",
            "CERE-2O03",
            "solve",
            "+200",
        ] {
            assert_eq!(Code::parse(word), None, "{word}");
        }
        assert_eq!(Code::named("E2003").to_string(), "CERE-2003");
    }

    #[test]
    fn links_are_words_on_a_terminal() {
        let text = "see [Install](install.md) or [b](c.md#d).";
        assert_eq!(
            without_links(text),
            "see Install (install.md in the guide) or b (c.md#d in the guide)."
        );
        assert_eq!(without_links("a [0](x"), "a [0](x");
    }
}

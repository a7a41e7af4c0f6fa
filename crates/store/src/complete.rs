//! What shells complete: names of regions and codelets, as a word that was begun goes on.

use crate::{codelets, names, state};
use cere_format::store::Store;
use cere_system::console::short;
use std::collections::BTreeSet;

/// Columns of a name that is offered.
const WIDTH: usize = 60;

/// What may stand at a place of a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// A region of the build.
    Region,
    /// A codelet, or a region that has some.
    Codelet,
}

/// The names in `store` that begin with `begun`: short ones, or whole ones where no short one does. A store that cannot be read has
/// none, because a shell has no place for a message.
pub fn candidates(store: &Store, wanted: Wanted, begun: &str) -> Vec<String> {
    let all: BTreeSet<String> = match wanted {
        Wanted::Region => {
            let units = state::current_units(store).unwrap_or_default();
            names::named(&units).into_iter().map(|n| n.name).collect()
        }
        Wanted::Codelet => {
            let codelets = codelets::names(store).unwrap_or_default();
            let region = |name: &String| Some(name.rsplit_once(':')?.0.to_owned());
            let each = codelets.into_iter().map(|(name, _)| name);
            each.flat_map(|name| region(&name).into_iter().chain([name]))
                .collect()
        }
    };
    begun_with(&all.iter().map(String::as_str).collect::<Vec<_>>(), begun)
}

fn begun_with(all: &[&str], begun: &str) -> Vec<String> {
    let mut found = short::fitting(all, WIDTH);
    found.retain(|name| name.starts_with(begun));
    if found.is_empty() {
        let whole = all.iter().filter(|name| name.starts_with(begun));
        found = whole.map(|name| (*name).to_owned()).collect();
    }
    found
}

/// A command line of bash up to the cursor.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line {
    /// Its words as the command would get them; the last one is begun.
    pub words: Vec<String>,
    /// The last word as it was typed.
    typed: String,
    /// The quote that is open in it.
    quote: Option<char>,
}

impl Line {
    /// Reads `text`.
    pub fn read(text: &str) -> Self {
        let mut line = Self::default();
        let mut word = String::new();
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            line.typed.push(c);
            match (c, line.quote) {
                (' ' | '\t', None) => {
                    if line.typed.len() > 1 {
                        line.words.push(std::mem::take(&mut word));
                    }
                    line.typed.clear();
                }
                ('\\', None | Some('"')) => {
                    let escaped = rest.next();
                    line.typed.extend(escaped);
                    word.extend(escaped);
                }
                ('\'' | '"', None) => line.quote = Some(c),
                (_, Some(quote)) if quote == c => line.quote = None,
                _ => word.push(c),
            }
        }
        line.words.push(word);
        line
    }

    /// What bash puts in the place of the last word, of which it replaces what follows the last of `breaks`.
    pub fn reply(&self, name: &str, breaks: &str) -> String {
        match self.quote {
            Some('\'') => return name.replace('\'', "'\\''"),
            Some(_) => return escaped(name, |c| matches!(c, '"' | '\\' | '$' | '`')),
            None => {}
        }
        let kept = Self::read(self.up_to_break(breaks)).words.concat();
        let rest = name.strip_prefix(&kept).unwrap_or(name);
        escaped(rest, |c| !c.is_alphanumeric() && !"_@%+=:,./-".contains(c))
    }

    /// The beginning of the last word that bash keeps.
    fn up_to_break(&self, breaks: &str) -> &str {
        let mut end = 0;
        let mut each = self.typed.char_indices();
        while let Some((at, c)) = each.next() {
            match c {
                '\\' => drop(each.next()),
                c if breaks.contains(c) => end = at + c.len_utf8(),
                _ => {}
            }
        }
        &self.typed[..end]
    }
}

fn escaped(text: &str, special: impl Fn(char) -> bool) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        if special(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    const BREAKS: &str = " \t\n\"'@><=;|&(:";

    #[test]
    fn words_of_a_line() {
        for (text, words, quote) in [
            ("cere replay ", vec!["cere", "replay", ""], None),
            ("cere  replay so", vec!["cere", "replay", "so"], None),
            (
                "cere replay 'a b<",
                vec!["cere", "replay", "a b<"],
                Some('\''),
            ),
            (
                "cere replay \"a \\\"b",
                vec!["cere", "replay", "a \"b"],
                Some('"'),
            ),
            (
                "cere --store 'x y' re\\ p\\<",
                vec!["cere", "--store", "x y", "re p<"],
                None,
            ),
            ("", vec![""], None),
            ("cere\\", vec!["cere"], None),
        ] {
            let line = Line::read(text);
            assert_eq!(
                (line.words, line.quote),
                (words.into_iter().map(str::to_owned).collect(), quote),
                "{text}"
            );
        }
    }

    #[test]
    fn replies_go_on_where_bash_replaces() {
        let name = "std::sort<*>@stl algo.h:3";
        for (typed, reply) in [
            ("cere replay std", "std::sort\\<\\*\\>@stl\\ algo.h:3"),
            ("cere replay std::so", "sort\\<\\*\\>@stl\\ algo.h:3"),
            ("cere replay std::sort\\<\\*\\>@st", "stl\\ algo.h:3"),
            ("cere replay 'std::so", name),
            ("cere replay \"std::so", name),
        ] {
            assert_eq!(Line::read(typed).reply(name, BREAKS), reply, "{typed}");
        }
        assert_eq!(Line::read("x 'a").reply("a'b", BREAKS), "a'\\''b");
    }

    #[test]
    fn whole_names_go_on_where_short_ones_do_not() {
        let long =
            "std::sort<std::vector<double, std::allocator<double>>, main::$_0>@stl_algo.h:1865";
        assert_eq!(
            begun_with(&[long, "main@a.c:1"], "std"),
            ["std::sort<*>@stl_algo.h:1865"]
        );
        assert_eq!(begun_with(&[long], "std::sort<std"), [long]);
        assert!(begun_with(&[long], "f").is_empty());
    }
}

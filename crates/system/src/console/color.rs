//! Colours. They follow NO_COLOR, CLICOLOR, CLICOLOR_FORCE, FORCE_COLOR and TERM, and whether a terminal reads. What is coloured says
//! the same in words.

use anstyle::{AnsiColor, Effects, Style};
use cere_format::replay::Verdict;
use cere_format::untrusted::visible;
use std::borrow::Cow;
use std::hash::BuildHasher;
use std::io::IsTerminal;
use std::sync::LazyLock;

/// What a text is coloured for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// As it should be: green.
    Good,
    /// To be looked at: yellow.
    Doubtful,
    /// Wrong: red.
    Bad,
}

/// All of them.
const TONES: [Tone; 3] = [Tone::Good, Tone::Doubtful, Tone::Bad];

impl Tone {
    fn style(self) -> Style {
        let color = match self {
            Self::Good => AnsiColor::Green,
            Self::Doubtful => AnsiColor::Yellow,
            Self::Bad => AnsiColor::Red,
        };
        let style = Style::new().fg_color(Some(color.into()));
        match self {
            Self::Bad => style.effects(Effects::BOLD),
            _ => style,
        }
    }

    /// `text` in this colour.
    fn escaped(self, text: &str) -> String {
        let style = self.style();
        format!("{style}{text}{style:#}")
    }
}

/// What the environment and the command line ask for, for a stream that `terminal` reads.
fn wanted(variable: impl Fn(&str) -> Option<String>, terminal: bool) -> bool {
    let set = |name| variable(name).filter(|value| !value.is_empty());
    let forced = |name| set(name).is_some_and(|value| value != "0" && value != "false");
    let capable = || set("TERM").is_some_and(|term| term != "dumb");
    match () {
        () if set("NO_COLOR").is_some() => false,
        () if forced("CLICOLOR_FORCE") || forced("FORCE_COLOR") => true,
        () if set("CLICOLOR").is_some_and(|value| value == "0") => false,
        () => terminal && capable(),
    }
}

fn of_environment(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

static STDOUT: LazyLock<bool> =
    LazyLock::new(|| wanted(of_environment, std::io::stdout().is_terminal()));
static STDERR: LazyLock<bool> =
    LazyLock::new(|| wanted(of_environment, std::io::stderr().is_terminal()));

/// Whether the environment asks for colours where no terminal reads.
pub fn is_forced() -> bool {
    wanted(of_environment, false)
}

/// Whether stdout is coloured.
pub fn on_stdout() -> bool {
    *STDOUT
}

/// Whether stderr is.
pub fn on_stderr() -> bool {
    *STDERR
}

/// A number of this process, which no text from elsewhere holds.
static OWN: LazyLock<String> =
    LazyLock::new(|| format!("\x1b[{}", std::hash::RandomState::new().hash_one(0)));

/// What begins a coloured text, until [`shown`] writes it; the end is that of no tone.
fn mark(tone: Option<Tone>) -> String {
    let number = tone.map_or(TONES.len(), |tone| tone as usize);
    format!("{};{number}m", *OWN)
}

/// `text` for stdout, in the colour of `tone` if stdout is coloured. The text may be in names from elsewhere: only what this
/// function made becomes a colour.
pub fn paint(tone: Tone, text: &str) -> String {
    match on_stdout() {
        true => format!("{}{text}{}", mark(Some(tone)), mark(None)),
        false => text.to_owned(),
    }
}

/// The word of a verdict, in its colour.
pub fn verdict(verdict: Verdict) -> String {
    let tone = match verdict {
        Verdict::Exact => Tone::Good,
        Verdict::Different => Tone::Bad,
        _ => Tone::Doubtful,
    };
    paint(tone, verdict.name())
}

/// `text` without the marks of [`paint`].
pub fn without(text: &str) -> Cow<'_, str> {
    if !text.contains('\x1b') {
        return Cow::Borrowed(text);
    }
    let all = TONES.map(Some).into_iter().chain([None]);
    Cow::Owned(all.fold(text.to_owned(), |text, tone| text.replace(&mark(tone), "")))
}

/// `text` with control characters made visible, but for the marks of [`paint`].
pub fn guarded(text: &str) -> String {
    if !text.contains(OWN.as_str()) {
        return visible(text);
    }
    let mut shown = String::new();
    for (number, piece) in text.split(OWN.as_str()).enumerate() {
        let rest = piece.strip_prefix(';').filter(|_| number > 0);
        match rest.and_then(|rest| rest.split_once('m')) {
            Some((tone, rest)) => {
                shown += &format!("{};{tone}m", *OWN);
                shown += &visible(rest);
            }
            None => shown += &visible(piece),
        }
    }
    shown
}

/// `text` with the marks of [`paint`] as a terminal takes them.
pub fn shown(text: &str) -> Cow<'_, str> {
    if !text.contains(OWN.as_str()) {
        return Cow::Borrowed(text);
    }
    let begun = TONES.into_iter().fold(text.to_owned(), |text, tone| {
        text.replace(&mark(Some(tone)), &tone.style().to_string())
    });
    Cow::Owned(begun.replace(&mark(None), anstyle::Reset.render().to_string().as_str()))
}

/// A message for stderr, whose first words say what it is: an error or a warning in its colour.
pub fn message(text: &str) -> Cow<'_, str> {
    if !on_stderr() {
        return Cow::Borrowed(text);
    }
    for (begin, tone) in [
        ("cere: error", Tone::Bad),
        ("cere: warning", Tone::Doubtful),
    ] {
        if let Some(rest) = text.strip_prefix(begin) {
            return Cow::Owned(tone.escaped(begin) + rest);
        }
    }
    Cow::Borrowed(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(set: &[(&str, &str)], terminal: bool) -> bool {
        let of = |name: &str| {
            let found = set.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        wanted(of, terminal)
    }

    #[test]
    fn what_asks_for_colours() {
        let term = ("TERM", "xterm");
        assert!(with(&[term], true) && !with(&[term], false));
        assert!(!with(&[], true) && !with(&[("TERM", "dumb")], true));
        assert!(!with(&[term, ("NO_COLOR", "1")], true) && with(&[term, ("NO_COLOR", "")], true));
        assert!(!with(&[term, ("CLICOLOR", "0")], true) && with(&[term, ("CLICOLOR", "1")], true));
        for name in ["CLICOLOR_FORCE", "FORCE_COLOR"] {
            assert!(with(&[(name, "1")], false) && !with(&[(name, "0")], false));
            assert!(with(&[(name, "1"), ("TERM", "dumb")], false));
            assert!(!with(&[(name, "1"), ("NO_COLOR", "1")], true));
        }
    }

    #[test]
    fn only_own_marks_become_colours() {
        let own = format!("{}exact{}", mark(Some(Tone::Good)), mark(None));
        let text = guarded(&format!("{own} \x1b[32m\x1b[2J"));
        assert_eq!(shown(&text), "\x1b[32mexact\x1b[0m \\u{1b}[32m\\u{1b}[2J");
        assert_eq!(without(&own), "exact");
        assert_eq!(guarded(&format!("{}9999", *OWN)).matches('\x1b').count(), 0);
    }
}

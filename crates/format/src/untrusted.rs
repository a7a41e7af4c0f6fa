//! Untrusted input: JSON is checked for its size before it is parsed, and control characters in text are made visible.

use crate::FormatError;
use serde::de::{DeserializeOwned, DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// Maximum values in a JSON document: strings, numbers, truth values, nulls and keys, lists and objects.
pub const VALUES: u64 = 1 << 23;
/// Maximum elements of a list.
pub const ELEMENTS: u64 = 1 << 20;
/// Maximum bytes of a string.
pub const STRING: usize = 1 << 20;

/// Whether a terminal only shows `c`: it is not a control character and does not change the direction of the text.
pub fn is_plain(c: char) -> bool {
    let turns = ['\u{200e}', '\u{200f}', '\u{2028}', '\u{2029}', '\u{61c}'];
    let embeds = ['\u{202a}'..='\u{202e}', '\u{2066}'..='\u{2069}'];
    !c.is_control() && !turns.contains(&c) && !embeds.iter().any(|range| range.contains(&c))
}

/// `text` with everything that is not plain as an escape sequence of the source.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match is_plain(c) {
            true => shown.push(c),
            false => shown.extend(c.escape_default()),
        }
    }
    shown
}

/// Values that may still come.
struct Left(u64);

impl Left {
    fn take<E: Error>(&mut self) -> Result<(), E> {
        match self.0.checked_sub(1) {
            Some(left) => self.0 = left,
            None => return Err(E::custom(format!("it holds more than {VALUES} values"))),
        }
        Ok(())
    }
}

/// Reads a value and discards it.
struct Measure<'a>(&'a mut Left);

impl<'de> DeserializeSeed<'de> for Measure<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, source: D) -> Result<(), D::Error> {
        self.0.take()?;
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Measure<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }
    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        if text.len() > STRING {
            return Err(E::custom(format!("a string has more than {STRING} bytes")));
        }
        match text.chars().all(is_plain) {
            true => Ok(()),
            false => Err(E::custom(format!(
                "the text \"{}\" holds control characters",
                visible(&text.chars().take(60).collect::<String>())
            ))),
        }
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let mut count = 0;
        while list.next_element_seed(Measure(self.0))?.is_some() {
            count += 1;
            if count > ELEMENTS {
                let many = format!("a list has more than {ELEMENTS} elements");
                return Err(A::Error::custom(many));
            }
        }
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        while object.next_key_seed(Measure(self.0))?.is_some() {
            object.next_value_seed(Measure(self.0))?;
        }
        Ok(())
    }
}

/// Fails if the JSON `text` of `what` is invalid, exceeds the limits of this module, or has control characters in a string.
/// Needs little memory.
pub fn measure(what: &str, text: &[u8]) -> Result<(), FormatError> {
    let mut left = Left(VALUES);
    let mut source = serde_json::Deserializer::from_slice(text);
    let read = Measure(&mut left).deserialize(&mut source);
    read.and_then(|()| source.end())
        .map_err(|source| FormatError::Json {
            what: what.to_owned(),
            source,
        })
}

/// Checks and parses the JSON `text` of `what`.
pub fn json<T: DeserializeOwned>(what: &str, text: &[u8]) -> Result<T, FormatError> {
    measure(what, text)?;
    serde_json::from_slice(text).map_err(|source| FormatError::Json {
        what: what.to_owned(),
        source,
    })
}

/// As [`visible`], of bytes.
pub fn visible_bytes(bytes: &[u8]) -> String {
    let text: Cow<str> = String::from_utf8_lossy(bytes);
    visible(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails(text: &str, part: &str) {
        let error = measure("it", text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }

    #[test]
    fn measures() {
        measure(
            "it",
            br#"{"a": [1, -1, 1.5, true, null, "\u00e9\\n"], "b": {}}"#,
        )
        .unwrap();
        fails("[1,", "EOF");
        fails("1 2", "trailing");
        fails(r#"["\u001b[2J"]"#, r"\u{1b}[2J");
        fails(r#"{"a\nb": 1}"#, "control");
        fails("\"\u{202e}\"", "control");
        fails(&"[".repeat(1000), "recursion");
        fails(&format!("[{}0]", "0,".repeat(1 << 20)), "elements");
        let list = format!("[{}0]", "0,".repeat((1 << 20) - 1));
        fails(&format!("[{}]", vec![list; 9].join(",")), "values");
        fails(&format!("\"{}\"", "x".repeat(STRING + 1)), "bytes");
    }

    #[test]
    fn shows() {
        assert_eq!(visible("é\u{1b}\u{9b}\u{202e}"), "é\\u{1b}\\u{9b}\\u{202e}");
        assert_eq!(visible_bytes(b"a\xff\n"), "a\u{fffd}\\n");
    }
}

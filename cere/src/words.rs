//! Words of a line, as a shell or a response file has them.

use anyhow::{Result, bail};

/// Splits `text`: blanks separate, quotes and backslashes keep.
pub fn split(text: &str) -> Result<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (Some('\''), _) => word.get_or_insert_default().push(c),
            (_, '\\') => word.get_or_insert_default().extend(characters.next()),
            (Some(_), _) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, _) => word.get_or_insert_default().push(c),
        }
    }
    if let Some(quote) = quote {
        bail!("the quote {quote} is never closed in: {text}");
    }
    words.extend(word);
    Ok(words)
}

/// A line that [`split`] makes `words` of again, quoted where need be.
pub fn join(words: &[String]) -> String {
    let plain = |c: char| !c.is_whitespace() && !"'\"\\".contains(c);
    let word = |word: &String| match !word.is_empty() && word.chars().all(plain) {
        true => word.clone(),
        false => format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\"")),
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_backslashes() {
        assert_eq!(
            split(r#"a "b c" d\ e 'f"g'  ''"#).unwrap(),
            ["a", "b c", "d e", "f\"g", ""]
        );
        assert!(split("a 'b").is_err());
    }

    #[test]
    fn joined_words_split_again() {
        let words = ["-O3", "", "a b", "-D=\"x\\y\"", "it's", "\n"].map(String::from);
        assert_eq!(split(&join(&words)).unwrap(), words);
        assert_eq!(join(&["-O3".to_owned(), "-g".to_owned()]), "-O3 -g");
    }
}

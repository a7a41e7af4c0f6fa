//! Flags as one text, split as a shell does.

/// A quotation mark without its partner.
#[derive(Debug, thiserror::Error)]
#[error("missing closing quote: close {mark} or write \\{mark} for the character itself")]
pub struct Unclosed {
    mark: char,
}

/// The words of `text`.
///
/// # Errors
/// A quotation mark is not closed.
pub fn split(text: &str) -> Result<Vec<String>, Unclosed> {
    shell_words::split(text).map_err(|_| Unclosed {
        // The mark that closes it is the one that opened it.
        mark: match shell_words::split(&format!("{text}'")) {
            Ok(_) => '\'',
            Err(_) => '"',
        },
    })
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn the_open_mark_is_named() {
        assert_eq!(split("-O2 '-DA=1 2'").unwrap(), ["-O2", "-DA=1 2"]);
        for (text, close) in [("-O2 'a \"b\"", "close '"), ("\"it's", "close \"")] {
            let error = split(text).unwrap_err().to_string();
            assert!(error.contains(close), "{error}");
        }
    }
}

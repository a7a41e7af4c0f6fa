//! Flags as one text, split as a shell does.

use cere_format::language::rust;

/// Why a text is no list of flags.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// A quotation mark without its partner.
    #[error("missing closing quote: close {mark} or write \\{mark} for the character itself")]
    Unclosed {
        /// The mark.
        mark: char,
    },
    /// An option of rustc's that has no meaning here.
    #[error("{0}")]
    Rust(String),
}

/// The words of `text`, rustc's (`-C target-cpu=native`) as clang has them.
///
/// # Errors
/// A quotation mark is not closed, or rustc's option is none of those that change what is made of IR.
pub fn split(text: &str) -> Result<Vec<String>, Unreadable> {
    let words = shell_words::split(text).map_err(|_| Unreadable::Unclosed {
        // The mark that closes it is the one that opened it.
        mark: match shell_words::split(&format!("{text}'")) {
            Ok(_) => '\'',
            Err(_) => '"',
        },
    })?;
    rust::in_clang_words(words).map_err(Unreadable::Rust)
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn the_open_mark_is_named() {
        assert_eq!(split("-C opt-level=2").unwrap(), ["-O2"]);
        assert_eq!(split("-O2 '-DA=1 2'").unwrap(), ["-O2", "-DA=1 2"]);
        for (text, close) in [("-O2 'a \"b\"", "close '"), ("\"it's", "close \"")] {
            let error = split(text).unwrap_err().to_string();
            assert!(error.contains(close), "{error}");
        }
    }
}

//! Questions at a terminal. Where there is none, an option has to answer.

use anyhow::{Result, bail};
use std::io::{BufRead, IsTerminal, Write};

/// Whether someone can be asked.
pub fn can() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks; only yes is yes. Without a terminal an error, which names the `option` that answers.
pub fn agrees(question: &str, option: &str) -> Result<bool> {
    if !can() {
        bail!(
            "{} There is no terminal to ask at: `{option}` says yes",
            question.trim_start_matches("cere: ")
        );
    }
    Ok(user_agrees(question))
}

/// Asks at the terminal.
pub fn user_agrees(question: &str) -> bool {
    let mut stderr = std::io::stderr().lock();
    let asked = write!(stderr, "{question} [y/N] ").and_then(|()| stderr.flush());
    let mut answer = String::new();
    asked.is_ok() && std::io::stdin().lock().read_line(&mut answer).is_ok() && is_yes(&answer)
}

fn is_yes(answer: &str) -> bool {
    ["y", "yes"].contains(&answer.trim().to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::is_yes;

    #[test]
    fn only_yes_is_yes() {
        assert!(["y\n", "Y", " yes \n"].into_iter().all(is_yes));
        assert!(!["", "\n", "n", "yo", "no"].into_iter().any(is_yes));
    }
}

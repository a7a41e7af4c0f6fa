//! Whether two outputs are the same, apart from words that differ between runs of one build.

/// How the outputs of two runs of one build differ in more than words.
#[derive(Debug, thiserror::Error)]
pub enum Differs {
    /// In the numbers of lines.
    #[error("{0} lines in one, {1} in another")]
    Lines(usize, usize),
    /// In the number of words of a line.
    #[error("line {number}: {text}")]
    Words {
        /// The line, from 1.
        number: usize,
        /// Its words in the later run.
        text: String,
    },
}

/// The plain build's output, with the words that differ from run to run.
pub struct Varying {
    lines: Vec<Vec<Word>>,
    ignored: Vec<String>,
}

struct Word {
    text: String,
    varies: bool,
}

fn words_by_line(output: &[u8], ignored: &[String]) -> Vec<Vec<String>> {
    let text = String::from_utf8_lossy(output);
    let wanted = text
        .lines()
        .filter(|line| !ignored.iter().any(|i| line.contains(i.as_str())));
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
    wanted.map(words).collect()
}

/// Finds the words that differ between the outputs of several runs.
pub fn find_varying_words(outputs: &[Vec<u8>], ignored: &[String]) -> Result<Varying, Differs> {
    let mut all = outputs.iter().map(|o| words_by_line(o, ignored));
    let first = all.next().unwrap_or_default();
    let word = |text: String| Word {
        text,
        varies: false,
    };
    let mut found: Vec<Vec<Word>> = first
        .into_iter()
        .map(|line| line.into_iter().map(word).collect())
        .collect();
    for other in all {
        if other.len() != found.len() {
            return Err(Differs::Lines(found.len(), other.len()));
        }
        for (number, (line, other)) in found.iter_mut().zip(other).enumerate() {
            if line.len() != other.len() {
                return Err(Differs::Words {
                    number: number + 1,
                    text: other.join(" "),
                });
            }
            for (word, other) in line.iter_mut().zip(other) {
                word.varies |= word.text != other;
            }
        }
    }
    Ok(Varying {
        lines: found,
        ignored: ignored.to_vec(),
    })
}

impl Varying {
    /// The number of words that differ from run to run, and the first line with such a word.
    pub fn told(&self) -> Option<(usize, String)> {
        let varies = |line: &&Vec<Word>| line.iter().any(|w| w.varies);
        let first = self.lines.iter().find(varies)?;
        let text: Vec<&str> = first.iter().map(|w| w.text.as_str()).collect();
        let count = self.lines.iter().flatten().filter(|w| w.varies).count();
        Some((count, text.join(" ")))
    }

    /// How `output` differs from the plain build's, if it does; numbers may be off by the relative error `tolerance`.
    pub fn difference(&self, output: &[u8], tolerance: f64) -> Option<String> {
        let found = words_by_line(output, &self.ignored);
        if found.len() != self.lines.len() {
            return Some(format!(
                "{} lines instead of {}",
                found.len(),
                self.lines.len()
            ));
        }
        let same = |word: &Word, other: &String| {
            word.varies || word.text == *other || numbers_agree(&word.text, other, tolerance)
        };
        for (line, other) in self.lines.iter().zip(found) {
            let whole = line.len() == other.len();
            if !whole || !line.iter().zip(&other).all(|(w, o)| same(w, o)) {
                let plain: Vec<&str> = line.iter().map(|w| w.text.as_str()).collect();
                return Some(format!(
                    "\"{}\" instead of \"{}\"",
                    other.join(" "),
                    plain.join(" ")
                ));
            }
        }
        None
    }
}

/// Whether both words are numbers that differ by a relative error of `tolerance` at most. Fortran writes exponents with D
/// as well.
fn numbers_agree(a: &str, b: &str, tolerance: f64) -> bool {
    let number = |text: &str| {
        let plain = text
            .trim_end_matches([',', ';', ')'])
            .trim_start_matches('(');
        plain.replace(['D', 'd'], "e").parse::<f64>().ok()
    };
    match (number(a), number(b)) {
        (Some(a), Some(b)) => (a - b).abs() <= tolerance * a.abs().max(b.abs()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_varies_is_not_compared() {
        let of = |texts: &[&str]| {
            let outputs: Vec<Vec<u8>> = texts.iter().map(|t| t.as_bytes().to_vec()).collect();
            find_varying_words(&outputs, &["date".to_owned()])
        };
        let plain = of(&[
            "sum 3.5\ntime 1.2 s\ndate a\n",
            "sum 3.5\ntime 1.3 s\ndate b c\n",
        ])
        .unwrap();
        assert_eq!(plain.told().unwrap(), (1, "time 1.2 s".to_owned()));
        assert_eq!(
            plain.difference(b"sum 3.5\ntime 9 s\ndate x y z", 0.0),
            None
        );
        assert!(plain.difference(b"sum 3.6\ntime 9 s", 0.0).is_some());
        assert!(plain.difference(b"sum 3.5\n", 0.0).is_some());
        assert!(plain.difference(b"sum 3.5\ntime 9 s s", 0.0).is_some());
        assert_eq!(plain.difference(b"sum 3.5000001\ntime 9 s", 1e-6), None);
        assert!(of(&["a\n", "a\nb\n"]).is_err());
        assert!(of(&["a\n", "a b\n"]).is_err());
    }

    #[test]
    fn numbers_that_are_near() {
        assert!(numbers_agree("1.5D+01", "15.00001", 1e-5));
        assert!(numbers_agree("0", "0", 0.0));
        assert!(!numbers_agree("1", "-1", 0.5));
        assert!(!numbers_agree("x", "x1", 0.5));
    }
}

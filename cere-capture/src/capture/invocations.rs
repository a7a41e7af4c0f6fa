//! Lists of invocations: `1`, `1,12`, `3-5`.

use anyhow::Result;
use cere_catalogue::bail;

/// Maximum invocations in a list.
const MOST: usize = 10_000;

/// The invocations that `text` lists, rising, each once.
pub fn parse(text: &str) -> Result<Vec<u64>> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first, text)?, number(last, text)?),
            None => {
                let single = number(part, text)?;
                (single, single)
            }
        };
        if first > last {
            bail!(
                E3012,
                "--invocation {text}: {part} runs backwards, {last}-{first} is meant"
            );
        }
        if last - first >= MOST as u64 || all.len() > MOST {
            bail!(
                E3012,
                "--invocation {text} names more than {MOST} invocations"
            );
        }
        all.extend(first..=last);
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

fn number(text: &str, list: &str) -> Result<u64> {
    match text.trim().parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => bail!(
            E3012,
            "--invocation {list}: `{text}` is not the number of an invocation, which count from 1; lists look like 1,12 or 3-5"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists() {
        assert_eq!(parse("1").unwrap(), [1]);
        assert_eq!(parse("1,12").unwrap(), [1, 12]);
        assert_eq!(parse("3-5,4,1").unwrap(), [1, 3, 4, 5]);
    }

    #[test]
    fn lists_that_are_none() {
        let bad = [
            "",
            "0",
            "1,,2",
            "5-3",
            "x",
            "-1",
            "1-",
            "1;2",
            "1.5",
            "0-3",
            "1-99999999999",
            "99999999999999999999",
        ];
        for text in bad {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}

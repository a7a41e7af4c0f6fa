//! Variants of a region's code.

use serde::{Deserialize, Serialize};
use std::fmt;

/// How a region is compiled differently from the build: with flags after those of the build, with an `opt` pipeline instead
/// of the compiler's own, or both.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Variant {
    /// Flags after those of the build, a word each.
    pub flags: Vec<String>,
    /// A pipeline as `opt -passes=` takes it.
    pub passes: Option<String>,
}

/// Options of clang that take the next word.
const TAKES_A_WORD: [&str; 5] = [
    "-mllvm",
    "-Xclang",
    "-Xflang",
    "-Xpreprocessor",
    "-Xassembler",
];

impl Variant {
    /// What its flags consist of: a word each, or two where an option takes the next one.
    pub fn choices(&self) -> Vec<Vec<String>> {
        let mut found: Vec<Vec<String>> = Vec::new();
        let mut waits = false;
        for word in &self.flags {
            match found.last_mut().filter(|_| waits) {
                Some(last) => last.push(word.clone()),
                None => found.push(vec![word.clone()]),
            }
            waits = !waits && TAKES_A_WORD.contains(&word.as_str());
        }
        found
    }
}

/// Flags joined by spaces, then the pipeline in brackets; "as built" for neither.
impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match (&self.flags[..], &self.passes) {
            ([], None) => f.write_str("as built"),
            (flags, None) => f.write_str(&flags.join(" ")),
            ([], Some(passes)) => write!(f, "[{passes}]"),
            (flags, Some(passes)) => write!(f, "{} [{passes}]", flags.join(" ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        let variant = |flags: &[&str], passes: Option<&str>| {
            let flags = flags.iter().map(|f| (*f).to_owned()).collect();
            let passes = passes.map(str::to_owned);
            Variant { flags, passes }.to_string()
        };
        assert_eq!(variant(&[], None), "as built");
        assert_eq!(variant(&["-O2", "-g"], None), "-O2 -g");
        assert_eq!(variant(&["-O2"], Some("sroa,gvn")), "-O2 [sroa,gvn]");
        assert_eq!(variant(&[], Some("sroa")), "[sroa]");
    }

    #[test]
    fn an_option_and_its_word_stay_together() {
        let of = |text: &str| {
            let flags = text.split_whitespace().map(str::to_owned).collect();
            let variant = Variant {
                flags,
                passes: None,
            };
            let joined = variant.choices().into_iter().map(|c| c.join(" "));
            joined.collect::<Vec<_>>()
        };
        assert_eq!(
            of("-O2 -mllvm -unroll-count=4 -Xclang -mllvm -fno-x -mllvm"),
            [
                "-O2",
                "-mllvm -unroll-count=4",
                "-Xclang -mllvm",
                "-fno-x",
                "-mllvm"
            ]
        );
        assert!(of("").is_empty());
    }
}

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
}

//! Pass pipelines in the syntax of `opt -passes=`, and samples of them.

use rand::{Rng, RngExt};
use std::fmt;

/// Why a text is not a pipeline. Offsets are bytes of the text, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PipelineError {
    /// A pass was expected, and something else is there, or the text's end.
    #[error(
        "a pass was expected at offset {at}; write passes separated by commas, as `opt -print-pipeline-passes` does"
    )]
    Name {
        /// Where.
        at: usize,
    },
    /// A parenthesis or angle bracket without its partner.
    #[error("{open:?} at offset {at} is never closed")]
    Open {
        /// The bracket.
        open: char,
        /// Where it is.
        at: usize,
    },
    /// A character that cannot follow a pass.
    #[error("{found:?} at offset {at} cannot follow a pass; a comma, `<`, `(` or the end can")]
    Unexpected {
        /// The character.
        found: char,
        /// Where.
        at: usize,
    },
    /// Adaptors are nested too deeply.
    #[error("adaptors are nested deeper than {DEPTH} at offset {at}")]
    Deep {
        /// Where.
        at: usize,
    },
}

/// Maximum nesting of adaptors: real pipelines have five.
const DEPTH: usize = 64;

/// A pipeline of the new pass manager: a tree of passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline(Vec<Pass>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Pass {
    name: String,
    /// The text between the angle brackets, if there are any.
    parameters: Option<String>,
    /// The passes that an adaptor runs.
    inner: Option<Vec<Pass>>,
}

impl Pipeline {
    /// Parses `text`. Names of passes are not checked; spaces around the text are ignored.
    pub fn parse(text: &str) -> Result<Self, PipelineError> {
        let mut parser = Parser {
            text: text.trim(),
            at: 0,
        };
        let passes = parser.list(0)?;
        match parser.peek() {
            None => Ok(Self(passes)),
            Some(found) => Err(PipelineError::Unexpected {
                found,
                at: parser.at,
            }),
        }
    }

    /// Number of passes, adaptors not counted.
    pub fn passes(&self) -> usize {
        fn count(passes: &[Pass]) -> usize {
            let of = |p: &Pass| p.inner.as_deref().map_or(1, count);
            passes.iter().map(of).sum()
        }
        count(&self.0)
    }

    /// The pipeline without the passes, counted as in [`Pipeline::passes`], that `keeps` does not keep, nor the adaptors that become
    /// empty; passes that correct code needs stay.
    pub fn keeping(&self, keeps: impl Fn(usize) -> bool) -> String {
        let mut number = 0;
        let kept = retain(&self.0, &mut |pass| {
            number += 1;
            is_required(pass) || keeps(number - 1)
        });
        Self(kept).to_string()
    }

    /// Down-samples the pipeline `rounds` times and concatenates the results (CERE thesis, 5.4.4): each pass is dropped with
    /// probability `drop`, and so is an adaptor that becomes empty. Empty if nothing remains.
    pub fn sample(&self, drop: f64, rounds: u32, rng: &mut impl Rng) -> String {
        let rounds = (0..rounds).map(|_| self.round(drop, rng));
        let rounds: Vec<String> = rounds.filter(|r| !r.is_empty()).collect();
        rounds.join(",")
    }

    /// One round of [`Pipeline::sample`].
    pub(crate) fn round(&self, drop: f64, rng: &mut impl Rng) -> String {
        Self(drop_passes(&self.0, drop, rng)).to_string()
    }
}

/// Whether a pass is required for correct code. Those are the passes of `default<O0>`: calls of `always_inline` functions
/// and of instrumentation, coroutines, allocation tokens. The code generator lowers everything else itself, as it has to at
/// -O0: `llvm.expect`, `llvm.is.constant`, `llvm.objectsize`. Analyses are kept because passes use them without running
/// them, and `verify` because it reports a broken sample before code is generated.
fn is_required(pass: &Pass) -> bool {
    const KEPT: [&str; 6] = [
        "always-inline",
        "alloc-token",
        "ee-instrument",
        "require",
        "invalidate",
        "verify",
    ];
    pass.name.starts_with("coro-") || KEPT.contains(&pass.name.as_str())
}

/// The mark of functions that the pipeline has finished: later rounds, with other passes, would skip them.
fn marks_as_done(pass: &Pass) -> bool {
    pass.name == "require" && pass.parameters.as_deref() == Some("should-not-run-function-passes")
}

fn drop_passes(passes: &[Pass], drop: f64, rng: &mut impl Rng) -> Vec<Pass> {
    retain(passes, &mut |pass| {
        !marks_as_done(pass) && (is_required(pass) || rng.random::<f64>() >= drop)
    })
}

/// The passes that `keeps` keeps, in their order, in those adaptors that run any of them.
fn retain(passes: &[Pass], keeps: &mut impl FnMut(&Pass) -> bool) -> Vec<Pass> {
    let mut left = Vec::new();
    for pass in passes {
        match &pass.inner {
            Some(inner) => {
                let inner = retain(inner, keeps);
                if !inner.is_empty() {
                    left.push(Pass {
                        inner: Some(inner),
                        ..pass.clone()
                    });
                }
            }
            None if keeps(pass) => left.push(pass.clone()),
            None => {}
        }
    }
    left
}

/// The original text, byte by byte, without spaces around it.
impl fmt::Display for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        list(&self.0, f)
    }
}

fn list(passes: &[Pass], f: &mut fmt::Formatter) -> fmt::Result {
    for (i, pass) in passes.iter().enumerate() {
        if i > 0 {
            f.write_str(",")?;
        }
        f.write_str(&pass.name)?;
        if let Some(parameters) = &pass.parameters {
            write!(f, "<{parameters}>")?;
        }
        if let Some(inner) = &pass.inner {
            f.write_str("(")?;
            list(inner, f)?;
            f.write_str(")")?;
        }
    }
    Ok(())
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Consumes `wanted` if it is next.
    fn consume(&mut self, wanted: char) -> bool {
        let there = self.peek() == Some(wanted);
        self.at += if there { wanted.len_utf8() } else { 0 };
        there
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Pass>, PipelineError> {
        let mut passes = vec![self.pass(depth)?];
        while self.consume(',') {
            passes.push(self.pass(depth)?);
        }
        Ok(passes)
    }

    fn pass(&mut self, depth: usize) -> Result<Pass, PipelineError> {
        let ends = |c: char| "<>(),;".contains(c) || c.is_whitespace();
        let name = &self.rest()[..self.rest().find(ends).unwrap_or(self.rest().len())];
        if name.is_empty() {
            return Err(PipelineError::Name { at: self.at });
        }
        if depth > DEPTH {
            return Err(PipelineError::Deep { at: self.at });
        }
        self.at += name.len();
        let parameters = self.parameters()?;
        let open = self.at;
        let inner = self
            .consume('(')
            .then(|| self.list(depth + 1))
            .transpose()?;
        if inner.is_some() && !self.consume(')') {
            return Err(match self.peek() {
                Some(found) => PipelineError::Unexpected { found, at: self.at },
                None => PipelineError::Open {
                    open: '(',
                    at: open,
                },
            });
        }
        Ok(Pass {
            name: name.to_owned(),
            parameters,
            inner,
        })
    }

    fn parameters(&mut self) -> Result<Option<String>, PipelineError> {
        let open = self.at;
        if !self.consume('<') {
            return Ok(None);
        }
        let mut depth = 1;
        for (i, c) in self.rest().char_indices() {
            match c {
                '<' => depth += 1,
                '>' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                let inside = self.rest()[..i].to_owned();
                self.at += i + 1;
                return Ok(Some(inside));
            }
        }
        Err(PipelineError::Open {
            open: '<',
            at: open,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::Xoshiro256PlusPlus;

    const TEXT: &str = "forceattrs,coro-early,function<eager-inv;no-rerun>(sroa<modify-cfg>,gvn<>),always-inline,\
                        require<globals-aa>,function(invalidate<aa>),cgscc(devirt<4>(inline,function(loop(licm),adce),\
                        function(require<should-not-run-function-passes>),coro-split)),globaldce,verify";

    fn rng(seed: u64) -> Xoshiro256PlusPlus {
        Xoshiro256PlusPlus::seed_from_u64(seed)
    }

    #[test]
    fn texts_come_back() {
        let pipeline = Pipeline::parse(TEXT).unwrap();
        assert_eq!(pipeline.to_string(), TEXT);
        assert_eq!(pipeline.passes(), 14);
        assert_eq!(
            Pipeline::parse(" a<b<c>>(d)\n").unwrap().to_string(),
            "a<b<c>>(d)"
        );
    }

    #[test]
    fn what_is_wrong_and_where() {
        let error = |text: &str| Pipeline::parse(text).unwrap_err();
        assert_eq!(error(""), PipelineError::Name { at: 0 });
        assert_eq!(error("a,,b"), PipelineError::Name { at: 2 });
        assert_eq!(error("f()"), PipelineError::Name { at: 2 });
        assert_eq!(error("f(a"), PipelineError::Open { open: '(', at: 1 });
        assert_eq!(error("ab<c"), PipelineError::Open { open: '<', at: 2 });
        assert_eq!(error("a)"), PipelineError::Unexpected { found: ')', at: 1 });
        assert_eq!(
            error("a b"),
            PipelineError::Unexpected { found: ' ', at: 1 }
        );
        let deep = "a(".repeat(100_000);
        assert!(matches!(error(&deep), PipelineError::Deep { .. }));
    }

    #[test]
    fn what_stays() {
        let pipeline = Pipeline::parse(TEXT).unwrap();
        let none = pipeline.sample(1.0, 1, &mut rng(1));
        let kept = "coro-early,always-inline,require<globals-aa>,function(invalidate<aa>),\
                    cgscc(devirt<4>(coro-split)),verify";
        assert_eq!(none, kept);
        assert_eq!(
            pipeline.sample(1.0, 2, &mut rng(1)),
            format!("{kept},{kept}")
        );
        let all = pipeline.sample(0.0, 1, &mut rng(1));
        let mark = ",function(require<should-not-run-function-passes>)";
        assert_eq!(all, TEXT.replace(mark, ""));
        let bare = Pipeline::parse("function(sroa)").unwrap();
        assert_eq!(bare.sample(1.0, 3, &mut rng(1)), "");
    }

    #[test]
    fn as_many_as_asked_for() {
        let passes: Vec<String> = (0..1000).map(|i| format!("p{i}")).collect();
        let pipeline = Pipeline::parse(&passes.join(",")).unwrap();
        let sample = pipeline.sample(0.7, 4, &mut rng(7));
        assert_eq!(sample, pipeline.sample(0.7, 4, &mut rng(7)));
        assert_ne!(sample, pipeline.sample(0.7, 4, &mut rng(8)));
        let left = Pipeline::parse(&sample).unwrap().passes();
        assert!((1100..1300).contains(&left), "{left} of 4000");
    }
}

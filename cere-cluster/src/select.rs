//! Selects the regions of a profile that are worth a codelet.

/// The data of one region from a profile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Self time over the run time, 0 to 1.
    pub share: f64,
    /// Mean inclusive cycles of an invocation.
    pub cycles_mean: f64,
}

/// The bounds that a region has to pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// The share must be above this.
    pub share: f64,
    /// The mean cycles of an invocation must be this or more.
    pub cycles: f64,
}

impl Default for Rule {
    fn default() -> Self {
        Self {
            share: 0.01,
            cycles: 2000.0,
        }
    }
}

/// Why a region was not chosen.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum Rejection {
    /// Too small a part of the run.
    #[error("its self time is {:.2} % of the run, not above {:.2} %", share * 100.0, bound * 100.0)]
    Share {
        /// The region's share.
        share: f64,
        /// The rule's.
        bound: f64,
    },
    /// Invocations too short to be timed alone.
    #[error("its invocations take {cycles:.0} cycles, fewer than {bound:.0}")]
    Short {
        /// The region's mean.
        cycles: f64,
        /// The rule's.
        bound: f64,
    },
}

/// One answer a candidate, in order.
pub fn select(candidates: &[Candidate], rule: Rule) -> Vec<Result<(), Rejection>> {
    candidates
        .iter()
        .map(|c| {
            // Written so that a NaN is rejected.
            if c.share.partial_cmp(&rule.share) != Some(std::cmp::Ordering::Greater) {
                Err(Rejection::Share {
                    share: c.share,
                    bound: rule.share,
                })
            } else if c.cycles_mean >= rule.cycles {
                Ok(())
            } else {
                Err(Rejection::Short {
                    cycles: c.cycles_mean,
                    bound: rule.cycles,
                })
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds() {
        let of = |share, cycles_mean| {
            select(&[Candidate { share, cycles_mean }], Rule::default())[0].is_ok()
        };
        assert!(of(0.011, 2000.0));
        assert!(!of(0.01, 1e9));
        assert!(!of(0.5, 1999.9));
        assert!(!of(f64::NAN, 1e9));
        assert!(!of(0.5, f64::NAN));
    }
}

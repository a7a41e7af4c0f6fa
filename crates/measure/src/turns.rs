//! Subjects timed in turns with a baseline: the one engine for comparisons.

use crate::decide::{Answer, Rule};
use cere_timing::stats::{Series, round};
use std::collections::BTreeMap;

/// Subjects that can be timed, by number; 0 is the baseline.
pub trait Bench {
    /// The error that ends all timing.
    type Error;

    /// Times `subject` once: seconds of its parts, 0 for a part too short to be timed. The inner error says why the subject
    /// cannot be used; it is then not timed again.
    fn sample(&mut self, subject: usize) -> Result<Result<Vec<f64>, String>, Self::Error>;
}

/// A comparison of subjects with the baseline, which is timed before and after every few of them.
pub struct Turns<B> {
    /// What is timed.
    pub bench: B,
    /// Subjects between two samples of the baseline, at least 1.
    every: usize,
    series: Series,
    failed: BTreeMap<usize, String>,
    rounds: usize,
    /// Whether the last sample is the baseline's.
    based: bool,
}

impl<B: Bench> Turns<B> {
    /// A comparison without samples, which times the baseline before and after `every` subjects.
    pub fn new(bench: B, every: usize) -> Self {
        Self {
            bench,
            every: every.max(1),
            series: Series::default(),
            failed: BTreeMap::new(),
            rounds: 0,
            based: false,
        }
    }

    /// Takes it that the baseline was timed just before.
    pub fn based(mut self) -> Self {
        self.based = true;
        self
    }

    /// Times each of `subjects` once. The error says why nothing more can be timed: the bench's, or that of the baseline.
    pub fn round(&mut self, subjects: &[usize]) -> Result<(), TurnsError<B::Error>> {
        let usable = subjects.iter().filter(|s| !self.failed.contains_key(s));
        let usable: Vec<usize> = usable.copied().collect();
        let mut order = round(&usable, self.every, self.rounds);
        order.push(0);
        self.rounds += 1;
        for subject in order {
            if subject == 0 && self.based {
                continue;
            }
            match self.bench.sample(subject).map_err(TurnsError::Bench)? {
                Ok(parts) => {
                    self.series.add(subject, parts);
                    self.based = subject == 0;
                }
                Err(why) if subject == 0 => return Err(TurnsError::Baseline(why)),
                Err(why) => {
                    self.failed.insert(subject, why);
                }
            }
        }
        Ok(())
    }

    /// Times `subjects` until `rule` decides whether the first of them is faster than the baseline. The others are timed as often
    /// as the first look needs. `open` gets the number of rounds if that look leaves it open.
    pub fn decide(
        &mut self,
        subjects: &[usize],
        rule: &Rule,
        open: impl FnOnce(usize),
    ) -> Result<Answer, TurnsError<B::Error>> {
        let rounds = rule.looks.first().copied().unwrap_or(1);
        for _ in 0..rounds {
            self.round(subjects)?;
        }
        let Some(&first) = subjects.first() else {
            return Ok(Answer::NotFaster(None));
        };
        let mut open = Some(open);
        loop {
            if self.failure(first).is_some() {
                return Ok(Answer::NotFaster(None));
            }
            match rule.look(&self.series.part_ratios(first, 0)) {
                Answer::Open => {}
                answer => return Ok(answer),
            }
            if let Some(open) = open.take() {
                open(rounds);
            }
            self.round(&[first])?;
        }
    }

    /// All samples so far.
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// Why `subject` cannot be used, if it cannot.
    pub fn failure(&self, subject: usize) -> Option<&str> {
        self.failed.get(&subject).map(String::as_str)
    }
}

/// Why a comparison ended.
#[derive(Debug, PartialEq, Eq)]
pub enum TurnsError<E> {
    /// The baseline cannot be used.
    Baseline(String),
    /// The bench failed.
    Bench(E),
}

impl From<TurnsError<Self>> for anyhow::Error {
    fn from(error: TurnsError<Self>) -> Self {
        match error {
            TurnsError::Baseline(why) => Self::msg(why),
            TurnsError::Bench(error) => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cere_testing::noise::{Machine, Noise};
    use std::convert::Infallible;

    /// Subjects with true times on a modelled machine; a subject that takes no time fails.
    struct Mock {
        machine: Machine,
        truth: Vec<f64>,
        order: Vec<usize>,
    }

    impl Bench for Mock {
        type Error = Infallible;

        fn sample(&mut self, subject: usize) -> Result<Result<Vec<f64>, String>, Infallible> {
            self.order.push(subject);
            let truth = self.truth[subject];
            let time = truth * self.machine.factor();
            Ok((truth > 0.0)
                .then_some(vec![time])
                .ok_or_else(|| "no time".to_owned()))
        }
    }

    fn mock(noise: Noise, truth: &[f64], every: usize) -> Turns<Mock> {
        let bench = Mock {
            machine: Machine::new(noise, 1),
            truth: truth.to_vec(),
            order: Vec::new(),
        };
        Turns::new(bench, every)
    }

    #[test]
    fn the_baseline_before_and_after_and_what_fails_once_is_left_out() {
        let mut turns = mock(Noise::Steady, &[1.0, 0.5, 0.0, 2.0], 2);
        turns.round(&[1, 2, 3]).unwrap();
        turns.round(&[1, 2, 3]).unwrap();
        assert_eq!(turns.bench.order, [0, 1, 2, 0, 3, 0, 3, 1, 0]);
        assert_eq!(turns.failure(2), Some("no time"));
        for (subject, truth) in [(1, 0.5), (3, 2.0)] {
            let ratios = turns.series().part_ratios(subject, 0);
            assert_eq!(ratios.len(), 2);
            assert!(
                ratios.iter().all(|r| (r / truth - 1.0).abs() < 0.03),
                "{ratios:?}"
            );
        }
    }

    #[test]
    fn without_a_baseline_there_is_nothing() {
        let mut turns = mock(Noise::Steady, &[0.0, 0.5], 2);
        assert_eq!(
            turns.round(&[1]),
            Err(TurnsError::Baseline("no time".into()))
        );
    }

    /// What is decided of subject 1 of true times `truth`, how often each subject was timed, and when the first look left it open.
    fn decided(noise: Noise, truth: &[f64]) -> (Answer, Vec<usize>, Option<usize>) {
        let mut turns = mock(noise, truth, 2);
        let subjects: Vec<usize> = (1..truth.len()).collect();
        let mut open = None;
        let rule = Rule::for_program(5);
        let answer = turns.decide(&subjects, &rule, |rounds| open = Some(rounds));
        let order = &turns.bench.order;
        let timed = subjects
            .iter()
            .map(|s| order.iter().filter(|o| *o == s).count());
        (answer.unwrap(), timed.collect(), open)
    }

    #[test]
    fn a_clear_gain_is_believed_after_the_first_look_that_can() {
        let (answer, timed, open) = decided(Noise::Steady, &[1.0, 0.7, 0.8]);
        let Answer::Faster(gain) = answer else {
            panic!("{answer:?}")
        };
        assert!((gain.ratio - 0.7).abs() < 0.01, "{gain:?}");
        // Five ratios are too few for its confidence. The second subject is not timed again.
        assert_eq!((timed, open), (vec![10, 5], Some(5)));
    }

    #[test]
    fn what_is_slower_or_fails_is_timed_no_more() {
        let (answer, timed, open) = decided(Noise::Steady, &[1.0, 1.1, 0.8]);
        assert!(matches!(answer, Answer::NotFaster(Some(_))), "{answer:?}");
        assert_eq!((timed, open), (vec![5, 5], None));
        let (answer, timed, open) = decided(Noise::Steady, &[1.0, 0.0, 0.8]);
        assert_eq!(answer, Answer::NotFaster(None));
        assert_eq!((timed, open), (vec![1, 5], None));
        assert_eq!(decided(Noise::Steady, &[1.0]).0, Answer::NotFaster(None));
    }
}

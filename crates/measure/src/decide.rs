//! Decides whether a subject is faster than the baseline, looking at the ratios several times as they come in.
//!
//! Pure functions: every decision can be tried on a modelled machine.

use cere_timing::stats::{Gain, gain_with};

/// After how many samples a comparison is looked at, and what counts as a gain.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// Numbers of ratios, rising, after which a gain may be accepted. The last one ends the comparison.
    pub looks: Vec<usize>,
    /// Number of ratios after which a subject without any gain so far is given up.
    pub first: usize,
    /// A gain has to be larger than this share of the baseline's time.
    pub margin: f64,
    /// Probability with which the interval of each look holds the truth, 0 to 1.
    pub confidence: f64,
}

/// The result of looking at a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Answer {
    /// The subject is faster than the baseline.
    Faster(Gain),
    /// The subject is not faster, or the last look could not show it.
    NotFaster(Option<Gain>),
    /// More ratios are needed.
    Open,
}

/// Share of the baseline's time that a gain has to exceed.
pub const MARGIN: f64 = 0.002;

impl Rule {
    /// The rule for a few rivals (four in the tests of this module). If none is faster, the probability that any is accepted is
    /// 5 % at most, over all rivals and looks.
    pub fn for_rivals() -> Self {
        Self {
            looks: vec![9, 15, 21],
            first: 5,
            margin: MARGIN,
            confidence: 0.98,
        }
    }

    /// The rule for whole programs: looks after `rounds`, two and three times as many.
    pub fn for_program(rounds: u32) -> Self {
        let rounds = rounds.max(1) as usize;
        Self {
            looks: vec![rounds, 2 * rounds, 3 * rounds],
            first: usize::MAX,
            margin: MARGIN,
            confidence: 0.94,
        }
    }

    /// Looks at the `ratios` so far.
    pub fn look(&self, ratios: &[f64]) -> Answer {
        let (count, last) = (ratios.len(), self.looks.last().copied().unwrap_or(0));
        let looks = self.looks.contains(&count);
        if count != self.first && !looks && count < last {
            return Answer::Open;
        }
        let Some(found) = gain_with(ratios, self.confidence) else {
            return Answer::NotFaster(None);
        };
        let faster = 1.0 - self.margin;
        // Fewer ratios than the confidence needs show nothing.
        if looks && found.level >= self.confidence && found.high < faster {
            return Answer::Faster(found);
        }
        // A few more ratios do not turn a median without a gain into a sure gain.
        match count >= last || found.ratio > faster {
            true => Answer::NotFaster(Some(found)),
            false => Answer::Open,
        }
    }
}

/// Default number of rounds for a program that takes so many seconds: fewer for long programs.
pub fn rounds(seconds: f64) -> u32 {
    match seconds {
        ..2.0 => 9,
        ..5.0 => 5,
        ..60.0 => 3,
        _ => 1,
    }
}

/// The same for a decision, which takes up to three times as many: at least 3, and not 5, which are one too few for an interval of 94 %.
pub fn deciding_rounds(seconds: f64) -> u32 {
    match rounds(seconds) {
        4..=5 => 6,
        rounds => rounds.max(3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cere_testing::noise::{Machine, Noise};
    use cere_timing::stats::{Series, round};

    fn after(ratios: &[f64], count: usize) -> Answer {
        let ratios: Vec<f64> = ratios.iter().copied().cycle().take(count).collect();
        Rule::for_rivals().look(&ratios)
    }

    #[test]
    fn looks() {
        let sure = |answer| matches!(answer, Answer::Faster(_));
        let hopeless = |answer| matches!(answer, Answer::NotFaster(_));
        // A clear gain needs a minimum of ratios too.
        assert_eq!(after(&[0.5], 8), Answer::Open);
        assert!(sure(after(&[0.5], 9)));
        // No gain at first.
        assert_eq!(after(&[1.0], 4), Answer::Open);
        assert!(hopeless(after(&[1.0], 5)));
        assert!(hopeless(after(&[1.0, 0.9, 1.1, 1.2, 0.8], 5)));
        // A disturbed ratio: the next ones decide.
        let disturbed = [0.9, 0.91, 0.89, 0.9, 0.9, 0.88, 0.92, 0.93, 1.1];
        assert_eq!(after(&disturbed, 5), Answer::Open);
        assert_eq!(after(&disturbed, 9), Answer::Open);
        assert!(sure(after(&disturbed, 15)));
        // Too small a gain for even the last look.
        let little = [0.97, 0.99, 1.2, 0.7, 1.2, 0.98, 0.96, 1.2, 0.97];
        assert_eq!(after(&little, 9), Answer::Open);
        assert!(hopeless(after(&little, 21)));
        // Without ratios there is no gain.
        assert_eq!(
            Rule::for_program(9).look(&[0.0; 9]),
            Answer::NotFaster(None)
        );
    }

    #[test]
    fn three_rounds_show_nothing_but_six_do() {
        let rule = Rule::for_program(3);
        assert_eq!(rule.look(&[0.5; 3]), Answer::Open);
        assert!(matches!(rule.look(&[0.5; 6]), Answer::Faster(_)));
        assert!(matches!(rule.look(&[1.0; 3]), Answer::NotFaster(_)));
    }

    #[test]
    fn long_programs_run_less_often() {
        assert_eq!([0.1, 2.0, 30.0, 300.0].map(rounds), [9, 5, 3, 1]);
        assert_eq!([0.1, 2.0, 30.0, 300.0].map(deciding_rounds), [9, 6, 3, 3]);
    }

    /// The decision of `rule` on a subject with this true ratio on a machine, sampled in turns with the baseline.
    fn decided(rule: &Rule, truth: f64, machine: &mut Machine) -> bool {
        let mut series = Series::default();
        for number in 0.. {
            for subject in round(&[1], 1, number) {
                let own = if subject == 0 { 1.0 } else { truth };
                series.add(subject, vec![own * machine.factor()]);
            }
            match rule.look(&series.part_ratios(1, 0)) {
                Answer::Faster(_) => return true,
                Answer::NotFaster(_) => return false,
                Answer::Open => {}
            }
        }
        false
    }

    /// Share of comparisons in which one of `rivals` with this true ratio is accepted as faster.
    fn believed(rule: &Rule, rivals: usize, truth: f64, noise: &Noise) -> f64 {
        const TIMES: u64 = 1000;
        let one = |seed: &u64| {
            let mut machine = Machine::new(noise.clone(), *seed);
            (0..rivals).any(|_| decided(rule, truth, &mut machine))
        };
        (0..TIMES).filter(one).count() as f64 / TIMES as f64
    }

    #[test]
    fn no_gain_is_seldom_believed() {
        for noise in &Noise::MODELS {
            for (rule, rivals) in [
                (Rule::for_rivals(), 4),
                (Rule::for_program(9), 1),
                (Rule::for_program(6), 1),
                (Rule::for_program(3), 1),
            ] {
                let wrong = believed(&rule, rivals, 1.0, noise);
                assert!(wrong <= 0.05, "{noise:?}, {rule:?}: {wrong}");
            }
        }
    }

    /// The same code, and known slowdowns and gains: an interval holds the truth as often as it says, where the noise is that of one of the models.
    #[test]
    fn intervals_hold_known_ratios() {
        const TIMES: u64 = 1000;
        for noise in &Noise::MODELS {
            for (truth, rounds) in [1.0, 1.01, 1.03, 1.1, 0.9]
                .into_iter()
                .flat_map(|t| [(t, 7), (t, 15)])
            {
                let holds = |seed: &u64| {
                    let mut machine = Machine::new(noise.clone(), *seed);
                    let mut series = Series::default();
                    for subject in (0..rounds).flat_map(|number| round(&[1], 1, number)) {
                        let own = if subject == 0 { 1.0 } else { truth };
                        series.add(subject, vec![own * machine.factor()]);
                    }
                    let found = gain_with(&series.part_ratios(1, 0), 0.95).expect("an interval");
                    (found.low..=found.high).contains(&truth)
                };
                let held = (0..TIMES).filter(holds).count() as f64 / TIMES as f64;
                assert!(held >= 0.93, "{noise:?}, {truth}, {rounds} rounds: {held}");
            }
        }
    }

    /// `cere-bench estimators` prints the exact shares.
    #[test]
    fn a_gain_of_two_per_cent_is_found() {
        for (noise, least) in Noise::MODELS.iter().zip([0.99, 0.85, 0.85, 0.99, 0.55]) {
            for rule in [Rule::for_program(9), Rule::for_rivals()] {
                let found = believed(&rule, 1, 0.98, noise);
                assert!(found >= least, "{noise:?}, {rule:?}: {found}");
            }
        }
    }
}

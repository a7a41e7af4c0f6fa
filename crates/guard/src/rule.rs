//! When a region is slower.

use cere_measure::decide::Rule;

/// The rule of a test that allows `percent` more time. It asks whether the baseline is faster by more than that, after 11 rounds, and
/// where that seems so but is not sure, after up to 81; the interval has to lie wholly above the limit.
pub fn slower(percent: f64) -> Rule {
    let allowed = percent / 100.0;
    Rule {
        looks: vec![11, 17, 25, 37, 55, 81],
        first: usize::MAX,
        margin: allowed / (1.0 + allowed),
        confidence: 0.98,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cere_measure::decide::Answer;
    use cere_testing::noise::{Machine, Noise};
    use cere_timing::stats::{Series, round};

    /// Whether the rule takes a region of this true ratio as slower.
    fn once(rule: &Rule, truth: f64, machine: &mut Machine) -> bool {
        let mut series = Series::default();
        for number in 0.. {
            for subject in round(&[1], 1, number) {
                let own = if subject == 0 { truth } else { 1.0 };
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

    /// Share of tests that alarm: twice slower in turn.
    fn alarms(truth: f64, noise: &Noise) -> f64 {
        const TIMES: u64 = 2000;
        let rule = slower(1.5);
        let one = |seed: &u64| {
            let mut machine = Machine::new(noise.clone(), *seed);
            once(&rule, truth, &mut machine) && once(&rule, truth, &mut machine)
        };
        (0..TIMES).filter(one).count() as f64 / TIMES as f64
    }

    #[test]
    fn the_same_time_never_alarms_and_a_slower_one_does() {
        for noise in &Noise::MODELS {
            let [same, allowed, slower] = [1.0, 1.01, 1.05].map(|truth| alarms(truth, noise));
            println!(
                "{noise:?}: same {same}, 1 % {allowed}, 3 % {}, 5 % {slower}",
                alarms(1.03, noise)
            );
            assert!(same <= 0.0005, "{noise:?}: {same}");
            assert!(allowed <= 0.01, "{noise:?}: {allowed}");
        }
        for noise in [Noise::Steady, Noise::Drift] {
            assert!(alarms(1.03, &noise) >= 0.9, "{noise:?}");
        }
    }
}

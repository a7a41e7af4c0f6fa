//! Seeded models of a shared machine: the factor by which a sample takes longer than on an idle machine.

use crate::Random;

/// The kind of disturbance.
#[derive(Debug, Clone, PartialEq)]
pub enum Noise {
    /// Half a per cent, nothing else.
    Steady,
    /// Two speeds, 25 % apart, that last ten samples in the mean.
    TwoSpeeds,
    /// One sample in twelve takes longer, by half in the mean.
    Bursts,
    /// The speed goes up and down by 15 % in sixty samples.
    Drift,
    /// Two speeds, bursts and drift together.
    All,
    /// A recorded series of times of the same work, from a start that the seed decides.
    Recorded(Vec<f64>),
}

impl Noise {
    /// Those that are modelled.
    pub const MODELS: [Self; 5] = [
        Self::Steady,
        Self::TwoSpeeds,
        Self::Bursts,
        Self::Drift,
        Self::All,
    ];
}

/// A machine: one number a sample, in the order in which the samples are taken.
#[derive(Debug, Clone)]
pub struct Machine {
    noise: Noise,
    random: Random,
    slow: bool,
    at: usize,
}

impl Machine {
    /// A machine whose disturbances the seed decides.
    pub fn new(noise: Noise, seed: u64) -> Self {
        // Neighbouring seeds would give the same numbers, shifted by one.
        let mut random = Random::new(Random::new(seed).any());
        let at = match &noise {
            Noise::Recorded(series) => random.below(series.len().max(1)),
            _ => random.below(60),
        };
        Self {
            slow: random.once_in(2),
            noise,
            random,
            at,
        }
    }

    /// From 0 to 1.
    fn part(&mut self) -> f64 {
        (self.random.any() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The time of the next sample over that of an idle machine.
    pub fn factor(&mut self) -> f64 {
        self.at += 1;
        if let Noise::Recorded(series) = &self.noise {
            return series
                .get(self.at % series.len().max(1))
                .copied()
                .unwrap_or(1.0);
        }
        // Sums of many small ones: nearly normal.
        let small: f64 = (0..12).map(|_| self.part()).sum::<f64>() - 6.0;
        let mut factor = 1.0 + 0.005 * small;
        let (speeds, bursts, drift) = match self.noise {
            Noise::Steady | Noise::Recorded(_) => (false, false, false),
            Noise::TwoSpeeds => (true, false, false),
            Noise::Bursts => (false, true, false),
            Noise::Drift => (false, false, true),
            Noise::All => (true, true, true),
        };
        if speeds {
            self.slow ^= self.random.once_in(10);
            factor *= if self.slow { 1.25 } else { 1.0 };
        }
        if bursts && self.random.once_in(12) {
            factor *= 1.0 - 0.5 * (1.0 - self.part()).ln();
        }
        if drift {
            factor *= 1.0 + 0.15 * (self.at as f64 / 60.0 * std::f64::consts::TAU).sin();
        }
        factor
    }
}

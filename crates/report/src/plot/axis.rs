//! Scales, ticks and axes of the plots.

/// Maps values to a coordinate.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    low: f64,
    high: f64,
    log: bool,
    from: f64,
    to: f64,
}

impl Scale {
    /// From `low` at coordinate `from` to `high` at `to`; logarithmic if both are above zero and `log` says so. Equal ends
    /// are set apart.
    pub fn new((low, high): (f64, f64), (from, to): (f64, f64), log: bool) -> Self {
        let log = log && low > 0.0;
        let (low, high) = match (high > low, log) {
            (true, _) => (low, high),
            (false, true) => (low / 2.0, low * 2.0),
            (false, false) => (low - 0.5, low + 0.5),
        };
        Self {
            low,
            high,
            log,
            from,
            to,
        }
    }

    /// The coordinate of `value`.
    pub fn at(&self, value: f64) -> f64 {
        let place = if self.log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + (self.to - self.from) * place
    }

    /// The value at `coordinate`.
    pub fn value(&self, coordinate: f64) -> f64 {
        let place = (coordinate - self.from) / (self.to - self.from);
        if self.log {
            self.low * (self.high / self.low).powf(place)
        } else {
            self.low + (self.high - self.low) * place
        }
    }

    /// Round values within the scale, about `wanted` of them, with the number of decimals that tells them apart.
    pub fn ticks(&self, wanted: usize) -> (Vec<f64>, usize) {
        if self.log && self.high / self.low >= 8.0 {
            return (self.log_ticks(wanted), 0);
        }
        let rough = (self.high - self.low) / wanted.max(1) as f64;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|m| m * power)
            .find(|step| *step >= rough * 0.999)
            .unwrap_or(power * 10.0);
        let first = (self.low / step - 1e-9).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        let decimals = (-(step * 1.000_001).log10().floor()).max(0.0) as usize;
        (
            (first..=last).map(|i| i as f64 * step).collect(),
            decimals.min(9),
        )
    }

    fn log_ticks(&self, wanted: usize) -> Vec<f64> {
        let (first, last) = (
            self.low.log10().floor() as i32,
            self.high.log10().ceil() as i32,
        );
        let inside = |tick: &f64| (self.low * 0.999..=self.high * 1.001).contains(tick);
        let of = |digits: &[f64]| -> Vec<f64> {
            (first..=last)
                .flat_map(|power| digits.iter().map(move |d| d * 10f64.powi(power)))
                .filter(inside)
                .collect()
        };
        let fine = of(&[1.0, 2.0, 5.0]);
        if fine.len() <= wanted + 1 {
            return fine;
        }
        let powers = of(&[1.0]);
        let every = powers.len().div_ceil(wanted.max(1) + 1).max(1);
        powers.into_iter().step_by(every).collect()
    }
}

/// An axis: scale, labelled ticks, title with its unit.
pub struct Axis {
    pub scale: Scale,
    /// Values with their labels.
    pub ticks: Vec<(f64, String)>,
    pub title: String,
}

impl Axis {
    /// An axis with about `wanted` ticks; `label` gets a value and the number of decimals that tells it from its neighbours.
    pub fn new(
        scale: Scale,
        wanted: usize,
        title: impl Into<String>,
        label: impl Fn(f64, usize) -> String,
    ) -> Self {
        let (ticks, decimals) = scale.ticks(wanted);
        let ticks = ticks.into_iter().map(|t| (t, label(t, decimals)));
        Self {
            scale,
            ticks: ticks.collect(),
            title: title.into(),
        }
    }
}

/// A number of an axis.
pub fn decimal(value: f64, decimals: usize) -> String {
    format!("{value:.decimals$}")
}

/// The least and the greatest of `values`.
pub fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
        (low.min(v), high.max(v))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_ticks() {
        let scale = Scale::new((0.0, 0.93), (0.0, 100.0), false);
        let (ticks, decimals) = scale.ticks(5);
        assert_eq!((ticks.len(), decimals), (5, 1));
        assert!((scale.at(ticks[1]) - 21.505).abs() < 0.01);
        let scale = Scale::new((3.0, 4e6), (0.0, 1.0), true);
        assert_eq!(scale.ticks(6).0, [1e1, 1e2, 1e3, 1e4, 1e5, 1e6]);
        assert_eq!(
            Scale::new((3.0, 30.0), (0.0, 1.0), true).ticks(6).0,
            [5.0, 10.0, 20.0]
        );
    }

    #[test]
    fn values_are_found_again() {
        for log in [false, true] {
            let scale = Scale::new((0.5, 64.0), (300.0, 10.0), log);
            for value in [0.5, 2.0, 64.0] {
                assert!(
                    (scale.value(scale.at(value)) - value).abs() < 1e-9,
                    "{value}"
                );
            }
        }
    }

    #[test]
    fn one_value_is_in_the_middle() {
        for log in [false, true] {
            let scale = Scale::new((7.0, 7.0), (0.0, 10.0), log);
            assert!((scale.at(7.0) - 5.0).abs() < 1e-9);
            let (ticks, _) = scale.ticks(4);
            assert!(!ticks.is_empty(), "logarithmic: {log}");
            let places: Vec<f64> = ticks.iter().map(|tick| scale.at(*tick)).collect();
            assert!(
                places.iter().all(|at| (0.0..=10.0).contains(at)),
                "{places:?}"
            );
        }
    }
}

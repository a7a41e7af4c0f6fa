//! Metrics of points on one scale: z-scores.

use crate::point::{ClusterError, check};
use serde::{Deserialize, Serialize};

/// What is done to a metric before it is normalised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transform {
    /// Nothing.
    None,
    /// x becomes sign(x) ln(1 + |x| / s), s the median of the sizes above zero: metrics that span orders of magnitude would put one
    /// point far away from all others, and make it a cluster of its own.
    Log,
}

/// Why a metric does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Dropped {
    /// All points that have a value have the same.
    Constant,
    /// More than half of the points have none.
    Missing {
        /// Points without a value.
        points: usize,
    },
}

/// Normalised metrics of points: each has the mean 0 and the standard deviation 1 over the points that have a value; a point
/// without one has the mean. The deviation is that of the population (over n), not of a sample (over n - 1, as R's `scale`):
/// the choice scales all distances by one factor and changes no cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Scores {
    /// The metrics that count, as columns of the input.
    pub columns: Vec<usize>,
    /// The others, and why.
    pub dropped: Vec<(usize, Dropped)>,
    /// One row a point, one value a column of [`Self::columns`].
    pub values: Vec<Vec<f64>>,
    /// Of each of these columns: the unit of the logarithm, 0 for none (see [`Transform::Log`]).
    pub scales: Vec<f64>,
    /// Its mean, transformed.
    pub means: Vec<f64>,
    /// Its standard deviation, transformed.
    pub deviations: Vec<f64>,
}

/// The transformed value: see [`Transform`].
fn transformed(value: f64, scale: f64) -> f64 {
    match scale > 0.0 {
        true => value.signum() * (value.abs() / scale).ln_1p(),
        false => value,
    }
}

/// Normalises `rows`, one a point.
///
/// # Errors
/// There are no points; rows of different lengths; a value that is not a number, or beyond 1e100.
pub fn z_scores(rows: &[Vec<Option<f64>>], transform: Transform) -> Result<Scores, ClusterError> {
    let width = rows.first().ok_or(ClusterError::NoPoints)?.len();
    for (index, row) in (0..).zip(rows) {
        check(index, width, row.len(), row.iter().flatten().copied())?;
    }
    let mut scores = Scores {
        columns: Vec::new(),
        dropped: Vec::new(),
        values: vec![Vec::new(); rows.len()],
        scales: Vec::new(),
        means: Vec::new(),
        deviations: Vec::new(),
    };
    for column in 0..width {
        let known: Vec<f64> = rows.iter().filter_map(|row| row[column]).collect();
        let missing = rows.len() - known.len();
        if missing * 2 > rows.len() {
            let why = Dropped::Missing { points: missing };
            scores.dropped.push((column, why));
            continue;
        }
        let scale = match transform {
            Transform::None => 0.0,
            Transform::Log => median_size(&known),
        };
        let known: Vec<f64> = known.iter().map(|v| transformed(*v, scale)).collect();
        let (mean, deviation) = mean_and_deviation(&known);
        // Values that differ by rounding alone are one value.
        if deviation <= 1e-12 * mean.abs() {
            scores.dropped.push((column, Dropped::Constant));
            continue;
        }
        scores.columns.push(column);
        scores.scales.push(scale);
        scores.means.push(mean);
        scores.deviations.push(deviation);
        for (values, row) in scores.values.iter_mut().zip(rows) {
            let score = |v: f64| (transformed(v, scale) - mean) / deviation;
            values.push(row[column].map_or(0.0, score));
        }
    }
    Ok(scores)
}

/// In the unit of the largest value, so that no square is too small for a number.
fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let unit = values.iter().fold(0.0, |most: f64, v| most.max(v.abs()));
    if unit == 0.0 {
        return (0.0, 0.0);
    }
    let count = values.len() as f64;
    let mean = values.iter().map(|v| v / unit).sum::<f64>() / count;
    let squares: f64 = values.iter().map(|v| (v / unit - mean).powi(2)).sum();
    (mean * unit, (squares / count).sqrt() * unit)
}

/// The median of the sizes above zero; 0 if there are none.
fn median_size(values: &[f64]) -> f64 {
    let sizes = values.iter().map(|v| v.abs()).filter(|v| *v > 0.0);
    let mut sizes: Vec<f64> = sizes.collect();
    sizes.sort_by(f64::total_cmp);
    match (
        sizes.get(sizes.len().wrapping_sub(1) / 2),
        sizes.get(sizes.len() / 2),
    ) {
        (Some(low), Some(high)) => f64::midpoint(*low, *high),
        _ => 0.0,
    }
}

impl Scores {
    /// A point that was not among the input, in the same space: what a cross-validation puts into clusters made without it.
    ///
    /// # Errors
    /// Another number of metrics than the input had; a value that is not a number, or beyond 1e100.
    pub fn project(&self, row: &[Option<f64>]) -> Result<Vec<f64>, ClusterError> {
        let of = self.columns.len() + self.dropped.len();
        check(0, of, row.len(), row.iter().flatten().copied())?;
        let known = self.columns.iter().map(|column| row[*column]);
        let normal = self.means.iter().zip(&self.deviations);
        let each = known.zip(&self.scales).zip(normal);
        let score = |((value, scale), (mean, deviation)): ((Option<f64>, &f64), (&f64, &f64))| {
            value.map_or(0.0, |v| (transformed(v, *scale) - mean) / deviation)
        };
        Ok(each.map(score).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rows(columns: &[&[Option<f64>]]) -> Vec<Vec<Option<f64>>> {
        let points = columns[0].len();
        (0..points)
            .map(|point| columns.iter().map(|column| column[point]).collect())
            .collect()
    }

    #[test]
    fn known_columns() {
        let some = |values: &[f64]| values.iter().map(|v| Some(*v)).collect::<Vec<_>>();
        let x = some(&[1.0, 2.0, 3.0, 4.0]);
        let same = some(&[0.1 + 0.2, 0.3, 0.3, 0.3]);
        let gap = vec![Some(1.0), None, Some(3.0), Some(5.0)];
        let rare = vec![Some(1.0), None, None, None];
        let scores = z_scores(&rows(&[&x, &same, &gap, &rare]), Transform::None).unwrap();
        assert_eq!(scores.columns, [0, 2]);
        let why = [(1, Dropped::Constant), (3, Dropped::Missing { points: 3 })];
        assert_eq!(scores.dropped, why);
        let deviation = 1.25f64.sqrt();
        assert!((scores.values[3][0] - 1.5 / deviation).abs() < 1e-12);
        assert_eq!(scores.values[1][1], 0.0);
        for column in 0..2 {
            let of = scores.values.iter().map(|row| row[column]);
            assert!(of.sum::<f64>().abs() < 1e-12);
        }
        // A point of the input projects onto itself.
        let again = scores.project(&[Some(4.0), None, Some(5.0), None]);
        assert_eq!(again.unwrap(), scores.values[3]);
    }

    #[test]
    fn logarithms_bring_outliers_near() {
        let column: Vec<Option<f64>> = [1.0, 2.0, 4.0, -1e6, 0.0].map(Some).to_vec();
        let far = |transform| {
            let scores = z_scores(&rows(&[&column]), transform).unwrap();
            let at = |point: usize| scores.values[point][0];
            (at(2) - at(3)) / (at(2) - at(0))
        };
        assert!((far(Transform::None) - 1_000_004.0 / 3.0).abs() < 1e-3);
        // The median size above zero is 3: ln(1 + 4 / 3) + ln(1 + 1e6 / 3) over ln(1 + 4 / 3) - ln(1 + 1 / 3).
        let of = |size: f64| (size / 3.0).ln_1p();
        let log = (of(4.0) + of(1e6)) / (of(4.0) - of(1.0));
        assert!((far(Transform::Log) - log).abs() < 1e-9);
        let zero: Vec<Option<f64>> = vec![Some(0.0); 3];
        let scores = z_scores(&rows(&[&zero]), Transform::Log).unwrap();
        assert_eq!(scores.dropped, [(0, Dropped::Constant)]);
    }

    #[test]
    fn what_cannot_be_normalised() {
        let none = z_scores(&[], Transform::None);
        assert_eq!(none.unwrap_err(), ClusterError::NoPoints);
        let uneven = vec![vec![Some(1.0)], vec![]];
        let error = z_scores(&uneven, Transform::None).unwrap_err();
        assert!(error.to_string().contains("point 1"), "{error}");
        for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1e101] {
            let rows = vec![vec![Some(1.0)], vec![Some(wrong)]];
            let error = z_scores(&rows, Transform::Log).unwrap_err();
            assert!(error.to_string().starts_with("point 1 "), "{error}");
        }
        let scores = z_scores(&[vec![Some(1.0)], vec![Some(2.0)]], Transform::None).unwrap();
        assert!(scores.project(&[]).is_err());
        assert!(scores.project(&[Some(f64::NAN)]).is_err());
        assert!(scores.project(&[Some(1.0), None]).is_err());
    }

    #[test]
    fn one_point_has_no_scale() {
        let scores = z_scores(&[vec![Some(3.0), None]], Transform::None).unwrap();
        let why = [(0, Dropped::Constant), (1, Dropped::Missing { points: 1 })];
        assert_eq!(
            (scores.values, &scores.dropped[..]),
            (vec![vec![]], &why[..])
        );
        // Half of the points is enough.
        let half = rows(&[&[Some(1.0), Some(2.0), None, None]]);
        assert_eq!(z_scores(&half, Transform::None).unwrap().columns, [0]);
    }

    proptest! {
        #[test]
        fn each_column_has_mean_0_and_deviation_1(
            points in prop::collection::vec(prop::collection::vec(-9.0f64..9.0, 3), 2..30),
            exponent in -250i32..90,
            log: bool,
        ) {
            let unit = 10f64.powi(exponent);
            let rows: Vec<Vec<Option<f64>>> =
                points.iter().map(|p| p.iter().map(|v| Some(v * unit)).collect()).collect();
            let transform = if log { Transform::Log } else { Transform::None };
            let scores = z_scores(&rows, transform).unwrap();
            prop_assert_eq!(scores.columns, [0, 1, 2]);
            for column in 0..3 {
                let of: Vec<f64> = scores.values.iter().map(|row| row[column]).collect();
                let (mean, deviation) = mean_and_deviation(&of);
                prop_assert!(mean.abs() < 1e-9 && (deviation - 1.0).abs() < 1e-9);
            }
        }
    }
}

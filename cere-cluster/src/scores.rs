//! Metrics of points on one scale: z-scores.

use crate::point::ClusterError;
use serde::{Deserialize, Serialize};

/// What is done to a metric before it is normalised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transform {
    /// Nothing.
    None,
    /// x becomes sign(x) ln(1 + |x| / s), s the median of the sizes above zero: metrics that span orders of magnitude would put one
    /// point far away from all others.
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

/// Normalised metrics of points: each has the mean 0 and the standard deviation 1 (that of the population) over the points that have
/// a value; a point without one has the mean.
#[derive(Debug, Clone, PartialEq)]
pub struct Scores {
    /// The metrics that count, as columns of the input.
    pub columns: Vec<usize>,
    /// The others, and why.
    pub dropped: Vec<(usize, Dropped)>,
    /// One row a point, one value a column of [`Self::columns`].
    pub values: Vec<Vec<f64>>,
    /// Of each of them: scale of the logarithm (0: none), mean and standard deviation.
    scales: Vec<(f64, f64, f64)>,
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
/// There are no points; rows of different lengths; a value that is infinite or not a number.
pub fn z_scores(rows: &[Vec<Option<f64>>], transform: Transform) -> Result<Scores, ClusterError> {
    let width = rows.first().ok_or(ClusterError::NoPoints)?.len();
    for (index, row) in rows.iter().enumerate() {
        if row.len() != width {
            return Err(ClusterError::Metrics {
                index: index as u64,
                metrics: row.len(),
                of: width,
            });
        }
        if let Some(value) = row.iter().flatten().find(|v| !v.is_finite()) {
            return Err(ClusterError::Value {
                index: index as u64,
                value: *value,
            });
        }
    }
    let mut scores = Scores {
        columns: Vec::new(),
        dropped: Vec::new(),
        values: vec![Vec::new(); rows.len()],
        scales: Vec::new(),
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
        let count = known.len() as f64;
        let mean = known.iter().sum::<f64>() / count;
        let squares: f64 = known.iter().map(|v| (v - mean).powi(2)).sum();
        let deviation = (squares / count).sqrt();
        // Values that differ by rounding alone are one value.
        if deviation.is_nan() || deviation <= 1e-12 * mean.abs() {
            scores.dropped.push((column, Dropped::Constant));
            continue;
        }
        scores.columns.push(column);
        scores.scales.push((scale, mean, deviation));
        for (values, row) in scores.values.iter_mut().zip(rows) {
            let score = |v: f64| (transformed(v, scale) - mean) / deviation;
            values.push(row[column].map_or(0.0, score));
        }
    }
    Ok(scores)
}

/// The median of the sizes above zero; 0 if there are none.
fn median_size(values: &[f64]) -> f64 {
    let sizes = values.iter().map(|v| v.abs()).filter(|v| *v > 0.0);
    let mut sizes: Vec<f64> = sizes.collect();
    sizes.sort_by(f64::total_cmp);
    sizes.get(sizes.len() / 2).copied().unwrap_or(0.0)
}

impl Scores {
    /// A point that was not among the input, in the same space.
    ///
    /// # Errors
    /// It lacks a column, or has a value that is infinite or not a number.
    pub fn project(&self, row: &[Option<f64>]) -> Result<Vec<f64>, ClusterError> {
        let each = self.columns.iter().zip(&self.scales);
        each.map(|(column, (scale, mean, deviation))| {
            let value = row.get(*column).ok_or(ClusterError::Metrics {
                index: 0,
                metrics: row.len(),
                of: column + 1,
            })?;
            match value {
                None => Ok(0.0),
                Some(value) if !value.is_finite() => Err(ClusterError::Value {
                    index: 0,
                    value: *value,
                }),
                Some(value) => Ok((transformed(*value, *scale) - mean) / deviation),
            }
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(columns: &[&[Option<f64>]]) -> Vec<Vec<Option<f64>>> {
        let points = columns[0].len();
        (0..points)
            .map(|point| columns.iter().map(|column| column[point]).collect())
            .collect()
    }

    #[test]
    fn mean_and_deviation() {
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
        // ln(1 + 4 / 4) + ln(1 + 1e6 / 4) over ln(2) - ln(1 + 1 / 4).
        let log = (2f64.ln() + 250_001f64.ln()) / (2f64.ln() - 1.25f64.ln());
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
        let infinite = vec![vec![Some(1.0)], vec![Some(f64::INFINITY)]];
        let error = z_scores(&infinite, Transform::Log).unwrap_err();
        assert!(error.to_string().contains("inf"), "{error}");
    }
}

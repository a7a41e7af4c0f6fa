//! Entries of the document: how a value was found, and the curve that it was read off.

use cere_format::machine::{Curve, Found};

/// Two cores.
type Pair = (u32, u32);

/// How the value `what` was found, and how sure it is, from 0 to 1.
pub fn found(what: impl Into<String>, confidence: f64, how: impl Into<String>) -> Found {
    Found {
        what: what.into(),
        confidence,
        how: how.into(),
    }
}

/// A curve; `titles`: its own, and of both axes.
pub fn curve(
    titles: [&str; 3],
    points: Vec<(f64, f64)>,
    marks: impl IntoIterator<Item = (f64, String)>,
) -> Curve {
    let [name, x, y] = titles.map(str::to_owned);
    Curve {
        name,
        x,
        y,
        points,
        marks: marks.into_iter().collect(),
    }
}

/// A value of each pair of cores.
pub fn by_pair(name: &str, y: &str, values: impl Iterator<Item = (Pair, f64)>) -> Curve {
    let (mut points, mut marks) = (Vec::new(), Vec::new());
    for (at, ((a, b), value)) in values.enumerate() {
        points.push((at as f64, value));
        marks.push((at as f64, format!("{a}-{b}")));
    }
    curve([name, "pair", y], points, marks)
}

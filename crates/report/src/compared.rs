//! Ratios of two sides, region by region, as a picture.

use crate::plot::axis::{Axis, Scale, decimal, extent};
use crate::plot::frame::{Frame, Plot};
use crate::plot::picture::PLAIN;

/// A region's time over that of the other side.
pub struct Ratio {
    /// Its name.
    pub name: String,
    /// The ratio.
    pub ratio: f64,
    /// Ends of its interval.
    pub interval: (f64, f64),
}

/// Letters of a name that have room.
const LETTERS: usize = 34;

/// The ratios as a file of SVG, a row each: dots with their intervals beside the line of equal times. `None` without ratios.
pub fn ratios(all: &[Ratio], title: &str) -> Option<String> {
    let ends = all
        .iter()
        .flat_map(|r| [r.ratio, r.interval.0, r.interval.1]);
    let (least, most) = extent(ends.chain([1.0]));
    if all.is_empty() || least <= 0.0 {
        return None;
    }
    const ROW: f64 = 24.0;
    let (left, top, right) = (270.0, 16.0, 760.0);
    let bottom = top + ROW * all.len() as f64;
    let frame = Frame {
        size: (790.0, bottom + 50.0),
        area: (left, top, right, bottom),
    };
    let across = Scale::new((least * 0.98, most * 1.02), (left, right), true);
    let down = Scale::new((0.0, all.len() as f64), (top, bottom), false);
    let x = Axis::new(across, 8, title, decimal);
    let row = |at: usize| at as f64 + 0.5;
    let named = all
        .iter()
        .enumerate()
        .map(|(at, ratio)| (row(at), short(&ratio.name)));
    let y = Axis {
        scale: down,
        ticks: named.collect(),
        title: String::new(),
    };
    let mut plot = Plot::in_frame(frame, "compared", &x, &y, title);
    plot.guide(1.0);
    for (at, ratio) in all.iter().enumerate() {
        let (low, high) = ratio.interval;
        let ends = (plot.at(low, row(at)), plot.at(high, row(at)));
        plot.picture.line("whisker", ends.0, ends.1);
        let class = match (high < 1.0, low > 1.0) {
            (true, _) => "dot faster",
            (_, true) => "dot slower",
            _ => "dot",
        };
        let title = format!("{}: {:.3} ({low:.3} to {high:.3})", ratio.name, ratio.ratio);
        plot.picture
            .circle(class, plot.at(ratio.ratio, row(at)), 4.0, &title);
    }
    let style = format!(
        "{PLAIN}.guide{{stroke:#333;stroke-dasharray:2 4}}.whisker{{stroke:#666;stroke-width:2}}.dot{{fill:#666}}.faster{{fill:#1a7f4b}}.slower{{fill:#b3261e}}"
    );
    Some(plot.picture.file(&style, false))
}

/// The end of a long name: the file and the line tell more than the beginning.
fn short(name: &str) -> String {
    let letters = name.chars().count();
    match letters > LETTERS {
        true => format!(
            "…{}",
            name.chars().skip(letters - LETTERS + 1).collect::<String>()
        ),
        false => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dot_each_and_colours_for_what_is_sure() {
        let ratio = |name: &str, low: f64, high: f64| Ratio {
            name: name.to_owned(),
            ratio: (low + high) / 2.0,
            interval: (low, high),
        };
        let all = [
            ratio("f@a.c:1", 0.8, 0.9),
            ratio("g<int>@a.c:2", 0.9, 1.1),
            ratio(&"long".repeat(20), 1.2, 1.3),
        ];
        let svg = ratios(&all, "time of b over that of a").unwrap();
        assert_eq!(svg.matches("<circle").count(), 3);
        assert!(svg.contains("dot faster") && svg.contains("dot slower"));
        assert!(svg.contains("g&lt;int&gt;") && svg.contains('…'));
        assert!(ratios(&[], "").is_none());
    }
}

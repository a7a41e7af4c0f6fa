//! The tree of merges: points at the left, the last merge at the right.

use crate::plot::axis::Scale;
use crate::plot::frame::{END, escape};
use cere_predict::subset::Subset;
use std::fmt::Write;

/// Units of a row.
const ROW: f64 = 18.0;
/// Width of the picture.
const WIDTH: f64 = 960.0;
/// Where the tree begins, right of the names.
const LEFT: f64 = 420.0;
/// Where it ends.
const RIGHT: f64 = 940.0;
/// Above the first row.
const TOP: f64 = 28.0;
/// Most characters of a name.
const NAME: usize = 52;

/// The picture; clusters by colour, representatives in bold, the cut as a dashed line.
pub fn plot(subset: &Subset) -> String {
    let tree = &subset.dendrogram;
    let order = tree.order();
    let height = TOP + ROW * order.len() as f64 + 30.0;
    let most = tree.merges.iter().map(|m| m.height).fold(0.0, f64::max);
    let scale = Scale::new((0.0, most.max(f64::MIN_POSITIVE)), (LEFT, RIGHT), false);
    let labels = subset.labels();
    let mut svg = format!(
        "<svg class=\"plot tree\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"Dendrogram of {} points, cut into {} clusters\">",
        order.len(),
        subset.clusters.len()
    );
    // Of each node, points and merges: where it is.
    let mut places = vec![(LEFT, 0.0); order.len() + tree.merges.len()];
    for (row, point) in order.iter().enumerate() {
        let y = TOP + ROW * (row as f64 + 0.5);
        places[*point] = (LEFT, y);
        let cluster = labels[*point];
        let bold = match subset.clusters[cluster].representative == *point {
            true => " strong",
            false => "",
        };
        let _ = write!(
            svg,
            "<text x=\"{:.1}\" y=\"{y:.1}\" dy=\".35em\" text-anchor=\"end\" class=\"k{}{bold}\">{}</text>",
            LEFT - 8.0,
            colour(cluster),
            escape(&cere_system::console::print::short(
                &subset.point_name(*point),
                NAME
            ))
        );
    }
    let mut owner: Vec<Option<usize>> = labels.iter().map(|l| Some(*l)).collect();
    for (number, merge) in tree.merges.iter().enumerate() {
        let at = scale.at(merge.height);
        let (one, other) = (places[merge.one], places[merge.other]);
        let cluster = owner[merge.one].filter(|c| owner[merge.other] == Some(*c));
        let class = cluster.map_or("above".to_owned(), |c| format!("k{}", colour(c)));
        let _ = write!(
            svg,
            "<path class=\"branch {class}\" d=\"M{:.1} {:.1}H{at:.1}V{:.1}H{:.1}\"/>",
            one.0, one.1, other.1, other.0
        );
        places[order.len() + number] = (at, (one.1 + other.1) / 2.0);
        owner.push(cluster);
    }
    if let Some(cut) = cut(subset) {
        let at = scale.at(cut);
        let _ = write!(
            svg,
            "<line x1=\"{at:.1}\" y1=\"{:.1}\" x2=\"{at:.1}\" y2=\"{:.1}\" class=\"guide\"/>\
             <text x=\"{at:.1}\" y=\"14\" text-anchor=\"middle\" class=\"title\">{} clusters</text>",
            TOP - 8.0,
            height - 26.0,
            subset.clusters.len()
        );
    }
    let _ = write!(
        svg,
        "<text x=\"{RIGHT}\" y=\"{:.1}\" text-anchor=\"end\" class=\"title\">distance of the merged clusters (Ward)</text>",
        height - 8.0
    );
    svg + END
}

/// Number of a cluster's colour.
fn colour(cluster: usize) -> usize {
    cluster % 10 + 1
}

/// The height between the last merge within clusters and the first one of clusters.
fn cut(subset: &Subset) -> Option<f64> {
    let merges = &subset.dendrogram.merges;
    let kept = (merges.len() + 1).checked_sub(subset.clusters.len())?;
    let below = kept.checked_sub(1).and_then(|m| merges.get(m));
    let above = merges.get(kept)?;
    Some((below.map_or(0.0, |m| m.height) + above.height) / 2.0)
}

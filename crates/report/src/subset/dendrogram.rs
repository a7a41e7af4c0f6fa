//! The tree of merges: points at the left, the last merge at the right.

use crate::plot::axis::Scale;
use crate::plot::picture::{Anchor, Picture, Place, through};
use cere_predict::subset::Subset;

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
pub fn plot(subset: &Subset) -> Picture {
    let tree = &subset.dendrogram;
    let order = tree.order();
    let (number, clusters) = (order.len(), subset.clusters.len());
    let height = TOP + ROW * number as f64 + 30.0;
    let most = tree.merges.iter().map(|m| m.height).fold(0.0, f64::max);
    let scale = Scale::new((0.0, most.max(f64::MIN_POSITIVE)), (LEFT, RIGHT), false);
    let label = format!("Dendrogram of {number} points, cut into {clusters} clusters");
    let mut picture = Picture::new("plot tree", (WIDTH, height), &label);
    let points = rows(&mut picture, subset, &order);
    branches(&mut picture, subset, scale, points);
    if let Some(cut) = cut(subset) {
        let at = scale.at(cut);
        picture.line("guide", (at, TOP - 8.0), (at, height - 26.0));
        let title = format!("{clusters} clusters");
        picture.text("title", Anchor::middle((at, 14.0)), &title);
    }
    let title = "distance of the merged clusters (Ward)";
    picture.text("title", Anchor::end((RIGHT, height - 8.0)), title);
    picture
}

/// Writes the names of the points, and returns where their branches begin.
fn rows(picture: &mut Picture, subset: &Subset, order: &[usize]) -> Vec<Place> {
    let labels = subset.labels();
    let mut places = vec![(LEFT, 0.0); order.len()];
    for (row, point) in order.iter().enumerate() {
        let y = TOP + ROW * (row as f64 + 0.5);
        places[*point] = (LEFT, y);
        let cluster = labels[*point];
        let bold = match subset.clusters[cluster].representative == *point {
            true => " strong",
            false => "",
        };
        let class = format!("k{}{bold}", colour(cluster));
        let anchor = Anchor::end((LEFT - 8.0, y)).half_height();
        let name =
            cere_system::console::short::fitting(&[&subset.point_name(*point)], NAME).concat();
        picture.text(class.as_str(), anchor, &name);
    }
    places
}

/// Draws the merges; `places`: of the points.
fn branches(picture: &mut Picture, subset: &Subset, scale: Scale, mut places: Vec<Place>) {
    let mut owner: Vec<Option<usize>> = subset.labels().iter().map(|l| Some(*l)).collect();
    for merge in &subset.dendrogram.merges {
        let at = scale.at(merge.height);
        let (one, other) = (places[merge.one], places[merge.other]);
        let cluster = owner[merge.one].filter(|c| owner[merge.other] == Some(*c));
        let class = cluster.map_or("above".to_owned(), |c| format!("k{}", colour(c)));
        let branch = through([one, (at, one.1), (at, other.1), other]);
        picture.path(format!("branch {class}").as_str(), &branch);
        // A merge is numbered after the points and the merges before it.
        places.push((at, (one.1 + other.1) / 2.0));
        owner.push(cluster);
    }
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

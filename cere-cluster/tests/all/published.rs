//! Hierarchical clusters, principal components and k-means against published results.

use cere_cluster::{Transform, components, kmeans, ward, within, z_scores};

/// Arrests for murder, assault and rape for each 100,000 residents, and percent of urban population, in the 50 states of the
/// USA in 1973, in alphabetical order (McNeil, Interactive Data Analysis, 1977; R's `USArrests`): murder, assault, urban, rape.
const ARRESTS: [[f64; 4]; 50] = include!("../usarrests.in");

/// Anderson's irises, 50 each of three species (Fisher, Annals of Eugenics 7, 1936; R's `iris`), in cm.
const IRIS: [[f64; 4]; 150] = include!("../iris.in");

/// The arrests as R's `scale` normalises them, by the deviation of a sample.
fn arrests() -> Vec<Vec<f64>> {
    let rows: Vec<Vec<Option<f64>>> = ARRESTS.iter().map(|r| r.map(Some).to_vec()).collect();
    let scores = z_scores(&rows, Transform::None).unwrap();
    // As in R's `summary` and `apply(USArrests, 2, sd)`.
    near(&scores.means, &[7.788, 170.76, 65.54, 21.232], 1e-9);
    let sample = (50.0f64 / 49.0).sqrt();
    let deviations: Vec<f64> = scores.deviations.iter().map(|d| d * sample).collect();
    near(
        &deviations,
        &[4.355510, 83.337661, 14.474763, 9.366385],
        1e-6,
    );
    let values = scores.values.into_iter();
    values
        .map(|row| row.into_iter().map(|v| v / sample).collect())
        .collect()
}

fn near(found: &[f64], wanted: &[f64], by: f64) {
    assert_eq!(found.len(), wanted.len());
    for (one, other) in found.iter().zip(wanted) {
        assert!((one - other).abs() < by, "{found:?} {wanted:?}");
    }
}

fn sizes(labels: &[usize]) -> Vec<usize> {
    let clusters = labels.iter().max().map_or(0, |most| most + 1);
    let size = |cluster| labels.iter().filter(|l| **l == cluster).count();
    (0..clusters).map(size).collect()
}

/// R: `table(cutree(hclust(dist(scale(USArrests)), "ward.D2"), 4))` prints 7 12 19 12 (Kassambara, Practical Guide to Cluster
/// Analysis in R, 2017, chapter 7). Heights, and the clusters of each state, are those of SciPy 1.17:
/// `linkage(scale(USArrests), "ward")` and `fcluster(.., 4, "maxclust")`.
#[test]
fn ward_of_arrests() {
    let tree = ward(&arrests()).unwrap();
    let labels = tree.cut(4).unwrap();
    assert_eq!(sizes(&labels), [7, 12, 19, 12]);
    let states: String = labels.iter().map(|l| char::from(b'0' + *l as u8)).collect();
    let (first, last) = ("0112112210231232203121302", "3313211032222203012322332");
    assert_eq!(states, first.to_owned() + last);
    let heights: Vec<f64> = tree.merges.iter().map(|m| m.height).collect();
    let least = [0.2058538572, 0.3502187566, 0.4287711724, 0.4940831878];
    near(&heights[..4], &least, 1e-9);
    let most = [
        3.4960481144,
        3.7341154783,
        6.4618664416,
        7.1881893464,
        13.5162423507,
    ];
    near(&heights[44..], &most, 1e-9);
    // Iowa and New Hampshire.
    assert_eq!((tree.merges[0].one, tree.merges[0].other), (14, 28));
}

/// R: `prcomp(USArrests, scale. = TRUE)` (James et al., An Introduction to Statistical Learning, 2013, 10.4: the same numbers);
/// there the sign of each component is another choice.
#[test]
fn components_of_arrests() {
    let points = arrests();
    let found = components(&points).unwrap();
    let sample = (50.0f64 / 49.0).sqrt();
    let deviations: Vec<f64> = found.deviations.iter().map(|d| d * sample).collect();
    let wanted = [1.5748783, 0.9948694, 0.5971291, 0.4164494];
    near(&deviations, &wanted, 5e-8);
    near(&found.shares, &[0.62006, 0.24744, 0.0891, 0.04336], 5e-5);
    let first = [0.5358995, 0.5831836, 0.2781909, 0.5434321];
    near(&found.loadings[0], &first, 5e-8);
    // Of SciPy's vectors, with the sign of the largest entry.
    let second = [-0.4181808654, -0.1879856042, 0.8728061931, 0.1673186354];
    near(&found.loadings[1], &second, 1e-9);
    let fourth = [-0.6492278043, 0.7434074799, -0.1338777308, -0.0890243227];
    near(&found.loadings[3], &fourth, 1e-9);
    let shares = [0.6, 0.62, 0.63, 0.95, 0.96, 1.0];
    let numbers = shares.map(|share| found.components_for(share));
    assert_eq!(numbers, [1, 1, 2, 3, 4, 4]);
    assert_eq!(found.project(&points[7]).unwrap(), found.scores[7]);
}

/// R: `kmeans(iris[, -5], 3, nstart = 20)` has clusters of 50, 62 and 38 with the sum of squares 78.85144; with one cluster it is
/// 681.3706, with two 152.348.
#[test]
fn kmeans_of_iris() {
    let points: Vec<Vec<f64>> = IRIS.iter().map(|row| row.to_vec()).collect();
    for (clusters, wanted) in [(1, 681.3706), (2, 152.348), (3, 78.85144)] {
        let labels = kmeans(&points, clusters, 20, 1).unwrap();
        near(&[within(&points, &labels).unwrap()], &[wanted], 5e-4);
    }
    let labels = kmeans(&points, 3, 20, 1).unwrap();
    assert_eq!(sizes(&labels), [50, 62, 38]);
    assert_eq!(sizes(&labels[..50]), [50]);
    // Merges bind: Ward's three clusters are less tight.
    let tree = ward(&points).unwrap();
    let bound = within(&points, &tree.cut(3).unwrap()).unwrap();
    assert!(bound > 78.86 && bound < 1.05 * 78.85, "{bound}");
}

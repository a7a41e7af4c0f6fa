//! What a curve says: pure functions over points `(x, y)` by rising x (BlackjackBench 4, Servet III).

/// Points by rising x.
pub type Points = [(f64, f64)];

/// The curve without what noise added: each y becomes the least of those from there on, as no value rises with x and falls again
/// (BlackjackBench 4.1).
#[must_use]
pub fn monotone(points: &Points) -> Vec<(f64, f64)> {
    let mut found = points.to_vec();
    for at in (1..found.len()).rev() {
        found[at - 1].1 = found[at - 1].1.min(found[at].1);
    }
    found
}

/// A step between two neighbouring points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Index of the point before it.
    pub before: usize,
    /// Its height: what the function that found it compares.
    pub height: f64,
    /// The second highest step, by the same measure; 0 if there is none above 0.
    pub next: f64,
}

impl Step {
    /// How much it stands out: 0 if another step is as high, towards 1 if there is none.
    #[must_use]
    pub fn clearness(&self) -> f64 {
        if self.height > 0.0 {
            (1.0 - self.next / self.height).clamp(0.0, 1.0)
        } else {
            0.0
        }
    }
}

fn relative(points: &Points) -> Vec<f64> {
    let rise = |pair: &[(f64, f64)]| match pair[0].1 > 0.0 {
        true => (pair[1].1 - pair[0].1) / pair[0].1,
        false => 0.0,
    };
    points.windows(2).map(rise).collect()
}

fn highest(heights: &[f64]) -> Option<Step> {
    let order = |a: &usize, b: &usize| heights[*a].total_cmp(&heights[*b]).then(b.cmp(a));
    let before = (0..heights.len()).max_by(order)?;
    let others = heights.iter().enumerate().filter(|(at, _)| *at != before);
    let next = others.map(|(_, height)| *height).fold(0.0, f64::max);
    let height = heights[before];
    (height > 0.0).then_some(Step {
        before,
        height,
        next,
    })
}

/// The step with the biggest relative rise (BlackjackBench 4.2.2); `None` if nothing rises.
#[must_use]
pub fn biggest_step(points: &Points) -> Option<Step> {
    highest(&relative(points))
}

/// The first step whose relative rise is above the mean of all (BlackjackBench 4.2.1).
#[must_use]
pub fn first_step(points: &Points) -> Option<Step> {
    let heights = relative(points);
    let mean = heights.iter().sum::<f64>() / heights.len().max(1) as f64;
    let before = heights
        .iter()
        .position(|height| *height > mean && *height > 0.0)?;
    let earlier = heights[..before].iter().copied().fold(0.0, f64::max);
    Some(Step {
        before,
        height: heights[before],
        next: earlier,
    })
}

/// Clusters of points whose y are alike: no two differ by more than `diameter` of the cluster's mean (BlackjackBench 4.2.3, with 0.25).
/// The largest cluster first; each as indices in rising order.
#[must_use]
pub fn quality_threshold(points: &Points, diameter: f64) -> Vec<Vec<usize>> {
    let mut left: Vec<usize> = (0..points.len()).collect();
    // In order of y a cluster is a run of neighbours: the next candidate lies at one of its two ends.
    left.sort_by(|a, b| points[*a].1.total_cmp(&points[*b].1));
    let mut clusters = Vec::new();
    while !left.is_empty() {
        let y = |at: usize| points[left[at]].1;
        let grown = |seed: usize| {
            let (mut from, mut to, mut sum) = (seed, seed, y(seed));
            loop {
                let below = from.checked_sub(1).map(|at| (y(to) - y(at), at));
                let above = (to + 1 < left.len()).then(|| (y(to + 1) - y(from), to + 1));
                let nearest = [below, above]
                    .into_iter()
                    .flatten()
                    .min_by(|a, b| a.0.total_cmp(&b.0));
                let Some((wide, at)) = nearest else { break };
                if wide > diameter * sum / (to - from + 1) as f64 {
                    break;
                }
                (from, to, sum) = (from.min(at), to.max(at), sum + y(at));
            }
            (from, to)
        };
        let runs = (0..left.len()).map(grown);
        let Some((from, to)) = runs.max_by_key(|(from, to)| (to - from, std::cmp::Reverse(*from)))
        else {
            break;
        };
        let mut cluster: Vec<usize> = left.drain(from..=to).collect();
        cluster.sort_unstable();
        clusters.push(cluster);
    }
    clusters
}

/// Probability that of `n` trials at least `k` succeed, each with probability `p`.
#[must_use]
pub fn at_least(n: u64, p: f64, k: u64) -> f64 {
    if k == 0 || p >= 1.0 && k <= n {
        return 1.0;
    }
    if p <= 0.0 || k > n {
        return 0.0;
    }
    (1.0 - chances(n, p, k - 1).iter().sum::<f64>()).clamp(0.0, 1.0)
}

/// Probabilities that of `n` trials 0, 1, ... `most` succeed, each with probability `p` between 0 and 1; `most` is `n` at most.
#[must_use]
pub fn chances(n: u64, p: f64, most: u64) -> Vec<f64> {
    if p >= 1.0 {
        return (0..=most).map(|k| f64::from(u8::from(k == n))).collect();
    }
    // By recursion from the first, in logarithms, which do not underflow. (Servet's figure 10 has the recursion in the wrong loop.)
    let odds = (p / (1.0 - p)).ln();
    let mut term = n as f64 * (1.0 - p).ln();
    let next = |k: u64| {
        let found = term.exp();
        term += ((n - k) as f64 / (k + 1) as f64).ln() + odds;
        found
    };
    (0..=most).map(next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(y: &[f64]) -> Vec<(f64, f64)> {
        y.iter().enumerate().map(|(x, y)| (x as f64, *y)).collect()
    }

    #[test]
    fn noise_is_taken_off() {
        let found = monotone(&curve(&[1.0, 5.0, 2.0, 2.5, 9.0, 8.0]));
        assert_eq!(found, curve(&[1.0, 2.0, 2.0, 2.5, 8.0, 8.0]));
        assert!(monotone(&[]).is_empty());
    }

    #[test]
    fn steps() {
        let points = curve(&[4.0, 4.1, 4.2, 14.0, 14.5, 30.0]);
        let step = biggest_step(&points).unwrap();
        assert_eq!(step.before, 2);
        assert!((step.height - 9.8 / 4.2).abs() < 1e-12, "{step:?}");
        assert!((step.clearness() - (1.0 - (15.5 / 14.5) / (9.8 / 4.2))).abs() < 1e-12);
        assert_eq!(
            first_step(&curve(&[1.0, 1.02, 1.0, 1.9, 2.1, 3.0]))
                .unwrap()
                .before,
            2
        );
        assert_eq!(biggest_step(&curve(&[2.0, 2.0])), None);
        assert_eq!(first_step(&curve(&[2.0])), None);
    }

    /// By the definition in the paper's figure 10: each seed, each candidate, the whole diameter.
    fn slowly(points: &Points, diameter: f64) -> Vec<Vec<usize>> {
        let mut left: Vec<usize> = (0..points.len()).collect();
        let mut clusters = Vec::new();
        let wide = |set: &[usize]| {
            let y = |i: &usize| points[*i].1;
            let high = set.iter().map(y).fold(f64::MIN, f64::max);
            high - set.iter().map(y).fold(f64::MAX, f64::min)
        };
        while !left.is_empty() {
            let mut best: Vec<usize> = Vec::new();
            for seed in &left {
                let mut set = vec![*seed];
                while set.len() < left.len() {
                    let others = left.iter().filter(|j| !set.contains(j));
                    let with = |j: &usize| wide(&[&set[..], &[*j]].concat());
                    let next = *others.min_by(|a, b| with(a).total_cmp(&with(b))).unwrap();
                    let mean = set.iter().map(|i| points[*i].1).sum::<f64>() / set.len() as f64;
                    if with(&next) > diameter * mean {
                        break;
                    }
                    set.push(next);
                }
                if set.len() > best.len() {
                    best = set;
                }
            }
            left.retain(|i| !best.contains(i));
            best.sort_unstable();
            clusters.push(best);
        }
        clusters
    }

    #[test]
    fn clusters_as_in_the_paper() {
        let mut state = 1u64;
        let mut random = || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 40) as f64 / (1u64 << 24) as f64
        };
        for _ in 0..200 {
            let level = [4.0, 14.0, 40.0, 90.0];
            let y: Vec<f64> = (0..24)
                .map(|i| level[i / 6] * (1.0 + 0.2 * random()))
                .collect();
            let points = curve(&y);
            let sizes = |c: Vec<Vec<usize>>| c.iter().map(Vec::len).collect::<Vec<_>>();
            // Equal sizes may come in another order: the multiset of sizes and the union are the same.
            let (mut quick, mut slow) = (
                sizes(quality_threshold(&points, 0.25)),
                sizes(slowly(&points, 0.25)),
            );
            quick.sort_unstable();
            slow.sort_unstable();
            assert_eq!(quick, slow, "{y:?}");
        }
    }

    #[test]
    fn binomial_tails() {
        // Two of three fair coins or more: one half.
        assert!((at_least(3, 0.5, 2) - 0.5).abs() < 1e-12);
        assert_eq!(at_least(3, 0.5, 0), 1.0);
        assert_eq!(at_least(3, 0.5, 4), 0.0);
        assert_eq!(at_least(3, 0.0, 1), 0.0);
        assert_eq!(at_least(3, 1.0, 3), 1.0);
        // The facts of a cache of 2 MiB with 8 ways that 512 pages of 4 KiB fill: 64 sets of pages, by page and by set.
        let p = 1.0 / 64.0;
        assert!(
            (at_least(511, p, 8) - 0.546).abs() < 1e-3,
            "{}",
            at_least(511, p, 8)
        );
        assert!(
            (at_least(512, p, 9) - 0.407).abs() < 1e-3,
            "{}",
            at_least(512, p, 9)
        );
    }
}

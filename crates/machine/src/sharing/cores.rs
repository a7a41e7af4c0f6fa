//! Which cores and pairs are measured.

use super::group::Pair;
use cere_format::caches::processors;

/// Most cores of which all pairs are measured.
pub const MOST: usize = 16;

/// Where a core is, as the system tells.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    /// Package.
    pub package: u32,
    /// First core that has the last level with it.
    pub last: u32,
    /// Core within the package; hyperthreads have the same.
    pub core: u32,
    /// The processor.
    pub number: u32,
}

impl Spot {
    /// Of a processor; what the system does not tell is 0.
    #[must_use]
    pub fn of(number: u32) -> Self {
        let read = |name: &str| {
            let path = format!("/sys/devices/system/cpu/cpu{number}/topology/{name}");
            let text = std::fs::read_to_string(path).unwrap_or_default();
            text.trim().parse().unwrap_or(0)
        };
        let caches = cere_format::caches::of(number);
        let last = caches.last().map(|c| processors(&c.shared));
        Self {
            package: read("physical_package_id"),
            last: last.and_then(|l| l.first().copied()).unwrap_or(0),
            core: read("core_id"),
            number,
        }
    }
}

/// At most [`MOST`] of the cores: some of up to four groups with a last level of their own, of different packages first; hyperthreads of
/// one core stay together.
#[must_use]
pub fn sample(mut spots: Vec<Spot>) -> Vec<u32> {
    spots.sort();
    if spots.len() > MOST {
        let mut groups: Vec<(u32, Vec<Spot>)> = Vec::new();
        for spot in spots {
            match groups.last_mut() {
                Some((_, group))
                    if (group[0].package, group[0].last) == (spot.package, spot.last) =>
                {
                    group.push(spot);
                }
                _ => {
                    // How many of its package came before: one of each package is first.
                    let before = groups.iter().filter(|(_, g)| g[0].package == spot.package);
                    groups.push((before.count() as u32, vec![spot]));
                }
            }
        }
        groups.sort_by_key(|(before, _)| *before);
        groups.truncate(4);
        let each = MOST / groups.len();
        spots = groups
            .into_iter()
            .flat_map(|(_, g)| g.into_iter().take(each))
            .collect();
    }
    let mut cores: Vec<u32> = spots.iter().map(|spot| spot.number).collect();
    cores.sort_unstable();
    cores
}

/// All pairs.
#[must_use]
pub fn pairs(cores: &[u32]) -> Vec<Pair> {
    let with = |(at, a): (usize, &u32)| {
        let a = *a;
        cores[at + 1..]
            .iter()
            .map(move |b| (a, *b))
            .collect::<Vec<_>>()
    };
    cores.iter().enumerate().flat_map(with).collect()
}

/// Pairs of `pairs` that have no core in common, as many as come in order.
#[must_use]
pub fn disjoint(pairs: &[Pair]) -> Vec<Pair> {
    let mut found: Vec<Pair> = Vec::new();
    for (a, b) in pairs {
        let taken = |core: &u32| found.iter().any(|(c, d)| c == core || d == core);
        if !taken(a) && !taken(b) {
            found.push((*a, *b));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_cores() {
        assert_eq!(pairs(&[1, 4, 6]), [(1, 4), (1, 6), (4, 6)]);
        assert_eq!(disjoint(&[(0, 1), (0, 2), (2, 3)]), [(0, 1), (2, 3)]);
        assert!(pairs(&[3]).is_empty());
    }

    #[test]
    fn large_machines_are_sampled_at_all_distances() {
        // 2 packages, 4 last levels each, 8 cores, 2 threads numbered 64 apart.
        let spot = |number: u32| {
            let core = number % 64;
            Spot {
                package: core / 32,
                last: core / 8 * 8,
                core,
                number,
            }
        };
        let cores = sample((0..128).map(spot).collect());
        assert_eq!(cores.len(), MOST);
        let spots: Vec<Spot> = cores.iter().map(|c| spot(*c)).collect();
        let some = |same: &dyn Fn(&Spot, &Spot) -> bool| {
            spots
                .iter()
                .any(|a| spots.iter().any(|b| a != b && same(a, b)))
        };
        assert!(some(&|a, b| a.core == b.core), "hyperthreads");
        assert!(some(&|a, b| a.last == b.last && a.core != b.core));
        assert!(some(&|a, b| a.package == b.package && a.last != b.last));
        assert!(some(&|a, b| a.package != b.package));
        assert_eq!(
            sample((0..12).map(spot).collect()),
            (0..12).collect::<Vec<_>>()
        );
    }
}

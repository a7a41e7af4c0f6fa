//! Performance classes of a region of a profile.

use cere_cluster::{ClassError, Classes, Criterion, Timed, Whole, classes};
use cere_format::package::Represents;
use cere_format::profile::{RegionProfile, is_sampled};

/// The invocations whose time the profile kept, each with the number of invocations that it represents. Invocations that
/// the run was asked to keep are excluded: they are not a random sample.
pub fn kept_invocations(region: &RegionProfile) -> impl Iterator<Item = Timed> {
    let trace = &region.trace;
    let first = trace.first.len() as u64;
    let sampled = || {
        let all = trace.sampled.iter();
        all.filter(|(invocation, _)| is_sampled(*invocation, trace.stride.max(1)))
    };
    let later = region.invocations.saturating_sub(first) as f64;
    let weight = later / sampled().count().max(1) as f64;
    let first = (1..).zip(&trace.first).map(|(invocation, cycles)| Timed {
        invocation,
        cycles: *cycles,
        weight: 1.0,
    });
    first.chain(sampled().map(move |(invocation, cycles)| Timed {
        invocation: *invocation,
        cycles: *cycles,
        weight,
    }))
}

/// The classes of the region's invocations; totals are in seconds.
pub fn of(region: &RegionProfile) -> Result<Classes, ClassError> {
    let whole = Whole {
        invocations: region.invocations,
        total: region.inclusive_seconds,
    };
    let usual = Criterion::default();
    let criterion = Criterion {
        // Noise must not make classes.
        deviation: usual.deviation.max(region.noise),
        ..usual
    };
    classes(|| kept_invocations(region), whole, criterion)
}

/// The representatives of the region's classes, rising, each with its class.
pub fn representatives(region: &RegionProfile) -> Result<Vec<(u64, Represents)>, ClassError> {
    let found = of(region)?.classes;
    let count = found.len() as u32;
    let mut all: Vec<_> = (1..)
        .zip(&found)
        .map(|(class, c)| {
            let represents = Represents {
                classes: count,
                class,
                invocations: c.count,
                seconds: c.total,
            };
            (c.invocation, represents)
        })
        .collect();
    all.sort_by_key(|(invocation, _)| *invocation);
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cere_format::profile::{RegionKey, Trace};

    #[test]
    fn a_sample_stands_for_all_invocations() {
        let stride = 4;
        let sampled: Vec<(u64, u64)> = (11..=1010)
            .filter(|i| is_sampled(*i, stride) || *i == 500)
            .map(|i| (i, if i % 10 == 0 { 9000 } else { 1000 }))
            .collect();
        let region = RegionProfile {
            key: RegionKey {
                unit: "u".into(),
                index: 0,
            },
            name: "f@a.c:1".into(),
            invocations: 1010,
            inclusive_seconds: 2.0,
            self_seconds: 2.0,
            share: 1.0,
            parallel: false,
            waiting_seconds: 0.0,
            mpi_seconds: 0.0,
            cycles_min: 1000,
            cycles_mean: 1800.0,
            cycles_max: 9000,
            noise: 0.0,
            trace: Trace {
                first: vec![0; 10],
                stride,
                sampled,
                ..Trace::default()
            },
        };
        let noisy = RegionProfile {
            noise: 5.0,
            ..region.clone()
        };
        assert_eq!(representatives(&noisy).unwrap().len(), 1);
        let found = representatives(&region).unwrap();
        assert_eq!(found.len(), 2);
        let invocations: u64 = found.iter().map(|f| f.1.invocations).sum();
        let seconds: f64 = found.iter().map(|f| f.1.seconds).sum();
        assert_eq!(invocations, 1010);
        assert!((seconds - 2.0).abs() < 1e-9);
        assert!(found.iter().all(|f| region.trace.get(f.0).is_some()));
    }
}

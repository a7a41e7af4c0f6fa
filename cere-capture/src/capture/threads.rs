//! Regions in threads other than the program's first one. Which thread does what may be chance: an invocation is one of all that
//! any thread runs, and its time in vivo is their median.

use super::untimed::Untimed;
use cere_format::package::{InVivo, OfThread, Represents};
use cere_format::profile::{Profile, RegionKey, ThreadRegion};

/// Invocations differ where a fifth takes more than so many times what another fifth takes at most.
const DIFFER: f64 = 4.0;

/// The region in each thread that finished it, with the thread's number and whether that is a single thread's.
fn in_threads<'p>(
    profile: &'p Profile,
    key: &RegionKey,
) -> impl Iterator<Item = (u64, bool, &'p ThreadRegion)> {
    let place = profile.over_threads.iter().position(|r| r.key == *key);
    let of = move |r: &&ThreadRegion| Some(r.region) == place && r.cycles_max > 0;
    profile.threads.iter().filter_map(move |thread| {
        let region = thread.regions.iter().find(of)?;
        Some((thread.number, thread.users == 1, region))
    })
}

/// The thread, other than the first, that spends most time in the region, and its invocation in the middle, which stands for those
/// of all threads.
pub fn representative(profile: &Profile, key: &RegionKey) -> Option<(u64, u64, Represents)> {
    let all = profile.over_threads(key)?;
    let others = in_threads(profile, key).filter(|(number, single, _)| *number > 0 && *single);
    let (thread, _, most) = others.max_by(|a, b| a.2.self_seconds.total_cmp(&b.2.self_seconds))?;
    let represents = Represents {
        classes: 1,
        class: 1,
        invocations: all.invocations,
        seconds: all.inclusive_seconds - all.waiting_seconds,
    };
    Some((thread, most.invocations.div_ceil(2), represents))
}

/// The invocation of the region in the middle of those of the thread of this number; none if that did not enter it.
pub fn middle(profile: &Profile, key: &RegionKey, number: u64) -> Option<u64> {
    let mut all = in_threads(profile, key);
    let (_, _, region) = all.find(|(thread, single, _)| *thread == number && *single)?;
    Some(region.invocations.div_ceil(2))
}

/// The thread of this number, with what threads spend in an invocation of the region.
pub fn describe(profile: Option<&Profile>, key: &RegionKey, number: u64) -> OfThread {
    let over = profile.and_then(|profile| {
        let over = profile.over_threads(key)?;
        Some((over.threads, over.usual_cycles()?, profile.tsc_hz))
    });
    OfThread {
        number,
        threads: over.map_or(0, |(threads, _, _)| threads),
        seconds: over.map_or([0.0; 2], |(_, [low, _, high], hertz)| {
            [low / hertz, high / hertz]
        }),
    }
}

/// Seconds that the longest invocation in any thread but the first took; 0 if that is not known.
pub fn longest(profile: &Profile, key: &RegionKey) -> f64 {
    let of = |(_, _, region): (u64, bool, &ThreadRegion)| region.cycles_max;
    in_threads(profile, key).map(of).max().unwrap_or(0) as f64 / profile.tsc_hz
}

/// The time of an invocation in the threads other than the first: the median.
pub fn in_vivo(profile: &Profile, key: &RegionKey) -> Result<InVivo, Untimed> {
    let over = profile.over_threads(key).and_then(|r| r.usual_cycles());
    let [low, median, high] = over.ok_or(Untimed::NotRun)?;
    if high > DIFFER * low {
        return Err(Untimed::Differ {
            least: low / profile.tsc_hz,
            most: high / profile.tsc_hz,
        });
    }
    Ok(InVivo {
        cycles: median.round() as u64,
        seconds: median / profile.tsc_hz,
    })
}

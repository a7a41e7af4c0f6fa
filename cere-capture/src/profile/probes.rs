//! The cost of probes in addition to what the preload library measures at the program's start: they keep the code before and
//! after them from overlapping and displace some of it from caches. If probes take much of a run, runs almost without probes
//! measure this cost.

use super::merge;
use cere_format::profile::{Profile, RegionKey, RegionProfile};

/// Share of the run that probes take, by their own measure, above which runs without them are made.
const HEAVY: f64 = 0.05;

/// Maximum cycles that a probe pair adds to the code around it and that are not subtracted yet.
pub const DISPLACED: f64 = 500.0;

/// Entries of regions.
fn pairs(profile: &Profile) -> u64 {
    let inner = profile.tree.iter().filter(|node| node.region.is_some());
    inner.map(|node| node.invocations).sum()
}

/// Known cycles of a probe pair.
fn pair(profile: &Profile) -> f64 {
    profile.probe_inside + profile.probe_outside
}

/// Share of its probes in the run before their cost was subtracted, by their own measure.
fn share(profile: &Profile) -> f64 {
    let taken = pairs(profile) as f64 * pair(profile) / profile.tsc_hz;
    taken / (profile.seconds + taken)
}

/// The note on probes for a profile of a single run.
pub fn warning(profile: &Profile) -> Option<String> {
    let share = share(profile);
    (share > HEAVY).then(|| {
        format!(
            "probes took {:.0} % of the run. That is subtracted, but not their cost to the code around them, which one run does not show: --runs 3 also runs the program without probes",
            share * 100.0
        )
    })
}

/// The only region to time in runs that measure the cost of all probes: the one that is entered least often. `None` if there
/// are too few probes to matter.
pub fn least_entered_region(profile: &Profile) -> Option<RegionKey> {
    let ran = profile.regions.iter().filter(|r| r.invocations > 0);
    let rarest = ran.min_by(|a, b| {
        let longer = b.inclusive_seconds.total_cmp(&a.inclusive_seconds);
        a.invocations.cmp(&b.invocations).then(longer)
    })?;
    (share(profile) > HEAVY).then(|| rarest.key.clone())
}

/// Subtracts the remaining cost of probes from `profile`. `bare` holds the successful ones of `wanted` runs of the same command
/// with fewer probes. Returns a note for the user, if any.
pub fn subtract_probes(profile: &mut Profile, bare: &[Profile], wanted: usize) -> Option<String> {
    // Runs that ended early or did something else cannot be compared.
    let alike = |run: &Profile| {
        let met = |r: &RegionProfile| profile.region(&r.key).map_or(0, |known| known.invocations);
        !run.regions.is_empty() && run.regions.iter().all(|r| r.invocations == met(r))
    };
    if bare.len() < wanted || !bare.iter().all(alike) {
        return Some(
            "runs without probes behaved differently: the full cost of the probes is not known, and times around regions that are entered often may be too long".into(),
        );
    }
    let seconds = merge::seconds(bare.iter().map(|run| run.seconds))?;
    let all = pairs(profile);
    let fewer = all.checked_sub(pairs(bare.first()?)).filter(|n| *n > 0)?;
    let each = (profile.seconds - seconds) / fewer as f64;
    let each = each.min(DISPLACED / profile.tsc_hz);
    if each <= 0.0 {
        return None;
    }
    let known = pair(profile);
    take_off(profile, each);
    Some(format!(
        "{all} probes ran, and each cost {:.0} cycles more than the {known:.0} of a probe alone, according to {} without them. That is subtracted",
        each * profile.tsc_hz,
        match bare.len() {
            1 => "a run".to_owned(),
            n => format!("{n} runs"),
        }
    ))
}

/// Subtracts `each` further seconds for every probe pair, split between region and caller like the known cost.
fn take_off(profile: &mut Profile, each: f64) {
    let inside = each * profile.probe_inside / pair(profile).max(1.0);
    let outside = each - inside;
    let count = profile.tree.len();
    // Entries of regions from a node and all nodes below it, which come later.
    let (mut direct, mut below) = (vec![0.0; count], vec![0.0; count]);
    let mut called = vec![0.0; count];
    let mut own = vec![0.0; profile.regions.len()];
    let mut inclusive = own.clone();
    for place in (0..count).rev() {
        let node = &mut profile.tree[place];
        let entries = match node.region {
            Some(_) => node.invocations as f64,
            None => 0.0,
        };
        let before = (node.self_seconds, node.inclusive_seconds);
        let less = entries * inside + direct[place] * outside;
        node.self_seconds = (node.self_seconds - less).max(0.0);
        let less = entries * inside + below[place] * each;
        let least = node.self_seconds + called[place];
        node.inclusive_seconds = (node.inclusive_seconds - less).max(least);
        if let Some(region) = node.region {
            own[region] += before.0 - node.self_seconds;
            inclusive[region] += before.1 - node.inclusive_seconds;
        }
        if let Some(parent) = node.parent {
            direct[parent] += entries;
            below[parent] += entries + below[place];
            called[parent] += node.inclusive_seconds;
        }
    }
    profile.seconds = profile.tree[0].inclusive_seconds;
    for place in 0..profile.over_threads.len() {
        let key = &profile.over_threads[place].key;
        let first = profile.regions.iter().position(|r| r.key == *key);
        let elsewhere = profile.entries_elsewhere(key) as f64;
        let less = first.map_or(0.0, |first| own[first]) + elsewhere * inside;
        let over = &mut profile.over_threads[place];
        over.self_seconds = (over.self_seconds - less).max(0.0);
        over.waiting_seconds = over.waiting_seconds.min(over.self_seconds);
    }
    for (place, region) in profile.regions.iter_mut().enumerate() {
        region.self_seconds = (region.self_seconds - own[place]).max(0.0);
        region.waiting_seconds = region.waiting_seconds.min(region.self_seconds);
        let before = region.inclusive_seconds;
        region.inclusive_seconds = (before - inclusive[place]).max(region.self_seconds);
        // Shortening all invocations equally keeps the classes.
        let ratio = match before > 0.0 {
            true => region.inclusive_seconds / before,
            false => 1.0,
        };
        let shorten = |cycles: &mut u64| {
            if *cycles > 0 {
                *cycles = ((*cycles as f64 * ratio).round() as u64).max(1);
            }
        };
        region.cycles_mean *= ratio;
        shorten(&mut region.cycles_min);
        shorten(&mut region.cycles_max);
        region.trace.first.iter_mut().for_each(shorten);
        region
            .trace
            .sampled
            .iter_mut()
            .for_each(|s| shorten(&mut s.1));
    }
    merge::compute_shares(profile);
    profile.probe_inside += inside * profile.tsc_hz;
    profile.probe_outside += outside * profile.tsc_hz;
}

#[cfg(test)]
mod tests {
    use super::*;
    use cere_testing::profile as fixture;

    /// A second at 1 GHz: `outer` runs for 0.6 s, of which `short` has 0.2 s in a million invocations; `beside` 0.1 s.
    fn profile() -> Profile {
        let regions = [
            ("outer", None, 0.4, 6e8),
            ("short", Some(0), 0.2, 200.0),
            ("beside", None, 0.1, 1e8),
        ];
        let mut profile = fixture::profile(&regions);
        profile.tree[2].invocations = 1_000_000;
        profile.regions[1].invocations = 1_000_000;
        profile.regions[1].trace.first = vec![100, 300, 0];
        (profile.probe_inside, profile.probe_outside) = (50.0, 150.0);
        profile
    }

    fn bare(seconds: f64) -> Profile {
        let mut bare = profile();
        bare.seconds = seconds;
        bare.tree.remove(2);
        bare
    }

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-6, "{found} {expected}");
    }

    #[test]
    fn what_a_bare_run_takes_less_is_the_probes() {
        let mut profile = profile();
        assert_eq!(least_entered_region(&profile).map(|key| key.index), Some(0));
        assert!(warning(&profile).is_some_and(|text| text.contains("17 %")));
        let runs = [bare(0.7), bare(0.9), bare(0.95)];
        let note = subtract_probes(&mut profile, &runs, 3).expect("a note");
        assert!(note.contains("100 cycles more than the 200 "), "{note}");
        near(profile.seconds, 0.9);
        // A quarter of the 0.1 s is the short region's, the rest its caller's.
        let own = |place: usize| profile.regions[place].self_seconds;
        near(own(0), 0.325);
        near(own(1), 0.175);
        near(own(2), 0.1);
        near(profile.regions[0].inclusive_seconds, 0.5);
        near(profile.regions[0].share, 0.325 / 0.9);
        near(profile.tree[0].self_seconds, 0.3);
        near(profile.tree[1].inclusive_seconds, 0.5);
        near(profile.coverage, 0.6 / 0.9);
        assert_eq!(profile.regions[0].cycles_max, 499_999_975);
        assert_eq!(profile.regions[1].trace.first, [88, 263, 0]);
        assert_eq!((profile.probe_inside, profile.probe_outside), (75.0, 225.0));
    }

    #[test]
    fn bare_runs_that_take_longer_tell_nothing() {
        let mut profile = profile();
        assert_eq!(subtract_probes(&mut profile, &[bare(1.1)], 1), None);
        near(profile.seconds, 1.0);
    }

    #[test]
    fn bare_runs_that_do_something_else_tell_nothing() {
        let mut profile = profile();
        let mut other = bare(0.2);
        other.regions[0].invocations = 7;
        let note = subtract_probes(&mut profile, &[bare(0.9), other], 2).expect("a note");
        assert!(note.contains("not known"), "{note}");
        let note = subtract_probes(&mut profile, &[bare(0.9)], 2).expect("a note");
        assert!(note.contains("not known"), "{note}");
        near(profile.seconds, 1.0);
    }

    #[test]
    fn no_more_is_taken_off_than_probes_can_cost() {
        let mut profile = profile();
        profile.tree[2].invocations = 100_000;
        let note = subtract_probes(&mut profile, &[bare(0.5)], 1).expect("a note");
        assert!(note.contains("500 cycles more"), "{note}");
        near(profile.seconds, 0.95);
    }

    #[test]
    fn few_probes_need_no_other_run() {
        let mut profile = profile();
        profile.tree[2].invocations = 100_000;
        assert_eq!(least_entered_region(&profile), None);
        assert_eq!(warning(&profile), None);
    }
}

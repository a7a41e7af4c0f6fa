//! Profiles for the tests of several modules.

use cere_format::profile::{
    PROFILE_VERSION, ProcessName, Profile, RegionKey, RegionProfile, RunInput, Trace, TreeNode,
};

/// A profile of one second. A region: name, the place of the one region that calls it, self seconds, cycles of an
/// invocation; it has a single invocation, of its inclusive time at 1 GHz.
pub fn profile(regions: &[(&str, Option<usize>, f64, f64)]) -> Profile {
    let mut inclusive: Vec<f64> = regions.iter().map(|r| r.2).collect();
    for (place, region) in regions.iter().enumerate().rev() {
        if let Some(caller) = region.1 {
            inclusive[caller] += inclusive[place];
        }
    }
    let of = |place: usize| {
        let (name, _, own, cycles) = regions[place];
        RegionProfile {
            key: RegionKey {
                unit: "0".repeat(32),
                index: place as u32,
            },
            name: name.into(),
            invocations: 1,
            inclusive_seconds: inclusive[place],
            self_seconds: own,
            share: own,
            parallel: false,
            waiting_seconds: 0.0,
            mpi_seconds: 0.0,
            cycles_min: cycles as u64,
            cycles_mean: cycles,
            cycles_max: cycles as u64,
            noise: 0.0,
            trace: Trace {
                first: vec![(inclusive[place] * 1e9) as u64],
                stride: 1,
                ..Trace::default()
            },
        }
    };
    let own: f64 = regions.iter().map(|r| r.2).sum();
    let root = TreeNode {
        region: None,
        parent: None,
        invocations: 1,
        inclusive_seconds: 1.0,
        self_seconds: 1.0 - own,
    };
    let node = |place: usize| TreeNode {
        region: Some(place),
        parent: Some(regions[place].1.map_or(0, |caller| caller + 1)),
        invocations: 1,
        inclusive_seconds: inclusive[place],
        self_seconds: regions[place].2,
    };
    Profile {
        version: PROFILE_VERSION,
        command: Vec::new(),
        directory: "/".into(),
        program: String::new(),
        runs: 1,
        ended: None,
        process: ProcessName::default(),
        input: RunInput::default(),
        seconds: 1.0,
        coverage: own,
        tsc_hz: 1e9,
        probe_inside: 0.0,
        probe_outside: 0.0,
        regions: (0..regions.len()).map(of).collect(),
        tree: std::iter::once(root)
            .chain((0..regions.len()).map(node))
            .collect(),
        timeline: Vec::new(),
        over_threads: Vec::new(),
        threads: Vec::new(),
        threads_lost: 0,
        mpi_seconds: 0.0,
        processor: None,
        ranks: Vec::new(),
        alone: None,
        launched: None,
        by_rank: false,
        process_key: None,
    }
}

//! The simulator against the reference: random accesses, geometries and options, every counter equal.
//! `CERE_MEMORY_SEED=N` repeats one case, `CERE_MEMORY_CASES=N` runs more.

use crate::reference;

use cere_memory::geometry::{Inclusion, Level, Replacement, Tlb};
use cere_memory::options::{Frames, Prefetcher};
use cere_memory::{Access, Geometry, Hierarchy, Kind, Options};
use reference::{Random, Reference};
use std::collections::BTreeSet;

fn pick<T: Copy>(random: &mut Random, of: &[T]) -> T {
    of[random.below(of.len() as u64) as usize]
}

fn geometry(random: &mut Random) -> Geometry {
    let count = pick(random, &[0, 1, 1, 2, 2, 3, 3, 3, 4]);
    let mixed = random.below(4) == 0;
    let mut line = pick(random, &[32, 64, 64, 64, 128]);
    let mut levels: Vec<Level> = Vec::new();
    let shared_from = random.below(count as u64 + 1) as usize;
    for index in 0..count {
        let inclusions = [Inclusion::None, Inclusion::Inclusive, Inclusion::Victim];
        let mut inclusion = pick(random, &inclusions);
        if index == 0 && inclusion == Inclusion::Victim {
            inclusion = Inclusion::None;
        }
        if mixed && inclusion != Inclusion::Victim {
            line *= pick(random, &[1, 1, 2]);
        }
        let policies = [Replacement::Lru, Replacement::TreePlru, Replacement::Random];
        let replacement = pick(random, &policies);
        let ways = match replacement {
            Replacement::TreePlru => pick(random, &[1, 2, 4, 8, 16]),
            _ => pick(random, &[1, 2, 3, 4, 6, 8, 11]),
        };
        let before = levels.last().map_or(0, |l: &Level| l.size);
        let set = line as u64 * ways as u64;
        let sets = before.div_ceil(set) + pick(random, &[0, 1, 1, 2, 3, 5, 8]);
        levels.push(Level {
            line,
            replacement,
            inclusion,
            shared: index >= shared_from,
            ..Level::new(&format!("L{}", index + 1), set * sets.max(1), ways)
        });
    }
    let tlbs = [(4, 4), (6, 2), (8, 8), (24, 4), (12, 12)];
    let tlbs = match random.below(4) {
        0 => vec![],
        1 => tlbs[1..2].to_vec(),
        2 => vec![tlbs[0], tlbs[4]],
        _ => vec![tlbs[2], tlbs[3]],
    };
    Geometry {
        name: "random".into(),
        levels,
        tlbs: tlbs
            .into_iter()
            .map(|(entries, ways)| Tlb { entries, ways })
            .collect(),
    }
}

fn options(random: &mut Random, geometry: &Geometry) -> Options {
    let fit: Vec<usize> = (0..geometry.levels.len())
        .filter(|&l| geometry.levels[l].inclusion != Inclusion::Victim)
        .collect();
    let prefetcher = (!fit.is_empty() && random.below(2) == 0).then(|| Prefetcher {
        level: pick(random, &fit),
        streams: pick(random, &[1, 2, 5]),
        distance: pick(random, &[1, 4, 20]),
        degree: pick(random, &[1, 2, 7]),
    });
    Options {
        cores: pick(random, &[1, 1, 2, 3]),
        seed: random.next(),
        replacement: pick(
            random,
            &[
                None,
                None,
                Some(Replacement::Lru),
                Some(Replacement::Random),
            ],
        ),
        frames: pick(random, &[Frames::Identity, Frames::Random]),
        huge: match random.below(3) {
            0 => vec![4 << 20..8 << 20, 9 << 20..14 << 20],
            _ => vec![],
        },
        sampling: None,
        prefetcher,
        combining: pick(random, &[1, 3, 10]),
        footprint_pages: 1 << 16,
    }
}

/// Walks, repeats and jumps over a few pages, in which caches of some KiB matter.
struct Walk {
    at: u64,
    step: u64,
    left: u64,
    kind: Kind,
    span: u64,
    base: u64,
}

impl Walk {
    fn new(random: &mut Random) -> Self {
        Self {
            at: 0,
            step: 0,
            left: 0,
            kind: Kind::Load,
            span: pick(random, &[4 << 10, 32 << 10, 256 << 10]),
            base: pick(random, &[0, 7 << 20, 5 << 40, u64::MAX - (300 << 10)]),
        }
    }

    fn next(&mut self, random: &mut Random) -> Access {
        if self.left == 0 {
            self.left = 1 + random.below(40);
            self.at = random.below(self.span);
            self.step = pick(
                random,
                &[0, 8, 8, 64, 128, 4096, -8i64 as u64, -64i64 as u64],
            );
            self.kind = pick(
                random,
                &[
                    Kind::Load,
                    Kind::Load,
                    Kind::Load,
                    Kind::Store,
                    Kind::Store,
                    Kind::ReadModifyWrite,
                    Kind::Prefetch,
                    Kind::NonTemporal,
                ],
            );
        }
        self.left -= 1;
        self.at = self.at.wrapping_add(self.step) % self.span;
        let kind = match random.below(8) {
            0 => pick(random, &[Kind::Load, Kind::Store]),
            _ => self.kind,
        };
        let size = pick(random, &[0, 1, 4, 8, 8, 8, 16, 32, 64, 64, 200, 5000]);
        let address = self.base.saturating_add(self.at);
        Access {
            address,
            size,
            kind,
        }
    }
}

/// Counts that a case had, so that the test notices if none has them.
fn compare(seed: u64, had: &mut BTreeSet<String>) {
    let mut random = Random(seed);
    let geometry = geometry(&mut random);
    let options = options(&mut random, &geometry);
    geometry
        .check()
        .unwrap_or_else(|e| panic!("{e}: {geometry:?}"));
    let mut fast = Hierarchy::new(&geometry, &options).unwrap();
    let mut slow = Reference::new(&geometry, &options);
    let mut walks: Vec<Walk> = (0..options.cores).map(|_| Walk::new(&mut random)).collect();
    if random.below(2) == 0 {
        // Over the same memory.
        walks.iter_mut().for_each(|w| w.base = 7 << 20);
    }
    let policy = |l: &Level| options.replacement.unwrap_or(l.replacement);
    for step in 0..40 {
        let core = random.below(options.cores as u64) as usize;
        let batch: Vec<Access> = (0..random.below(60))
            .map(|_| walks[core].next(&mut random))
            .collect();
        match random.below(12) {
            0 => {
                fast.warm(core, &batch);
                slow.warm(core, &batch);
            }
            1 => {
                fast.fence(core);
                slow.fence(core);
            }
            2 if random.below(3) == 0 => {
                fast.reset_counters();
                slow.reset_counters();
            }
            _ => {
                fast.run(core, &batch);
                batch.iter().for_each(|&a| slow.access(core, a));
            }
        }
        let (found, expected) = (fast.counters(), slow.counters());
        assert_eq!(
            found, expected,
            "step {step} of CERE_MEMORY_SEED={seed} cargo test --release -p cere-memory --test all random\n\
             {geometry}\n{options:?}"
        );
        let of_levels = found.levels.iter().zip(&geometry.levels).map(|(c, l)| {
            let kind = format!("{:?} {:?} {}", policy(l), l.inclusion, l.shared);
            (kind, serde_json::to_value(c).unwrap())
        });
        let memory = serde_json::to_value(found.memory).unwrap();
        for (of, counts) in of_levels.chain([("memory".to_owned(), memory)]) {
            let counts = counts.as_object().unwrap().clone();
            let nonzero = counts
                .into_iter()
                .filter(|(_, n)| n.as_u64().is_some_and(|n| n > 0));
            had.extend(nonzero.map(|(name, _)| format!("{of} {name}")));
        }
    }
}

#[test]
fn every_counter_is_the_references() {
    let mut had = BTreeSet::new();
    if let Ok(seed) = std::env::var("CERE_MEMORY_SEED") {
        return compare(seed.parse().unwrap(), &mut had);
    }
    let cases = std::env::var("CERE_MEMORY_CASES").map_or(1000, |n| n.parse().unwrap());
    (0..cases).for_each(|seed| compare(seed, &mut had));
    // Three policies, three inclusions, shared and private, each with its ten counts; a victim level gets no
    // prefetch, an inclusive level farther away may have its lines. Memory has six.
    for policy in ["Lru", "TreePlru", "Random"] {
        for inclusion in ["None", "Inclusive", "Victim"] {
            for shared in [false, true] {
                let of = format!("{policy} {inclusion} {shared} ");
                let count = had.iter().filter(|name| name.starts_with(&of)).count();
                let all = if inclusion == "Victim" { 9 } else { 11 };
                assert_eq!(count, all, "{of}: {had:?}");
            }
        }
    }
    assert_eq!(had.iter().filter(|n| n.starts_with("memory ")).count(), 6);
}

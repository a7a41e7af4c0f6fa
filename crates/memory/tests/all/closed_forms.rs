//! Traffic that is known without a simulator: S bytes over a cache of C bytes (Ofenbeck, Steinmann, Caparros, Spampinato
//! and Püschel 2014, and the thesis on the roofline model behind it). Lines of 64 bytes, accesses of 8.

use cere_memory::geometry::{Inclusion, Level, Replacement, Tlb};
use cere_memory::{Access, Geometry, Hierarchy, Kind, Options};

const LINE: u64 = 64;
/// Bytes of the one cache, or of the last one.
const C: u64 = 64 << 10;

fn of(levels: Vec<Level>) -> Geometry {
    Geometry {
        name: "test".into(),
        levels,
        tlbs: Vec::new(),
    }
}

/// One level; two levels that hold C together in that the first is part of the second.
fn geometries() -> [Geometry; 3] {
    let last = Level::new("L2", C, 8);
    let inclusive = Level {
        inclusion: Inclusion::Inclusive,
        ..last.clone()
    };
    [
        of(vec![Level::new("L1", C, 8)]),
        of(vec![Level::new("L1", C, (C / LINE) as u32)]),
        of(vec![Level::new("L1", 4 << 10, 4), inclusive]),
    ]
}

fn new(geometry: &Geometry) -> Hierarchy {
    Hierarchy::new(geometry, &Options::default()).unwrap()
}

/// All 8-byte words of `size` bytes.
fn walk(memory: &mut Hierarchy, start: u64, size: u64, kind: Kind) {
    for at in (0..size).step_by(8) {
        let address = start + at;
        let size = 8;
        memory.access(
            0,
            Access {
                address,
                size,
                kind,
            },
        );
    }
}

/// Sizes in cache, at its size, one line more, and far beyond it.
const SIZES: [u64; 5] = [LINE, C / 2, C, C + LINE, 5 * C];

#[test]
fn read_is_s() {
    for geometry in geometries() {
        for s in SIZES {
            let mut memory = new(&geometry);
            walk(&mut memory, 1 << 20, s, Kind::Load);
            let found = memory.counters();
            assert_eq!(
                (found.memory.bytes_read, found.memory.bytes_written),
                (s, 0)
            );
            assert_eq!(found.footprint.bytes(), s);
            assert_eq!(found.footprint.pages, s.div_ceil(4096));
        }
    }
}

#[test]
fn write_is_s_and_what_the_cache_does_not_keep() {
    for geometry in geometries() {
        for s in SIZES {
            let mut memory = new(&geometry);
            walk(&mut memory, 1 << 20, s, Kind::Store);
            let found = memory.counters().memory;
            // In order from an aligned start, each set is filled evenly: exact to the byte.
            assert_eq!(found.bytes_written, s.saturating_sub(C), "{s}");
            assert_eq!(found.bytes_read, s);
        }
    }
}

#[test]
fn triad_is_three_s_and_the_third_of_the_cache() {
    for geometry in geometries() {
        // S a multiple of the page, so that the arrays' lines of equal index share a set and each set holds them in
        // turn, a third each.
        for s in [C / 4, C / 2, C, 5 * C] {
            let mut memory = new(&geometry);
            let at = |array: u64, i: u64| (1 << 30) + array * s + 8 * i;
            for i in 0..s / 8 {
                memory.access(0, Access::load(at(1, i), 8));
                memory.access(0, Access::load(at(2, i), 8));
                memory.access(0, Access::store(at(0, i), 8));
            }
            let found = memory.counters().memory;
            assert_eq!(found.bytes_read, 3 * s);
            let formula = s.saturating_sub(C / 3);
            // A set of w ways gets the lines b, c, a of index 0, then those of the next index that it has, and so on.
            // After k indices 3k lines came, and max(0, 3k - w) left, in the order b, c, a: a third of them, rounded
            // down, were a's and dirty.
            let last = geometry.levels.last().unwrap();
            let (ways, sets) = (u64::from(last.ways), last.sets());
            let lines = s / LINE;
            let dirty: u64 = (0..sets)
                .map(|set| {
                    let steps = (lines + sets - 1 - set) / sets;
                    (3 * steps).saturating_sub(ways) / 3
                })
                .sum();
            if (s / LINE).is_multiple_of(sets) || sets == 1 {
                assert_eq!(found.bytes_written, dirty * LINE, "{s} {geometry}");
            }
            // The formula is right up to one line of each set.
            assert!(
                found.bytes_written.abs_diff(formula) <= sets * LINE,
                "{s}: {} for {formula}; {geometry}",
                found.bytes_written
            );
        }
    }
}

#[test]
fn non_temporal_stores_are_s() {
    for geometry in geometries() {
        for s in SIZES {
            let mut memory = new(&geometry);
            // What is cached and dirty goes to memory before; what is cached and clean does not.
            memory.access(0, Access::store(1 << 20, 8));
            memory.access(0, Access::load((1 << 20) + s - 8, 8));
            let before = memory.counters().memory;
            walk(&mut memory, 1 << 20, s, Kind::NonTemporal);
            let found = memory.counters();
            assert_eq!(found.memory.bytes_read, before.bytes_read);
            assert_eq!(found.memory.bytes_written, s + LINE);
            assert_eq!(found.memory.bytes_non_temporal, s);
            assert_eq!(found.memory.combined_whole, s / LINE);
            assert_eq!(found.memory.combined_partial, 0);
        }
    }
    // Without levels, and in pieces that fill no line: what was written, whenever it leaves.
    let mut memory = new(&of(Vec::new()));
    for line in 0..100 {
        let access = Access {
            address: LINE * line + 4,
            size: 12,
            kind: Kind::NonTemporal,
        };
        memory.access(0, access);
    }
    assert_eq!(memory.counters().memory.bytes_written, 1200);
    assert_eq!(memory.counters().memory.combined_partial, 90);
    memory.fence(0);
    assert_eq!(memory.counters().memory.bytes_written, 1200);
    assert_eq!(memory.counters().memory.combined_partial, 100);
}

#[test]
fn strides() {
    // N accesses, stride d: a line each from 64 bytes on, below that d/64 of a line each.
    for (stride, n) in [(8, 4096), (16, 4096), (64, 4096), (128, 4096), (4096, 4096)] {
        let mut memory = new(&geometries()[0]);
        (0..n).for_each(|i| memory.access(0, Access::load(i * stride, 8)));
        let found = memory.counters();
        assert_eq!(found.levels[0].misses(), n * stride.min(LINE) / LINE);
        assert_eq!(found.footprint.pages, (n * stride).div_ceil(4096).min(n));
    }
    // A second pass over k lines whose stride is the distance of lines of one set: hits if they fit the 8 ways,
    // misses without exception if not.
    for (k, misses) in [(8, 8), (9, 18), (16, 32)] {
        let mut memory = new(&geometries()[0]);
        for _ in 0..2 {
            (0..k).for_each(|i| memory.access(0, Access::load(i * C / 8, 8)));
        }
        assert_eq!(memory.counters().levels[0].misses(), misses);
    }
}

#[test]
fn a_cycle_of_one_line_too_many_always_misses() {
    let lines = C / LINE;
    let cycle = |policy, count: u64| {
        let level = Level {
            replacement: policy,
            ..Level::new("L1", C, lines as u32)
        };
        let mut memory = new(&of(vec![level]));
        for pass in 0..10 {
            if pass == 1 {
                memory.reset_counters();
            }
            (0..count).for_each(|line| memory.access(0, Access::load(LINE * line, 8)));
        }
        memory.counters().levels[0].miss_rate().unwrap()
    };
    assert_eq!(cycle(Replacement::Lru, lines), 0.0);
    assert_eq!(cycle(Replacement::Lru, lines + 1), 1.0);
    // Random replacement keeps most: between passes one line is missing, and each miss drives out another.
    let random = cycle(Replacement::Random, lines + 1);
    assert!(random > 0.0 && random < 0.05, "{random}");
}

#[test]
fn a_pointer_chase_hits_if_it_fits() {
    // A permutation with one cycle over a power of two of lines: every line once a round.
    for (lines, misses) in [
        (C / LINE / 2, 0),
        (C / LINE, 0),
        (4 * C / LINE, 4 * C / LINE),
    ] {
        let mut memory = new(&geometries()[1]);
        let mut at = 0u64;
        for round in 0..2 {
            if round == 1 {
                memory.reset_counters();
            }
            for _ in 0..lines {
                memory.access(0, Access::load(at * LINE, 8));
                at = (at * 5 + 1) % lines;
            }
        }
        let found = memory.counters();
        assert_eq!(found.levels[0].misses(), misses);
        assert_eq!(found.footprint.lines, lines);
    }
}

#[test]
fn a_victim_cache_adds_its_size() {
    // Exclusive: lines of both levels together fit. Neither: those of the larger one.
    let second = |inclusion| Level {
        inclusion,
        ..Level::new("L2", C, (C / LINE) as u32)
    };
    for (inclusion, fits) in [(Inclusion::Victim, 2 * C), (Inclusion::None, C)] {
        for (size, misses) in [(fits, 0), (fits + LINE, fits / LINE + 1)] {
            let first = Level::new("L1", C, (C / LINE) as u32);
            let mut memory = new(&of(vec![first, second(inclusion)]));
            walk(&mut memory, 0, size, Kind::Load);
            memory.reset_counters();
            walk(&mut memory, 0, size, Kind::Load);
            let found = memory.counters();
            assert_eq!(found.levels[1].misses(), misses, "{inclusion:?} {size}");
            assert_eq!(found.memory.bytes_read, misses * LINE);
        }
    }
}

#[test]
fn page_walks() {
    let geometry = |tlbs| Geometry {
        tlbs,
        ..of(vec![Level::new("L1", C, 8)])
    };
    let tlb = |entries, ways| Tlb { entries, ways };
    let two = geometry(vec![tlb(64, 4), tlb(1536, 12)]);
    // Two passes over n pages, one access each: the second hits in the TLBs that hold n.
    for (pages, first, walks) in [(64, 64, 64), (65, 64 + 1 + 5, 65), (1536, 3072, 1536)] {
        let mut memory = new(&two);
        for _ in 0..2 {
            (0..pages).for_each(|p| memory.access(0, Access::load(4096 * p, 8)));
        }
        let found = memory.counters();
        // 65 pages over 16 sets of 4: one set has 5 pages, which drive each other out.
        assert_eq!((found.tlbs[0].misses, found.page_walks), (first, walks));
        assert_eq!(found.tlbs[0].hits, 2 * pages - first);
    }
    // The same 64 MiB in huge pages: 32 walks.
    let range = 0..64 << 20;
    let options = Options {
        huge: vec![range],
        ..Options::default()
    };
    let mut memory = Hierarchy::new(&two, &options).unwrap();
    (0..64 << 8).for_each(|p| memory.access(0, Access::load(4096 * p, 8)));
    assert_eq!(memory.counters().page_walks, 32);
}

#[test]
fn random_frames_change_sets_and_nothing_else() {
    // 4 MiB over a cache of 64 KiB with sets of one page: misses are the same. Half the cache: pages collide in some
    // sets, so a second pass misses sometimes (with identity never), and as often with the same seed.
    let level = Level::new("L1", 8 * C, 2);
    let misses = |seed, frames| {
        let options = Options {
            seed,
            frames,
            ..Options::default()
        };
        let mut memory = Hierarchy::new(&of(vec![level.clone()]), &options).unwrap();
        for _ in 0..2 {
            walk(&mut memory, 1 << 30, 4 * C, Kind::Load);
        }
        assert_eq!(memory.counters().footprint.lines, 4 * C / LINE);
        memory.counters().levels[0].misses() - 4 * C / LINE
    };
    use cere_memory::options::Frames::{Identity, Random};
    assert_eq!(misses(1, Identity), 0);
    let found: Vec<u64> = (1..5).map(|seed| misses(seed, Random)).collect();
    assert!(found.iter().all(|&m| m > 0), "{found:?}");
    assert_eq!(misses(3, Random), found[2]);
    assert!(found.iter().any(|&m| m != found[0]), "{found:?}");
}

#[test]
fn sampling_scales_up() {
    let geometry = of(vec![Level::new("L1", C, 8), Level::new("L2", 8 * C, 8)]);
    let count = |sampling, seed| {
        let options = Options {
            sampling,
            seed,
            ..Options::default()
        };
        let mut memory = Hierarchy::new(&geometry, &options).unwrap();
        let mut state = 9u64;
        for i in 0..400_000u64 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
            let line = (state >> 33) % (1 << 15);
            let access = match i % 3 {
                0 => Access::store(LINE * line, 8),
                _ => Access::load(LINE * line, 8),
            };
            memory.access(0, access);
        }
        memory.counters()
    };
    let exact = count(None, 0);
    // Every set: the same counts, without an error.
    let all = count(Some(1), 0);
    assert_eq!(
        (&all.levels, all.memory, all.footprint),
        (&exact.levels, exact.memory, exact.footprint)
    );
    let errors = all.sampling.unwrap();
    assert_eq!(
        (errors.bytes_read, errors.levels[1].misses, errors.skipped),
        (0.0, 0.0, 0)
    );
    let mut within = 0;
    for seed in 0..20 {
        let found = count(Some(8), seed);
        let sampling = found.sampling.unwrap();
        assert_eq!((sampling.simulated, sampling.of), (16, 128));
        let (read, error) = (found.memory.bytes_read as f64, sampling.bytes_read);
        assert!(error > 0.0 && error < 0.02 * read, "{error} of {read}");
        let off = (read - exact.memory.bytes_read as f64).abs();
        assert!(off < 5.0 * error, "{off} {error}");
        within += u32::from(off < 2.0 * error);
        assert_eq!(found.footprint.pages, exact.footprint.pages);
    }
    // 95 % are expected; 15 of 20 or fewer would come about once in 4000 times.
    assert!(within > 15, "{within} of 20");
}

#[test]
fn counts_saturate() {
    let mut counters = new(&geometries()[0]).counters();
    counters.levels[0].load_hits = u64::MAX;
    counters.levels[0].store_hits = 1;
    counters.levels[0].fills = u64::MAX / 2;
    assert_eq!(counters.levels[0].hits(), u64::MAX);
    assert_eq!(counters.levels[0].bytes_filled(), u64::MAX);
    let mut memory = new(&of(Vec::new()));
    memory.access(0, Access::load(u64::MAX - 3, u32::MAX));
    // Bytes beyond the end of the address space are left out.
    assert_eq!(memory.counters().memory.bytes_read, 4);
}

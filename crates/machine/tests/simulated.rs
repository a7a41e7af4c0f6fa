//! Probes and analysers on simulated machines, whose parameters are known.

use cere_format::machine::USABLE;
use cere_machine::Error;
use cere_machine::hierarchy::caches::{self, Effort, Wanted};
use cere_machine::hierarchy::fit::Placement;
use cere_machine::hierarchy::target::Target;
use cere_machine::hierarchy::{levels, tlb};
use cere_memory::geometry::{Inclusion, Level, Replacement, Tlb};
use cere_memory::options::{Frames, Prefetcher};
use cere_memory::{Access, Geometry, Hierarchy, Options};
use cere_timing::area::Pages;
use rand::{RngExt, SeedableRng, rngs::SmallRng};

/// A machine drawn by a seed.
struct Machine {
    geometry: Geometry,
    options: Options,
    /// Nanoseconds of a hit in each level, and of memory.
    latencies: Vec<f64>,
    /// Nanoseconds that a miss of each TLB adds.
    walks: [f64; 2],
    /// Probability that a neighbour disturbs a measurement.
    bursts: f64,
}

/// A machine as a target.
struct Simulated<'a> {
    machine: &'a Machine,
    memory: Hierarchy,
    random: SmallRng,
    /// The order that was chased last and its time without noise: a machine without noise repeats itself.
    last: (Vec<u32>, f64),
}

const BASE: u64 = 1 << 30;

impl<'a> Simulated<'a> {
    fn new(machine: &'a Machine) -> Self {
        let memory = Hierarchy::new(&machine.geometry, &machine.options).expect("a machine");
        Self {
            machine,
            memory,
            random: SmallRng::seed_from_u64(9),
            last: (Vec::new(), 0.0),
        }
    }

    fn pass(&mut self, order: &[u32]) -> f64 {
        self.memory.reset_counters();
        for offset in order {
            self.memory
                .access(0, Access::load(BASE + 8 * u64::from(*offset), 8));
        }
        let counters = self.memory.counters();
        let n = order.len() as f64;
        let mut time = self.machine.latencies[0];
        for (at, level) in counters.levels.iter().enumerate() {
            let step = self.machine.latencies[at + 1] - self.machine.latencies[at];
            time += step * level.misses() as f64 / n;
        }
        for (tlb, walk) in counters.tlbs.iter().zip(self.machine.walks) {
            time += walk * tlb.misses as f64 / n;
        }
        time
    }

    /// A time with the noise of the clock, and with a neighbour now and then.
    fn disturbed(&mut self, time: f64) -> f64 {
        let burst = match self.random.random::<f64>() < self.machine.bursts {
            true => 1.0 + 2.0 * self.random.random::<f64>(),
            false => 1.0,
        };
        time * (1.0 + 0.01 * self.random.random::<f64>()) * burst
    }
}

impl Target for Simulated<'_> {
    fn take(&mut self, bytes: usize, pages: Pages) -> Result<f64, Error> {
        let mut options = self.machine.options.clone();
        if pages == Pages::Huge {
            let end = BASE + (bytes as u64).next_multiple_of(2 << 20);
            options.huge = std::iter::once(BASE..end).collect();
        }
        self.memory = Hierarchy::new(&self.machine.geometry, &options).expect("a machine");
        self.last = (Vec::new(), 0.0);
        Ok(f64::from(u8::from(pages == Pages::Huge)))
    }

    fn chase(&mut self, order: &[u32], loads: usize) -> f64 {
        if self.last.0 != order {
            // Random replacement settles in some passes.
            for _ in 0..=loads / order.len() {
                self.pass(order);
            }
            self.last = (order.to_vec(), self.pass(order));
        }
        self.disturbed(self.last.1)
    }

    fn cold(&mut self, order: &[u32]) -> Option<f64> {
        let fresh =
            Hierarchy::new(&self.machine.geometry, &self.machine.options).expect("a machine");
        self.memory = fresh;
        let time = self.pass(order);
        Some(self.disturbed(time))
    }
}

fn pick<T: Copy>(random: &mut SmallRng, from: &[T]) -> T {
    from[random.random_range(0..from.len())]
}

/// What was read off a machine.
#[derive(Default)]
struct Judged {
    /// Values that are right.
    right: usize,
    /// Wrong, with a confidence that other commands rely on.
    wrong: Vec<String>,
    /// Wrong, and said to be unsure.
    unsure: Vec<String>,
    /// Not observed.
    unseen: Vec<String>,
}

impl Judged {
    fn add(&mut self, what: String, found: Option<f64>, there: f64, tolerance: f64, sure: f64) {
        match found {
            None => self.unseen.push(what),
            Some(found) if (found / there - 1.0).abs() <= tolerance => self.right += 1,
            Some(found) if sure >= USABLE => {
                self.wrong.push(format!("{what}: {found} for {there}"))
            }
            Some(found) => self.unsure.push(format!("{what}: {found} for {there}")),
        }
    }
}

impl Machine {
    fn drawn(seed: u64) -> Self {
        let mut r = SmallRng::seed_from_u64(seed);
        let line = pick(&mut r, &[64u32, 64, 64, 128]);
        let policies = [
            Replacement::Lru,
            Replacement::Lru,
            Replacement::TreePlru,
            Replacement::Random,
        ];
        let level = |name: &str,
                     size: u64,
                     ways: u32,
                     replacement: Replacement,
                     inclusion: Inclusion,
                     shared: bool| Level {
            line,
            replacement: match ways.is_power_of_two() {
                true => replacement,
                false => Replacement::Lru,
            },
            inclusion,
            shared,
            ..Level::new(name, size, ways)
        };
        // A first cache is virtually indexed: its way is a page at most.
        let ways = pick(&mut r, &[4u32, 8, 8, 12, 16]);
        let first = 4096 * u64::from(ways);
        let policy = pick(&mut r, &policies);
        let mut levels = vec![level("L1", first, ways, policy, Inclusion::None, false)];
        let ways = pick(&mut r, &[4u32, 8, 8, 10, 16]);
        let set = u64::from(ways) * u64::from(line);
        let second = set * (6 * first / set).next_power_of_two().max(512);
        levels.push(level(
            "L2",
            second,
            ways,
            pick(&mut r, &policies),
            Inclusion::None,
            false,
        ));
        if r.random_bool(0.7) {
            let ways = pick(&mut r, &[12u32, 16]);
            let sets = (8 * second / (u64::from(ways) * u64::from(line))).next_power_of_two();
            let third = sets * u64::from(ways) * u64::from(line);
            let inclusion = pick(&mut r, &[Inclusion::None, Inclusion::Victim]);
            levels.push(level(
                "L3",
                third,
                ways,
                pick(&mut r, &policies[..3]),
                inclusion,
                true,
            ));
        }
        let mut latencies = vec![1.0 + r.random::<f64>()];
        for factor in [3.0, 3.5, 4.0].iter().take(levels.len()) {
            let last = latencies[latencies.len() - 1];
            latencies.push(last * factor * (0.9 + 0.3 * r.random::<f64>()));
        }
        let entries = pick(&mut r, &[32u32, 64, 96]);
        let tlbs = vec![
            Tlb {
                entries,
                ways: pick(&mut r, &[4, entries]),
            },
            Tlb {
                entries: pick(&mut r, &[512, 1024, 1536, 2048]),
                ways: 8,
            },
        ];
        let prefetcher = r.random_bool(0.3).then_some(Prefetcher {
            level: 1,
            streams: 8,
            distance: 4,
            degree: 1,
        });
        let frames = pick(&mut r, &[Frames::Random, Frames::Random, Frames::Identity]);
        let options = Options {
            seed,
            frames,
            prefetcher,
            ..Options::default()
        };
        let geometry = Geometry {
            name: format!("machine {seed}"),
            levels,
            tlbs,
        };
        Self {
            geometry,
            options,
            latencies,
            walks: [1.7, 14.0],
            bursts: 0.1,
        }
    }

    /// What is read off, against what is there; what differs.
    fn judged(&self) -> Judged {
        let mut target = Simulated::new(self);
        let last = self.geometry.levels.last().expect("a level").size as usize;
        let effort = Effort {
            repeats: 4,
            draws: 16,
            per_octave: 6,
            limit: 3 * last,
            loads: 1 << 11,
            over: &|| false,
        };
        let mut judged = Judged::default();
        let line = caches::line(&mut target, &effort)
            .expect("memory")
            .read()
            .expect("a step")
            .0;
        let there = f64::from(self.geometry.levels[0].line);
        judged.add("line".into(), Some(line as f64), there, 0.0, 1.0);
        let line = self.geometry.levels[0].line as usize;
        let curve = caches::sizes(&mut target, line, &effort).expect("memory");
        let plateaus = levels::plateaus(&curve);
        if std::env::var_os("CERE_CURVES").is_some() {
            println!("{} {curve:.2?}\n{plateaus:?}", self.geometry);
        }
        let there = self.latencies.len();
        let levels = (plateaus.len() >= there).then_some(plateaus.len() as f64);
        judged.add("levels".into(), levels, there as f64, 0.0, 1.0);
        for (at, (pair, level)) in plateaus.windows(2).zip(&self.geometry.levels).enumerate() {
            let size = levels::size(&curve, &pair[0], &pair[1], 4096.0, &[Placement::Random])
                .expect("a size");
            // A victim level holds its lines beside those of the level before it.
            let before = if level.inclusion == Inclusion::Victim {
                self.geometry.levels[at - 1].size
            } else {
                0
            };
            let tolerance = [0.0, 0.125, 0.25][at];
            judged.add(
                format!("size {} {size:?}", level.name),
                Some(size.size),
                (level.size + before) as f64,
                tolerance,
                size.confidence,
            );
        }
        if plateaus.len() > 2 {
            let mut before = None;
            for (at, from, to) in [(0, 512, 32 << 10), (1, 2, 1 << 20)] {
                let from = before.map_or(from, |(_, way)| from * way);
                let wanted = Wanted {
                    times: (plateaus[at].time, plateaus[at + 1].time),
                    before,
                    strides: (from, to),
                };
                let found = caches::ways(&mut target, line, &wanted, &effort).expect("memory");
                let level = &self.geometry.levels[at];
                judged.add(
                    format!("ways {} {found:?}", level.name),
                    found.found.map(|f| f64::from(f.0)),
                    f64::from(level.ways),
                    0.0,
                    1.0,
                );
                before = found.found;
                if before.is_none() {
                    break;
                }
            }
        }
        let effort = Effort {
            limit: 64 << 20,
            ..effort
        };
        let curve = tlb::page(&mut target, line, &effort).expect("memory");
        let page = tlb::read_page(&curve);
        let (found, sure) = page.map_or((None, 0.0), |p| (Some(p.0 as f64), p.1));
        judged.add(format!("page {curve:?}"), found, 4096.0, 0.0, sure);
        let found = tlb::entries(
            &mut target,
            line,
            self.geometry.levels[1].size as usize,
            &effort,
        )
        .expect("memory");
        if std::env::var_os("CERE_CURVES").is_some() {
            println!(
                "{:.2?}\n{:?}",
                found.added(),
                levels::plateaus(&found.added())
            );
        }
        let found = found.read();
        let levels = (found.len() >= 2).then_some(found.len() as f64);
        judged.add("TLBs".into(), levels, 2.0, 0.0, 1.0);
        for (level, tlb) in found.iter().zip(&self.geometry.tlbs) {
            judged.add(
                format!("TLB {level:?}"),
                Some(level.entries.size),
                f64::from(tlb.entries),
                0.1,
                level.entries.confidence,
            );
        }
        judged
    }

    fn describe(&self) -> String {
        let prefetcher = self.options.prefetcher.is_some();
        format!(
            "{} frames {:?} prefetcher {prefetcher}",
            self.geometry, self.options.frames
        )
    }
}

/// A number of the environment.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// At most one machine in ten has a value that claims to be sure and is wrong. What is wrong, unsure or not observed is listed.
#[test]
fn machines() {
    let count = number("CERE_MACHINES").unwrap_or(4);
    let first = number("CERE_FIRST").unwrap_or(0);
    let next = std::sync::atomic::AtomicU64::new(first);
    let work = || {
        let mut all = Vec::new();
        loop {
            let seed = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if seed >= first + count {
                break all;
            }
            let machine = Machine::drawn(seed);
            all.push((machine.judged(), machine.describe()));
        }
    };
    let all: Vec<(Judged, String)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        let ended = threads.into_iter().map(|t| t.join().expect("a thread"));
        ended.flatten().collect()
    });
    for (judged, machine) in &all {
        println!("{machine}: {} right", judged.right);
        let lists = [
            ("WRONG", &judged.wrong),
            ("unsure", &judged.unsure),
            ("unseen", &judged.unseen),
        ];
        for (word, list) in lists {
            list.iter().for_each(|line| println!("    {word} {line}"));
        }
    }
    let sum = |of: fn(&Judged) -> usize| all.iter().map(|(judged, _)| of(judged)).sum::<usize>();
    let wrong = all
        .iter()
        .filter(|(judged, _)| !judged.wrong.is_empty())
        .count();
    println!(
        "{count} machines: {} values right, {} wrong and sure, {} wrong and unsure, {} not observed",
        sum(|j| j.right),
        sum(|j| j.wrong.len()),
        sum(|j| j.unsure.len()),
        sum(|j| j.unseen.len())
    );
    assert!(
        10 * wrong as u64 <= count,
        "{wrong} of {count} machines have a wrong value that claims to be sure"
    );
}

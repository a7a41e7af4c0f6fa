//! The whole hierarchy: probes in order, what was read off, how far it can be relied on.

use super::caches::{self, Effort, Wanted, Ways};
use super::fit::Placement;
use super::judge::{Level, found, judge, ways_found};
use super::levels::{self, Plateau, Size};
use super::target::{Live, Target, pages};
use super::tlb;
use crate::load::Others;
use crate::session::Session;
use crate::{Error, operations};
use cere_format::machine::{Cache, Curve, Found, Tlb};
use cere_timing::area::{Pages, SMALL};

/// What was measured.
#[derive(Debug, Default)]
pub struct Measured {
    /// Bytes of a line.
    pub line_bytes: Option<u64>,
    /// Bytes of a page.
    pub page_bytes: Option<u64>,
    /// Caches, the nearest first.
    pub caches: Vec<Cache>,
    /// TLBs.
    pub tlb: Vec<Tlb>,
    /// Nanoseconds of a load from memory.
    pub memory_ns: Option<f64>,
    /// Likewise, in dependent integer additions.
    pub memory_adds: Option<f64>,
    /// Whether the kernel gives huge pages.
    pub huge_pages: bool,
    /// How all this was found.
    pub found: Vec<Found>,
    /// Curves.
    pub curves: Vec<Curve>,
    /// What else a user should know.
    pub notes: Vec<String>,
}

/// Bytes of the largest working set, of a quick and of a full measurement.
const LIMITS: (usize, usize) = (48 << 20, 256 << 20);
/// Line that is taken where none could be read.
const LINE: usize = 64;
/// A level is a cache if it is at least this much faster than memory, read in the same way.
const FASTER: f64 = 0.8;

/// Seconds of the parts, out of those of the whole: sizes, ways, latencies, TLBs.
const SHARES: [f64; 4] = [0.45, 0.15, 0.15, 0.25];

/// Measures caches and TLBs in at most `seconds`. `available`: bytes that may be used, at most; `told`: caches as the system describes
/// them.
pub fn measure(
    session: &Session,
    seconds: f64,
    available: u64,
    told: &[cere_format::caches::Cache],
) -> Result<Measured, Error> {
    let mut target = Live::new(session)?;
    let began = session.elapsed();
    let until = |part: usize| began + seconds * SHARES[..=part].iter().sum::<f64>();
    let limit = session
        .pick(LIMITS.0, LIMITS.1)
        .min(available as usize / 2)
        .max(8 << 20);
    let end = std::cell::Cell::new(until(0));
    let over = || session.elapsed() > end.get();
    let effort = Effort {
        repeats: session.pick(3, 5),
        draws: session.pick(8, 32),
        per_octave: session.pick(4, 6),
        limit,
        loads: session.pick(1 << 15, 1 << 16),
        over: &over,
    };
    let mut measured = Measured::default();
    let line = read_line(&mut target, &effort, session, &mut measured)?;

    session.step("cache sizes");
    let others = Others::watch();
    let curve = caches::sizes(&mut target, line, &effort)?;
    let memory = target_in_pages(&mut target, line, &effort)?;
    let sizes = read_sizes(&curve, memory);
    let trust = others.trust();

    end.set(until(1));
    session.step("associativity");
    let ways = read_ways(&mut target, line, &sizes, &effort)?;

    end.set(until(2));
    session.step("latencies");
    let mut before = 0;
    for (at, level) in sizes.iter().enumerate() {
        let size = level.size.size as usize;
        let told = told.iter().find(|c| c.level == at as u32 + 1);
        // Of a shared level one core cannot use more than there is.
        let size = match told {
            Some(told) if at >= 2 => size.min(told.size as usize),
            _ => size,
        };
        // Large levels take long, and their loads hardly depend on the core's clock.
        let rounds = if at < 2 { 5 } else { 1 };
        let latency = beside_additions(session, rounds, || {
            caches::latency(&mut target, line, (before, size), &effort)
        })?;
        measured.caches.push(cache(at, size, latency, told));
        let way = ways.get(at).and_then(|ways| ways.found);
        let (confidence, how) = judge(at, level, way, told, size, trust);
        measured
            .found
            .push(found(format!("caches[{at}].size_bytes"), confidence, how));
        measured.found.push(ways_found(
            at,
            level,
            &ways,
            way.filter(|_| at < 2),
            confidence,
        ));
        let cache = &mut measured.caches[at];
        cache.confidence = confidence;
        cache.ways = way.map(|(ways, _)| ways);
        before = size;
    }
    measured.curves.push(size_curve(curve, &sizes));
    measured.memory_ns = caches::memory_latency(&mut target, line, &effort)?;
    let add = operations::add_nanoseconds(session)?;
    measured.memory_adds = measured.memory_ns.map(|ns| ns / add);
    let how = "dependent loads of lines flushed before, one and two a page, so that the cost of the page is taken off";
    measured.found.push(found(
        "memory.latency_ns",
        trust * f64::from(u8::from(measured.memory_ns.is_some())),
        how,
    ));

    end.set(until(3));
    session.step("TLBs");
    let second = measured
        .caches
        .get(1)
        .map_or(1 << 20, |cache| cache.size_bytes as usize);
    read_tlbs(&mut target, line, second, &effort, &mut measured)?;
    measured.huge_pages = target.take(4 << 20, Pages::Huge)? > 0.9;
    if !measured.huge_pages {
        measured.notes.push(
            "the kernel gave no huge pages: ways of the second cache are not observable".into(),
        );
    }
    if session.elapsed() > began + seconds {
        measured.notes.push("time was over before all points were measured: values of the larger levels are less sure".into());
    }
    Ok(measured)
}

fn read_line(
    target: &mut Live,
    effort: &Effort,
    session: &Session,
    measured: &mut Measured,
) -> Result<usize, Error> {
    session.step("line size");
    let others = Others::watch();
    let line = caches::line(target, effort)?;
    let mark = |at: Option<u64>| {
        at.map(|x| vec![(x as f64, "line".to_owned())])
            .unwrap_or_default()
    };
    let read = line.read();
    let how = match read {
        Some((line, _, far)) if far > line => format!(
            "loads in pairs: the biggest step between the first two caches; memory brings {far} bytes at once (neighbouring lines)"
        ),
        Some(_) => {
            "loads in pairs: the biggest step, between the first two caches and beyond them".into()
        }
        None => "no step in the time of pairs: not observed".into(),
    };
    let confidence = read.map_or(0.0, |(_, step, _)| {
        step.clearness() * others.trust().max(0.8)
    });
    measured.found.push(found("line_bytes", confidence, how));
    measured.line_bytes = read.map(|r| r.0);
    for (name, points) in [("second cache", line.near), ("memory", line.far)] {
        measured.curves.push(Curve {
            name: format!("Loads in pairs, {name}"),
            x: "Extent of the pair (bytes)".into(),
            y: "Time of a load (ns)".into(),
            points,
            marks: mark(measured.line_bytes),
        });
    }
    Ok(measured.line_bytes.map_or(LINE, |line| line as usize))
}

/// Nanoseconds of a load from memory in the order of the curve of sizes; infinite where lines cannot be flushed.
fn target_in_pages(target: &mut dyn Target, line: usize, effort: &Effort) -> Result<f64, Error> {
    let bytes = effort.limit.min(8 << 20);
    target.take(bytes, Pages::Small)?;
    let order = pages(bytes, bytes, line, 7);
    let times = (0..effort.repeats).filter_map(|_| target.cold(&order));
    Ok(times.fold(f64::INFINITY, f64::min))
}

fn read_sizes(curve: &[(f64, f64)], memory: f64) -> Vec<Level> {
    let plateaus = levels::plateaus(curve);
    let caches = plateaus
        .iter()
        .take_while(|p| p.time < FASTER * memory)
        .count();
    let last = curve.last().map_or(0.0, |p| p.0);
    let level = |at: usize| {
        let near = plateaus[at].clone();
        let behind = Plateau {
            from: 2.0 * last,
            to: 2.0 * last,
            time: memory,
        };
        let far = plateaus.get(at + 1).cloned().unwrap_or(behind);
        let ends = at + 1 < plateaus.len();
        let mut size = levels::size(curve, &near, &far, SMALL as f64, &[Placement::Random])?;
        if !ends {
            size = Size {
                size: near.to,
                fit: None,
                confidence: 0.2,
            };
        }
        Some(Level {
            near,
            far,
            size,
            ends,
        })
    };
    (0..caches.min(4)).filter_map(level).collect()
}

fn read_ways(
    target: &mut dyn Target,
    line: usize,
    sizes: &[Level],
    effort: &Effort,
) -> Result<Vec<Ways>, Error> {
    let mut all: Vec<Ways> = Vec::new();
    for (at, (from, to)) in [(512, 32 << 10), (2, 1 << 20)].into_iter().enumerate() {
        let before = all.last().and_then(|ways| ways.found);
        let (Some(level), true) = (sizes.get(at), at == 0 || before.is_some()) else {
            break;
        };
        let strides = (before.map_or(from, |(_, way)| from * way), to);
        let wanted = Wanted {
            times: (level.near.time, level.far.time),
            before,
            strides,
        };
        all.push(caches::ways(target, line, &wanted, effort)?);
    }
    Ok(all)
}

/// The least nanoseconds that `latency` gives in some rounds, and the median of its ratio to additions before and after it: the clock
/// of the core changes within milliseconds.
fn beside_additions(
    session: &Session,
    rounds: usize,
    mut latency: impl FnMut() -> Result<f64, Error>,
) -> Result<(f64, f64), Error> {
    let (mut least, mut ratios) = (f64::INFINITY, Vec::new());
    for _ in 0..rounds {
        let before = operations::add_nanoseconds(session)?;
        let found = latency()?;
        let after = operations::add_nanoseconds(session)?;
        least = least.min(found);
        ratios.push(2.0 * found / (before + after));
    }
    Ok((
        least,
        cere_timing::stats::median(&ratios).unwrap_or(f64::NAN),
    ))
}

fn cache(
    at: usize,
    size: usize,
    (latency_ns, latency_adds): (f64, f64),
    told: Option<&cere_format::caches::Cache>,
) -> Cache {
    Cache {
        level: at as u32 + 1,
        kind: told
            .map_or(if at == 0 { "Data" } else { "Unified" }, |c| &c.kind)
            .to_owned(),
        size_bytes: size as u64,
        latency_ns,
        latency_adds,
        system_bytes: told.map(|c| c.size),
        ..Cache::default()
    }
}

fn size_curve(points: Vec<(f64, f64)>, sizes: &[Level]) -> Curve {
    let mark = |(at, level): (usize, &Level)| (level.size.size, format!("L{}", at + 1));
    Curve {
        name: "Dependent loads by working set".into(),
        x: "Working set (bytes)".into(),
        y: "Time of a load (ns)".into(),
        points,
        marks: sizes.iter().enumerate().map(mark).collect(),
    }
}

fn read_tlbs(
    target: &mut Live,
    line: usize,
    second: usize,
    effort: &Effort,
    measured: &mut Measured,
) -> Result<(), Error> {
    let others = Others::watch();
    let wide = Effort {
        limit: effort.limit.max(256 << 20),
        per_octave: 8,
        ..*effort
    };
    let curve = tlb::page(target, line, &wide)?;
    let read = tlb::read_page(&curve);
    measured.page_bytes = read.map(|r| r.0);
    let clear = read.map_or(0.0, |(_, confidence)| confidence);
    let how = "loads in pairs, in the two halves of a block, against the same loads apart: the last block whose second load finds the page";
    measured
        .found
        .push(found("page_bytes", clear * others.trust().max(0.5), how));
    measured.curves.push(Curve {
        name: "Loads in pairs in one block, over the same loads apart".into(),
        x: "Block (bytes)".into(),
        y: "Ratio of times".into(),
        points: curve,
        marks: measured
            .page_bytes
            .map(|x| vec![(x as f64, "page".to_owned())])
            .unwrap_or_default(),
    });
    let entries = tlb::entries(target, line, second, &wide)?;
    let trust = others.trust();
    let levels = entries.read();
    for (at, level) in levels.iter().enumerate() {
        let confidence = level.entries.confidence * trust;
        measured.tlb.push(Tlb {
            level: at as u32 + 1,
            entries: level.entries.size as u64,
            miss_ns: level.miss,
            confidence,
        });
        let how = match level.entries.fit {
            Some(fit) => format!(
                "lines in pages of their own against as many close together; the rise fits {} sets of {} ways",
                fit.sets, fit.ways
            ),
            None => "lines in pages of their own against as many close together: one step".into(),
        };
        measured
            .found
            .push(found(format!("tlb[{at}].entries"), confidence, how));
    }
    if levels.is_empty() {
        measured.found.push(found(
            "tlb",
            0.0,
            "no step in the time of lines in pages of their own: not observed",
        ));
    }
    measured.curves.push(Curve {
        name: "What pages add".into(),
        x: "Lines, each in a page of its own".into(),
        y: "Time of a load less that of lines close together (ns)".into(),
        points: entries.added(),
        marks: levels
            .iter()
            .enumerate()
            .map(|(at, level)| (level.entries.size, format!("TLB {}", at + 1)))
            .collect(),
    });
    Ok(())
}

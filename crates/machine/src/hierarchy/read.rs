//! The whole hierarchy: probes in order, what was read off, how far it can be relied on.

use super::caches::{self, Effort, Wanted, Ways};
use super::fit::Placement;
use super::judge::{Level, judge, ways_found};
use super::levels::{self, Plateau, Size};
use super::target::{Live, Target, pages};
use super::tlb;
use crate::document::{curve, found};
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
    let target = Live::new(session)?;
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
    let mut reading = Reading {
        session,
        target,
        effort,
        line: LINE,
        measured: Measured::default(),
    };
    reading.read_line()?;
    let (sizes, trust) = reading.read_sizes()?;
    end.set(until(1));
    let ways = reading.read_ways(&sizes)?;
    end.set(until(2));
    reading.read_caches(&sizes, &ways, told, trust)?;
    reading.read_memory(trust)?;
    end.set(until(3));
    reading.read_tlbs()?;
    reading.read_huge_pages()?;
    let mut measured = reading.measured;
    if session.elapsed() > began + seconds {
        measured.notes.push("time was over before all points were measured: values of the larger levels are less sure".into());
    }
    Ok(measured)
}

/// A measurement in progress.
struct Reading<'a> {
    session: &'a Session<'a>,
    target: Live<'a>,
    effort: Effort<'a>,
    /// Bytes of a line, as far as they are known.
    line: usize,
    measured: Measured,
}

impl Reading<'_> {
    fn found(&mut self, what: impl Into<String>, confidence: f64, how: impl Into<String>) {
        self.measured.found.push(found(what, confidence, how));
    }

    fn curve(&mut self, titles: [&str; 3], points: Vec<(f64, f64)>, marks: Vec<(f64, String)>) {
        self.measured.curves.push(curve(titles, points, marks));
    }

    fn read_line(&mut self) -> Result<(), Error> {
        self.session.step("line size");
        let others = Others::watch();
        let line = caches::line(&mut self.target, &self.effort)?;
        let read = line.read();
        let how = match read {
            Some((line, _, far)) if far > line => format!(
                "loads in pairs: the biggest step between the first two caches; memory brings {far} bytes at once (neighbouring lines)"
            ),
            Some(_) => {
                "loads in pairs: the biggest step, between the first two caches and beyond them"
                    .into()
            }
            None => "no step in the time of pairs: not observed".into(),
        };
        let confidence = read.map_or(0.0, |(_, step, _)| {
            step.clearness() * others.trust().max(0.8)
        });
        self.found("line_bytes", confidence, how);
        let bytes = read.map(|r| r.0);
        for (name, points) in [("second cache", line.near), ("memory", line.far)] {
            let name = format!("Loads in pairs, {name}");
            let titles: [&str; 3] = [&name, "Extent of the pair (bytes)", "Time of a load (ns)"];
            self.curve(titles, points, mark(bytes, "line"));
        }
        self.measured.line_bytes = bytes;
        self.line = bytes.map_or(LINE, |line| line as usize);
        Ok(())
    }

    /// The levels by the time of loads by working set, and how far others leave it to be trusted.
    fn read_sizes(&mut self) -> Result<(Vec<Level>, f64), Error> {
        self.session.step("cache sizes");
        let others = Others::watch();
        let curve = caches::sizes(&mut self.target, self.line, &self.effort)?;
        let memory = target_in_pages(&mut self.target, self.line, &self.effort)?;
        let sizes = levels_of(&curve, memory);
        let mark = |(at, level): (usize, &Level)| (level.size.size, format!("L{}", at + 1));
        let marks = sizes.iter().enumerate().map(mark).collect();
        let titles: [&str; 3] = [
            "Dependent loads by working set",
            "Working set (bytes)",
            "Time of a load (ns)",
        ];
        self.curve(titles, curve, marks);
        Ok((sizes, others.trust()))
    }

    fn read_ways(&mut self, sizes: &[Level]) -> Result<Vec<Ways>, Error> {
        self.session.step("associativity");
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
            all.push(caches::ways(
                &mut self.target,
                self.line,
                &wanted,
                &self.effort,
            )?);
        }
        Ok(all)
    }

    /// The caches of these sizes and ways, with their latencies.
    fn read_caches(
        &mut self,
        sizes: &[Level],
        ways: &[Ways],
        told: &[cere_format::caches::Cache],
        trust: f64,
    ) -> Result<(), Error> {
        self.session.step("latencies");
        let mut before = 0;
        for (at, level) in sizes.iter().enumerate() {
            let told = told.iter().find(|c| c.level == at as u32 + 1);
            // Of a shared level one core cannot use more than there is.
            let size = match told {
                Some(told) if at >= 2 => (level.size.size as usize).min(told.size as usize),
                _ => level.size.size as usize,
            };
            // Large levels take long, and their loads hardly depend on the core's clock.
            let rounds = if at < 2 { 5 } else { 1 };
            let (latency_ns, latency_adds) = beside_additions(self.session, rounds, || {
                caches::latency(&mut self.target, self.line, (before, size), &self.effort)
            })?;
            let way = ways.get(at).and_then(|ways| ways.found);
            let (confidence, how) = judge(at, level, way, told, size, trust);
            self.found(format!("caches[{at}].size_bytes"), confidence, how);
            let observable = way.filter(|_| at < 2);
            let how_ways = ways_found(at, level, ways, observable, confidence);
            self.measured.found.push(how_ways);
            let kind = if at == 0 { "Data" } else { "Unified" };
            self.measured.caches.push(Cache {
                level: at as u32 + 1,
                kind: told.map_or(kind, |c| &c.kind).to_owned(),
                size_bytes: size as u64,
                latency_ns,
                latency_adds,
                system_bytes: told.map(|c| c.size),
                confidence,
                ways: way.map(|(ways, _)| ways),
                ..Cache::default()
            });
            before = size;
        }
        Ok(())
    }

    fn read_memory(&mut self, trust: f64) -> Result<(), Error> {
        let latency = caches::memory_latency(&mut self.target, self.line, &self.effort)?;
        let add = operations::add_nanoseconds(self.session);
        self.measured.memory_ns = latency;
        self.measured.memory_adds = latency.map(|ns| ns / add);
        let how = "dependent loads of lines flushed before, one and two a page, so that the cost of the page is taken off";
        let confidence = if latency.is_some() { trust } else { 0.0 };
        self.found("memory.latency_ns", confidence, how);
        Ok(())
    }

    /// The size of a page, and the levels of TLBs.
    fn read_tlbs(&mut self) -> Result<(), Error> {
        self.session.step("TLBs");
        let others = Others::watch();
        let wide = Effort {
            limit: self.effort.limit.max(256 << 20),
            per_octave: 8,
            ..self.effort
        };
        let curve = tlb::page(&mut self.target, self.line, &wide)?;
        let read = tlb::read_page(&curve);
        let clear = read.map_or(0.0, |(_, confidence)| confidence);
        let how = "loads in pairs, in the two halves of a block, against the same loads apart: the last block whose second load finds the page";
        self.found("page_bytes", clear * others.trust().max(0.5), how);
        self.measured.page_bytes = read.map(|r| r.0);
        let titles: [&str; 3] = [
            "Loads in pairs in one block, over the same loads apart",
            "Block (bytes)",
            "Ratio of times",
        ];
        self.curve(titles, curve, mark(self.measured.page_bytes, "page"));
        let second = self.measured.caches.get(1);
        let second = second.map_or(1 << 20, |cache| cache.size_bytes as usize);
        let entries = tlb::entries(&mut self.target, self.line, second, &wide)?;
        let trust = others.trust();
        let levels = entries.read();
        for (at, level) in levels.iter().enumerate() {
            let confidence = level.entries.confidence * trust;
            self.measured.tlb.push(Tlb {
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
                None => {
                    "lines in pages of their own against as many close together: one step".into()
                }
            };
            self.found(format!("tlb[{at}].entries"), confidence, how);
        }
        if levels.is_empty() {
            let how = "no step in the time of lines in pages of their own: not observed";
            self.found("tlb", 0.0, how);
        }
        let marks = (1..).zip(&levels);
        let marks = marks.map(|(number, level)| (level.entries.size, format!("TLB {number}")));
        let titles: [&str; 3] = [
            "What pages add",
            "Lines, each in a page of its own",
            "Time of a load less that of lines close together (ns)",
        ];
        self.curve(titles, entries.added(), marks.collect());
        Ok(())
    }

    fn read_huge_pages(&mut self) -> Result<(), Error> {
        self.measured.huge_pages = self.target.take(4 << 20, Pages::Huge)? > 0.9;
        if !self.measured.huge_pages {
            self.measured.notes.push(
                "the kernel gave no huge pages: ways of the second cache are not observable".into(),
            );
        }
        Ok(())
    }
}

/// A mark at `bytes`, if they are known.
fn mark(bytes: Option<u64>, word: &str) -> Vec<(f64, String)> {
    let mark = |bytes| (bytes as f64, word.to_owned());
    bytes.map(mark).into_iter().collect()
}

/// Nanoseconds of a load from memory in the order of the curve of sizes; infinite where lines cannot be flushed.
fn target_in_pages(target: &mut dyn Target, line: usize, effort: &Effort) -> Result<f64, Error> {
    let bytes = effort.limit.min(8 << 20);
    target.take(bytes, Pages::Small)?;
    let order = pages(bytes, bytes, line, 7);
    let times = (0..effort.repeats).filter_map(|_| target.cold(&order));
    Ok(times.fold(f64::INFINITY, f64::min))
}

/// The caches on the curve of loads by working set, over which loads from memory take `memory`.
fn levels_of(curve: &[(f64, f64)], memory: f64) -> Vec<Level> {
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

/// The least nanoseconds that `latency` gives in some rounds, and the median of its ratio to additions before and after it: the clock
/// of the core changes within milliseconds.
fn beside_additions(
    session: &Session,
    rounds: usize,
    mut latency: impl FnMut() -> Result<f64, Error>,
) -> Result<(f64, f64), Error> {
    let (mut least, mut ratios) = (f64::INFINITY, Vec::new());
    for _ in 0..rounds {
        let before = operations::add_nanoseconds(session);
        let found = latency()?;
        let after = operations::add_nanoseconds(session);
        least = least.min(found);
        ratios.push(2.0 * found / (before + after));
    }
    Ok((
        least,
        cere_timing::stats::median(&ratios).unwrap_or(f64::NAN),
    ))
}

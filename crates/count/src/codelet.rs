//! Counts a codelet.

use crate::accesses::{Accesses, Dynamic};
use crate::counts::{Counts, Simulation};
use crate::error::CountError;
use crate::image;
use crate::stream::{self, Ran, Sink};
use crate::tally::Tally;
use cere_format::FormatError;
use cere_format::capture::{
    PAGE_ABSENT, PageRecord, TRACE_AGE_SHIFT, TRACE_AGE_UNIT, TRACE_IN_USE, TRACE_PAGE,
    TRACE_THREAD_SHIFT, TRACE_THREADS, TRACE_WRITTEN, traced_lines,
};
use cere_format::count::{Code, MARK_END};
use cere_format::package::{MEMBER_TABLE, MEMBER_TRACE, Manifest};
use cere_format::replay::Warmup;
use cere_memory::geometry::Replacement;
use cere_memory::options::Frames;
use cere_memory::{Access, Counters, Geometry, Hierarchy};
use cere_replay::{Options, Replay, ReplayError};
use std::io::PipeReader;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

/// Line accesses above which only a part of the lines is simulated.
const BUDGET: u64 = 4_000_000_000;
/// Bytes that a line has at least.
const LINE: u64 = 64;

/// Where pages lie where a replay is compared with the program: pages at random would lie otherwise on either side, because
/// the counted program's addresses are not the captured ones.
pub const COMPARED_FRAMES: Frames = Frames::Identity;

/// What is counted.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The caches; none: only the code.
    pub geometry: Option<Geometry>,
    /// Seed of the frames of pages, and of random replacement.
    pub seed: u64,
    /// Whether the same is simulated with random replacement.
    pub random: bool,
    /// Accesses that are simulated, at most: of codelets with more, a part of the lines.
    pub budget: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            geometry: None,
            seed: 1,
            random: true,
            budget: BUDGET,
        }
    }
}

/// Passes all on to another; knows how much ran, and whether the region ended.
struct Whole<S> {
    inner: S,
    instructions: u64,
    ended: bool,
}

impl<S: Sink> Sink for Whole<S> {
    #[inline]
    fn segment(&mut self, code: &Code, index: u32, ran: Ran) {
        self.instructions += ran.segment.instructions.len() as u64;
        self.inner.segment(code, index, ran);
    }
    fn mark(&mut self, code: u64) {
        self.ended |= code == MARK_END;
        self.inner.mark(code);
    }
}

/// Runs the counted code of the package in `package`, with what it writes going to the sink that `make` makes of the code.
fn run<S: Sink + Send>(
    package: &Path,
    options: &Options,
    make: impl FnOnce(&Code) -> S + Send,
) -> Result<(Replay, Code, Whole<S>), CountError> {
    if !cere_arch::counting::SUPPORTED {
        return Err(CountError::Architecture);
    }
    let (reader, writer) = std::io::pipe().map_err(CountError::Pipe)?;
    let (tell, told) = mpsc::channel::<PathBuf>();
    let unfinished = || CountError::Unfinished(package.display().to_string());
    std::thread::scope(|scope| {
        let consume = move |reader: PipeReader| {
            // Without an executable the replay was not made, and says why.
            let Ok(executable) = told.recv() else {
                return Ok::<_, CountError>(None);
            };
            let mut code = image::read(&executable)?;
            let mut sink = Whole {
                inner: make(&code),
                instructions: 0,
                ended: false,
            };
            stream::read(reader, &mut code, &mut sink)?;
            Ok(Some((code, sink)))
        };
        let consumer = scope.spawn(move || consume(reader));
        let begin = move |executable: &Path| {
            // Where nobody listens, the consumer has failed, and says why.
            let _ = tell.send(executable.to_owned());
            Ok::<(), ReplayError>(())
        };
        let replay = cere_replay::count(package, writer.into(), begin, options);
        let consumed = match consumer.join() {
            Ok(consumed) => consumed,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        let (code, sink) = match (consumed?, &replay) {
            (Some(both), _) => both,
            (None, _) => return Err(replay.err().map_or_else(unfinished, CountError::Replay)),
        };
        let replay = replay?;
        match sink.ended {
            true => Ok((replay, code, sink)),
            false => Err(CountError::Unfinished(replay.codelet)),
        }
    })
}

/// Counts and adds up what only a run shows.
struct Work {
    accesses: Accesses,
    tally: Tally,
    dynamic: Dynamic,
    /// Simulated memories: the same accesses go to all.
    versions: Vec<Hierarchy>,
    total: u64,
}

impl Work {
    fn new(code: &Code, versions: Vec<Hierarchy>) -> Self {
        Self {
            accesses: Accesses::of(code),
            tally: Tally::new(code),
            dynamic: Dynamic::default(),
            versions,
            total: 0,
        }
    }
}

impl Sink for Work {
    fn segment(&mut self, code: &Code, index: u32, ran: Ran) {
        self.tally.add(code, ran.thread, index, ran.segment);
        self.accesses
            .add_dynamic(index, ran.words, &mut self.dynamic);
        self.total += ran.segment.accesses.len() as u64;
        if !self.versions.is_empty() {
            self.accesses
                .each(index, ran.control, ran.words, |_, access| {
                    for version in &mut self.versions {
                        let core = (ran.thread as usize).min(version.cores() - 1);
                        version.access(core, access);
                    }
                });
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, CountError> {
    Ok(std::fs::read(path).map_err(|source| FormatError::Io {
        action: "read",
        path: path.to_owned(),
        source,
    })?)
}

/// The touches of the page trace, as the replay's warm-up makes them: page after page.
fn touches(package: &Path, manifest: &Manifest) -> Result<Vec<(usize, Access)>, CountError> {
    let bytes = read(&package.join(MEMBER_TRACE))?;
    let (page_size, team) = (manifest.page_size, manifest.openmp.is_some());
    let trace = cere_package::io::decode_trace(MEMBER_TRACE, &bytes, page_size, team)?;
    let own = table(package, manifest)?;
    let mut touches = Vec::new();
    for entry in trace {
        let page = entry & TRACE_PAGE;
        let thread = (entry >> TRACE_THREAD_SHIFT & TRACE_THREADS) as usize;
        let in_use = (entry >> TRACE_AGE_SHIFT) * TRACE_AGE_UNIT <= TRACE_IN_USE;
        let in_part = in_use && own.binary_search_by_key(&page, |p| p.address).is_err();
        for line in traced_lines(page, page_size, LINE, in_part) {
            let access = match entry & TRACE_WRITTEN {
                0 => Access::load(page + line, 8),
                _ => Access::store(page + line, 8),
            };
            touches.push((thread, access));
        }
    }
    Ok(touches)
}

/// The region's pages, by rising address.
fn table(package: &Path, manifest: &Manifest) -> Result<Vec<PageRecord>, CountError> {
    let bytes = read(&package.join(MEMBER_TABLE))?;
    let table = cere_package::io::decode_table(MEMBER_TABLE, &bytes, manifest.page_size)?;
    Ok(table)
}

/// Pages that were not in memory at entry: the region takes fresh ones, of which no cache holds a line.
fn absent(package: &Path, manifest: &Manifest) -> Result<Vec<u64>, CountError> {
    let table = table(package, manifest)?;
    let pages = table.iter().filter(|page| page.flags & PAGE_ABSENT != 0);
    Ok(pages.map(|page| page.address).collect())
}

/// How a warm-up is written.
fn warmup_name(warmup: Warmup) -> &'static str {
    match warmup {
        Warmup::Cold => "cold",
        Warmup::Partial(_) => "partial",
        Warmup::WorkingSet => "working-set",
        Warmup::PageTrace => "page-trace",
    }
}

/// A codelet that was counted once, without caches.
pub struct Counted<'a> {
    package: &'a Path,
    options: &'a Options,
    /// Its manifest.
    pub manifest: Manifest,
    /// Its counted code.
    pub code: Code,
    /// What ran.
    pub tally: Tally,
    /// Its counts.
    pub counts: Counts,
    /// Accesses.
    total: u64,
    cores: usize,
}

impl<'a> Counted<'a> {
    /// Counts the codelet in the unpacked package `package`.
    ///
    /// # Errors
    /// The codelet cannot be replayed; a count exceeds 64 bits.
    pub fn new(package: &'a Path, options: &'a Options) -> Result<Self, CountError> {
        let manifest = cere_replay::manifest(package)?;
        let name = manifest.name.clone();
        let (replay, code, whole) = run(package, options, |code| Work::new(code, Vec::new()))?;
        let work = whole.inner;
        let mut counts = Counts::of(&name, &code, &work.tally, &work.dynamic)?;
        counts.flags = shell_words::join(&options.settings.flags);
        counts.verdict = replay.verdict;
        counts.reason = replay.reason;
        counts.notes = replay.notes;
        // What a call of memcpy and a repeated instruction reach is walked line by line.
        let moved = [work.dynamic.library, work.dynamic.code];
        let lines = moved
            .iter()
            .map(|m| m.load_bytes.saturating_add(m.store_bytes) / LINE);
        let lines = lines.fold(0, u64::saturating_add);
        let threads = cere_replay::plan::threads(&manifest, options.settings.team.threads);
        Ok(Self {
            package,
            options,
            manifest,
            code,
            tally: work.tally,
            counts,
            total: work.total.saturating_add(lines),
            cores: threads.unwrap_or(1).max(1) as usize,
        })
    }

    /// Accesses of memory, and lines of those whose size only a run shows.
    #[must_use]
    pub fn accesses(&self) -> u64 {
        self.total
    }

    /// Runs it once more, with what it does going to the sink that `make` makes of the code.
    ///
    /// # Errors
    /// The run does not do the work of the first one.
    pub fn observe<S: Sink + Send>(
        &self,
        make: impl FnOnce(&Code) -> S + Send,
    ) -> Result<S, CountError> {
        let (_, _, whole) = run(self.package, self.options, make)?;
        let first = self.tally.instructions(&self.code);
        // Threads may share their work otherwise each time.
        if first != whole.instructions && self.cores == 1 {
            return Err(CountError::Varies {
                codelet: self.manifest.name.clone(),
                first,
                second: whole.instructions,
            });
        }
        Ok(whole.inner)
    }

    /// Runs it once more, with all accesses going to each of `versions`.
    fn pass(&self, versions: Vec<Hierarchy>) -> Result<Vec<Hierarchy>, CountError> {
        let work = self.observe(|code| Work::new(code, versions))?;
        Ok(work.versions)
    }

    /// Memory as `settings` say, empty.
    fn memory(
        &self,
        geometry: &Geometry,
        settings: &Settings,
        replacement: Option<Replacement>,
        frames: Frames,
    ) -> Result<Hierarchy, CountError> {
        let sampling = self.total.div_ceil(settings.budget.max(1));
        let sampling =
            (sampling > 1).then(|| u32::try_from(sampling).map_or(1 << 31, |k| k.min(1 << 31)));
        let options = cere_memory::Options {
            cores: self.cores,
            seed: settings.seed,
            frames,
            sampling: sampling.map(u32::next_power_of_two),
            replacement,
            ..cere_memory::Options::default()
        };
        Ok(Hierarchy::new(geometry, &options)?)
    }

    /// Throws what was not in memory at entry out of the caches; a replay takes fresh pages there as well.
    fn discard_absent(&self, memory: &mut Hierarchy) -> Result<(), CountError> {
        for address in absent(self.package, &self.manifest)? {
            let page = Access {
                address,
                size: u32::try_from(self.manifest.page_size).unwrap_or(4096),
                kind: cere_memory::Kind::NonTemporal,
            };
            memory.warm(0, &[page]);
        }
        memory.fence(0);
        Ok(())
    }

    /// Touches the pages of the trace.
    fn touch(&self, memory: &mut Hierarchy) -> Result<(), CountError> {
        for (thread, access) in touches(self.package, &self.manifest)? {
            memory.warm(thread.min(self.cores - 1), &[access]);
        }
        Ok(())
    }

    /// Simulates the caches, which start as the replay's do.
    ///
    /// # Errors
    /// Two runs differ; the geometry is not possible.
    pub fn simulate(
        &self,
        geometry: &Geometry,
        settings: &Settings,
    ) -> Result<Simulation, CountError> {
        let wanted = &self.options.settings;
        let (warmup, _) =
            cere_replay::plan::warmup(&self.manifest, wanted.warmup, wanted.team.threads)?;
        let memory = |replacement| self.memory(geometry, settings, replacement, Frames::Random);
        let mut versions = vec![memory(None)?];
        if settings.random {
            versions.push(memory(Some(Replacement::Random))?);
        }
        if matches!(warmup, Warmup::WorkingSet | Warmup::PageTrace) {
            versions = self.pass(versions)?;
            for version in &mut versions {
                self.discard_absent(version)?;
            }
        }
        if warmup == Warmup::PageTrace {
            for version in &mut versions {
                self.touch(version)?;
            }
        }
        versions.iter_mut().for_each(Hierarchy::reset_counters);
        versions = self.pass(versions)?;
        let counters: Vec<Counters> = versions.iter().map(Hierarchy::counters).collect();
        Ok(Simulation::of(
            &geometry.name,
            warmup_name(warmup),
            &counters[0],
            counters.get(1),
            self.counts.flops.total,
        ))
    }

    /// What the caches count if they are empty at first, and after a run over itself. Pages lie in physical memory as in virtual
    /// memory, so that the place where a size stops fitting is not drawn at random.
    ///
    /// # Errors
    /// Two runs differ; the geometry is not possible.
    pub fn cold_and_warm(
        &self,
        geometry: &Geometry,
        settings: &Settings,
    ) -> Result<[Counters; 2], CountError> {
        let memory = self.memory(geometry, settings, None, COMPARED_FRAMES)?;
        let mut version = self.pass_one(memory)?;
        let cold = version.counters();
        self.discard_absent(&mut version)?;
        version.reset_counters();
        Ok([cold, self.pass_one(version)?.counters()])
    }

    fn pass_one(&self, version: Hierarchy) -> Result<Hierarchy, CountError> {
        let mut versions = self.pass(vec![version])?;
        versions
            .pop()
            .ok_or_else(|| CountError::Unfinished(self.manifest.name.clone()))
    }

    /// What the caches count from each state at entry: the page trace's (if the package has one), the working set's, and cold.
    ///
    /// # Errors
    /// Two runs differ; the geometry is not possible.
    pub fn warmups(
        &self,
        geometry: &Geometry,
        settings: &Settings,
    ) -> Result<Vec<(&'static str, Counters)>, CountError> {
        let new = || self.memory(geometry, settings, None, COMPARED_FRAMES);
        let traced = self.manifest.trace.as_ref().is_some_and(|t| t.pages > 0);
        let mut versions = vec![new()?];
        if traced {
            versions.push(new()?);
        }
        versions = self.pass(versions)?;
        let cold = versions[0].counters();
        for version in &mut versions {
            self.discard_absent(version)?;
        }
        if let Some(version) = versions.get_mut(1) {
            self.touch(version)?;
        }
        versions.iter_mut().for_each(Hierarchy::reset_counters);
        versions = self.pass(versions)?;
        let mut found = Vec::new();
        if let Some(version) = versions.get(1) {
            found.push((warmup_name(Warmup::PageTrace), version.counters()));
        }
        found.push((warmup_name(Warmup::WorkingSet), versions[0].counters()));
        found.push((warmup_name(Warmup::Cold), cold));
        Ok(found)
    }
}

/// Counts the codelet in the unpacked package `package`. The first run counts; if caches are simulated, one more brings them
/// to the state that a run over itself leaves, then the page trace is touched (both as `options` say), then one counts.
///
/// # Errors
/// The codelet cannot be replayed; two runs of it differ; the geometry is not possible; a count exceeds 64 bits.
pub fn count(package: &Path, settings: &Settings, options: &Options) -> Result<Counts, CountError> {
    let mut counted = Counted::new(package, options)?;
    if let Some(geometry) = &settings.geometry {
        counted.counts.simulation = Some(counted.simulate(geometry, settings)?);
    }
    Ok(counted.counts)
}

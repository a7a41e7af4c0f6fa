//! The order of a replay.

use crate::clock;
use crate::code;
use crate::compact::Frames;
use crate::compare::{self, Allowed};
use crate::control::Control;
use crate::count::Counting;
use crate::counters::{self, Measured};
use crate::energy::{Meter, Part};
use crate::error::Error;
use crate::glue::*;
use crate::kept::Kept;
use crate::library::{self, Environment, Libraries, Origins};
use crate::once::Region;
use crate::output::Output;
use crate::owners::{self, System};
use crate::package::{self, Package};
use crate::pages::{Bytes, PAGE, Page, Pages};
use crate::processor::{self, Pinned};
use crate::samples::{Samples, Timed};
use crate::space;
use crate::state::State;
use crate::streams::Streams;
use crate::team::Team;
use crate::thread::{Block, Files};
use crate::trampoline::{EXCEPTION, end_exception};
use crate::warm::{Needs, Warm};
use crate::{
    fault, guard, heap, lost, mapping, mpi, report, stores, text, trace, typed, unset, unwind,
};
use cere_format::capture::{OpenMpLock, PAGE_FOREIGN};
use cere_format::package::{
    MEMBER_ANSWERS, MEMBER_EXIT, MEMBER_MPI, MEMBER_TLS_ENTRY, MEMBER_TLS_EXIT, MEMBER_TLS_START,
    MEMBER_TLS_TEAM, MEMBER_TRACE, Manifest,
};
use cere_format::replay::{
    Comparison, ENV_PLAN, Preparation, REPLAY_VERSION, Repetitions, ReplayOutcome, ReplayPlan,
    Warmup,
};
use cere_inside::clibrary::Told;
use std::cell::OnceCell;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

/// Repetitions that are compared in full because they differ from the first, at most.
const LOOKS: u32 = 20;
/// Repetitions before the timed ones in which the processor learns a short region, its branches above all (NPB FT `fftz2`,
/// 5000 cycles: 20 to 60 % more in the first 50 to 100).
const TRAINING: Repetitions = Repetitions {
    seconds: 0.02,
    ..Repetitions::exactly(100)
};
/// Cycles of a region to which it makes no difference.
const LONG: u64 = 2_000_000;
/// What runs that share a reading leave in the caches are not the states of the operands.
const UNBATCHED: &str = "too short for the clock, and timed one by one all the same, for the states of its operands: \
                         the times hold the spread of the clock";

/// What lies in every repetition's surroundings, and is put back before it.
struct Stage<'a> {
    manifest: &'static Manifest,
    team: Option<&'a Team>,
    block: &'a Block,
    locks: Vec<OpenMpLock>,
    streams: Streams,
    told: Option<Told<'static>>,
    output: Output,
    frames: &'a Frames,
    /// Whether several threads take blocks of the region heap: which of them came first shows there.
    in_team: bool,
    sealed: bool,
}

impl Stage<'_> {
    fn put_back(&self, state: &State) {
        state.restore();
        self.frames.fill();
        self.streams.put_back();
        if let Some(told) = &self.told {
            told.put_back(heap::is_librarys);
        }
        lost::restore();
        mapping::reset(self.manifest);
        if let Some(team) = self.team {
            team.reset(self.block.others());
            team.make_locks(&self.locks);
        }
    }

    fn clear(&self, state: &State) {
        end_exception();
        state.clear_fresh();
        if self.sealed {
            state.clear_stack();
        }
        self.output.reset();
    }

    fn unordered(&self) -> Vec<(u64, u64)> {
        match self.in_team {
            true => heap::unordered(),
            false => Vec::new(),
        }
    }

    /// What a repetition left: whether it was unwound, and its state.
    fn left(&self, state: &State, unwound: bool) -> Left {
        (unwound, state.digest(&self.unordered()))
    }
}

type Left = (bool, Vec<(u64, u64)>);

/// What a repetition's end is compared with.
struct Compared<'a> {
    stage: &'a Stage<'a>,
    pages: &'a Pages,
    libraries: &'a Libraries,
    origins: &'a Origins,
    control: &'a Control,
    // Of no use where nothing is compared.
    named: OnceCell<compare::Named>,
    variables: OnceCell<Vec<(u64, u64)>>,
}

impl Compared<'_> {
    fn compare(&self, unwound: bool, unwritten: &[u64]) -> Comparison {
        let manifest = self.stage.manifest;
        let mut freed = self.stage.unordered();
        if freed.is_empty() {
            freed = heap::freed();
        }
        freed.extend(heap::freed_older(&manifest.freed, self.pages));
        freed.sort_unstable();
        let variables = || self.libraries.variables(self.pages);
        let allowed = Allowed {
            words: &self.libraries.words,
            variables: self.variables.get_or_init(variables),
            origins: self.origins,
            block: self.stage.block,
            control: self.control,
            exception: EXCEPTION.load(Relaxed),
            pages: self.pages,
            named: self.named.get_or_init(|| compare::Named::new(manifest)),
            freed: &freed,
            unwritten,
        };
        let mut comparison = compare::compare(manifest, self.pages, &allowed);
        comparison.same_end = unwound == manifest.unwound;
        let same = |a, b| allowed.alike(manifest.image.range, a, b);
        let printed = self.stage.output.compare(self.origins, same);
        compare::output(&mut comparison, printed);
        mpi::given().add_to(&mut comparison);
        if let Some(told) = &self.stage.told {
            compare::c_library(&mut comparison, told.compare(same));
        }
        comparison
    }
}

/// The captured process, in place, before anything of it runs.
struct Placed {
    manifest: &'static Manifest,
    pages: Pages,
    frames: Frames,
    trace: Vec<trace::Entry>,
    control: Control,
    block: Block,
    kept: Kept,
    answers: Bytes,
    told: Option<Told<'static>>,
    /// What people should know.
    notes: Vec<String>,
}

impl Placed {
    fn new(plan: &ReplayPlan) -> Result<Self, Error> {
        let member = |name: &str| plan.package.join(name);
        let Package {
            manifest,
            mut pages,
        } = Package::open(&plan.package)?;
        if plan.sealed {
            pages.hide(&member(MEMBER_EXIT))?;
        }
        let trace = trace::parse(Bytes::open(&member(MEMBER_TRACE))?.get(), manifest)?;
        match plan.kept {
            true => space::inherit(manifest, &pages.all),
            false => {
                package::reserve(manifest, &pages)?;
                space::open(manifest, &pages.all)?;
            }
        }
        if plan.memory.huge {
            space::prefer_huge(&pages.all);
        }
        let frames = Frames::place(&plan.memory, &mut pages)?;
        // SAFETY: no other thread has started, nothing here keeps such addresses, and the captured ones are reserved.
        let mut control = unsafe { Control::place(manifest, &mut pages) };
        let block = blocks(plan, manifest)?;
        control.look(manifest, block.address());
        heap::place(manifest.heap, &manifest.freed);
        let answers = Bytes::open(&member(MEMBER_ANSWERS))?;
        let executable = library::executable(&library::loaded());
        let mut notes = clock::prepare(manifest, answers.get(), executable)?;
        let calls = Box::leak(Box::new(Bytes::open(&member(MEMBER_MPI))?));
        notes.extend(mpi::prepare(manifest, &pages, calls.get(), plan.compare)?);
        // Before other libraries take keys.
        let told = c_library(manifest, &pages)?;
        Ok(Self {
            kept: Kept::of(plan.kept, manifest, &pages),
            manifest,
            frames,
            pages,
            trace,
            control,
            block,
            answers,
            told,
            notes,
        })
    }
}

/// How many threads run the region.
struct Crew {
    team: Option<Team>,
    /// More than one is asked for.
    several: bool,
    /// Whether more than one did or do: which of them came first is chance.
    in_team: bool,
}

impl Crew {
    /// Starts the team, if one is asked for.
    fn new(plan: &ReplayPlan, manifest: &Manifest) -> Result<Self, Error> {
        let start = |threads| Team::start(threads, plan.insist);
        let team = plan.threads.map(start).transpose()?;
        if let Some(team) = &team {
            team.each(clock::number_thread);
        }
        let several = plan.threads.is_some_and(|threads| threads > 1);
        let captured = manifest.openmp.as_ref().is_some_and(|o| o.threads > 1);
        Ok(Self {
            team,
            several,
            in_team: several || captured,
        })
    }

    /// A team's threads go where the OpenMP runtime puts them.
    fn pin(&self) -> Pinned {
        match self.several {
            true => Pinned::nowhere(),
            false => Pinned::here(),
        }
    }
}

/// Does what the plan says; gives the exit status.
pub fn run() -> Result<i32, Error> {
    let before = cere_timing::clock::moment();
    let plan = find_plan()?;
    let mut placed = Placed::new(&plan)?;
    let (mut told, mut notes) = (placed.told.take(), std::mem::take(&mut placed.notes));
    let (manifest, pages) = (placed.manifest, &placed.pages);
    let libraries = library::find(manifest, pages, &placed.control);
    let crew = Crew::new(&plan, manifest)?;
    let team = crew.team.as_ref();
    let (block, kept) = (&placed.block, &placed.kept);
    let mut state = State::new(manifest, pages, kept, &libraries.words, block, team);
    if plan.memory.present {
        state.keep_absent();
    }
    let (recompiled, origins) = install_code(manifest, pages, &libraries)?;
    watch(&plan, manifest, pages)?;
    let output = keep_text(manifest, placed.answers.get(), crew.in_team)?;
    library::start();
    let lacking = told.as_mut().map_or(Vec::new(), Told::begin);
    let streams = Streams::find(&origins, pages);
    let pinned = crew.pin();
    let region = region(&placed, &origins, crew.several, &plan);
    notes.splice(0..0, pinned.note());
    notes.extend(lacking.iter().map(|name| {
        format!("this machine has no locale `{name}`, which the program had: what the region makes of characters may differ")
    }));
    let mut outcome = outcome(region.cost, notes);
    let stage = Stage {
        manifest,
        team,
        block,
        locks: locks(manifest, pages),
        streams,
        told,
        output,
        frames: &placed.frames,
        in_team: crew.in_team,
        sealed: plan.sealed,
    };
    let compared = Compared {
        stage: &stage,
        pages,
        libraries: &libraries,
        origins: &origins,
        control: &placed.control,
        named: OnceCell::new(),
        variables: OnceCell::new(),
    };
    let untimed = first_run(&plan, &region, &mut state, &compared, &mut outcome)?;
    if plan.count.is_none() && plan.stores.is_none() {
        let misplaced = team.and_then(|team| owners::misplaced(&state.owned(), &System(team)));
        outcome.notes.extend(misplaced);
        let first = stage.left(&state, untimed.1);
        let warm = warm(&plan, &placed, &recompiled, team, pinned)?;
        outcome.placed = warm.placed();
        stage.clear(&state);
        let repeated = Repeated {
            plan: &plan,
            region: &region,
            state: &state,
            warm: &warm,
            compared: &compared,
            first,
            several: crew.several,
            looks: LOOKS,
            preparation: (0, 0),
            outcome: &mut outcome,
        };
        repeated.measure(untimed.0, before)?;
    }
    outcome.differing = unset::told();
    outcome.stores = plan.stores.as_ref().and_then(|_| stores::told());
    outcome.lacking = lost::used_names();
    let text = serde_json::to_vec(&outcome).map_err(Error::json("the outcome"))?;
    std::fs::write(&plan.outcome, text).map_err(Error::file("write", &plan.outcome))?;
    Ok(match plan.report {
        true => report::print(&outcome, plan.threads),
        false => 0,
    })
}

/// The plan that the environment names, or else the one beside an exported executable, whose paths are those of its folder.
fn find_plan() -> Result<ReplayPlan, Error> {
    if let Some(path) = std::env::var_os(ENV_PLAN) {
        return package::read("the plan", Path::new(&path));
    }
    let executable = std::env::current_exe().map_err(|_| Error::NoPlan)?;
    let folder = executable.parent().ok_or(Error::NoPlan)?;
    let path = folder.join("plan.json");
    if !path.is_file() {
        return Err(Error::NoPlan);
    }
    let mut plan: ReplayPlan = package::read("the plan", &path)?;
    plan.package = folder.join(&plan.package);
    plan.outcome = folder.join(&plan.outcome);
    Ok(plan)
}

/// Has exceptions, faults and reported stores come here.
fn watch(plan: &ReplayPlan, manifest: &'static Manifest, pages: &Pages) -> Result<(), Error> {
    unwind::know(manifest);
    fault::watch(manifest);
    let one = |threads| threads == 1 && plan.insist;
    let alone = plan.threads.is_none_or(one);
    match &plan.stores {
        Some(watched) => stores::listen(watched, pages),
        None => typed::listen(pages, !alone),
    }
}

/// The region as it runs on what is in place.
fn region<'a>(
    placed: &'a Placed,
    origins: &Origins,
    several: bool,
    plan: &ReplayPlan,
) -> Region<'a> {
    let absent = match plan.memory.present {
        true => 0,
        false => space::bytes(&space::absent(&placed.pages.all)) / PAGE,
    };
    let environment = Environment::find(origins, &placed.pages);
    let thread = (environment, &placed.control);
    let region = Region::new(placed.manifest, glue().0, thread, absent, several);
    match plan.memory.compact.is_empty() {
        true => region,
        false => region.without_denormals(),
    }
}

/// Locks of the OpenMP runtime in captured memory.
fn locks(manifest: &Manifest, pages: &Pages) -> Vec<OpenMpLock> {
    let locks = manifest.openmp.iter().flat_map(|o| o.locks.iter().cloned());
    locks.filter(|l| pages.holds(l.address)).collect()
}

/// The warm-up that the plan asks for.
fn warm<'a>(
    plan: &'a ReplayPlan,
    placed: &'a Placed,
    recompiled: &'a [Jump],
    team: Option<&'a Team>,
    pinned: Pinned,
) -> Result<Warm<'a>, Error> {
    let here = cere_format::caches::of(processor::current());
    let needs = Needs {
        manifest: placed.manifest,
        pages: &placed.pages,
        block: &placed.block,
        jumps: recompiled,
        trace: &placed.trace,
        survival: plan.survival_ns,
        team,
        package: &plan.package,
        pinned,
        operands: &plan.operands,
        caches: cere_format::machine::corrected(here, &plan.caches),
    };
    Warm::new(plan.warmup, needs)
}

/// The captured thread-local blocks, in place.
fn blocks(plan: &ReplayPlan, manifest: &'static Manifest) -> Result<Block, Error> {
    let open = |name: &str| Bytes::open(&plan.package.join(name));
    let files = Files {
        entry: open(MEMBER_TLS_ENTRY)?,
        exit: open(MEMBER_TLS_EXIT)?,
        template: open(MEMBER_TLS_START)?,
        team: open(MEMBER_TLS_TEAM)?,
    };
    let numbers = manifest.openmp.as_ref().map_or(&[][..], |o| &o.blocks);
    Ok(Block::new(files, numbers)?)
}

/// What the C library kept for the program.
fn c_library(manifest: &'static Manifest, pages: &Pages) -> Result<Option<Told<'static>>, Error> {
    let own = |page: &Page| !page.is(PAGE_FOREIGN);
    let mine = |start: u64, size: u64| {
        let ends = [start, start.saturating_add(size - 1)];
        ends.iter().all(|at| pages.at(*at).is_some_and(own))
    };
    let told = manifest.c_library.as_ref();
    let told = told.map(|both| Told::new(both, mine));
    Ok(told.transpose()?.flatten())
}

/// The generator's glue: how the region is called, the jumps to functions that were compiled again, thunks.
fn glue() -> (u64, &'static [Jump], &'static [Jump]) {
    // SAFETY: the generator's glue defines the tables.
    unsafe {
        (
            cere_glue_invoke,
            std::slice::from_raw_parts(&raw const cere_glue_jumps, cere_glue_jump_count as usize),
            std::slice::from_raw_parts(&raw const cere_glue_thunks, cere_glue_thunk_count as usize),
        )
    }
}

/// Leads captured addresses of code to where it is now. The jumps to what was compiled again, and where all code was.
fn install_code(
    manifest: &'static Manifest,
    pages: &Pages,
    libraries: &Libraries,
) -> Result<(Vec<Jump>, Origins), Error> {
    let (_, recompiled, thunks) = glue();
    // In an exported folder a compiler may have removed a function that nothing calls.
    let recompiled: Vec<Jump> = recompiled.iter().filter(|j| j.new != 0).copied().collect();
    let labels = code::labels();
    let mut jumps = mpi::jumps(manifest);
    let answered = |jump: &&Jump| mpi::jumps(manifest).iter().all(|j| j.old != jump.old);
    jumps.extend(libraries.jumps.iter().filter(answered));
    jumps.extend(&recompiled);
    let origins = Origins::new(manifest, &[&jumps, thunks].concat(), &labels);
    // SAFETY: the glue's constant.
    let other = unsafe { (&raw const cere_glue_other).read() } != 0;
    if other {
        jumps.extend(labels);
    }
    code::install(manifest, pages, jumps, other)?;
    Ok((recompiled, origins))
}

/// Keeps what the region prints.
fn keep_text(manifest: &Manifest, answers: &[u8], in_team: bool) -> Result<Output, Error> {
    let mut printed = text::Captured::new(manifest, answers)?;
    // Which thread writes out what others printed as well is chance.
    printed.complete &= !(printed.writes && in_team);
    // Nor is it known which registers what.
    printed.unregistered |= in_team && !printed.registered.is_empty();
    text::keep(&printed, in_team)?;
    Ok(Output::new(manifest, printed))
}

fn outcome(clock_cost: u64, notes: Vec<String>) -> ReplayOutcome {
    ReplayOutcome {
        version: REPLAY_VERSION,
        cycles: Vec::new(),
        set_aside: Default::default(),
        disturbed: false,
        batch: 1,
        clock_cost,
        notes,
        tsc_hz: 0.0,
        comparison: None,
        left: 0,
        repeatable: true,
        varied: None,
        asked_more: 0,
        preparation: Default::default(),
        lacking: Vec::new(),
        measured: 0,
        energy: Vec::new(),
        placed: Vec::new(),
        differing: None,
        stores: None,
    }
}

/// The first run is not timed: it faults in and binds what it needs, and shows what a repetition changes. It is what is compared.
fn first_run(
    plan: &ReplayPlan,
    region: &Region<'_>,
    state: &mut State<'_>,
    compared: &Compared<'_>,
    outcome: &mut ReplayOutcome,
) -> Result<(Timed, bool), Error> {
    let stage = compared.stage;
    stage.put_back(state);
    unset::begin(&plan.unset);
    unset::fill_stack(stage.manifest);
    lost::close(compared.pages);
    if let Some(guard) = &plan.guard {
        guard::install(guard)?;
    }
    outcome
        .notes
        .extend(clock::listen(plan.compare, plan.sealed)?);
    let counting = plan.count.map(|to| Counting::new(to, stage.team));
    let counting = counting.transpose()?;
    if let Some(counting) = &counting {
        counting.begin()?;
    }
    let (untimed, unwound) = region.run(counters::NONE);
    if let Some(counting) = &counting {
        counting.end();
    }
    outcome.asked_more = clock::asked_more();
    clock::relax();
    lost::write_back();
    let unwritten = state.find_changed();
    if plan.compare {
        let compare = || compared.compare(unwound, &unwritten);
        let found = compared.pages.look(compare)?;
        outcome.left = found.digest ^ u64::from(!found.same_end);
        outcome.comparison = Some(found);
    }
    Ok((untimed, unwound))
}

/// Repetitions that are timed.
struct Repeated<'a> {
    plan: &'a ReplayPlan,
    region: &'a Region<'a>,
    state: &'a State<'a>,
    warm: &'a Warm<'a>,
    compared: &'a Compared<'a>,
    /// What the first run left.
    first: Left,
    several: bool,
    /// Repetitions that are still to be compared in full if they differ.
    looks: u32,
    /// Restoring and warming up, in cycles of the counter, whose reading touches no memory.
    preparation: (u64, u64),
    outcome: &'a mut ReplayOutcome,
}

impl Repeated<'_> {
    fn once(&mut self, measured: Measured<'_>) -> Timed {
        let stage = self.compared.stage;
        let began = cere_timing::clock::start();
        stage.put_back(self.state);
        let restored = cere_timing::clock::start();
        self.warm.apply();
        self.preparation.1 += cere_timing::clock::start().saturating_sub(restored);
        self.preparation.0 += restored.saturating_sub(began);
        let counters = match measured {
            Measured::Region(counters) => counters,
            Measured::Nothing(counters) => {
                self.region.run_nothing(counters);
                return Timed::default();
            }
        };
        let (timed, unwound) = self.region.run(counters);
        lost::write_back();
        self.check(unwound);
        stage.clear(self.state);
        timed
    }

    /// A run like those of a batch, whose end is looked at.
    fn run_checked(&mut self) {
        let stage = self.compared.stage;
        stage.clear(self.state);
        stage.put_back(self.state);
        let (_, unwound) = self.region.run(counters::NONE);
        lost::write_back();
        self.check(unwound);
    }

    fn check(&mut self, unwound: bool) {
        let left = self.compared.stage.left(self.state, unwound);
        if left == self.first {
            return;
        }
        // What nobody set is not the same each time.
        let nothing = |found: Comparison| found.same_end && found.different_words == 0;
        let compare = || self.compared.compare(unwound, &[]);
        if !self.plan.unset.words.is_empty() && self.compared.pages.look(compare).is_ok_and(nothing)
        {
            return;
        }
        let outcome = &mut *self.outcome;
        outcome.asked_more = outcome.asked_more.max(clock::asked_more());
        if outcome.repeatable {
            outcome.repeatable = false;
            let mut pairs = self.first.1.iter().zip(&left.1);
            let found = pairs.find(|(a, b)| a != b);
            let manifest = self.compared.stage.manifest;
            outcome.varied = found.map(|(a, _)| compare::place(manifest, a.0));
        }
        // Threads may add in another order each time: what counts is how far the farthest is off.
        if self.several && self.looks > 0 {
            self.looks -= 1;
            let compare = || self.compared.compare(unwound, &[]);
            // Where it cannot be read any more, nothing is compared.
            let here = self.compared.pages.look(compare).ok();
            let worst = outcome.comparison.take().zip(here);
            outcome.comparison = worst.map(|(worst, here)| compare::worse(worst, here));
        }
    }

    /// Measures what the plan asks for, since the moment `before`; `untimed`: the first run.
    fn measure(mut self, untimed: Timed, before: cere_timing::clock::Moment) -> Result<(), Error> {
        let alone = Measured::Region(counters::NONE);
        let plan = self.plan;
        if untimed.cycles < LONG && !plan.untrained {
            repeat(TRAINING, || self.once(alone));
        }
        if !plan.counters.is_empty() {
            let measured = counters::measure(&plan.counters, plan.repetitions, |measured| {
                self.once(measured);
            });
            self.outcome.measured = measured?;
            self.outcome.tsc_hz = frequency(before);
            return Ok(());
        }
        let samples = repeat(plan.repetitions, || self.once(alone));
        let samples = self.together(samples);
        let outcome = &mut *self.outcome;
        outcome.tsc_hz = frequency(before);
        outcome.preparation = Preparation {
            restoring: self.preparation.0 as f64 / outcome.tsc_hz,
            warming: self.preparation.1 as f64 / outcome.tsc_hz,
        };
        let found = samples.finish(outcome.tsc_hz);
        outcome.cycles = found.cycles;
        outcome.set_aside = found.set_aside;
        outcome.disturbed = found.disturbed;
        match &plan.energy {
            Some(energy) => self.energy(&Meter::new(energy)),
            None => Ok(()),
        }
    }

    /// Measures the energy of the region, once its time is known.
    fn energy(&mut self, meter: &Meter) -> Result<(), Error> {
        let (stage, state, hz) = (self.compared.stage, self.state, self.outcome.tsc_hz);
        let mut cycles = self.outcome.cycles.clone();
        cycles.sort_unstable();
        let each = cere_timing::stats::median_of_rising(&cycles) as f64 / hz;
        let alone = self.outcome.batch == 1;
        self.outcome.energy = meter.measure(each, |part| {
            match part {
                Part::Prepare => {
                    stage.put_back(state);
                    // Runs that share a reading of the clock are their own warm-up.
                    if alone {
                        self.warm.apply();
                    }
                }
                Part::Region => {
                    let timed = self.region.run(counters::NONE).0;
                    lost::write_back();
                    return match alone {
                        true => timed.cycles as f64 / hz,
                        false => each,
                    };
                }
                Part::Nothing => self.region.run_nothing(counters::NONE),
                Part::Clear => stage.clear(state),
            }
            0.0
        })?;
        if stage.sealed {
            self.run_checked();
        }
        Ok(())
    }

    /// Several runs for each reading of the clock, where single ones are too short for it and no more precise.
    fn together(&mut self, single: Samples) -> Samples {
        // What several runs share is their own warm-up.
        let batch = match self.plan.warmup {
            _ if self.plan.untrained => 1,
            Warmup::WorkingSet | Warmup::PageTrace => self.region.batch(single.median()),
            Warmup::Cold | Warmup::Partial(_) => 1,
        };
        if batch <= 1 {
            return single;
        }
        if !self.plan.operands.is_empty() {
            self.outcome.notes.push(UNBATCHED.to_owned());
            return single;
        }
        let (stage, state) = (self.compared.stage, self.state);
        let together = repeat(self.plan.repetitions, || {
            let timed = self.region.run_several(batch, || {
                stage.clear(state);
                stage.put_back(state);
            });
            if stage.sealed {
                self.run_checked();
            }
            timed
        });
        // Where putting back takes so long that its own spread hides the region, single readings are more precise.
        let width = |s: &Samples| s.half_width().unwrap_or(u64::MAX);
        if width(&together) > width(&single).max(self.region.cost) {
            return single;
        }
        self.outcome.batch = batch;
        together
    }
}

/// Repetitions until there are enough.
fn repeat(rule: Repetitions, mut once: impl FnMut() -> Timed) -> Samples {
    let mut samples = Samples::new(rule);
    let began = cere_timing::clock::monotonic_ns();
    loop {
        samples.add(once());
        let nanoseconds = cere_timing::clock::monotonic_ns().saturating_sub(began);
        if samples.enough(nanoseconds as f64 * 1e-9) {
            return samples;
        }
    }
}

/// Frequency of the counter, since a moment that may have passed just now.
fn frequency(before: cere_timing::clock::Moment) -> f64 {
    /// Both ends are known to some 100 ns: to 1 in 25000, that is, over so many nanoseconds.
    const ENOUGH: u64 = 5_000_000;
    let now = cere_timing::clock::moment();
    cere_timing::clock::frequency(before, now)
        .filter(|_| now.nanoseconds.saturating_sub(before.nanoseconds) >= ENOUGH)
        .unwrap_or_else(|| cere_timing::clock::calibrate(ENOUGH / 1_000_000))
}

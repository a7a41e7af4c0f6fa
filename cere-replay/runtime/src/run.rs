//! The order of a replay.

use crate::clock;
use crate::code;
use crate::compare::{self, Allowed};
use crate::control::Control;
use crate::count::Counting;
use crate::counters::{self, Measured};
use crate::glue::*;
use crate::kept::Kept;
use crate::library::{self, Environment, Origins};
use crate::once::Region;
use crate::output::Output;
use crate::owners::{self, System};
use crate::package::{self, Package};
use crate::pages::{Bytes, PAGE, Page};
use crate::processor::{self, Pinned};
use crate::samples::{Samples, Timed};
use crate::space;
use crate::state::State;
use crate::streams::Streams;
use crate::team::Team;
use crate::thread::{Block, Files};
use crate::trampoline::{EXCEPTION, end_exception};
use crate::warm::{Needs, Warm};
use crate::{fault, guard, heap, lost, mapping, text, trace, typed, unwind};
use cere_format::capture::{OpenMpLock, PAGE_FOREIGN};
use cere_format::package::{
    MEMBER_ANSWERS, MEMBER_TLS_ENTRY, MEMBER_TLS_EXIT, MEMBER_TLS_START, MEMBER_TLS_TEAM,
    MEMBER_TRACE,
};
use cere_format::replay::{
    ENV_PLAN, Preparation, REPLAY_VERSION, Repetitions, ReplayOutcome, ReplayPlan, Warmup,
};
use cere_inside::clibrary::Told;
use std::cell::LazyCell;
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

/// Does what the plan says.
pub fn run() -> Result<(), String> {
    let before = cere_timing::clock::moment();
    let path = std::env::var_os(ENV_PLAN).ok_or_else(|| {
        format!("this is a replay of CERE: start it with cere replay ({ENV_PLAN} is not set)")
    })?;
    let plan: ReplayPlan = package::read("the plan", Path::new(&path))?;
    let member = |name: &str| plan.package.join(name);
    let Package {
        manifest,
        mut pages,
    } = Package::open(&plan.package)?;
    let trace = trace::parse(Bytes::open(&member(MEMBER_TRACE))?.get(), manifest)?;
    match plan.kept {
        true => space::inherit(manifest, &pages.all),
        false => {
            package::reserve(manifest, &pages)?;
            space::open(manifest, &pages.all)?;
        }
    }
    // SAFETY: no other thread has started, nothing here keeps such addresses, and the captured ones are reserved.
    let mut control = unsafe { Control::place(manifest, &mut pages) };
    let files = Files {
        entry: Bytes::open(&member(MEMBER_TLS_ENTRY))?,
        exit: Bytes::open(&member(MEMBER_TLS_EXIT))?,
        template: Bytes::open(&member(MEMBER_TLS_START))?,
        team: Bytes::open(&member(MEMBER_TLS_TEAM))?,
    };
    let numbers = manifest.openmp.as_ref().map_or(&[][..], |o| &o.blocks);
    let block = Block::new(files, numbers)?;
    control.look(manifest, block.address());
    let kept = Kept::of(plan.kept, manifest, &pages);
    heap::place(manifest.heap, &manifest.freed);
    let answers = Bytes::open(&member(MEMBER_ANSWERS))?;
    let asks = clock::prepare(
        manifest,
        answers.get(),
        library::executable(&library::loaded()),
    )?;
    // Before other libraries take keys.
    let own = |page: &Page| !page.is(PAGE_FOREIGN);
    let mine = |start: u64, size: u64| {
        [start, start.saturating_add(size - 1)]
            .iter()
            .all(|at| pages.at(*at).is_some_and(own))
    };
    let told = manifest
        .c_library
        .as_ref()
        .map(|both| Told::new(both, mine));
    let mut told = told.transpose()?.flatten();
    let libraries = library::find(manifest, &pages, &control);
    let team = plan
        .threads
        .map(|threads| Team::start(threads, plan.insist));
    let team = team.transpose()?;
    if let Some(team) = &team {
        team.each(clock::number_thread);
    }
    let words = &libraries.words;
    let mut state = State::new(manifest, &pages, &kept, words, &block, team.as_ref());

    // SAFETY: the generator's glue defines the tables.
    let (invoke, jumps, thunks) = unsafe {
        (
            cere_glue_invoke,
            std::slice::from_raw_parts(&raw const cere_glue_jumps, cere_glue_jump_count as usize),
            std::slice::from_raw_parts(&raw const cere_glue_thunks, cere_glue_thunk_count as usize),
        )
    };
    let recompiled = jumps.to_vec();
    let labels = code::labels();
    let mut jumps = [jumps, &libraries.jumps].concat();
    let origins = Origins::new(manifest, &[&jumps, thunks].concat(), &labels);
    // SAFETY: the glue's constant.
    let other = unsafe { (&raw const cere_glue_other).read() } != 0;
    if other {
        jumps.extend(labels);
    }
    code::install(manifest, &pages, jumps, other)?;
    unwind::know(manifest);
    fault::watch(manifest);
    let alone = plan
        .threads
        .is_none_or(|threads| threads == 1 && plan.insist);
    typed::listen(&pages, !alone)?;
    // A team's threads go where the OpenMP runtime puts them.
    let several = plan.threads.is_some_and(|threads| threads > 1);
    let captured = manifest.openmp.as_ref().is_some_and(|o| o.threads > 1);
    let mut printed = text::Captured::new(manifest, answers.get())?;
    // Which thread writes out what others printed as well is chance.
    let in_team = several || captured;
    printed.complete &= !(printed.writes && in_team);
    // Nor is it known which registers what.
    printed.unregistered |= in_team && !printed.registered.is_empty();
    text::keep(&printed, in_team)?;
    let output = Output::new(manifest, printed);
    library::start();
    let lacking = told.as_mut().map_or(Vec::new(), Told::begin);
    let streams = Streams::find(&origins, &pages);

    // Which thread took a block first shows in the region heap.
    let unordered = || match several || captured {
        true => heap::unordered(),
        false => Vec::new(),
    };
    let pinned = if several {
        Pinned::nowhere()
    } else {
        Pinned::here()
    };
    let absent: u64 = space::absent(&pages.all)
        .iter()
        .map(|r| (r.1 - r.0) / PAGE)
        .sum();
    let environment = Environment::find(&origins, &pages);
    let region = Region::new(manifest, invoke, (environment, &control), absent, several);
    let no_locale = lacking.iter().map(|name| {
        format!("this machine has no locale `{name}`, which the program had: what the region makes of characters may differ")
    });
    let mut outcome = ReplayOutcome {
        version: REPLAY_VERSION,
        cycles: Vec::new(),
        set_aside: Default::default(),
        disturbed: false,
        batch: 1,
        clock_cost: region.cost,
        notes: pinned
            .note()
            .into_iter()
            .chain(asks)
            .chain(no_locale)
            .collect(),
        tsc_hz: 0.0,
        comparison: None,
        repeatable: true,
        varied: None,
        asked_more: 0,
        preparation: Default::default(),
        lacking: Vec::new(),
        measured: 0,
        placed: Vec::new(),
    };

    // The first run is not timed: it faults in and binds what it needs, and shows what a repetition changes.
    let locks = manifest.openmp.iter().flat_map(|o| o.locks.iter().cloned());
    let locks: Vec<OpenMpLock> = locks.filter(|l| pages.holds(l.address)).collect();
    let put_back = |state: &State| {
        state.restore();
        streams.put_back();
        if let Some(told) = &told {
            told.put_back();
        }
        lost::restore();
        mapping::reset(manifest);
        if let Some(team) = &team {
            team.reset(block.others());
            team.make_locks(&locks);
        }
    };
    put_back(&state);
    lost::close(&pages);
    if let Some(guard) = &plan.guard {
        guard::install(guard)?;
    }
    outcome.notes.extend(clock::listen(plan.compare));
    let counting = plan.count.map(|to| Counting::new(to, team.as_ref()));
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
    // Of no use where nothing is compared.
    let named = LazyCell::new(|| compare::Named::new(manifest));
    let variables = LazyCell::new(|| libraries.variables(&pages));
    let compared = |unwound: bool, unwritten: &[u64]| {
        let mut freed = unordered();
        if freed.is_empty() {
            freed = heap::freed();
        }
        freed.extend(heap::freed_older(&manifest.freed, &pages));
        freed.sort_unstable();
        let allowed = Allowed {
            words: &libraries.words,
            variables: &variables,
            origins: &origins,
            block: &block,
            control: &control,
            exception: EXCEPTION.load(Relaxed),
            pages: &pages,
            named: &named,
            freed: &freed,
            unwritten,
        };
        let mut comparison = compare::compare(manifest, &pages, &allowed);
        comparison.same_end = unwound == manifest.unwound;
        let same = |a, b| allowed.alike(manifest.image.range, a, b);
        compare::output(&mut comparison, output.compare(&origins, same));
        if let Some(told) = &told {
            compare::c_library(&mut comparison, told.compare(same));
        }
        comparison
    };
    if plan.compare {
        outcome.comparison = Some(compared(unwound, &unwritten));
    }
    if counting.is_some() {
        outcome.lacking = lost::used_names();
        return write_outcome(&plan, &outcome);
    }
    let digest = |state: &State| state.digest(&unordered());
    let first = (unwound, digest(&state));
    let misplaced = team
        .as_ref()
        .and_then(|team| owners::misplaced(&state.owned(), &System(team)));
    outcome.notes.extend(misplaced);
    let warm = Warm::new(
        plan.warmup,
        Needs {
            manifest,
            pages: &pages,
            block: &block,
            jumps: &recompiled,
            trace: &trace,
            survival: plan.survival_ns,
            team: team.as_ref(),
            package: &plan.package,
            pinned,
            operands: &plan.operands,
            caches: cere_format::machine::corrected(
                cere_format::caches::of(processor::current()),
                &plan.caches,
            ),
        },
    )?;
    outcome.placed = warm.placed();
    let clear = || {
        end_exception();
        state.clear_fresh();
        output.reset();
    };
    let mut looks = LOOKS;
    let mut check = |unwound: bool| {
        let left = (unwound, digest(&state));
        if left == first {
            return;
        }
        outcome.asked_more = outcome.asked_more.max(clock::asked_more());
        if outcome.repeatable {
            outcome.repeatable = false;
            let mut pairs = first.1.iter().zip(&left.1);
            let found = pairs.find(|(a, b)| a != b);
            outcome.varied = found.map(|(a, _)| compare::place(manifest, a.0));
        }
        // Threads may add in another order each time: what counts is how far the farthest is off.
        if several && looks > 0 {
            looks -= 1;
            outcome.comparison = outcome
                .comparison
                .take()
                .map(|c| compare::worse(c, compared(unwound, &[])));
        }
    };
    clear();
    // In cycles of the counter, whose reading touches no memory.
    let (mut restoring, mut warming) = (0, 0);
    let mut once = |measured: Measured<'_>| {
        let began = cere_timing::clock::start();
        put_back(&state);
        let restored = cere_timing::clock::start();
        warm.apply();
        warming += cere_timing::clock::start().saturating_sub(restored);
        restoring += restored.saturating_sub(began);
        let counters = match measured {
            Measured::Region(counters) => counters,
            Measured::Nothing(counters) => {
                region.run_nothing(counters);
                return Timed::default();
            }
        };
        let (timed, unwound) = region.run(counters);
        lost::write_back();
        check(unwound);
        clear();
        timed
    };
    let alone = Measured::Region(counters::NONE);
    if untimed.cycles < LONG {
        repeat(TRAINING, || once(alone));
    }
    if !plan.counters.is_empty() {
        let measured = counters::measure(&plan.counters, plan.repetitions, |measured| {
            once(measured);
        });
        outcome.measured = measured?;
        outcome.lacking = lost::used_names();
        outcome.tsc_hz = frequency(before);
        return write_outcome(&plan, &outcome);
    }
    let mut samples = repeat(plan.repetitions, || once(alone));
    // What several runs share is their own warm-up.
    let batch = match plan.warmup {
        Warmup::WorkingSet | Warmup::PageTrace => region.batch(samples.median()),
        Warmup::Cold | Warmup::Partial(_) => 1,
    };
    let batch = match plan.operands.is_empty() {
        true => batch,
        false => {
            outcome
                .notes
                .extend((batch > 1).then(|| UNBATCHED.to_owned()));
            1
        }
    };
    if batch > 1 {
        let together = repeat(plan.repetitions, || {
            region.run_several(batch, || {
                clear();
                put_back(&state);
            })
        });
        // Where putting back takes so long that its own spread hides the region, single readings are more precise.
        let width = |s: &Samples| s.half_width().unwrap_or(u64::MAX);
        if width(&together) <= width(&samples).max(region.cost) {
            (samples, outcome.batch) = (together, batch);
        }
    }
    outcome.lacking = lost::used_names();
    outcome.tsc_hz = frequency(before);
    outcome.preparation = Preparation {
        restoring: restoring as f64 / outcome.tsc_hz,
        warming: warming as f64 / outcome.tsc_hz,
    };
    let found = samples.finish(outcome.tsc_hz);
    outcome.cycles = found.cycles;
    outcome.set_aside = found.set_aside;
    outcome.disturbed = found.disturbed;
    write_outcome(&plan, &outcome)
}

fn write_outcome(plan: &ReplayPlan, outcome: &ReplayOutcome) -> Result<(), String> {
    let text = serde_json::to_vec(outcome).map_err(|e| format!("outcome: {e}"))?;
    std::fs::write(&plan.outcome, text)
        .map_err(|e| format!("cannot write {}: {e}", plan.outcome.display()))
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

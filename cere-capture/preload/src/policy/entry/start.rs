//! The life of the process: the constructor reads the plan and prepares what it asks for, images that are loaded get their
//! regions armed, and results are finished at the end.

use super::{abandon_state, active, again, filter, handlers, hook, mpi, publish_state};
use crate::engine::{gate, heap, turn};
use crate::os::errno::keep_errno;
use crate::os::report::complain;
use crate::os::section::in_library;
use crate::os::{allowance, aside, images, limits, local, signals, sys, thread};
use crate::policy::plan::{self, StartError};
use crate::policy::profile::{self, booking};
use crate::policy::{hooks, locks, openmp, regions, register, targets, threads};
use cere_format::abi::Hook;
use cere_format::capture::{ENV_RUN, RunMode, RunPlan};
use cere_format::rank;
use std::collections::HashSet;
use std::ffi::c_int;
use std::sync::Mutex;

static RUN: Mutex<Option<Run>> = Mutex::new(None);

/// The run that the process is part of.
struct Run {
    plan: RunPlan,
    /// Starts of the images whose regions are armed.
    seen: HashSet<usize>,
    /// Whether the process has its number in the run.
    begun: bool,
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;
#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = destructor;

extern "C" fn constructor() {
    in_library(cere_inside::rebind::bind);
    keep_errno(|| {
        // A limit on the size of files is no reason to end the program.
        let ignored = sys::Action {
            handler: libc::SIG_IGN,
            ..sys::Action::default()
        };
        let own = sys::exchange_action(libc::SIGXFSZ, Some(&ignored));
        let outcome = std::panic::catch_unwind(|| in_library(begin_run));
        sys::exchange_action(libc::SIGXFSZ, Some(&own));
        match outcome {
            Ok(Ok(())) => {}
            Ok(Err(e)) => complain(&e.to_string()),
            Err(_) => complain("the preload library failed at start; the program runs unprofiled"),
        }
    });
    hook::begin_windows();
}

fn begin_run() -> Result<(), StartError> {
    let Some(path) = std::env::var_os(ENV_RUN) else {
        return Ok(());
    };
    let plan = plan::read_plan(path.as_ref())?;
    if let RunMode::Capture {
        ranks: Some(ranks), ..
    } = &plan.mode
        && !rank::own().is_some_and(|own| ranks.contains(&own))
    {
        return Ok(());
    }
    again::start_again(&plan);
    let stack_limit = plan.stack_limit;
    thread::begin_main();
    signals::register_handlers(handlers::HANDLERS);
    hooks::register_hooks(hook::make_hooks());
    if let RunMode::Capture { wanted, trace, .. } = &plan.mode {
        let state = plan::prepare_state(plan.directory.clone(), wanted, *trace)
            .ok_or(StartError::NoAddressSpace)?;
        threads::take_key();
        local::find_restartable();
        hook::use_stack(state.engine.pages.pool.hook_stack());
        publish_state(state);
        if targets::exist() {
            // Its calls are held while another thread is captured.
            threads::list_this();
        }
    }
    *RUN.lock().map_err(|_| StartError::Spoilt)? = Some(Run {
        plan,
        seen: HashSet::new(),
        begun: false,
    });
    active::claim_process();
    active::activate();
    let (before, after) = (gate::before_fork, gate::after_fork);
    // SAFETY: all three are async-signal-safe.
    unsafe { libc::pthread_atfork(Some(before), Some(after), Some(child)) };
    limits::keep_stacks(stack_limit);
    arm_images()
}

extern "C" fn destructor() {
    // Under a filter even getpid may end the process.
    if filter::is_sealed() {
        return;
    }
    if active::is_this_process() && active::deactivate() {
        active::finish_results();
    }
}

unsafe extern "C" fn child() {
    active::deactivate();
    aside::forget();
    turn::reset_in_child();
    locks::reset_in_child();
    gate::reset_in_child();
    heap::reset_in_child();
    booking::abandon_profile();
    abandon_state();
}

/// Arms the regions of images not seen yet.
pub fn arm_images() -> Result<(), StartError> {
    let mut run = RUN.lock().map_err(|_| StartError::Spoilt)?;
    let Some(run) = run.as_mut() else {
        return Ok(());
    };
    let captures = matches!(run.plan.mode, RunMode::Capture { .. });
    openmp::find_runtime(captures);
    let loaded = images::list_loaded();
    for image in &loaded {
        if image.range.0 == 0 || !run.seen.insert(image.range.0) {
            continue;
        }
        mpi::watch(image, &loaded);
        let found = images::read_sections(image);
        if !run.begun && !found.regions.is_empty() {
            run.begun = true;
            limits::restore_stack_limit();
            allowance::begin();
            aside::start();
            register::claim_number(&run.plan.directory)?;
            if !captures {
                // What the profile holds from now on lies in memory.
                let begun = profile::start::begin_profile(&run.plan.directory);
                aside::end();
                begun?;
            }
        }
        if captures {
            hook::with_state_alone(|state| {
                regions::arm_image(state, image.range.0, found.instrumented, found.regions);
            });
            continue;
        }
        for region in found.regions {
            // SAFETY: a descriptor of a loaded image; the stub has the hook's interface.
            unsafe {
                let timed = match &run.plan.mode {
                    RunMode::Time(these) => these.iter().any(|key| regions::has_key(region, key)),
                    _ => true,
                };
                (*region).scratch = 0;
                let hook =
                    std::mem::transmute::<*const (), Hook>(booking::cere_profile_stub as *const ());
                let hook = if timed {
                    Some(hook)
                } else {
                    hooks::dormant_hook(region)
                };
                (&raw mut (*region).hook).write_volatile(hook);
            }
        }
    }
    Ok(())
}

/// Forgets unloaded images.
pub fn forget_images() {
    if let Ok(mut run) = RUN.lock()
        && let Some(run) = run.as_mut()
    {
        let present: HashSet<usize> = images::list_loaded().iter().map(|i| i.range.0).collect();
        run.seen.retain(|start| present.contains(start));
        hook::with_state_alone(|state| {
            regions::forget_images(state, &|start| present.contains(&start))
        });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn _exit(status: c_int) -> ! {
    destructor();
    loop {
        // SAFETY: ends the process as libc's does.
        unsafe { sys::call(libc::SYS_exit_group, [status as usize, 0, 0, 0, 0, 0]) };
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn _Exit(status: c_int) -> ! {
    // SAFETY: the same function.
    unsafe { _exit(status) }
}

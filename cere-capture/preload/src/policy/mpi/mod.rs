//! Calls of MPI inside captured invocations: what they are given and what they do is kept, and a replay answers them so.
//!
//! | module | what |
//! |---|---|
//! | [`signatures`] | the functions, and what their arguments are |
//! | [`library`] | the MPI library, asked about datatypes and communicators |
//! | [`bound`] | those that the program calls |
//! | [`areas`] | the memory behind the arguments of a call |
//!
//! Ordinary code, with everything open.

mod areas;
pub mod bound;
pub mod library;
mod signatures;

use self::areas::Given;
use self::library::library;
use self::signatures::{Form, Function};
use super::refusal::Refusal;
use super::state::State;
use super::surroundings::lay_out;
use crate::engine::answered::{self, Unanswered};
use crate::engine::calls::{Area, Underway, read_handle};
use crate::engine::level::Level;
use crate::engine::parallel;
use crate::os::local;
use crate::os::sys::{self, PAGE};
use cere_format::mpi::{ARGUMENTS_MOST, MPI_MOST, begin};

const MANY_THREADS: &str = "several threads may call MPI (MPI_THREAD_MULTIPLE), so what changes meanwhile is not its work alone";
const NO_THREADS: &str = "the MPI library does not say whether several threads may call it";
const BY_MODULE: &str = "it is called as Fortran's module mpi_f08 does";

/// A call of the program's.
pub struct Call {
    /// What it calls.
    pub function: &'static Function,
    /// As which language does.
    pub form: Form,
    /// The number of the function among those that the program refers to.
    pub number: u32,
    /// Its arguments, as the processor has them.
    pub words: [usize; ARGUMENTS_MOST],
    /// Its stack pointer.
    pub stack: usize,
}

/// Whether a captured invocation can pause for calls of this function in the calling thread.
pub fn is_answered(function: &Function) -> bool {
    function.arguments.is_some() && !parallel::in_parallel() && !local::is_of_team()
}

impl Call {
    fn given(&self, number: u32) -> Result<Given<'static>, &'static str> {
        let library = library()?;
        if self.form == Form::Module {
            return Err(BY_MODULE);
        }
        if library.serves_threads().ok_or(NO_THREADS)? {
            return Err(MANY_THREADS);
        }
        Ok(Given {
            function: self.function,
            form: self.form,
            words: self.words,
            library,
            number,
        })
    }
}

impl Unanswered {
    fn reason(self) -> String {
        match self {
            Unanswered::Shared(at) => {
                format!("it writes {at:#x}, which other processes or addresses share")
            }
            Unanswered::OwnFrames(at) => {
                format!(
                    "it changes {at:#x}, a variable of the region's frames that no argument leads to"
                )
            }
            Unanswered::TooMuch => "its pages and what its calls move take more than 2 GiB".into(),
            Unanswered::Lack(lack) => format!("it takes {lack}"),
        }
    }
}

/// Whether all of an area is there.
fn is_mapped(area: &Area) -> bool {
    let first = area.start & !(PAGE - 1);
    let end = area.start.saturating_add(area.length);
    area.length == 0 || sys::is_mapped(first, (end - first).next_multiple_of(PAGE))
}

/// The captured invocation is about to make this call. What it is given is kept, and what it may change is captured.
pub fn begin_call(state: &mut State, call: &Call) -> Result<(), Refusal> {
    let engine = &mut state.engine;
    let refuse = |why: String| Refusal::Calls(call.function.name, why);
    let Some(number) = engine.level.as_ref().map(|level| level.answered.count) else {
        return Ok(());
    };
    let given = call.given(number).map_err(|why| refuse(why.into()))?;
    let mut areas = given.areas().map_err(|why| refuse(why.into()))?;
    // A buffer for nobody (`MPI_PROC_NULL`) may lie anywhere.
    areas.sent.retain(is_mapped);
    let moved = areas.sent.iter().chain(&areas.received).chain(&areas.later);
    let moved: u64 = moved.map(|area| area.length as u64).sum();
    let level = engine.level.as_ref();
    let held = level.map_or(0, |level| {
        (level.touched * PAGE + level.answered.list.len()) as u64
    });
    if moved + held > MPI_MOST {
        return Err(refuse(Unanswered::TooMuch.reason()));
    }
    let arguments = given.readings(|at| engine.in_own_frames(at));
    let written = areas.left.iter().chain(&areas.received).chain(&areas.later);
    for area in written {
        let taken = engine.take_area(area);
        taken.map_err(|lack| refuse(lack.reason()))?;
    }
    // Elsewhere what has changed is kept, and no more: what the invocation itself has put beside it has to be right.
    let own = |area: &Area| engine.in_own_frames(area.start) && is_mapped(area);
    areas.left.extend(areas.received.into_iter().filter(own));
    areas.later.retain(own);
    let handle = given.handle_size();
    // SAFETY: the call's own arguments, open.
    let requests = areas
        .requests
        .iter()
        .map(|at| (*at, unsafe { read_handle(*at, handle) }));
    let requests = requests.collect();
    if let Some(Level { answered, .. }) = engine.level.as_mut() {
        let mut begun = begin(&mut answered.list, call.number, &arguments);
        for area in &areas.sent {
            answered::keep(&mut answered.list, &mut begun, number, area, true);
        }
        engine.pause(Underway {
            name: call.function.name,
            stack: call.stack,
            begun,
            left: areas.left,
            later: areas.later,
            begins: areas.begins,
            requests,
            handle,
        });
    }
    Ok(())
}

/// The call has returned this, on this stack. What it has changed is kept, and what it has mapped is known.
pub fn end_call(state: &mut State, result: u64, stack: usize) -> Result<(), Refusal> {
    let underway = |state: &State| {
        Some(
            state
                .engine
                .level
                .as_ref()?
                .answered
                .underway
                .as_ref()?
                .name,
        )
    };
    let Some(name) = underway(state) else {
        return Ok(());
    };
    // It may have unmapped pages that the capture has.
    lay_out(state, stack).map_err(Refusal::Memory)?;
    let answered = state.engine.answer(result);
    answered.map_err(|why| Refusal::Calls(name, why.reason()))
}

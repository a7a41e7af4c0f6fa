//! One run of the region on the captured state, timed; and several that share one reading of the clock.

use crate::control::{Control, Own};
use crate::library::Environment;
use crate::samples::Timed;
use crate::trampoline::{Switch, cere_switch};
use crate::{clock, counters, heap, mpi};
use cere_arch::float;
use cere_format::package::Manifest;

/// Times the clock's cost below which a run is too short to be timed by itself.
pub const SHORT: u64 = 50;
/// Times the clock's cost that runs sharing one reading take together, about.
const TOGETHER: u64 = 1000;
/// Runs that share one reading, at most.
const MOST: u64 = 1000;

/// The region, ready to run.
pub struct Region<'a> {
    manifest: &'a Manifest,
    invoke: u64,
    environment: Option<Environment>,
    control: &'a Control,
    /// Whether other threads of a team take part.
    several: bool,
    /// Page faults that are the region's own: two for a page that is read first and written then.
    faults: u64,
    /// Cycles of a switch that runs nothing.
    pub cost: u64,
    /// Denormal numbers count as zero.
    coarse: bool,
}

extern "C" fn nothing() {}

impl<'a> Region<'a> {
    /// `invoke` is its trampoline; `control` its thread, `absent` the number of pages that were not in memory at entry; `several`: other
    /// threads of a team take part.
    pub fn new(
        manifest: &'a Manifest,
        invoke: u64,
        (environment, control): (Option<Environment>, &'a Control),
        absent: u64,
        several: bool,
    ) -> Self {
        Self {
            manifest,
            invoke,
            environment,
            control,
            several,
            faults: 2 * absent,
            cost: cost(manifest),
            coarse: false,
        }
    }

    /// Denormal numbers count as zero: data that is of no use would be full of them, and they are slow.
    pub fn without_denormals(mut self) -> Self {
        self.coarse = true;
        self
    }

    /// Runs it once; whether an exception left it. The captured state must be in place. `counters` count it.
    pub fn run(&self, counters: &[i32]) -> (Timed, bool) {
        let mut switch = switch(self.manifest, self.invoke);
        if self.coarse {
            switch.control = switch.control.without_denormals();
        }
        let own = self.exchange();
        heap::begin();
        mpi::begin();
        let spent = mpi::spent();
        let before = cere_timing::clock::usage();
        // SAFETY: the captured state is in place.
        let unwound = unsafe { enter(&mut switch, counters) };
        let mut usage = cere_timing::clock::usage().since(before);
        usage.faults = usage.faults.saturating_sub(self.faults);
        heap::end();
        self.put_back(own);
        let cycles = switch.end.saturating_sub(switch.start);
        let answering = mpi::spent() - spent;
        let timed = Timed {
            cycles: cycles.saturating_sub(self.cost + answering),
            usage,
            // The system may place the threads of a team as it does in vivo.
            moved: !self.several && switch.processor_before != switch.processor_after,
        };
        (timed, unwound)
    }

    /// Runs nothing in the same way.
    pub fn run_nothing(&self, counters: &[i32]) {
        let mut switch = switch(self.manifest, nothing as *const () as u64);
        let own = self.exchange();
        std::hint::black_box(cere_timing::clock::usage());
        // SAFETY: the captured stack has room below.
        unsafe { enter(&mut switch, counters) };
        std::hint::black_box(cere_timing::clock::usage());
        self.put_back(own);
    }

    /// Puts the captured environment and thread in place; gives what was there.
    fn exchange(&self) -> (Option<u64>, Option<Own>) {
        let environment = self.environment.as_ref().map(Environment::exchange);
        (environment, self.control.exchange())
    }

    fn put_back(&self, (own, thread): (Option<u64>, Option<Own>)) {
        self.control.put_back(thread);
        if let (Some(environment), Some(own)) = (&self.environment, own) {
            environment.put_back(own);
        }
    }

    /// How many runs of `median` cycles share one reading; 1 if each is long enough for its own.
    pub fn batch(&self, median: u64) -> u32 {
        if median >= SHORT * self.cost {
            return 1;
        }
        (TOGETHER * self.cost / median.max(1)).clamp(2, MOST) as u32
    }

    /// `batch` runs, each with its state put back, against `batch` times putting it back: cycles of one run.
    pub fn run_several(&self, batch: u32, mut put_back: impl FnMut()) -> Timed {
        let before = cere_timing::clock::usage();
        let (mut moved, mut cycles) = (false, [0; 2]);
        let spent = mpi::spent();
        for (part, cycles) in cycles.iter_mut().enumerate() {
            let from = cere_timing::clock::start();
            for _ in 0..batch {
                put_back();
                match part {
                    0 => moved |= self.run(counters::NONE).0.moved,
                    _ => self.run_nothing(counters::NONE),
                }
            }
            *cycles = cere_timing::clock::stop().saturating_sub(from);
        }
        let mut usage = cere_timing::clock::usage().since(before);
        usage.faults = usage.faults.saturating_sub(u64::from(batch) * self.faults);
        Timed {
            cycles: cycles[0].saturating_sub(cycles[1] + mpi::spent() - spent) / u64::from(batch),
            usage,
            moved,
        }
    }
}

/// Makes the switch, with `counters` switched on just before and off just after; whether an exception left what ran. The same
/// instructions for the region and for nothing.
///
/// # Safety
/// What runs finds its memory and its stack in place.
#[inline(never)]
unsafe fn enter(switch: &mut Switch, counters: &[i32]) -> bool {
    counters::enable(counters);
    clock::begin();
    // SAFETY: memory and stack of the region are in place.
    let unwound = unsafe { cere_switch(switch) } != 0;
    clock::end();
    counters::disable(counters);
    unwound
}

fn switch(manifest: &Manifest, invoke: u64) -> Switch {
    Switch {
        invoke,
        arguments: manifest.entry.arguments,
        stack_pointer: manifest.entry.stack_pointer,
        control: float::Control::captured(manifest.entry.mxcsr, manifest.entry.x87_control),
        start: 0,
        end: 0,
        processor_before: 0,
        processor_after: 0,
    }
}

/// Cycles of a switch that runs nothing, the least of many.
fn cost(manifest: &Manifest) -> u64 {
    let mut stack = vec![0u64; 1024];
    let top = (&raw mut stack[1000]) as u64 & !63;
    let once = |_| {
        let mut switch = switch(manifest, nothing as *const () as u64);
        switch.stack_pointer = top;
        clock::begin();
        // SAFETY: a stack of our own.
        unsafe { cere_switch(&mut switch) };
        clock::end();
        switch.end - switch.start
    };
    (0..100).map(once).min().unwrap_or(0)
}

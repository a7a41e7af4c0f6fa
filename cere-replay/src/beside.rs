//! Copies of a replay that run beside it: where other threads computed in vivo, caches and memory were shared.

use crate::place::Place;
use crate::process::{Watch, prepared};
use crate::{Options, ReplayError, limit, plan};
use cere_format::package::Manifest;
use cere_format::replay::{Repetitions, ReplayPlan};
use cere_toolchain::io;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

/// Processor time of a copy that has loaded its memory and repeats, in ticks of 10 ms, and how long that is waited for.
const AT_WORK: u64 = 3;
const PATIENCE: Duration = Duration::from_secs(2);

/// Copies that run until this is dropped.
pub struct Copies(Vec<(Child, Place)>);

/// How many run beside a replay of `manifest`, and a remark if they are not as many as computed in vivo: no more than leave the
/// replay a processor of its own.
pub fn number(manifest: &Manifest, options: &Options) -> (u32, Option<String>) {
    let asked = options.settings.beside.unwrap_or(manifest.beside);
    let processors = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let team = plan::threads(manifest, options.settings.team.threads).unwrap_or(1);
    let running = asked.min(processors.saturating_sub(team));
    let copies = match running {
        0 => "no copy ran".to_owned(),
        1 => "1 copy ran".to_owned(),
        more => format!("{more} copies ran"),
    };
    let remark = match (options.settings.beside, asked) {
        (_, 0) => None,
        (None, _) if running < asked => Some(format!(
            "{asked} other threads computed in vivo; {copies} beside it, for this machine has {processors} processors"
        )),
        (Some(_), _) if running < asked => Some(format!(
            "{copies} beside it, for this machine has {processors} processors"
        )),
        _ => Some(format!("{copies} beside it")),
    };
    (running, remark)
}

/// A remark that copies would run beside a replay of `manifest` but for its energy.
pub fn left_out(manifest: &Manifest, options: &Options) -> Option<String> {
    let asked = options.settings.beside.unwrap_or(manifest.beside);
    (asked > 0).then(|| {
        format!("none of {asked} copies ran beside it: their energy would be counted with its own")
    })
}

impl Copies {
    /// Starts so many copies of what `plan` says, and waits until they are at work.
    pub fn start(
        number: u32,
        executable: &Path,
        manifest: &Manifest,
        plan: &ReplayPlan,
        options: &Options,
    ) -> Result<Self, ReplayError> {
        let mut copies = Self(Vec::new());
        let limit = limit::of(manifest, plan, false, options);
        for _ in 0..number {
            let place = Place::in_cache(&options.cache)?;
            let own = ReplayPlan {
                outcome: place.outcome(),
                repetitions: Repetitions::exactly(1_000_000),
                compare: false,
                ..plan.clone()
            };
            let watch = Watch::Clock;
            let mut command =
                prepared(executable, manifest, &own, &place, &limit, &watch, options)?;
            let child = command.spawn().map_err(io("start", executable))?;
            copies.0.push((child, place));
        }
        let began = Instant::now();
        while began.elapsed() < PATIENCE && !copies.0.iter().all(|(child, _)| works(child)) {
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(copies)
    }

    /// A remark if one has ended already.
    pub fn ended(&mut self) -> Option<String> {
        let ended = |(child, _): &mut (Child, Place)| !matches!(child.try_wait(), Ok(None));
        let over = self.0.iter_mut().any(ended);
        over.then(|| "a copy beside it ended before it did".to_owned())
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        for (child, _) in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Whether a copy has used enough processor time to be past its start, or has ended.
fn works(child: &Child) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
    // Behind the name: state, and eleven fields on the times in user and system mode.
    let fields: Vec<&str> = text
        .rsplit(')')
        .next()
        .unwrap_or("")
        .split_whitespace()
        .collect();
    let ticks = |place: usize| fields.get(place).and_then(|f| f.parse::<u64>().ok());
    let ended = fields.first().is_none_or(|state| *state == "Z");
    ended
        || ticks(11)
            .zip(ticks(12))
            .is_some_and(|(a, b)| a + b >= AT_WORK)
}

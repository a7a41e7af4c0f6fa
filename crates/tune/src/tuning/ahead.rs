//! Compiles variants ahead while another one is timed.

use crate::Variant;
use cere_measure::{Builds, Measure, Target};
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::Instant;

/// A request: number, region, variant.
type Job = (u64, usize, Variant);
/// Its number and outcome.
type Done = (u64, Result<Builds, String>);

/// Builds variants in other threads.
pub struct Ahead<'a> {
    jobs: Sender<Job>,
    done: Receiver<Done>,
    made: HashMap<u64, Result<Builds, String>>,
    /// Number of the next request.
    requested: u64,
    quiet: Option<&'a RwLock<()>>,
}

impl Ahead<'_> {
    /// Runs `work` with `threads` builders beside it. On a machine with few processors nothing is built while something is
    /// timed, because that would disturb the time.
    pub fn with<T>(
        lab: &dyn Measure,
        targets: &[&Target],
        threads: usize,
        work: impl FnOnce(&mut Ahead) -> T,
    ) -> T {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let quiet = RwLock::new(());
        let shared = (cores < 2 * threads + 2).then_some(&quiet);
        let (jobs, waiting) = channel::<Job>();
        let waiting = Mutex::new(waiting);
        let (send, done) = channel::<Done>();
        std::thread::scope(|scope| {
            for _ in 0..threads.max(1) {
                let (waiting, send) = (&waiting, send.clone());
                scope.spawn(move || {
                    loop {
                        let next = waiting
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .recv();
                        let Ok((number, target, variant)) = next else {
                            return;
                        };
                        let turn = shared.map(|q| q.read().unwrap_or_else(PoisonError::into_inner));
                        let built = lab.build_new(targets[target], &variant);
                        drop(turn);
                        if send.send((number, built)).is_err() {
                            return;
                        }
                    }
                });
            }
            let mut ahead = Ahead {
                jobs,
                done,
                made: HashMap::new(),
                requested: 0,
                quiet: shared,
            };
            work(&mut ahead)
        })
    }

    /// Requests the build of a variant, and returns its number.
    pub fn request_build(&mut self, target: usize, variant: &Variant) -> u64 {
        let number = self.requested;
        self.requested += 1;
        // Closing the channel ends the builders.
        let _ = self.jobs.send((number, target, variant.clone()));
        number
    }

    /// Waits until the build with this number is finished.
    pub fn wait_for_build(&mut self, number: u64) -> Result<Builds, String> {
        loop {
            if let Some(built) = self.made.remove(&number) {
                return built;
            }
            match self.done.recv() {
                Ok((number, built)) => {
                    self.made.insert(number, built);
                }
                Err(_) => return Err("the builders have ended".into()),
            }
        }
    }

    /// Runs `work` while nothing is built, if builds would disturb it. Adds the seconds of waiting for builds to `waited`.
    pub fn quietly<T>(&self, waited: &mut f64, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let turn = self
            .quiet
            .map(|q| q.write().unwrap_or_else(PoisonError::into_inner));
        *waited += start.elapsed().as_secs_f64();
        let done = work();
        drop(turn);
        done
    }
}

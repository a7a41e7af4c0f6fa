//! The energy of the region, by counters that the command has opened: rounds of invocations, each against its preparation alone.

use crate::error::Error;
use cere_format::replay::{EnergyPlan, EnergyRound};
use cere_timing::clock::monotonic_ns;
use cere_timing::energy::{Counter, Counters};
use std::fs::File;
use std::os::fd::FromRawFd;

/// Seconds after which a round ends though the region has not run as long as it should: what prepares it takes far longer.
const MOST: f64 = 2.0;

/// What runs while counters count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Puts the region's state in place.
    Prepare,
    /// Runs the region.
    Region,
    /// Runs nothing in its place.
    Nothing,
    /// Puts away what the run left.
    Clear,
}

/// Counters that count while parts of a replay run.
pub struct Meter<'a> {
    plan: &'a EnergyPlan,
    counters: Counters,
}

impl<'a> Meter<'a> {
    /// With the counters of the plan, which nobody else takes from this process.
    pub fn new(plan: &'a EnergyPlan) -> Self {
        let counter = |c: &cere_format::replay::EnergyCounter| {
            // SAFETY: the command has opened it for this process, and it is taken once.
            let file = unsafe { File::from_raw_fd(c.descriptor) };
            Counter::inherited(&c.name, c.range, file)
        };
        Self {
            plan,
            counters: Counters::of(plan.counters.iter().map(counter).collect()),
        }
    }

    /// All rounds of a region that takes about `each` seconds. `run` does a part and gives its seconds inside the region.
    ///
    /// # Errors
    /// A counter cannot be read, or none moves.
    pub fn measure(
        &self,
        each: f64,
        mut run: impl FnMut(Part) -> f64,
    ) -> Result<Vec<EnergyRound>, Error> {
        let alone = each >= self.plan.seconds;
        let mut rounds = Vec::new();
        for _ in 0..self.plan.rounds {
            rounds.push(match alone {
                true => self.alone(&mut run)?,
                false => self.together(&mut run)?,
            });
        }
        Ok(rounds)
    }

    /// What `work` takes: what it gives, joules, seconds.
    fn count<T>(&self, work: impl FnOnce() -> T) -> Result<(T, f64, f64), Error> {
        let (from, began) = (self.counters.read().map_err(Error::Energy)?, monotonic_ns());
        let given = work();
        let seconds = since(began);
        let joules = self.counters.since(&from, seconds).map_err(Error::Energy)?;
        Ok((given, joules, seconds))
    }

    /// One invocation without its preparation.
    fn alone(&self, run: &mut impl FnMut(Part) -> f64) -> Result<EnergyRound, Error> {
        run(Part::Prepare);
        let (inside, joules, seconds) = self.count(|| run(Part::Region))?;
        run(Part::Clear);
        Ok(EnergyRound {
            invocations: 1,
            joules,
            seconds,
            inside,
            preparing: None,
        })
    }

    /// As many invocations as are long enough together, and as long a time of preparing alone.
    fn together(&self, run: &mut impl FnMut(Part) -> f64) -> Result<EnergyRound, Error> {
        let began = monotonic_ns();
        let ((invocations, inside), joules, seconds) = self.count(|| {
            let (mut invocations, mut inside) = (0, 0.0);
            while inside < self.plan.seconds && since(began) < MOST || invocations == 0 {
                run(Part::Prepare);
                inside += run(Part::Region);
                run(Part::Clear);
                invocations += 1;
            }
            (invocations, inside)
        })?;
        let began = monotonic_ns();
        let ((), idle, prepared) = self.count(|| {
            while since(began) < self.plan.seconds {
                run(Part::Prepare);
                run(Part::Nothing);
                run(Part::Clear);
            }
        })?;
        Ok(EnergyRound {
            invocations,
            joules,
            seconds,
            inside,
            preparing: Some((idle, prepared)),
        })
    }
}

fn since(began: u64) -> f64 {
    monotonic_ns().saturating_sub(began) as f64 * 1e-9
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::IntoRawFd;
    use std::os::unix::fs::FileExt;
    use std::time::Duration;

    /// A plan with a counter that begins again at 5 J, and its file.
    fn plan(rounds: u32) -> (EnergyPlan, File) {
        let file = tempfile::tempfile().expect("a file");
        let counter = cere_format::replay::EnergyCounter {
            name: "package-0".to_owned(),
            descriptor: file.try_clone().expect("a descriptor").into_raw_fd(),
            range: 5_000_000,
        };
        let plan = EnergyPlan {
            counters: vec![counter],
            rounds,
            seconds: 0.02,
        };
        (plan, file)
    }

    /// A machine on which preparing takes 2 ms and 3 mJ, the region `each` seconds and 1 mJ for each.
    fn machine(file: &File, each: f64) -> impl FnMut(Part) -> f64 {
        let mut total = 4_900_000;
        move |part| {
            let (seconds, microjoules, inside) = match part {
                Part::Prepare => (0.002, 3000, 0.0),
                Part::Region => (each, (each * 1e6) as u64, each),
                Part::Nothing | Part::Clear => (0.0, 0, 0.0),
            };
            std::thread::sleep(Duration::from_secs_f64(seconds));
            total = (total + microjoules) % 5_000_000;
            let text = format!("{total:020}\n");
            file.write_all_at(text.as_bytes(), 0).expect("written");
            inside
        }
    }

    #[test]
    fn preparing_does_not_count() {
        let (plan, file) = plan(3);
        let mut run = machine(&file, 0.005);
        run(Part::Clear);
        let found = Meter::new(&plan).measure(0.005, run).expect("counters");
        assert_eq!(found.len(), 3);
        for round in found {
            assert_eq!(round.invocations, 4, "{round:?}");
            // 4 * (3 + 5) mJ; a sleep may be longer than it should, so what is outside is known by its bounds.
            assert!((round.joules - 0.032).abs() < 1e-9, "{round:?}");
            let (idle, prepared) = round.preparing.expect("prepared apart");
            assert!(prepared >= 0.02 && idle > 0.0, "{round:?}");
            let outside = round.seconds - round.inside;
            let each = (0.032 - idle / prepared * outside) / 4.0;
            assert!((round.joules_each() - each).abs() < 1e-9, "{round:?}");
            assert!(round.joules_each() < 0.008, "{round:?}");
        }
    }

    #[test]
    fn a_long_region_is_alone() {
        let (plan, file) = plan(2);
        let mut run = machine(&file, 0.03);
        run(Part::Clear);
        let found = Meter::new(&plan).measure(0.03, run).expect("counters");
        for round in found {
            assert_eq!((round.invocations, round.preparing), (1, None));
            assert!((round.joules_each() - 0.03).abs() < 1e-9, "{round:?}");
            assert!((round.seconds_each() - 0.03).abs() < 1e-9, "{round:?}");
        }
    }

    #[test]
    fn a_counter_that_stands_still_is_an_error() {
        let (plan, file) = plan(1);
        file.write_all_at(b"7\n", 0).expect("written");
        let run = |part| match part {
            Part::Region => {
                std::thread::sleep(Duration::from_millis(60));
                0.06
            }
            _ => 0.0,
        };
        let found = Meter::new(&plan).measure(0.06, run);
        assert!(matches!(found, Err(Error::Energy(_))), "{found:?}");
    }
}

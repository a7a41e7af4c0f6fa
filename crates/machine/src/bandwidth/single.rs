//! One core: the best width, unrolling and number of streams of each kernel.

use super::deadline::Deadline;
use super::kernels::{Kernel, Shape};
use super::measured::Winner;
use super::plan::Spot;
use super::window::{Runner, area as area_of, best, room};
use crate::Error;
use crate::document::curve;
use crate::session::Session;
use cere_format::machine::Curve;
use cere_timing::area::Area;

/// Nanoseconds of a window in a cache.
const WINDOW: f64 = 100e3;

fn shapes(quick: bool, kernel: Kernel) -> Vec<Shape> {
    let (unrolls, streams): (&[u32], &[u32]) = match (kernel, quick) {
        (Kernel::Random, _) => (&[1], &[1]),
        (_, true) => (&[4], &[1, 2]),
        (_, false) => (&[1, 2, 4, 8], &[1, 2, 4]),
    };
    let widths = match kernel {
        Kernel::Random => vec![128],
        _ => Shape::widths(),
    };
    let mut found = Vec::new();
    for bits in widths {
        for unroll in unrolls {
            let shape = |streams: &u32| Shape {
                bits,
                unroll: *unroll,
                streams: *streams,
            };
            found.extend(streams.iter().map(shape));
        }
    }
    found
}

/// Measures each kernel at each spot. Levels that came too late for `deadline` are left out, memory last.
pub fn measure(
    session: &Session,
    spots: &[Result<Spot, (u32, String)>],
    deadline: &Deadline,
) -> Result<(Vec<Winner>, Option<Curve>), Error> {
    let spots: Vec<Spot> = spots
        .iter()
        .filter_map(|s| s.as_ref().ok())
        .copied()
        .collect();
    let (area, spots) = fitting(&spots, &deadline.part(0.4))?;
    let mut turn = 0;
    let mut winners = Vec::new();
    for (at, spot) in spots.iter().enumerate() {
        let share = deadline.part(1.0 / (spots.len() - at) as f64);
        let kernels = Kernel::ALL.into_iter();
        // A store past the caches knows no level.
        let kernels: Vec<Kernel> = kernels
            .filter(|k| spot.level == 0 || *k != Kernel::NtStore)
            .collect();
        runner(Kernel::Load, shapes(true, Kernel::Load)[0], *spot, &area)?.warm(&mut turn);
        for (done, kernel) in kernels.iter().enumerate() {
            let share = share.part(1.0 / (kernels.len() - done) as f64);
            winners.extend(search(session, *kernel, *spot, &area, &share, &mut turn)?);
        }
    }
    let curve = match session.quick {
        true => None,
        false => by_set(session, &winners, &area)?,
    };
    Ok((winners, curve))
}

/// Memory for the largest of `spots`, and those as far as they fit what could be touched in time.
pub fn fitting(spots: &[Spot], deadline: &Deadline) -> Result<(Area, Vec<Spot>), Error> {
    let nothing = Spot {
        level: 0,
        set: 1 << 20,
        whole: false,
    };
    let largest = spots
        .iter()
        .copied()
        .max_by_key(|s| room(*s))
        .unwrap_or(nothing);
    let (area, fits) = area_of(largest, deadline)?;
    let fit = |spot: &Spot| match room(*spot) <= room(fits) {
        true => *spot,
        false => Spot {
            set: fits.set.min(spot.set),
            whole: false,
            ..*spot
        },
    };
    Ok((area, spots.iter().map(fit).collect()))
}

fn runner(kernel: Kernel, shape: Shape, spot: Spot, area: &Area) -> Result<Runner, Error> {
    // SAFETY: the area outlives the runner in all functions here, and has room for the largest spot.
    unsafe { Runner::new(kernel, shape, spot, area.address()) }
}

/// The rate of one window, bytes per second.
fn rate(session: &Session, runner: &mut Runner, turn: &mut u64) -> f64 {
    let window = runner.run(turn);
    window.bytes as f64 / session.nanoseconds(window.to.saturating_sub(window.from).max(1)) * 1e9
}

/// All shapes in turns, the better quarter again, the best until time is over or it has 12 windows more.
fn search(
    session: &Session,
    kernel: Kernel,
    spot: Spot,
    area: &Area,
    deadline: &Deadline,
    turn: &mut u64,
) -> Result<Option<Winner>, Error> {
    // Random loads in memory begin with none of their pages in the TLB.
    let long = if spot.level == 0 { 20.0 } else { 1.0 };
    let ticks = (WINDOW * long / session.nanoseconds(1)) as u64;
    let mut tried = Vec::new();
    for shape in shapes(session.quick, kernel) {
        let mut runner = runner(kernel, shape, spot, area)?;
        runner.calibrate(ticks, turn);
        tried.push((runner, shape, Vec::new()));
        // At least three, whatever the time.
        if deadline.over() && tried.len() > 2 {
            break;
        }
    }
    let mut rounds = [2, session.pick(3, 5), session.pick(6, 12)].into_iter();
    while let Some(times) = rounds.next() {
        for _ in 0..times {
            for (runner, _, rates) in &mut tried {
                let found = rate(session, runner, turn);
                rates.push(found);
            }
            if deadline.over() && tried[0].2.len() > 2 {
                break;
            }
        }
        tried.sort_by(|a, b| top(&b.2).total_cmp(&top(&a.2)));
        tried.truncate(if rounds.len() > 1 {
            tried.len().div_ceil(4)
        } else {
            1
        });
    }
    let winner = tried.into_iter().next().and_then(|(runner, shape, rates)| {
        Some(Winner {
            kernel,
            shape,
            spot,
            sweeps: runner.sweeps(),
            best: best(rates)?,
        })
    });
    Ok(winner)
}

fn top(rates: &[f64]) -> f64 {
    rates.iter().copied().fold(0.0, f64::max)
}

/// Bandwidth of loads by working set, as the nearest level's best are written.
fn by_set(session: &Session, winners: &[Winner], area: &Area) -> Result<Option<Curve>, Error> {
    let loads = winners.iter().filter(|w| w.kernel == Kernel::Load);
    let loads: Vec<&Winner> = loads.collect();
    let Some(nearest) = loads.first() else {
        return Ok(None);
    };
    let ticks = (WINDOW / session.nanoseconds(1)) as u64;
    let mut points = Vec::new();
    let mut set = 4096.0f64;
    while set < (16 << 20).min(area.len() - 32768) as f64 {
        let spot = Spot {
            level: 1,
            set: set as u64,
            whole: true,
        };
        let mut runner = runner(Kernel::Load, nearest.shape, spot, area)?;
        let mut turn = 0;
        runner.calibrate(ticks, &mut turn);
        let rates = (0..3).map(|_| rate(session, &mut runner, &mut turn));
        points.push((set, rates.fold(0.0, f64::max)));
        set *= std::f64::consts::SQRT_2;
    }
    let marks = loads.iter().map(|w| {
        let name = match w.spot.level {
            0 => "memory".to_owned(),
            level => format!("L{level}"),
        };
        (w.spot.set as f64, name)
    });
    let titles = [
        "Bandwidth of loads by working set, one core",
        "working set, bytes",
        "bytes per second",
    ];
    Ok(Some(curve(titles, points, marks)))
}

//! Runs the searches of all regions on this machine: takes turns, builds ahead, times.

use super::ahead::Ahead;
use super::budget::Left;
use super::course::{Course, NOTHING_GAINS, TARGET_REACHED, Turn};
use super::evaluator::Evaluator;
use crate::Turns;
use anyhow::Result;
use cere_measure::Measure;
use cere_system::console::print;
use cere_system::events::Events;
use std::collections::VecDeque;
use std::time::Instant;

/// A search, and what evaluates its variants.
pub type Pair<'a> = (Course<'a>, Evaluator<'a>);

/// Evaluates variants until the budget is used up or all searches have ended.
pub fn go_on(
    events: &Events,
    lab: &dyn Measure,
    pairs: &mut [Pair],
    ahead: &mut Ahead,
    left: &mut Left,
    wanted: Option<f64>,
    jobs: usize,
) -> Result<()> {
    let weights: Vec<f64> = pairs.iter().map(|(course, _)| course.weight()).collect();
    let mut turns = Turns::new(&weights);
    let bar = events.work("tuning");
    // Ticket of the build, index of the search, number of the proposal.
    let mut waiting: VecDeque<(u64, usize, u64)> = VecDeque::new();
    for (place, (course, _)) in pairs.iter().enumerate() {
        for number in &course.pending {
            let ticket = ahead.request_build(course.place, &course.variant(*number));
            waiting.push_back((ticket, place, *number));
        }
    }
    let mut made = 0;
    loop {
        while waiting.len() < jobs + 1 {
            let Some(place) = turns.next() else { break };
            let course = &mut pairs[place].0;
            match course.take_turn(left)? {
                Turn::Proposed(number, variant) => {
                    let ticket = ahead.request_build(course.place, &variant);
                    waiting.push_back((ticket, place, number));
                }
                Turn::Ended => turns.done(place),
                Turn::Waits | Turn::NoBudget => break,
            }
        }
        let Some((ticket, place, number)) = waiting.pop_front() else {
            break;
        };
        evaluate(lab, &mut pairs[place], ahead, (ticket, number), wanted)?;
        made += 1;
        let course = &pairs[place].0;
        let rest = left
            .seconds(made)
            .map_or(String::new(), |s| format!(", {} left", print::time(s)));
        bar.at(format!(
            "{}: {} evaluated, best {:.3} times as fast{rest}",
            course.target.name,
            course.found.evaluations,
            1.0 / course.best()
        ));
    }
    Ok(())
}

/// Evaluates the proposal with this number, built by this ticket. Ends the search if the target is reached or nothing gains.
fn evaluate(
    lab: &dyn Measure,
    (course, evaluator): &mut Pair,
    ahead: &mut Ahead,
    (ticket, number): (u64, u64),
    wanted: Option<f64>,
) -> Result<()> {
    let start = Instant::now();
    let built = ahead.wait_for_build(ticket);
    evaluator.spent.waiting += start.elapsed().as_secs_f64();
    let told = evaluator.evaluate(lab, ahead, &course.variant(number), built)?;
    course.settle(number, told)?;
    if let Some((best, wanted)) = course.promising(wanted)
        && evaluator.reaches(lab, ahead, &best, wanted)
    {
        course.found.ended = Some(TARGET_REACHED);
    }
    if course.found.ended.is_none()
        && let Some(best) = course.look_at_best()
        && !evaluator.gains(lab, ahead, &best)
    {
        course.found.ended = Some(NOTHING_GAINS);
    }
    course.found.spent += std::mem::take(&mut evaluator.spent);
    Ok(())
}

//! Runs the searches of all regions on this machine: takes turns, builds ahead, times.

use super::ahead::Ahead;
use super::budget::Left;
use super::course::{ALL_TRIED, Course, NOTHING_GAINS, TARGET_REACHED};
use super::evaluator::Evaluator;
use crate::Turns;
use anyhow::{Error, Result};
use cere_measure::Measure;
use cere_system::console::{print, progress};
use std::collections::VecDeque;

/// A search, and what evaluates its variants.
pub type Pair<'a> = (Course<'a>, Evaluator<'a>);

/// Evaluates variants until the budget is used up or all searches have ended.
pub fn go_on(
    lab: &dyn Measure,
    pairs: &mut [Pair],
    ahead: &mut Ahead,
    left: &mut Left,
    wanted: Option<f64>,
    jobs: usize,
) -> Result<()> {
    let weights: Vec<f64> = pairs.iter().map(|(course, _)| course.weight()).collect();
    let mut turns = Turns::new(&weights);
    let bar = progress::spinner("tuning".into());
    let mut waiting: VecDeque<(u64, usize, u64)> = VecDeque::new();
    let mut ticket = 0;
    let mut made = 0;
    for (place, (course, _)) in pairs.iter().enumerate() {
        for number in &course.pending {
            ahead.request_build(ticket, course.place, &course.variant(*number));
            waiting.push_back((ticket, place, *number));
            ticket += 1;
        }
    }
    loop {
        while waiting.len() < jobs + 1 {
            let Some(place) = turns.next() else { break };
            let course = &mut pairs[place].0;
            if course.ended.is_some() {
                turns.done(place);
                continue;
            }
            if course.exhausted() {
                course.ended = Some(ALL_TRIED);
                turns.done(place);
                continue;
            }
            if !left.take() {
                break;
            }
            let Some((number, variant)) = course.propose()? else {
                left.put_back();
                if course.waits() {
                    break;
                }
                course.ended = Some(ALL_TRIED);
                turns.done(place);
                continue;
            };
            ahead.request_build(ticket, course.place, &variant);
            waiting.push_back((ticket, place, number));
            ticket += 1;
        }
        let Some((ticket, place, number)) = waiting.pop_front() else {
            break;
        };
        let start = std::time::Instant::now();
        let built = ahead.wait_for_build(ticket);
        let (course, evaluator) = &mut pairs[place];
        evaluator.spent.waiting += start.elapsed().as_secs_f64();
        let variant = course.variant(number);
        let told = evaluator.evaluate(lab, ahead, &variant, built);
        course.settle(number, told.map_err(Error::msg)?)?;
        made += 1;
        if let Some((best, wanted)) = course.promising(wanted)
            && evaluator.reaches(lab, ahead, &best, wanted)
        {
            course.ended = Some(TARGET_REACHED);
            turns.done(place);
        }
        if course.ended.is_none()
            && let Some(best) = course.look_at_best()
            && !evaluator.gains(lab, ahead, &best)
        {
            course.ended = Some(NOTHING_GAINS);
            turns.done(place);
        }
        course.spent += std::mem::take(&mut evaluator.spent);
        let rest = left
            .seconds(made)
            .map_or(String::new(), |s| format!(", {} left", print::time(s)));
        let best = course.best();
        bar.set_message(format!(
            "{}: {} evaluated, best {:.3} times as fast{rest}",
            course.target.name,
            course.told,
            1.0 / best
        ));
    }
    bar.finish_and_clear();
    Ok(())
}

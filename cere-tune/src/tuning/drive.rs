//! Runs the searches of all regions: takes turns, builds ahead, times.

use super::ahead::Ahead;
use super::budget::Left;
use super::course::Course;
use crate::Turns;
use anyhow::Result;
use cere_console::{print, progress};
use cere_measure::Measure;
use std::collections::VecDeque;

/// Evaluates variants until the budget is used up or all searches have ended.
pub fn go_on(
    lab: &dyn Measure,
    courses: &mut [Course],
    ahead: &mut Ahead,
    left: &mut Left,
    wanted: Option<f64>,
    jobs: usize,
) -> Result<()> {
    let weights: Vec<f64> = courses.iter().map(Course::weight).collect();
    let mut turns = Turns::new(&weights);
    let bar = progress::spinner("tuning".into());
    let mut waiting: VecDeque<(u64, usize, u64)> = VecDeque::new();
    let mut ticket = 0;
    let mut made = 0;
    for (place, course) in courses.iter_mut().enumerate() {
        while let Some(number) = course.pending.pop_front() {
            ahead.request_build(ticket, course.place, &course.variant(number));
            waiting.push_back((ticket, place, number));
            ticket += 1;
        }
    }
    loop {
        while waiting.len() < jobs + 1 {
            let Some(place) = turns.next() else { break };
            let course = &mut courses[place];
            if course.ended.is_some() {
                turns.done(place);
                continue;
            }
            if course.exhausted() {
                course.ended = Some("all was tried");
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
                course.ended = Some("all was tried");
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
        let course = &mut courses[place];
        course.spent.waiting += start.elapsed().as_secs_f64();
        course.evaluate(lab, ahead, number, built)?;
        made += 1;
        if let Some(wanted) = wanted
            && course.best() <= 1.0 / wanted
            && course.reaches(lab, ahead, wanted)
        {
            course.ended = Some("the target is reached");
            turns.done(place);
        }
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

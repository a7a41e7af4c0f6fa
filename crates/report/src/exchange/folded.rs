//! Folded stacks (Brendan Gregg's format), and the text of `perf script`.

use super::stacks::{lanes, program};
use cere_format::profile::Profile;

/// Samples that stand for a run.
const SAMPLES: f64 = 10_000.0;

/// A line for each chain: frames, then its self time in microseconds. Threads and ranks other than the first are frames too.
pub fn text(profile: &Profile) -> String {
    let lanes = lanes(profile);
    let several = lanes.len() > 1;
    let mut text = String::new();
    for lane in lanes {
        for (frames, times) in lane.stacks {
            let microseconds = (times.own * 1e6).round();
            if microseconds < 1.0 {
                continue;
            }
            let frames = frames.iter().map(|frame| frame.replace(';', ":"));
            let thread = several.then(|| lane.name.clone());
            let frames: Vec<String> = thread.into_iter().chain(frames).collect();
            text += &format!("{} {microseconds}\n", frames.join(";"));
        }
    }
    text
}

/// Samples at equal distances of self time, the chains one after the other: their order in time is not kept.
pub fn perf_script(profile: &Profile) -> String {
    let period = (profile.seconds / SAMPLES).max(1e-9);
    let program = program(profile).replace(char::is_whitespace, "_");
    let mut text = String::new();
    for (number, lane) in lanes(profile).into_iter().enumerate() {
        let mut taken = 0u64;
        for (frames, times) in lane.stacks {
            let calls: String = frames
                .iter()
                .rev()
                .map(|frame| format!("\t               1 {frame} ({program})\n"))
                .collect();
            for _ in 0..(times.own / period).round() as u64 {
                let at = taken as f64 * period;
                text += &format!(
                    "{program} 1/{} [000] {at:.6}: {:.0} task-clock:\n{calls}\n",
                    number + 1,
                    period * 1e9
                );
                taken += 1;
            }
        }
    }
    text
}

//! What others do on this machine while a probe runs: the less they leave, the less a value is worth.

use std::time::Duration;

/// Processor time so far, in clock ticks of the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Ticks {
    /// Of everyone on all processors, time stolen by a hypervisor included.
    all: u64,
    /// Of this process.
    own: u64,
}

/// Ticks that everyone used, from the text of `/proc/stat`; `None` if it has no such line.
fn everyone(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("cpu "))?;
    let fields: Vec<u64> = line
        .split_whitespace()
        .skip(1)
        .map_while(|f| f.parse().ok())
        .collect();
    // user, nice, system, idle, iowait, irq, softirq, steal; guests are in user already.
    let used = |at: &usize| ![3, 4].contains(at);
    (fields.len() >= 4).then(|| {
        (0..fields.len().min(8))
            .filter(used)
            .map(|at| fields[at])
            .sum()
    })
}

/// Ticks that this process used, from the text of `/proc/self/stat`.
fn own(text: &str) -> Option<u64> {
    // The name in brackets may have blanks.
    let (_, rest) = text.rsplit_once(')')?;
    let field = |at: usize| rest.split_whitespace().nth(at)?.parse::<u64>().ok();
    Some(field(11)? + field(12)?)
}

fn now() -> Option<Ticks> {
    let read = |path| std::fs::read_to_string(path).ok();
    Some(Ticks {
        all: everyone(&read("/proc/stat")?)?,
        own: own(&read("/proc/self/stat")?)?,
    })
}

/// Watches the others from when it is made.
pub struct Others {
    from: Option<Ticks>,
    began: std::time::Instant,
}

impl Others {
    /// Begins to watch.
    #[must_use]
    pub fn watch() -> Self {
        Self {
            from: now(),
            began: std::time::Instant::now(),
        }
    }

    /// Processors that others kept busy since then, on average: 0 on a quiet machine, 1 beside one busy program. 0 where the kernel does
    /// not say.
    #[must_use]
    pub fn busy(&self) -> f64 {
        match (self.from, now()) {
            (Some(from), Some(to)) => busy(from, to, self.began.elapsed()),
            _ => 0.0,
        }
    }

    /// The factor that a confidence keeps: 1 on a quiet machine, 0.5 beside one busy program.
    #[must_use]
    pub fn trust(&self) -> f64 {
        1.0 / (1.0 + self.busy())
    }
}

fn busy(from: Ticks, to: Ticks, time: Duration) -> f64 {
    // The kernel counts in hundredths of a second for programs, whatever its own clock.
    const TICK: f64 = 0.01;
    let others = to
        .all
        .saturating_sub(from.all)
        .saturating_sub(to.own.saturating_sub(from.own));
    // A tick is counted whole to whoever runs at its end: two are within what a quiet machine shows.
    others.saturating_sub(2) as f64 * TICK / time.as_secs_f64().max(TICK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_writes() {
        assert_eq!(
            everyone("cpu  10 1 5 1000 7 2 3 4 9 0\ncpu0 1 1 1 1\n"),
            Some(25)
        );
        assert_eq!(everyone("cpu0 1 2 3 4\n"), None);
        assert_eq!(
            own("7 (a (b) c) R 1 2 3 4 5 6 7 8 9 10 30 12 0 0 20"),
            Some(42)
        );
        assert_eq!(own("7 a"), None);
    }

    #[test]
    fn a_busy_neighbour() {
        let from = Ticks {
            all: 1000,
            own: 100,
        };
        let to = Ticks {
            all: 1202,
            own: 200,
        };
        assert!((busy(from, to, Duration::from_secs(1)) - 1.0).abs() < 1e-9);
        assert_eq!(
            busy(
                from,
                Ticks {
                    all: 1101,
                    own: 200
                },
                Duration::from_secs(1)
            ),
            0.0
        );
        assert!(Others::watch().trust() <= 1.0);
    }
}

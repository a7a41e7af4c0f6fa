//! What the system says of processors, limits and disturbances: pure functions over the text of its files, and their readers.

use cere_format::proc::available;
use std::path::{Path, PathBuf};

/// Processors of a limit: of `cpu.max` (`150000 100000`); `None` for `max`.
#[must_use]
pub fn quota(cpu_max: &str) -> Option<f64> {
    let mut words = cpu_max.split_whitespace();
    let quota: f64 = words.next()?.parse().ok()?;
    let period: f64 = words.next()?.parse().ok()?;
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

/// Times that `cpu.stat` says a group was throttled; 0 where it says nothing.
#[must_use]
pub fn throttled(cpu_stat: &str) -> u64 {
    let field = |line: &str| {
        line.strip_prefix("nr_throttled ")
            .and_then(|n| n.trim().parse().ok())
    };
    cpu_stat.lines().find_map(field).unwrap_or(0)
}

/// Ticks that `/proc/stat` says a hypervisor took, and ticks in all, of the processors `cores`.
#[must_use]
pub fn stolen(stat: &str, cores: &[u32]) -> (u64, u64) {
    let mut sums = (0, 0);
    for line in stat.lines() {
        let mut words = line.split_whitespace();
        let Some(number) = words.next().and_then(|w| w.strip_prefix("cpu")) else {
            continue;
        };
        if !number.parse().is_ok_and(|n: u32| cores.contains(&n)) {
            continue;
        }
        // user nice system idle iowait irq softirq steal; guests are in user.
        let ticks: Vec<u64> = words.take(8).filter_map(|w| w.parse().ok()).collect();
        sums.0 += ticks.get(7).copied().unwrap_or(0);
        sums.1 += ticks.iter().sum::<u64>();
    }
    sums
}

/// Directories of the process's control groups, the nearest first, by controller, from `/proc/self/cgroup`.
#[must_use]
pub fn groups(cgroup: &str, controller: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for line in cgroup.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(names), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let root = match names {
            "" => "/sys/fs/cgroup".to_owned(),
            _ if names.split(',').any(|n| n == controller) => {
                format!("/sys/fs/cgroup/{controller}")
            }
            _ => continue,
        };
        let whole = Path::new(&root).join(path.trim_start_matches('/'));
        // A container sees its own group as the root, though the path says otherwise.
        let up = whole.ancestors().take_while(|p| p.starts_with(&root));
        found.extend(up.map(Path::to_owned));
    }
    found
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn here(controller: &str) -> Vec<PathBuf> {
    groups(&read("/proc/self/cgroup"), controller)
}

/// Bytes that the process may still take: what is available, within the limits of its control groups.
#[must_use]
pub fn free_memory() -> u64 {
    let number = |path: PathBuf| read(path).trim().parse::<u64>().ok();
    let left = here("memory").into_iter().filter_map(|group| {
        let limits = ["memory.max", "memory.high", "memory.limit_in_bytes"];
        let limit = limits.iter().filter_map(|n| number(group.join(n))).min()?;
        let used = ["memory.current", "memory.usage_in_bytes"];
        let used = used.iter().find_map(|n| number(group.join(n)));
        Some(limit.saturating_sub(used.unwrap_or(0)))
    });
    let all = left.chain(available(&read("/proc/meminfo")));
    all.min().unwrap_or(256 << 20)
}

/// Processors that the control groups let the process use at once, and the times that it was throttled.
#[must_use]
pub fn limit() -> (Option<f64>, u64) {
    let (mut least, mut times) = (None, 0);
    for group in here("cpu") {
        let old = format!(
            "{} {}",
            read(group.join("cpu.cfs_quota_us")).trim(),
            read(group.join("cpu.cfs_period_us")).trim()
        );
        let found = quota(&read(group.join("cpu.max"))).or_else(|| quota(&old));
        least = [least, found].into_iter().flatten().min_by(f64::total_cmp);
        times += throttled(&read(group.join("cpu.stat")));
    }
    (least, times)
}

/// What disturbs cores during a measurement.
#[derive(Debug, Clone)]
pub struct Watch {
    cores: Vec<u32>,
    stolen: (u64, u64),
    quota: Option<f64>,
    throttled: u64,
}

/// What disturbed them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Disturbed {
    /// Share of their time that a hypervisor gave to others.
    pub stolen: f64,
    /// Times that the limit of a control group stopped the process.
    pub throttled: u64,
    /// Processors that this limit allows.
    pub quota: Option<f64>,
}

impl Watch {
    /// Begins.
    #[must_use]
    pub fn new(cores: &[u32]) -> Self {
        let (quota, throttled) = limit();
        Self {
            cores: cores.to_vec(),
            stolen: stolen(&read("/proc/stat"), cores),
            quota,
            throttled,
        }
    }

    /// What disturbed them since.
    #[must_use]
    pub fn end(&self) -> Disturbed {
        let now = stolen(&read("/proc/stat"), &self.cores);
        let all = now.1.saturating_sub(self.stolen.1);
        Disturbed {
            stolen: now.0.saturating_sub(self.stolen.0) as f64 / all.max(1) as f64,
            throttled: limit().1.saturating_sub(self.throttled),
            quota: self.quota,
        }
    }
}

impl Disturbed {
    /// What a confidence is multiplied with: 1 without disturbance; half of the time stolen leaves nothing.
    #[must_use]
    pub fn factor(&self) -> f64 {
        let halved = if self.throttled > 0 { 0.5 } else { 1.0 };
        (1.0 - 2.0 * self.stolen).clamp(0.0, 1.0) * halved
    }

    /// What a user should know, if `cores` were used at once.
    #[must_use]
    pub fn notes(&self, cores: usize) -> Vec<String> {
        let mut notes = Vec::new();
        if self.stolen > 0.02 {
            notes.push(format!(
                "a hypervisor took {:.0} % of the processors' time while cores were measured; confidences are lowered: measure \
                 again when the host is less busy",
                100.0 * self.stolen
            ));
        }
        if let Some(quota) = self.quota.filter(|q| *q < cores as f64) {
            notes.push(format!(
                "a control group limits the process to {quota:.2} processors of {cores}; threads on all of them were stopped {} \
                 times: raise cpu.max to measure them together",
                self.throttled
            ));
        } else if self.throttled > 0 {
            notes.push(format!(
                "a control group stopped the process {} times while cores were measured; confidences are lowered",
                self.throttled
            ));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_limits_and_throttling() {
        let text = "MemTotal: 10 kB\nMemAvailable:    2048 kB\n";
        assert_eq!(available(text), Some(2 << 20));
        assert_eq!(available("MemTotal: 10 kB\n"), None);
        assert_eq!(quota("150000 100000\n"), Some(1.5));
        assert_eq!(quota("max 100000\n"), None);
        assert_eq!(quota("-1 100000"), None, "no limit in the old hierarchy");
        assert_eq!(quota(""), None);
        assert_eq!(
            throttled("nr_periods 9\nnr_throttled 4\nthrottled_usec 3\n"),
            4
        );
        assert_eq!(throttled(""), 0);
    }

    #[test]
    fn steal() {
        let before =
            "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 10 0 0 80 0 0 0 10 0 0\ncpu1 5 0 0 5 0 0 0 0 0 0\n";
        assert_eq!(stolen(before, &[0]), (10, 100));
        assert_eq!(stolen(before, &[0, 1]), (10, 110));
        assert_eq!(stolen(before, &[7]), (0, 0), "offline");
        assert_eq!(stolen("", &[0]), (0, 0));
    }

    #[test]
    fn control_groups() {
        let new = groups("0::/a/b\n", "cpu");
        let paths = ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"];
        assert_eq!(new, paths.map(PathBuf::from));
        let old = groups("4:memory:/x\n1:cpu,cpuacct:/y\n", "cpu");
        let paths = ["/sys/fs/cgroup/cpu/y", "/sys/fs/cgroup/cpu"];
        assert_eq!(old, paths.map(PathBuf::from));
    }

    #[test]
    fn disturbances_lower_confidence_and_are_named() {
        let calm = Disturbed {
            stolen: 0.0,
            throttled: 0,
            quota: None,
        };
        assert_eq!((calm.factor(), calm.notes(2).len()), (1.0, 0));
        let busy = Disturbed {
            stolen: 0.2,
            throttled: 3,
            quota: Some(1.0),
        };
        assert!((busy.factor() - 0.3).abs() < 1e-12);
        let notes = busy.notes(2);
        assert!(notes[0].contains("20 %") && notes[1].contains("1.00 processors of 2"));
        let elsewhere = Disturbed {
            quota: Some(4.0),
            ..busy
        };
        assert!(elsewhere.notes(2)[1].contains("3 times"));
        assert_eq!(
            Disturbed {
                stolen: 0.6,
                ..calm
            }
            .factor(),
            0.0
        );
    }
}
